"""The code for a function and its argument types: the only access that engines use."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from rvm.faults import DefinitionError
from rvm.isa.functions.conversions import conversion_target
from rvm.isa.rows import FUNCTIONS, FunctionRow
from rvm.leaf.python import Later
from rvm.leaf.trace import called
from rvm.numbers import NAMES, SYSTEMS, system
from rvm.numbers.code import Code, compiled
from rvm.numbers.conversions import conversion, on_real
from rvm.numbers.elementary import TEXTS, text
from rvm.types import Scalar

ELEMENTARY = {**{name: name for name in TEXTS}, "**": "pow"}
"""Names of the texts of functions of real numbers."""


def deciding(elems: tuple[Scalar, ...]) -> Scalar:
    """The type whose arithmetic a function uses: a complex one, else the first that is not a bool.
    The type whose arithmetic a function uses: a complex one, else the first that is not a bool.
    """
    for t in elems:
        if t.is_complex:
            return t
    return next((t for t in elems if not t.is_bool), elems[0])


@cache
def implementation(fn: str, elems: tuple[Scalar, ...]) -> Code:
    """The code of a function on arguments of the element types `elems`.

    DefinitionError D010 if there is none, for example for a user's function on types that it does
    not name.
    """
    target = conversion_target(fn)
    if target is not None:
        return conversion(target, elems[0])
    row: FunctionRow | None = FUNCTIONS.get(fn)
    # Of what only gives its shape the type does not matter.
    t = deciding(elems[:-1] if row is not None and row.takes_shape else elems)
    numbers = system(t)
    if fn == "abs2" and not t.is_complex:
        fn, row = "square", None
    code = numbers.code(fn, elems) if t.name in SYSTEMS else None
    if code is None and row is not None:
        # A type with a number system of its own is none of the kinds that others are.
        kind = t.name if t.name in SYSTEMS else t.row.kind
        own = row.code.get(t.name) or row.code.get(kind) or row.code.get("*")
        if own is not None:
            return own if isinstance(own, Code) else own(t)
    code = code or numbers.code(fn, elems)
    if code is None and (t.is_float or t.is_fixed):
        body = row.body if row is not None else None
        if body is None and fn in ELEMENTARY:
            body = partial(called, text(ELEMENTARY[fn]))
        if body is not None:
            return on_real(fn, body, elems, t)
    if code is None:
        types = ", ".join(map(str, elems))
        raise DefinitionError(
            "D010",
            f"`{fn}` has no code for ({types})",
            hint="give the function a `code` for this type, or convert the argument",
        )
    return code


def is_alike(fn: str, elems: tuple[Scalar, ...]) -> bool:
    """Whether a function's NumPy code gives the bits of its scalar code."""
    return implementation(fn, elems).alike or FUNCTIONS[fn].moves


@cache
def value(fn: str, elems: tuple[Scalar, ...]) -> Callable[..., Any]:
    """The total function on raw scalars (for a function of arrays: on arrays)."""
    code = implementation(fn, elems)
    found = code.value or compiled(code.python, len(elems), NAMES)
    return found.function if isinstance(found, Later) else found


@cache
def array_value(fn: str, elems: tuple[Scalar, ...]) -> Callable[..., Any]:
    """The function on arrays and raw scalars mixed, to be called under `np.errstate(all="ignore")`.

    Lengths that do not broadcast are a ValueError.
    """
    return compiled(implementation(fn, elems).numpy, len(elems), NAMES)


def register_callable(name: str, f: Callable[..., Any]) -> str:
    """Register a user's Python function for use in generated code, and return its name there.

    A row's template can then call it: `Code(register_callable("gamma", math.gamma) + "({0})")`.
    """
    stem = "user_" + re.sub(r"\W", "_", name)
    unique, k = stem, 1
    while NAMES.get(unique, f) is not f:
        k += 1
        unique = f"{stem}_{k}"
    NAMES[unique] = f
    return unique
