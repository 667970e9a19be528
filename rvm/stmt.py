"""Statement kinds: the few things that engines know.

Every opcode of the ISA table is a short sequence of these.  Engines, the
inverse, the verifier's alias rules and the adjoint are written per kind, never
per opcode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rvm.expr import Expr, Place, index_reads
from rvm.expr import reads as read_by

UNDO = {"+": "-", "-": "+", "^": "^", "*": "/", "/": "*"}
"""The update operator that undoes each update operator."""


@dataclass(frozen=True, slots=True)
class Update:
    """`dst op= value`; `dst` does not overlap anything that `value` reads."""

    dst: Place
    op: str
    value: Expr
    memo: Any = field(default=None, init=False, repr=False, compare=False)
    """What the reference engine found this statement to call."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Two places of one type exchange contents; with the same place twice it is the identity."""

    a: Place
    b: Place


@dataclass(frozen=True, slots=True)
class Map:
    """All `values` are computed, then stored in `dsts`; `inverse` are the values that undo it."""

    dsts: tuple[Place, ...]
    values: tuple[Expr, ...]
    inverse: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class When:
    """`body` happens if `cond` holds; nothing in `body` changes what `cond` reads."""

    cond: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Alloc:
    """A register comes into being with a known value (an array: everywhere; a stack: None)."""

    reg: Place
    value: Expr | None


class Held(NamedTuple):
    """The registers that say how large a place has been: the largest magnitude, the updates."""

    size: Place
    updates: Place


@dataclass(frozen=True, slots=True)
class Free:
    """A register that holds a known value is checked and dropped; a stack must be empty.

    `held`: what says how large it has been; `is_known`: whatever that was, what is left of an
    inexact number is rounding, by construction; `returns`: it is, and what was computed from the
    value meanwhile is right only if that is as good as none.
    """

    reg: Place
    value: Expr | None
    held: Held | None = None
    is_known: bool = True
    returns: bool = False

    @property
    def judged(self) -> Held | None:
        """What the residue is judged by; None where it need be no more than finite."""
        return None if self.is_known else self.held


@dataclass(frozen=True, slots=True)
class Fresh:
    """A register comes into being with zeros; undoing it forgets what it then holds."""

    reg: Place


@dataclass(frozen=True, slots=True)
class Drop:
    """A register is forgotten, whatever it holds: bits are erased.  Undoing it gives zeros.

    That is right where nothing depends on what the register holds, as with the adjoint of an
    ancilla, whose end value is known.  `held`: what says how large it has been, which goes too.
    """

    reg: Place
    held: Held | None = None


@dataclass(frozen=True, slots=True)
class Push:
    """The value of `src` moves to `stack`; `src` is left zero."""

    src: Place
    stack: Place


@dataclass(frozen=True, slots=True)
class Pop:
    """The top of `stack` moves to `dst`, which must be zero.

    `is_known`: but for rounding it is, by construction; else `held` may say how large it has been.
    """

    dst: Place
    stack: Place
    held: Held | None = None
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """If `cond`, go after the partner's landing, whose condition must then hold too."""

    cond: Expr
    partner: int


@dataclass(frozen=True, slots=True)
class Land:
    """Fallen into: `cond` must not hold."""

    cond: Expr
    partner: int


@dataclass(frozen=True, slots=True)
class Call:
    """Run a function, or undo it, on places (by reference) and values (checked on return)."""

    callee: str
    args: tuple[Expr, ...]
    undo: bool


FORWARD, BACKWARD = 1, 2
"""Bits of an effect's `when`: the directions in which it happens."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Something irreversible outside the machine: print, assert, callback.  Changes no place."""

    kind: str
    text: str
    args: tuple[Expr, ...]
    when: int


Data = Update | Exchange | Map | When
"""Statements that change values; an opcode's body is made of these."""
Stmt = Data | Alloc | Free | Fresh | Drop | Push | Pop | Branch | Land | Call | Effect


def invert(stmt: Stmt) -> Stmt:
    """The statement that undoes `stmt` (a jump's partner index is the caller's to remap)."""
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
    """Whether a statement does nothing but exchange contents."""
    return isinstance(stmt, Exchange) or (
        isinstance(stmt, When) and all(map(only_exchanges, stmt.body))
    )


def values(stmt: Stmt) -> Iterator[Expr]:
    """The expressions that a statement evaluates, those of its body included.

    Neither places that are moved or passed by reference, nor the values that undo a `Map`.
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
    """The places that a statement may change, make or drop, those of its body included.

    `inout` holds for each function the arguments that it may change; without it a call may change
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
    """Every place whose value a statement depends on, what decides on places included.

    What an update adds to is not among them, nor is an array of which only a length is asked.
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
