"""Inputs for functions about which nothing is known but their types."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np

from rvm.engines.evaluate import evaluate
from rvm.numbers import Fixed, LogNumber, system
from rvm.program import Function, Layout, Record
from rvm.types import Array, Scalar, Stack, elem_of

_SMALL = 6
"""Lengths, and the numbers of easy inputs, stay about this small: they are often indices."""


def inputs(function: Function, rng: random.Random, easy: bool) -> dict[str, Any]:
    """A value for each parameter; `easy` ones are small and not negative.

    Lengths that the parameters' types bind to each other agree.
    """
    regs: list[Any] = [None] * len(function.registers)
    return {p.name: _layout(function, p.layout, regs, rng, easy) for p in function.params}


def _layout(
    function: Function, layout: Layout, regs: list[Any], rng: random.Random, easy: bool
) -> Any:
    if isinstance(layout, Record):
        return {f: _layout(function, inner, regs, rng, easy) for f, inner in layout.fields}
    register = function.registers[layout]
    t, elem = register.type, elem_of(register.type)
    sys = system(elem)
    if isinstance(t, Stack):
        count = rng.randint(0, 3) * prod(register.shape)
        return [sys.to_python(_number(elem, rng, easy)) for _ in range(count)]
    if isinstance(t, Array):
        shape = [0] * t.rank
        for axis, length in enumerate(register.dims):
            # A length may be that of an axis before it: `A: f64[n, n]`.
            regs[layout] = np.empty(shape, sys.dtype)
            shape[axis] = rng.randint(1, _SMALL) if length is None else int(evaluate(length, regs))
        count = int(np.prod(shape, dtype=np.int64))
        flat = [_number(elem, rng, easy) for _ in range(count)]
        regs[layout] = np.array(flat, sys.dtype).reshape(shape)
        return regs[layout]
    regs[layout] = _number(elem, rng, easy)
    return sys.to_python(regs[layout])


def _number(t: Scalar, rng: random.Random, easy: bool) -> Any:
    """A random raw number."""
    if t.is_bool:
        return rng.random() < 0.5
    if t.row.dtype[0] in "iu" and not t.is_fixed:
        if easy:
            return rng.randint(0, _SMALL)
        low = -1 if t.is_signed else 0
        return rng.randint(low << min(t.bits - 1, 16), (1 << min(t.bits - 1, 16)) - 1)
    if t.is_complex:
        return complex(_real(rng, easy), _real(rng, easy))
    if t.is_fixed:
        return system(t).from_python(Fixed(round(_real(rng, easy) * (1 << t.frac)), t.frac))
    if t.is_log:
        return LogNumber(rng.uniform(-2, 2)).log
    return system(t).from_python(_real(rng, easy))


def _real(rng: random.Random, easy: bool) -> float:
    return rng.uniform(0.25, 4) if easy else rng.uniform(-8, 8)
