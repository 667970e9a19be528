"""The ways from one straight piece of code to the next, which code that counts counts."""

from __future__ import annotations

from dataclasses import dataclass

FALLS, JUMPS, RETURNS = "falls", "jumps", "returns"
"""How a piece ends: by falling into what follows it, by a jump, or by the return of a call."""


@dataclass(frozen=True, slots=True)
class Edge:
    """The way from a leader to another through one straight piece.

    `last` is the jump or the call that ends the piece, or the target if nothing does.
    """

    start: int
    last: int
    how: str
    target: int
