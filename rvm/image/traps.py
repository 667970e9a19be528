"""Traps: conditions at positions of code that end an engine's run when they hold.

Positions are those between instructions, 0 to the code's length, in the running direction. A trap
is due if the innermost frame is at its position and its guard holds. Guards are pure, so an engine
may evaluate them, and its caller may evaluate them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rvm.expr import Expr, Place
from rvm.types import Scalar


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """The guard that holds when a watched value differs from `cell[0]`.

    `place` is the watched scalar register (or its part) of the trap's frame; None if `look` needs
    no registers because it reads an array's memory. `element` is that memory, if it is a single
    number at a fixed address.
    """

    cell: list[Any]
    look: Callable[[Sequence[Any]], Any]
    """From the frame's registers to the present value; None where that is not live."""
    place: Place | None = None
    element: tuple[np.ndarray[Any, Any], Scalar] | None = None
    """A view without dimensions, and the type of its number."""

    def holds(self, regs: Sequence[Any]) -> bool:
        """Whether the value has changed."""
        return not same(self.look(regs), self.cell[0])


Guard = Expr | Changed | None
"""When a trap is due: a bool over the frame's registers, a change, or always."""


@dataclass(frozen=True, slots=True, eq=False)
class Trap:
    """A reason to stop at a position. `key` identifies its owner."""

    key: object
    guard: Guard = None


Traps = tuple[Trap, ...]


def same(a: Any, b: Any) -> bool:
    """Whether two raw values are equal; NaN equals itself, and not being live is a value."""
    if a is None or b is None:
        return a is b
    if hasattr(a, "shape") and a.shape != ():
        return bool(((a == b) | ((a != a) & (b != b))).all())
    return bool(a == b or (a != a and b != b))
