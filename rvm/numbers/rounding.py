"""How far rounding may carry a number: the constants of all checks, and one way to measure.

No limit is absolute but that of frees: a number is measured against itself, so that what is
decided does not depend on the units that it is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.numbers import system
from rvm.numbers.base import differing
from rvm.types import Scalar

FREED = 1e-8
"""How far a freed ancilla may be from its value v, in parts of max(1, |v|)."""
RETURN = 2.0**-40
"""How far a gradient's values may be from where they began, in parts of themselves."""
AGREEMENT = 1e-6
"""How far a gradient may be from tangents, in parts of itself, where values are further off."""
UNIT = 2.0**-52
"""The gap after 1 of doubles."""


def unit_of(t: Scalar) -> float:
    """The relative gap between the numbers of a type, of `fixed` the absolute one."""
    return system(t).unit


def return_limit(t: Scalar) -> float:
    """`RETURN` for numbers of a type: as many of its gaps as for doubles."""
    return RETURN * (unit_of(t) / UNIT) if t.is_float else RETURN


def agreement_limit(coarse: bool) -> float:
    """`AGREEMENT`; for f32, which has half the digits, its root."""
    return AGREEMENT**0.5 if coarse else AGREEMENT


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
    array, which is taken along `axes` (all of them), or of what it `held` on the way.  Types that
    do not round, and a limit of 0, demand equality; an infinity is near to itself alone, and a NaN
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
        near = (np.abs(b - a) <= limit * scale) & np.isfinite(scale)
        return np.asarray(same | near | ((a != a) & (b != b)))


def magnitude(t: Scalar, raw: Any) -> float:
    """The largest magnitude of raw numbers as `returned` takes it; 0 where there is no finite."""
    wide: Any = np.complex128 if t.is_complex else np.float64
    size = np.abs(np.asarray(raw).astype(wide))
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))
