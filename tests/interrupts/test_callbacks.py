"""What callbacks, `output=`, handlers that return, and allocation do to a run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from sizes import thin, wide

import rvm
from rvm.engines import ENGINES, having
from rvm.host import signals
from rvm.host.signals import Listening, Relay, deferred, heard

each_engine = pytest.mark.parametrize("engine", ENGINES)
on_unix = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")

TEXT = """
func main(x: f64[n], y: i64[m], s: stack[i64], k: i64)
    for i = 1 to k
        add x[i % len(x)], 0.1
        add y, i
        alloc a: i64 = i
        push a, s
        free a
        extern forward
            print "{}", i
            callback seen, i, y
        end
    end

func spin(x: f64[n], k: i64)
    extern forward
        print "begun"
    end
    call whirl(x, k)

func whirl(x: f64[n], k: i64)
    for i = 1 to k
        add x[i % len(x)], 0.1
        mul x[(i + 1) % len(x)], 1.0000001
    end
"""
PROGRAM = rvm.assemble(TEXT)


class Full(Exception):
    """What nobody but its caller knows."""


def data() -> dict[str, Any]:
    return {"x": np.linspace(0.1, 0.9, 4), "y": np.arange(3), "s": [5]}


def held(given: dict[str, Any]) -> tuple[Any, ...]:
    return given["x"].tobytes(), given["y"].tobytes(), list(given["s"])


class Nth:
    """A function that raises when it is called for the n-th time, and never again."""

    def __init__(self, n: int, error: BaseException) -> None:
        self.n = n
        self.error = error
        self.calls: list[Any] = []

    def __call__(self, *args: Any) -> None:
        self.calls.append(args[0])
        if len(self.calls) == self.n:
            raise self.error


ERRORS: tuple[Callable[[], BaseException], ...] = (
    Full,
    lambda: BrokenPipeError(32, "broken pipe"),
    lambda: OSError(28, "no space left on device"),
    KeyboardInterrupt,
    MemoryError,
    KeyError,
    lambda: rvm.MachineError("R003", "of another machine"),
    lambda: SystemExit(3),
)


@thin
@each_engine
@pytest.mark.parametrize("make", ERRORS)
@pytest.mark.parametrize("at", [1, 4, 6])
@pytest.mark.parametrize("who", ["output", "callback"])
def test_what_they_raise_arrives_as_it_is(
    engine: str, make: Callable[[], BaseException], at: int, who: str
) -> None:
    error = make()
    raising = Nth(at, error)
    output: Any = raising if who == "output" else lambda line: None
    seen: Any = raising if who == "callback" else lambda *_: None
    options: dict[str, Any] = {"output": output, "callbacks": {"seen": seen}, "engine": engine}
    given = data()
    with pytest.raises(type(error)) as caught:
        PROGRAM.main(**given, k=6, **options)
    assert caught.value is error
    assert held(given) == held(data())
    assert len(raising.calls) == at, "it is called once for each time that it is reached"
    if isinstance(error, rvm.RvmError):
        assert error.time is None, "it is not an error of this machine"

    # A machine stands before the instruction: it can go back, or on.
    for goes_on in (False, True):
        machine = rvm.Machine(PROGRAM, "main", **(given := data()), k=6, **options)
        raising.calls.clear()
        with pytest.raises(type(error)):
            machine.run()
        if goes_on:
            machine.run()
            said = [str(k) for k in range(1, 7)] if who == "output" else list(range(1, 7))
            assert raising.calls == [*said[:at], *said[at - 1 :]]
            raising.calls.clear()
        raising.n = 0
        machine.run_back()
        raising.n = at
        assert machine.time == 0 and machine.result["s"] == [5]
        assert held(given)[1:] == held(data())[1:]
        assert given["x"] == pytest.approx(data()["x"], abs=1e-15)


SAYING = rvm.assemble("""
func main(y: f64, x: f64)
    extern forward
        print "{}", x
    end
    add y, x * x
""")


@each_engine
@pytest.mark.parametrize("make", ERRORS)
@pytest.mark.parametrize("at", [1, 3])
def test_what_an_output_raises_ends_a_map(
    engine: str, make: Callable[[], BaseException], at: int
) -> None:
    """It is not an error of a lane, whatever its type."""
    error, xs = make(), np.arange(4.0)
    for run in (SAYING.main.map, lambda **given: SAYING.main.map.grad(loss="y", **given)):
        raising = Nth(at, error)
        with pytest.raises(type(error)) as caught:
            run(y=0.0, x=xs, output=raising, engine=engine)
        assert caught.value is error and len(raising.calls) == at
        assert xs.tolist() == [0, 1, 2, 3]


@each_engine
def test_a_program_that_fails_shows_values_as_they_were_at_the_failure(engine: str) -> None:
    program = rvm.assemble(
        """
func f(x: i64[n])
    add x, 5
    alloc t: i64[3] = 0
    add t, x
    sub x, 2
    free t = x
"""
    )
    x = np.array([1, 2, 3])
    with pytest.raises(rvm.InvertibilityError) as caught:
        program.f(x=x, engine=engine)
    assert x.tolist() == [1, 2, 3]
    assert caught.value.values["t"].tolist() == [6, 7, 8]
    assert caught.value.values["expected"].tolist() == [4, 5, 6]


@each_engine
def test_only_what_may_change_is_copied(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large array that is read costs no memory: it is of an address space that nobody has."""
    import tracemalloc

    program = rvm.assemble(
        "func f(x: f64[n], y: f64, z: f64[m], k: i64)\n    add y, x[k]\n    add z, 1.0\n"
    )
    f = program.f.with_options(engine=engine)
    x, z = np.ones(1 << 21), np.zeros(4)
    f(x=x, y=0.0, z=z, k=3)
    tracemalloc.start()
    assert f(x=x, y=0.0, z=z, k=3).y == 1.0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < x.nbytes / 8 and z.tolist() == [2.0] * 4


# ---------------------------------------------------------------- signals


class Presses:
    """Signals sent from a thread, `apart` seconds apart, from when a run says that it has begun."""

    def __init__(self, number: int, times: int = 1, apart: float = 0.05) -> None:
        self.begun = threading.Event()
        self.number, self.times, self.apart = number, times, apart
        self.thread = threading.Thread(target=self.press)

    def press(self) -> None:
        self.begun.wait()
        for _ in range(self.times):
            time.sleep(self.apart)
            os.kill(os.getpid(), self.number)

    def __call__(self, line: str) -> None:
        self.begun.set()

    def __enter__(self) -> Presses:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.begun.set()
        self.thread.join()


@on_unix
@each_engine
@pytest.mark.parametrize("who", ["output", "callback"])
def test_a_callback_that_waits_can_be_interrupted(engine: str, who: str) -> None:
    woken, given = [], data()
    quiet: Any = lambda *_: None  # noqa: E731
    with Presses(signal.SIGINT) as presses:

        def wait(*_: Any) -> None:
            presses.begun.set()
            time.sleep(60)
            woken.append(True)

        with pytest.raises(rvm.Interrupted) as caught:
            PROGRAM.main(
                **given,
                k=3,
                output=wait if who == "output" else quiet,
                callbacks={"seen": wait if who == "callback" else quiet},
                engine=engine,
            )
    assert not woken and held(given) == held(data())
    assert caught.value.where.line == (10 if who == "output" else 11)
    assert "as they were" in caught.value.hint


@thin
@on_unix
@each_engine
def test_a_handler_that_returns_lets_the_run_go_on(engine: str) -> None:
    seen: list[tuple[int, bool]] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append((number, frame is not None))

    before = signal.signal(signal.SIGUSR1, note)
    rounds = 3 * 10**6 if ENGINES[engine].compiles else 10_000
    try:
        expected = PROGRAM.whirl(x=np.ones(4), k=rounds, engine=engine).x
        with Presses(signal.SIGUSR1, times=3, apart=0.002) as presses:
            out = PROGRAM.spin(x=np.ones(4), k=rounds, engine=engine, output=presses)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert out.x.tobytes() == expected.tobytes()
    assert 1 <= len(seen) <= 3 and set(seen) == {(signal.SIGUSR1, True)}


@on_unix
def test_the_first_exception_arrives_and_the_next_is_chained_to_it() -> None:
    def one(number: int, frame: FrameType | None) -> None:
        raise Full("one")

    def two(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("two")

    done = []

    @deferred
    def instruction() -> None:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR2)
        done.append("an instruction")
        heard()
        done.append("never")

    before = [signal.signal(signal.SIGUSR1, one), signal.signal(signal.SIGUSR2, two)]
    try:
        with pytest.raises(Full) as caught, Listening():
            assert isinstance(signal.getsignal(signal.SIGUSR1), Relay)
            instruction()
        assert signal.getsignal(signal.SIGUSR1) is one
        assert signal.getsignal(signal.SIGUSR2) is two
    finally:
        signal.signal(signal.SIGUSR1, before[0])
        signal.signal(signal.SIGUSR2, before[1])
    assert done == ["an instruction"]
    assert isinstance(caught.value.__context__, TimeoutError)


@on_unix
@pytest.mark.parametrize("line", range(40))
def test_nothing_waits_when_a_second_signal_comes_at_any_line_of_the_end(line: int) -> None:
    """The first is waiting when the end begins, or comes while the handlers are put back."""

    class First(Exception):
        pass

    class Second(Exception):
        pass

    def one(number: int, frame: FrameType | None) -> None:
        raise First

    def two(number: int, frame: FrameType | None) -> None:
        raise Second

    seen = 0
    sent: list[int] = []

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal seen
        if frame.f_code.co_filename != Listening._install.__code__.co_filename:
            return None
        if event == "line" and frame.f_code.co_name in ("__exit__", "_left", "_put_back", "heard"):
            seen += 1
            for at, number in ((line // 2, signal.SIGUSR1), (line, signal.SIGUSR2)):
                if seen == at:
                    sent.append(number)
                    signal.raise_signal(number)
        return trace

    before = [signal.signal(signal.SIGUSR1, one), signal.signal(signal.SIGUSR2, two)]
    old = sys.gettrace()
    raised = None
    try:
        try:
            with Listening():
                sys.settrace(trace)
        except (First, Second) as error:
            raised = error
        finally:
            sys.settrace(old)
        assert signal.getsignal(signal.SIGUSR1) is one
        assert signal.getsignal(signal.SIGUSR2) is two
        assert not signals._waiting
        assert (raised is not None) == bool(sent)
    finally:
        signals._waiting.clear()
        signal.signal(signal.SIGUSR1, before[0])
        signal.signal(signal.SIGUSR2, before[1])


@on_unix
def test_what_a_callback_does_with_handlers_stays() -> None:
    def other(number: int, frame: FrameType | None) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        PROGRAM.main(
            **data(),
            k=1,
            output=lambda _: signal.signal(signal.SIGUSR1, other),
            callbacks={"seen": lambda *_: None},
        )
        assert signal.getsignal(signal.SIGUSR1) is other
    finally:
        signal.signal(signal.SIGUSR1, before)


@thin
@on_unix
@each_engine
def test_under_asyncio_its_own_handler_is_called(engine: str) -> None:
    """The first Ctrl-C asks the task to end, which a call does not hear; the second ends it."""
    x = np.ones(4)

    with Presses(signal.SIGINT, times=2, apart=0.3) as presses:

        async def main() -> None:
            PROGRAM.spin(x=x, k=10**12, engine=engine, output=presses)

        with pytest.raises(KeyboardInterrupt):
            asyncio.run(main())
    assert x.tolist() == [1.0] * 4
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@on_unix
def test_except_exception_lets_ctrl_c_pass() -> None:
    swallowed = False
    with Presses(signal.SIGINT) as presses, pytest.raises(rvm.Interrupted) as caught:
        try:
            PROGRAM.spin(x=np.ones(4), k=10**12, output=presses)
        except Exception:
            swallowed = True
    error = caught.value
    assert not swallowed and not isinstance(error, rvm.RvmError)
    assert (error.code, error.exit_code) == ("R016", 130)
    assert error.where.line and error.time is not None and error.time > 0
    assert "error[R016]: interrupted" in str(error)


@on_unix
def test_a_machine_in_a_thread_is_not_disturbed() -> None:
    x, done = np.ones(4), []

    def run() -> None:
        done.append(PROGRAM.whirl(x=x, k=30_000, engine="python"))

    other = threading.Thread(target=run)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
        other.join()
    other.join()
    assert done


@wide
@on_unix
def test_compiling_is_interrupted_without_a_noise() -> None:
    """Ctrl-C at many moments of a long compilation: one exception, nothing on standard error."""
    lines = "".join(f"    add x{k % 8}, sin(x{(k + 1) % 8}) * {k}.5\n" for k in range(400))
    parameters = ", ".join(f"x{k}: f64" for k in range(8))
    program = f"func f({parameters})\n{lines}"
    script = f"""
import os, signal, threading, time, rvm
ended = 0
for k in range(12):
    f = rvm.assemble({program!r}.replace("* 5.5", f"* {{k}}.25")).f
    t = threading.Timer(0.02 + 0.06 * k, os.kill, (os.getpid(), signal.SIGINT))
    t.start()
    try:
        f(*[0.5] * 8, engine="native")
        t.join()
    except KeyboardInterrupt:
        ended += 1
    t.join()
print("ended", ended)
"""
    pytest.importorskip("llvmlite")
    env = os.environ | {"RVM_CACHE_DIR": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=env, check=False
    )
    assert done.stdout.startswith("ended") and done.stderr == "", done.stderr


# ---------------------------------------------------------------- memory


@thin
@on_unix
@each_engine
def test_memory_that_gives_out_leaves_everything_as_it_was(engine: str) -> None:
    """In a process that may have little memory, temporaries and local arrays do not fit."""
    script = f"""
import resource, numpy as np, rvm
p = rvm.assemble('''
func local(x: f64[n], y: f64[n], k: i64)
    add y, 1.0
    mul y, 1.1
    alloc t: f64[k] = 0.5
    free t = 0.5
func wide(x: f64[n], y: f64[n], k: i64)
    add y, 1.0
    mul y, 1.1
    for i = 1 to 2
        add y, (x * x + x * x * x) * (x + x * x) + (x - x * x) * (x * x * 2.0)
    end
''')
n = 1 << 21
x, y = np.ones(n), np.full(n, 0.3)
for f in (p.local, p.wide):
    f.with_options(engine={engine!r})(x=x[:4].copy(), y=y[:4].copy(), k=4)
before = y.tobytes()
pages = int(open("/proc/self/statm").read().split()[0])
no = resource.RLIM_INFINITY
for f, k in ((p.local, 1 << 24), (p.wide, 0)):
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + 3 * x.nbytes, no))
    try:
        f(x=x, y=y, k=k, engine={engine!r})
    except (rvm.LimitError, MemoryError) as error:
        resource.setrlimit(resource.RLIMIT_AS, (no, no))
        print(getattr(error, "code", "MemoryError"))
        assert y.tobytes() == before
    else:
        print("done")
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("the memory of a process is asked of Linux")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    local, wide = done.stdout.split()
    assert local == "R011" and wide in ("R011", "MemoryError", "done")


@on_unix
@pytest.mark.parametrize("engine", ["python", *having("lanes")])
def test_a_map_is_interrupted(engine: str) -> None:
    """Lanes that go on together in one loop look at signals, too."""
    x = np.ones((300, 4))
    whirl = PROGRAM.whirl.with_options(engine=engine)
    whirl.map(x=x, k=1)
    with Presses(signal.SIGINT, apart=0.2) as presses:
        presses.begun.set()
        with pytest.raises(rvm.Interrupted) as caught:
            whirl.map(x=x, k=10**9)
    assert "as they were" in caught.value.hint
    assert x.tolist() == np.ones((300, 4)).tolist()
