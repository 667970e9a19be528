"""trop: whole numbers whose sum is the greater and whose product is the sum (max-plus)."""

from __future__ import annotations

from typing import Any

from rvm.numbers import Code, NumberSystem, system
from rvm.types import I64, Scalar, TypeRow

ROW = TypeRow("trop", "tropical", 64, "i8", "i64", "q")


class Tropical(NumberSystem):
    """A product is undone by a quotient; a sum, the greater of two, by nothing."""

    updates = frozenset({"mul"})
    kind = "an integer"

    def __init__(self, t: Scalar) -> None:
        whole = {f: system(I64).code(f, (I64, I64)) for f in system(I64).codes}
        kept = {f: whole[f] for f in ("<", "<=", ">", ">=", "==", "!=", "min", "max", "neg")}
        made = {"+": whole["max"], "*": whole["+"], "/": whole["-"]}
        extreme = "extreme(np.argmax, {0})"
        codes = {f: c for f, c in {**kept, **made}.items() if c is not None}
        super().__init__(t, 0, {**codes, "sum": Code(extreme, extreme)})

    def literal(self, value: Any) -> int:
        number: int = system(I64).literal(value)
        return number


class Greedy(Tropical):
    """It takes the greater for a sum that `add` accumulates."""

    updates = frozenset({"add", "mul"})


class Lossy(Greedy):
    """It says that a difference takes back what the greater did."""

    def __init__(self, t: Scalar) -> None:
        super().__init__(t)
        minus = system(I64).code("-", (I64, I64))
        assert minus is not None
        self.codes = {**self.codes, "-": minus}


MAKE = Tropical
