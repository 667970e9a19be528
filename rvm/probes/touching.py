"""What an instruction may change and what it reads: from its statements, without running it.

Places are those of the instruction's own frame.  Arrays that a call passes on are changed and
read by the instructions of the callee, not by the call; scalars come back when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rvm.expr import Place
from rvm.image import Code
from rvm.isa.define import changed_by
from rvm.stmt import (
    Alloc,
    Branch,
    Call,
    Drop,
    Effect,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
)
from rvm.types import Scalar
from rvm.verify.alias import index_reads, overlap, reads

Touched = Callable[[Code, int], Iterator[Place]]


def changed_places(code: Code, pc: int) -> Iterator[Place]:
    """The places that the instruction at `pc` may change (a call: on return)."""
    for stmt in code.stmts(pc):
        match stmt:
            case Alloc(reg, _) | Free(reg, _) | Fresh(reg) | Drop(reg):
                yield reg
            case Push(place, stack) | Pop(place, stack):
                yield place
                yield stack
            case Call(callee, args, _):
                for k in sorted(code.image.inout[callee]):
                    arg = args[k]
                    if isinstance(arg, Place) and isinstance(arg.type, Scalar):
                        yield arg
            case _:
                yield from changed_by(stmt)


def read_places(code: Code, pc: int) -> Iterator[Place]:
    """The places whose values the instruction at `pc` depends on, indices included."""
    for stmt in code.stmts(pc):
        yield from _read(code, stmt)


def _read(code: Code, stmt: Stmt) -> Iterator[Place]:
    match stmt:
        case Update(dst, _, value):
            yield from index_reads(dst)
            yield from reads(value)
        case Exchange(a, b):
            yield from (a, b)
            yield from index_reads(a)
            yield from index_reads(b)
        case Map(dsts, values, _):
            for dst in dsts:
                yield from index_reads(dst)
            for value in values:
                yield from reads(value)
        case When(cond, body):
            yield from reads(cond)
            for inner in body:
                yield from _read(code, inner)
        case Alloc(_, value) | Free(_, value):
            if value is not None:
                yield from reads(value)
        case Push(src, _):
            yield src
            yield from index_reads(src)
        case Pop(dst, stack):
            yield stack
            yield from index_reads(dst)
        case Branch(cond, partner):
            yield from reads(cond)
            yield from _condition(code, partner)
        case Land(cond, _):
            yield from reads(cond)
        case Effect(_, _, args, _):
            for arg in args:
                yield from reads(arg)
        case Call(_, args, _):
            for arg in args:
                if isinstance(arg, Place):
                    yield from index_reads(arg)
                    if arg.path and isinstance(arg.type, Scalar):
                        yield arg
                else:
                    yield from reads(arg)


def _condition(code: Code, pc: int) -> Iterator[Place]:
    """What the come-from at `pc` reads when its branch is taken."""
    landing = code.stmts(pc)[0]
    if isinstance(landing, Land):
        yield from reads(landing.cond)


def changes(code: Code, place: Place) -> list[int]:
    """The instructions that may change a place of their frame."""
    return _touching(code, place, changed_places)


def reads_of(code: Code, place: Place) -> list[int]:
    """The instructions that may read a place of their frame."""
    return _touching(code, place, read_places)


def _touching(code: Code, place: Place, touched: Touched) -> list[int]:
    return [
        pc
        for pc in range(len(code))
        if any(p.reg == place.reg and overlap(p, place) != "never" for p in touched(code, pc))
    ]
