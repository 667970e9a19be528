"""Functions that keep copies of values that are restored and then used, so that they are exact.

Undoing the changes of a float restores it only up to rounding, and not even approximately if the
code in between contracts: 60 halvings undone leave nothing of it.  So if such a value is used
afterwards, a copy is kept meanwhile, and takes its place:

    alloc x.kept = x        before x is changed
    swap  x, x.kept
    …
    swap  x, x.kept         when it is back
    free  x.kept = x

These are ordinary instructions, the same in both directions: gradients pass through the copy, and
the free says by how much the value was off.  Of an array only the parts that are changed are
copied, if these are known.  An element that may not be reached, so that its index may be outside
the array, is copied if it is inside.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

from rvm.expr import Const, Expr, Index, Place
from rvm.isa import apply
from rvm.isa import place as typed_place
from rvm.numbers import system
from rvm.program import Function, Instr, Register
from rvm.transform.duals import unique
from rvm.transform.parts import Parts
from rvm.types import I64, Stack, elem_of, rank_of
from rvm.verify.matching import Restoration

KEPT = ".kept"
"""The suffix of the name of a register's copy."""


def whole(reg: int, start: int, end: int) -> Parts | None:
    """No part of it alone."""
    return None


def with_copies(
    f: Function,
    found: Iterable[Restoration],
    parts: Callable[[int, int, int], Parts | None] = whole,
) -> Function:
    """A function with copies of values that it restores, between these positions.

    `parts` gives the parts of an array that are changed between two positions; None: all of it.
    """
    registers = list(f.registers)
    names = {r.name for r in registers}
    free: defaultdict[tuple[int, Register], list[tuple[int, int]]] = defaultdict(list)
    """For each register and kind of copy, the copies so far, with the positions after which they
    are free."""
    before: defaultdict[int, list[Instr]] = defaultdict(list)
    behind: defaultdict[int, list[Instr]] = defaultdict(list)
    for reg, start, end in sorted(found, key=lambda r: (r.start, -r.end)):
        register = f.registers[reg]
        assert not isinstance(register.type, Stack)
        x = typed_place(reg, register.type)
        for part, always in (parts(reg, start, end) or {x: True}).items():
            assert part.type is not None
            dims = tuple(apply("dim", part, Const(k, I64)) for k in range(rank_of(part.type)))
            like = Register(register.name + KEPT, part.type, dims)
            usable = [entry for entry in free[reg, like] if entry[0] <= start]
            if usable:
                free[reg, like].remove(usable[0])
                slot = usable[0][1]
            else:
                name = unique(like.name, names)
                names.add(name)
                slot = len(registers)
                registers.append(replace(like, name=name))
            free[reg, like].append((end, slot))
            kept = typed_place(slot, part.type)
            inside = None if always else _is_inside(x, part)
            swap = Instr("swap", (part, kept))
            value: Expr = part
            if inside is not None:
                t = elem_of(part.type)
                swap = Instr("cswap", (inside, part, kept))
                value = apply("choose", inside, part, Const(system(t).zero, t))
            before[start] += [Instr("alloc", (kept, value)), swap]
            behind[end] = [swap, Instr("free", (kept, value)), *behind[end]]
    return _inserted(replace(f, registers=tuple(registers)), before, behind)


def _is_inside(x: Place, element: Place) -> Expr:
    """Whether the indices of an element are inside of an array."""
    index = element.path[0]
    assert isinstance(index, Index)
    found = []
    for axis, item in enumerate(index.items):
        assert isinstance(item, Expr)
        at = item if item.type == I64 else apply("i64", item)
        found += [apply("<=", Const(0, I64), at), apply("<", at, apply("dim", x, Const(axis, I64)))]
    return reduce(lambda a, b: apply("and", a, b), found)


def _inserted(
    f: Function, before: dict[int, list[Instr]], behind: dict[int, list[Instr]]
) -> Function:
    """A function with instructions put in at positions: those behind a piece, then those before."""
    code: list[Instr] = []
    spans = []
    moved = []
    for pc in range(len(f.code) + 1):
        for more, near in ((behind.get(pc, ()), pc - 1), (before.get(pc, ()), pc)):
            code += more
            spans += [f.span(near)] * len(more)
        moved.append(len(code))
        if pc < len(f.code):
            code.append(f.code[pc])
            spans.append(f.span(pc))
    for at in moved[:-1]:
        if code[at].op in ("br", "cf"):
            code[at] = replace(code[at], aux=moved[code[at].aux])
    return replace(f, code=tuple(code), spans=tuple(spans) if f.spans else (), origins=())
