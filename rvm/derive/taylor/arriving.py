"""How computed values arrive in places, undone: what they were computed from gains.

A value that is computed element by element has a `Formula`.  Others are taken apart: each function
of whole arrays or of complex numbers has its arguments and its value in temporaries, as if the
assembler had written them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from rvm.derive.taylor.dense import Linear, derivatives, linear
from rvm.derive.taylor.field import Bend, Field, Slots, Term, flat
from rvm.derive.taylor.pointwise import Formula, formula, is_pointwise
from rvm.derive.taylor.slots import Regs, SlotList, is_wide, locate
from rvm.engines.data import copied
from rvm.engines.evaluate import evaluate
from rvm.expr import Apply, Expr, Place
from rvm.transform.adjoint import carries
from rvm.types import Array, Scalar


@dataclass(frozen=True, slots=True)
class Pointwise:
    """Values computed element by element, added to places or put in place of what they held."""

    outs: tuple[Place, ...]
    formulas: tuple[Formula, ...]
    sign: float
    replace: bool

    def apply(self, field: Field, regs: Regs, slots: SlotList) -> None:
        """Undo the arrival in the outs."""
        self.onto(field, [locate(o, regs, slots) for o in self.outs], regs, slots)

    def onto(self, field: Field, dsts: Sequence[Slots], regs: Regs, slots: SlotList) -> None:
        """The same, with the slots of the outs known."""
        parts: list[tuple[Slots, list[Term], list[Bend]]] = []
        sign = self.sign
        for dst, f in zip(dsts, self.formulas, strict=True):
            known = {k: locate(cast(Place, f.operands[k]), regs, slots) for k in f.by}
            first, second = f.derive(*[evaluate(e, regs) for e in f.operands])
            terms = [(known[k], sign * a) for k, a in zip(f.by, first, strict=True)]
            bends = [
                (known[j], known[k], sign * c) for (j, k), c in zip(f.pairs, second, strict=True)
            ]
            parts.append((dst, terms, bends))
        only = dsts[0]
        if not self.replace and isinstance(only, int):
            field.gain(only, cast("Any", parts[0][1]), cast("Any", parts[0][2]))
        else:
            field.pull(parts, self.replace)


@dataclass(frozen=True, slots=True)
class Whole:
    """Values of functions of whole arrays, or of complex numbers."""

    local: Linear
    sign: float
    replace: bool

    def apply(self, field: Field, regs: Regs, slots: SlotList) -> None:
        """Undo the arrival in the outs."""
        self.onto(field, [locate(o, regs, slots) for o in self.local.outs], regs, slots)

    def onto(self, field: Field, dsts: Sequence[Slots], regs: Regs, slots: SlotList) -> None:
        """The same, with the slots of the outs known."""
        local = self.local
        if not local.reads and not self.replace:
            return
        reads = [locate(r, regs, slots) for r in local.reads]
        wide = [is_wide(o) for o in local.outs]
        seeds = [self.sign * _seed(field, d, w) for d, w in zip(dsts, wide, strict=True)]
        jacobian, bend = derivatives(
            local, regs, [np.shape(d) for d in dsts], [np.shape(r) for r in reads], seeds
        )
        field.transform(
            _joined(dsts, wide),
            _joined(reads, [t.is_complex for t in local.duals]),
            self.sign * jacobian,
            bend,
            self.replace,
        )


def _seed(field: Field, slots: Slots, wide: bool) -> Any:
    """The adjoint of a place, as its registers hold one."""
    found = field.g[slots] + 1j * field.g[slots + 1] if wide else field.g[slots]
    return found if isinstance(slots, np.ndarray) else found.item()


def _joined(slots: Sequence[Slots], wide: Sequence[bool]) -> Any:
    parts = [flat(s, w) for s, w in zip(slots, wide, strict=True)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Temporary:
    """A part of a value, in a register of its own behind those of the frame."""

    place: Place
    value: Expr
    arriving: Pointwise | Whole


@dataclass(frozen=True, slots=True)
class Chain:
    """Values computed by way of temporaries, which are forgotten in the end."""

    outs: tuple[Place, ...]
    temporaries: tuple[Temporary, ...]
    last: Pointwise | Whole

    def apply(self, field: Field, regs: Regs, slots: SlotList) -> None:
        """Undo the arrival in the outs."""
        self.onto(field, [locate(o, regs, slots) for o in self.outs], regs, slots)

    def onto(self, field: Field, dsts: Sequence[Slots], regs: Regs, slots: SlotList) -> None:
        """The same, with the slots of the outs known."""
        more, made = list(regs), list(slots)
        for temporary in self.temporaries:
            value = copied(evaluate(temporary.value, more))
            shape = np.shape(value) if isinstance(temporary.place.type, Array) else None
            more.append(value)
            made.append(field.new(shape, is_wide(temporary.place)))
        self.last.onto(field, dsts, more, made)
        for temporary in reversed(self.temporaries):
            own = made[temporary.place.reg]
            temporary.arriving.onto(field, [own], more, made)
            field.drop(own, is_wide(temporary.place))


Arriving = Pointwise | Whole | Chain


def arriving(
    outs: Sequence[Place],
    values: Sequence[Expr],
    registers: int,
    *,
    sign: float = 1.0,
    replace: bool = False,
) -> Arriving:
    """Values of expressions that arrive in places, for frames of so many registers."""
    cuts = _Cuts(registers)
    done = tuple(cuts.root(v) for v in values)
    size = registers + len(cuts.found)
    last = _arriving(outs, done, size, sign, replace)
    if not cuts.found:
        return last
    temporaries = tuple(
        Temporary(place, value, _arriving((place,), (value,), size, 1.0, False))
        for value, place in cuts.found.items()
    )
    return Chain(tuple(outs), temporaries, last)


def _arriving(
    outs: Sequence[Place], values: Sequence[Expr], size: int, sign: float, replace: bool
) -> Pointwise | Whole:
    found = [None if is_wide(o) else formula(v) for o, v in zip(outs, values, strict=True)]
    formulas = [f for f in found if f is not None]
    if len(formulas) == len(found):
        return Pointwise(tuple(outs), tuple(formulas), sign, replace)
    return Whole(linear(outs, values, size), sign, replace)


class _Cuts:
    """Expressions taken apart; `found` gives the place of each part, parts of parts first."""

    def __init__(self, registers: int) -> None:
        self.registers = registers
        self.found: dict[Expr, Place] = {}

    def root(self, node: Expr) -> Expr:
        """A value that is needed in no place of its own."""
        if not isinstance(node, Apply) or not carries(node):
            return node
        if is_pointwise(node):
            return Apply(node.fn, tuple(self._inside(a) for a in node.args), node.type)
        return Apply(node.fn, tuple(self._argument(a) for a in node.args), node.type)

    def _inside(self, node: Expr) -> Expr:
        """A part of a formula: what is no part of it stands in a temporary."""
        if not isinstance(node, Apply) or not carries(node) or is_pointwise(node):
            return self.root(node)
        return self._temporary(self.root(node))

    def _argument(self, node: Expr) -> Expr:
        """An argument of a function that is no part of a formula."""
        if not isinstance(node, Apply) or not carries(node):
            return node
        return self._temporary(self.root(node))

    def _temporary(self, node: Expr) -> Place:
        assert isinstance(node.type, (Scalar, Array))
        at = self.registers + len(self.found)
        return self.found.setdefault(node, Place(at, (), node.type))
