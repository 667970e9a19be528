"""Schedules and curves as text: nodes by time, and memory against time, in the width of a terminal.

A picture that fits is exact: a line for each node, a column for each tick.  Otherwise it is
condensed, and its last line says what a line and a column represent.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import ceil, log10

from rvm.pebble.drawing.film import Film, Raster, bars, rastered
from rvm.pebble.drawing.svg import round_powers, short

HELD, ADJOINT, DISK, NONE = "█", "◆", "□", "·"
SHADES = ((0.25, "░"), (0.5, "▒"), (0.999, "▓"))
"""The most that a shade stands for, as a part of what is full; beyond, `HELD`."""
GLYPHS = "●○▲△■□◆◇"
LONGEST_NAME = 24


def size_of_terminal(width: int | None, height: int | None) -> tuple[int, int]:
    """The columns and lines that a picture may take: given, or what a terminal has."""
    terminal = shutil.get_terminal_size((80, 24))
    return width or terminal.columns, height or max(terminal.lines - 4, 12)


def picture(film: Film, width: int | None = None, height: int | None = None) -> str:
    """A schedule as lines of text: nodes from the last to the first, time to the right."""
    width, height = size_of_terminal(width, height)
    band = 1 if film.nodes <= height else ceil(film.nodes / height)
    label = _labels(film, band)
    margin = max(map(len, map(label, range(ceil(film.nodes / band)))))
    columns = max(width - margin - 2, 8)
    ticks = max(1, ceil(film.length / columns))
    full = 0
    if band == ticks == 1:
        rows = _exact(film)
    else:
        raster = rastered(film, ticks, band)
        rows, full = _condensed(raster), raster.full
    lines = [f"{label(k):>{margin}} {row}" for k, row in reversed(list(enumerate(rows)))]
    # The input has a line only if an adjoint is taken there.
    if film.first == 0 and film.has_adjoints and band == 1 and ADJOINT not in rows[0]:
        lines.pop()
    return "\n".join([*lines, *_legend(film, ticks, band, full)])


def _labels(film: Film, band: int) -> Callable[[int], str]:
    def label(row: int) -> str:
        name = film.name(film.first + row * band)
        return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"

    return label


def _exact(film: Film) -> list[str]:
    rows = [[NONE] * film.length for _ in range(film.nodes)]
    found, adjoints = bars(film)
    # What is in memory covers what is on disk, and an adjoint both.
    for bar in sorted(found, key=lambda bar: not bar.disk):
        mark = DISK if bar.disk else HELD
        rows[bar.node - film.first][bar.start : bar.stop] = mark * (bar.stop - bar.start)
    for time, node in adjoints:
        rows[node - film.first][time] = ADJOINT
    return ["".join(row) for row in rows]


def _condensed(raster: Raster) -> list[str]:
    cells = zip(raster.held.tolist(), raster.disk.tolist(), raster.adjoints.tolist(), strict=True)
    return [
        "".join(
            ADJOINT if taken else _shade(held / raster.full) if held else DISK if disk else NONE
            for held, disk, taken in zip(*row, strict=True)
        )
        for row in cells
    ]


def _shade(level: float) -> str:
    return next((shade for most, shade in SHADES if level <= most), HELD)


def _legend(film: Film, ticks: int, band: int, full: int) -> list[str]:
    length = f"{film.length:,} {film.tick}{'' if film.length == 1 else 's'}"
    each = f", {ticks:,} in a column" if ticks > 1 else ", each a column"
    lines = [
        f"{length}{each}" + (f"; {film.nodes:,} nodes, {band:,} in a line" if band > 1 else "")
    ]
    marks = []
    if full:
        quarter, half = ("¼", "½") if full == 1 else (f"{full / 4:g}", f"{full / 2:g}")
        marks.append(
            f"states there, on average: ░ to {quarter}, ▒ to {half}, ▓ below {full}, █ more"
        )
    if film.has_disk:
        marks.append(f"{DISK} on disk only")
    if film.has_adjoints:
        marks.append(f"{ADJOINT} an adjoint")
    return [*lines, "; ".join(marks)] if marks else lines


# ---------------------------------------------------------------- curves


def plot(
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    across: str,
    up: str,
    width: int | None = None,
    height: int | None = None,
) -> str:
    """Curves on logarithmic axes, a glyph for each; where they meet, the first is on top."""
    width, height = size_of_terminal(width, height)
    points = [p for _, curve in series for p in curve]
    low_x, high_x = _range([x for x, _ in points])
    low_y, high_y = _range([y for _, y in points])
    lines = max(height - 4, 6)
    ticks_y = round_powers(10.0**low_y, 10.0**high_y, max(lines // 2, 3), True)
    margin = max(len(short(y)) for y in ticks_y)
    columns = max(width - margin - 3, 20)
    grid = [[" "] * columns for _ in range(lines)]

    def column(x: float) -> int:
        return round((log10(x) - low_x) / (high_x - low_x) * (columns - 1))

    def line(y: float) -> int:
        return round((high_y - log10(y)) / (high_y - low_y) * (lines - 1))

    for k, (_, curve) in reversed(list(enumerate(series))):
        for x, y in _between(curve, columns):
            grid[line(y)][column(x)] = GLYPHS[k % len(GLYPHS)]
    marked = {line(y): short(y) for y in ticks_y}
    out = [up]
    for k, row in enumerate(grid):
        edge = "┤" if k in marked else "│"
        out.append(f"{marked.get(k, ''):>{margin}} {edge}" + "".join(row).rstrip())
    below, words = ["─"] * columns, [" "] * (columns + 8)
    for x in round_powers(10.0**low_x, 10.0**high_x, max(columns // 9, 3), True):
        at, text = column(x), short(x)
        below[at] = "┬"
        start = max(0, at - len(text) // 2)
        if not "".join(words[max(start - 1, 0) : start + len(text) + 1]).strip():
            words[start : start + len(text)] = text
    out.append(" " * margin + " └" + "".join(below))
    out.append(" " * (margin + 2) + "".join(words).rstrip())
    names = "   ".join(f"{GLYPHS[k % len(GLYPHS)]} {name}" for k, (name, _) in enumerate(series))
    room = columns - len(names) - 2
    out.append(f"{'':{margin + 2}}{names}  {across + ' →':>{max(room, 0)}}")
    return "\n".join(out)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The logarithms of the least and the greatest, never the same."""
    low, high = log10(min(values)), log10(max(values))
    return (low, high) if high - low > 1e-9 else (low - 0.5, high + 0.5)


def _between(curve: Sequence[tuple[float, float]], columns: int) -> list[tuple[float, float]]:
    """The points of a curve, and points on straight lines between them in logarithms."""
    out = list(curve)
    for (x, y), (u, v) in pairwise(curve):
        for k in range(1, columns):
            part = k / columns
            out.append((x ** (1 - part) * u**part, y ** (1 - part) * v**part))
    return out
