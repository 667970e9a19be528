"""LLVM code of complex numbers: the operations of CPython's `complex` and `cmath`, step by step.

What they do for ordinary arguments is done here in the same order, so that every bit agrees.
Arguments of `cmath`'s functions that are infinite or NaN, or so large or small that it takes
another way, are given up, as are powers that are not finite.  From Python 3.14 on products and
quotients with two NaNs are repaired, which is left to it as well, and so are all powers there,
whose zeros have other signs.  CPython must be compiled without fused multiply-adds, as it is for
x86.
"""

from __future__ import annotations

import math
import sys
from typing import Any, cast

from rvm.numbers.llvm import Emitter, Llvm, chosen, double, number, raised, whole
from rvm.types import Scalar

Pair = tuple[str, str]

REPAIRS = sys.version_info >= (3, 14)
"""Whether CPython repairs products and quotients that are NaN in both parts."""
LARGE = sys.float_info.max / 4
ROOT_LARGE = math.sqrt(LARGE)
LOG_LARGE = math.log(LARGE)
LEAST = sys.float_info.min
ROOT_LEAST = math.sqrt(LEAST)


def complex_llvm() -> dict[str, Llvm]:
    """The functions of complex numbers."""
    return {
        "==": lambda e, a, b: _both(e, "and", "oeq", a, b),
        "!=": lambda e, a, b: _both(e, "or", "une", a, b),
        "+": lambda e, a, b: _parts(e, "fadd", a, b),
        "-": lambda e, a, b: _parts(e, "fsub", a, b),
        "*": product,
        "/": quotient,
        "**": power,
        "neg": negative,
        "square": lambda e, z: product(e, z, z),
        "abs": lambda e, z: _call(e, "hypot", *z),
        "exp": _exp,
        "log": _log,
        "sqrt": _sqrt,
        "sinh": _sinh,
        "cosh": _cosh,
        "tanh": _tanh,
        "atan": turned(_atanh),
        "asin": turned(_asinh),
        "sin": turned(_sinh),
        "tan": turned(_tanh),
        "cos": lambda e, z: _cosh(e, (_op(e, "fneg", z[1]), z[0])),
        "acos": _acos,
    }


def complex_operands(llvm: Llvm, elems: tuple[Scalar, ...]) -> Llvm:
    """A function of complex numbers on some that are f64 or i64."""

    def converted(e: Emitter, x: Any, t: Scalar) -> Pair:
        if t.is_complex:
            return cast(Pair, x)
        if not t.is_integer:
            return x, "0.0"
        n = whole(x)
        return (e.op(f"sitofp i64 {x} to double") if n is None else double(float(n))), "0.0"

    return lambda e, *args: llvm(e, *map(converted, [e] * len(args), args, elems))


def conjugate(e: Emitter, z: Pair) -> Pair:
    """The complex conjugate."""
    return z[0], _op(e, "fneg", z[1])


def squared_modulus(e: Emitter, z: Pair) -> str:
    """re * re + im * im."""
    return _op(e, "fadd", *(_op(e, "fmul", part, part) for part in z))


def angle(e: Emitter, z: Pair) -> str:
    """The angle of a complex number."""
    return _call(e, "atan2", z[1], z[0])


def negative(e: Emitter, z: Pair) -> Pair:
    """-z, part by part."""
    return _op(e, "fneg", z[0]), _op(e, "fneg", z[1])


def product(e: Emitter, a: Pair, b: Pair) -> Pair:
    """The product by its four products."""
    re = _op(e, "fsub", _op(e, "fmul", a[0], b[0]), _op(e, "fmul", a[1], b[1]))
    im = _op(e, "fadd", _op(e, "fmul", a[0], b[1]), _op(e, "fmul", a[1], b[0]))
    return _unrepaired(e, (re, im))


def quotient(e: Emitter, a: Pair, b: Pair) -> Pair:
    """The quotient by Smith's method; by zero, a / |0| part by part as NumPy has it."""
    # Both cases in one: divided by the part of b that is greater.
    x, y = (_abs(e, part) for part in b)
    first = e.op(f"fcmp oge double {x}, {y}")
    large, small = chosen(e, first, "double", *b), chosen(e, first, "double", b[1], b[0])
    ratio = _op(e, "fdiv", small, large)
    divisor = _op(e, "fadd", large, _op(e, "fmul", small, ratio))
    whole, part = chosen(e, first, "double", *a), chosen(e, first, "double", a[1], a[0])
    re = _op(e, "fadd", whole, _op(e, "fmul", part, ratio))
    scaled = _op(e, "fmul", whole, ratio)
    im = chosen(e, first, "double", _op(e, "fsub", part, scaled), _op(e, "fsub", scaled, part))
    zero = e.op(f"fcmp oeq double {x}, 0.0")
    zero = e.op(f"and i1 {first}, {zero}")
    above = (chosen(e, zero, "double", p, q) for p, q in zip(a, (re, im), strict=True))
    below = chosen(e, zero, "double", x, divisor)
    re, im = (_op(e, "fdiv", p, below) for p in above)
    return _unrepaired(e, (re, im))


def power(e: Emitter, a: Pair, b: Pair) -> Pair:
    """The power: by squaring for a small whole exponent, else by the modulus and the angle."""
    if REPAIRS:
        e.trouble("true")
        return a
    constant, imaginary = map(number, b)
    if imaginary == 0.0 and constant is not None and _is_small(constant):
        found = _whole_power(e, a, int(constant))
    else:
        found = _any_power(e, a, b)
    for part in found:
        e.trouble(e.op(f"fcmp ueq double {_abs(e, part)}, {double(math.inf)}"))
    return found


def _is_small(exponent: float) -> bool:
    """Whether CPython finds a power by squaring."""
    return exponent.is_integer() and abs(exponent) <= 100.0


def _whole_power(e: Emitter, a: Pair, n: int) -> Pair:
    one = ("1.0", "0.0")
    found = one
    if n:
        # The first product, by 1, is not left out: it has a say in the signs of zeros.
        found = raised(a, abs(n), lambda x, y: product(e, x, y), one)
    return found if n > 0 else quotient(e, one, found)


def _any_power(e: Emitter, a: Pair, b: Pair) -> Pair:
    result = "{ double, double }"
    args = [("double", part) for part in (*a, *b)]
    pair = e.helper("rvm_complex_power", result, *args)
    return e.op(f"extractvalue {result} {pair}, 0"), e.op(f"extractvalue {result} {pair}, 1")


def turned(llvm: Llvm) -> Llvm:
    """f(z) = -i g(iz): sines and tangents from the hyperbolic ones."""

    def write(e: Emitter, z: Pair) -> Pair:
        re, im = llvm(e, (_op(e, "fneg", z[1]), z[0]))
        return im, _op(e, "fneg", re)

    return write


# ------------------------------------------------------------------------- instructions


def _op(e: Emitter, name: str, *args: str) -> str:
    return e.op(f"{name} double {', '.join(args)}")


def _call(e: Emitter, f: str, *args: str) -> str:
    return e.pure(f"rvm_{f}", "double", *(("double", x) for x in args))


def _abs(e: Emitter, x: str) -> str:
    return e.op(f"call double @llvm.fabs.f64(double {x})")


def _root(e: Emitter, x: str) -> str:
    return e.op(f"call double @llvm.sqrt.f64(double {x})")


def _signed(e: Emitter, x: str, sign: str) -> str:
    return e.op(f"call double @llvm.copysign.f64(double {x}, double {sign})")


def _parts(e: Emitter, name: str, a: Pair, b: Pair) -> Pair:
    return _op(e, name, a[0], b[0]), _op(e, name, a[1], b[1])


def _both(e: Emitter, join: str, test: str, a: Pair, b: Pair) -> str:
    re, im = (e.op(f"fcmp {test} double {x}, {y}") for x, y in zip(a, b, strict=True))
    return e.op(f"{join} i1 {re}, {im}")


def _unrepaired(e: Emitter, z: Pair) -> Pair:
    if REPAIRS:
        nans = (e.op(f"fcmp uno double {part}, {part}") for part in z)
        e.trouble(e.op(f"and i1 {', '.join(nans)}"))
    return z


def _limit(e: Emitter, x: str, limit: float) -> None:
    """Give up unless |x| <= limit."""
    e.trouble(e.op(f"fcmp ugt double {_abs(e, x)}, {double(limit)}"))


def _tiny(e: Emitter, x: str, y: str) -> str:
    """Whether two numbers that are not negative are both below the least normal one."""
    below = (e.op(f"fcmp olt double {v}, {double(LEAST)}") for v in (x, y))
    return e.op(f"and i1 {', '.join(below)}")


# ------------------------------------------------------------------------- cmath


def _bounded(e: Emitter, z: Pair) -> None:
    """Give up unless exp(|re|) is far from overflow and the imaginary part finite."""
    _limit(e, z[0], LOG_LARGE)
    _limit(e, z[1], sys.float_info.max)


def _exp(e: Emitter, z: Pair) -> Pair:
    _bounded(e, z)
    size = _call(e, "exp", z[0])
    cos, sin = _call(e, "cos", z[1]), _call(e, "sin", z[1])
    return _op(e, "fmul", size, cos), _op(e, "fmul", size, sin)


def _sinh(e: Emitter, z: Pair) -> Pair:
    _bounded(e, z)
    cos, sin = _call(e, "cos", z[1]), _call(e, "sin", z[1])
    sinh, cosh = _call(e, "sinh", z[0]), _call(e, "cosh", z[0])
    return _op(e, "fmul", cos, sinh), _op(e, "fmul", sin, cosh)


def _cosh(e: Emitter, z: Pair) -> Pair:
    _bounded(e, z)
    cos, sin = _call(e, "cos", z[1]), _call(e, "sin", z[1])
    sinh, cosh = _call(e, "sinh", z[0]), _call(e, "cosh", z[0])
    return _op(e, "fmul", cos, cosh), _op(e, "fmul", sin, sinh)


def _tanh(e: Emitter, z: Pair) -> Pair:
    _bounded(e, z)
    tanh, tan = _call(e, "tanh", z[0]), _call(e, "tan", z[1])
    c = _op(e, "fdiv", "1.0", _call(e, "cosh", z[0]))
    both = _op(e, "fmul", tanh, tan)
    below = _op(e, "fadd", _op(e, "fmul", both, both), "1.0")
    above = _op(e, "fadd", _op(e, "fmul", tan, tan), "1.0")
    re = _op(e, "fdiv", _op(e, "fmul", tanh, above), below)
    im = _op(e, "fmul", _op(e, "fmul", _op(e, "fdiv", tan, below), c), c)
    return re, im


def _log(e: Emitter, z: Pair) -> Pair:
    x, y = (_abs(e, part) for part in z)
    _limit(e, z[0], LARGE)
    _limit(e, z[1], LARGE)
    e.trouble(_tiny(e, x, y))
    re = e.helper("rvm_complex_log", "double", ("double", x), ("double", y))
    return re, angle(e, z)


def _sqrt(e: Emitter, z: Pair) -> Pair:
    x, y = (_abs(e, part) for part in z)
    _limit(e, z[0], sys.float_info.max)
    _limit(e, z[1], sys.float_info.max)
    zero = e.op(f"fcmp oeq double {_op(e, 'fadd', x, y)}, 0.0")
    some = e.op(f"xor i1 {zero}, true")
    e.trouble(e.op(f"and i1 {some}, {_tiny(e, x, y)}"))
    eighth = _op(e, "fmul", x, "0.125")
    length = _call(e, "hypot", eighth, _op(e, "fmul", y, "0.125"))
    s = _op(e, "fmul", _root(e, _op(e, "fadd", eighth, length)), "2.0")
    d = _op(e, "fdiv", y, _op(e, "fmul", s, "2.0"))
    right = e.op(f"fcmp oge double {z[0]}, 0.0")
    re = chosen(e, right, "double", s, d)
    im = _signed(e, chosen(e, right, "double", d, s), z[1])
    return chosen(e, zero, "double", "0.0", re), chosen(e, zero, "double", z[1], im)


def _shifted(e: Emitter, z: Pair) -> tuple[Pair, Pair]:
    """The roots of 1 - z and 1 + z, the numbers not too large."""
    _limit(e, z[0], LARGE)
    _limit(e, z[1], LARGE)
    left = _sqrt(e, (_op(e, "fsub", "1.0", z[0]), _op(e, "fneg", z[1])))
    return left, _sqrt(e, (_op(e, "fadd", "1.0", z[0]), z[1]))


def _determinant(e: Emitter, a: str, b: str, c: str, d: str) -> str:
    return _op(e, "fsub", _op(e, "fmul", a, b), _op(e, "fmul", c, d))


def _acos(e: Emitter, z: Pair) -> Pair:
    (a, b), (c, d) = _shifted(e, z)
    half = _call(e, "atan2", a, c)
    return _op(e, "fmul", half, "2.0"), _call(e, "asinh", _determinant(e, c, b, d, a))


def _asinh(e: Emitter, z: Pair) -> Pair:
    _limit(e, z[0], LARGE)
    _limit(e, z[1], LARGE)
    a, b = _sqrt(e, (_op(e, "fadd", "1.0", z[1]), _op(e, "fneg", z[0])))
    c, d = _sqrt(e, (_op(e, "fsub", "1.0", z[1]), z[0]))
    re = _call(e, "asinh", _determinant(e, a, d, c, b))
    return re, _call(e, "atan2", z[1], _determinant(e, a, c, b, d))


def _atanh(e: Emitter, z: Pair) -> Pair:
    _limit(e, z[0], ROOT_LARGE)
    _limit(e, z[1], ROOT_LARGE)
    x, size = _abs(e, z[0]), _abs(e, z[1])
    # The other half of the plane by atanh(z) = -atanh(-z).
    bits = e.op(f"bitcast double {z[0]} to i64")
    left = e.op(f"icmp slt i64 {bits}, 0")
    y = chosen(e, left, "double", _op(e, "fneg", z[1]), z[1])
    near = e.op(f"fcmp oeq double {x}, 1.0")
    close = e.op(f"fcmp olt double {size}, {double(ROOT_LEAST)}")
    e.trouble(e.op(f"and i1 {near}, {close}"))
    less, square = _op(e, "fsub", "1.0", x), _op(e, "fmul", size, size)
    below = _op(e, "fadd", _op(e, "fmul", less, less), square)
    log = _call(e, "log1p", _op(e, "fdiv", _op(e, "fmul", x, "4.0"), below))
    re = _op(e, "fmul", log, "0.25")
    across = _op(e, "fmul", less, _op(e, "fadd", "1.0", x))
    turn = _call(e, "atan2", _op(e, "fmul", y, "-2.0"), _op(e, "fsub", across, square))
    im = _op(e, "fmul", _op(e, "fneg", turn), "0.5")
    minus = negative(e, (re, im))
    return chosen(e, left, "double", minus[0], re), chosen(e, left, "double", minus[1], im)
