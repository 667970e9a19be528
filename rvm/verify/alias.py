"""Which places overlap: the static half of the machine's alias rules.

`overlap` answers for two places of one frame at one moment.  "never" is a
proof, and the run needs no check; "always" is an error before any run; "maybe"
is for the run to check.  Different registers of a frame never overlap as far
as writes go: a call is refused in which an argument that the callee changes
overlaps another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import Literal

from rvm.expr import Const, Expr, Index, Part, Peek, Place, Shaped, Span
from rvm.types import I64
from rvm.verify.affine import ZERO, Affine, affine, combine, difference

Verdict = Literal["never", "always", "maybe"]


@dataclass(frozen=True, slots=True)
class _Axis:
    """What a place takes of one axis of its register: an index, or of `lo` to `hi` (None: the end).

    Of a range it takes every `by`-th index from lo on, in order; 0: some of them, in some order.
    """

    lo: Affine = ZERO
    hi: Affine | None = None
    point: bool = False
    by: int = 1


_WHOLE = _Axis()
_CELLS = {"top": 0, "len": 1}


@dataclass(frozen=True, slots=True)
class View:
    """What a place takes of its register; made once for a place that is compared with many."""

    reg: int
    part: str
    axes: tuple[_Axis, ...]
    """The axes that some step restricts; those after them are taken whole."""


def overlap(a: Place, b: Place) -> Verdict:
    """Whether two places of one frame share a cell.

    Two whole arrays of one register are said to, though an empty array has no cells.
    """
    if a.reg != b.reg:
        return "never"
    if not a.path and not b.path:
        return "always"
    return views_overlap(view(a), view(b))


def views_overlap(one: View, two: View) -> Verdict:
    """`overlap` of the places that the views were made of."""
    if one.reg != two.reg:
        return "never"
    if one.part and two.part and one.part != two.part:
        return "never"
    verdict: Verdict = "always"
    for k in range(max(len(one.axes), len(two.axes))):
        p = one.axes[k] if k < len(one.axes) else _WHOLE
        q = two.axes[k] if k < len(two.axes) else _WHOLE
        found = _meet(p, q)
        if found == "never":
            return "never"
        if found == "maybe":
            verdict = "maybe"
    return verdict


def view(place: Place) -> View:
    """What the path leaves of each axis of the register, `.T` undone."""
    part = ""
    order = list(range(_base_rank(place)))
    axes = [_WHOLE] * len(order)
    shaped = False
    for step in place.path:
        if isinstance(step, Part):
            part = step.name
        elif isinstance(step, Peek):
            # The top of a stack and its length are two cells of it.
            axes = [_Axis(Affine(_CELLS[step.name]), point=True)]
        elif isinstance(step, Index):
            kept: list[int] = []
            for k, item in enumerate(step.items):
                if k >= len(order):
                    break
                axis = order[k]
                if shaped and not (isinstance(item, Span) and item.is_whole):
                    axes[axis] = replace(axes[axis], by=0)
                elif not shaped:
                    axes[axis] = _restrict(axes[axis], item)
                if isinstance(item, Span):
                    kept.append(axis)
            order = kept + order[len(step.items) :]
        elif isinstance(step, Shaped):
            # What is cut off an axis of it is some part of the one that there was.
            order, shaped = order[:1] * len(step.dims), True
        else:
            order.reverse()
    return View(place.reg, part, tuple(axes))


def _base_rank(place: Place) -> int:
    """The dimensions of the register: those left in the place's type and those indexed away."""
    rank = getattr(place.type, "rank", 0)
    for step in place.path:
        if isinstance(step, Index):
            rank += sum(not isinstance(item, Span) for item in step.items)
        elif isinstance(step, Shaped):
            rank -= len(step.dims) - 1
    return int(rank)


def _restrict(axis: _Axis, item: Expr | Span) -> _Axis:
    if not axis.by:
        return axis

    def along(index: Expr) -> Affine:
        return combine(axis.lo, affine(index), axis.by)

    def after(index: Expr) -> Affine:
        return combine(along(index), Affine(axis.by))

    if not isinstance(item, Span):
        return _Axis(along(item), None, True)
    by = 1 if item.by is None else item.by.value if isinstance(item.by, Const) else 0
    if not by:
        return replace(axis, by=0)
    if by > 0:
        lo = axis.lo if item.lo is None else along(item.lo)
        return _Axis(lo, axis.hi if item.hi is None else along(item.hi), by=axis.by * by)
    if any(end.type != I64 for end in item.given):
        return replace(axis, by=0)
    hi = axis.hi if item.lo is None else after(item.lo)
    return _Axis(axis.lo if item.hi is None else after(item.hi), hi, by=0)


def _meet(p: _Axis, q: _Axis) -> Verdict:
    """Whether two restrictions of one axis have an index in common."""
    if p.point and q.point:
        if not p.lo.atoms and not q.lo.atoms:
            return "never" if p.lo.constant != q.lo.constant else "always"
        d = difference(p.lo, q.lo)
        if d is None:
            return "maybe"
        return "never" if d[0] else "always"
    if p.point or q.point:
        point, span = (p, q) if p.point else (q, p)
        return _inside(point.lo, span)
    if _not_above(p.hi, q.lo) or _not_above(q.hi, p.lo):
        return "never"
    if p == q and p.by:
        return "always"
    if p.by != 1 or q.by != 1:
        by = gcd(p.by, q.by) if p.by and q.by else 0
        return "never" if _between(p.lo, q.lo, by) else "maybe"
    if (_in_span(p.lo, q) and _nonempty(p)) or (_in_span(q.lo, p) and _nonempty(q)):
        return "always"
    return "maybe"


def _inside(index: Affine, span: _Axis) -> Verdict:
    above = True if span.lo.is_zero else _sign(span.lo, index)
    below = True if span.hi is None else _sign(index, span.hi, strict=True)
    if above is False or below is False or _between(index, span.lo, span.by):
        return "never"
    on = span.by == 1 or _between(index, span.lo, span.by) is False
    return "always" if above and below and on else "maybe"


def _between(a: Affine, b: Affine, by: int) -> bool | None:
    """Whether the difference is no multiple of a step, if that is known."""
    d = difference(a, b)
    return None if d is None or not d[1] or not by else bool(d[0] % by)


def _in_span(index: Affine, span: _Axis) -> bool:
    return _inside(index, span) == "always"


def _nonempty(span: _Axis) -> bool:
    """Whether a span provably has an index; one that runs to the end does if it is the whole."""
    if span.hi is None:
        return span.lo.is_zero
    return _sign(span.lo, span.hi, strict=True) is True


def _not_above(a: Affine | None, b: Affine) -> bool:
    return a is not None and _sign(a, b) is True


def _sign(a: Affine, b: Affine, strict: bool = False) -> bool | None:
    """Whether `a <= b` (or `a < b`), if that is known."""
    d = difference(a, b)
    if d is None or not d[1]:
        return None
    return d[0] > 0 if strict else d[0] >= 0
