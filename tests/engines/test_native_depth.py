"""Recursion in machine code runs on a large stack of its own: deep, and on any thread."""

from __future__ import annotations

import platform
import sys
import textwrap
import threading

import numpy as np
import pytest
from engines.test_native_safety import child
from sizes import wide

import rvm
from rvm import state
from rvm.engines import executing, extent, python, reference
from rvm.engines.lanes import engine as lanes
from rvm.engines.native import elf, flight, stacks
from rvm.engines.native import engine as native
from rvm.engines.native.compiler import compiler
from rvm.faults import LimitError, MachineError
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")

large = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform not in ("linux", "darwin"),
    reason="the switch of stacks is x86-64's",
)

TEXT = """
func sum(s: i64, n: i64)
    add s, n
    if n > 0
        alloc k: i64 = n - 1
        call sum(s, k)
        free k = n - 1
    end

func even(odd: i64, n: i64)
    if n > 0
        alloc k: i64 = n - 1
        call odd(odd, k)
        free k = n - 1
    end

func odd(odd: i64, n: i64)
    if n == 0
        add odd, 1
    else
        alloc k: i64 = n - 1
        call even(odd, k)
        free k = n - 1
    end

func scaled(y: f64, x: f64, n: i64)
    if n > 0
        alloc k: i64 = n - 1
        call scaled(y, x, k)
        free k = n - 1
    end
    add y, x * 0.5

func trap(s: i64, n: i64, at: i64)
    add s, 1
    extern forward
        assert n != at, "here", n
    end
    if n > 0
        alloc k: i64 = n - 1
        call trap(s, k, at)
        free k = n - 1
    end
"""


@pytest.fixture
def landed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The frames that runs of machine code have stopped in."""
    found: list[int] = []
    stopped = flight._stopped

    def noted(state, root, address, stacks):  # type: ignore[no-untyped-def]
        found.append(address)
        return stopped(state, root, address, stacks)

    monkeypatch.setattr(flight, "_stopped", noted)
    return found


@large
@pytest.mark.parametrize("depth", [0, 1, 1_000, 100_000, 1_000_000])
def test_a_million_levels_are_calls(landed: list[int], depth: int) -> None:
    sum_ = rvm.assemble(TEXT).sum.with_options(engine="native")
    out = sum_(s=5, n=depth)
    assert out.s == 5 + depth * (depth + 1) // 2
    assert dict((~sum_)(**out)) == {"s": 5, "n": depth}
    assert not landed


@wide
@large
@pytest.mark.parametrize("chunk", [None, 50_000])
def test_frames_left_behind_are_not_entered_one_by_one(
    chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`auto` begins in Python and goes on in machine code in the depth of a recursion; with small
    chunks machine code also stops there.
    """
    entered = []
    run = native.run

    def counted(*args):  # type: ignore[no-untyped-def]
        entered.append(args)
        return run(*args)

    monkeypatch.setattr(native, "run", counted)
    if chunk is not None:
        monkeypatch.setattr(extent, "first_chunk", lambda engine, state: chunk)
    depth = 200_000
    out = rvm.assemble(TEXT).sum(s=0, n=depth, engine="auto")
    assert out.s == depth * (depth + 1) // 2
    assert 0 < len(entered) < depth // 40


@large
def test_functions_that_call_each_other_go_as_deep(landed: list[int]) -> None:
    even = rvm.assemble(TEXT).even.with_options(engine="native")
    assert [even(odd=0, n=n).odd for n in (200_000, 200_001)] == [0, 1]
    assert not landed


@large
def test_gradients_and_lanes_go_as_deep(landed: list[int]) -> None:
    scaled = rvm.assemble(TEXT).scaled.with_options(engine="native")
    assert scaled.grad(loss="y", y=0.0, x=1.0, n=100_000).x == 50_000.5
    found = scaled.map(y=0.0, x=np.linspace(0.0, 1.0, 9), n=50_000)
    assert not found.errors and found.y[-1] == 25_000.5
    assert not landed


@large
def test_threads_with_small_stacks_go_as_deep(landed: list[int]) -> None:
    sum_ = rvm.assemble(TEXT).sum.with_options(engine="native")
    found: list[int] = []
    before = threading.stack_size(65_536)
    try:
        threads = [
            threading.Thread(target=lambda: found.append(sum_(s=0, n=200_000).s)) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
    finally:
        threading.stack_size(before)
    for thread in threads:
        thread.join()
    assert found == [200_000 * 200_001 // 2] * 3
    assert not landed


def test_what_fails_in_the_depth_is_reported_as_from_single_steps() -> None:
    program = rvm.assemble(TEXT)
    seen = []
    for engine in executing(loops=False)[1:]:
        with pytest.raises(MachineError) as caught:
            program.trap(s=0, n=3_000, at=7, engine=engine)
        error = caught.value
        seen.append((error.code, error.time, repr(error.values)))
    assert seen[0] == seen[1]
    assert seen[0][0] == "R013"


def test_limits_hold_in_the_depth() -> None:
    program = rvm.assemble(TEXT)
    machine = Machine(program, "sum", s=0, n=10**9, engine="native", max_memory=1 << 20)
    with pytest.raises(LimitError) as caught:
        machine.run()
    assert caught.value.code == "R011"
    assert machine.state.account.live_bytes <= 1 << 20
    assert machine.run_back().result == {"s": 0, "n": 10**9}


def test_without_a_large_stack_the_threads_own_is_used(
    landed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight, "large_stack", lambda: None)
    sum_ = rvm.assemble(TEXT).sum.with_options(engine="native")
    assert sum_(s=0, n=10_000).s == 50_005_000
    assert not landed


@large
def test_the_switch_is_what_its_listing_says() -> None:
    lines = ["push %rbp", "mov %rsp, %rbp", "mov %rcx, %rsp", "call *%rdx", "mov %rbp, %rsp"]
    listing = "\\0A".join([*lines, "pop %rbp", "ret"])
    llvm = compiler()
    llvm.llvm.initialize_native_asmparser()
    data = llvm.compiled(
        f'target triple = "{llvm.triple}"\n'
        f'module asm ".text\\0A.globl switch\\0Aswitch:\\0A{listing}"\n'
    )
    block = elf.linked(data, "switch")
    assert block is not None
    assert block.data[block.entry :].startswith(stacks.SWITCH)


MEMORY = f"""
import rvm
program = rvm.assemble('''{TEXT}''')
sum_ = program.sum.with_options(engine="native")

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

sum_(s=0, n=10)
before = resident()
for _ in range(3):
    sum_(s=0, n=1_000_000)
assert resident() - before < 40 << 20, resident() - before
print("done")
"""


@wide
@large
@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux tells it")
def test_memory_of_a_deep_run_is_given_back() -> None:
    assert child(MEMORY) == "done\n"


RUNAWAY = """
import resource
room = 3 << 30
import rvm
program = rvm.assemble('keep faults\\nfunc f(x: i64)\\n    add x, 1\\n    call f(x)\\n')
resource.setrlimit(resource.RLIMIT_AS, (room, room))
try:
    program.f(x=0, engine="native", max_memory=100 << 20)
except rvm.RvmError as error:
    print(error.code)
"""


@wide
@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory as Linux keeps them")
def test_recursion_without_end_meets_the_limit_on_memory() -> None:
    assert child(RUNAWAY) == "R011\n"


def test_recursion_without_registers_ends_at_the_limit() -> None:
    f = rvm.assemble("keep faults\nfunc f()\n    call f()\n").f
    for engine in executing():
        with pytest.raises(LimitError) as stopped:
            f.with_options(engine=engine, max_memory=100_000)()
        assert stopped.value.code == "R011", engine


ENDLESS = """
func wrong(x: i64)
    if x != 0, x != 0
        sub x, 1
        call wrong(x)
        add x, 1
    end
"""


def test_a_recursion_that_meets_the_limit_is_spoken_of() -> None:
    told = set()
    for engine in executing():
        f = rvm.assemble(ENDLESS).wrong.with_options(engine=engine, max_memory=1_000_000)
        with pytest.raises(LimitError) as stopped:
            f(x=-1)
        said = str(stopped.value)
        assert "the recursion of `wrong` is 1,954 calls deep" in said
        assert "see that the recursion ends" in said and "from 1,949 more" in said
        told.add(said)
    assert len(told) == 1


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> int:
    """Calls may be nested less deeply."""
    for module in (state, reference, python, lanes):
        monkeypatch.setattr(module, "NESTED", 2_000)
    return 2_000


def test_endless_recursion_is_reported_without_a_limit_on_memory(shallow: int) -> None:
    """At the same depth on every engine, also begun by another; with a limit, that one counts."""
    told = set()
    wrong = rvm.assemble(ENDLESS).wrong
    for engine in executing():
        f = wrong.with_options(engine=engine)
        with pytest.raises(LimitError) as stopped:
            f(x=-1)
        assert stopped.value.values == {"depth": shallow}
        told.add(str(stopped.value))
        m = f.machine(x=-1, on_error="stop")
        m.seek(777)
        with pytest.raises(LimitError) as stopped:
            m.run()
        told.add(str(stopped.value))
        m.run_back()
        assert m["x"] == -1 and m.time == 0
        assert f(x=shallow - 1).x == shallow - 1
        with pytest.raises(LimitError):
            f(x=shallow)
        assert f(x=3 * shallow, max_memory=100 << 20).x == 3 * shallow
        xs = np.array([3, shallow, 5])
        with pytest.raises(rvm.RvmError) as apart:
            f.map(x=xs)
        assert apart.value.code == "R011" and "lane 1" in str(apart.value)
    assert len(told) == 1 and "see that the recursion ends" in told.pop()


def test_large_arrays_are_not_taken_for_calls(shallow: int) -> None:
    text = """
    func f(y: f64, n: i64)
        if n > 0, n > 0
            alloc a: f64[100_000] = 0.5
            add y, a[n]
            sub n, 1
            call f(y, n)
            add n, 1
            free a = 0.5
        end
    """
    f = rvm.assemble(textwrap.dedent(text)).f
    for engine in executing():
        assert f(y=0.0, n=20, engine=engine).y == 10
