"""Functions of complex numbers by their parts, with the same bits wherever they are evaluated.

They are texts over those of f64, for all finite numbers; most follow W. Kahan, "Branch cuts for
complex elementary functions" (1987), as `cmath` does.  If a part is infinite or NaN, the values are
those of C99, by `cmath`, and those of `leg` and `sech` limits; no rounding is involved.
"""

from __future__ import annotations

import cmath
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.leaf import Function, Node, constant, select
from rvm.leaf.ops import C128, F64
from rvm.leaf.python import NAMES, on_kinds, total
from rvm.leaf.trace import Fault, apply, bits, called, equal, fabs, sqrt, unless, with_sign
from rvm.numbers.code import Body, Code
from rvm.numbers.elementary import text
from rvm.numbers.elementary.pairs import Pair, chosen, plus, product

Parts = tuple[Node, Node]
ByParts = Callable[..., Node | Parts]
"""A function of pairs of parts."""
LARGEST = sys.float_info.max
RARE = Fault("rare", ArithmeticError)
"""Fails where machine code leaves an argument to the reference engine."""
ONE: Parts = constant(1.0, F64), constant(0.0, F64)
LN2 = math.log(2)


def parts(z: Node) -> Parts:
    """The real and the imaginary part."""
    return apply("re", z), apply("im", z)


def by_parts(f: ByParts) -> Body:
    """A function of pairs of parts as one of complex numbers."""

    def body(*args: Node) -> Node:
        found = f(*map(parts, args))
        return found if isinstance(found, Node) else apply("complex", *found)

    return body


def of(name: str, *args: Any) -> Node:
    """An elementary function of f64."""
    return called(text(name), *args)


def larger(x: Node, y: Node) -> Parts:
    """The sizes of two numbers, the larger first."""
    a, b = fabs(x), fabs(y)
    return select(a > b, a, b), select(a > b, b, a)


def multiplied(a: Parts, b: Parts) -> Parts:
    """The product by its four products."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def divided(a: Parts, b: Parts) -> Parts:
    """The quotient by R. L. Smith's method (1962); by zero a / |0|, part by part."""
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
    return re, im


# ------------------------------------------------------------------------- exponentials

FAR = 700.0
"""Beyond this exponentials may overflow where their product with a sine does not."""
SHIFT = 96.0
VERY_FAR = 800.0
"""Up to this `SHIFT` brings exponentials back to where they are finite."""
MOST = 1460.0
"""Beyond this they overflow times the least sine too, that of the least float."""


def _shifted(x: Node) -> tuple[Node, Callable[[Node], Node]]:
    """A number that exponentials of are finite, and what multiplies by the factor missing then."""
    size = fabs(x)
    far, very_far = size > FAR, size > VERY_FAR
    # The exponential of what remains brings all sines into the normal range.
    less = select(very_far, select(size < MOST, size, MOST) - (MOST - FAR), size - SHIFT)
    first = select(very_far, math.exp((MOST - FAR) / 2), select(far, math.exp(SHIFT), 1.0))
    second = select(very_far, math.exp((MOST - FAR) / 2), 1.0)
    return select(far, with_sign(less, x), x), lambda v: v * first * second


def _exp(z: Parts) -> Parts:
    x, y = z
    less, raised = _shifted(select(x > 0.0, x, 0.0))
    size = of("exp", select(x > 0.0, less, x))
    return raised(size * of("cos", y)), raised(size * of("sin", y))


def _sinh(z: Parts) -> Parts:
    x, raised = _shifted(z[0])
    return raised(of("cos", z[1]) * of("sinh", x)), raised(of("sin", z[1]) * of("cosh", x))


def _cosh(z: Parts) -> Parts:
    x, raised = _shifted(z[0])
    return raised(of("cos", z[1]) * of("cosh", x)), raised(of("sin", z[1]) * of("sinh", x))


def _expm1(z: Parts) -> Parts:
    x, y = z
    re, im = _exp(z)
    near = fabs(x) < FAR
    inside = select(near, x, 0.0)
    half = of("sin", y * 0.5)
    close = of("expm1", inside) * of("cos", y) - half * half * 2.0
    real = equal(y, 0.0)
    re = select(near, close, re - select(x < 0.0, 1.0, 0.0))
    return select(real, of("expm1", x), re), select(real, y, im)


def _tanh(z: Parts) -> Parts:
    x, y = z
    tanh, tan, c = of("tanh", x), of("tan", y), 1.0 / of("cosh", x)
    both = tanh * tan
    below = both * both + 1.0
    return tanh * (tan * tan + 1.0) / below, tan / below * c * c


def _sech(z: Parts) -> Parts:
    x, y = z
    size = fabs(x)
    far = size > 40.0
    e = of("exp", -size)
    sine = of("sin", y)
    beyond = e * of("cos", y) * 2.0, e * select(x < 0.0, sine, -sine) * 2.0
    # So that the zeros of real arguments keep the signs that conjugates have.
    one = constant(1.0, F64), constant(-0.0, F64)
    return chosen(far, beyond, divided(one, _cosh((select(far, 40.0, x), y))))


def _turned(f: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """-i f(iz): sines and tangents from the hyperbolic ones."""

    def turned(z: Parts) -> Parts:
        re, im = f((-z[1], z[0]))
        return im, -re

    return turned


# ------------------------------------------------------------------------- logarithms and roots


def moderate(z: Parts) -> tuple[Parts, Node]:
    """A number brought from where squares overflow or vanish, by a power of 2, and its exponent."""
    size, _ = larger(*z)
    small, large = size < 2.0**-400, size > 2.0**400
    factor = select(small, 2.0**600, select(large, 2.0**-600, 1.0))
    octaves = select(small, -600.0, select(large, 600.0, 0.0))
    return (z[0] * factor, z[1] * factor), octaves


def squares_less_one(m: Node, n: Node) -> Pair:
    """m**2 + n**2 - 1 near 0, for m > n > 0, with twice the digits of a float."""
    inside = select(m < 2.0, m, 2.0)
    return plus(product(inside - 1.0, inside + 1.0), product(n, n))


def log_modulus(z: Parts, above: Pair, name: str = "log", unit: float = 1.0) -> Node:
    """The logarithm (the function `name`) of |z|, `above` being the square of that less 1."""
    u, low = above
    near = fabs(u) < 0.5
    inside = select(near, u, 0.0)
    # log(1 + u + low) = log(1 + u) + low / (1 + u).
    close = (of("log1p", inside) + select(near, low, 0.0) / (inside + 1.0)) * (0.5 * unit)
    return select(near, close, of(name, of("hypot", *z)))


def logarithm(z: Parts, name: str = "log", unit: float = 1.0) -> Parts:
    """A logarithm to the base e**(1 / unit); `name` is its function of f64."""
    scaled, octaves = moderate(z)
    above = squares_less_one(*larger(*scaled))
    angle = of("atan2", z[1], z[0])
    re = log_modulus(scaled, above, name, unit) + octaves * (LN2 * unit)
    return re, angle if unit == 1.0 else angle * unit


def _sqrt(z: Parts) -> Parts:
    re, im = z
    size, _ = larger(re, im)
    small = size < 2.0**-400
    up, back = select(small, 2.0**600, 1.0), select(small, 2.0**-300, 1.0)
    x, y = fabs(re) * up, fabs(im) * up
    zero = equal(size, 0.0)
    eighth = x * 0.125
    s = sqrt(eighth + of("hypot", eighth, y * 0.125)) * 2.0
    d = y / (select(zero, 1.0, s) * 2.0)
    s, d = s * back, d * back
    right = re >= 0.0
    root = with_sign(select(right, d, s), im)
    return select(zero, 0.0, select(right, s, d)), select(zero, im, root)


def _leg(z: Parts) -> Parts:
    x, y = z
    size, _ = larger(x, y)
    far = size > 2.0**400
    a, b = chosen(far, ONE, z)
    # With the signs of zeros, which say on which side of its cut an argument is.
    near = _sqrt(((1.0 - a) * (1.0 + a) + b * b, a * b * -2.0))
    # The root of -z**2 whose real part is not negative.
    return chosen(far, chosen(bits(y) < 0, (-y, x), (y, -x)), near)


# ------------------------------------------------------------------------- arcs


def _determinant(a: Node, b: Node, c: Node, d: Node) -> Node:
    return a * b - c * d


def _brought(z: Parts) -> tuple[Parts, Node]:
    """A scaled-down number compared with which 1 is negligible, and the logarithm of the factor."""
    size, _ = larger(*z)
    large = size > 2.0**400
    factor = select(large, 2.0**-300, 1.0)
    return (z[0] * factor, z[1] * factor), select(large, 300.0 * LN2, 0.0)


def _area(x: Node, more: Node) -> Node:
    """asinh x, with the size of it increased."""
    found = of("asinh", x)
    return with_sign(fabs(found) + more, found)


def _acos(z: Parts) -> Parts:
    (x, y), more = _brought(z)
    (a, b), (c, d) = _sqrt((1.0 - x, -y)), _sqrt((1.0 + x, y))
    return of("atan2", a, c) * 2.0, _area(_determinant(c, b, d, a), more)


def _asinh(z: Parts) -> Parts:
    (x, y), more = _brought(z)
    (a, b), (c, d) = _sqrt((1.0 + y, -x)), _sqrt((1.0 - y, x))
    return _area(_determinant(a, d, c, b), more), of("atan2", y, _determinant(a, c, b, d))


def _atanh(z: Parts) -> Parts:
    re, im = z
    # The other half of the plane by atanh(z) = -atanh(-z).
    left = bits(re) < 0
    x, y = fabs(re), select(left, -im, im)
    size, _ = larger(x, y)
    far = size > 2.0**400
    near = equal(x, 1.0) & (fabs(y) < 2.0**-400)
    a, b = chosen(far, ONE, (x, y))
    less, square = 1.0 - a, b * b
    below = less * less + square
    log = of("log1p", a * 4.0 / select(near | far, 1.0, below)) * 0.25
    log = select(near, (LN2 - of("log", fabs(y))) * 0.5, log)
    half = of("hypot", x * 0.5, y * 0.5)
    half = select(far, half, 1.0)
    log = select(far, x * 0.25 / half / half, log)
    turn = of("atan2", b * -2.0, less * (1.0 + a) - square) * -0.5
    turn = select(far, select(bits(y) < 0, -math.pi / 2, math.pi / 2), turn)
    return select(left, -log, log), select(left, -turn, turn)


# ------------------------------------------------------------------------- powers

WHOLE = 100.0
"""The largest whole exponent that is computed by squaring."""


def chain(z: Parts, n: int) -> Parts:
    """z to the power of an integer n >= 0, by squaring."""
    # The first product, by 1, is not left out: it has a say in the signs of zeros.
    found = ONE
    while n:
        if n & 1:
            found = multiplied(found, z)
        n >>= 1
        if n:
            z = multiplied(z, z)
    return found


def whole_power(n: int) -> Function:
    """z to the power of a constant integer."""

    def f(z: Parts) -> Parts:
        found = chain(z, abs(n))
        return found if n > 0 else divided(ONE, found)

    return Function(f"complex_power_{n}", by_parts(f), (C128,))


def _power_by_squaring(z: Parts, n: Node) -> Parts:
    """z to the power of an integer of size up to `WHOLE`, held as a float."""
    count = apply("int", fabs(n))
    found = ONE
    for k in range(7):
        odd = apply("ne", count & (1 << k), 0)
        found = chosen(odd, multiplied(found, z), found)
        z = multiplied(z, z)
    return chosen(n > 0.0, found, divided(ONE, found))


def power(z: Parts, w: Parts) -> Parts:
    """The power: by squaring for a small whole exponent, else by the modulus and the angle."""
    c, d = w
    whole = equal(d, 0.0) & (fabs(c) <= WHOLE) & equal(apply("floor", c), c)
    squared = _power_by_squaring(z, select(whole, c, 1.0))
    modulus, angle = of("hypot", *z), of("atan2", z[1], z[0])
    zero, real = equal(modulus, 0.0), equal(d, 0.0)
    turned = select(real, 0.0, d)
    length = of("pow", modulus, c) / of("exp", angle * turned)
    turn = angle * c + turned * of("log", select(zero, 1.0, modulus))
    found = length * of("cos", turn), length * of("sin", turn)
    nothing = select(real & (c > 0.0), 0.0, math.nan)
    return chosen(whole, squared, chosen(zero, (nothing, nothing), found))


FUNCTIONS: dict[str, Callable[[Parts], Parts]] = {
    "exp": _exp,
    "log": logarithm,
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
    "sech": _sech,
    "expm1": _expm1,
}


def _unusual(fn: str, z: complex) -> complex:
    """A function where a part is infinite or NaN."""
    x, y = z.real, z.imag
    if fn == "sech":
        # Of what is infinite only the direction is left.
        small = _unusual("exp", complex(-abs(x), y if x < 0 else -y))
        return small if math.isinf(x) else complex(math.nan, y if y == 0 else math.nan)
    if fn == "leg":
        if not cmath.isinf(z):
            return complex(math.nan, math.nan)
        return complex(-y, x) if math.copysign(1.0, y) < 0 else complex(y, -x)
    if fn == "expm1":
        found = _unusual("exp", z)
        return complex(found.real - 1.0, y if y == 0 else found.imag)
    try:
        return getattr(cmath, fn)(z)  # type: ignore[no-any-return]
    except ValueError:
        # An infinite angle counts as none: its sine has no value.
        turns = fn in ("sin", "cos", "tan")
        return _unusual(fn, complex(math.nan, y) if turns else complex(x, math.nan))


TEXTS = {fn: Function(f"complex_{fn}", by_parts(f), (C128,)) for fn, f in FUNCTIONS.items()}


def settled(fn: str, z: complex) -> complex:
    """A function of any complex number."""
    if not cmath.isfinite(z):
        return _unusual(fn, z)
    return total(TEXTS[fn])(z)  # type: ignore[no-any-return]


def on_arrays(fn: str, z: Any) -> NDArray[np.complex128]:
    """A function of an array or a number."""
    z = np.asarray(z, np.complex128)
    with np.errstate(all="ignore"):
        found = np.asarray(on_kinds(TEXTS[fn])(z.reshape(-1)))
    for k in np.nonzero(~np.isfinite(z.reshape(-1)))[0].tolist():
        found[k] = _unusual(fn, complex(z.reshape(-1)[k]))
    return found.reshape(z.shape)


def code(fn: str) -> Code:
    """The code of one of `FUNCTIONS`."""
    name = f"complex_{fn}"
    NAMES[name] = lambda z: settled(fn, complex(z))
    NAMES[f"{name}_array"] = lambda z: on_arrays(fn, z)

    def finite(z: Parts) -> Parts:
        x, y = (unless(v, ~(fabs(v) <= LARGEST), RARE) for v in z)
        return FUNCTIONS[fn]((x, y))

    body = Function(f"{name}_of_finite", by_parts(finite), (C128,))
    return Code(f"{name}({{0}})", f"{name}_array({{0}})", None, body, alike=True)
