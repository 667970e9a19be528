"""Traps as LLVM code: leaving before an instruction where a guard holds, or can't be told.

What a watched place held last stands in memory of its own, a *cell*, which the engine fills before
each run: a flag that is set where there is no such value, and the value's parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from rvm.emit.llvm.reading import live_at
from rvm.emit.llvm.values import Location
from rvm.emit.llvm.writer import COLD, operands
from rvm.emit.values import Unprintable
from rvm.expr import places
from rvm.image.traps import Changed, Guard
from rvm.types import Scalar

if TYPE_CHECKING:
    from rvm.emit.llvm.function import FunctionPrinter

CELL, ELEMENT = "rvm_cell", "rvm_element"
"""What the symbols of cells and of watched elements begin with."""


def print_traps(p: FunctionPrinter, pc: int, way: Callable[[], str]) -> None:
    """Leave at `pc` if a trap there is due, or may be."""
    p.leaving(way)
    for trap in p.code.traps[pc]:
        lines = len(p.lines)
        try:
            test = _guard(p, pc, trap.guard)
        except Unprintable:
            del p.lines[lines:]
            test = "true"
        going = p.fresh("quiet")
        p.fork(test, way(), going, COLD)
        p.label(going)


def _guard(p: FunctionPrinter, pc: int, guard: Guard) -> str:
    if guard is None:
        return "true"
    read = [guard.place] if isinstance(guard, Changed) else list(places(guard))
    if not {r.reg for r in read if r is not None} <= live_at(p.code, pc):
        return "true"
    return _changed(p, guard) if isinstance(guard, Changed) else cast(str, p.value(guard))


def _changed(p: FunctionPrinter, guard: Changed) -> str:
    """Whether the value is not the cell's; parts are compared as they are stored."""
    if guard.place is not None:
        location = p.located(guard.place)
        t = guard.place.type
        number = p.callees.cell(guard)
    elif guard.element is not None:
        t = guard.element[1]
        number = p.callees.cell(guard)
        base = f"@{ELEMENT}{number}"
        parts = (base, p.op(f"getelementptr i64, ptr {base}, i64 1")) if t.is_complex else (base,)
        location = Location(parts, t, variable=False)
    else:
        raise Unprintable
    assert isinstance(t, Scalar)
    cell = f"@{CELL}{number}"
    test = p.compare("ne", "i64", p.load("i64", cell), "0")
    for k, (kind, value) in enumerate(operands(t, p.read(location)), 1):
        slot = p.op(f"getelementptr i64, ptr {cell}, i64 {k}")
        if kind == "i1":
            held = p.compare("ne", "i8", p.load("i8", slot), "0")
            other = p.compare("ne", "i1", value, held)
        elif kind in ("double", "float"):
            other = p.op(f"fcmp une {kind} {value}, {p.load(kind, slot)}")
        else:
            other = p.compare("ne", kind, value, p.load(kind, slot))
        test = p.op(f"or i1 {test}, {other}")
    return test


def declared(cells: int, elements: set[int]) -> str:
    """The declarations of a module's cells and elements."""
    lines = [f"@{CELL}{k} = external global [3 x i64]" for k in range(cells)]
    lines += [f"@{ELEMENT}{k} = external global [2 x i64]" for k in sorted(elements)]
    return "\n".join(lines)
