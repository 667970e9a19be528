"""Statement kinds: the small vocabulary of the engines.

Every opcode of the table is a short sequence of statements.  Engines, the inverse, the verifier's
alias rules and the adjoint are written for each kind, never for each opcode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rvm.expr import Expr, Place, index_reads
from rvm.expr import reads as read_by

UNDO = {"+": "-", "-": "+", "^": "^", "*": "/", "/": "*"}
"""The inverse of each update operator."""


@dataclass(frozen=True, slots=True)
class Update:
    """`dst op= value`; `dst` does not overlap anything that `value` reads."""

    dst: Place
    op: str
    value: Expr
    memo: Any = field(default=None, init=False, repr=False, compare=False)
    """The implementation that the reference engine found for this statement."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Two places of one type exchange their contents; with the same place twice nothing changes."""

    a: Place
    b: Place


@dataclass(frozen=True, slots=True)
class Map:
    """All `values` are computed, then stored in `dsts`; the values in `inverse` undo it."""

    dsts: tuple[Place, ...]
    values: tuple[Expr, ...]
    inverse: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class When:
    """`body` is executed if `cond` holds; `body` changes no place that `cond` reads."""

    cond: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Alloc:
    """A register is created with a known value (an array: in every element; a stack: None)."""

    reg: Place
    value: Expr | None


class Held(NamedTuple):
    """The registers that record a place's size: the largest magnitude, the number of updates."""

    size: Place
    updates: Place


@dataclass(frozen=True, slots=True)
class Free:
    """A register with a known value is checked and removed; a stack must be empty.

    `held`: the registers that record its size. `is_known`: whatever its size, the residue of an
    inexact number is rounding, by construction. `returns`: adjoints computed from it meanwhile
    are right only if the residue is negligible beside the value.
    """

    reg: Place
    value: Expr | None
    held: Held | None = None
    is_known: bool = True
    returns: bool = False

    @property
    def judged(self) -> Held | None:
        """The registers by which the residue is judged; None if it only needs to be finite."""
        return None if self.is_known else self.held


@dataclass(frozen=True, slots=True)
class Fresh:
    """A register is created with zeros; undoing this discards its contents."""

    reg: Place


@dataclass(frozen=True, slots=True)
class Drop:
    """A register is removed, whatever it holds: bits are erased.  Undoing this gives zeros.

    This is correct where nothing depends on the contents, as with the adjoint of an ancilla, whose
    final value is known.  `held`: the registers that record its size, which are removed too.
    """

    reg: Place
    held: Held | None = None


@dataclass(frozen=True, slots=True)
class Push:
    """The value of `src` moves to `stack`, and `src` becomes zero."""

    src: Place
    stack: Place


@dataclass(frozen=True, slots=True)
class Pop:
    """The top of `stack` moves to `dst`, which must be zero.

    `is_known`: `dst` is zero except for rounding, by construction; otherwise `held` may record its
    size.
    """

    dst: Place
    stack: Place
    held: Held | None = None
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """If `cond` holds, continue after the partner's landing, whose condition must then hold too."""

    cond: Expr
    partner: int


@dataclass(frozen=True, slots=True)
class Land:
    """The landing of a jump; where control falls into it, `cond` must not hold."""

    cond: Expr
    partner: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function is run, or undone, on places (by reference) and values (checked on return)."""

    callee: str
    args: tuple[Expr, ...]
    undo: bool


FORWARD, BACKWARD = 1, 2
"""Bits of an effect's `when`: the directions in which it is executed."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An irreversible action outside the machine: print, assert, callback.  It changes no place."""

    kind: str
    text: str
    args: tuple[Expr, ...]
    when: int


Data = Update | Exchange | Map | When
"""Statements that change values; the bodies of opcodes consist of these."""
Stmt = Data | Alloc | Free | Fresh | Drop | Push | Pop | Branch | Land | Call | Effect


def invert(stmt: Stmt) -> Stmt:
    """The statement that undoes `stmt` (the caller must adjust the index of a jump's partner)."""
    match stmt:
        case Update(dst, op, value):
            return Update(dst, UNDO[op], value)
        case Exchange():
            return stmt
        case Map(dsts, values, inverse):
            return Map(dsts, inverse, values)
        case When(cond, body):
            return When(cond, tuple(invert(s) for s in reversed(body)))
        case Alloc(reg, value):
            return Free(reg, value)
        case Free(reg, value):
            return Alloc(reg, value)
        case Fresh(reg):
            return Drop(reg)
        case Drop(reg):
            return Fresh(reg)
        case Push(src, stack):
            return Pop(src, stack)
        case Pop(dst, stack):
            return Push(dst, stack)
        case Branch(cond, partner):
            return Land(cond, partner)
        case Land(cond, partner):
            return Branch(cond, partner)
        case Call(callee, args, undo):
            return Call(callee, args, not undo)
        case Effect(kind, text, args, when):
            return Effect(kind, text, args, (when >> 1) | ((when & 1) << 1))


def only_exchanges(stmt: Stmt) -> bool:
    """Whether a statement only exchanges contents."""
    return isinstance(stmt, Exchange) or (
        isinstance(stmt, When) and all(map(only_exchanges, stmt.body))
    )


def values(stmt: Stmt) -> Iterator[Expr]:
    """The expressions that a statement evaluates, including those of its body.

    Places that are moved or passed by reference, and the values that undo a `Map`, are not
    included.
    """
    match stmt:
        case Update(_, _, value):
            yield value
        case Map(_, computed):
            yield from computed
        case When(cond, body):
            yield cond
            for inner in body:
                yield from values(inner)
        case Alloc(_, known) | Free(_, known) if known is not None:
            yield known
        case Branch(cond) | Land(cond):
            yield cond
        case Call(_, args):
            yield from (a for a in args if not isinstance(a, Place))
        case Effect(_, _, args):
            yield from args


def writes(stmt: Stmt, inout: Mapping[str, Collection[int]] | None = None) -> Iterator[Place]:
    """The places that a statement may change, create or remove, including those of its body.

    `inout` holds, for each function, the arguments that it may change; without it a call may change
    every place that it passes.
    """
    match stmt:
        case Update(dst):
            yield dst
        case Exchange(a, b) | Push(a, b) | Pop(a, b):
            yield a
            yield b
        case Map(dsts):
            yield from dsts
        case When(_, body):
            for inner in body:
                yield from writes(inner, inout)
        case Alloc(reg) | Free(reg) | Fresh(reg) | Drop(reg):
            yield reg
        case Call(callee, args):
            for k, arg in enumerate(args):
                if isinstance(arg, Place) and (inout is None or k in inout[callee]):
                    yield arg


def reads(stmt: Stmt) -> Iterator[Place]:
    """Every place whose value a statement depends on, including those that determine places.

    The target of an update is not included, nor is an array of which only a length is used.
    """
    match stmt:
        case When(cond, body):
            yield from read_by(cond)
            for inner in body:
                yield from reads(inner)
            return
        case Exchange(a, b):
            yield a
            yield b
        case Push(src):
            yield src
        case Pop(_, stack):
            yield stack
        case Free():
            yield from stmt.judged or ()
        case Call(_, args):
            yield from (a for a in args if isinstance(a, Place))
    for place in writes(stmt):
        yield from index_reads(place)
    for value in values(stmt):
        yield from read_by(value)
