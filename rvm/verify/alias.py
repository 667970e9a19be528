"""Overlap of places: the static half of the machine's alias rules.

`overlap` decides for two places of one frame at one moment. "never" is a proof, and the run needs
no check; "always" is an error before any run; "maybe" is left to the run. Different registers of a
frame never overlap as far as writes are concerned: a call is refused if an argument that the callee
changes overlaps another.
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
    """The part of one axis that a place uses: an index, or the range `lo` to `hi` (None: the end).

    Of a range it uses every `by`-th index from lo on, in order; with a negative step those from
    below hi downwards; 0: some of them, in some order.
    """

    lo: Affine = ZERO
    hi: Affine | None = None
    point: bool = False
    by: int = 1

    @property
    def start(self) -> Affine:
        """The first index in its order, if it exists."""
        if self.by > 0:
            return self.lo
        assert self.hi is not None
        return combine(self.hi, ONE, -1)

    @property
    def last(self) -> Affine | None:
        """The last index in its order, if that is known."""
        d = None if self.hi is None else difference(self.lo, self.hi)
        if d is None or not d[1] or d[0] <= 0:
            return None
        return combine(self.start, Affine((d[0] - 1) // abs(self.by)), self.by)


ONE = Affine(1)
_WHOLE = _Axis()
_CELLS = {"top": 0, "len": 1}


@dataclass(frozen=True, slots=True)
class View:
    """The part of its register that a place uses; made once for a place compared with many."""

    reg: int
    part: str
    axes: tuple[_Axis, ...]
    """The axes that some step restricts; those after them are taken whole."""


def overlap(a: Place, b: Place) -> Verdict:
    """Whether two places of one frame share a cell.

    Two whole arrays of one register count as overlapping, though an empty array has no cells.
    """
    if a.reg != b.reg:
        return "never"
    if not a.path and not b.path:
        return "always"
    return views_overlap(view(a), view(b))


def views_overlap(one: View, two: View) -> Verdict:
    """`overlap` of the places from which the views were made."""
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
    """The part of each axis of the register that a path selects, with `.T` undone."""
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
            # A part of an axis of the reshaped array is some part of the original axis.
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
        return combine(axis.start, affine(index), axis.by)

    if not isinstance(item, Span):
        return _Axis(along(item), None, True)
    by = 1 if item.by is None else item.by.value if isinstance(item.by, Const) else 0
    by *= axis.by
    if not by or (by < 0 and any(end.type != I64 for end in item.given)):
        return replace(axis, by=0)
    same = by * axis.by > 0
    start = along(item.lo) if item.lo is not None else axis.start if same else axis.last
    lo, hi = axis.lo, axis.hi
    if by > 0:
        lo = lo if start is None else start
        hi = hi if item.hi is None else along(item.hi)
    else:
        lo = lo if item.hi is None else combine(along(item.hi), ONE)
        hi = hi if start is None else combine(start, ONE)
    return _Axis(lo, hi, by=0 if start is None else by)


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
    if any(_not_above(a.hi, b.lo) for a in (p, q) for b in (p, q)):
        return "never"  # one lies below the other, or is empty
    if not p.by or not q.by:
        return "maybe"
    if p == q or _begins_in(p, q) or _begins_in(q, p):
        return "always"
    return _in_step(p, q)


def _in_step(p: _Axis, q: _Axis) -> Verdict:
    """Whether two ranges have an index in common, by the least that both steps give."""
    apart = difference(p.start, q.start)
    if apart is None or not apart[1]:
        return "maybe"
    common, rest = gcd(p.by, q.by), abs(q.by)
    if apart[0] % common:
        return "never"
    begins = [d for a in (p, q) if (d := difference(p.start, a.lo)) is not None and d[1]]
    if len(begins) < 2:
        return "maybe"
    # Counted from p.start: a multiple of p's step that equals q's start modulo q's step.
    here = apart[0] // common * pow(p.by // common, -1, rest // common) * p.by
    first = max(begins)[0]
    first += (here - first) % (abs(p.by) * rest // common)
    ends = [difference(p.start, end) for end in (p.hi, q.hi) if end is not None]
    if any(d is not None and d[1] and d[0] <= first for d in ends):
        return "never"
    if not ends:
        return "always" if p.lo.is_zero and not first else "maybe"
    return "always" if all(d is not None and d[1] for d in ends) else "maybe"


def _inside(index: Affine, span: _Axis) -> Verdict:
    above = True if span.lo.is_zero else _sign(span.lo, index)
    below = True if span.hi is None else _sign(index, span.hi, strict=True)
    between = _between(index, span.start, span.by) if span.by else None
    if above is False or below is False or between:
        return "never"
    on = abs(span.by) == 1 or between is False
    return "always" if above and below and on else "maybe"


def _between(a: Affine, b: Affine, by: int) -> bool | None:
    """Whether the difference is not a multiple of a step, if known."""
    d = difference(a, b)
    return None if d is None or not d[1] else bool(d[0] % by)


def _begins_in(p: _Axis, q: _Axis) -> bool:
    """Whether the first index of a range, if it exists, is in another range."""
    return _nonempty(p) and _inside(p.start, q) == "always"


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
