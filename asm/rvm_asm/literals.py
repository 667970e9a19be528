"""Typed literals, `3'u8` or `-0.5'log64`: every constant of a program, exactly.

The value of a typed literal is *raw*: for a `fixed` the integer that is stored (`1'fixed(30)` is
2**-30), for a `log64` the logarithm, for others the number.  A plain literal takes the type that
its use requires, and a value of that type.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from rvm.expr import Const
from rvm.numbers import system
from rvm.numbers.floats import rounded
from rvm.types import F64, Scalar

WORDS = {"true": True, "false": False, "inf": math.inf, "nan": math.nan}
"""Literals that are words."""
NO_NUMBER = "a text is not a number"
TEXTS = '`alloc t: u8[5] = "hello"` and `add t, "hello"` take its bytes; one byte is `\'h\'`'
_MAX_DIGITS = 400
"""Longer integers fit no type; the limit keeps reading them fast."""
_EXACT_DIGITS = 17
"""Decimal literals with more digits are kept as decimals: a `fixed` may hold them all."""


def number(text: str) -> Any:
    """The value of a numeric literal; None if it is larger than any number.

    ValueError if it is imaginary and the part is a whole number that no f64 is.
    """
    plain = text.replace("_", "")
    if plain[-1] == "j":
        imag = number(plain[:-1])
        return None if imag is None else complex(0.0, rounded(imag, F64))
    if plain.isdigit():
        return int(plain) if len(plain) <= _MAX_DIGITS else None
    if plain[1:2] in ("x", "X", "b", "B", "o", "O"):
        return int(plain, 0) if 2 < len(plain) <= _MAX_DIGITS else None
    value = float(plain)
    if math.isinf(value):
        return None
    if len(plain) > _EXACT_DIGITS and "e" not in plain and "E" not in plain:
        return Decimal(plain)
    return value


def by_parts(re: Any, im: Any) -> complex:
    """A complex number by its parts, as literals; ValueError for a whole number that no f64 is."""
    return complex(rounded(re, F64), rounded(im, F64))


def raw_constant(value: Any, t: Scalar) -> Any:
    """The raw value of a typed literal; ValueError if there is none."""
    return system(t).raw(value)


def plain_literal(value: Any) -> str | None:
    """A number as a literal without a type; None if only a typed literal expresses it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return _complex_literal(value)
    return repr(value)


def _complex_literal(value: complex) -> str | None:
    re, im = value.real, value.imag
    if math.isnan(re) or math.isnan(im) or math.isinf(re) or math.isinf(im):
        return None
    if re == 0.0 and math.copysign(1.0, re) > 0 and math.copysign(1.0, im) > 0:
        return f"{im!r}j"
    sign = "-" if math.copysign(1.0, im) < 0 else "+"
    return f"({re!r} {sign} {abs(im)!r}j)"


def typed_literal(const: Const) -> str:
    """A constant as a typed literal."""
    t, value = const.type, const.value
    if isinstance(value, complex):
        return f"({value.real!r}, {value.imag!r})'{t}"
    if isinstance(value, bool):
        return f"{'true' if value else 'false'}'{t}"
    return f"{value!r}'{t}"
