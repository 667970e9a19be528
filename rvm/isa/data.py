"""Data opcodes: accumulate, exchange, rotate, negate.  Each is written once, here."""

from __future__ import annotations

from typing import Annotated, Any

from rvm.expr import Apply, Const
from rvm.isa.define import Mut, Use, exchange, opcode, when
from rvm.isa.rules import FACTOR
from rvm.numbers.lifting import EIGHTH, HALF_ROOT


def _f(name: str, *args: Any) -> Apply:
    return Apply(name, args)


@opcode(inverse="sub")
def add(y: Mut, v: Use) -> None:
    """y += v"""
    y += v


@opcode(inverse="add")
def sub(y: Mut, v: Use) -> None:
    """y -= v"""
    y -= v


@opcode(types="bits")
def xor(y: Mut, v: Use) -> None:
    """y ^= v, bit by bit"""
    y ^= v


def _odd_product(y: Mut, v: Use) -> Any:
    return _f("odd_product", y, v)


@opcode(
    inverse="div",
    types="multiplied",
    cost="MULTS",
    exact=_odd_product,
    exact_inverse="unmul",
    exact_types="int",
)
def mul(y: Mut, v: Use) -> None:
    """y *= v; v must be finite and not zero, of integers odd: they wrap"""
    y *= v


@opcode(inverse="mul", types="int", cost="MULTS")
def unmul(y: Mut, v: Use) -> Any:
    """Undo `mul y, v` of integers: y becomes its product with the inverse of v modulo 2^bits."""
    return _f("odd_quotient", y, v)


@opcode(inverse="mul", types="multiplies", cost="MULTS")
def div(y: Mut, v: Use) -> None:
    """y /= v; v must be finite and not zero"""
    y /= v


@opcode(types="any", cost="MOVES")
def swap(a: Mut, b: Mut) -> None:
    """Exchange a and b: two places of one type and shape, whole arrays too."""
    exchange(a, b)


@opcode(types="any", cost="MOVES")
def exch(x: Mut, m: Mut) -> None:
    """Exchange a register with memory: `swap` under the name that PISA gives it."""
    exchange(x, m)


def _sheared(to: str, x: Any, y: Any, factor: Any) -> Apply:
    """x plus a multiple of y; the inverse uses the opposite sign."""
    return _f(f"checked_{to}", x, _f("shear", y, factor))


def _lifted(a: Mut, b: Mut, t: Use) -> Any:
    odd, tangent, sine = (_f(f"lift_{part}", t) for part in ("odd", "tan", "sin"))
    x, y = _f("turned", a, odd), _f("turned", b, odd)
    x = _sheared("sub", x, y, tangent)
    y = _sheared("add", y, x, sine)
    return _sheared("sub", x, y, tangent), y


def _unlifted(a: Mut, b: Mut, t: Use) -> Any:
    odd, tangent, sine = (_f(f"lift_{part}", t) for part in ("odd", "tan", "sin"))
    x = _sheared("add", a, b, tangent)
    y = _sheared("sub", b, x, sine)
    return _f("turned", _sheared("add", x, y, tangent), odd), _f("turned", y, odd)


@opcode(inverse="irot", types="rotated", cost="MULTS", exact=_lifted)
def rot(a: Mut, b: Mut, t: Annotated[Use, "angle"]) -> Any:
    """Rotate (a, b) by the angle t, in radians: a Givens rotation.

    On integers and `fixed` by three shears, which `irot` takes back to the bit.
    """
    c, s = _f("cos", t), _f("sin", t)
    return a * c - b * s, a * s + b * c


@opcode(inverse="rot", types="rotated", cost="MULTS", exact=_unlifted)
def irot(a: Mut, b: Mut, t: Annotated[Use, "angle"]) -> Any:
    """Rotate (a, b) by the angle -t."""
    c, s = _f("cos", t), _f("sin", t)
    return a * c + b * s, b * c - a * s


@opcode(types="value")
def neg(y: Mut) -> Any:
    """y = -y (for log64: the reciprocal, whose logarithm is the negative)"""
    return -y


@opcode(types="complex", cost="MOVES")
def conj(y: Mut) -> Any:
    """y becomes its complex conjugate."""
    return _f("conj", y)


@opcode(inverse="dec")
def inc(y: Mut) -> None:
    """y += 1"""
    y += 1


@opcode(inverse="inc")
def dec(y: Mut) -> None:
    """y -= 1"""
    y -= 1


@opcode(types="bits")
def not_(y: Mut) -> Any:
    """Every bit of y flips."""
    return _f("~", y)


@opcode(inverse="ror", types="int")
def rol(y: Mut, k: Annotated[Use, "i64"]) -> Any:
    """Rotate the bits of y left by k."""
    return _f("rotl", y, k)


@opcode(inverse="rol", types="int")
def ror(y: Mut, k: Annotated[Use, "i64"]) -> Any:
    """Rotate the bits of y right by k."""
    return _f("rotr", y, k)


def _mirrored(a: Mut, b: Mut) -> Any:
    tangent, sine = (Const(k, FACTOR) for k in (EIGHTH, HALF_ROOT))
    x = _sheared("add", a, b, tangent)
    y = _f("checked_sub", _f("shear", x, sine), b)
    return _sheared("sub", x, y, tangent), y


@opcode(types="rotated", cost="MULTS", exact=_mirrored)
def hadamard(a: Mut, b: Mut) -> Any:
    """(a, b) becomes ((a + b)/sqrt 2, (a - b)/sqrt 2), on integers and `fixed` by shears."""
    h = 0.5**0.5
    return (a + b) * h, (a - b) * h


@opcode(types="any", cost="MOVES")
def cswap(c: Annotated[Use, "bool"], a: Mut, b: Mut) -> None:
    """Exchange a and b if c: the Fredkin gate."""
    with when(c):
        exchange(a, b)
