"""Elements of arrays as iterations reach them, and which iterations reach the same one.

An index is *affine* if it is `rate * i` plus a value that no iteration changes.  An element all of
whose indices are fixed is a *cell*: every iteration reaches the same one.  If the others are affine
it is a *stream*: each iteration reaches a different one.  Anything else is *scattered*.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from rvm.engines.vector.loops import Counted, Declined
from rvm.expr import Expr, Index, Part, Place, Span, Transposed
from rvm.types import I64
from rvm.verify.affine import Affine, affine, combine

Kind = Literal["cell", "stream", "scattered"]


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One index: `rate` times the loop's variable plus `rest`, which is None if it is not so."""

    index: Expr
    rate: int
    rest: Affine | None

    @property
    def key(self) -> Hashable:
        if self.rest is None:
            return self.index
        return self.rate, self.rest.constant, frozenset(self.rest.atoms.items())


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """An element of an array; `part` is "re" or "im" if the access is to that part alone.

    `label` is its notation in the assembly language.
    """

    place: Place
    part: str
    axes: tuple[Axis, ...]
    label: str = ""

    @property
    def reg(self) -> int:
        return self.place.reg

    @property
    def key(self) -> Hashable:
        """Equal for accesses that reach the same element in every iteration."""
        return self.reg, self.part, tuple(a.key for a in self.axes)

    @property
    def kind(self) -> Kind:
        if any(a.rest is None for a in self.axes):
            return "scattered"
        return "stream" if any(a.rate for a in self.axes) else "cell"


def access(place: Place, counted: Counted) -> Access:
    """The access that a place in a loop makes; Declined for views of views and for whole arrays."""
    path = list(place.path)
    part = ""
    if path and isinstance(path[-1], Part):
        part = path.pop().name  # type: ignore[union-attr]
    turned = False
    while path and isinstance(path[0], Transposed):
        turned = not turned
        path.pop(0)
    if len(path) != 1 or not isinstance(path[0], Index):
        raise Declined("it uses a view of a view")
    items = path[0].items[::-1] if turned else path[0].items
    if any(isinstance(i, Span) for i in items):
        raise Declined("it uses slices")
    axes = tuple(_axis(i, counted) for i in items if not isinstance(i, Span))
    return Access(place, part, axes)


def _axis(index: Expr, counted: Counted) -> Axis:
    if counted.is_fixed(index):
        return Axis(index, 0, affine(index))
    form = affine(index)
    rate = form.atoms.get(Place(counted.var, (), I64), 0)
    atoms = {a: k for a, k in form.atoms.items() if a != Place(counted.var, (), I64)}
    if not rate or not all(isinstance(a, Expr) and counted.is_fixed(a) for a in atoms):
        return Axis(index, 0, None)
    return Axis(index, rate, Affine(form.constant, atoms, form.type))


@dataclass(frozen=True, slots=True)
class Relation:
    """When two accesses use one element: never, or the second `delay` iterations later.

    If the text does not show it, `delay` is None, and the run must find them disjoint.
    """

    never: bool = False
    delay: int | None = None


def relation(one: Access, two: Access, stride: int | None) -> Relation:
    """The relation of two accesses of one register, neither of them scattered."""
    if one.part and two.part and one.part != two.part:
        return Relation(never=True)
    delay: int | None = None
    known = True
    for p, q in zip(one.axes, two.axes, strict=True):
        assert p.rest is not None and q.rest is not None
        gap = combine(p.rest, q.rest, -1)
        if p.rate != q.rate or gap.atoms:
            known = False
            continue
        if not p.rate:
            if gap.constant:
                return Relation(never=True)
            continue
        if not gap.constant:
            found = 0
        elif stride is None:
            known = False
            continue
        elif gap.constant % (p.rate * stride):
            return Relation(never=True)
        else:
            found = gap.constant // (p.rate * stride)
        if delay is not None and found != delay:
            return Relation(never=True)
        delay = found
    return Relation(delay=delay if known else None)
