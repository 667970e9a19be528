"""log64: a number that is not negative, held as its natural logarithm.

Products, quotients, powers, `sqrt` and `square` are sums and multiples of logarithms and neither
overflow nor underflow; `x + y` and `x - y` go through `log1p` and `expm1` without leaving the
logarithms. Zero is the logarithm -inf. A negative difference is NaN, as is the quotient 0/0; `neg`
is the reciprocal, whose logarithm is the negative. x ** 0 and 1 ** y are 1 for all x and y.
"""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from rvm.leaf import select
from rvm.leaf.ops import F64
from rvm.leaf.python import on_numbers
from rvm.leaf.trace import called, constant, unequal
from rvm.numbers.base import InexactSystem, nearest, shown
from rvm.numbers.code import Body, codes_of, comparisons
from rvm.numbers.elementary import text
from rvm.numbers.floats import extremes, is_infinite, rounded
from rvm.types import F64 as F64_TYPE
from rvm.types import Scalar


class LogNumber:
    """A log64 as Python sees it: the number exp(log).  `float()` gives it where it fits."""

    __slots__ = ("log",)

    def __init__(self, log: float) -> None:
        self.log = float(log)

    def __repr__(self) -> str:
        return f"LogNumber(log={self.log!r})"

    def __str__(self) -> str:
        return f"{self.log!r}'log64"

    def __float__(self) -> float:
        return _number(self.log)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogNumber) and self.log == other.log

    def __hash__(self) -> int:
        return hash(("log64", self.log))


def _number(log: float) -> float:
    return float(on_numbers(text("exp"))(log))


class LogSystem(InexactSystem):
    """Numbers held as logarithms; checks compare the logarithms."""

    updates = frozenset({"mul"})
    factors = "finite"
    start = 1
    converts = True
    kinds = (Real, Decimal, LogNumber)
    kind = "a real number that is not negative, or a LogNumber"

    held_as = "logarithms"

    def __init__(self, t: Scalar) -> None:
        super().__init__(t, 0.0, codes_of(t.name, {"": (F64,)}, log_bodies()))

    def literal(self, value: Any) -> float:
        if isinstance(value, LogNumber):
            return value.log
        if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is not a value of {self.type}")
        if isinstance(value, Decimal) and not value.is_finite():
            value = float(value)
        if value < 0:
            raise ValueError(f"{shown(value)} is negative, and a log64 holds no negative number")
        number = nearest(value)
        if number in (0.0, math.inf) and value and not is_infinite(value):
            # Its logarithm is an f64 all the same.
            if isinstance(value, Decimal):
                return float(value.ln())
            top, bottom = value.as_integer_ratio()
            return math.log(top) - math.log(bottom)
        return float(on_numbers(text("log"))(number))

    def raw(self, value: Any) -> float:
        if isinstance(value, (bool, complex)):
            raise ValueError(f"a typed literal of {self.type} is its logarithm, not {value}")
        return rounded(value, F64_TYPE)

    def stored(self, name: str) -> str:
        return f"np.log({name}, dtype=np.{self.dtype.name})"

    def to_python(self, raw: Any) -> Any:
        return raw if isinstance(raw, np.ndarray) else LogNumber(float(raw))

    def text(self, raw: Any) -> str:
        return f"{float(raw)!r}'{self.type}"


def log_bodies() -> dict[str, Body]:
    """The functions of numbers held as logarithms."""
    return {
        **comparisons(),
        **extremes(),
        "+": lambda a, b: called(text("log_add"), a, b),
        "-": lambda a, b: called(text("log_sub"), a, b),
        "*": lambda a, b: a + b,
        "/": lambda a, b: a - b,
        "**": lambda a, y: select(unequal(a, 0.0) & unequal(y, 0.0), a * y, constant(0.0, F64)),
        "neg": lambda x: -x,
        "abs": lambda x: x,
        "sqrt": lambda x: x * 0.5,
        "square": lambda x: x * 2.0,
        "log": lambda x: x,
    }
