"""Draws `both_ways.svg`: a pack of cards shuffled by a program, which is then run back.

    python docs/pictures/both_ways.py

Every line is a card, its height the card's position; all of it is read from one true run of
`examples/shuffle.rasm`, tick by tick.
"""

from __future__ import annotations

from colorsys import hls_to_rgb
from pathlib import Path

import numpy as np

import rvm

HERE = Path(__file__).parent
CARDS = 24
SEED = (2, 7)
WIDTH, HEIGHT = 960, 400
LEFT, RIGHT, TOP, BOTTOM = 40, 40, 64, 56
LEAD = 16
"""What is drawn of the cards before the start and after the end."""
BEND = 9
"""Half the width of a change of place."""
INK, FAINT, PAPER = "#24292f", "#8c959f", "#ffffff"


def history() -> tuple[list[int], list[list[int]]]:
    """The times that the run went through, there and back, and the cards' order at each."""
    program = rvm.load(HERE.parents[1] / "examples" / "shuffle.rasm")
    cards = np.arange(CARDS, dtype=np.int64)
    machine = rvm.Machine(program, "shuffle", x=cards, s=np.array(SEED, np.uint64))
    times, orders = [0], [cards.tolist()]
    for direction in (1, -1):
        while machine.step(direction):
            times.append(machine.time)
            orders.append(cards.tolist())
    return times, orders


def card_path(heights: list[float], xs: list[float]) -> str:
    """A line through the card's positions: level, with an S where it changes place."""
    path = [f"M{xs[0] - LEAD:.1f} {heights[0]:.1f}"]
    for x, old, new in zip(xs[1:], heights, heights[1:], strict=False):
        if new != old:
            path.append(f"H{x - BEND:.1f}")
            path.append(f"C{x:.1f} {old:.1f} {x:.1f} {new:.1f} {x + BEND:.1f} {new:.1f}")
    path.append(f"H{xs[-1] + LEAD:.1f}")
    return "".join(path)


def colour(card: int) -> str:
    """A rainbow's colour."""
    r, g, b = hls_to_rgb(0.78 * card / (CARDS - 1), 0.48, 0.72)
    return f"#{round(255 * r):02x}{round(255 * g):02x}{round(255 * b):02x}"


def text(x: float, y: float, words: str, size: int = 14, fill: str = INK) -> str:
    """A line of text, centred."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
        f'text-anchor="middle">{words}</text>'
    )


def picture() -> str:
    """The picture as SVG text."""
    times, orders = history()
    end = max(times)
    step = (WIDTH - LEFT - RIGHT - 2 * LEAD) / (len(times) - 1)
    xs = [LEFT + LEAD + step * k for k in range(len(times))]
    lane = (HEIGHT - TOP - BOTTOM) / (CARDS - 1)
    middle = xs[times.index(end)]
    base = HEIGHT - BOTTOM
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="system-ui, sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{PAPER}"/>',
        text((xs[0] + middle) / 2, 34, "forwards: shuffle →", 16),
        text((middle + xs[-1]) / 2, 34, "the same code backwards →", 16),
        f'<path d="M{middle:.1f} {TOP - 12}V{base + 12}" stroke="{FAINT}" stroke-dasharray="3 4"/>',
        '<g fill="none" stroke-width="4" stroke-linecap="round" stroke-opacity="0.9">',
    ]
    for card in range(CARDS):
        heights = [TOP + lane * order.index(card) for order in orders]
        out.append(f'<path d="{card_path(heights, xs)}" stroke="{colour(card)}"/>')
    out.append("</g>")
    for x, words in ((xs[0], "time 0"), (middle, f"time {end}"), (xs[-1], "time 0")):
        out.append(text(x, base + 34, words, fill=FAINT))
    out.append("</svg>")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    (HERE / "both_ways.svg").write_text(picture(), encoding="utf-8")
