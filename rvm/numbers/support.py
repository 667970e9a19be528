"""The names that code templates use, and the faults that numbers raise.

`NAMES` is the namespace of generated source: that of the leaf operations and the helpers that the
number systems register with `@name`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rvm.faults import MachineError
from rvm.host.once import enter, taken
from rvm.leaf.python import NAMES as NAMES

F = TypeVar("F", bound=Callable[..., Any])


class NumberFault(MachineError, ArithmeticError):
    """A value that an exact type does not have: a division by zero, a number out of range.

    Also an ArithmeticError, so that generated code hands it to the reference engine.
    """


def name(f: F) -> F:
    """Enter a helper in `NAMES` under its own name."""
    if taken(NAMES, f.__name__):
        raise ValueError(f"the name {f.__name__} is taken")
    enter(NAMES, f.__name__, f)
    return f


def division_by_zero(a: Any) -> NumberFault:
    """R005: an exact number divided by zero."""
    return NumberFault("R005", "division by zero", values={"dividend": a, "divisor": 0})


def out_of_range(x: Any, to: str) -> NumberFault:
    """R009: a value that the type `to` does not hold."""
    return NumberFault(
        "R009",
        f"the value does not fit {to}",
        values={"value": x},
        hint="the type has no infinity and no NaN, and a limited range",
    )


def outside_domain(message: str, **values: Any) -> NumberFault:
    """R015: an argument outside the domain of an exact function."""
    return NumberFault("R015", message, values=values)


def even_factor(k: Any) -> NumberFault:
    """R007: an integer multiplied by an even number, which loses its highest bit."""
    return NumberFault(
        "R007",
        "multiplying by this loses the value",
        values={"factor": k},
        hint="the factor of an integer must be odd",
    )


def unequal_lengths(a: Any, b: Any) -> NumberFault:
    """R008: arrays whose lengths do not go together."""
    return NumberFault("R008", f"lengths do not match: {a} and {b}", values={"one": a, "other": b})


def index_fault(index: int, length: int, message: str) -> NumberFault:
    """R003: an index that is negative or not below the length."""
    return NumberFault("R003", message, values={"index": index, "length": length})
