"""Complex numbers: pairs of f64.

Products are computed from the four products of parts, quotients by R. L. Smith's method (by zero:
infinities and NaN), powers by squaring if the exponent is a whole number below 101, otherwise by
the modulus and the angle. Functions are texts over those of f64, with the branch cuts of C99; if a
part is infinite or NaN, their values are those of C99.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from rvm.leaf import Function, Node
from rvm.leaf.ops import C128, F64, Op, add
from rvm.leaf.python import Later, on_kinds, total
from rvm.leaf.trace import apply, equal, unequal
from rvm.numbers.base import InexactSystem
from rvm.numbers.code import Code, Codes, coded, compiled, fill, identifier, kind_of
from rvm.numbers.complex_functions import (
    FUNCTIONS,
    WHOLE,
    ByParts,
    by_parts,
    code,
    divided,
    multiplied,
    of,
    parts,
    power,
    whole_power,
)
from rvm.numbers.elementary.pairs import negative
from rvm.numbers.floats import rounded
from rvm.numbers.own import own
from rvm.numbers.support import NAMES
from rvm.types import F64 as F64_TYPE
from rvm.types import Scalar


class ComplexSystem(InexactSystem):
    """c128: two f64."""

    updates = frozenset({"add", "mul"})
    factors = "nonzero"
    converts = True
    kinds = (complex, Real, Decimal)
    kind = "a complex number"

    def __init__(self, t: Scalar) -> None:
        makers = {f: _maker(f, body) for f, body in BODIES.items()}
        super().__init__(t, 0j, Codes({**makers, **{f: partial(code, f) for f in FUNCTIONS}}))

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        found = self.codes.get(fn)
        return found if found is None else mixed(found, elems)

    def literal(self, value: Any) -> complex:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not a {self.type}")
        if isinstance(value, (complex, np.complexfloating)):
            return complex(value)
        if not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is not a value of {self.type}")
        return complex(rounded(value, F64_TYPE))

    def text(self, raw: Any) -> str:
        im = repr(raw.imag)
        return f"{raw.real!r}{'' if im.startswith('-') else '+'}{im}j"


TOTAL = ("==", "!=", "+", "-", "*", "neg", "square")
"""Functions of which Python's own text never raises an exception."""


def _maker(fn: str, f: ByParts) -> Callable[[], Code]:
    def write() -> Code:
        arity = len(inspect.signature(f).parameters)
        python, numpy = own("c128", fn)
        made = coded(f"complex_{identifier(fn)}", by_parts(f), (C128,) * arity, python, numpy)
        return replace(made, value=None) if python and fn in TOTAL else made

    return write


def mixed(code: Code, elems: tuple[Scalar, ...]) -> Code:
    """A function of complex numbers on some that are real: they are converted.

    Python 3.14 would take their imaginary parts for none at all, instead of 0.
    """
    if all(t.is_complex for t in elems):
        return code
    slots = [f"{{{k}}}" if t.is_complex else f"complex({{{k}}})" for k, t in enumerate(elems)]
    f, inner = code.value or compiled(code.python, len(elems), NAMES), code.body
    assert inner is not None

    def value(*args: Any) -> Any:
        return f(*map(complex, args))

    def body(*args: Node) -> Node:
        return inner.body(*(_converted(x) for x in args))

    kinds = tuple(map(kind_of, elems))
    found = Function(f"{inner.name}_{'_'.join(kinds)}", body, kinds)
    return Code(fill(code.python, *slots), code.numpy, value, found, code.alike)


def _converted(x: Node) -> Node:
    if x.kind == C128:
        return x
    return apply("complex", x if x.kind == F64 else apply(f"f64_of_{x.kind}", x), 0.0)


def _power(a: Node, b: Node) -> Node:
    return apply("complex_power", a, b)


def _native_power(b: Any, x: Any, y: Any) -> Any:
    re, im = (v.aux if v.op == "constant" else None for v in y)
    if im == 0.0 and re is not None and re.is_integer() and abs(re) <= WHOLE:
        return b.put(whole_power(int(re)), x)
    return b.put(POWER, x, y)


POWER = Function("complex_power_of", by_parts(power), (C128, C128))
NAMES["complex_power"] = Later(lambda: total(POWER))
NAMES["complex_power_array"] = Later(lambda: on_kinds(POWER))
add(
    Op(
        "complex_power",
        (C128, C128),
        C128,
        "complex_power({0}, {1})",
        "complex_power_array({0}, {1})",
        _native_power,
    )
)
BODIES: dict[str, ByParts] = {
    "==": lambda a, b: equal(a[0], b[0]) & equal(a[1], b[1]),
    "!=": lambda a, b: unequal(a[0], b[0]) | unequal(a[1], b[1]),
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[0], a[1] - b[1]),
    "*": multiplied,
    "/": divided,
    "**": lambda a, b: parts(_power(apply("complex", *a), apply("complex", *b))),
    "neg": negative,
    "square": lambda z: multiplied(z, z),
    "abs": lambda z: of("hypot", *z),
}
"""The arithmetic by the parts of its arguments."""
