"""bf16: an f32 with eight bits of significand, held as the f32 that it is."""

from __future__ import annotations

import math

from rvm.leaf import Node, select
from rvm.leaf.trace import apply, bits, fabs, nearest, of_bits, with_sign
from rvm.numbers.code import Code
from rvm.numbers.conversions import NARROW
from rvm.numbers.floats import FloatSystem
from rvm.numbers.support import NAMES
from rvm.types import Scalar, TypeRow

ROW = TypeRow("bf16", "float", 16, "f4", "float", "f", exact=False, derivative="bf16")
LEAST = 2.0**-126
"""Below it numbers are multiples of 2**-133."""


def rounded(x: Node) -> Node:
    """An f64 rounded to the nearest number of eight bits, ties to even."""
    odd = apply("and", apply("lshr", bits(x), 45), 1)
    up = apply("wadd", apply("wadd", bits(x), (1 << 44) - 1), odd)
    cut = of_bits(apply("and", up, -(1 << 45)))
    small = with_sign(fabs(nearest(x * 2.0**133)) * 2.0**-133, x)
    size = fabs(x)
    return select(size < LEAST, small, select(size < math.inf, cut, x))


class Bf16(FloatSystem):
    """Sums and products of arrays are those of doubles, rounded once."""

    def __init__(self, t: Scalar) -> None:
        super().__init__(t, rounded, 1 << 8)
        NARROW[t] = rounded
        NAMES["bf16_near"] = self.near

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        if fn in ("sum", "prod"):
            text = f"bf16_near(np.{fn}({{0}}, dtype=dtype_f64).item())"
            return Code(text, text)
        return super().code(fn, elems)


MAKE = Bf16
