"""Second derivatives for Python: `f.hvp`, and `f.hessian` by either of two methods.

*Forward over reverse*: tangents of the gradient program, a run for each direction; in strict mode
*reverse over forward*, gradients of the tangent program, since those go back by the log. *Taylor*:
one run back with all second derivatives.  The inputs are not changed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rvm.codes.words import instead
from rvm.derive.directions import Pushforward, Seeds
from rvm.derive.estimate import Estimate
from rvm.derive.evidence import Evidence
from rvm.derive.gate import later
from rvm.derive.gradients import Judge, Pullback, Watch, unwatched
from rvm.derive.matrices import MatrixJudge, curving
from rvm.derive.named import add_seeds, by_names, chosen, dressed, leaves, named_duals, nested
from rvm.derive.sweep import (
    Shape,
    blocks,
    direction,
    plain,
    raw_directions,
    real_row,
    real_shape,
    units,
)
from rvm.derive.target import Target
from rvm.derive.taylor import propagate
from rvm.faults import UsageError
from rvm.numbers.rounding import NEGLIGIBLE
from rvm.run.backup import copied
from rvm.run.results import Info, Result
from rvm.transform.duals import bar_slots
from rvm.transform.programs import tangent_program

TAYLOR, DIRECTIONS = "taylor", "forward-over-reverse"
METHODS = (DIRECTIONS, TAYLOR)


class Curvature:
    """The gradient of a loss as a function whose own derivatives are taken."""

    def __init__(
        self, target: Target, loss: str, inputs: Seeds, pull: Pullback | None = None
    ) -> None:
        if pull is None or target.undo:
            target = target.upright()
            pull = Pullback(target, inputs)
        self.target, self.place = target, pull.loss(loss)
        self.pull = pull
        self.pull.seed(loss)
        self.slots = bar_slots(target.function)
        program = target.gradient_program
        regs = [*self.pull.start[: target.function.n_args], *self.pull.bars.values()]
        self.push = Pushforward(program, program.entry, regs, later(target.options))

    def along(self, dots: Mapping[int, Any]) -> Result:
        """The derivatives of the gradient along a direction, by parameter.

        InvertibilityError R017 if the values do not come back.
        """
        found, info = self._line(dots)
        kept = {k: copied(v) for k, v in found.items()}
        judge = Judge(partial(curving, self.known, dots, kept))
        if self.pull.verdict is not None:
            line = Estimate(judge.known)
            across = line.across()
            other = Estimate(curving(self.known, across, self._line(across)[0]))
            largest = other.weight if math.isfinite(other.weight) else 0.0
            least = NEGLIGIBLE * largest * line.length(dots)
            self.pull.verdict(line.part(least))
        return named_duals(self.pull.function, found, replace(info, judge=judge))

    def _line(self, dots: Mapping[int, Any]) -> tuple[dict[int, Any], Info]:
        """The derivatives of the gradient along a direction, by register."""
        if self.target.options.strict:
            turned = self._turned(dots)
            return {k: turned.found[k] for k in self.slots}, turned.info
        run = self.push.run(self.push.zeros() | dict(dots))
        self._check(run.regs, run.rounding.drift)
        return {k: run.regs[self.push.slots[slot]] for k, slot in self.slots.items()}, run.info

    @property
    def known(self) -> Evidence:
        """The evidence on the gradient, except its adjoints."""
        return self.pull.evidence(self.pull.bars)

    def _check(self, regs: list[Any], drift: float) -> None:
        """R017 unless the values of the gradient's run are back, or the gradient is right."""
        self.pull.check_returned(regs, {k: regs[slot] for k, slot in self.slots.items()}, drift)

    def blocks(self, shapes: Mapping[int, Shape]) -> tuple[dict[tuple[int, int], Any], Info]:
        """The derivatives of the gradient by these registers, which have these real shapes.

        InvertibilityError R017 if the values do not come back.
        """
        if self.target.options.strict:
            return self._singly(shapes)
        sweep = self.push.sweep(shapes)
        # What the values are does not depend on the direction.
        self._check(sweep.first, sweep.drift)
        slots = {k: self.push.slots[slot] for k, slot in self.slots.items()}
        return blocks(sweep, shapes, shapes, slots, rows=False), Info.of(sweep)

    def _turned(self, dots: Mapping[int, Any]) -> Pullback:
        """The gradient of the loss's tangent along a direction, run back."""
        target, start = self.target, self.pull.start
        program = tangent_program(target.program, target.name)
        entry = program.function(program.entry)
        values = [*map(copied, start[: target.function.n_args]), *(dots[k] for k in self.slots)]
        given = {p.name: nested(p.layout, values) for p in entry.params}
        turned = Target(program, entry.name, options=target.options)
        pull = Pullback(turned, dressed(entry, given))
        pull.seed_at(replace(self.place, slot=self.slots[self.place.slot]))
        pull()
        return pull

    def _singly(self, shapes: Mapping[int, Shape]) -> tuple[dict[tuple[int, int], Any], Info]:
        """`blocks` of a run for each direction."""
        found: dict[int, list[Any]] = {k: [] for k in shapes}
        infos = []
        size = sum(math.prod(shape) for shape in shapes.values())
        registers = self.push.function.registers
        given = {
            k: raw_directions(registers[self.push.slots[k]].type, v)
            for k, v in units(shapes).items()
        }
        for n in range(size):
            dots = self.push.zeros() | {k: direction(v, n) for k, v in given.items()}
            turned = self._turned(dots)
            infos.append(turned.info)
            for k, rows in found.items():
                rows.append(real_row(turned.found[k]))
        arrays = {k: np.array(rows).reshape(size, -1) for k, rows in found.items()}
        same = {k: k for k in shapes}
        return blocks(arrays, shapes, shapes, same, rows=False), Info.of(*infos)


def hvp(target: Target, loss: str, tangents: Seeds, inputs: Seeds) -> Result:
    """The Hessian of the loss times a direction, by parameter; zero where none is given."""
    curvature = Curvature(target, loss, inputs)
    zeros = curvature.push.zeros()
    dots = {k: zeros[k] for k in curvature.slots}
    add_seeds(target.function, dots, tangents, "tangent")
    return curvature.along(dots)


def hessian(
    target: Target,
    loss: str,
    wrt: Collection[str] | None,
    inputs: Seeds,
    method: str = DIRECTIONS,
    watch: Watch = unwatched,
) -> Result:
    """Second derivatives: `h[a][b]` has the shape of `a` followed by that of `b`.

    A record has an entry for each field, `h[a].p.vel`; a stack is an array of its numbers; for a
    complex number, the derivatives with respect to its parts are on a last axis of length 2.
    UsageError U017 for an unknown method; LimitError R011 and DefinitionError D012 where Taylor
    propagation is not possible.
    """
    if method not in METHODS:
        raise UsageError(
            "U017",
            f"there is no method for Hessians called `{method}`",
            hint=instead(method, METHODS, f"methods: {', '.join(METHODS)}"),
        )
    layouts = chosen(target.function, wrt)
    pull = Pullback(target, inputs, watch)
    pull.loss(loss)
    registers = target.function.registers
    shapes = {k: real_shape(registers[k].type, pull.start[k]) for k in leaves(layouts)}
    if method == TAYLOR:
        field = propagate(pull, loss)
        found = {
            (j, k): plain(field.second(j, k).reshape((*shapes[j], *shapes[k])))
            for j in shapes
            for k in shapes
        }
        info = Info.of(pull.there.state.account)
        known = pull.evidence(pull.bars)
        if known.undo:
            known = replace(known, program=target.upright().program, undo=False)
    else:
        curvature = Curvature(target, loss, inputs, pull)
        found, info = curvature.blocks(shapes)
        known, pull = curvature.known, curvature.pull
    judge = MatrixJudge(known, layouts, layouts, found, rows=False)
    if pull.verdict is not None:
        pull.verdict(judge.part())
    return by_names(layouts, layouts, found, replace(info, judge=judge))
