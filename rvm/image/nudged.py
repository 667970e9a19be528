"""Programs with perturbed rounding: results are moved by a unit in the last place, up or down.

What a run comes to with other roundings says how far it is to be trusted.  Which way a number moves
is a hash of its digits, so code is pure and the same on every engine, in whatever unit a program
computes; another seed is another hash.
Nothing that is made here is kept from one process to another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import cast

from rvm.expr import Apply, Expr
from rvm.image import Code, Image, Ready
from rvm.isa.rows import FUNCTIONS, FunctionRow, FunctionTable
from rvm.isa.rules import elementwise
from rvm.isa.tangents import zero_like
from rvm.isa.typing import apply
from rvm.leaf.trace import Node, bits, to_float
from rvm.leaf.trace import apply as leaf
from rvm.numbers import system
from rvm.numbers.code import Body, coded, kind_of
from rvm.numbers.code import Code as FunctionCode
from rvm.numbers.complex_functions import by_parts
from rvm.numbers.conversions import on_real
from rvm.numbers.rounding import UNIT
from rvm.program import Function, Program
from rvm.stmt import Alloc, Call, Map, Stmt, Update, When
from rvm.types import C128, F32, F64, LOG64, Scalar, ValueType, elem_of

NAME = re.compile(r"\.nudged ([0-9]+)")
"""What the functions are called: no text can name them."""
FRACTION = (1 << 52) - 1
"""The bits of a number that do not depend on its unit, if that is a power of 2."""
ROUNDING = (F64, F32, C128, LOG64)
"""The types whose numbers are moved: all of ours that round."""
FACTORS = 0x9E3779B97F4A7C15 - (1 << 64), 0xBF58476D1CE4E5B9 - (1 << 64)
"""Odd numbers that mix bits; sources: D. Knuth, The Art of Computer Programming, vol. 3, section
6.4; D. Stafford, Better bit mixing (2011)."""


def nudged(program: Program, seed: int) -> Program:
    """A program that runs as one with perturbed rounding; made once for each seed."""
    found = program.cache.get((nudged, seed))
    if not isinstance(found, Program):
        found = program.cache[nudged, seed] = replace(program)
        found.cache[Image] = NudgedImage(found, seed)
    return found


class NudgedImage(Image):
    """The code of a program with perturbed rounding."""

    def __init__(self, program: Program, seed: int) -> None:
        super().__init__(program)
        self.seed = seed

    def _made(self, function: Function, undo: bool) -> Code:
        return NudgedCode(self, function, undo)


class NudgedCode(Code):
    """Code whose statements move what they compute."""

    image: NudgedImage

    def ready(self, pc: int) -> Ready:
        found = self._ready[pc]
        if found is None:
            stmts, clashes = super().ready(pc)
            found = tuple(map(self._moved, stmts)), clashes
            self._ready[pc] = found
        return found

    def _moved(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Update(dst, op, value) if self._rounds(dst):
                made = apply(op, dst, value)
                if made.type == dst.type:
                    return Map((dst,), (self._nudged(made),), ())
                return Update(dst, op, self._nudged(value))
            case Map(dsts, values, inverse):
                return Map(dsts, tuple(map(self._nudged, values)), inverse)
            case Alloc(reg, value) if value is not None:
                return Alloc(reg, self._nudged(value))
            case Call(callee, args, undo):
                return Call(callee, tuple(map(self._nudged, args)), undo)
            case When(cond, body):
                return When(cond, tuple(map(self._moved, body)))
        return stmt

    def _nudged(self, value: Expr) -> Expr:
        """A value whose operations are each moved; what only moves numbers, or is exact, stays."""
        if not isinstance(value, Apply) or not self._rounds(value):
            return value
        row = FUNCTIONS[value.fn]
        if row.steps:
            return value
        inner = replace(value, args=tuple(map(self._nudged, value.args)))
        if row.moves or _is_exact(value, row) or not any(map(self._rounds, value.args)):
            return inner
        if row.cancels:
            (x,) = inner.args
            below = apply("<", x, zero_like(x, elem_of(cast(ValueType, x.type))))
            inner = replace(inner, args=(apply("select", below, self._moved_by_one(x), x),))
        return self._moved_by_one(inner)

    def _moved_by_one(self, value: Expr) -> Expr:
        """A value moved by a unit in the last place."""
        return apply(f".nudged {self.image.seed}", value)

    def _rounds(self, value: Expr) -> bool:
        return value.type is not None and elem_of(value.type) in ROUNDING


@cache
def _row(name: str, seed: int) -> FunctionRow:
    return FunctionRow(
        name,
        1,
        elementwise("value"),
        "x, moved by a unit in the last place or not",
        code={"*": partial(_code, seed)},
    )


def _code(seed: int, t: Scalar) -> FunctionCode:
    unit = system(t).unit
    name = f"nudged_{seed}"
    if t.is_complex:
        one = _body(seed, UNIT)
        parts = by_parts(lambda z: (one(z[0]), one(z[1])))
        return coded(f"{name}_{t}", parts, (kind_of(t),))
    if t.is_float and t.bits < 64:
        return on_real(name, _body(seed, unit), (t,), t)
    return coded(f"{name}_{t}", _body(seed, UNIT), (kind_of(t),))


def _is_exact(value: Apply, row: FunctionRow) -> bool:
    """Whether a function rounds nothing here; a real number made of a complex one is rounded."""
    was, becomes = (elem_of(cast(ValueType, v.type)) for v in (value.args[0], value))
    return row.exact and was.is_complex == becomes.is_complex


def _body(seed: int, unit: float) -> Body:
    """Half of the hashes move a number up, the others down."""

    def body(x: Node) -> Node:
        digits = bits(x) & FRACTION
        mixed = leaf("wmul", digits ^ (seed * FACTORS[1] % (1 << 63)), FACTORS[0])
        mixed = leaf("wmul", mixed ^ (mixed >> 29), FACTORS[1])
        way = to_float(mixed >> 63) + 0.5
        # That is between three quarters of a gap between numbers and one and a half.
        return x + x * (way * (1.5 * unit))

    return body


def _on_demand(others: Callable[[str], FunctionRow | None], name: str) -> FunctionRow | None:
    found = NAME.fullmatch(name)
    return others(name) if found is None else _row(name, int(found[1]))


FunctionTable.on_demand = staticmethod(partial(_on_demand, FunctionTable.on_demand))
