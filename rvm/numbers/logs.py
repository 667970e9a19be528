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
from numpy.typing import NDArray

from rvm.leaf.python import on_numbers
from rvm.numbers.base import InexactSystem, nearest, plain, refuse, shown
from rvm.numbers.code import Code, with_llvm
from rvm.numbers.elementary import text, written
from rvm.numbers.floats import is_infinite
from rvm.numbers.integers import comparisons
from rvm.numbers.llvm import Emitter, Llvm, chosen, instruction, same
from rvm.numbers.llvm_floats import float_comparisons, float_extremes
from rvm.numbers.support import name
from rvm.types import Scalar


class LogNumber:
    """A log64 as Python sees it: the number exp(log).  `float()` gives it where it fits."""

    __slots__ = ("log",)

    def __init__(self, log: float) -> None:
        self.log = log

    def __repr__(self) -> str:
        return f"LogNumber(log={self.log!r})"

    def __float__(self) -> float:
        return _number(self.log)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogNumber) and self.log == other.log

    def __hash__(self) -> int:
        return hash(("log64", self.log))


SUMS = {"+": "log_add", "-": "log_sub"}
"""The texts of what is no sum or multiple of logarithms."""


def _number(log: float) -> float:
    return float(on_numbers(text("exp"))(log))


class LogSystem(InexactSystem):
    """Numbers held as logarithms; checks compare the logarithms."""

    def __init__(self, t: Scalar) -> None:
        super().__init__(t, np.float64, 0.0, _log_codes())

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        return written(SUMS[fn]) if fn in SUMS else self.codes.get(fn)

    def literal(self, value: Any) -> float:
        if isinstance(value, LogNumber):
            return value.log
        if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is no {self.type}")
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

    def from_python(self, value: Any) -> float:
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, (Real, Decimal, LogNumber)):
            raise refuse(value, "a real number that is not negative, or a LogNumber")
        return self.literal(value)

    def to_python(self, raw: Any) -> Any:
        return raw if isinstance(raw, np.ndarray) else LogNumber(float(raw))

    def text(self, raw: Any) -> str:
        return f"{float(raw)!r}'{self.type}"


@name
def log_power_array(a: Any, y: Any) -> NDArray[Any]:
    """The logarithm of exp(a) ** y on arrays."""
    return np.where(np.equal(a, 0) | np.equal(y, 0), 0.0, np.multiply(a, y))


def _log_codes() -> dict[str, Code]:
    codes = comparisons()
    codes |= {
        "*": Code("({0} + {1})", "({0} + {1})"),
        "/": Code("({0} - {1})", "({0} - {1})"),
        "**": Code(
            "({t0} * {t1} if ({t0} := {0}) and ({t1} := {1}) else 0.0)",
            "log_power_array({0}, {1})",
        ),
        "neg": Code("(-{0})", "(-{0})"),
        "abs": Code("{0}", "{0}"),
        "sqrt": Code("({0} * 0.5)", "({0} * 0.5)"),
        "square": Code("({0} * 2.0)", "({0} * 2.0)"),
        "min": Code(
            "({t0} if ({t0} := {0}) <= ({t1} := {1}) or {t0} != {t0} else {t1})",
            "least({0}, {1})",
        ),
        "max": Code(
            "({t0} if ({t0} := {0}) >= ({t1} := {1}) or {t0} != {t0} else {t1})",
            "greatest({0}, {1})",
        ),
        "log": Code("{0}", "{0}"),
    }
    return with_llvm(codes, _llvm())


def _llvm() -> dict[str, Llvm]:
    def power(e: Emitter, a: str, y: str) -> str:
        both = (e.op(f"fcmp une double {x}, 0.0") for x in (a, y))
        product = e.op(f"fmul double {a}, {y}")
        return chosen(e, e.op(f"and i1 {', '.join(both)}"), "double", product, "0.0")

    return {
        **float_comparisons("double"),
        **float_extremes("double"),
        "*": instruction("fadd double"),
        "/": instruction("fsub double"),
        "**": power,
        "neg": instruction("fneg double"),
        "abs": same,
        "sqrt": instruction("fmul double 0.5,"),
        "square": instruction("fmul double 2.0,"),
        "log": same,
    }
