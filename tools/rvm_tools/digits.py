"""The results of a run that have lost their digits to rounding, by estimated errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rvm.derive.result_errors import run_errors
from rvm.derive.target import Target
from rvm.faults import Diagnostic, Where
from rvm.numbers.rounding import MOST_TICKS, agreement_limit, magnitude
from rvm.types import elem_of
from rvm_tools.show import number_text, parameters

HINT = (
    "strict mode does not change that: undo by `uncall` or `undo` of the code itself, of which "
    "copies are kept, avoid what cancels, or compute with fixed-point numbers"
)


@dataclass(frozen=True, slots=True)
class LostDigits:
    """A parameter, its largest number at the end of a run, and by how much it may be off."""

    name: str
    value: str
    off: float

    def warning(self, inputs: Mapping[str, Any], where: Where) -> Diagnostic:
        """The warning about it."""
        return Diagnostic(
            "C006",
            f"`{self.name}` has lost its digits to rounding: it is {self.value}, "
            f"and may be off by {self.off:.1g}",
            where,
            values=inputs,
            hint=HINT,
            severity="warning",
        )


def lost_digits(
    target: Target, start: Sequence[Any], ended: Sequence[Any], ticks: int
) -> list[LostDigits] | None:
    """The parameters that may be off by more than `AGREEMENT` of their largest number.

    One that is 0 is measured against what it was.
    `start` and `ended` are the raw values of the registers.  None if that is not known: where a run
    with other roundings does not come to its end, or of a run of more than `MOST_TICKS`.
    """
    if ticks > MOST_TICKS:
        return None
    function, errors = target.function, run_errors(target, start, ended, ticks)
    sized = [e for e in errors.values() if np.size(e)]
    if sized and all(np.all(np.isinf(e)) for e in sized):
        return None
    found = []
    for name, slot in parameters(function):
        t, off = elem_of(function.registers[slot].type), np.max(errors.get(slot, 0.0), initial=0.0)
        size = magnitude(t, ended[slot]) or magnitude(t, start[slot])
        size *= t.unit
        # The error of a logarithm is relative already.
        limit = agreement_limit(t.is_float and t.bits < 64) * (1.0 if t.is_log else size)
        if off > limit:
            raw = np.ravel(ended[slot])
            largest = raw[np.argmax(np.abs(raw))].item() if raw.size else 0
            found.append(LostDigits(name, number_text(t, largest), float(off)))
    return found


def come_back_hint(digits: Sequence[LostDigits] | None) -> str:
    """A hint for a run that does not come back to its start, given its lost digits."""
    if digits:
        names = ", ".join(f"`{lost.name}`" for lost in digits)
        whose = "its" if len(digits) == 1 else "their"
        return f"at the end of the run {names} had lost {whose} digits already; {HINT}"
    return "floats come back exactly with --strict, or as fixed-point numbers"
