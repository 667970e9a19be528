"""Creating and removing arrays and stacks, and counting their memory; shared by engines.

Scalars are in their frame and are counted with it.  Every function here either does all of its work
or raises before it changes anything.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rvm.engines.log import keep
from rvm.faults import InvertibilityError, LimitError, MachineError
from rvm.numbers.base import NumberSystem, differing
from rvm.numbers.rounding import (
    CALLED,
    LOST,
    PASSED,
    TURNED,
    allowance,
    away,
    drift_of,
    extent,
    is_lost,
)
from rvm.state import SCALAR_BYTES, State


def room(state: State, n: int) -> None:
    """LimitError R011 unless `n` more bytes are allowed."""
    limit = state.options.max_memory
    if limit is not None and state.account.live_bytes + n > limit:
        raise LimitError(
            "R011",
            "the memory limit is reached",
            values={"live bytes": state.account.live_bytes, "asked for": n, "limit": limit},
            hint="raise it with max_memory= or --max-memory",
        )


def fits(place: Any, value: Any) -> None:
    """MachineError R008 unless `value` broadcasts into the shape of `place`."""
    have, want = np.shape(value), np.shape(place)
    if have == want or not have:
        return
    try:
        ok = np.broadcast_shapes(have, want) == want
    except ValueError:
        ok = False
    if not ok:
        raise MachineError(
            "R008",
            f"a value of shape {list(have)} does not fit a place of shape {list(want)}",
            values={"value shape": list(have), "place shape": list(want)},
        )


def make_array(state: State, sys: NumberSystem, shape: tuple[int, ...], value: Any) -> Any:
    """A new array that holds `value` everywhere (or as broadcast)."""
    if any(n < 0 for n in shape):
        raise MachineError(
            "R008", "an array cannot have a negative length", values={"lengths": list(shape)}
        )
    size = int(sys.dtype.itemsize)
    for n in shape:
        size *= n
    room(state, size)
    try:
        array = np.empty(shape, sys.dtype)
    except (MemoryError, ValueError):
        raise LimitError(
            "R011", "the host has no memory for this array", values={"lengths": list(shape)}
        ) from None
    fits(array, value)
    array[...] = value
    state.account.grow(array.nbytes)
    return array


def drop_array(
    state: State,
    sys: NumberSystem,
    array: Any,
    shape: tuple[int, ...],
    expected: Any,
    name: str = "",
    *sizes: float,
    **how: bool,
) -> None:
    """Check that an array has this shape and these values (see `residue`); free its memory."""
    if shape != array.shape:
        raise InvertibilityError(
            "R012",
            f"running back, `{name}` does not have its initial lengths"
            if state.top.code.undo
            else f"the lengths of `{name}` have changed since it was made",
            values={"lengths": list(array.shape), "would now be": list(shape)},
        )
    if np.shape(expected) != shape:
        fits(array, expected)
        expected = np.broadcast_to(np.asarray(expected, sys.dtype), shape)
    residue(state, sys, array, expected, name, *sizes, **how)
    state.account.live_bytes -= array.nbytes


def residue(
    state: State,
    sys: NumberSystem,
    held: Any,
    expected: Any,
    name: str = "",
    size: float | None = None,
    updates: float = 0.0,
    *,
    logged: bool = False,
    returns: bool = False,
) -> None:
    """R001 unless `held` passes for `expected`; an accepted difference is `logged` or counted.

    R017 where it `returns`: an adjoint was computed from it meanwhile.  Then the drift is also that
    from its own value, which nothing but the caller judges; see `rvm.derive.gate`.

    `size` and `updates` say how large the place has been, see `rvm.numbers.rounding`; no size, or
    a mark of a turn: it holds its value by construction.  A NaN passes where a NaN is
    expected: it is what the value was made of, and is known.
    """
    tolerance = state.options.tolerance
    differs = differing(held, expected, bits=logged or tolerance == 0)
    if not np.any(differs):
        if logged:
            keep(state, (sys, expected, held))
        return
    if sys.exact or tolerance == 0:
        notes = () if sys.exact else ("the tolerance is 0: every bit counts",)
        raise _other(state, sys, name, held, expected, notes)
    gaps, sizes = _measured(held, expected, differs)
    gap, magnitude = float(np.max(gaps)), float(np.max(sizes))
    if not math.isfinite(gap):
        raise _other(state, sys, name, held, expected, ("the difference is not finite",))
    if updates >= TURNED:
        size = None
    unproved = state.edited and state.pardons.get(state.proved) != state.edited_at
    doubted = size is None and unproved and tolerance is None
    if doubted:
        # What was live when values were changed from outside is not known by construction.
        size, updates = gap, PASSED
    drift = 0.0
    if size is not None and tolerance != math.inf:
        off = _Off(state, sys, name, held, expected, gap, magnitude, doubted)
        drift = (_returned if returns else _judged)(off, max(size, magnitude), updates)
    if returns and tolerance != math.inf:
        drift = max(drift, float(away(sys.type, gaps.reshape(-1), sizes.reshape(-1))))
    if logged:
        keep(state, (sys, expected, held))
    else:
        state.account.erased_bits += sys.type.bits * int(np.count_nonzero(differs))
    state.account.drift = max(state.account.drift, drift)


class _Off(NamedTuple):
    """A place with a wrong value, the difference, and the size of the place."""

    state: State
    sys: NumberSystem
    name: str
    held: Any
    expected: Any
    gap: float
    magnitude: float
    doubted: bool
    """Whether it would be known by construction, had values not been changed from outside."""


def _judged(off: _Off, size: float, updates: float) -> float:
    """The distance of a place from its value, relative to the allowed one.

    R001 unless rounding explains it, and the value is larger than the possible rounding.
    """
    state, sys, name, held, expected, gap, magnitude, _ = off
    tolerance = state.options.tolerance
    allowed = allowance(sys.type, size, updates, tolerance)
    doubt = 1.0
    if state.pardons:
        at = state.top.code, state.top.pc
        doubt = state.pardons.get((*at, "expected"), 1.0)
        if tolerance is None:
            allowed *= state.pardons.get((*at, "residue"), 1.0)
    if not gap <= allowed:
        many = f"{updates:g} updates explain" if updates != 1 else "1 update explains"
        why = f"the tolerance is {tolerance:g}" if tolerance else f"{many} {allowed:.2g}"
        note = f"it is off by {gap:.2g}; it has been as large as {size:.3g}, of which {why}"
        note += "; `tolerance=` sets the allowed part" * (tolerance is None)
        error = _other(state, sys, name, held, expected, (note,))
        if tolerance is None:
            error.excess = gap / allowed
        raise error
    if is_lost(gap, magnitude * doubt):
        error = InvertibilityError(
            "R001",
            f"`{name}` is lost: rounding has left no digit of its expected value",
            values={name: sys.told(held), "expected": sys.told(expected)},
            notes=(f"it has been as large as {size:.3g}, where numbers are {allowed:.2g} apart",),
            hint="keep large and small numbers in places of their own, or compute with fixed-point "
            "numbers",
        )
        error.excess, error.doubtful = gap / magnitude / LOST / doubt, "expected"
        raise error
    return gap / allowed if gap else 0.0


def _returned(off: _Off, size: float, updates: float) -> float:
    """The distance of a place from its start, relative to that allowed in gradients.

    R017 if it is larger, unless that is judged later.
    """
    state, sys, name, held, expected, gap, _, doubted = off
    allowed = allowance(sys.type, size, updates, state.options.tolerance)
    if not gap <= allowed and not state.options.judged_later:
        error = InvertibilityError(
            "R017",
            f"run back with the adjoints, `{name}` did not return to its initial value: the "
            f"gradient cannot be trusted",
            values={name: sys.told(held), "began as": sys.told(expected)},
            notes=(f"it is off by {gap:.2g}, and may be by {allowed:.2g}",),
            hint=f"{CALLED}; or allow more by `tolerance=`",
        )
        if doubted and allowed:
            error.excess = gap / allowed
        raise error
    return drift_of(gap, allowed)


def _measured(held: Any, expected: Any, off: Any) -> tuple[Any, Any]:
    """The differences where two differ, and the magnitudes that are expected."""
    if type(held) is float and type(expected) is float:
        return np.float64(abs(held - expected)), np.float64(abs(expected))
    with np.errstate(all="ignore"):
        apart = extent(np.subtract(held, expected, dtype=_wide(held)))
        return np.where(off, apart, 0.0), np.asarray(extent(expected))


def _wide(x: Any) -> Any:
    return np.complex128 if np.iscomplexobj(x) else np.float64


def _other(
    state: State, sys: NumberSystem, name: str, held: Any, expected: Any, notes: tuple[str, ...]
) -> InvertibilityError:
    back = state.top.code.undo
    return InvertibilityError(
        "R001",
        f"running back, `{name}` does not have its initial value"
        if back
        else f"`{name}` is freed with a wrong value",
        values={name: sys.told(held), "began as" if back else "expected": sys.told(expected)},
        notes=notes,
        hint="its changes must be undone exactly, from the results of a forward run"
        if back
        else "uncompute it before the free, by undoing the code that computed its value",
    )


def forget(state: State, sys: NumberSystem, value: Any, *, logged: bool = False) -> None:
    """Discard any value: its bits are `logged`, or counted as erased."""
    if logged:
        keep(state, (sys, sys.zero, value))
    else:
        state.account.erased_bits += sys.type.bits * int(np.count_nonzero(value))
    if isinstance(value, np.ndarray):
        state.account.live_bytes -= value.nbytes


def push(state: State, stack: list[Any], value: Any) -> None:
    """Put a value on a stack."""
    room(state, SCALAR_BYTES)
    stack.append(value)
    state.account.grow(SCALAR_BYTES)


def pop(state: State, stack: list[Any]) -> Any:
    """Pop a value from a stack that is not empty."""
    state.account.live_bytes -= SCALAR_BYTES
    return stack.pop()
