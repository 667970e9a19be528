"""Programs with perturbed rounding: results are moved by a unit in the last place, up or down.

The results of a run with other roundings show how far it can be trusted.  The direction in which a
number moves is a hash of its digits and of the numbers that it is computed from, so code is pure
and behaves the same on every engine, and in any unit; another seed gives another hash.  A sum or
difference that is exact is not moved; a number that underflows becomes a smallest number.  Sums of
arrays and of products are moved by units in the last place of the sum of all absolute values, since
partial sums are no larger, and by their own rounding errors.  Nothing that is made here is stored
for other processes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from math import log2
from typing import cast

from rvm.expr import Apply, Const, Expr
from rvm.image import Code, Image, Ready, image_of
from rvm.isa.functions.formulas import rank
from rvm.isa.rows import FUNCTIONS, FunctionRow, FunctionTable
from rvm.isa.rules import elementwise
from rvm.isa.shapes import Lengths, dims_of
from rvm.isa.tangents import zero_like
from rvm.isa.typing import apply, typed
from rvm.leaf import Function
from rvm.leaf.ops import I64 as I64_KIND
from rvm.leaf.trace import Node, Table, bits, constant, equal, select, to_float, unequal
from rvm.leaf.trace import apply as leaf
from rvm.numbers import system
from rvm.numbers.code import Body, coded, kind_of
from rvm.numbers.code import Code as FunctionCode
from rvm.numbers.complex_functions import by_parts
from rvm.numbers.conversions import as_double, of_double
from rvm.program import Function as ProgramFunction
from rvm.program import Program
from rvm.stmt import Alloc, Call, Free, Map, Stmt, Update, When
from rvm.types import BOOL, C128, F32, F64, I64, LOG64, Scalar, ValueType, elem_of

NAME = re.compile(r"\.nudged (plain|sum|small|within)([0-9]+) ([0-9]+) ([0-9]+)")
"""The prefix of the functions' names, which no text can use."""
FRACTION = (1 << 52) - 1
"""The bits of a number that do not depend on its unit, if that is a power of 2."""
ROUNDING = (F64, F32, C128, LOG64)
"""The types whose numbers are moved: all of ours that round."""
TURNED = 3
"""With every third seed, results of additions are moved to where they were rounded from: errors
that always have the same sign, as where equal numbers are added, then get the opposite one."""
FACTORS = 0x9E3779B97F4A7C15 - (1 << 64), 0xBF58476D1CE4E5B9 - (1 << 64)
"""Odd numbers that mix bits; sources: D. Knuth, The Art of Computer Programming, vol. 3, section
6.4; D. Stafford, Better bit mixing (2011)."""


def nudged(program: Program, seed: int, steps: int = 1) -> Program:
    """A program that runs like another one with perturbed rounding; made once for each seed.

    Results are moved by up to `steps` units in the last place, or somewhat more.
    """
    found = program.cache.get((nudged, seed, steps))
    if not isinstance(found, Program):
        found = program.cache[nudged, seed, steps] = replace(program)
        found.cache[Image] = NudgedImage(found, f"{seed} {steps}", image_of(program))
    return found


class NudgedImage(Image):
    """The code of a program with perturbed rounding."""

    def __init__(self, program: Program, how: str, plain: Image) -> None:
        super().__init__(program)
        self.how = how
        # What is compiled without is compiled with: it takes as many ticks, and longer ones.
        self.heat = plain.heat

    def _made(self, function: ProgramFunction, undo: bool) -> Code:
        return NudgedCode(self, function, undo)


class NudgedCode(Code):
    """Code whose statements perturb the values that they compute."""

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
            case Free(_, value) if value is not None:
                return replace(stmt, value=self._nudged(value))
            case Call(callee, args, undo):
                return Call(callee, tuple(map(self._nudged, args)), undo)
            case When(cond, body):
                return When(cond, tuple(map(self._moved, body)))
        return stmt

    def _nudged(self, value: Expr) -> Expr:
        """A value with each operation perturbed, unless it is exact or only moves numbers."""
        if not isinstance(value, Apply) or not self._rounds(value):
            return value
        row = FUNCTIONS[value.fn]
        if row.steps:
            return value
        inner = replace(value, args=tuple(map(self._nudged, value.args)))
        if row.moves or _is_exact(value, row) or not any(map(self._rounds, value.args)):
            return inner
        if row.cancels:
            *before, x = inner.args
            below = apply("<", x, zero_like(x, elem_of(cast(ValueType, x.type))))
            moved = apply("select", below, self._by_one("plain", x), x)
            inner = replace(inner, args=(*before, moved))
        t = elem_of(cast(ValueType, value.type))
        if not row.is_elementwise and not t.is_log and rank(value.args[0]):
            if row.linear or row.contracts:
                return self._by_one("within", inner, *_summed(value, row.contracts))
            if rank(value) < rank(value.args[0]):
                return self._by_one("within", inner, *_multiplied(value))
        known = value.args if row.is_elementwise else ()
        if t.is_log or any(a.type is None or elem_of(a.type) != t for a in known):
            known = ()
        if known and value.fn in ("+", "-"):
            a, b = known
            return self._by_one("sum", inner, value, a, apply("neg", b) if value.fn == "-" else b)
        kind = "small" if row.underflows and known and t in (F64, F32) else "plain"
        return self._by_one(kind, inner, *known)

    def _by_one(self, kind: str, value: Expr, *known: Expr) -> Expr:
        """A value moved by a unit in the last place, or some."""
        return apply(f".nudged {kind}{len(known)} {self.image.how}", value, *known)

    def _rounds(self, value: Expr) -> bool:
        return value.type is not None and elem_of(value.type) in ROUNDING


def _summed(value: Apply, contracts: bool) -> tuple[Expr, Expr]:
    """The sum of the absolute values of a function's terms, and the rounding error of its sum.

    The first is 0 where the sum surely rounds nothing: where all terms and all partial sums are
    multiples of one number with few enough digits, or products of factors with few digits. The
    second is known up to the last digits of the first, since sums of such multiples are exact; for
    matrices it is 0, and the first grows with the number of terms.
    """
    t = elem_of(cast(ValueType, value.type))
    terms, rest = value.args[: 1 + contracts], value.args[1 + contracts :]
    sizes = [apply("abs", x) for x in terms]
    total = apply(value.fn, *sizes, *rest)
    real = elem_of(cast(ValueType, total.type))
    digits = round(-log2(system(real).unit))
    zero, many, wide = (typed(Const(v), real) for v in (0.0, 1.0, 2.0 ** (digits * 3 // 4)))
    rounds: Expr = typed(Const(False), BOOL)
    for x, size in zip(terms, sizes, strict=True):
        large = apply("*", apply("amax", size), wide) if contracts else apply("sum", size)
        left = apply("sum", apply("abs", apply("-", x, _cut(x, large))))
        rounds = apply("or", rounds, apply("!=", left, zero))
    off = apply("-", value, value)
    if not contracts:
        off = _sum_error(value, terms[0], rest)
    elif not rank(value):
        products = apply("*", *terms)
        off = _sum_error(cast(Apply, apply("sum", products)), products, ())
    else:
        length = _lengths(terms[0])[-1]
        many = apply("+", many, apply("*", _real(length, real), typed(Const(2.0**-5), real)))
    total = apply("*", total, apply("select", rounds, many, zero))
    return apply("complex", total, total) if t.is_complex else total, off


def _sum_error(value: Apply, x: Expr, rest: tuple[Expr, ...]) -> Expr:
    """The rounding error of the sum of an array, to be added to its value.

    Source: S. M. Rump, T. Ogita and S. Oishi, "Accurate floating-point summation" (2008): leading
    digits, cut off at one place, are summed exactly.
    """
    high = _cut(x, apply("sum", apply("abs", x)))
    above, below = (apply(value.fn, part, *rest) for part in (high, apply("-", x, high)))
    return apply("+", apply("-", above, value), below)


def _cut(x: Expr, large: Expr) -> Expr:
    """Numbers without the digits below those of a larger one, which is added and subtracted."""
    if elem_of(cast(ValueType, x.type)).is_complex:
        large = apply("complex", large, large)
    return apply("-", apply("+", x, large), large)


def _multiplied(value: Apply) -> tuple[Expr, Expr]:
    """The size of a reduction's result, times the square root of the number of its terms."""
    t = elem_of(cast(ValueType, value.type))
    total = apply("abs", value)
    count = apply(
        "sqrt", _real(reduce(lambda a, b: apply("*", a, b), _lengths(value.args[0])), F64)
    )
    total = apply("*", total, _real(count, elem_of(cast(ValueType, total.type))))
    off = apply("-", value, value)
    return apply("complex", total, total) if t.is_complex else total, off


def _lengths(x: Expr) -> Sequence[Expr]:
    """The lengths of an array, given as those of places in it where possible."""
    known = dims_of(x, Lengths().of_place)
    return known or [apply("dim", x, Const(k, I64)) for k in range(rank(x))]


def _real(value: Expr, t: Scalar) -> Expr:
    return value if value.type == t else apply(str(t), value)


@cache
def _row(name: str, kind: str, count: int, seed: int, steps: int) -> FunctionRow:
    return FunctionRow(
        name,
        1 + count,
        elementwise("value"),
        "x, moved by a unit in the last place or not",
        code={"*": partial(_code, kind, count, seed, steps)},
    )


@cache
def _table(seed: int, steps: int) -> Table:
    """What of a seed comes into perturbed numbers, for machine code that all seeds share."""
    turned = steps > 1 and seed % TURNED == 0
    return Table(f"seed_{steps}", I64_KIND, (seed * FACTORS[1] % (1 << 63), int(turned)), True)


def _code(kind: str, count: int, seed: int, steps: int, t: Scalar) -> FunctionCode:
    """The function's code; as machine code it finds the seed in a table."""
    kinds, table = (kind_of(t),) * (1 + count), _table(seed, steps)
    sys = system(t)
    least = sys.unit * sys.least if t in (F64, F32) else 0.0
    by_value, by_table = (
        _on(t, partial(_body, kind, given, steps, sys.unit, least))
        for given in (table.values, table)
    )
    made = coded(f"nudged_{kind}{count}_{seed}_{steps}_{t}", by_value, kinds)
    return replace(made, body=Function(f"nudged_{kind}{count}_{steps}_{t}", by_table, kinds))


def _on(t: Scalar, body: Body) -> Body:
    """A function of f64 numbers as one of a type's."""
    if t.parts > 1:
        return by_parts(lambda *z: (body(*(p[0] for p in z)), body(*(p[1] for p in z))))
    if t.is_float and t.bits < 64:
        return lambda *args: of_double(body(*(as_double(x, t) for x in args)), t)
    return body


def _is_exact(value: Apply, row: FunctionRow) -> bool:
    """Whether a function does not round here; a real number made of a complex one is rounded."""
    was, becomes = (elem_of(cast(ValueType, v.type)) for v in (value.args[0], value))
    return row.exact and was.parts == becomes.parts


def _body(
    kind: str,
    given: Table | Sequence[int],
    steps: int,
    unit: float,
    least: float,
    x: Node,
    *known: Node,
) -> Node:
    """A perturbed number: for each step, a hash moves it up or down.

    `known` are the values from which it is computed, without other rounding: for a sum, the sum and
    its terms.
    """
    digits = bits(x) & FRACTION
    for other in known:
        digits = leaf("wmul", digits, FACTORS[1]) ^ (bits(other) & FRACTION)
    salt, turned = _entries(given, steps)
    mixed = leaf("wmul", digits ^ salt, FACTORS[0])
    mixed = leaf("wmul", mixed ^ (mixed >> 29), FACTORS[1])
    down = mixed >> 63
    way = to_float((down << 1) + 1)
    if steps > 1:
        way = to_float((mixed >> (64 - steps.bit_length())) + down + 1)

    def along() -> Node:
        return way * to_float((down << 1) + 1)

    def opposite() -> Node:
        total, a, b = known
        # Source: D. Knuth, The Art of Computer Programming, vol. 2, section 4.2.2, theorem B.
        added = total - a
        off = (a - (total - added)) + (b - added)
        return along() * to_float((((bits(off) ^ bits(x)) >> 63) << 1) + 1)

    if kind == "sum":
        way = _chosen(turned, opposite, way)
    # A step is between three quarters of a gap between numbers and one and a half.
    moved = select(equal(x, 0.0), x, x + (x * (way * (0.75 * unit)) + way * least))
    if kind == "sum":
        total, a, b = known
        return select(equal(total - a, b) & equal(total - b, a), x, moved)
    if kind == "within":
        total, off = known
        return x + (total * (way * (0.75 * unit)) + off * _chosen(turned, along, way))
    if kind == "plain":
        return moved
    lost = equal(x, 0.0)
    for other in known:
        lost = lost & unequal(other, 0.0)
    return select(lost, way * least, moved)


def _entries(given: Table | Sequence[int], steps: int) -> tuple[Node | int, Node | int]:
    """What is mixed into digits, and whether additions are moved to where they were rounded from.

    The latter is known where there is one step only: they are not.
    """
    if not isinstance(given, Table):
        return given[0], given[1]
    first, second = (given[constant(k, I64_KIND)] for k in range(2))
    return first, second if steps > 1 else 0


def _chosen(turned: Node | int, yes: Callable[[], Node], no: Node) -> Node:
    if isinstance(turned, Node):
        return select(unequal(turned, 0), yes(), no)
    return yes() if turned else no


def _on_demand(others: Callable[[str], FunctionRow | None], name: str) -> FunctionRow | None:
    found = NAME.fullmatch(name)
    if found is None:
        return others(name)
    kind, *numbers = found.groups()
    return _row(name, kind, *map(int, numbers))


FunctionTable.on_demand = staticmethod(partial(_on_demand, FunctionTable.on_demand))
