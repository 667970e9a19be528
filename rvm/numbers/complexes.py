"""Complex numbers: pairs of f64.

The functions of `c128` are those of C99 by Python's `cmath`, with NumPy's result where `cmath`
would raise an exception; so is its division (by zero: infinities and NaN).
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from numbers import Real
from typing import Any

import numpy as np

from rvm.leaf import Function, Node, function, select
from rvm.leaf.ops import BIT, C128, F64, Op, add
from rvm.leaf.python import Later
from rvm.leaf.trace import (
    Fault,
    apply,
    called,
    constant,
    equal,
    fabs,
    sqrt,
    unequal,
    unless,
    with_sign,
)
from rvm.leaf.trace import bits as bits_of
from rvm.numbers.base import InexactSystem, plain, refuse
from rvm.numbers.code import Body, Code, Codes, compiled, fill, identifier, kind_of
from rvm.numbers.floats import rounded
from rvm.numbers.integers import raised
from rvm.numbers.own import own
from rvm.numbers.support import NAMES
from rvm.types import F64 as F64_TYPE
from rvm.types import Scalar

REPAIRS = sys.version_info >= (3, 14)
"""Whether CPython repairs products and quotients that are NaN in both parts."""
LARGE = sys.float_info.max / 4
ROOT_LARGE = math.sqrt(LARGE)
LOG_LARGE = math.log(LARGE)
LEAST = sys.float_info.min
ROOT_LEAST = math.sqrt(LEAST)
RARE = Fault("rare", ArithmeticError)
"""Fails where machine code leaves an argument to `cmath`."""

Parts = tuple[Node, Node]
ByParts = Callable[..., Node | Parts]
"""A function of pairs of parts."""
ONE = constant(1.0, F64), constant(0.0, F64)


class ComplexSystem(InexactSystem):
    """c128: two f64."""

    updates = frozenset({"add", "mul"})
    factors = "nonzero"
    converts = True

    def __init__(self, t: Scalar) -> None:
        super().__init__(t, 0j, Codes({f: _maker(f, body) for f, body in BODIES.items()}))

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        code = self.codes.get(fn)
        return code if code is None else mixed(code, elems)

    def literal(self, value: Any) -> complex:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not a {self.type}")
        if isinstance(value, (complex, np.complexfloating)):
            return complex(value)
        if not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is not a value of {self.type}")
        return complex(rounded(value, F64_TYPE))

    def from_python(self, value: Any) -> complex:
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, (complex, Real, Decimal)):
            raise refuse(value, "a complex number")
        return self.literal(value)

    def text(self, raw: Any) -> str:
        im = repr(raw.imag)
        return f"{raw.real!r}{'' if im.startswith('-') else '+'}{im}j"


def parts(z: Node) -> Parts:
    """The real and the imaginary part."""
    return apply("re", z), apply("im", z)


def by_parts(f: ByParts) -> Body:
    """A function of pairs of parts as one of complex numbers."""

    def body(*args: Node) -> Node:
        found = f(*map(parts, args))
        return found if isinstance(found, Node) else apply("complex", *found)

    return body


TOTAL = ("==", "!=", "+", "-", "*", "neg", "square")
"""Functions of which Python's own text never raises an exception."""


def _maker(fn: str, f: ByParts) -> Callable[[], Code]:
    def write() -> Code:
        arity = len(inspect.signature(f).parameters)
        python, numpy = own("c128", fn)
        value = None if fn in TOTAL else Later(lambda: _total(python, numpy, arity))
        body = Function(f"complex_{identifier(fn)}", by_parts(f), (C128,) * arity)
        return Code(python, numpy, value, body, alike=fn in ("==", "!=", "+", "-", "neg"))

    return write


def _total(python: str, numpy: str, arity: int) -> Callable[..., Any]:
    """Python's value, and NumPy's where Python raises an exception."""
    first, second = compiled(python, arity, NAMES), compiled(numpy, arity, NAMES)

    def value(*args: Any) -> Any:
        try:
            return first(*args)
        except (ArithmeticError, ValueError, TypeError):
            with np.errstate(all="ignore"):
                return second(*(np.asarray(a, complex)[()] for a in args)).item()

    return value


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


# ------------------------------------------------------------------------- arithmetic


def _unrepaired(z: Parts) -> Parts:
    x, y = z
    return (unless(x, unequal(x, x) & unequal(y, y), RARE), y) if REPAIRS else z


def product(a: Parts, b: Parts) -> Parts:
    """The product by its four products."""
    return _unrepaired((a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]))


def quotient(a: Parts, b: Parts) -> Parts:
    """The quotient by Smith's method; by zero, a / |0| part by part as NumPy has it."""
    # Both cases in one: divided by the part of b that is greater.
    x, y = fabs(b[0]), fabs(b[1])
    first = x >= y
    large, small = select(first, b[0], b[1]), select(first, b[1], b[0])
    ratio = small / large
    whole, part = select(first, a[0], a[1]), select(first, a[1], a[0])
    scaled = whole * ratio
    above = whole + part * ratio, select(first, part - scaled, scaled - part)
    zero = first & equal(x, 0.0)
    below = select(zero, x, large + small * ratio)
    re, im = (select(zero, p, q) / below for p, q in zip(a, above, strict=True))
    return _unrepaired((re, im))


def power(a: Parts, b: Parts) -> Parts:
    """The power: by squaring for a small whole exponent, else by the modulus and the angle."""
    re, im = parts(apply("complex_power", apply("complex", *a), apply("complex", *b)))
    if REPAIRS:
        re = unless(re, constant(True, BIT), RARE)
    return _finite(re), _finite(im)


def _finite(x: Node) -> Node:
    return unless(x, ~(fabs(x) < math.inf), RARE)


@cache
def _whole_power(n: int) -> Function:
    def f(z: Parts) -> Parts:
        # The first product, by 1, is not left out: it has a say in the signs of zeros.
        found = raised(z, abs(n), product, ONE) if n else ONE
        return found if n > 0 else quotient(ONE, found)

    return Function(f"complex_power_{n}", by_parts(f), (C128,))


def _native_power(b: Any, x: Any, y: Any) -> Any:
    re, im = (v.aux if v.op == "constant" else None for v in y)
    if im == 0.0 and re is not None and re.is_integer() and abs(re) <= 100.0:
        return b.put(_whole_power(int(re)), x)
    pair = b.helper("rvm_complex_power", "{ double, double }", *x, *y)
    return tuple(b.op("extract", pair, kind=F64, aux=k) for k in (0, 1))


add(Op("complex_power", (C128, C128), C128, "({0} ** {1})", "", _native_power))

# ------------------------------------------------------------------------- cmath


def libm(name: str, *args: Any) -> Node:
    """A function of the C library, which `cmath` is made of."""
    return apply(f"libm_{name}", *args)


def _below(x: Node, limit: float) -> Node:
    """A number, of which |x| <= limit is checked."""
    return unless(x, ~(fabs(x) <= limit), RARE)


def _both_below(z: Parts, limit: float) -> Parts:
    return _below(z[0], limit), _below(z[1], limit)


def _bounded(z: Parts) -> Parts:
    """A number of which exp(|re|) is far from overflow and the imaginary part finite."""
    return _below(z[0], LOG_LARGE), _below(z[1], sys.float_info.max)


def _tiny(x: Node, y: Node) -> Node:
    """Whether two numbers that are not negative are both below the least normal one."""
    return (x < LEAST) & (y < LEAST)


def negative(z: Parts) -> Parts:
    """-z, part by part."""
    return -z[0], -z[1]


def _turned(f: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """-i f(iz): sines and tangents from the hyperbolic ones."""

    def turned(z: Parts) -> Parts:
        re, im = f((-z[1], z[0]))
        return im, -re

    return turned


def _exp(z: Parts) -> Parts:
    x, y = _bounded(z)
    size = libm("exp", x)
    return size * libm("cos", y), size * libm("sin", y)


def _sinh(z: Parts) -> Parts:
    x, y = _bounded(z)
    return libm("cos", y) * libm("sinh", x), libm("sin", y) * libm("cosh", x)


def _cosh(z: Parts) -> Parts:
    x, y = _bounded(z)
    return libm("cos", y) * libm("cosh", x), libm("sin", y) * libm("sinh", x)


def _tanh(z: Parts) -> Parts:
    x, y = _bounded(z)
    tanh, tan, c = libm("tanh", x), libm("tan", y), 1.0 / libm("cosh", x)
    both = tanh * tan
    below = both * both + 1.0
    return tanh * (tan * tan + 1.0) / below, tan / below * c * c


def _near_one(x: Node, y: Node) -> Node:
    h = libm("hypot", x, y)
    return (h >= 0.71) & (h <= 1.73)


@function("complex_log_near_1")
def _log_near_one(x: Node, y: Node) -> Node:
    m, n = select(x > y, x, y), select(x > y, y, x)
    return libm("log1p", (m - 1.0) * (m + 1.0) + n * n) * 0.5


@function("complex_log", guard=_near_one, cold=_log_near_one)
def _log_modulus(x: Node, y: Node) -> Node:
    """The logarithm of the modulus from the sizes of the parts."""
    return libm("log", libm("hypot", x, y))


def _log(z: Parts) -> Parts:
    x, y = _both_below(z, LARGE)
    size = fabs(x)
    size = unless(size, _tiny(size, fabs(y)), RARE)
    return called(_log_modulus, size, fabs(y)), libm("atan2", y, x)


def _sqrt(z: Parts) -> Parts:
    re, im = _both_below(z, sys.float_info.max)
    x, y = fabs(re), fabs(im)
    zero = equal(x + y, 0.0)
    x = unless(x, ~zero & _tiny(x, y), RARE)
    eighth = x * 0.125
    s = sqrt(eighth + libm("hypot", eighth, y * 0.125)) * 2.0
    d = y / (s * 2.0)
    right = re >= 0.0
    root = with_sign(select(right, d, s), im)
    return select(zero, 0.0, select(right, s, d)), select(zero, im, root)


def _determinant(a: Node, b: Node, c: Node, d: Node) -> Node:
    return a * b - c * d


def _acos(z: Parts) -> Parts:
    x, y = _both_below(z, LARGE)
    (a, b), (c, d) = _sqrt((1.0 - x, -y)), _sqrt((1.0 + x, y))
    return libm("atan2", a, c) * 2.0, libm("asinh", _determinant(c, b, d, a))


def _asinh(z: Parts) -> Parts:
    x, y = _both_below(z, LARGE)
    (a, b), (c, d) = _sqrt((1.0 + y, -x)), _sqrt((1.0 - y, x))
    re = libm("asinh", _determinant(a, d, c, b))
    return re, libm("atan2", y, _determinant(a, c, b, d))


def _atanh(z: Parts) -> Parts:
    re, im = _both_below(z, ROOT_LARGE)
    x, size = fabs(re), fabs(im)
    # The other half of the plane by atanh(z) = -atanh(-z).
    left = bits_of(re) < 0
    y = select(left, -im, im)
    x = unless(x, equal(x, 1.0) & (size < ROOT_LEAST), RARE)
    less, square = 1.0 - x, size * size
    log = libm("log1p", x * 4.0 / (less * less + square)) * 0.25
    turn = -libm("atan2", y * -2.0, less * (1.0 + x) - square) * 0.5
    return select(left, -log, log), select(left, -turn, turn)


def _leg(z: Parts) -> Parts:
    return _sqrt(product((1.0 - z[0], 0.0 - z[1]), (1.0 + z[0], 0.0 + z[1])))


BODIES: dict[str, ByParts] = {
    "==": lambda a, b: equal(a[0], b[0]) & equal(a[1], b[1]),
    "!=": lambda a, b: unequal(a[0], b[0]) | unequal(a[1], b[1]),
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[0], a[1] - b[1]),
    "*": product,
    "/": quotient,
    "**": power,
    "neg": negative,
    "square": lambda z: product(z, z),
    "abs": lambda z: libm("hypot", *z),
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "atan": _turned(_atanh),
    "asin": _turned(_asinh),
    "sin": _turned(_sinh),
    "tan": _turned(_tanh),
    "cos": lambda z: _cosh((-z[1], z[0])),
    "acos": _acos,
    "leg": _leg,
    "sech": lambda z: quotient(ONE, _cosh(z)),
}
"""The functions by the parts of their arguments, which machine code is made of.

They do what CPython does for ordinary arguments in the same order, so that every bit agrees.
Arguments of `cmath`'s functions that are infinite or NaN, or so large or small that it takes
another way, fail a check, as do powers that are not finite.  From Python 3.14 on products and
quotients with two NaNs are repaired, which is left to it as well, and so are all powers there,
whose zeros have other signs.  CPython must be compiled without fused multiply-adds, as it is for
x86.
"""
