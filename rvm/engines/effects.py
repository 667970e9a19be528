"""Effects: actions outside the machine, which change no place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rvm.codes.templates import BASE_SIXTEEN, filled
from rvm.expr import Const, Expr
from rvm.faults import AssertionFailed, MachineError, UsageError
from rvm.host.signals import at_once
from rvm.numbers import system
from rvm.state import Options
from rvm.stmt import Effect
from rvm.types import Array, Scalar


def perform(effect: Effect, values: list[Any], options: Options) -> None:
    """Print, assert or call back, with values as Python sees them.

    What a callback or `output=` raises is the caller's own, and goes to the caller as it is.
    """
    shown = [
        system(a.type).to_python(v) if isinstance(a.type, Scalar) else v
        for a, v in zip(effect.args, values, strict=True)
    ]
    if effect.kind == "print":
        text, rest = _filled(effect.text, list(map(_told, effect.args, shown)))
        options.write(" ".join([*filter(None, (text,)), *map(_line, rest)]))
    elif effect.kind == "assert":
        if not values[0]:
            text, rest = _filled(effect.text, list(map(_told, effect.args, shown))[1:])
            # One that cannot hold is an error that the program reports.
            never = isinstance(effect.args[0], Const)
            raise (MachineError if never else AssertionFailed)(
                "R013",
                text or "an assertion does not hold",
                values={f"value {k}": v for k, v in enumerate(rest, len(shown) - len(rest))},
            )
    else:
        callback = options.callbacks.get(effect.text)
        if callback is None:
            raise UsageError(
                "U003",
                f"the program calls back `{effect.text}`, which was not given",
                hint=f"pass callbacks={{{effect.text!r}: function}}",
            )
        _call_back(callback, shown)


def _told(arg: Expr, value: Any) -> Any:
    """An array with its numbers, of types whose raw values are not the numbers themselves."""
    if not isinstance(value, np.ndarray) or not isinstance(arg.type, Array):
        return value
    told = system(arg.type.elem).told(value)
    return value if told is value else np.array(told, object).reshape(value.shape)


def _filled(template: str, values: list[Any]) -> tuple[str, list[Any]]:
    """A text whose `{}` are filled in order, and the values left over.

    `{:[]}` has a pair of brackets, between which elements are separated by commas, rows in brackets
    again; a stack has its top first, and an empty one is `nil` in `{:<]}`.
    """
    rest = list(values)

    def fill(form: str, hole: str) -> str:
        if not rest:
            return hole
        value = rest.pop(0)
        if form == BASE_SIXTEEN:
            return _in_base_sixteen(value)
        return _listed(value, *form) if form else _line(value)

    return filled(template, fill), rest


def _in_base_sixteen(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, formatter={"int": "{:x}".format})
    return f"{value:x}"


def _line(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, formatter={"object": str} if value.dtype == object else None)
    if isinstance(value, tuple) and not any(isinstance(v, (int, float, complex)) for v in value):
        return f"({', '.join(map(str, value))}{',' * (len(value) == 1)})"
    return str(value)


def _listed(value: Any, begin: str, end: str) -> str:
    if isinstance(value, tuple):
        if begin == "<" and not value:
            return "nil"
        value = value[::-1]
    elif not isinstance(value, np.ndarray) or not value.ndim:
        return str(value)
    return begin + ", ".join(_listed(v, begin, end) for v in value) + end


@at_once
def _call_back(callback: Callable[..., object], values: list[Any]) -> None:
    callback(*map(_read_only, values))


def _read_only(value: Any) -> Any:
    """An array as a view that a callback cannot write; a number as it is."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.setflags(write=False)
    return value
