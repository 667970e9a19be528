"""Arguments for any function, drawn from its signature: small numbers, or the edges of types."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from rvm.numbers import system
from rvm.program import Function, Layout
from rvm.types import Array, Scalar, Stack

_FLOATS = (0.0, -0.0, 1.0, -2.5, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324, 2.0**63)


def arguments(function: Function, rng: random.Random, wild: bool = False) -> dict[str, Any]:
    """A value for each parameter; all arrays have the same lengths.

    Where a parameter asks for another length, a run refuses them, and that is an outcome too.
    """
    length = rng.choice((4, 4, 4, 1, 3, 0)) if wild else 4

    def value(layout: Layout) -> Any:
        if not isinstance(layout, int):
            return {name: value(inner) for name, inner in layout.fields}
        t = function.registers[layout].type
        if isinstance(t, Stack):
            return [_outside(rng, t.elem, wild) for _ in range(rng.randrange(3))]
        if isinstance(t, Array):
            shape = (length,) * t.rank
            numbers = [_number(rng, t.elem, wild) for _ in range(length**t.rank)]
            return np.array(numbers, system(t.elem).dtype).reshape(shape)
        return _outside(rng, t, wild)

    return {p.name: value(p.layout) for p in function.params}


def _outside(rng: random.Random, t: Scalar, wild: bool) -> Any:
    """A number of a type as Python sees it."""
    return system(t).to_python(_number(rng, t, wild))


def _number(rng: random.Random, t: Scalar, wild: bool) -> Any:
    """A raw value of a type."""
    if t.is_bool:
        return rng.random() < 0.5
    if t.is_integer or t.is_fixed:
        if not wild or rng.random() < 0.6:
            return rng.randrange(4) << (t.frac if t.is_fixed else 0)
        low = 0 if t.name.startswith("u") else -(1 << (t.bits - 1))
        return rng.choice((low, low + 1, low + (1 << t.bits) - 1, 0, 1, 64, 1 << (t.bits - 2)))
    if t.is_complex:
        return complex(_number(rng, _REAL, wild), _number(rng, _REAL, wild))
    value = rng.choice(_FLOATS) if wild and rng.random() < 0.5 else float(rng.randrange(4))
    return float(np.float32(min(value, 1e38))) if t.name == "f32" else value


_REAL = Scalar("f64")
