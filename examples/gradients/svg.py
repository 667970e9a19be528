"""Pictures as SVG text: a sheet with panels, each a window on a part of the plane."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

INK, FAINT, PAPER = "#24292f", "#8c959f", "#ffffff"
BLUE, ORANGE, GREEN, PURPLE, RED = "#2166ac", "#d9730d", "#1a8754", "#7a4fbf", "#c2334d"


def number(x: float) -> str:
    """A coordinate in tenths of a pixel."""
    return f"{x:.1f}".removesuffix(".0").replace("-0.0", "0")


class Sheet:
    """A picture of a size in pixels."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height = width, height
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'font-family="system-ui, sans-serif">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
        ]

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: int = 13,
        fill: str = INK,
        anchor: str = "start",
        turn: int = 0,
    ) -> None:
        """A line of text; `turn` in degrees about its place."""
        turned = f' transform="rotate({turn} {number(x)} {number(y)})"' if turn else ""
        self.parts.append(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{size}" fill="{fill}" '
            f'text-anchor="{anchor}"{turned}>{escape(words)}</text>'
        )

    def path(self, d: str, stroke: str, width: float = 1.0, **more: str) -> None:
        """An open path, given as SVG writes it."""
        extra = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in more.items())
        self.parts.append(
            f'<path d="{d}" fill="none" stroke="{stroke}" stroke-width="{width}"{extra}/>'
        )

    def write(self, path: Path) -> None:
        """Save the picture."""
        path.write_text("\n".join([*self.parts, "</svg>", ""]), encoding="utf-8")


class Panel:
    """A rectangle of a sheet that shows a range of x and y, y upwards."""

    def __init__(
        self,
        sheet: Sheet,
        box: tuple[float, float, float, float],
        x: tuple[float, float],
        y: tuple[float, float],
    ) -> None:
        self.sheet, self.box, self.x, self.y = sheet, box, x, y

    def at(self, point: Sequence[float]) -> tuple[float, float]:
        """A point's place on the sheet."""
        left, top, width, height = self.box
        return (
            left + width * (point[0] - self.x[0]) / (self.x[1] - self.x[0]),
            top + height * (self.y[1] - point[1]) / (self.y[1] - self.y[0]),
        )

    def has(self, point: Sequence[float]) -> bool:
        """Whether a point is in view."""
        return self.x[0] <= point[0] <= self.x[1] and self.y[0] <= point[1] <= self.y[1]

    def line(
        self, points: Iterable[Sequence[float]], stroke: str, width: float = 1.0, **more: str
    ) -> None:
        """A line through points."""
        ends = [" ".join(map(number, self.at(p))) for p in points]
        self.sheet.path("M" + "L".join(ends), stroke, width, **more)

    def lines(
        self,
        pairs: Iterable[tuple[Sequence[float], Sequence[float]]],
        stroke: str,
        width: float = 1.0,
        **more: str,
    ) -> None:
        """Line segments, as one path."""
        d = []
        for a, b in pairs:
            (x, y), (u, v) = self.at(a), self.at(b)
            d.append(f"M{number(x)} {number(y)}L{number(u)} {number(v)}")
        self.sheet.path("".join(d), stroke, width, **more)

    def dots(self, points: Iterable[Sequence[float]], fill: str, size: float = 3.0) -> None:
        """Round dots `size` pixels wide, as one path; those out of view are left out."""
        places = [self.at(p) for p in points if self.has(p)]
        d = "".join(f"M{number(x)} {number(y)}h0" for x, y in places)
        self.sheet.path(d, fill, size, stroke_linecap="round")

    def arrows(
        self, starts: np.ndarray, steps: np.ndarray, stroke: str, width: float = 1.2
    ) -> None:
        """Arrows from points, by vectors in the panel's own units."""
        d = []
        for a, step in zip(starts, steps, strict=True):
            (x, y), (u, v) = self.at(a), self.at(a + step)
            length = float(np.hypot(u - x, v - y))
            if length < 0.5:
                continue
            head = min(5.0, 0.4 * length)
            e, f = (u - x) / length * head, (v - y) / length * head
            p, q = (u - e - f / 2, v - f + e / 2), (u - e + f / 2, v - f - e / 2)
            d.append(
                f"M{number(x)} {number(y)}L{number(u)} {number(v)}"
                f"M{number(p[0])} {number(p[1])}L{number(u)} {number(v)}"
                f"L{number(q[0])} {number(q[1])}"
            )
        self.sheet.path("".join(d), stroke, width, stroke_linejoin="round")

    def frame(self, name: str = "", below: str = "", beside: str = "") -> None:
        """A thin border with words above, below and to the left."""
        left, top, width, height = self.box
        self.sheet.parts.append(
            f'<rect x="{number(left)}" y="{number(top)}" width="{number(width)}" '
            f'height="{number(height)}" fill="none" stroke="{FAINT}" stroke-width="0.6"/>'
        )
        middle = left + width / 2
        if name:
            self.sheet.text(middle, top - 10, name, 14, INK, "middle")
        if below:
            self.sheet.text(middle, top + height + 34, below, 12, FAINT, "middle")
        if beside:
            self.sheet.text(left - 42, top + height / 2, beside, 12, FAINT, "middle", -90)

    def ticks(self, xs: Iterable[float] = (), ys: Iterable[float] = ()) -> None:
        """Numbers along the lower and the left edge."""
        left, top, _, height = self.box
        for x in xs:
            u, _ = self.at((x, self.y[0]))
            self.sheet.path(f"M{number(u)} {number(top + height)}v4", FAINT)
            self.sheet.text(u, top + height + 17, f"{x:g}", 11, FAINT, "middle")
        for y in ys:
            _, v = self.at((self.x[0], y))
            self.sheet.path(f"M{number(left)} {number(v)}h-4", FAINT)
            self.sheet.text(left - 7, v + 4, f"{y:g}", 11, FAINT, "end")
