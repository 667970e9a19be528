"""Strict mode: data statements whose undoing restores every bit, by a log where it must."""

from __future__ import annotations

from typing import Any, cast

from rvm.engines.data import copied, run_data
from rvm.engines.memory import find, store
from rvm.expr import Place
from rvm.faults import RvmError
from rvm.numbers import system
from rvm.state import State
from rvm.stmt import Stmt, invert, writes
from rvm.types import Array, Scalar, elem_of


def strictly(state: State, regs: Any, stmts: tuple[Stmt, ...]) -> None:
    """Execute data statements so that undoing them restores every bit, by the log if need be."""
    log = state.residue
    assert log is not None
    written = tuple(dict.fromkeys(p for s in stmts for p in writes(s)))
    if len(written) > 1:
        # In one order both ways, whatever comes first in the opcode and in the one that undoes it.
        written = tuple(sorted(written, key=repr))
    if all(elem_of(cast("Scalar | Array", p.type)).is_exact for p in written):
        for stmt in stmts:
            run_data(stmt, regs)
        return
    known = log.take(state.tick, state.direction)
    if known is not None:
        for p, v in zip(written, known, strict=True):
            store(p, regs, v)
        return
    old = [copied(find(p, regs).read()) for p in written]
    try:
        for stmt in stmts:
            run_data(stmt, regs)
        new = [copied(find(p, regs).read()) for p in written]
        restored = _undone_to(stmts, regs, written, old)
    except RvmError:
        for p, v in zip(written, old, strict=True):
            store(p, regs, v)
        raise
    for p, v in zip(written, new, strict=True):
        store(p, regs, v)
    if not restored:
        log.keep(state.tick, state.direction, old)


def _undone_to(
    stmts: tuple[Stmt, ...], regs: Any, written: tuple[Place, ...], old: list[Any]
) -> bool:
    """Whether the statements' inverse leads back to `old`, bit for bit."""
    try:
        for stmt in reversed(stmts):
            run_data(invert(stmt), regs)
    except RvmError:
        return False
    return all(
        system(elem_of(cast("Scalar | Array", p.type))).same(find(p, regs).read(), v)
        for p, v in zip(written, old, strict=True)
    )
