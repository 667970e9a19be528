"""Ifs in machine code, whichever way they go, and what it knows of registers' signs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples

import rvm
from rvm.engines import LAW
from rvm.image import Code, image_of
from rvm.ir.oneway import one_way
from rvm.program import Program
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")

MERGE = """
func main(s: i64, p: i64[m], q: i64[n])
    alloc i: i64
    alloc j: i64
    while i < m or j < n, i + j > 0
        if i < m and j < n and p[i] == q[j], i > 0 and j > 0 and p[i-1] == q[j-1]
            add s, p[i]
            inc i
            inc j
        elseif j == n or i < m and p[i] < q[j], j == 0 or i > 0 and p[i-1] > q[j-1]
            inc i
        else
            inc j
        end
    end
    free j = n
    free i = m
"""


def code_of(program: Program, undo: bool = False) -> Code:
    return image_of(program).code(program.entry or "main", undo)


def ended(engine: str, program: Program, undo: bool, seek: int | None, **inputs: Any) -> Any:
    """Where a run ends: its registers, position, time and bits, and the error if there is one."""
    copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
    options = rvm.Options(engine=engine)
    m = Machine.start(program, "main", copies, options, undo=undo)
    error = ""
    try:
        if seek is not None:
            m.seek(seek)
        m.run()
    except rvm.RvmError as found:
        error = str(found)
    return repr(m.registers()), m.state.top.pc, m.time, m.erased_bits, error


def same(program: Program, undo: bool = False, seek: int | None = None, **inputs: Any) -> Any:
    """Where both engines end, which is the same place."""
    one, two = (ended(e, program, undo, seek, **inputs) for e in (LAW, "native"))
    assert two == one
    return two


# ---------------------------------------------------------------- arms

numbers = st.lists(st.integers(0, 12), max_size=8)


@examples(150)
@given(numbers, numbers, st.booleans(), st.integers(0, 60))
def test_a_merge_goes_as_the_reference_engines(
    p: list[int], q: list[int], ascending: bool, seek: int
) -> None:
    """Of ascending lists to the end; of others to the come-from that does not agree."""
    program = rvm.assemble(MERGE)
    if ascending:
        p, q = sorted(set(p)), sorted(set(q))
    arrays = {"p": np.array(p, dtype=np.int64), "q": np.array(q, dtype=np.int64)}
    _, _, time, _, error = same(program.program, s=0, **arrays)
    assert not (ascending and error)
    same(program.program, s=0, seek=min(seek, time), **arrays)
    common = sum(set(p) & set(q))
    same(program.program, undo=True, s=common, **arrays)


UNEQUAL = """
func main(n: i64, k: i64, j: i64, x: f64)
    for i = 1 to n
        if i & 3 == 1, j & 1 == 1
            add j, k + k + 1
            sub x, 0.5
        else
            add j, 2
        end
        if k < 5, j > 100
            inc k
        end
    end
"""


@examples(100)
@given(st.integers(0, 12), st.integers(-3, 7), st.integers(-40, 120), st.integers(0, 90))
def test_arms_of_different_lengths(n: int, k: int, j: int, seek: int) -> None:
    """Ticks, and both ways into a come-from that does not hold, or holds where it must not."""
    program = rvm.assemble(UNEQUAL)
    _, _, time, _, _ = same(program.program, n=n, k=k, j=j, x=1.0)
    same(program.program, seek=min(seek, time), n=n, k=k, j=j, x=1.0)
    same(program.program, undo=True, n=n, k=k, j=j, x=1.0)


def test_a_come_from_that_cannot_be_evaluated_is_the_references() -> None:
    """Its index lies outside on one of the two ways only."""
    program = rvm.assemble(
        """
        func main(c: i64, k: i64, a: i64[n])
            if c > 0, a[k] == 7
                inc k
            else
                add k, 5
            end
        """
    )
    a = np.array([1, 7, 3], dtype=np.int64)
    assert not same(program.program, c=1, k=0, a=a)[-1]
    assert "R" in same(program.program, c=0, k=0, a=a)[-1], "a[5] is outside"
    assert same(program.program, c=1, k=1, a=a)[-1]


def test_comparisons_with_nan_in_a_come_from() -> None:
    program = rvm.assemble(
        """
        func main(c: i64, x: f64, k: i64)
            if c > 0, not (x < 1)
                inc k
            else
                dec k
            end
        """
    )
    for x in (0.5, 1.5, float("nan")):
        for c in (0, 1):
            same(program.program, c=c, x=x, k=3)
            same(program.program, undo=True, c=c, x=x, k=3)


def test_unchecked_arms() -> None:
    program = rvm.assemble(MERGE)
    p, q = np.array([1, 4, 6, 9]), np.array([1, 2, 6, 7, 8])
    f = program["main"].with_options(engine="native", checks=False)
    assert f(s=0, p=p, q=q)["s"] == 7
    assert (~f)(s=7, p=p, q=q)["s"] == 0


# ---------------------------------------------------------------- registers that go one way


def test_which_registers_go_one_way() -> None:
    program = rvm.assemble(
        """
        func main(a: i64[n], t: stack[i64], z: i64)
            alloc up: i64
            alloc down: i64 = n
            alloc both: i64
            alloc far: i64
            alloc held: i64 = z
            alloc pushed: i64 = 1
            while up < 3, up > 0
                inc up
                sub down, 1
                inc both
                dec both
                add far, 2
                inc held
                inc pushed
            end
            push pushed, t
            free pushed = 0
            free held = z + 3
            free far = 6
            free both
            free down = n - 3
            free up = 3
        """
    )
    code = code_of(program.program)
    names = [r.name for r in code.function.registers]
    assert {(names[w.reg], w.up) for w in one_way(code)} == {("up", True), ("down", False)}


def test_a_run_that_is_entered_with_an_impossible_state_fails_as_the_reference_does() -> None:
    """What is known of a register is known of runs from the beginning only."""
    program = rvm.assemble(MERGE)
    p, q = np.arange(0, 60, 2), np.arange(0, 60, 3)
    ends = []
    for engine in (LAW, "native"):
        m = Machine(program, "main", s=0, p=p.copy(), q=q.copy(), engine=engine)
        m.seek(43)
        frame = m.state.top
        names = [r.name for r in frame.code.function.registers]
        frame.regs[names.index("i")] = -1
        with pytest.raises(rvm.RvmError) as caught:
            m.run()
        ends.append((str(caught.value), m.time, repr(m.registers())))
    assert ends[0] == ends[1]


def test_lengths_that_no_memory_has() -> None:
    """An axis may be very long where another has no elements."""
    program = rvm.assemble(
        """
        func main(k: i64, a: bool[m, n])
            for i = 0 to 9
                if i < n, i < n
                    inc k
                end
            end
        """
    )
    assert same(program.program, k=0, a=np.zeros((0, 2**62), dtype=bool))[2]
