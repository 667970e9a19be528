"""Random programs of floats whose gradients are known: contracting, expanding and chaotic ones.

Each is a list of updates of a few numbers, which a text and mpmath perform alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from gradients.hard import Hard

Step = tuple[str, Callable[[dict[str, Any]], None]]
"""A line of the text, and what it does to the numbers in mpmath."""
NUMBERS = ("x", "p", "y")


def scaled(v: str, c: float, op: str) -> Step:
    def do(at: dict[str, Any]) -> None:
        at[v] = at[v] * mpmath.mpf(c) if op == "mul" else at[v] / mpmath.mpf(c)

    return f"{op} {v}, {c!r}", do


def shifted(v: str, c: float) -> Step:
    def do(at: dict[str, Any]) -> None:
        at[v] += mpmath.mpf(c)

    return f"add {v}, {c!r}", do


def gained(v: str, w: str, c: float, f: str) -> Step:
    def do(at: dict[str, Any]) -> None:
        inner = {"": lambda z: z, "square": lambda z: z * z}.get(f) or getattr(mpmath, f)
        at[v] += mpmath.mpf(c) * inner(at[w])

    inside = {"": w, "square": f"{w} * {w}"}.get(f, f"{f}({w})")
    return f"add {v}, {c!r} * ({inside})", do


def turned(angle: float) -> Step:
    def do(at: dict[str, Any]) -> None:
        c, s = mpmath.cos(mpmath.mpf(angle)), mpmath.sin(mpmath.mpf(angle))
        at["x"], at["p"] = c * at["x"] - s * at["p"], s * at["x"] + c * at["p"]

    return f"rot x, p, {angle!r}", do


def program(seed: int) -> Hard:
    """A random program."""
    rng = np.random.default_rng(seed)
    steps: list[Step] = []
    for _ in range(int(rng.integers(1, 6))):
        v, w = rng.permutation(["x", "p"]).tolist()
        c = float(np.round(rng.uniform(0.05, 1.6), 2))
        match rng.integers(0, 5):
            case 0:
                steps.append(scaled(v, c, str(rng.choice(["mul", "div"]))))
            case 1:
                steps.append(shifted(v, float(np.round(rng.normal(), 3))))
            case 2 | 3:
                f = str(rng.choice(["sin", "cos", "tanh", "atan", ""]))
                steps.append(gained(v, w, float(np.round(c * rng.choice([-1, 1]), 3)), f))
            case 4:
                steps.append(turned(c))
    f = str(rng.choice(["sin", "tanh", "square", "atan"]))
    steps.append(gained("y", str(rng.choice(["x", "p"])), float(np.round(rng.normal(), 3)), f))
    body = "".join(f"        {text}\n" for text, _ in steps)
    last = "    add y, sin(x) + atan(p)\n"

    def formula(x: Any, p: Any, n: int) -> Any:
        at = {"x": x, "p": p, "y": mpmath.mpf(0)}
        for _ in range(n):
            for _, do in steps:
                do(at)
        return at["y"] + mpmath.sin(at["x"]) + mpmath.atan(at["p"])

    x, p = rng.normal(size=2).tolist()
    n = int(rng.choice([3, 10, 30, 60]))
    return Hard(f"    for i = 1 to n\n{body}    end\n{last}", formula, x, p, n, False)
