"""The pass that arms code: it leaves before an instruction where a guard holds, or can't be told.

What a watched place held last stands in memory of its own, a *cell*, which the engine fills before
each run: a flag that is set where there is no such value, and the value's parts.
"""

from __future__ import annotations

from rvm.expr import places
from rvm.image.traps import Changed, Guard
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.builder import TRUE, rewrite
from rvm.ir.items import parts_of
from rvm.ir.node import FLOATS, I64, PTR, Block, Node
from rvm.ir.places import Behind, Location, kinds_of
from rvm.ir.reading import live_at
from rvm.ir.typed import Unprintable
from rvm.ir.values import located, read, scalar
from rvm.types import Scalar


def arm(b: FunctionBuilder, blocks: list[Block]) -> None:
    """Ask the guards of a code's traps where instructions begin."""

    def begin(node: Node) -> None:
        pc, way = node.aux
        for trap in b.code.traps.get(pc, ()):
            b.leaving(way)
            begun = len(b.items)
            try:
                b.trouble(_guard(b, pc, trap.guard))
            except Unprintable:
                del b.items[begun:]
                b.trouble(TRUE)

    if b.code.traps:
        rewrite(b, blocks, {"begin": begin})


def _guard(b: FunctionBuilder, pc: int, guard: Guard) -> Node:
    if guard is None:
        return TRUE
    read_by = [guard.place] if isinstance(guard, Changed) else list(places(guard))
    if not {r.reg for r in read_by if r is not None} <= live_at(b.code, pc):
        return TRUE
    return _changed(b, guard) if isinstance(guard, Changed) else scalar(b, guard)


def _changed(b: FunctionBuilder, guard: Changed) -> Node:
    """Whether the value is not the cell's; parts are compared as they are stored."""
    where: Location
    if guard.place is not None:
        where = located(b, guard.place)
        t = guard.place.type
        number = b.callees.cell(guard)
    elif guard.element is not None:
        t = guard.element[1]
        number = b.callees.cell(guard)
        where = Behind(
            tuple(b.op("element", kind=PTR, aux=(number, k)) for k in range(len(kinds_of(t)))), t
        )
    else:
        raise Unprintable
    assert isinstance(t, Scalar)
    cell = b.op("cell", kind=PTR, aux=(number, 0))
    test = b.op("ne", b.peek(I64, cell), b.i64(0))
    for k, found in enumerate(parts_of(read(b, where)), 1):
        held = b.peek(found.kind, b.op("cell", kind=PTR, aux=(number, k)))
        test = b.op("or", test, b.op("fne" if found.kind in FLOATS else "ne", found, held))
    return test
