"""Effects: what an extern block does outside the machine, changing no place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rvm.faults import MachineError, UsageError
from rvm.host.signals import at_once
from rvm.numbers import system
from rvm.state import Options
from rvm.stmt import Effect
from rvm.types import Scalar


def perform(effect: Effect, values: list[Any], options: Options) -> None:
    """Print, assert or call back, with values as Python sees them.

    What a callback or `output=` raises is the caller's own, and goes to the caller as it is.
    """
    shown = [
        system(a.type).to_python(v) if isinstance(a.type, Scalar) else v
        for a, v in zip(effect.args, values, strict=True)
    ]
    if effect.kind == "print":
        options.write(_text(effect.text, shown))
    elif effect.kind == "assert":
        if not values[0]:
            raise MachineError(
                "R013",
                effect.text or "an assertion does not hold",
                values={f"value {k}": v for k, v in enumerate(shown[1:], 1)},
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


def _text(template: str, values: list[Any]) -> str:
    """The line to print: `{}` is filled in order; values left over follow after spaces."""
    parts = template.split("{}")
    out, rest = parts[0], list(values)
    for part in parts[1:]:
        out += (str(rest.pop(0)) if rest else "{}") + part
    return " ".join([out, *map(str, rest)]) if out else " ".join(map(str, rest))


@at_once
def _call_back(callback: Callable[..., object], values: list[Any]) -> None:
    callback(*map(_read_only, values))


def _read_only(value: Any) -> Any:
    """An array as a view that a callback cannot write; a number as it is."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.setflags(write=False)
    return value
