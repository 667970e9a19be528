"""Local derivatives of any values, a direction at a time: array functions, complex numbers.

For each real number among the places that are read, the tangent of the new values is a column of
the Jacobian, and the tangent of what adjoints gain is a column of the second derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.engines.evaluate import evaluate
from rvm.expr import Apply, Expr, Place
from rvm.isa import apply
from rvm.isa.derivatives import adjoint_type
from rvm.isa.tangents import tangent
from rvm.numbers import system
from rvm.transform.adjoint import carries, contributions
from rvm.types import Array, Scalar, elem_of, rank_of, with_rank

Column = tuple[Expr | None, ...]
"""Tangents of several expressions; None is zero."""


@dataclass(frozen=True, slots=True)
class Linear:
    """The derivatives of several values by the places that they read, ready to be evaluated.

    Registers are a frame's, followed by a tangent for each of `reads`, and an adjoint for each of
    `outs`.  `along[j]` are the tangents of the values, `across[j]` those of what each of `reads`
    gains, where `reads[j]` alone has a tangent.
    """

    outs: tuple[Place, ...]
    reads: tuple[Place, ...]
    duals: tuple[Scalar, ...]
    """The type of the tangent of each of `reads`."""
    along: tuple[Column, ...]
    across: tuple[Column, ...]


def linear(outs: Sequence[Place], values: Sequence[Expr], registers: int) -> Linear:
    """The derivatives of the values of `outs`, for frames of so many registers."""
    found: dict[Place, None] = {}
    for value in values:
        for read in _reads(value):
            found.setdefault(read)
    reads = tuple(found)
    dots = [Place(registers + j, (), _dual(r)) for j, r in enumerate(reads)]
    bars = [Place(registers + len(reads) + j, (), _dual(o)) for j, o in enumerate(outs)]
    gains: dict[Place, Expr] = {}
    for value, bar in zip(values, bars, strict=True):
        for read, gain in contributions(value, bar):
            gains[read] = apply("+", gains[read], gain) if read in gains else gain

    def column(j: int, nodes: Sequence[Expr | None]) -> Column:
        def dot(node: Expr) -> Expr | None:
            return dots[j] if node == reads[j] else None

        return tuple(None if node is None else tangent(node, dot) for node in nodes)

    return Linear(
        tuple(outs),
        reads,
        tuple(elem_of(d.type) for d in dots if d.type is not None),
        tuple(column(j, values) for j in range(len(reads))),
        tuple(column(j, [gains.get(r) for r in reads]) for j in range(len(reads))),
    )


def _reads(node: Expr) -> list[Place]:
    """The places in an expression that carry derivatives; those in indices do not."""
    if isinstance(node, Place):
        return [node] if carries(node) else []
    if not isinstance(node, Apply):
        return []
    return [r for a in node.args for r in _reads(a)]


def _dual(place: Place) -> Scalar | Array:
    assert place.type is not None
    t = adjoint_type(elem_of(place.type))
    assert t is not None
    return with_rank(t, rank_of(place.type))


Matrix = NDArray[np.float64]


def derivatives(
    local: Linear,
    regs: Sequence[Any],
    shapes: Sequence[tuple[int, ...]],
    reads: Sequence[tuple[int, ...]],
    seeds: Sequence[Any],
) -> tuple[Matrix, Matrix]:
    """The Jacobian, and the second derivatives of the values times their seeds, by real numbers.

    Shapes of `outs` and of `reads`; complex numbers count as two, neighbours, as in `Field`.
    """
    zeros = [_zero(t, shape) for t, shape in zip(local.duals, reads, strict=True)]
    ext = [*regs, *zeros, *seeds]
    wide = [_is_wide(o) for o in local.outs]
    jacobian: list[Matrix] = []
    bends: list[Matrix] = []
    for j, (t, shape) in enumerate(zip(local.duals, reads, strict=True)):
        at = len(regs) + j
        for unit in _units(t, shape):
            ext[at] = unit
            jacobian.append(_line(local.along[j], ext, shapes, wide))
            bends.append(_line(local.across[j], ext, reads, [d.is_complex for d in local.duals]))
        ext[at] = zeros[j]
    m = sum(_count(s, w) for s, w in zip(shapes, wide, strict=True))
    return (
        np.array(jacobian).T.reshape(m, len(jacobian)),
        np.array(bends).T.reshape(len(bends), len(bends)),
    )


def _is_wide(place: Place) -> bool:
    assert place.type is not None
    return elem_of(place.type).is_complex


def _count(shape: tuple[int, ...], wide: bool) -> int:
    return int(np.prod(shape, dtype=np.int64)) * (1 + wide)


def _zero(t: Scalar, shape: tuple[int, ...]) -> Any:
    return np.zeros(shape, system(t).dtype) if shape else system(t).zero


def _units(t: Scalar, shape: tuple[int, ...]) -> Any:
    """A unit tangent for each real number."""
    ways = (1.0, 1j) if t.is_complex else (1.0,)
    for index in np.ndindex(shape):
        for way in ways:
            if not shape:
                yield complex(way) if t.is_complex else way
                continue
            unit = np.zeros(shape, system(t).dtype)
            unit[index] = way
            yield unit


def _line(
    column: Column, ext: Sequence[Any], shapes: Sequence[tuple[int, ...]], wide: Sequence[bool]
) -> Matrix:
    """The values of tangents in a row of real numbers."""
    parts: list[Matrix] = []
    for node, shape, both in zip(column, shapes, wide, strict=True):
        if node is None:
            parts.append(np.zeros(_count(shape, both)))
            continue
        value = np.broadcast_to(np.asarray(evaluate(node, ext)), shape).reshape(-1)
        if both:
            parts.append(np.stack([value.real, value.imag], axis=1).reshape(-1))
        else:
            parts.append(np.real(value).astype(np.float64))
    return np.concatenate(parts) if parts else np.zeros(0)


__all__ = ["Linear", "derivatives", "linear"]
