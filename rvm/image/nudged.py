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

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from math import log2
from typing import Any, cast

from rvm.expr import Apply, Const, Expr
from rvm.image import Code, Image, Ready, image_of
from rvm.image.nudges import PREFIX
from rvm.isa.functions.conversions import conversion_target
from rvm.isa.functions.formulas import rank
from rvm.isa.rows import FUNCTIONS, FunctionRow
from rvm.isa.shapes import Lengths, dims_of
from rvm.isa.tangents import zero_like
from rvm.isa.typing import apply, typed
from rvm.leaf.ops import limits
from rvm.numbers import system
from rvm.numbers.code import kind_of
from rvm.numbers.complex_functions import WHOLE
from rvm.program import Function as ProgramFunction
from rvm.program import Program
from rvm.stmt import Alloc, Call, Free, Map, Stmt, Update, When
from rvm.types import BOOL, C128, F32, F64, I64, LOG64, Scalar, ValueType, elem_of

SUMMED = (F64, F32, C128)
"""The types whose sums are those of the numbers that they hold."""
ROUNDING = (*SUMMED, LOG64)
"""The types whose numbers are moved in proportion to their size.  Those of fixed-point types are
moved by whole units in the last place."""


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
                if made.type == dst.type and not system(elem_of(cast(ValueType, dst.type))).exact:
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
        if row.moves or _is_exact(value, row):
            return inner
        t = elem_of(cast(ValueType, value.type))
        if conversion_target(value.fn) is not None:
            return self._converted(value, inner, t)
        if not any(map(self._rounds, value.args)) or (system(t).grain and _is_whole(row)):
            return inner
        if row.cancels:
            *before, x = inner.args
            below = apply("<", x, zero_like(x, elem_of(cast(ValueType, x.type))))
            moved = apply("select", below, self._by_one("plain", x), x)
            inner = replace(inner, args=(*before, moved))
        if system(t).grain and row.contracts and not rank(value):
            return apply("sum", self._nudged(apply("*", *value.args)))
        if row.is_elementwise:
            moved = self._by_one(*_kind(value, row, t, inner))
            if t.parts > 1 and value.fn == "**" and self._rounds(value.args[1]):
                return self._power(moved, *value.args)
            return moved
        if t in SUMMED and rank(value.args[0]):
            if row.linear or row.contracts:
                return self._by_one("within", inner, *_summed(value, row.contracts))
            if rank(value) < rank(value.args[0]):
                return self._by_one("within", inner, *_multiplied(value))
        if system(t).grain and (row.contracts or rank(value) < rank(value.args[0])):
            return self._by_one("within", inner, _rounded(value, row.contracts, t))
        return self._by_one("plain", inner)

    def _power(self, moved: Expr, x: Expr, y: Expr) -> Expr:
        """A complex power, by the logarithm of its base where it is computed so.

        There rounding grows with the exponent and with the logarithm.
        """
        c, z = _mark(y, C128), _mark(x, C128)
        n = apply("floor", apply("real", c))
        few = apply("<=", apply("abs", n), typed(Const(WHOLE), F64))
        short = apply("and", apply("==", c, apply("c128", n)), few)
        nothing = apply("==", z, typed(Const(0), C128))
        found = self._nudged(apply("exp", apply("*", c, apply("log", z))))
        return apply("select", apply("or", short, nothing), moved, found)

    def _converted(self, value: Apply, inner: Apply, t: Scalar) -> Expr:
        """A conversion, perturbed where the number would not come back from it."""
        (x,) = value.args
        was = elem_of(cast(ValueType, x.type))
        if t == was:
            return inner
        if t.parts > 1:
            return inner if was == F64 else apply(value.fn, self._nudged(apply("f64", x)))
        if LOG64 in (t, was):
            if t not in (LOG64, F64):
                inner = replace(value, args=(self._nudged(apply("f64", x)),))
            return self._by_one("small", inner, _mark(x, t))
        held: Expr = value
        if system(was).exact:
            greatest = _greatest(was, t)
            if greatest is None:
                return inner
            held = apply("min", value, greatest)
        back = apply("==", apply(str(was), held), x)
        return self._by_one("marked", inner, apply("select", back, *_marks(t)))

    def _by_one(self, kind: str, value: Expr, *known: Expr) -> Expr:
        """A value moved by a unit in the last place, or some."""
        return apply(f"{PREFIX}{kind}{len(known)} {self.image.how}", value, *known)

    def _rounds(self, value: Expr) -> bool:
        if value.type is None:
            return False
        t = elem_of(value.type)
        return t in ROUNDING or bool(system(t).grain)


def _is_whole(row: FunctionRow) -> bool:
    """Whether a function is one of integers too, which does not round fixed-point numbers."""
    return row.cost in ("MOVES", "ADDS") or (row.divides and not row.underflows)


def _kind(value: Apply, row: FunctionRow, t: Scalar, inner: Apply) -> tuple[Any, ...]:
    """How a result is moved, itself, and the numbers from which it is computed, of its type.

    These are zeros and ones for numbers of other types, and factors that a product has twice.
    Fixed-point ones are as they are when moved: an inverse knows the parts of a rotation by those.
    """
    known = inner.args if system(t).grain else value.args
    alike = all(elem_of(cast(ValueType, x.type)) == t for x in known)
    if t in SUMMED and alike and value.fn in ("+", "-"):
        a, b = known
        return "sum", inner, value, a, apply("neg", b) if value.fn == "-" else b
    product = row.cost == "MULTS"
    if not product:
        # A power is lost where it is 0 and its base is not, whatever the exponent is.
        known = known[:1]
    made = [_mark(x, t, product) for x in known]
    if not row.underflows:
        return "plain", inner, *made
    if not product or (system(t).grain and not alike):
        return "small", inner, *made
    return "quotient" if row.divides else "product", inner, *(made * 2)[:2]


def _mark(x: Expr, t: Scalar, whole: bool = False) -> Expr:
    """A number in a type, or what shows in it whether the number is zero.

    Of a complex number whether the imaginary part is, unless it is the `whole`.
    """
    was = elem_of(cast(ValueType, x.type))
    if was == t:
        return x
    if t.parts > was.parts:
        return apply(str(t), x)
    if t.parts < was.parts and not whole:
        return apply("imag", x)
    return apply("select", apply("==", x, typed(Const(0), was)), *_marks(t))


def _marks(t: Scalar) -> tuple[Expr, Expr]:
    return typed(Const(0), t), typed(Const(1), t)


def _greatest(was: Scalar, t: Scalar) -> Const | None:
    """The greatest number of a type that an exact type has room for; None if it has all others."""
    most = limits(kind_of(was))[1] if was.bits > 1 else 1
    if system(t).grain:
        down = was.frac - t.frac
        return Const(most >> down, t) if down > 0 and system(was).grain else None
    spare = most.bit_length() - 1 - round(-log2(system(t).unit))
    return Const((most >> spare << spare) * was.unit, t) if spare > 0 else None


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
        large = apply("sum", size)
        if contracts:
            is_empty = apply("==", _count(size), typed(Const(0), I64))
            large = apply("*", apply("choose", is_empty, zero, apply("amax", size)), wide)
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


def _rounded(value: Apply, contracts: bool, t: Scalar) -> Expr:
    """A bound on the rounding error of a product of arrays of fixed-point numbers, or of `prod`.

    It is the distance from the same product in f64, with what that may be off by; in a sum of
    products no more than a unit for each.  Products of whole numbers are exact.
    """
    plain = [apply("f64", x) for x in value.args]
    lengths = _lengths(value.args[0])
    terms = lengths[-1] if contracts else reduce(lambda a, b: apply("*", a, b), lengths)
    count = _real(terms, F64)
    unit, zero, four, least = (typed(Const(v), F64) for v in (system(t).unit, 0.0, 4.0, 2.0**-52))
    off = apply("abs", apply("-", apply("f64", value), apply(value.fn, *plain)))
    # Each factor is rounded to an f64, and each product and sum.
    size = apply(value.fn, *(apply("abs", x) for x in plain))
    off = apply("+", off, apply("*", size, apply("*", apply("+", count, four), least)))
    if contracts:
        off = apply("min", off, apply("*", count, unit))
    parts = [apply("sum", apply("abs", apply("-", x, apply("floor", x)))) for x in plain]
    rounds = apply("!=", reduce(lambda a, b: apply("min", a, b), parts), zero)
    return apply(str(t), apply("select", rounds, apply("+", off, unit), zero))


def _cut(x: Expr, large: Expr) -> Expr:
    """Numbers without the digits below those of a larger one, which is added and subtracted."""
    if elem_of(cast(ValueType, x.type)).is_complex:
        large = apply("complex", large, large)
    return apply("-", apply("+", x, large), large)


def _multiplied(value: Apply) -> tuple[Expr, Expr]:
    """The size of a reduction's result, times the square root of the number of its terms."""
    t = elem_of(cast(ValueType, value.type))
    total = apply("abs", value)
    count = apply("sqrt", _real(_count(value.args[0]), F64))
    total = apply("*", total, _real(count, elem_of(cast(ValueType, total.type))))
    off = apply("-", value, value)
    return apply("complex", total, total) if t.is_complex else total, off


def _lengths(x: Expr) -> Sequence[Expr]:
    """The lengths of an array, given as those of places in it where possible."""
    known = dims_of(x, Lengths().of_place)
    return known or [apply("dim", x, Const(k, I64)) for k in range(rank(x))]


def _count(x: Expr) -> Expr:
    """The number of an array's elements."""
    return reduce(lambda a, b: apply("*", a, b), _lengths(x))


def _real(value: Expr, t: Scalar) -> Expr:
    return value if value.type == t else apply(str(t), value)


def _is_exact(value: Apply, row: FunctionRow) -> bool:
    """Whether a function does not round here; a real number made of a complex one is rounded."""
    was, becomes = (elem_of(cast(ValueType, v.type)) for v in (value.args[0], value))
    return row.exact and was.parts <= becomes.parts
