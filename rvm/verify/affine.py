"""Index expressions as affine forms, to distinguish `x[i]` from `x[i + 1]` without running.

A form is a constant plus integer multiples of *atoms*.  Any expression that is not a sum,
difference or multiple is an atom. Equal atoms of one instruction have equal values, since
expressions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rvm.expr import Apply, Const, Expr, walk
from rvm.types import I64, Scalar

MAX_INDEX_NODES = 64
"""Larger index expressions are not analysed; their overlap is checked at run time."""


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum(coefficient * atom)` in the wrap-around arithmetic of `type`."""

    constant: int = 0
    atoms: Mapping[object, int] = field(default_factory=dict)
    type: Scalar = I64

    @property
    def is_zero(self) -> bool:
        return not self.atoms and not self.constant


ZERO = Affine()


def unknown() -> Affine:
    """A form that equals no other."""
    return Affine(0, {object(): 1})


def affine(node: Expr) -> Affine:
    """The form of an integer expression (of `unknown()` where it is too large or no integer)."""
    t = node.type
    if not isinstance(t, Scalar) or not t.is_integer:
        return unknown()
    for count, _ in enumerate(walk(node), 1):
        if count > MAX_INDEX_NODES:
            return unknown()
    return _form(node, t)


def _form(node: Expr, t: Scalar) -> Affine:
    if node.type != t:
        return Affine(0, {node: 1}, t)
    match node:
        case Const(int(value)):
            return Affine(_wrap(value, t), {}, t)
        case Apply("+", (a, b)):
            return combine(_form(a, t), _form(b, t), 1)
        case Apply("-", (a, b)):
            return combine(_form(a, t), _form(b, t), -1)
        case Apply("neg", (a,)):
            return combine(Affine(0, {}, t), _form(a, t), -1)
        case Apply("*", (a, b)):
            one, two = _form(a, t), _form(b, t)
            if not one.atoms:
                return combine(Affine(0, {}, t), two, one.constant)
            if not two.atoms:
                return combine(Affine(0, {}, t), one, two.constant)
    return Affine(0, {node: 1}, t)


def combine(a: Affine, b: Affine, factor: int = 1) -> Affine:
    """`a + factor * b`; unknown if both are of different types and neither is zero."""
    if a.is_zero and factor == 1:
        return b
    if b.is_zero:
        return a
    if a.type != b.type:
        if a.atoms or b.atoms:
            return unknown()
        return Affine(a.constant + factor * b.constant, {}, I64)
    atoms = dict(a.atoms)
    for atom, k in b.atoms.items():
        atoms[atom] = _wrap(atoms.get(atom, 0) + factor * k, a.type)
    return Affine(
        _wrap(a.constant + factor * b.constant, a.type),
        {atom: k for atom, k in atoms.items() if k},
        a.type,
    )


def difference(a: Affine, b: Affine) -> tuple[int, bool] | None:
    """`b - a` if it is a constant, and whether it shows which of two valid indices is larger.

    Valid indices are not negative; in a signed type (and in 64 bits) they cover less than half of
    the numbers, so their difference does not wrap.
    """
    if not a.atoms and not b.atoms:
        return b.constant - a.constant, True
    if a.type != b.type:
        return None
    d = combine(b, a, -1)
    if d.atoms:
        return None
    bits = a.type.bits
    value = d.constant % (1 << bits)
    if value >> (bits - 1):
        value -= 1 << bits
    return value, a.type.is_signed or bits == 64


def _wrap(value: int, t: Scalar) -> int:
    bits = t.bits
    value %= 1 << bits
    return value - (1 << bits) if t.is_signed and value >> (bits - 1) else value
