"""The timeline as text: events over a bar over a sparkline, one cell for a share of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rvm_tools.debug.tui.past import Sample

BLOCKS = "▁▂▃▄▅▆▇█"
LEFT = 8
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
        """The time that a column stands for."""
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
        """What is behind the position, the position, and what is known to be ahead."""
        at = self.cell(self.time)
        rest = "─" * (self.cells - at - 1)
        if not self.known and rest:
            rest = rest[:-1] + "?"
        return "━" * at, "█", rest

    def spark(self, samples: Mapping[int, Sample]) -> tuple[str, str, str]:
        """Label, blocks and figure: bits erased; as long as there are none, bytes live.

        The figure is that of the present time, if that is among the samples.
        """
        bits = any(s.bits for s in samples.values())
        known = {t: (s.bits if bits else s.bytes) for t, s in samples.items() if t <= self.extent}
        top = max(known.values(), default=0)
        row = [" "] * self.cells
        for time in sorted(known):
            row[self.cell(time)] = BLOCKS[known[time] * (len(BLOCKS) - 1) // top if top else 0]
        unit = "bits" if bits else "B"
        now = known.get(self.time)
        figure = "" if now is None else short(now, unit)
        return "erased" if bits else "memory", "".join(row), figure


def short(number: int, unit: str = "") -> str:
    """A number for the columns on the right: rounded, with an SI prefix, if it is long."""
    if number < 10**6:
        return f"{number:,} {unit}".rstrip()
    power = min(3 * ((len(str(number)) - 1) // 3), 18)
    return f"{number / 10**power:.3g} {PREFIXES[power]}{unit}"
