"""Names in generated Python source, besides those of the number systems."""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from rvm.engines.evaluate import cut, has_shape, plain
from rvm.engines.heap import drop_array, fits, forget, make_array, pop, push, residue
from rvm.engines.log import keep, keep_floats, taken, taken_float
from rvm.faults import RvmError
from rvm.numbers.base import NumberSystem
from rvm.numbers.gaps import lost
from rvm.state import State


class Trouble(Exception):
    """An instruction that the reference engine must execute: usually, to report an error."""


REFUSALS = (ArithmeticError, LookupError, ValueError, TypeError, MemoryError, RvmError, Trouble)
"""The exceptions by which an instruction is left to the reference engine.

Any other comes from outside, through `PyThreadState_SetAsyncExc` or a trace function, and perhaps
after the instruction has changed something: it must not be executed once more.
"""


def trouble() -> NoReturn:
    """Bail out of the instruction, before it has changed anything."""
    raise Trouble


def exchange(a: Any, b: Any) -> None:
    """Exchange the contents of two array views of one shape; the same view is left alone."""
    if a.shape != b.shape:
        raise Trouble
    saved = a.copy()
    a[...] = b
    b[...] = saved


def store_all(views: tuple[Any, ...], values: tuple[Any, ...]) -> None:
    """Store values, all of them computed, into views."""
    for view, value in zip(views, values, strict=True):
        fits(view, value)
    kept = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    for view, value in zip(views, kept, strict=True):
        view[...] = value


def remake_array(state: State, sys: NumberSystem, shape: tuple[int, ...], value: Any) -> Any:
    """A new array that `value` and the gaps on top of the strict log give."""
    made = make_array(state, sys, shape, value)
    try:
        made[...] = taken(state, (sys, made))[0]
    except REFUSALS:
        state.account.live_bytes -= made.nbytes
        raise
    return made


def signs(x: float | complex) -> tuple[float, float]:
    """The signs of a number's parts, which zeros have as well."""
    return math.copysign(1.0, x.real), math.copysign(1.0, x.imag)


def span(lo: int | None, hi: int | None, by: int | None, length: int) -> slice:
    """A slice within a dimension; Trouble if it is out of bounds."""
    found = cut(lo, hi, by, length)
    if found is None:
        raise Trouble
    return found


def shaped(view: Any, *dims: int) -> Any:
    """The elements of one axis arranged in rows; Trouble if the number differs."""
    if not has_shape(dims, len(view)):
        raise Trouble
    return view.reshape(dims)


def factor(value: Any, kind: str) -> Any:
    """A factor that can be divided out again; Trouble if it is not finite or zero."""
    if not (np.all(np.isfinite(value)) and (kind == "finite" or np.all(np.not_equal(value, 0)))):
        raise Trouble
    return value


def defined_in(module: Mapping[str, Any]) -> dict[str, object]:
    """The functions and classes that a module defines, by their names."""
    own = module["__name__"]
    return {
        k: v for k, v in module.items() if getattr(v, "__module__", None) == own and callable(v)
    }


SUPPORT: dict[str, object] = {
    **defined_in(globals()),
    "REFUSALS": REFUSALS,
    "cisfinite": cmath.isfinite,
    "drop_array": drop_array,
    "fits": fits,
    "forget": forget,
    "inf": math.inf,
    "isfinite": math.isfinite,
    "keep": keep,
    "keep_floats": keep_floats,
    "lost": lost,
    "make_array": make_array,
    "np": np,
    "plain": plain,
    "pop": pop,
    "push": push,
    "residue": residue,
    "taken": taken,
    "taken_float": taken_float,
}
