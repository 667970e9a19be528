"""Effects: what an extern block does outside the machine.  They change no place."""

from __future__ import annotations

from typing import Any

import numpy as np

from rvm.faults import MachineError, RvmError, UsageError
from rvm.numbers import system
from rvm.state import Options
from rvm.stmt import Effect
from rvm.types import Scalar


def perform(effect: Effect, values: list[Any], options: Options) -> None:
    """Print, assert or call back, with values as Python sees them."""
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
        _call_back(effect.text, shown, options)


def _text(template: str, values: list[Any]) -> str:
    """The line to print: `{}` is filled in order; values left over follow after spaces."""
    parts = template.split("{}")
    out, rest = parts[0], list(values)
    for part in parts[1:]:
        out += (str(rest.pop(0)) if rest else "{}") + part
    return " ".join([out, *map(str, rest)]) if out else " ".join(map(str, rest))


def _call_back(name: str, values: list[Any], options: Options) -> None:
    f = options.callbacks.get(name)
    if f is None:
        raise UsageError(
            "U003",
            f"the program calls back `{name}`, which was not given",
            hint=f"pass callbacks={{{name!r}: function}}",
        )
    try:
        f(*map(_read_only, values))
    except RvmError:
        raise
    except Exception as error:
        raise MachineError(
            "R014", f"the callback `{name}` raised {type(error).__name__}: {error}"
        ) from error


def _read_only(value: Any) -> Any:
    """An array as a view that a callback cannot write; a number as it is."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.setflags(write=False)
    return value
