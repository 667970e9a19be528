"""The protocol of engines, which advance a state in its direction."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from rvm.state import State


class Engine(Protocol):
    """Executes ticks of a state.

    `advance` executes at most `ticks` ticks in the state's direction and may stop short of them
    (at a block's end); it returns how many it did, 0 only at the end of the program or when a
    single tick is more than it can do.  On an error the state is left at the failing
    instruction, as before it.  `exact` engines never stop short.

    If the state is armed, code has traps (`rvm.probes`).  Engines whose row says that they trap
    stop before a position where one is due; others are not run among traps.
    """

    name: str
    exact: bool

    def advance(self, state: State, ticks: int) -> int:
        """Execute up to `ticks` ticks; the number executed."""


@runtime_checkable
class Foresighted(Protocol):
    """An engine that can estimate its work in a tenth of a second or so."""

    def first_chunk(self, state: State) -> int:
        """The number of ticks to run first."""
