"""The verifier's findings about an instruction."""

from __future__ import annotations

from dataclasses import dataclass

from rvm.expr import Expr


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason to refuse a program.

    `pc` is -1 where the function's tables are meant and no instruction.  The nodes of `labels`
    are the very objects of the instruction, so that an assembler can map them to its source.
    """

    code: str
    message: str
    function: str
    pc: int = -1
    labels: tuple[tuple[Expr, str], ...] = ()
    notes: tuple[str, ...] = ()
    hint: str = ""
