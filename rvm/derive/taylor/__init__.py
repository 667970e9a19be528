"""Taylor propagation: gradient and Hessian of a loss in one run back.

While tangents of the gradient program need a run for each direction, here all second derivatives
are propagated back together: a matrix with a row and a column for each real number in the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.derive.evidence import there_and_back
from rvm.derive.gradients import Pullback
from rvm.derive.taylor.field import Field, flat, locate
from rvm.derive.taylor.walk import Walk
from rvm.expr import Place
from rvm.image import image_of
from rvm.program import Function, Program
from rvm.stmt import Free
from rvm.transform.duals import bar_slots, reachable
from rvm.types import Stack, elem_of


@dataclass(frozen=True, slots=True)
class Expansion:
    """First and second derivatives of a loss at the inputs, by parameter registers."""

    field: Field
    slots: tuple[Any, ...]
    """The slots of each parameter register, None for those that carry no derivatives."""
    wide: tuple[bool, ...]
    """Whether a register holds complex numbers."""

    def first(self, k: int) -> NDArray[np.float64]:
        """The derivatives by the real numbers in a register, in a row."""
        return self.field.g[flat(self.slots[k], self.wide[k])]

    def adjoints(self, function: Function, start: Sequence[Any]) -> dict[int, Any]:
        """The first derivatives as adjoints of parameter registers that hold `start`."""
        out: dict[int, Any] = {}
        for k in bar_slots(function):
            raw = self.first(k)
            if self.wide[k]:
                raw = raw.view(np.complex128)
            shaped = raw.reshape(np.shape(start[k]))
            out[k] = shaped if isinstance(start[k], np.ndarray) else shaped.tolist()
        return out

    def second(self, j: int, k: int) -> NDArray[np.float64]:
        """The second derivatives by those in two registers, as a matrix."""
        rows, columns = (flat(self.slots[i], self.wide[i]) for i in (j, k))
        return self.field.h[np.ix_(rows, columns)]


def propagate(pull: Pullback, loss: str) -> Expansion:
    """Run a pullback's function back with the first and second derivatives of a scalar place.

    This consumes the pullback.  LimitError R011 if the matrix would exceed the memory limit, or
    `field.MOST_BYTES`; InvertibilityError R017 if the values do not come back; DefinitionError D011
    or D012 where a function or an opcode has no second derivatives.
    """
    machine, function = pull.there, pull.function
    field = Field(pull.options.max_memory)
    walk = Walk(machine.state, field)
    place = pull.loss(loss)
    field.begin(locate(Place(place.slot, place.path), (), walk.frames[0]))
    machine.use(walk)
    with pull.watch(machine, "back with second derivatives"):
        machine.run_back()
    found = Expansion(
        field,
        tuple(walk.frames[0][: function.n_args]),
        tuple(elem_of(r.type).is_complex for r in function.registers[: function.n_args]),
    )
    pull.seed(loss)
    adjoints = found.adjoints(function, pull.start)
    drift = 0.0
    if _has_returning(pull):
        # The inverse code does not judge what it frees; the adjoint's frees do.
        drift = there_and_back(pull.evidence(adjoints)).rounding.drift
    pull.check_returned(machine.state.frames[0].regs, adjoints, drift)
    return found


def _has_returning(pull: Pullback) -> bool:
    """Whether the adjoint of a function has ancillas that show whether values have come back."""
    target = pull.target
    if pull.options.strict or not _has_inexact_ancillas(target.program, target.name):
        return False
    image = image_of(pull.program)
    codes = [image.code(name, False) for name in image.reachable(pull.adjoint.name)]
    stmts = (code.stmts(pc)[0] for code in codes for pc in range(len(code)))
    return any(isinstance(stmt, Free) and stmt.returns for stmt in stmts)


def _has_inexact_ancillas(program: Program, name: str) -> bool:
    """Whether a function, or one that it calls, has registers of its own that round."""
    functions = map(program.function, reachable(program, name))
    return any(
        not (isinstance(r.type, Stack) or elem_of(r.type).is_exact)
        for f in functions
        for r in f.registers[f.n_args :]
    )


__all__ = ["Expansion", "propagate"]
