"""Functions of numbers that pure operations call: loops, and pairs."""

from __future__ import annotations

from rvm.emit.llvm.helpers import Body, helper
from rvm.ir.node import BIT, F64, I64, Node
from rvm.leaf.ops import LIBM
from rvm.numbers.elementary import TURNING, text

SYMBOLS = {f"rvm_{f}": f for f in LIBM}
"""The C library's functions by their aliases."""
PURE = "#0"
"""The attribute of functions of numbers."""
DIGIT = (1 << 32) - 1
"""The largest digit of divisions."""
TURN = "rvm_turn"
PAIR = "{double, double}"


def declaration(symbol: str) -> str:
    """LLVM's declaration of a key of `SYMBOLS`."""
    args = ", ".join(["double"] * LIBM[SYMBOLS[symbol]])
    return f"declare double @{symbol}({args}) {PURE}"


@helper(I64, I64, behind=PURE)
def rvm_integer_power(b: Body, x: Node, n: Node) -> Node:
    """A power that wraps, by squaring."""
    base, rest, power = b.begun(x), b.begun(n), b.begun(b.i64(1))

    def square() -> None:
        odd = b.op("trunc", b.get(rest), kind=BIT)
        more = b.op("wmul", b.get(power), b.get(base))
        b.set(power, b.select(odd, more, b.get(power)))
        b.set(base, b.op("wmul", b.get(base), b.get(base)))
        b.set(rest, b.op("lshr", b.get(rest), 1))

    b.loop(lambda: b.op("ne", b.get(rest), 0), square)
    return b.get(power)


@helper(I64, I64, I64, behind=PURE)
def rvm_fixed_div(b: Body, x: Node, y: Node, frac: Node) -> Node:
    """A quotient of raw fixed-point numbers, the divisor not 0.

    It is that of the magnitudes rounded to nearest, ties to even, modulo 2**64, with the sign.
    """
    n, d = (b.intrinsic("abs", v, b.truth(False)) for v in (x, y))
    low = b.op("shl", n, frac)
    high = b.op("urem", b.intrinsic("fshl", b.i64(0), n, frac), d)
    quotient = b.either(
        b.op("eq", high, 0),
        lambda: b.op("udiv", low, d),
        lambda: b.helper("rvm_divide_wide", I64, high, low, d),
    )
    rest = b.op("wsub", low, b.op("wmul", quotient, d))
    over = b.op("wsub", d, rest)
    to_even = b.op("and", b.op("eq", rest, over), b.op("trunc", quotient, kind=BIT))
    up = b.op("or", b.op("ugt", rest, over), to_even)
    size = b.op("wadd", quotient, b.op("zext", up, kind=I64))
    below = b.op("lt", b.op("xor", x, y), 0)
    return b.select(below, b.op("wsub", b.i64(0), size), size)


@helper(I64, I64, I64, behind=PURE)
def rvm_divide_wide(b: Body, high: Node, low: Node, divisor: Node) -> Node:
    """The quotient of `high` times 2**64 plus `low` by a divisor, all positive, high < divisor.

    Knuth's algorithm D in base 2**32 (The Art of Computer Programming, volume 2, section 4.3.1),
    for LLVM would call a function that is not in every process.
    """
    shift = b.intrinsic("ctlz", divisor, b.truth(False))
    d, left = b.op("shl", divisor, shift), b.intrinsic("fshl", high, low, shift)
    digits = b.op("shl", low, shift)
    quotient = b.i64(0)
    for digit in (b.op("lshr", digits, 32), b.op("and", digits, DIGIT)):
        q = b.helper("rvm_divide_digit", I64, left, digit, d)
        left = b.op("wsub", _joined(b, left, digit), b.op("wmul", q, d))
        quotient = _joined(b, quotient, q)
    return quotient


def _joined(b: Body, top: Node, digit: Node) -> Node:
    """A number and a further digit."""
    return b.op("wadd", b.op("shl", top, 32), digit)


@helper(I64, I64, I64, behind=PURE)
def rvm_divide_digit(b: Body, top: Node, digit: Node, d: Node) -> Node:
    """One digit of the quotient of `top` times 2**32 plus `digit` by `d`, whose first bit is set.

    The guess from the upper half of `d` is at most 2 too high.
    """
    upper, lower = b.op("lshr", d, 32), b.op("and", d, DIGIT)
    guess, left = b.begun(b.op("udiv", top, upper)), b.begun(b.op("urem", top, upper))

    def is_too_high() -> Node:
        bound = _joined(b, b.get(left), digit)
        over = b.op("ugt", b.op("wmul", b.get(guess), lower), bound)
        over = b.op("or", b.op("ugt", b.get(guess), DIGIT), over)
        return b.op("and", b.op("ule", b.get(left), DIGIT), over)

    def less() -> None:
        b.set(guess, b.op("wsub", b.get(guess), 1))
        b.set(left, b.op("wadd", b.get(left), upper))

    b.loop(is_too_high, less)
    return b.get(guess)


@helper(F64, gives=PAIR, behind=f"noinline {PURE}")
def rvm_turn(b: Body, x: Node) -> Node:
    """Sine and cosine of one angle, which share its reduction."""
    return b.op("pair", *(b.op("written", x, kind=F64, aux=text(f)) for f in TURNING), kind=PAIR)
