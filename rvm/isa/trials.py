"""Numbers on which it is tried whether one opcode undoes another, and what rounding explains.

Numbers of floats are of all sizes that the type has, and as near as can be to the constants of the
formulas, where a choice may go the other way.  A trial in which a value leaves the normal numbers
of its type decides nothing, since a run ends there, or loses bits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rvm.expr import Apply, Const, Expr, Place, walk
from rvm.faults import RvmError
from rvm.isa.implementation import value as function_value
from rvm.numbers import system
from rvm.types import F64, Scalar, elem_of

ORDINARY, WIDE = 8, 32
"""How many trials are of ordinary numbers, and how many of numbers of all sizes."""
MANY = 6
"""Of more constants these many are tried, at random."""
Values = Sequence[Any]


class Undecided(Exception):
    """A value left the normal numbers of its type, or a function is not defined there."""


def starts(
    rng: random.Random, types: Sequence[Scalar], formulas: Iterable[Expr]
) -> Iterator[list[Any]]:
    """Operands to be tried."""
    yield from ([draw(rng, t, n) for t in types] for n in range(2 * ORDINARY))
    if all(t.is_exact for t in types):
        return
    yield from ([anywhere(rng, t) for t in types] for _ in range(WIDE))
    constants = sorted({0.0, 1.0, *(c for f in formulas for c in _constants(f))})
    for c in rng.sample(constants, min(MANY, len(constants))):
        for x in (c, math.nextafter(c, math.inf), math.nextafter(c, -math.inf)):
            for sign in (1, -1):
                special = [_near(rng, t, sign * x) for t in types]
                yield special
                for k in rng.sample(range(len(types)), min(len(types) - 1, 2)):
                    yield [draw(rng, t, 0) if j != k else special[k] for j, t in enumerate(types)]


def _constants(formula: Expr) -> Iterator[float]:
    for n in walk(formula):
        if isinstance(n, Const) and isinstance(n.value, (int, float)) and math.isfinite(n.value):
            yield abs(float(n.value))


def draw(rng: random.Random, t: Scalar, n: int) -> Any:
    """A number of a type: ordinary ones first, then larger and smaller ones, and edge cases."""
    if t.is_bool:
        return rng.random() < 0.5
    if t.is_exact:
        low, high = (-(1 << t.bits - 1), 1 << t.bits - 1) if t.is_signed else (0, 1 << t.bits)
        near = rng.choice((0, 0, low, high - 1, rng.randrange(low, high)))
        far = rng.choice((3, 60, 1 << rng.randrange(1, t.bits)))
        return min(max(near + rng.randint(-far, far), low), high - 1)
    if t.is_complex:
        return of_parts(t, lambda part: draw(rng, part, n))
    if n < ORDINARY:
        return rounded(t, rng.uniform(0.25, 2.0) * rng.choice((1, 1, -1)))
    most = 3 if t.is_log else 30 if system(t).least > 1e-300 else 100
    size = rng.choice((0, 1, rng.randint(2, 300), 10 ** rng.uniform(-most, most)))
    return rounded(t, float(rng.choice((size, -size))))


def anywhere(rng: random.Random, t: Scalar) -> Any:
    """A number of any size that an inexact type has; of an exact one any number."""
    if t.is_exact:
        return draw(rng, t, ORDINARY)

    def size(part: Scalar) -> float:
        least = math.frexp(system(part).least)[1]
        found = math.ldexp(rng.uniform(1.0, 2.0), rng.randrange(least, 1 - least))
        return rounded(part, found * rng.choice((1, -1)))

    return of_parts(t, size)


def _near(rng: random.Random, t: Scalar, x: float) -> Any:
    """A number of an inexact type that is this one, or next to it."""
    if t.is_exact:
        return draw(rng, t, 0)
    return of_parts(t, lambda part: rounded(part, rng.choice((x, x, 0.0)) if part != t else x))


def of_parts(t: Scalar, make: Callable[[Scalar], float]) -> Any:
    """A number made of one part, or of a real and an imaginary one."""
    return complex(make(F64), make(F64)) if t.is_complex else make(t)


def rounded(t: Scalar, x: float) -> float:
    """A number of an inexact type near a number."""
    return float(np.dtype(system(t).dtype).type(x))


def there_and_back(
    there: Sequence[Expr], again: Sequence[Expr], start: Values
) -> tuple[list[Any], list[Any]]:
    """The operands' values after the first opcode, and after the second; or Undecided."""
    middle = evaluated(there, start)
    return middle, evaluated(again, middle)


class _Moved:
    """A number in formulas, the `at`-th that may be rounded, times a factor."""

    def __init__(self, at: int, factor: float) -> None:
        self.at = at
        self.factor = factor
        self.seen = 0

    def number(self, t: Scalar, value: Any) -> Any:
        """A number that is computed, or a constant."""
        self.seen += 1
        if self.seen != self.at:
            return value
        # A logarithm is rounded relative to 1, which is an error of that size in the number.
        one = 1.0 if t.is_log else value
        return value + one * (self.factor - 1)


def evaluated(formulas: Sequence[Expr], state: Values, moved: _Moved | None = None) -> list[Any]:
    """The values of formulas, none of which leaves the normal numbers; or Undecided."""
    try:
        return [valued(f, state, moved) for f in formulas]
    except (RvmError, ArithmeticError, ValueError) as error:
        raise Undecided from error  # a run would end here


def valued(node: Expr, state: Any, moved: _Moved | None = None) -> Any:
    """The value of an expression, from those of registers in `state`."""
    match node:
        case Place(reg):
            return state[reg]
        case Const(float(v)) if moved is not None and not v.is_integer():
            return moved.number(elem_of(node.type or F64), v)
        case Const(v):
            return v
        case Apply(fn, args):
            elems = tuple(elem_of(a.type or F64) for a in args)
            values = [valued(a, state, moved) for a in args]
            found = function_value(fn, elems)(*values)
            t = elem_of(node.type or F64)
            if not t.is_exact:
                _stays(t, fn, complex(found), values)
                if moved is not None:
                    return moved.number(t, found)
            return found
        case _:
            raise TypeError(f"no template: {node!r}")


def _stays(t: Scalar, fn: str, found: complex, values: Sequence[Any]) -> None:
    """Undecided if a value has overflowed or underflowed, in a part of a complex number too."""
    parts = found.real, found.imag
    least = system(t).least
    if not all(map(math.isfinite, parts)) or any(0 < abs(p) < least for p in parts):
        raise Undecided
    if found == 0 and fn in ("*", "/", "**", "exp", "exp2") and all(values):
        raise Undecided


def is_restored(
    t: Scalar,
    there: Sequence[Expr],
    again: Sequence[Expr],
    start: Values,
    middle: Values,
    end: Values,
) -> bool:
    """Whether the operands are back, as far as rounding of what is between them allows.

    That is four times what the end changes by when an operand in the middle is off by some units
    in the last place; or, up to `MOST` in place of these, what it changes by when each number that
    the formulas compute is off by a few.  Of two changes it is the smaller one, since at a jump of
    the formulas one of them is large.
    """
    off = [k for k, (a, b) in enumerate(zip(start, end, strict=True)) if a != b]
    if not off or t.is_exact:
        return not off
    unit = system(t).unit
    small = tolerance(t)
    if _within(_allowed(t, again, start, middle, end, off, small), start, end):
        return True
    if not _within(_allowed(t, again, start, middle, end, off, max(MOST, small)), start, end):
        return False
    allowed = {k: small * _size(t, start[k]) for k in off}
    at, more = 1, True
    while more:
        changes = []
        for factor in (1 + 4 * unit, 1 - 4 * unit):
            moved = _Moved(at, factor)
            try:
                between = evaluated(there, start, moved)
                changes.append(evaluated(again, between, moved))
            except Undecided:
                continue
        more, at = moved.seen >= at, at + 1
        _widen(allowed, changes, end)
    return _within(allowed, start, end)


MOST = 1e-9
"""The most that rounding of numbers between may be taken to lose, relative to a number."""


def _allowed(
    t: Scalar,
    again: Sequence[Expr],
    start: Values,
    middle: Values,
    end: Values,
    off: Sequence[int],
    small: float,
) -> dict[int, float]:
    """By how much operands may be off if those in the middle are by this fraction."""
    allowed = {k: small * _size(t, start[k]) for k in off}
    for j, m in enumerate(middle):
        if isinstance(m, bool | int) or not m:
            continue
        changes = []
        for factor in (1 + small, 1 - small):
            try:
                changes.append(evaluated(again, [*middle[:j], m * factor, *middle[j + 1 :]]))
            except Undecided:
                continue
        _widen(allowed, changes, end)
    return allowed


def _size(t: Scalar, x: Any) -> float:
    """What a number is rounded relative to: a logarithm to 1, at least."""
    return float(max(abs(x), t.is_log))


def _widen(allowed: dict[int, float], changes: Sequence[Values], end: Values) -> None:
    if changes:
        for k in allowed:
            allowed[k] += 4 * min(abs(moved[k] - end[k]) for moved in changes)


def _within(allowed: dict[int, float], start: Values, end: Values) -> bool:
    return all(abs(start[k] - end[k]) <= most for k, most in allowed.items())


def tolerance(t: Scalar) -> float:
    """The rounding of a few operations, relative to a number."""
    return 32 * system(t).unit
