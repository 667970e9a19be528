"""What every gradient must be: right by differences, the same on all engines, without a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sizes import first_and_another

import rvm
from rvm.engines import executing
from rvm.library.handle import FunctionHandle

ENGINES = executing()


def bits(value: Any) -> Any:
    """A value as exact text, arrays as bytes, records inside."""
    if isinstance(value, Mapping):
        return {k: bits(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    return [bits(v) for v in value] if isinstance(value, list) else repr(value)


def engines_agree(found: Mapping[str, Mapping[str, Any]]) -> None:
    """The engines' values have the same bits; complex ones are near, as arrays round otherwise."""
    (_, first), *others = found.items()
    for engine, other in others:
        if any(map(is_complex, first.values())):
            assert near(first, other), engine
        else:
            assert bits(first) == bits(other), engine


def is_complex(value: Any) -> bool:
    """Whether there are complex numbers in a value."""
    if isinstance(value, Mapping):
        return any(map(is_complex, value.values()))
    return bool(np.iscomplexobj(value))


def near(one: Any, two: Any) -> bool:
    """Whether values of the same shape differ by a few roundings of the largest number at most."""
    if isinstance(one, Mapping):
        return one.keys() == two.keys() and all(near(one[k], two[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(near, one, two))
    if not isinstance(one, (float, complex, np.ndarray)):
        return bits(one) == bits(two)
    size = np.max(np.abs(one), initial=1.0)
    return np.allclose(one, two, rtol=0, atol=1e-12 * size)


def function(text: str, name: str = "main") -> FunctionHandle:
    """A function of an assembly text."""
    return rvm.assemble(text)[name]


def agree(
    f: FunctionHandle,
    inputs: Mapping[str, Any],
    loss: str,
    *,
    step: float | None = None,
    tolerance: float | None = None,
) -> dict[str, Any]:
    """A gradient that differences confirm, that no engine has otherwise, and that left no trace."""
    before = bits(inputs)
    check = rvm.check_grad(f, inputs, loss=loss, step=step, tolerance=tolerance)
    assert check.rows, "nothing was compared"
    assert check.ok, f"\n{check}"
    found = {}
    for engine in first_and_another(ENGINES, (f.function.code, loss)):
        value, gradient = f.with_options(engine=engine).value_and_grad(loss=loss, **inputs)
        found[engine] = {"value": value, **gradient}
    engines_agree(found)
    assert bits(inputs) == before, "the inputs were changed"
    return dict(gradient)
