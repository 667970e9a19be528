"""The results of runs: a last state, a gradient, a walk back; each with its plan and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rvm.pebble.bridge.runs.run import Run
from rvm.pebble.plans import Plan
from rvm.pebble.tally import Tally


@dataclass(frozen=True, slots=True)
class Reached:
    """The last state of a run."""

    state: Any
    n: int
    """The number of steps."""
    plan: Plan | None
    """The schedule that was played; None for a run of unknown length."""
    played: Tally
    """The counts of what was done."""

    def __repr__(self) -> str:
        return f"<the state after {_told(self.n, self.plan, self.played)}>"


@dataclass(frozen=True, slots=True)
class Gradient:
    """A loss with its gradient."""

    value: float | None
    """The loss; None if the adjoint of the last state was given."""
    state: Any
    """The adjoint of the input."""
    constants: Mapping[str, Any]
    """The adjoints of the constants, by name."""
    n: int
    """The number of steps."""
    plan: Plan | None
    """The schedule that was played; None for a run of unknown length."""
    played: Tally
    """The counts of what was done."""

    def __repr__(self) -> str:
        return f"<a gradient over {_told(self.n, self.plan, self.played)}>"


class Walk(Iterator[tuple[int, Any]]):
    """The states of a run from the last to the input: pairs of i and s_i, for one `for` loop.

    It ends itself with the loop; one that is given up is ended by `close`, or by the end of `with`.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._steps = self._going()

    def _going(self) -> Iterator[tuple[int, Any]]:
        run = self._run
        with run:
            for k in run.states():
                yield k, run.moves.given(run.raw)

    def __next__(self) -> tuple[int, Any]:
        return next(self._steps)

    def __repr__(self) -> str:
        return f"<a walk back over {_told(self.n, self.plan, self.played)}>"

    @property
    def n(self) -> int:
        """The number of steps; in a run of unknown length, those so far."""
        return self._run.n

    @property
    def plan(self) -> Plan | None:
        """The schedule that is played; None for a run of unknown length."""
        return self._run.plan

    @property
    def played(self) -> Tally:
        """The counts so far."""
        return self._run.board.tally()

    def close(self) -> None:
        """End the walk, and remove its files."""
        self._steps.close()  # type: ignore[attr-defined]
        self._run.files.close()

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _told(n: int, plan: Plan | None, played: Tally) -> str:
    """A run in a line: its length, plan and counts."""
    by = "online" if plan is None else plan.strategy
    parts = [f"{n:,} step{'s' if n != 1 else ''} by {by}: {played.moves:,.0f} moves"]
    parts += [f"peak {played.peak:,.0f}", f"{played.erased:,.0f} erased"]
    if played.writes or played.reads:
        parts.append(f"{played.writes:,} written, {played.reads:,} read")
    return ", ".join(parts)
