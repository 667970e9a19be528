"""Nothing that happens around a run of machine code takes the process down: each in a child."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sizes import part, sized, thin, wide

import rvm
from rvm.engines.native import host, stacks

pytest.importorskip("llvmlite")

unix = pytest.mark.skipif(sys.platform == "win32", reason="signals, limits and threads of Unix")


def child(script: str, *arguments: str, timeout: float = 120.0) -> str:
    """What a script prints; it must come to its end by itself."""
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )
    assert ran.returncode == 0, f"exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    assert not ran.stderr, ran.stderr
    return ran.stdout


# ---------------------------------------------------------------- signals

STORM = """
import random, signal, sys, time
import numpy as np, rvm

class Late(BaseException):
    pass

armed = False

def handler(*_):
    if armed:
        raise Late

program = rvm.assemble('''
func f(y: f64, x: f64[8], v: f64, n: i64)
    for i = 1 to n
        add x[i % 8], v * 0.01
        sub v, x[(i + 1) % 8] * 0.01
    end
    add y, v
''')
what, wanted_hits, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
rng = np.random.default_rng(seed)
lanes = 300
given = dict(
    y=0.0,
    x=rng.random((lanes, 8)),
    v=np.linspace(0.0, 1.0, lanes),
    n=rng.integers(1, 12_000, lanes),
)
kept = {k: np.copy(v) for k, v in given.items()}
mapped = program.f.map.with_options(engine="native")
call = {"map": mapped, "grad": lambda **g: mapped.grad(loss="y", wrt=["x", "v"], **g)}[what]
began = time.perf_counter()
wanted = call(**given)
takes = time.perf_counter() - began
signal.signal(signal.SIGALRM, handler)
hits = tries = 0
end = time.perf_counter() + 300
while hits < wanted_hits and time.perf_counter() < end:
    tries += 1
    try:
        try:
            # More often than handlers end they would nest, up to a RecursionError.
            again = random.choice([0, 1e-4, 1e-3])
            armed = True
            signal.setitimer(signal.ITIMER_REAL, random.random() * takes, again)
            call(**given)
        finally:
            armed = False
    except Late:
        hits += 1
    for _ in range(9):
        # One that came when the others were seen to.
        try:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            break
        except Late:
            pass
    for name, value in kept.items():
        assert np.array_equal(given[name], value), (name, tries)
    junk = [np.random.rand(random.randrange(1, 3000)) for _ in range(30)]
after = call(**given)
assert all(np.array_equal(after[k], wanted[k]) for k in dict(wanted))
print(hits)
"""


@wide
@unix
@pytest.mark.parametrize("what", ["map", "grad"])
@sized
def test_signals_at_any_moment_of_a_map_leave_memory_and_inputs_alone(what: str) -> None:
    """Once and in storms, in the middle of the threads' start, work and end."""
    assert int(child(STORM, what, str(part(6)), "1")) >= part(6)


@unix
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("what", ["map", "grad"])
def test_two_thousand_signals_in_maps(what: str, seed: int) -> None:
    assert int(child(STORM, what, "250", str(seed), timeout=400.0)) >= 250


def one_door() -> None:
    from rvm.engines.native.doors import Door

    door, inside, go = Door(), [0], threading.Event()

    def work() -> None:
        if door.enter():
            inside.append(1)
            go.wait(0.002)
            inside.pop()
            door.leave()

    threads = [threading.Thread(target=work) for _ in range(4)]

    def steps() -> Iterator[None]:
        for thread in threads[:3]:
            thread.start()
            yield
        raise KeyError("stopped")

    with pytest.raises(KeyError):
        door.close(steps())
    assert inside == [0]
    threads[3].start()
    for thread in threads:
        thread.join()
    assert not door.enter()


def test_a_door_is_left_when_nobody_is_inside_and_lets_no_one_in_afterwards() -> None:
    for _ in range(50):
        one_door()


# ---------------------------------------------------------------- compiling

COMPILING = """
import os, random, signal, sys
os.environ["RVM_CACHE_DIR"] = ""
import rvm

class Late(BaseException):
    pass

armed = False

def handler(*_):
    if armed:
        raise Late

text = '''
func f(x: f64, v: f64, n: i64)
    for i = 1 to n
        add x, v * 0.{k}
        sub v, sin(x) * 0.01
    end
'''
random.seed(int(sys.argv[1]))
rvm.assemble(text.format(k="0")).f(x=1.0, v=0.5, n=3, engine="native")
signal.signal(signal.SIGALRM, handler)
hits = 0
for k in range(1, 41):
    program = rvm.assemble(text.format(k=k))
    try:
        try:
            armed = True
            again = random.choice([0, 1e-4, 1e-3])
            signal.setitimer(signal.ITIMER_REAL, random.random() * 0.06 + 1e-5, again)
            program.f(x=1.0, v=0.5, n=3, engine="native")
        finally:
            armed = False
    except Late:
        hits += 1
    for _ in range(9):
        # One that came when the others were seen to.
        try:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            break
        except Late:
            pass
    want = program.f(x=1.0, v=0.5, n=3, engine="reference")
    assert dict(program.f(x=1.0, v=0.5, n=3, engine="native")) == dict(want)
print(hits)
"""


@wide
@unix
def test_signals_while_a_call_compiles_leave_no_noise_and_no_half_made_code() -> None:
    """What destructors have to say would come on the error output, which is empty."""
    assert int(child(COMPILING, "1")) >= 5


def test_compiling_leaves_the_size_of_threads_stacks_as_it_was() -> None:
    script = (
        "import os, threading\nos.environ['RVM_CACHE_DIR'] = ''\nimport rvm\n"
        "threading.stack_size(65_536)\nfound = []\n"
        "program = rvm.assemble('func f(x: f64, k: i64)\\n    add x, 1.5\\n')\n"
        "def work():\n    found.append(program.f(x=1.0, k=1, engine='native').x)\n"
        "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n"
        "print(found, threading.stack_size())\n"
    )
    assert child(script) == "[2.5] 65536\n"


# ---------------------------------------------------------------- stacks

DEPTH = """
import sys, threading
import numpy as np, rvm

program = rvm.assemble('''
func sum(s: i64, n: i64)
    add s, n
    if n > 0
        alloc k: i64 = n - 1
        call sum(s, k)
        free k = n - 1
    end

func wide(s: f64, n: i64)
    alloc a: f64[60] = 0.5
    add s, a[n % 60]
    if n > 0
        alloc k: i64 = n - 1
        call wide(s, k)
        free k = n - 1
    end
    free a = 0.5
''')
size, depth = int(sys.argv[1]), int(sys.argv[2])
wrong = []

def work():
    try:
        for _ in range(2):
            found = program.sum(s=0, n=depth, engine="native").s
            assert found == depth * (depth + 1) // 2, found
            found = program.wide(s=0.0, n=depth, engine="native").s
            assert found == 0.5 * (depth + 1), found
        many = program.sum.map(s=0, n=np.arange(depth, depth + 40), engine="native").s
        assert many[0] == depth * (depth + 1) // 2
    except BaseException as error:
        wrong.append(error)

if size:
    threading.stack_size(size)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if wrong:
    raise wrong[0]
assert threading.stack_size() == size, "the process's setting is as it was"
work()
if wrong:
    raise wrong[0]
print("done")
"""


@thin
@unix
@pytest.mark.parametrize("size", [65_536, 131_072, 1 << 20, 0])
def test_recursion_in_threads_with_any_stack(size: int) -> None:
    assert child(DEPTH, str(size), "700") == "done\n"


@unix
def test_deep_recursion_in_threads() -> None:
    assert child(DEPTH, "0", "20000") == "done\n"


@unix
def test_the_bounds_of_a_stack_hold_what_is_on_it() -> None:
    """A variable of C's: its address is asked for by a function that this thread runs."""
    found: list[tuple[int, int, int]] = []
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def note() -> None:
        def order(a: int, b: int) -> int:
            found.append((*stacks.bounds(), a))
            return 0

        # `qsort` copies what it sorts, if that is little, to its own frame.
        numbers = (ctypes.c_int64 * 2)(2, 1)
        host.library().qsort(numbers, 2, 8, compare(order))

    note()
    thread = threading.Thread(target=note)
    thread.start()
    thread.join()
    assert len({low for low, _, _ in found}) == 2, "each thread has its own"
    for low, high, _ in found:
        assert 0 < low < high
        assert high - low >= 1 << 16
    floors = {stacks.stack_floor()}
    thread = threading.Thread(target=lambda: floors.add(stacks.stack_floor()))
    thread.start()
    thread.join()
    assert len(floors) == 2


# ---------------------------------------------------------------- memory

NO_MEMORY = """
import ctypes, sys
import numpy as np, rvm
from rvm.engines.native import memory

left = [0]

def sparse(name, types, result):
    real = getattr(ctypes.CDLL(None), name)
    real.argtypes, real.restype = types, result
    def call(*given):
        left[0] -= 1
        return 0 if left[0] < 0 else real(*given)
    return ctypes.CFUNCTYPE(result, *types)(call)

size, pointer = ctypes.c_size_t, ctypes.c_void_p
made = {
    "malloc": sparse("malloc", [size], pointer),
    "calloc": sparse("calloc", [size, size], pointer),
    "realloc": sparse("realloc", [pointer, size], pointer),
}
known = memory.address
memory.address = lambda name: (
    ctypes.cast(made[name], pointer).value if name in made else known(name)
)
program = rvm.assemble('''
func main(s: i64, x: i64[m], n: i64)
    alloc stack: stack[i64]
    alloc a: i64[n + 90] = n
    alloc t: i64 = n
    push t, stack
    add x[n % m], a[n]
    if n > 0
        alloc k: i64 = n - 1
        call main(s, x, k)
        free k = n - 1
    end
    add s, x[n % m]
    if n == 3
        extern forward
            print "at three"
        end
    end
    pop t, stack
    free t = n
    free a = n
    free stack
''')
outcomes = {}
want_x = np.zeros(5, np.int64)
left[0] = 1 << 40
lines = []
want = program.main(s=0, x=want_x, n=30, engine="native", output=lines.append).s
for some in range(0, 140):
    left[0] = some
    x = np.zeros(5, np.int64)
    try:
        found = program.main(s=0, x=x, n=30, engine="native", output=lines.append).s
    except (MemoryError, rvm.RvmError) as error:
        outcomes[getattr(error, "code", "MemoryError")] = 1
        assert getattr(error, "code", "R011") == "R011", error
        left[0] = 1 << 40
        assert isinstance(error, MemoryError) or not x.any(), x
    else:
        outcomes["done"] = 1
        assert found == want and np.array_equal(x, want_x)
print(sorted(outcomes))
"""


@unix
def test_an_allocator_that_fails_in_machine_code_is_an_error_or_nothing() -> None:
    """It fails from the k-th request on, for each k; Python's own memory is not touched."""
    assert "done" in child(NO_MEMORY)


LIMITED = """
import resource, sys
import numpy as np, rvm

program = rvm.assemble('''
func main(s: f64, n: i64)
    alloc a: f64[n] = 1.0
    add s, a[n - 1]
    free a = 1.0
''')
main = program.main.with_options(engine="native")
assert main(s=0.0, n=10).s == 1.0
room = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (room, room))
for n in (1 << 22, 1 << 26, 1 << 32, 1 << 45):
    try:
        main(s=0.0, n=n)
    except rvm.RvmError as error:
        print(error.code)
    else:
        print("done")
assert main(s=0.0, n=10).s == 1.0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory as Linux keeps them")
def test_arrays_beyond_the_processs_memory_are_an_error() -> None:
    assert child(LIMITED).split() == ["done", "R011", "R011", "R011"]


# ---------------------------------------------------------------- systems without it

WITHOUT = """
import ctypes
class Other(ctypes.CDLL):
    def __init__(self, name, *given, **more):
        if name is None:
            raise TypeError("LoadLibrary() argument 1 must be str, not None")
        super().__init__(name, *given, **more)
ctypes.CDLL = Other

import numpy as np, rvm
from rvm.engines.auto import choose
from rvm.image import image_of

program = rvm.assemble('''
func f(s: f64, n: i64)
    for i = 1 to n
        add s, 0.5
    end
''')
found = program.f(s=0.0, n=200_000)
assert found.s == 100_000.0
assert program.f.map(s=np.zeros(3), n=10).s.tolist() == [5.0] * 3
assert program.f.grad(loss="s", s=1.0, n=200_000).s == 1.0
assert "native" not in choose(image_of(program), "f", rvm.Options())[:2]
calls = [
    lambda: program.f(s=0.0, n=10, engine="native"),
    lambda: program.f.map(s=np.zeros(3), n=10, engine="native"),
    lambda: program.f.grad(loss="s", s=0.0, n=10, engine="native"),
    lambda: rvm.Machine(program, "f", s=0.0, n=10, engine="native"),
]
for call in calls:
    try:
        call()
    except rvm.RvmError as error:
        assert error.code == "U002", error
        assert "Linux and macOS" in error.message
    else:
        raise AssertionError("it ran")
print("done")
"""


def test_a_system_without_a_library_for_the_process_goes_on_without_machine_code(
    tmp_path: Path,
) -> None:
    """As on Windows."""
    assert child(WITHOUT) == "done\n"


# ---------------------------------------------------------------- results


def test_maps_on_threads_have_the_results_of_single_calls() -> None:
    program = rvm.assemble(
        "func f(x: f64, n: i64)\n    for i = 1 to n\n        add x, 0.5\n    end\n"
    )
    n = np.arange(20_000, 20_400)
    found = program.f.map(x=0.0, n=n, engine="native").x
    assert np.array_equal(found, n * 0.5)
