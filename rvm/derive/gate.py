"""The check that values came back: one rule for every way to compute gradients.

The adjoints are computed from values that the run back restores. Where each number came back to its
start, within `rounding.RETURN` of itself, the adjoints are right up to rounding. Where one did not,
`rvm.derive.estimate` judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.derive.decisions import decides
from rvm.derive.evidence import Evidence, held_at_end, raw_size
from rvm.faults import InvertibilityError
from rvm.numbers import system
from rvm.numbers.rounding import (
    CALLED,
    CONTRACTS,
    INFINITY,
    OVERFLOWED,
    RETURN,
    agreement_limit,
    return_limit,
    returned,
)
from rvm.program import Function, Program, slots_of
from rvm.state import Options
from rvm.transform.duals import bar_slots
from rvm.transform.unread import gaining, unread
from rvm.types import F64, Array, Scalar, Stack, elem_of

QUICK = (float, int)
"""Python's types of raw values that compare at once."""
DECIDED = "a comparison, a step or an index of rounded numbers came out otherwise"
LEFT = "ancillas did not return to their initial values"
Finals = Mapping[int, Any]
"""The contents of the parameters' registers after the forward run, as far as known."""
NONE: Finals = {}
Witness = Callable[[], Evidence]
"""A function that returns the evidence from the runs, called when values are not back."""


def later(options: Options) -> Options:
    """Options of a run back with adjoints, whose ancillas are judged like the values."""
    return replace(options, judged_later=True)


def is_demanding(program: Program, name: str, undo: bool, options: Options) -> bool:
    """Whether more is demanded than restored values guarantee.

    A tolerance may demand it. Besides, a run back may decide otherwise than the run forwards. With
    `undo` it is the inverse that runs forwards.
    """
    tolerance = options.tolerance
    if tolerance and tolerance < agreement_limit(is_coarse(program.function(name))):
        return True
    return not options.strict and decides(program, name, undo)


def strays(
    function: Function,
    start: Sequence[Any],
    ended: Sequence[Any],
    options: Options,
    evidence: Witness,
    finals: Finals = NONE,
    held: dict[int, float] | None = None,
) -> list[int]:
    """The parameters' registers whose numbers are not back where they began, where that matters.

    If nothing reads what a function changes, finite adjoints do not depend on it; with a tolerance
    of 0 it is reported all the same.  `held` gets the sizes after the forward run, if they are
    needed.
    """
    exactly = options.tolerance == 0
    quick = () if exactly else QUICK
    off = []
    for k in range(function.n_args):
        begun, back = start[k], ended[k]
        if begun is back:
            continue
        kind = type(begun)
        if kind in quick:
            if begun == back:
                continue
            if kind is float and function.registers[k].type is F64:
                size = abs(begun) or abs(finals.get(k, 0.0))
                if abs(back - begun) <= RETURN * size < INFINITY:
                    continue
        elif quick and kind is np.ndarray and (begun == back).all():
            continue
        end = raw_size(function, k, finals[k]) if k in finals else 0.0
        if not np.all(_near(function, k, begun, back, exactly, end)):
            off.append(k)
    if exactly or not off:
        return off
    known = evidence()
    adds = unread(known.program, known.name) is not None
    if adds and known.found and are_finite(known.found.values()):
        return []
    held = {} if held is None else held
    held.update({k: raw_size(function, k, v) for k, v in finals.items()})
    return not_held(function, start, ended, known, off, held)


def are_finite(duals: Iterable[Any]) -> bool:
    """Whether all adjoints are numbers."""
    return all(map(_is_finite, duals))


def _is_finite(v: Any) -> bool:
    if type(v) is float:
        return isfinite(v)
    return bool(np.count_nonzero(np.isfinite(v)) == np.size(v))


def limit_of(t: Scalar, exactly: bool) -> float:
    """The allowed distance of a number of type `t` from its start, relative to itself."""
    return 0.0 if exactly else return_limit(t)


def _near(
    function: Function, k: int, begun: Any, back: Any, exactly: bool, held: float = 0.0
) -> NDArray[np.bool_]:
    t = function.registers[k].type
    elem = elem_of(t)
    if isinstance(t, Stack) and len(begun) != len(back):
        return np.zeros(1, bool)
    return returned(elem, begun, back, limit_of(elem, exactly), held)


def not_held(
    function: Function,
    start: Sequence[Any],
    ended: Sequence[Any],
    known: Evidence,
    off: list[int],
    held: dict[int, float],
) -> list[int]:
    """Registers that are off even relative to what they held; `held` gets what it lacks.

    That is the measure for numbers that began as zero, and for those that nothing reads.
    """
    out: list[int] = []
    gained = gaining(known.program, known.name)
    for k in off:
        begun, back = np.asarray(start[k]), np.asarray(ended[k])
        near = _near(function, k, begun, back, False)
        if near.shape == begun.shape and np.all(near | (k in gained) | (begun == 0)):
            if k not in held:
                held.update({**held_at_end(known), **held})
            with np.errstate(all="ignore"):
                gap = np.subtract(back, begun, dtype=None)
            near |= _near(function, k, np.zeros_like(gap), gap, False, held[k])
        if near.shape != begun.shape or not np.all(near):
            out.append(k)
    return out


def is_coarse(function: Function) -> bool:
    types = [elem_of(function.registers[k].type) for k in bar_slots(function)]
    return any(t.is_float and t.bits < 64 for t in types)


def refusal(
    function: Function,
    start: Sequence[Any],
    ended: Sequence[Any],
    options: Options,
    k: int | None,
    part: float | None = None,
    is_back: bool = False,
) -> InvertibilityError:
    """The error R017 for a register that is off (None: for none), and the gradient's error."""
    tolerance = options.tolerance
    told = (
        ()
        if part is None
        else (f"the error of the gradient is estimated to be {part:.1g} times its size",)
    )
    accepted = ""
    if part is None or part < INFINITY:
        wider = 1e-6 if part is None else float(f"{2 * part:.0e}")
        accepted = f"`tolerance={wider:g}` would accept"
    hint = CALLED if options.strict else CONTRACTS
    hint += f"; {accepted} a relative error of that size" if accepted else ""
    if k is None and tolerance is None:
        return InvertibilityError(
            "R017",
            f"run back with the adjoints, {DECIDED if is_back else LEFT}: the gradient cannot be "
            f"trusted",
            notes=told,
            hint=hint,
        )
    if k is None:
        return InvertibilityError(
            "R017",
            f"the gradient may be off by more than the tolerance of {tolerance:g}",
            notes=told,
            hint=accepted and f"{accepted} it",
        )
    name = next(p.name for p in function.params if k in slots_of(p.layout))
    begun, back = start[k], ended[k]
    t = function.registers[k].type
    sys = system(elem_of(t))
    bad = ~_near(function, k, begun, back, tolerance == 0)
    if isinstance(t, (Array, Stack)) and np.shape(begun) == np.shape(back):
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        name += f"[{', '.join(map(str, at))}]"
        begun, back = np.asarray(begun)[at].item(), np.asarray(back)[at].item()
    if isinstance(t, Scalar) or np.shape(start[k]) == np.shape(ended[k]):
        if np.all(np.isfinite(begun)) and not np.all(np.isfinite(back)):
            hint = OVERFLOWED
        begun, back = sys.to_python(begun), sys.to_python(back)
    return InvertibilityError(
        "R017",
        f"run back with the adjoints, `{name}` did not return to its initial value: the "
        f"gradient cannot be trusted",
        values={"began as": begun, "came back as": back},
        notes=told,
        hint=hint,
    )


def unconfirmed(name: str) -> InvertibilityError:
    """The error R017 for derivatives of a gradient whose values do not confirm them."""
    return InvertibilityError(
        "R017",
        f"the gradient of `{name}` is right, but its derivatives may not be: the values did not "
        f"return",
        hint="`hvp` and `hessian` of the function judge second derivatives themselves, and have a "
        "strict mode; `tolerance=inf` accepts these",
    )
