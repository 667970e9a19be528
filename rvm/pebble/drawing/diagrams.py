"""Diagrams as SVG: a schedule's nodes by time, and memory against time.

A schedule with few bars is drawn bar by bar, and each bar shows a description when it is pointed
at.  A schedule with many bars is drawn as an image with a limited number of cells, whose shades are
the average numbers of states held: so a file has some hundred kilobytes at most, whatever the
schedule's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

import numpy as np
from numpy.typing import NDArray

from rvm.pebble.drawing.film import Bar, Film, Raster, bars, rastered
from rvm.pebble.drawing.svg import (
    COLOURS,
    INKS,
    Sheet,
    png,
    round_powers,
    round_steps,
    short,
    width_of,
)

WIDTH = 960.0
RIGHT, TOP, BOTTOM = 28.0, 62.0, 52.0
TALL = 440.0
"""The height of a diagram whose nodes have no lines of their own."""
MOST_TICKS, MOST_NODES = 1500, 64
"""Up to this many ticks and nodes, schedules are drawn bar by bar."""
COLUMNS, ROWS = 900, 400
"""The most cells of an image."""
FAINTEST = 0.25
"""The opacity of a cell that is held for a moment."""
LONGEST_NAME = 18


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a diagram's cells are on its sheet, in pixels; nodes go up."""

    film: Film
    left: float
    row: float
    """The height of a node's line."""

    @property
    def height(self) -> float:
        return self.row * self.film.nodes

    def x(self, tick: float) -> float:
        return self.left + (WIDTH - self.left - RIGHT) * tick / max(self.film.length, 1)

    def y(self, node: float) -> float:
        """The upper edge of a node's line."""
        return TOP + self.row * (self.film.last - node)


def diagram(film: Film) -> str:
    """The time-space diagram of a schedule, as SVG text."""
    exact = film.length <= MOST_TICKS and film.nodes <= MOST_NODES
    names = [_cut(film.name(v)) for v in range(film.first, film.last + 1)] if exact else []
    widest = max((width_of(name, 11) for name in names), default=0)
    left = max(48.0, widest + 34) if exact else 48 + width_of(f"{film.last:,}", 11)
    row = min(26.0, max(11.0, TALL / film.nodes)) if exact else TALL / film.nodes
    frame = Frame(film, left, row)
    sheet = Sheet(WIDTH, TOP + frame.height + BOTTOM, film.title)
    sheet.text(left, 26, f"{film.title}: {film.length:,} {_plural(film)} in all", 15, "ink")
    _axes(sheet, frame, names)
    if exact:
        _drawn(sheet, frame)
        _key(sheet, frame, "a state in memory")
    else:
        _key(sheet, frame, _imaged(sheet, frame))
    return sheet.written()


def _plural(film: Film) -> str:
    return f"{film.tick}{'' if film.length == 1 else 's'}"


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _axes(sheet: Sheet, frame: Frame, names: list[str]) -> None:
    film = frame.film
    base = TOP + frame.height
    for tick in round_steps(0, film.length, 10):
        if tick == int(tick):
            x = frame.x(tick)
            sheet.line("line", x, TOP, x, base + 5)
            sheet.text(x, base + 19, f"{tick:,.0f}", 11, anchor="middle")
    sheet.text(
        (frame.left + WIDTH - RIGHT) / 2, base + 40, f"time in {film.tick}s", anchor="middle"
    )
    sheet.text(17, TOP + frame.height / 2, "node", anchor="middle", turned=True)
    if names:
        for k, name in enumerate(names):
            middle = frame.y(film.first + k) + frame.row / 2
            sheet.line("line", frame.left, middle, WIDTH - RIGHT, middle)
            sheet.text(frame.left - 8, middle + 4, name, 11, anchor="end")
    else:
        for node in round_steps(film.first, film.last, 8):
            middle = frame.y(node) + frame.row / 2
            sheet.line("line", frame.left - 5, middle, WIDTH - RIGHT, middle)
            sheet.text(frame.left - 8, middle + 4, f"{node:,.0f}", 11, anchor="end")
    sheet.line("axis", frame.left, base, WIDTH - RIGHT, base)
    sheet.line("axis", frame.left, TOP, frame.left, base)


def _drawn(sheet: Sheet, frame: Frame) -> None:
    film = frame.film
    found, adjoints = bars(film)
    thick = 0.72 * frame.row
    for bar in sorted(found, key=lambda bar: not bar.disk):
        height = thick * (0.4 if bar.disk else 1)
        x, stop = frame.x(bar.start), frame.x(bar.stop)
        y = frame.y(bar.node) + (frame.row - height) / 2
        gap = min(0.6, (stop - x) / 5)
        kind = "disk" if bar.disk else "bar"
        sheet.rect(kind, x + gap, y, stop - x - 2 * gap, height, _tip(film, bar))
    size = min(0.42 * frame.row, max((frame.x(1) - frame.x(0)) * 0.75, 3))
    for tick, node in adjoints:
        middle = frame.y(node) + frame.row / 2
        sheet.diamond("adjoint", frame.x(tick + 0.5), middle, size, f"adjoint of step {node + 1}")


def _tip(film: Film, bar: Bar) -> str:
    where = " on disk" if bar.disk else ""
    ticks = bar.stop - bar.start
    return f"{film.name(bar.node)}{where}: {film.tick}s {bar.start:,} to {bar.stop:,} ({ticks:,})"


def _imaged(sheet: Sheet, frame: Frame) -> str:
    """Draw the cells; the text that explains them."""
    film = frame.film
    columns, rows = min(COLUMNS, film.length), min(ROWS, film.nodes)
    raster = rastered(film, film.length / columns, film.nodes / rows)
    width = WIDTH - RIGHT - frame.left
    sheet.image(frame.left, TOP, width, frame.height, png(_pixels(raster)))
    cell = f"{short(raster.ticks)} {film.tick}s by {short(raster.nodes)} nodes"
    dark = "paler if one is there for a part of it"
    if raster.full > 1:
        dark = f"darkest with {raster.full} or more"
    return f"states in memory; a cell is {cell}, {dark}"


def _pixels(raster: Raster) -> NDArray[np.uint8]:
    """The cells from the last node down, in the colour of what is in them."""
    pixels = np.zeros((*raster.held.shape, 4), np.uint8)
    for kind, levels in (("disk", raster.disk), ("bar", raster.held)):
        there = levels > 0
        pixels[there, :3] = INKS[kind]
        shade = FAINTEST + (1 - FAINTEST) * np.minimum(levels[there] / raster.full, 1)
        # A few shades are enough, and make small files.
        pixels[there, 3] = np.round(shade * 15) * 17
    pixels[raster.adjoints > 0] = (*INKS["adjoint"], 255)
    return pixels[::-1]


def _key(sheet: Sheet, frame: Frame, words: str) -> None:
    """The key of the colours, below the title."""
    film, x, y = frame.film, frame.left, 44.0
    for kind, shown, there in (
        ("bar", words, True),
        ("disk", "on disk", film.has_disk),
        ("adjoint", "an adjoint is taken", film.has_adjoints),
    ):
        if not there:
            continue
        if kind == "adjoint":
            sheet.diamond(f"{kind} key", x + 6, y - 4, 5)
        else:
            height = 4 if kind == "disk" else 9
            sheet.rect(f"{kind} key", x, y - 4 - height / 2, 12, height)
        sheet.text(x + 18, y, shown, 12)
        x += 18 + width_of(shown, 12) + 20


# ---------------------------------------------------------------- curves

Curve = Sequence[tuple[float, float]]


def chart(
    title: str, series: Sequence[tuple[str, Curve]], across: str, up: str, each: float
) -> str:
    """Curves on logarithmic axes, as SVG text; the axis at the right counts in units of `each`."""
    left, right, top, bottom, height = 78.0, 78.0, 48.0, 56.0, 520.0
    points = [p for _, curve in series for p in curve]
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    low_y, high_y = min(y for _, y in points), max(y for _, y in points)
    # A little room around, and never nothing between the ends.
    low_x, high_x, low_y, high_y = low_x / 1.08, high_x * 1.08, low_y / 1.15, high_y * 1.15

    def at_x(x: float) -> float:
        return left + (WIDTH - left - right) * log10(x / low_x) / log10(high_x / low_x)

    def at_y(y: float) -> float:
        return top + (height - top - bottom) * log10(high_y / y) / log10(high_y / low_y)

    sheet = Sheet(WIDTH, height, title)
    sheet.text(left, 26, title, 15, "ink")
    base = height - bottom
    for x in round_powers(low_x, high_x, 12, True):
        sheet.line("line", at_x(x), top, at_x(x), base + 5)
        sheet.text(at_x(x), base + 19, short(x), 11, anchor="middle")
    for y in round_powers(low_y, high_y, 12, True):
        sheet.line("line", left - 5, at_y(y), WIDTH - right, at_y(y))
        sheet.text(left - 9, at_y(y) + 4, short(y), 11, anchor="end")
    for y in round_powers(low_y / each, high_y / each, 12):
        sheet.line("axis", WIDTH - right, at_y(y * each), WIDTH - right + 5, at_y(y * each))
        sheet.text(WIDTH - right + 9, at_y(y * each) + 4, f"×{short(y)}", 11)
    sheet.line("axis", left, base, WIDTH - right, base)
    sheet.line("axis", left, top, left, base)
    sheet.line("axis", WIDTH - right, top, WIDTH - right, base)
    sheet.text((left + WIDTH - right) / 2, height - 14, across, anchor="middle")
    sheet.text(20, (top + base) / 2, up, anchor="middle", turned=True)
    for k, (name, curve) in reversed(list(enumerate(series))):
        colour = f"c{k % COLOURS}"
        drawn = [(at_x(x), at_y(y)) for x, y in curve]
        sheet.curve(colour, drawn)
        for (x, y), (px, py) in zip(curve, drawn, strict=True):
            # Those below are larger, so that they are seen where curves are the same.
            sheet.dot(colour, px, py, 2.4 + k, f"{name}: {x:,.0f} {across}, {y:,.0f} {up}")
    # Costs fall, so that there is room at the upper right.
    for k, (name, _) in enumerate(series):
        y = top + 24 + 20 * k
        x = WIDTH - right - 36 - max(width_of(name, 13) for name, _ in series)
        sheet.curve(f"c{k % COLOURS}", [(x - 26, y - 4), (x - 6, y - 4)], 3)
        sheet.text(x, y, name, 13, "ink")
    return sheet.written()
