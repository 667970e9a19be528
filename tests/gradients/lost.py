"""Random programs in which rounding leaves nothing of numbers: absorbed, cancelled, too small."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
from gradients.estimated import Step, gained, scaled, shifted
from gradients.hard import Hard

INNER = ("sin", "cos", "tanh", "atan", "")


class Draw:
    """What a program is drawn from: two numbers in random order, constants, functions."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([7, seed])
        self.a, self.b = self.rng.permutation(["x", "p"]).tolist()

    def one(self, *of: Any) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def small(self) -> float:
        return float(np.round(self.rng.uniform(0.05, 1.6) * self.one(-1, 1), 3))

    def large(self) -> float:
        scale = 10.0 ** self.one(12, 14, 15, 16, 17, 18, 20, 30)
        return float(np.round(self.rng.uniform(1, 9), 2)) * scale


def absorbed(d: Draw) -> list[Step]:
    """Terms between others that are large and cancel."""
    c, f = d.large(), d.one("", "sin", "atan")
    inner = [gained("y", d.one(d.a, d.b), d.small(), d.one(*INNER)) for _ in range(d.one(1, 2, 3))]
    return [gained("y", d.a, c, f), *inner, gained("y", d.a, -c, f)]


def offset(d: Draw) -> list[Step]:
    """A number that is far away for a while."""
    c = d.large() * d.one(1.0, 1e-12)
    there = gained("y", d.a, d.small(), d.one("square", ""))
    return [shifted(d.a, c), there, shifted(d.a, -c), gained("y", d.a, d.small(), "sin")]


def too_small(d: Draw) -> list[Step]:
    """Scales whose products are not numbers."""
    m = 10.0 ** (d.one(100, 155, 160, 165, 200) * d.one(-1, 1))
    return [scaled(d.a, m, "mul"), scaled(d.a, d.one(1.0, m), "mul"), gained("y", d.a, 1 / m, "")]


def passing(d: Draw) -> list[Step]:
    """A number that is added to another, and taken away again."""
    c = d.large()
    out = [gained(d.b, d.a, c, ""), gained("y", d.b, 1 / c, "sin")]
    return [*out, gained(d.b, d.a, -c, ""), gained("y", d.b, d.small(), "sin")]


def cancelling(d: Draw) -> list[Step]:
    """Values that are almost the same, one taken from the other."""
    c, f, near = d.small(), d.one("sin", "tanh", "atan"), 10.0 ** -int(d.rng.integers(8, 20))
    return [
        *(gained("y", d.a, c, f), shifted(d.a, near)),
        *(gained("y", d.a, -c, f), shifted(d.a, -near)),
    ]


def squares(d: Draw) -> list[Step]:
    """Squares that are large and cancel."""
    c = d.large()
    inner = [gained("y", d.b, d.small(), "cos"), gained("y", d.a, d.small(), "square")]
    last = [gained("y", d.a, -c, "square"), gained("y", d.a, d.small(), "atan")]
    return [gained("y", d.a, c, "square"), *inner, *last]


KINDS = (absorbed, offset, too_small, passing, cancelling, squares)


def program(seed: int) -> Hard:
    """A random program; every kind in turn."""
    d = Draw(seed)
    before = [gained(d.a, d.b, d.small(), d.one(*INNER))] if d.one(True, False) else []
    after = [gained("y", d.b, d.small(), d.one("sin", "square", ""))] if d.one(True, False) else []
    steps = [*before, *KINDS[seed % len(KINDS)](d), *after]
    body = "".join(f"        {text}\n" for text, _ in steps)

    def formula(x: Any, p: Any, n: int) -> Any:
        at = {"x": x, "p": p, "y": mpmath.mpf(0)}
        for _ in range(n):
            for _, do in steps:
                do(at)
        return at["y"]

    x, p = d.rng.normal(size=2).tolist()
    n = d.one(1, 1, 2, 5)
    spread = 400 * n if KINDS[seed % len(KINDS)] is too_small else 100
    return Hard(f"    for i = 1 to n\n{body}    end\n", formula, x, p, n, False, spread)
