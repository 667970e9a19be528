"""A kind of compiled code: its entries, and the assumptions that it may make."""

from __future__ import annotations

from typing import NamedTuple

ROOT = "run"
"""The symbol of the function that Python enters."""
INNER, ANYWHERE = -1, -2
"""Entries that are not gates: that of an inner function, and that of a root for all gates."""


class Kind(NamedTuple):
    """The kind of code to make: `entry` is a root's gate, INNER or ANYWHERE.

    A root for one gate is made of proper loops, which optimise well; one for all gates is made
    once, and serves until a run has gone on for long.

    `scattered` are the array parameters that need not be contiguous.  `strict` is what a run does
    with the strict log, see `Code.logging`.  With `counts` it counts what it executes, with
    `watched` it also writes down each call.  With `anew` a run that stops on its way is to
    begin anew: nothing is kept of it.  Parameters that are `unread` are only added to, and nobody
    looks at them: what would be added is computed for the trouble that it may have.  With `blank`
    nothing is yet in the array parameters that the code fills (see `fills`).
    """

    entry: int
    scattered: frozenset[int]
    checks: bool = True
    strict: int = 0
    counts: bool = False
    watched: bool = False
    anew: bool = False
    unread: frozenset[int] = frozenset()
    blank: bool = False

    @property
    def root(self) -> bool:
        return self.entry != INNER
