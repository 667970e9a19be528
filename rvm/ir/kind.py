"""A kind of compiled code: its entries, and the assumptions that it may make."""

from __future__ import annotations

from typing import NamedTuple

ROOT = "run"
"""The symbol of the function that Python enters."""
INNER, ANYWHERE = -1, -2
"""Entries that are not gates: that of an inner function, and that of a root for all gates."""


class Kind(NamedTuple):
    """The kind of code to make: `entry` is a root's gate, INNER or ANYWHERE.

    A root for one gate consists of proper loops, which optimise well; one for all gates is compiled
    once, and used until a run has lasted long.

    `scattered` are the array parameters that need not be contiguous.  `strict` is what a run does
    with the strict log, see `Code.logging`.  With `counts` it counts what it executes, with
    `watched` it also records each call.  With `anew` a run that stops early starts again from the
    beginning, so its state is not kept.  Parameters that are `unread` are only added to and never
    read: what would be added is computed only for the errors that it may raise.  With `blank` the
    array parameters that the code fills hold zeros (see `fills`).  The parameters in
    `finite` are finite numbers at the end; where one is not, the run stops there.
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
    finite: frozenset[int] = frozenset()

    @property
    def root(self) -> bool:
        return self.entry != INNER
