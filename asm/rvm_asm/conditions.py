"""Conditions of an `if` that its own block can make false, although they must hold after it too.

Blocks are analysed as lowered code.  Only changes whose effect follows from the text are reported:
those of one side of a comparison, or of a bool, by instructions in the block itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvm.expr import MIRRORED, OPPOSITES, Apply, Const, Expr, Place, places
from rvm.isa import FUNCTIONS
from rvm.program import Instr
from rvm.types import BOOL, Scalar
from rvm.verify.alias import overlap

_SIGNS = {"add": 1, "inc": 1, "sub": -1, "dec": -1}
_ORDERS = {"<": -1, "<=": -1, ">": 1, ">=": 1}
"""Comparisons, and the direction of change of the left side that keeps them true."""
_EXCHANGES = ("swap", "exch")


class _Change(NamedTuple):
    """An instruction of a block, and the place that it changes there."""

    pc: int
    instr: Instr
    place: Place


def undone_by(code: Sequence[Instr], start: int, stop: int, cond: Expr, holds: bool) -> int | None:
    """The instruction in a block that can make a condition that holds, or does not, change.

    None if no such instruction is known.
    """
    for atom, wanted in _parts(cond, holds):
        changes = _changes(code, start, stop, set(places(atom)))
        if changes and _spoils(atom, wanted, changes):
            return changes[-1].pc
    return None


def _parts(cond: Expr, holds: bool) -> Iterator[tuple[Expr, bool]]:
    """The parts of a condition, and whether each must hold or not for the whole to."""
    if isinstance(cond, Apply):
        if cond.fn == "not":
            yield from _parts(cond.args[0], not holds)
            return
        if FUNCTIONS[cond.fn].lazy and len(cond.args) == 2:
            if (cond.fn == "and") == holds:
                for arg in cond.args:
                    yield from _parts(arg, holds)
            return
    yield cond, holds


def _changes(code: Sequence[Instr], start: int, stop: int, read: set[Place]) -> list[_Change]:
    """All instructions that change operands of a condition; none if one has an unknown effect."""
    found: list[_Change] = []
    leave = start
    for pc in range(start, stop):
        instr = code[pc]
        if instr.op in ("br", "cf"):
            leave = max(leave, instr.aux + 1)
            continue
        for arg in instr.args:
            if not isinstance(arg, Place) or all(overlap(arg, p) == "never" for p in read):
                continue
            is_read = instr.op in (*_SIGNS, "xor") and arg is not instr.args[0]
            if is_read:
                continue
            if arg not in read or pc < leave or _is_moved(arg, code[start:stop]):
                return []
            found.append(_Change(pc, instr, arg))
    return found


def _is_moved(place: Place, code: Sequence[Instr]) -> bool:
    """Whether code may change an index of the place, which then denotes another place."""
    inside = {p.reg for p in places(place) if p is not place}
    return any(isinstance(a, Place) and a.reg in inside for instr in code for a in instr.args)


def _spoils(atom: Expr, wanted: bool, changes: list[_Change]) -> bool:
    """Whether the changes can turn a part of a condition that holds, or does not."""
    changed = {c.place for c in changes}
    first = changes[0].instr
    if isinstance(atom, Place):
        return len(changes) == 1 and atom in changed and _flips(first)
    if not isinstance(atom, Apply) or atom.fn not in OPPOSITES:
        return False
    fn = atom.fn if wanted else OPPOSITES[atom.fn]
    a, b = atom.args
    if changed == {a, b}:
        return fn in _ORDERS and len(changes) == 2 and first.op in _EXCHANGES
    if b in changed:
        a, b, fn = b, a, MIRRORED[fn]
    if changed != {a} or any(p == a for p in places(b)):
        return False
    if len(changes) > 1:
        steps = [_step(c.instr) for c in changes]
        total = sum(s for s in steps if s is not None)
        return None not in steps and _moves(fn, total, b)
    if first.op == "neg":
        return fn in _ORDERS or (bool(b.value) if isinstance(b, Const) else fn == "==")
    if first.op in _SIGNS:
        step = _step(first)
        if step is not None:
            return _moves(fn, step, b)
        if fn == "==":
            return True
        return first.args[1] == b and fn in _ORDERS and _SIGNS[first.op] != _ORDERS[fn]
    return first.op == "xor" and fn == "=="


def _flips(instr: Instr) -> bool:
    """Whether an instruction can turn a bool."""
    return instr.op == "not" or (instr.op == "xor" and instr.args[1] != Const(False, BOOL))


def _moves(fn: str, step: float, other: Expr) -> bool:
    """Whether a step of the left side of a comparison can make it false."""
    if fn == "!=":
        return bool(step) and isinstance(other, Const)
    return step * _ORDERS[fn] < 0 if fn in _ORDERS else bool(step)


def _step(instr: Instr) -> float | None:
    """The number that an instruction adds, if it is a literal."""
    sign = _SIGNS.get(instr.op)
    if sign is None:
        return None
    value = instr.args[1] if len(instr.args) > 1 else Const(1)
    real = isinstance(value, Const) and not (
        isinstance(value.type, Scalar) and value.type.is_complex
    )
    return sign * value.value if real and isinstance(value, Const) else None
