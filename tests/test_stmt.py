"""What statements read and write, held against what executing them looks at and changes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from attack.programs import smooth

import rvm
from rvm.engines.data import copied, run_data
from rvm.expr import Const, Place
from rvm.faults import RvmError
from rvm.state import Options
from rvm.stmt import Alloc, Call, Data, Exchange, Push, Stmt, When, reads, values, writes
from rvm.types import BOOL, I64

X, Y = Place(0, (), I64), Place(1, (), I64)


def executed(seed: int, most: int = 400) -> Any:
    """Data statements of a random program with the registers that each meets in a run."""
    f = rvm.assemble(smooth.program(seed)).main
    machine = rvm.Machine.start(f.program, "main", smooth.inputs(seed), Options(engine="reference"))
    for _ in range(most):
        frame = machine.state.top
        if machine.finished:
            return
        if frame.pc < len(frame.code):
            for stmt in frame.code.stmts(frame.pc):
                if isinstance(stmt, Data):
                    yield stmt, [copied(v) for v in frame.regs]
        machine.step()


def changed(before: list[Any], after: list[Any]) -> set[int]:
    """The registers that hold something else."""
    return {k for k, (a, b) in enumerate(zip(before, after, strict=True)) if not _same(a, b)}


def _same(a: Any, b: Any) -> bool:
    return repr(a) == repr(b) if not isinstance(a, np.ndarray) else a.tobytes() == b.tobytes()


@pytest.mark.parametrize("seed", range(6))
def test_only_what_is_written_changes_and_only_by_what_is_read(seed: int) -> None:
    """A register that is neither read nor written may hold anything."""
    rng = random.Random(seed)
    looked_at = 0
    for stmt, regs in executed(seed):
        written = {p.reg for p in writes(stmt)}
        used = written | {p.reg for p in reads(stmt)}
        plain = [copied(v) for v in regs]
        try:
            run_data(stmt, plain)
        except RvmError:
            continue
        assert changed(regs, plain) <= written
        other = [v if k in used else _another(v, rng) for k, v in enumerate(map(copied, regs))]
        run_data(stmt, other)
        assert not changed(plain, other) & written
        looked_at += 1
    assert looked_at > 20


def _another(held: Any, rng: random.Random) -> Any:
    """A value of the same kind; lengths stay, since they may be asked of what is not read."""
    if isinstance(held, np.ndarray):
        return np.roll(held + held.dtype.type(1), 1)
    return held + 1 if isinstance(held, (int, float, complex)) and held is not True else held


def test_statements_within_a_condition_count() -> None:
    inner: tuple[Data, ...] = (Exchange(X, Y),)
    stmt = When(Place(2, (), BOOL), inner)
    assert list(writes(stmt)) == [X, Y]
    assert {p.reg for p in reads(stmt)} == {0, 1, 2}
    assert list(values(stmt)) == [Place(2, (), BOOL)]


def test_a_call_changes_what_its_callee_may_change() -> None:
    call: Stmt = Call("f", (X, Const(1, I64), Y), False)
    assert list(writes(call)) == [X, Y]
    assert list(writes(call, {"f": {2}})) == [Y]
    assert list(values(call)) == [Const(1, I64)]
    assert list(reads(call)) == [X, Y]


def test_registers_that_come_and_values_that_move() -> None:
    assert list(writes(Alloc(X, None))) == [X] and not list(values(Alloc(X, None)))
    push = Push(X, Place(3, (), None))
    assert {p.reg for p in writes(push)} == {0, 3} and list(reads(push)) == [X]
