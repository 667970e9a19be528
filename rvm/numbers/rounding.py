"""The limits on rounding errors: the constants and the rules of all checks.

No limit is absolute: a number is compared with itself, or with the largest magnitude that it has
had, so decisions do not depend on its units as long as numbers are normal.

- An ancilla that is freed, or popped into, if its value is undone by construction
  (`rvm.verify.matching`): any finite residue is due to rounding.
- Any other ancilla: |r| <= ε n S, where n is the number of its updates and S the largest magnitude
  that it has had, in present units (`rvm.image.sizes`).  With a tolerance it is |r| <= tolerance S.
- A value that was passed to a call, which must not change it: the same, with the larger of the old
  and the new value as S, and `PASSED` updates.
- The values of a gradient, parameters and ancillas that are made with a value: `RETURN`, as a
  fraction of the initial values.  If they are further off, the limit applies to the effect on the
  gradient g, by tangents (`rvm.derive.estimate`): `AGREEMENT` |g|; with a tolerance it applies to
  the whole estimated error of g: tolerance |g|.

A tolerance of 0 demands equality of bits everywhere: of ancillas, and of a gradient's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.numbers import system
from rvm.numbers.base import differing
from rvm.types import Scalar

PASSED = 64
"""The updates that a call is taken to have made to a value that it was passed."""
LOST = 0.25
"""A residue of at least this part of the expected value leaves no digit of it."""
RERUNS, MOVED, MOST_TICKS = 5, 0.25, 50_000
"""So many runs with perturbed rounding are made before a residue is refused; it is rounding if one
of them moves it by this part of itself.  None are made for runs of more ticks."""
RETURN = 2.0**-40
"""The allowed relative distance of a gradient's restored values from their start."""
AGREEMENT = 1e-6
"""The allowed relative error of a gradient, as estimated, if no tolerance is given."""
DIRECTIONS, SPREAD, STEPS, ULPS = 2, 3, 4, 4
"""What an estimate is made of: tangents, runs with perturbed rounding, by how much results are
moved there, units in the last place.  One step would often take back another."""
CLEAR = 2.0**7
"""An error along one direction that is smaller than the limit by this factor needs no other."""
REPEATS = 4
"""A run with perturbed rounding may take so many times the steps: with other roundings a loop may
have no end."""
NEGLIGIBLE = RETURN / AGREEMENT
"""An adjoint below this part of all may be off by `RETURN` of all."""
UNIT = 2.0**-52
"""The gap after 1 of doubles."""
RETURN_GAPS = RETURN / UNIT
"""`RETURN` in gaps between the numbers of a type at what is measured against."""
TURNED = 2.0**52
"""Added to the number of updates of ancillas that were live when the run turned: whatever is left
of them where their making is undone is rounding.  A mark in a number is exchanged with it."""
INFINITY = float("inf")
CONTRACTS = (
    "rounding erases the start of a run that contracts: take the gradient in strict mode, "
    "push the values that would be lost, or use fixed-point numbers"
)
"""Advice where values do not return."""
CALLED = (
    "a run that contracts forgets its start by rounding, and the log of strict mode undoes the "
    "whole run, no part of it on the way: take the gradient by `f.grad` or `rvm grad` in strict "
    "mode, push what is lost, or compute with fixed-point numbers"
)
"""The same where the gradient is code that a program runs."""
OVERFLOWED = (
    "a number became infinite or NaN on the way, which nothing can undo: keep the numbers finite, "
    "or take the derivatives by `jvp`, which runs forwards only"
)
"""Advice where a number comes back as none."""


def extent(x: Any) -> Any:
    """The sizes of numbers to which residues are relative: for complex ones |re| + |im|.

    Which every engine computes to the same bits, and vectors of them too.
    """
    return np.abs(x.real) + np.abs(x.imag) if np.iscomplexobj(x) else np.abs(x)


def allowance(t: Scalar, size: Any, updates: Any, tolerance: float | None) -> Any:
    """The distance that rounding may carry a place: `size` is S and `updates` n.

    A size below the least normal number has the gaps of that number.
    """
    if tolerance is not None:
        return size * tolerance
    sys = system(t)
    return np.maximum(size, sys.least) * (sys.unit * np.maximum(updates, 1.0))


def is_lost(off: Any, expected: Any) -> Any:
    """Whether a residue that rounding explains leaves nothing of a value to be seen."""
    return (expected != 0) & (off > LOST * expected)


def passed_drift(
    t: Scalar, held: Any, expected: Any, tolerance: float | None, restored: bool
) -> float:
    """The distance of a value passed to a call from its original, relative to the allowed one.

    Up to 1 it is rounding.  `restored`: by construction it is, and counts as 0.
    """
    sys = system(t)
    if sys.exact or tolerance == 0:
        return 0.0 if sys.same(held, expected) else INFINITY
    with np.errstate(all="ignore"):
        off = differing(held, expected)
        gap = np.max(extent(np.subtract(held, expected)), where=off, initial=0.0)
        size = max(np.max(extent(held), initial=0.0), np.max(extent(expected), initial=0.0))
        if restored or not np.isfinite(gap):
            return 0.0 if np.isfinite(gap) else INFINITY
        return drift_of(float(gap), allowance(t, float(size), PASSED, tolerance))


def drift_of(gap: float, allowed: float) -> float:
    """A residue in parts of what is allowed."""
    return float(gap / allowed) if allowed else INFINITY if gap else 0.0


def is_passed(t: Scalar, held: Any, expected: Any, tolerance: float | None, restored: bool) -> bool:
    """Whether a value that a call was passed is left as it is, but for rounding."""
    return passed_drift(t, held, expected, tolerance, restored) <= 1


def unit_of(t: Scalar) -> float:
    """The relative gap between the numbers of a type, of `fixed` the absolute one."""
    return system(t).unit


def return_limit(t: Scalar) -> float:
    """`RETURN` for numbers of a type: as many of its gaps as for doubles."""
    return RETURN_GAPS * unit_of(t) if t.is_float else RETURN


def agreement_limit(coarse: bool) -> float:
    """`AGREEMENT`; for f32, which has half the digits, its root."""
    return AGREEMENT**0.5 if coarse else AGREEMENT


def away(t: Scalar, gaps: Any, sizes: Any) -> Any:
    """The largest distance of numbers from where they began, in parts of the one allowed.

    They are measured as in `returned`: each by its own size at the start, and one that began as
    zero by the largest; if all did, that is not seen here.  Numbers are along the first axis.
    """
    with np.errstate(all="ignore"):
        sizes = np.where(sizes > 0, sizes, 0.0)
        own = np.max(np.where(sizes > 0, gaps / sizes, 0.0), axis=0)
        largest = np.max(sizes, axis=0)
        others = np.max(np.where(sizes > 0, 0.0, gaps), axis=0)
        return np.maximum(own, np.where(largest > 0, others / largest, 0.0)) / return_limit(t)


def returned(
    t: Scalar,
    begun: Any,
    ended: Any,
    limit: float,
    held: Any = 0.0,
    axes: Sequence[int] | None = None,
) -> NDArray[np.bool_]:
    """Whether raw numbers of type `t`, one or an array, ended within `limit` of where they began.

    Each is measured against its own first value; one that began as zero against the largest of its
    array, which is taken along `axes` (all of them), or of what it `held` on the way.  So are the
    parts of a complex number, but a part that began as zero against the other.  Types that do not
    round, and a limit of 0, demand equality; an infinity is near to itself alone, and a NaN
    to a NaN.
    """
    a, b = np.asarray(begun), np.asarray(ended)
    with np.errstate(all="ignore"):
        same = np.equal(a, b)
        if system(t).exact and not t.is_fixed:
            return np.asarray(same)
        if limit == 0:
            return np.asarray(~differing(a, b, bits=True))
        wide: Any = np.complex128 if t.is_complex else np.float64
        a, b = a.astype(wide), b.astype(wide)
        size = np.abs(a)
        along = tuple(range(a.ndim)) if axes is None else tuple(axes)
        largest = np.max(size, axis=along, keepdims=True, initial=0.0)
        scale = np.where(size == 0, np.maximum(largest, held), size)
        near = np.isfinite(scale)
        for one, other in ((a.real, b.real), (a.imag, b.imag)) if t.is_complex else ((a, b),):
            own = np.where(one == 0, scale, np.abs(one))
            near &= np.abs(other - one) <= limit * own
        return np.asarray(same | near | ((a != a) & (b != b)))


def magnitude(t: Scalar, raw: Any) -> float:
    """The largest magnitude of raw numbers as `returned` takes it; 0 where there is no finite."""
    wide: Any = np.complex128 if t.is_complex else np.float64
    size = np.abs(np.asarray(raw).astype(wide))
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))
