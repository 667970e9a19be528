"""Integers and bool.

`i8 i16 i32 i64 u8 u16 u32 u64` are in two's complement and wrap without a message, so that `+` and
`-` always undo each other. `//` and `%` round to minus infinity, as in Python; by zero they are an
error (R005), and the smallest value divided by -1 wraps to itself. `**` wraps too; only 1 and -1
have values for negative powers (0: R005, others: R015). A shift by the width or more leaves 0 (or
-1 for a negative number shifted right), and a shift by a negative count is an error (R015); a
rotation takes its count modulo the width.

A bool is one bit: `^` accumulates, `~` is not.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from numbers import Real
from typing import Any

import numpy as np

from rvm.leaf import Node, select
from rvm.leaf.ops import BIT, I64, WIDTHS, Native, Op, add, named, number, signed, wrapped
from rvm.leaf.trace import Fault, apply, by_kind, constant, converted, fitting, unless
from rvm.numbers.base import NumberSystem, plain, shortened, shown
from rvm.numbers.code import Body, Code, Codes, codes_of, comparisons
from rvm.numbers.lifting import KINDS, lifting_bodies
from rvm.numbers.support import division_by_zero, even_factor, name, outside_domain
from rvm.types import Scalar


class BoolSystem(NumberSystem):
    """One bit."""

    updates = frozenset({"xor"})
    start = False
    converts = True
    kinds = (int,)
    kind = "a bool"

    def __init__(self, t: Scalar) -> None:
        super().__init__(t, False, codes_of("bool", {"": (BIT,)}, bool_bodies()))

    def literal(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, int) and value in (0, 1):
            return bool(value)
        raise ValueError(f"a bool is true or false, not {shown(value)}")

    def from_python(self, value: Any) -> bool:
        value = plain(value)
        return value if isinstance(value, bool) else super().from_python(value)

    def text(self, raw: Any) -> str:
        return "true" if raw else "false"


def bool_bodies() -> dict[str, Body]:
    """The functions of bools.  `and` and `or` here evaluate both arguments but in Python."""
    return {
        "==": lambda a, b: by_kind("eq", a, b),
        "!=": lambda a, b: by_kind("ne", a, b),
        "^": lambda a, b: by_kind("ne", a, b),
        "&": lambda a, b: apply("and", a, b),
        "|": lambda a, b: apply("or", a, b),
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        **{f: (lambda a: ~a) for f in ("~", "not")},
    }


class IntegerSystem(NumberSystem):
    """Two's complement integers of a width, signed or not."""

    updates = frozenset({"add", "xor"})
    converts = True
    kind = "an integer"

    def __init__(self, t: Scalar) -> None:
        self.signed = t.is_signed
        self.bits = t.bits
        self.low = -(1 << self.bits - 1) if self.signed else 0
        self.high = self.low + (1 << self.bits) - 1
        super().__init__(t, 0, _codes(t.name, t.name))

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        codes = self.codes
        if fn in SHIFTS and elems[1] != self.type:
            codes = _codes(self.type.name, elems[1].name)
        return codes.get(fn)

    def literal(self, value: Any) -> int:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not an {self.type}")
        value = shortened(value)
        if isinstance(value, Real) and value == value // 1:
            value = math.floor(value)
        if not isinstance(value, int):
            raise ValueError(f"{shown(value)} is not an integer, so not a value of {self.type}")
        if not self.low <= value <= self.high:
            raise ValueError(f"{shown(value)} does not fit {self.type} ({self.low} to {self.high})")
        return value

    def from_python(self, value: Any) -> int:
        if type(value) is int and self.low <= value <= self.high:
            return value
        value = plain(value)
        if not isinstance(value, bool):
            with suppress(TypeError):
                value = operator.index(value)
        return int(super().from_python(value))

    def list_from_python(self, values: list[Any]) -> list[Any]:
        # Of plain integers the least and the greatest are looked at, which is faster.
        if set(map(type, values)) == {int} and self.low <= min(values) <= max(values) <= self.high:
            return values.copy()
        return super().list_from_python(values)


SHIFTS = ("<<", ">>", "rotl", "rotr")
"""Functions whose second argument may be of another type."""


@cache
def _codes(kind: str, count: str) -> Codes:
    """The codes of an integer type, with counts of another."""
    title = kind if count == kind else f"{kind}_{count}"
    kinds = {"": (kind,), **dict.fromkeys(SHIFTS, (kind, count))}
    kinds |= {fn: (kind, *others) for fn, others in KINDS.items()}
    return codes_of(title, kinds, bodies(kind))


ZERO_DIVISOR = Fault("zero_divisor", division_by_zero, implied=True, safe=1)
NEGATIVE_COUNT = Fault(
    "negative_count", lambda k: outside_domain("a shift by a negative count", count=k)
)


def _power_fault(x: int, n: int) -> Exception:
    if x == 0:
        return division_by_zero(1)
    return outside_domain("an integer to a negative power", base=x, exponent=n)


EVEN_FACTOR = Fault("even_factor", even_factor)
NEGATIVE_POWER = Fault("negative_power", _power_fault)


def divisor(a: Node, b: Node) -> Node:
    """`b`, refused where it is 0."""
    return unless(b, by_kind("eq", b, 0), ZERO_DIVISOR, a)


def bodies(kind: str) -> dict[str, Body]:
    """The functions of an integer type, over leaf operations of its kind."""
    bits, has_sign = WIDTHS[kind], signed(kind)

    def power(x: Node, n: Node) -> Node:
        if has_sign:
            # To a negative power, 1 and -1 are what they are to a power that is as odd.
            negative = n < 0
            unit = by_kind("eq", x, 1) | by_kind("eq", x, -1)
            x = unless(x, negative & ~unit, NEGATIVE_POWER, x, n)
            n = select(negative, apply("and", n, 1), n)
        return apply("power", x, n)

    def shifted(x: Node, k: Node, down: bool) -> Node:
        if signed(k.kind):
            k = unless(k, k < 0, NEGATIVE_COUNT, k)
        far = k > bits - 1
        by = fitting(select(far, bits - 1, k), kind)
        if not down:
            return select(far, 0, apply("shl", x, by))
        return apply("ashr", x, by) if has_sign else select(far, 0, apply("lshr", x, by))

    def turned(name: str) -> Body:
        return lambda x, k: apply(name, x, fitting(apply("and", k, bits - 1), kind))

    def odd(k: Node) -> Node:
        return unless(k, by_kind("eq", k & 1, 0), EVEN_FACTOR, k)

    def reciprocal(k: Node) -> Node:
        """The inverse of an odd k modulo 2^bits, by Newton's steps: k has itself in 3 bits."""
        found, right = k, 3
        while right < bits:
            found = apply("wmul", found, apply("wsub", 2, apply("wmul", k, found)))
            right *= 2
        return found

    def high_product(x: Node, y: Node) -> Node:
        a, b = converted(x, I64), converted(y, I64)
        if bits < 64:
            # The product of two u32 is a number without a sign in as many bits.
            down = "ashr" if has_sign else "lshr"
            return converted(apply(down, apply("wmul", a, b), bits), kind)
        high = converted(apply("umulh", a, b), kind)
        if has_sign:
            # As unsigned numbers, negative ones are 2^bits more than they are.
            high = apply("wsub", high, select(x < 0, y, 0))
            high = apply("wsub", high, select(y < 0, x, 0))
        return high

    def sign(x: Node) -> Node:
        below = select(by_kind("ne", x, 0), constant(-1 if has_sign else 1, kind), 0)
        return select(x > 0, constant(1, kind), below) if has_sign else below

    return {
        **comparisons(),
        "+": lambda a, b: apply("wadd", a, b),
        "-": lambda a, b: apply("wsub", a, b),
        "*": lambda a, b: apply("wmul", a, b),
        "//": lambda a, b: apply("floordiv", a, divisor(a, b)),
        "%": lambda a, b: apply("mod", a, divisor(a, b)),
        "**": power,
        "neg": lambda x: apply("wneg", x),
        "abs": lambda x: apply("wabs", x) if has_sign else x,
        "sign": sign,
        "square": lambda x: apply("wmul", x, x),
        "min": lambda a, b: select(a <= b, a, b),
        "max": lambda a, b: select(a >= b, a, b),
        "relu": lambda x: select(x > 0, x, 0) if has_sign else x,
        "&": lambda a, b: a & b,
        "|": lambda a, b: a | b,
        "^": lambda a, b: a ^ b,
        "~": lambda x: apply("inv", x),
        "<<": lambda x, k: shifted(x, k, down=False),
        ">>": lambda x, k: shifted(x, k, down=True),
        "odd_product": lambda x, k: apply("wmul", x, odd(k)),
        "odd_quotient": lambda x, k: apply("wmul", x, reciprocal(odd(k))),
        "high_product": high_product,
        "rotl": turned("rotl"),
        "rotr": turned("rotr"),
        **(lifting_bodies(kind, kind) if has_sign else {}),
    }


# ------------------------------------------------------------------------- powers

MOST_UNROLLED = 64
"""The greatest constant exponent whose products are written out in machine code."""


@name
def power_array(x: Any, n: Any) -> Any:
    """`x ** n` on arrays for n >= 0, by squaring; it wraps."""
    x, rest = np.broadcast_arrays(x, n)
    result, one = np.ones(x.shape, x.dtype), rest.dtype.type(1)
    while np.any(rest):
        result = np.where(rest & one, result * x, result)
        x, rest = x * x, rest >> one
    return result


def raised(x: Any, n: int, times: Callable[[Any, Any], Any], one: Any = None) -> Any:
    """The power n > 0 by squaring, with the products in the order of a loop over n's bits.

    The loop starts from `one`; without it the product by 1 is left out.
    """
    result = one
    while True:
        if n & 1:
            result = x if result is None else times(result, x)
        n >>= 1
        if not n:
            return result
        x = times(x, x)


def _native_power(kind: str) -> Native:
    def native(b: Any, x: Node, n: Node) -> Any:
        constant = number(n)
        if constant is not None and 0 < constant <= MOST_UNROLLED:
            return raised(x, constant, lambda p, q: b.op("wmul", p, q))
        if WIDTHS[kind] == 64:
            return b.helper("rvm_integer_power", I64, x, n)
        # What wraps at 64 bits and is cut wraps at fewer.
        wide = (b.op("zext", v, kind=I64) for v in (x, n))
        return b.op("trunc", b.helper("rvm_integer_power", I64, *wide), kind=x.kind)

    return native


for _kind in WIDTHS:
    _python = wrapped(f"pow({{0}}, {{1}}, {1 << WIDTHS[_kind]})", _kind)
    _numpy, _native = "power_array({0}, {1})", _native_power(_kind)
    add(Op(named("power", _kind), (_kind, _kind), _kind, _python, _numpy, _native))
