"""The places that an instruction may change and read, from its statements, without running it.

Places are those of the instruction's own frame.  Arrays passed to a call are changed and read by
the instructions of the callee, not by the call; scalars come back when it returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from rvm.expr import Place, index_reads
from rvm.expr import reads as read_by
from rvm.image import Code
from rvm.stmt import Branch, Call, reads, writes
from rvm.types import Scalar


def changed_places(code: Code, pc: int) -> Iterator[Place]:
    """The places that the instruction at `pc` may change (a call: on return)."""
    for stmt in code.stmts(pc):
        for place in writes(stmt, code.image.inout):
            if not isinstance(stmt, Call) or isinstance(place.type, Scalar):
                yield place


def read_places(code: Code, pc: int) -> Iterator[Place]:
    """The places whose values the instruction at `pc` depends on, indices included."""
    for stmt in code.stmts(pc):
        match stmt:
            case Call(_, args):
                for arg in args:
                    whole = isinstance(arg, Place) and not (arg.path and type(arg.type) is Scalar)
                    # Elements are copied; whole registers and arrays the callee reads, if it does.
                    yield from index_reads(cast(Place, arg)) if whole else read_by(arg)
            case _:
                registers = code.function.registers
                yield from (p for p in reads(stmt) if not registers[p.reg].is_own)
        if isinstance(stmt, Branch):
            # Taken, it is checked by its come-from.
            yield from reads(code.stmts(stmt.partner)[0])
