"""The pass that arms code: it leaves before an instruction where a guard holds, or may hold."""

from __future__ import annotations

from rvm.expr import places
from rvm.image.traps import Changed, Guard
from rvm.ir.builder import TRUE, Builder, rewrite
from rvm.ir.loop_facts import live_at
from rvm.ir.node import Block, Node
from rvm.ir.typed import Unprintable
from rvm.ir.values import scalar


def arm(b: Builder, blocks: list[Block]) -> None:
    """Ask the guards of a code's traps where instructions begin."""

    def begin(node: Node) -> None:
        pc, way = node.aux
        b.items.append(node)
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


def _guard(b: Builder, pc: int, guard: Guard) -> Node:
    if guard is None:
        return TRUE
    read_by = [guard.place] if isinstance(guard, Changed) else list(places(guard))
    if not {r.reg for r in read_by if r is not None} <= live_at(b.code, pc):
        return TRUE
    return b.changed(guard) if isinstance(guard, Changed) else scalar(b, guard)
