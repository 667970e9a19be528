"""Programs that the frameworks have formulas of their own for."""

from __future__ import annotations

from pathlib import Path

import rvm

EXAMPLES = Path(__file__).parents[2] / "examples"

PARTS = rvm.assemble(
    """
record Body
    mass: f64
    at: f64[2]
end

func turn(x: f64[2], t: f64)            ; an input that is an output too
    rot x[0], x[1], t

func pick(y: f64, x: f64[n], k: i64)
    add y, x[k] ** 3

func energy(e: f64, sun: Body, v: f64[2])
    add e, 0.5 * sun.mass * sum(v ** 2) - sun.mass / sqrt(sum(sun.at ** 2))

func both(p: f64, q: c128, x: f64[n], w: c128[n])
    add p, sum(x) ** 2
    add q, sum(w * w) * c128(x[0])

func count(n: i64, y: f64, x: f64)      ; a result that carries no derivative
    inc n
    add y, 2.0 * x

func hidden(y: f64[m], x: f64[n])
    add y[0], x[0]

func heap(s: stack[f64], x: f64)
    push x, s

func logs(y: log64, x: f64)
    mul y, log64(x)
"""
)


def example(name: str, function: str) -> rvm.FunctionHandle:
    """A function of a shipped example."""
    return rvm.load(EXAMPLES / f"{name}.rasm")[function]
