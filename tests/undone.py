"""Random programs of floats that undo what they did, and go on, some by ways that get no copies.

Each is a list of updates that a text and mpmath perform alike, there and back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

import rvm

Numbers = dict[str, Any]
INVERSE = {"mul": "div", "div": "mul", "add": "sub", "sub": "add", "rot": "irot"}


@dataclass(frozen=True)
class Update:
    """An update of x or p, by a number or by the other."""

    op: str
    v: str
    c: float
    of: str = ""
    """For `add`: a function of the other number, `sin`."""

    @property
    def back(self) -> Update:
        return Update(INVERSE[self.op], self.v, self.c, self.of)

    @property
    def other(self) -> str:
        return "p" if self.v == "x" else "x"

    def text(self, x: str = "x", p: str = "p") -> str:
        if self.op.endswith("rot"):
            return f"    {self.op} {x}, {p}, {self.c!r}\n"
        v, w = (x, p) if self.v == "x" else (p, x)
        return f"    {self.op} {v}, {self.c!r}{f' * {self.of}({w})' * bool(self.of)}\n"

    def do(self, at: Numbers) -> None:
        c, v = mpmath.mpf(self.c), self.v
        if self.of:
            c *= getattr(mpmath, self.of)(at[self.other])
        match self.op:
            case "mul":
                at[v] *= c
            case "div":
                at[v] /= c
            case "add":
                at[v] += c
            case "sub":
                at[v] -= c
            case _:
                c = c if self.op == "rot" else -c
                a, b = mpmath.cos(c), mpmath.sin(c)
                at["x"], at["p"] = a * at["x"] - b * at["p"], b * at["x"] + a * at["p"]


WAYS: dict[str, str] = {
    "calls": """
func step(x: f64, p: f64)
{step}
func f(y: f64, x: f64, p: f64, n: i64)
    for i = 1 to n
        call step(x, p)
    end
    add y, sin(x) - p
    for i = 1 to n
        uncall step(x, p)
    end
    add y, x * p + x
""",
    "helper": """
func step(x: f64, p: f64)
{step}
func unstep(x: f64, p: f64)
{back}
func f(y: f64, x: f64, p: f64, n: i64)
    for i = 1 to n
        call step(x, p)
    end
    add y, sin(x) - p
    for i = 1 to n
        call unstep(x, p)
    end
    add y, x * p + x
""",
    "stack": """
func step(x: f64, p: f64)
{step}
func f(y: f64, x: f64, p: f64, n: i64)
    alloc s: stack[f64]
    for i = 1 to n
        call step(x, p)
    end
    add y, sin(x) - p
    push x, s
    pop x, s
    for i = 1 to n
        uncall step(x, p)
    end
    add y, x * p + x
    free s
""",
    "element": """
func f(y: f64, x: f64, p: f64, n: i64)
    alloc z: f64[2]
    alloc i: i64
    alloc j: i64
    swap z[0], x
    swap z[1], p
    for k = 1 to n
{step_i}
    end
    add y, sin(z[0]) - z[1]
    for k = 1 to n
{back_j}
    end
    swap z[0], x
    swap z[1], p
    free i
    free j
    free z
    add y, x * p + x
""",
    "ordinary": """
func step(x: f64, p: f64)
{step}
func f(y: f64, x: f64, p: f64, n: i64)
    for i = 1 to n
        call step(x, p)
    end
    add y, sin(x) - p
    add y, x * p + x
""",
}


@dataclass(frozen=True)
class Undone:
    """A program, its arguments, and what is true of its results."""

    way: str
    steps: list[Update]
    x: float
    p: float
    n: int

    def text(self) -> str:
        back = [u.back for u in reversed(self.steps)]
        return WAYS[self.way].format(
            step="".join(u.text() for u in self.steps),
            back="".join(u.text() for u in back),
            step_i="".join("    " + u.text("z[i]", "z[1 - i]") for u in self.steps),
            back_j="".join("    " + u.text("z[j]", "z[1 - j]") for u in back),
        )

    def function(self) -> Callable[..., Any]:
        return rvm.assemble(self.text()).f

    def arguments(self) -> dict[str, Any]:
        return {"y": 0.0, "x": self.x, "p": self.p, "n": self.n}

    def truth(self) -> Numbers:
        """What the results are in exact arithmetic, but for 120 digits."""
        with mpmath.workdps(120):
            at = {"x": mpmath.mpf(self.x), "p": mpmath.mpf(self.p)}
            start = dict(at)
            for _ in range(self.n):
                for u in self.steps:
                    u.do(at)
            y = mpmath.sin(at["x"]) - at["p"]
            if self.way != "ordinary":
                at = start
            return {"y": y + at["x"] * at["p"] + at["x"], **at}


def program(seed: int) -> Undone:
    """A random program: contracting and expanding ones, and such as turn."""
    rng = np.random.default_rng(seed)
    steps = []
    for _ in range(int(rng.integers(1, 5))):
        v, c = str(rng.choice(["x", "p"])), float(np.round(rng.uniform(0.2, 1.5), 2))
        match rng.integers(0, 4):
            case 0:
                steps.append(Update(str(rng.choice(["mul", "div"])), v, c))
            case 1:
                steps.append(Update(str(rng.choice(["add", "sub"])), v, c))
            case 2:
                of = str(rng.choice(["sin", "cos", "tanh", "atan"]))
                steps.append(Update(str(rng.choice(["add", "sub"])), v, c, of))
            case 3:
                steps.append(Update("rot", v, c))
    x, p = rng.normal(size=2).tolist()
    way = list(WAYS)[seed % len(WAYS)]
    return Undone(way, steps, x, p, int(rng.choice([3, 10, 30, 60])))
