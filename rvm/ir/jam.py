"""Unroll-and-jam: iterations of an outer loop joined, so that the inner loop runs once for several.

    for i, for k, for j: C[i, j] += A[i, k] * B[k, j]

goes through row i of C for each k.  After the transformation it does so for four k at a time, and
for each j adds their contributions one after the other: each element receives the same numbers in
the same order.  So no bit differs, while C is loaded and stored a quarter as often.  If the inner
loop adds to one element, four such sums are computed at once, and none waits for the additions of
another.  With two i at a time, B is also loaded half as often.

This is correct if iterations whose order changes reach different elements.  Each array that is
written must be reached by one index only.  In two loops, that index must either be the same in all
iterations of the outer loop and different in each iteration of the inner one, or be different in
each iteration of the outer loop, whatever the inner one does; in a third loop it must be different
in each iteration.  (R. Allen and K. Kennedy, "Optimizing Compilers for Modern Architectures",
2002, 8.4: unroll and jam.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from rvm.expr import Const, Expr, Index, Place
from rvm.image import Code
from rvm.ir.flow import Cycle
from rvm.ir.loop_facts import touched
from rvm.stmt import Alloc, Free, Update
from rvm.types import I64, Array
from rvm.verify.affine import affine

MANY, FEW = 4, 2
"""The number of joined iterations: few where the body has several instructions, since all of their
values are live at once, and for a third loop around the two."""
Axis = tuple[int, frozenset[tuple[object, int]]]
"""An index as a constant and the factors of the variables on which it depends."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """A counting loop: `variable` += `step`, first or last in an iteration, until it is `end`."""

    cycle: Cycle
    variable: int
    step: int
    early: bool
    end: Expr


@dataclass(frozen=True, slots=True)
class Jam:
    """Two or three nested loops, the outermost first; each body is only the next loop.

    Iterations of all but the innermost are joined.  `before` are the instructions that make the
    variables of the inner loops and their ends, `body` those of the innermost.
    """

    loops: tuple[Rounds, ...]
    before: tuple[int, ...]
    body: tuple[int, ...]

    @property
    def together(self) -> tuple[int, ...]:
        """The number of joined iterations of each loop."""
        two = (MANY if len(self.body) == 1 else FEW, 1)
        return two if len(self.loops) == 2 else (FEW, *two)


def jam(
    code: Code, loops: tuple[Rounds, ...], resolved: Callable[[Expr], Expr | None]
) -> Jam | None:
    """The jam of nested loops, if it is possible and pays.

    `resolved` gives an index over loop variables and invariants of the nest.
    """
    before: list[int] = []
    for outer, loop in pairwise(loops):
        made = _around(code, outer, loop)
        if made is None:
            return None
        before += made
    *_, outer, inner = loops
    step = inner.cycle.head + 1 if inner.early else inner.cycle.back - 1
    body = tuple(pc for pc in range(inner.cycle.head + 1, inner.cycle.back) if pc != step)
    variables = {loop.variable for loop in loops}
    scratch = {p.reg for pc in before for p in touched(code.stmts(pc)) if not p.path} - variables
    reached: dict[int, set[tuple[Axis, ...]]] = {}
    written: set[int] = set()
    for pc in body:
        match code.stmts(pc):
            case (Update(Place(reg, path)),) if path and not code.notes(pc):
                written.add(reg)
            case _:
                return None
        for place in touched(code.stmts(pc)):
            if not isinstance(code.function.registers[place.reg].type, Array):
                if place.path or place.reg in scratch:
                    return None
                continue
            axes = axes_of(place, resolved)
            if axes is None:
                return None
            reached.setdefault(place.reg, set()).add(axes)
    if not body or any(len(reached[reg]) != 1 for reg in written):
        return None
    changed = [axes for reg in written for axes in reached[reg]]
    p, q = outer.variable, inner.variable
    kept = any(_is_kept(axes, p, q) for found in reached.values() for axes in found)
    sums = any(not any(factor_in(a, q) for a in axes) for axes in changed)
    if not (kept or sums) or not all(_is_apart(a, p, q) or _is_kept(a, p, q) for a in changed):
        return None
    if len(loops) == 3 and (
        len(body) > 1 or not all(_is_apart(axes, loops[0].variable, p, q) for axes in changed)
    ):
        return None
    return Jam(loops, tuple(before), body)


def _around(code: Code, outer: Rounds, inner: Rounds) -> tuple[int, ...] | None:
    """The instructions that make the inner loop's variable, if the outer holds nothing else."""
    head, back = outer.cycle.head + 1, outer.cycle.back
    guard = inner.cycle.head - 1
    before = range(head + outer.early, guard)
    behind = range(inner.cycle.back + 1, back - (not outer.early))
    if code.instrs[guard].op != "br" or code.instrs[guard].aux != behind.start:
        return None
    if any(head <= pc <= back for pc in code.traps):
        return None
    held: dict[int, Expr] = {}
    for pc in before:
        match code.stmts(pc):
            case (Alloc(Place(reg), value),) if value is not None and not code.notes(pc):
                held[reg] = value
            case _:
                return None
    held[inner.variable] = inner.end
    for pc in behind[1:]:
        match code.stmts(pc):
            case (Free(Place(reg), value),) if held.pop(reg, None) == value:
                pass
            case _:
                return None
    return None if held else tuple(before)


def axes_of(place: Place, resolved: Callable[[Expr], Expr | None]) -> tuple[Axis, ...] | None:
    """The indices of an element; None if they are not affine."""
    match place.path:
        case (Index(items),):
            axes = [_axis(item, resolved) for item in items]
            return None if None in axes else tuple(a for a in axes if a is not None)
    return None


def _axis(item: object, resolved: Callable[[Expr], Expr | None]) -> Axis | None:
    if isinstance(item, Const):
        return int(item.value), frozenset()
    found = resolved(cast(Expr, item)) if getattr(item, "type", None) == I64 else None
    if found is None:
        return None
    form = affine(found)
    return form.constant, frozenset(form.atoms.items())


def factor_in(axis: Axis, variable: int) -> int:
    """The factor of a variable in an index."""
    return next(
        (k for atom, k in axis[1] if isinstance(atom, Place) and atom.reg == variable and k), 0
    )


def _is_apart(axes: Sequence[Axis], p: int, *within: int) -> bool:
    """Whether each iteration of the loop over `p` uses separate elements."""
    return any(factor_in(a, p) and not any(factor_in(a, q) for q in within) for a in axes)


def _is_kept(axes: Sequence[Axis], p: int, q: int) -> bool:
    """Whether each round of the loop over `p` reaches the same elements, one by one over `q`."""
    return not any(factor_in(a, p) for a in axes) and any(factor_in(a, q) for a in axes)
