"""The timeline as text: events over a bar over sparklines, one cell for a share of the run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rvm_tools.debug.tui.past import Sample
from rvm_tools.trace.energy import Model
from rvm_tools.trace.table import joules

_BLOCKS = "▁▂▃▄▅▆▇█"
LEFT = 10
"""Columns of the labels on the left."""
RIGHT = 12
"""Columns of the figures on the right."""
PREFIXES = {6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
MARK, HIT, CALL = "◆", "●", "╵"


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run from 0 to `extent` on `cells` columns; `known`: that is its true end."""

    cells: int
    extent: int
    known: bool
    time: int

    def cell(self, time: int) -> int:
        """The column of a time."""
        if self.extent <= 0:
            return 0
        return min(self.cells - 1, max(0, round(time * (self.cells - 1) / self.extent)))

    def time_at(self, cell: int) -> int:
        """The time of a column."""
        if self.cells <= 1:
            return 0
        return round(min(max(cell, 0), self.cells - 1) * self.extent / (self.cells - 1))

    def events(self, marks: Iterable[int], hits: Iterable[int], calls: Iterable[int]) -> str:
        """Signs over the bar; a mark covers a hit, and that a call."""
        row = [" "] * self.cells
        for times, sign in ((calls, CALL), (hits, HIT), (marks, MARK)):
            for time in times:
                if time <= self.extent:
                    row[self.cell(time)] = sign
        return "".join(row)

    def bar(self) -> tuple[str, str, str]:
        """The past, the position, and the known future."""
        at = self.cell(self.time)
        rest = "─" * (self.cells - at - 1)
        if not self.known and rest:
            rest = rest[:-1] + "?"
        return "━" * at, "█", rest

    def memory(self, samples: Mapping[int, Sample]) -> tuple[str, str]:
        """Blocks for the bytes live at the times that are known, and those of the present."""
        known = {t: s.bytes for t, s in samples.items() if t <= self.extent}
        top = max(known.values(), default=0)
        row = [" "] * self.cells
        for time in sorted(known):
            row[self.cell(time)] = _block(known[time], top)
        now = known.get(self.time)
        return "".join(row), "" if now is None else short(now, "B")

    def energy(self, samples: Mapping[int, Sample], model: Model) -> tuple[str, str]:
        """Blocks for the joules per step, by a model; and the joules from the start to now.

        Between two known times, a block is the average.
        """
        by_time = ((t, samples[t].joules(model)) for t in sorted(samples) if t <= self.extent)
        known = [(t, joules) for t, joules in by_time if joules is not None]
        legs = [
            (t, until, max(0.0, (then - energy) / (until - t)))
            for (t, energy), (until, then) in pairwise(known)
        ]
        top = max((power for _, _, power in legs), default=0.0)
        row = [" "] * self.cells
        for t, until, power in legs:
            first = self.cell(t) + (1 if t else 0)
            for k in range(min(first, self.cell(until)), self.cell(until) + 1):
                row[k] = _block(power, top)
        return "".join(row), self._now(known)

    def _now(self, known: Sequence[tuple[int, float]]) -> str:
        """The joules up to the present; between two times, by the average (`≈`)."""
        k = bisect_right(known, self.time, key=lambda pair: pair[0])
        if not k:
            return ""
        time, energy = known[k - 1]
        if time == self.time:
            return joules(energy)
        if k == len(known):
            return ""
        until, then = known[k]
        exact = "" if then == energy else "≈"
        share = (self.time - time) / (until - time)
        return f"{exact}{joules(energy + (then - energy) * share)}"


def _block(value: float, top: float) -> str:
    """The block for a value; every known value has one."""
    return _BLOCKS[int(value * (len(_BLOCKS) - 1) / top)] if top else _BLOCKS[0]


def short(number: int, unit: str = "") -> str:
    """A number for the columns on the right: rounded, with an SI prefix, if it is long."""
    if number < 10**6:
        return f"{number:,} {unit}".rstrip()
    power = min(3 * ((len(str(number)) - 1) // 3), 18)
    return f"{number / 10**power:.3g} {PREFIXES[power]}{unit}"
