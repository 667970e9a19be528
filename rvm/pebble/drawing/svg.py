"""Sheets of SVG: shapes and words in few colours, for light and dark backgrounds.

The colours are classes of a style sheet, which follows the preference of the reader's system.  Only
the standard library is needed, even for raster images.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from math import ceil, floor, log10
from struct import pack
from xml.sax.saxutils import escape
from zlib import compress, crc32

import numpy as np
from numpy.typing import NDArray

STYLE = """\
.paper{fill:#ffffff}.ink{fill:#24292f}.faint{fill:#656d76}.line{stroke:#d0d7de}.axis{stroke:#8c959f}
.bar{fill:#3b7dd8}.disk{fill:#a371f7}.adjoint{fill:#e0702c}
.bar:hover,.disk:hover,.adjoint:hover{opacity:.6}
.c0{stroke:#3b7dd8;fill:#3b7dd8}.c1{stroke:#e0702c;fill:#e0702c}.c2{stroke:#2da160;fill:#2da160}
.c3{stroke:#a371f7;fill:#a371f7}.c4{stroke:#d1495b;fill:#d1495b}.c5{stroke:#8a7f2d;fill:#8a7f2d}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.ink{fill:#e6edf3}.faint{fill:#9198a1}
.line{stroke:#2a313c}.axis{stroke:#656d76}}"""
COLOURS = 6
INKS = {"bar": (0x3B, 0x7D, 0xD8), "disk": (0xA3, 0x71, 0xF7), "adjoint": (0xE0, 0x70, 0x2C)}
"""The colours of the classes, for raster images."""
EMS = 0.56
"""The width of a character on average, of its height."""


def number(x: float) -> str:
    """A coordinate in hundredths of a pixel, as short as it goes."""
    text = f"{x:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def width_of(words: str, size: float) -> float:
    """About how wide a line of text is."""
    return len(words) * size * EMS


class Sheet:
    """A picture of a size in pixels, to which shapes are added."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height = width, height
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} '
            f'{number(height)}" font-family="system-ui, sans-serif" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{number(width)}" height="{number(height)}" rx="8"/>',
        ]

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float = 12,
        colour: str = "faint",
        anchor: str = "start",
        turned: bool = False,
    ) -> None:
        """A line of text; turned, it reads upwards."""
        turn = f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
        self.parts.append(
            f'<text class="{colour}" x="{number(x)}" y="{number(y)}" font-size="{number(size)}" '
            f'text-anchor="{anchor}"{turn}>{escape(words)}</text>'
        )

    def rect(
        self, colour: str, x: float, y: float, width: float, height: float, tip: str = ""
    ) -> None:
        """A bar with round corners, and what it tells when it is pointed at."""
        round_ = min(2.0, width / 3, height / 3)
        shape = (
            f'<rect class="{colour}" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" rx="{number(round_)}"'
        )
        self.parts.append(f"{shape}><title>{escape(tip)}</title></rect>" if tip else f"{shape}/>")

    def line(self, colour: str, x: float, y: float, to_x: float, to_y: float) -> None:
        """A thin straight line."""
        self.parts.append(
            f'<path class="{colour}" d="M{number(x)} {number(y)}L{number(to_x)} {number(to_y)}"/>'
        )

    def diamond(self, colour: str, x: float, y: float, size: float, tip: str = "") -> None:
        """A square on its corner, about a point."""
        s = number(size)
        shape = (
            f'<path class="{colour}" d="M{number(x - size)} {number(y)}l{s} -{s}l{s} {s}l-{s} {s}z"'
        )
        self.parts.append(f"{shape}><title>{escape(tip)}</title></path>" if tip else f"{shape}/>")

    def curve(self, colour: str, points: list[tuple[float, float]], width: float = 2) -> None:
        """Straight lines through points."""
        path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
        self.parts.append(
            f'<path class="{colour}" d="M{path}" style="fill:none" stroke-width="{number(width)}" '
            'stroke-linejoin="round"/>'
        )

    def dot(self, colour: str, x: float, y: float, size: float = 3, tip: str = "") -> None:
        """A filled circle."""
        self.parts.append(
            f'<circle class="{colour}" cx="{number(x)}" cy="{number(y)}" r="{number(size)}">'
            f"<title>{escape(tip)}</title></circle>"
        )

    def image(self, x: float, y: float, width: float, height: float, data: bytes) -> None:
        """A PNG image stretched over a rectangle, each of its pixels a rectangle."""
        self.parts.append(
            f'<image x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" preserveAspectRatio="none" '
            'style="image-rendering:pixelated" '
            f'href="data:image/png;base64,{b64encode(data).decode()}"/>'
        )

    def written(self) -> str:
        """The sheet as text."""
        return "\n".join([*self.parts, "</svg>", ""])


def png(pixels: NDArray[np.uint8]) -> bytes:
    """An image of shape (height, width, 4), red, green, blue and how opaque, as a PNG file."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 4 * width), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", crc32(kind + data))

    header = pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", compress(rows.tobytes(), 9)),
            chunk(b"IEND", b""),
        ]
    )


# ---------------------------------------------------------------- axes


def round_steps(low: float, high: float, most: int, whole: bool = False) -> Iterator[float]:
    """Round numbers from `low` to `high` at equal steps of 1, 2 or 5 times a power of ten.

    If only `whole` numbers make sense, the steps are whole.
    """
    rough = max((high - low) / max(most, 1), 1e-300)
    unit = 10 ** floor(log10(rough))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough * (1 - 1e-9))
    step = max(step, 1) if whole else step
    for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1):
        yield k * step


def round_powers(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """Round numbers on a logarithmic axis: powers of ten, and others between if they are few."""
    if high < 5 * low and most > 2:
        return list(round_steps(low, high, min(most - 1, 6), whole))
    tens = range(floor(log10(low)), ceil(log10(high)) + 1)
    for mantissas in ((1, 2, 3, 4, 6, 8), (1, 2, 5), (1, 3), (1,)):
        found = [m * 10.0**e for e in tens for m in mantissas]
        found = [v for v in found if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
        if len(found) <= most:
            return found
    return found[:: ceil(len(found) / most)]


def short(value: float) -> str:
    """A number in a few characters: 20, 5k, 3M."""
    for unit, word in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * unit:
            return f"{value / unit:.3g}{word}"
    return f"{value:.3g}"
