"""Fixed-point numbers: 64-bit integers in units of 2**-frac.

`+` and `-` wrap around like two's complement integers, so that they always undo each other; so do
`sum`, and the sums of products in `dot` and `@`. Products and quotients are exact before they are
rounded once, to nearest, ties to even; a division by zero is an error (R005). Powers and all other
functions of the table are correctly rounded: the exact value to nearest, ties to even. A result
that does not fit or does not exist is an error (R009).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.leaf import Node, select
from rvm.leaf.ops import I64, Op, add, limits
from rvm.leaf.python import umulh_array
from rvm.leaf.trace import Fault, apply, by_kind, constant, equal, unless
from rvm.numbers.base import NumberSystem, shortened, shown
from rvm.numbers.code import Body, Code, codes_of, comparisons
from rvm.numbers.fixedpoint_functions import bodies, entered_power
from rvm.numbers.integers import divisor
from rvm.numbers.lifting import FRAC, KINDS, lifting_bodies
from rvm.numbers.support import name, out_of_range
from rvm.types import DEFAULT_FRAC, Scalar

LOW, HIGH = limits(I64)


class Fixed(Fraction):
    """A fixed-point number as Python sees it: exactly raw / 2**frac.

    It compares and computes as the fraction that it is; `raw` and `frac` are its bits.
    """

    __slots__ = ("frac", "raw")
    raw: int
    frac: int

    def __new__(cls, raw: int, frac: int = DEFAULT_FRAC) -> Fixed:
        if not isinstance(raw, Integral):
            unit = f"the number times 2**{frac}"
            raise TypeError(f"a Fixed is made of its raw number, {unit} as an int, not of {raw!r}")
        self = super().__new__(cls, raw, 1 << frac)
        self.raw = raw
        self.frac = frac
        return self

    @classmethod
    def from_float(cls, f: float) -> Fraction:  # type: ignore[override]
        """An exact fraction, for comparisons with floats."""
        return Fraction.from_float(f)

    @classmethod
    def from_decimal(cls, dec: Decimal) -> Fraction:  # type: ignore[override]
        """An exact fraction."""
        return Fraction.from_decimal(dec)

    def __repr__(self) -> str:
        return f"Fixed({self.raw}, {self.frac})"

    def __str__(self) -> str:
        return decimal_text(self.raw, self.frac)

    def __reduce__(self) -> tuple[Any, ...]:
        return Fixed, (self.raw, self.frac)

    def __copy__(self) -> Fixed:
        return self

    def __deepcopy__(self, memo: Any) -> Fixed:
        return self


def nearest(value: Fraction, frac: int) -> int:
    """The raw number nearest to an exact value, ties to even."""
    return round(value * (1 << frac))


def decimal_text(raw: int, frac: int) -> str:
    """The shortest decimal that rounds to the number."""
    value = Fraction(raw, 1 << frac)
    for digits in range(1, 22):
        context = Context(prec=digits)
        short = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        if nearest(Fraction(short), frac) == raw:
            text = format(short, "f")
            return text if "." in text else text + ".0"
    raise AssertionError("21 digits tell all 64-bit numbers apart")


class FixedSystem(NumberSystem):
    """Fixed point with `type.frac` fraction bits."""

    updates = frozenset({"add"})
    converts = True

    def __init__(self, t: Scalar) -> None:
        self.frac, self.unit, self.grain = t.frac, 2.0**-t.frac, 2.0**-t.frac
        self.held_as = f"raw integers, the numbers times 2**{t.frac}"
        kinds = {"": (I64,), **{fn: (I64, *others) for fn, others in KINDS.items()}}
        super().__init__(t, 0, codes_of(f"fixed_{t.frac}", kinds, fixed_bodies(t.frac)))

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        return self.codes.get("pow" if fn == "**" and elems[1].is_integer else fn)

    def literal(self, value: Any) -> int:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not a {self.type}")
        if not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is not a value of {self.type}")
        value = shortened(value)
        try:
            exact = Fraction(value)
        except (ValueError, OverflowError):
            raise ValueError(f"a {self.type} has no {value}") from None
        raw = nearest(exact, self.frac)
        if not LOW <= raw <= HIGH:
            limit = 2.0 ** (63 - self.frac)
            raise ValueError(f"{shown(value)} does not fit {self.type} (below {limit:g} in size)")
        return raw

    def raw(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"a typed literal of {self.type} is its raw integer, not {value}")
        if not LOW <= value <= HIGH:
            raise ValueError(f"{value} does not fit the 64 bits of {self.type}")
        return value

    def stored(self, name: str) -> str:
        return f"np.rint({name} * 2.0**{self.frac}).astype(np.{self.dtype.name})"

    def to_python(self, raw: Any) -> Any:
        return raw if isinstance(raw, np.ndarray) else Fixed(int(raw), self.frac)

    def text(self, raw: Any) -> str:
        return decimal_text(int(raw), self.frac)


@name
def fixed_div(a: int, b: int, frac: int) -> int:
    """The quotient of two raw numbers, rounded to nearest, ties to even."""
    q, r = divmod(a << frac, b)
    twice = 2 * r - b if b > 0 else b - 2 * r
    if twice > 0 or (twice == 0 and q & 1):
        q += 1
    return q if LOW <= q <= HIGH else beyond(q, frac)


@name
def beyond(raw: int, frac: int) -> int:
    """R009: a raw number that does not fit."""
    raise out_of_range(raw / (1 << frac), f"fixed({frac})")


def fixed_mul(a: int, b: int, frac: int) -> int:
    """The product of two raw numbers, rounded to nearest, ties to even."""
    p = a * b
    if frac:
        p = p + (1 << frac - 1) - 1 + (p >> frac & 1) >> frac
    return p if LOW <= p <= HIGH else beyond(p, frac)


FEW = 32
"""The largest number of elements for which scalar code is faster than arrays."""
NEARLY = 2.0**63 * (1 - 2.0**-40)
"""Raw results from here on may not fit; exact arithmetic decides."""


def _one_by_one(f: Callable[..., int], a: Any, b: Any, frac: int) -> NDArray[Any]:
    """`f` of each pair of raw numbers of two arrays of a shape."""
    found = [f(x, y, frac) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
    return np.array(found, np.int64).reshape(a.shape)


def _settled(f: Callable[..., int], a: Any, b: Any, frac: int, doubtful: Any) -> None:
    """R009 if a result of `f` that is in doubt does not fit."""
    if doubtful.any():
        for x, y in zip(a[doubtful].tolist(), b[doubtful].tolist(), strict=True):
            f(x, y, frac)


@name
def fixed_mul_array(a: Any, b: Any, frac: int) -> NDArray[Any]:
    """The rounded product of arrays, exact through 128-bit products in halves."""
    a, b = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
    if a.size <= FEW:
        return _one_by_one(fixed_mul, a, b, frac)
    size = np.abs(np.multiply(a, b, dtype=np.float64))
    _settled(fixed_mul, a, b, frac, size >= NEARLY * 2.0**frac)
    low = a * b
    if frac == 0:
        return np.asarray(low)
    high = umulh_array(a, b).view(np.uint64)
    high -= (np.where(a < 0, b, 0) + np.where(b < 0, a, 0)).astype(np.uint64)
    ulow, f = low.astype(np.uint64), np.uint64(frac)
    quotient = ulow >> f | high << np.uint64(64 - frac)
    rest = ulow & np.uint64((1 << frac) - 1)
    half = np.uint64(1 << frac - 1)
    up = (rest > half) | ((rest == half) & (quotient & np.uint64(1) == 1))
    return np.asarray((quotient + up.astype(np.uint64)).astype(np.int64))


@name
def fixed_div_array(a: Any, b: Any, frac: int) -> NDArray[Any]:
    """The rounded quotient on arrays: long division of the magnitudes, bit by bit."""
    a, b = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
    if a.size <= FEW:
        return _one_by_one(fixed_div, a, b, frac)
    size = np.abs(np.divide(a, b, dtype=np.float64))
    _settled(fixed_div, a, b, frac, size * 2.0**frac >= NEARLY)
    one = np.uint64(1)
    n = np.where(a < 0, -a, a).astype(np.uint64)
    d = np.where(b < 0, -b, b).astype(np.uint64)
    q, r = n // d, n % d
    for _ in range(frac):
        r = r << one
        bit = r >= d
        r = np.where(bit, r - d, r)
        q = q << one | bit.astype(np.uint64)
    over = d - r
    up = (r > over) | ((r == over) & (q & one == 1))
    q = (q + up.astype(np.uint64)).astype(np.int64)
    return np.asarray(np.where((a < 0) != (b < 0), -q, q))


def operations(frac: int) -> None:
    """Enter the products and quotients of numbers with `frac` fraction bits."""
    half = (1 << frac - 1) - 1 if frac else 0
    product = "{0} * {1}"
    if frac:
        product = f"({{u}} := {{0}} * {{1}}) + {half} + ({{u}} >> {frac} & 1) >> {frac}"
    product = f"({{t}} if {LOW} <= ({{t}} := {product}) <= {HIGH} else beyond({{t}}, {frac}))"

    def times(b: Any, x: Node, y: Node) -> Any:
        """The product in 128 bits, rounded to nearest, ties to even."""
        p = b.op("wmul", *(b.op("sext", v, kind="i128") for v in (x, y)))
        if frac:
            odd = b.op("and", b.op("lshr", p, b.number(frac, p)), b.number(1, p))
            above = b.op("wadd", b.op("wadd", p, b.number(half, p)), odd)
            p = b.op("ashr", above, b.number(frac, p))
        found = b.op("trunc", p, kind=I64)
        b.trouble(b.op("ne", b.op("sext", found, kind="i128"), p))
        return found

    def quotient(b: Any, x: Node, y: Node) -> Any:
        # Its size is rounded to 2**63 or more from 2**63 - 1/2 on, to more than that from
        # 2**63 + 1/2, where a tie goes to the even number below.
        n, d = (b.op("zext", b.intrinsic("abs", v, b.truth(False)), kind="i128") for v in (x, y))
        twice, all_bits = b.op("shl", n, b.number(frac + 1, n)), b.op("shl", d, b.number(64, d))
        above = b.op("uge", twice, b.op("wsub", all_bits, d))
        below = b.op("ugt", twice, b.op("wadd", all_bits, d))
        negative = b.op("lt", b.op("xor", x, y), b.i64(0))
        b.trouble(b.select(negative, below, above))
        return b.helper("rvm_fixed_div", I64, x, y, b.i64(frac))

    for fn, python, native in (
        ("mul", product, times),
        ("div", f"fixed_div({{0}}, {{1}}, {frac})", quotient),
    ):
        numpy = f"fixed_{fn}_array({{0}}, {{1}}, {frac})"
        add(Op(f"fixed_{fn}_{frac}", (I64, I64), I64, python, numpy, native))


operations(FRAC)


def fixed_bodies(frac: int) -> dict[str, Body]:
    """The functions of raw numbers with `frac` fraction bits; `pow` is that of an i64 exponent."""
    operations(frac)
    whole_power = entered_power(frac, f"fixed_mul_{frac}")
    one, unit = 1 << frac, constant(1 << frac, I64)

    def product(a: Node, b: Node) -> Node:
        return apply(f"fixed_mul_{frac}", a, b)

    def quotient(a: Node, b: Node) -> Node:
        return apply(f"fixed_div_{frac}", a, divisor(a, b))

    fault = Fault(f"beyond_{frac}", lambda *x: out_of_range(x, f"fixed({frac})"))

    def whole_quotient(a: Node, b: Node) -> Node:
        found = apply("floordiv", a, divisor(a, b))
        off = (found < LOW >> frac) | (found > HIGH >> frac) | (equal(a, LOW) & equal(b, -1))
        return apply("shl", unless(found, off, fault, a, b), frac)

    return {
        **comparisons(),
        **bodies(frac),
        **lifting_bodies(I64, f"fixed({frac})"),
        "pow": lambda x, n: apply(whole_power, x, n),
        "+": lambda a, b: apply("wadd", a, b),
        "-": lambda a, b: apply("wsub", a, b),
        "*": product,
        "/": quotient,
        "//": whole_quotient,
        "%": lambda a, b: apply("mod", a, divisor(a, b)),
        "neg": lambda x: apply("wneg", x),
        "abs": lambda x: apply("wabs", unless(x, equal(x, LOW), fault, x)),
        "sign": lambda x: select(x > 0, unit, select(by_kind("ne", x, 0), constant(-one, I64), 0)),
        "square": lambda x: product(x, x),
        "min": lambda a, b: select(a <= b, a, b),
        "max": lambda a, b: select(a >= b, a, b),
        "relu": lambda x: select(x > 0, x, 0),
        "floor": lambda x: apply("and", x, -one),
    }
