"""Terms that stages cannot process, with their places in the text."""

from __future__ import annotations

from rvm_pure.terms import Each, Fold, If, Index, Loop, Op, Prim, Term, Update
from rvm_pure.types import Arr, Product


class StageFault(Exception):
    """A term that a stage has no rule for."""

    def __init__(self, term: Term, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.term = term
        self.message = message
        self.hint = hint


def not_straight(e: Term) -> StageFault:
    """A term that cannot be a line of a straight-line program."""
    return StageFault(
        e,
        f"{what(e)} is not a line of a straight-line program",
        "the stages anf, dup, forward and reverse are of numbers; take `gradient`",
    )


def what(e: Term) -> str:
    """A term in words."""
    match e:
        case Each(_, arrays):
            return "`map`" if len(arrays) == 1 else f"`map{len(arrays)}`"
        case Fold(kind):
            return f"`{kind}`"
        case Prim(name):
            return f"`{name}`"
        case Op(fn):
            return f"`{fn}` of arrays"
        case If():
            return "`if`"
        case Loop():
            return "`loop`"
        case Index():
            return "an element of an array"
        case Update():
            return "`with`"
    if isinstance(e.type, Product):
        return "a tuple"
    return "an array" if isinstance(e.type, Arr) else "this"
