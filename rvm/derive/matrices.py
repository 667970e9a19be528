"""Jacobians, and the errors of matrices of derivatives, each line of which is a gradient.

A row of a Jacobian is the gradient of a result. A column of a Hessian is the gradient of the loss's
directional derivative, which the tangent program computes; its own tangents, tangents of tangents,
only run forwards. So both are judged like gradients (`rvm.derive.estimate`), on separate copies of
the values.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.derive.directions import Pushforward, Seeds
from rvm.derive.estimate import Estimate, gradient_check
from rvm.derive.evidence import Evidence, muted
from rvm.derive.gate import later
from rvm.derive.gradients import Pullback
from rvm.derive.named import by_names, chosen, leaves, zero_dual
from rvm.derive.sweep import Shape, Sweep, blocks, direction, raw_directions, real_shape, units
from rvm.derive.target import Target
from rvm.faults import InvertibilityError, RvmError
from rvm.image.nudged import nudged
from rvm.numbers.rounding import INFINITY, NEGLIGIBLE, STEPS
from rvm.program import Layout, Program
from rvm.run.backup import copied
from rvm.run.results import Info, Result
from rvm.transform.duals import bar_slots, bar_type
from rvm.transform.programs import gradient_program, tangent_program
from rvm.types import RegisterType, elem_of

Parts = Mapping[tuple[int, int], Any]
"""Blocks of a matrix by the registers of their rows and their columns."""


def jacobian(
    target: Target, of: Collection[str] | None, wrt: Collection[str] | None, inputs: Seeds
) -> Result:
    """First derivatives: `j[y][x]` has the shape of the result `y` followed by that of `x`.

    By rows, with adjoints, or by columns, with tangents: whichever are fewer, and by columns where
    the values do not come back.
    """
    pull, options = Pullback(target, inputs), target.options
    outs, ins = chosen(target.function, of, "of"), chosen(target.function, wrt)
    registers = target.function.registers
    to = {k: real_shape(registers[k].type, pull.bars[k]) for k in leaves(outs)}
    of_what = {k: real_shape(registers[k].type, pull.start[k]) for k in leaves(ins)}
    rows = sum(map(math.prod, to.values())) <= sum(map(math.prod, of_what.values()))
    found = _pulled(pull, to) if rows else None
    if found is not None:
        info = Info.of(pull.result.info, found)
        parts = blocks(found, to, of_what, bar_slots(target.function), rows=True)
    else:
        push = Pushforward(target.program, target.name, pull.start, options, target.undo)
        columns = push.sweep(of_what)
        info = Info.of(columns)
        program, name, undo = target.program, target.name, target.undo
        check = gradient_check(program, name, undo, pull.start, options, derivatives=True)
        if check is not None:
            check(columns.first, columns.drift)
        parts = blocks(columns, to, of_what, push.slots, rows=False)
    known = replace(pull.evidence(pull.bars), forwards=found is None)
    judge = MatrixJudge(known, outs, ins, parts, rows=True)
    return by_names(outs, ins, parts, replace(info, judge=judge))


def _pulled(pull: Pullback, shapes: Mapping[int, Shape]) -> Sweep | None:
    """Run back with all unit adjoints of these registers, which have these shapes.

    None if the values do not come back.
    """
    slots = bar_slots(pull.function)
    regs = [*pull.regs[: pull.function.n_args], *pull.bars.values()]
    varying = {slots[k]: bars for k, bars in units(shapes).items()}
    undo = pull.target.undo
    try:
        found = Sweep(pull.program, pull.adjoint.name, regs, varying, later(pull.options), undo)
    except InvertibilityError:
        return None  # What rounding has moved fails an assertion on the way.
    # What the values are does not depend on the adjoints.
    return found if found.drift <= 1 and pull.is_back(found.first) else None


@dataclass(frozen=True, slots=True)
class Curving(Evidence):
    """The derivatives of a gradient along a direction, as evidence of the tangent function.

    Its inputs are values and their tangents, the direction.
    """

    source: Program | None = None
    of: str = ""
    """The function whose gradient it is."""

    def again(self, seed: int | None = None) -> dict[int, Any]:
        """The derivatives once more, as tangents of the gradient program."""
        assert self.source is not None
        f, options = self.source.function(self.of), muted(self.options)
        slots = bar_slots(f)
        made = gradient_program(self.source, self.of)
        bars = [self.seeds[slot] for slot in slots.values()]
        push = Pushforward(made, made.entry, [*self.start[: f.n_args], *bars], options)
        if seed is not None:
            push.program = nudged(push.program, seed, STEPS)
            push.options = replace(options, tolerance=INFINITY, bits="stated")
        run = push.run(push.zeros() | {k: self.start[slot] for k, slot in slots.items()})
        return {k: run.regs[push.slots[slot]] for k, slot in slots.items() if k in self.found}


def curving(source: Evidence, dots: Mapping[int, Any], found: Mapping[int, Any]) -> Curving:
    """The evidence on the derivatives of a gradient along a direction.

    `source` is the evidence on the gradient except its adjoints.
    """
    f, program = source.function, tangent_program(source.program, source.name)
    slots = bar_slots(f)
    zeros = {k: zero_dual(f, k, seed) for k, seed in source.seeds.items()}
    return Curving(
        program,
        program.entry,
        undo=False,
        options=muted(source.options),
        start=[*source.start[: f.n_args], *(copied(dots[k]) for k in slots)],
        seeds=zeros | {slot: source.seeds[k] for k, slot in slots.items()},
        found={k: copied(v) for k, v in found.items()},
        owned=True,
        source=source.program,
        of=source.name,
    )


class MatrixJudge:
    """The estimate of the error of a matrix of derivatives, line by line, in `error`.

    `known` is the evidence common to all lines. Its lines are the rows of a Jacobian (`rows`), or
    the columns of a Hessian; `rows_of` and `columns_of` are its parameters, `parts` its blocks.
    """

    def __init__(
        self,
        known: Evidence,
        rows_of: Mapping[str, Layout],
        columns_of: Mapping[str, Layout],
        parts: Parts,
        *,
        rows: bool,
    ) -> None:
        self.known = replace(known, options=muted(known.options), owned=True)
        self.layouts = dict(rows_of), dict(columns_of)
        self.parts = {key: np.array(part) for key, part in parts.items()}
        self.rows = rows

    @cached_property
    def error(self) -> Result:
        """The possible error of each number, in absolute terms; infinite if it is not known."""
        to, of, along, across = self._ways()
        lines: dict[int, list[NDArray[np.float64]]] = {k: [] for k in across}
        registers = self.known.function.registers
        for line in self._lines:
            for k, error in line.errors.items():
                wide = elem_of(registers[k].type).is_complex
                lines[k].append(np.repeat(error.reshape(-1), 1 + wide))
        size = sum(map(math.prod, along.values()))
        arrays = {k: np.array(held).reshape(size, -1) for k, held in lines.items()}
        same = {k: k for k in across}
        return by_names(*self.layouts, blocks(arrays, to, of, same, rows=self.rows), None)

    def part(self) -> float:
        """The error of a Hessian in parts of a column, of that where it is the largest.

        A column counts as no less than `NEGLIGIBLE` of the largest, in the sizes of the parameters:
        one that is truly zero is nothing but rounding.
        """
        along = self._ways()[2]
        ats = [j for j, shape in along.items() for _ in range(math.prod(shape))]
        lines = list(zip(self._lines, ats, strict=True))
        if not lines:
            return 0.0
        try:
            sizes = lines[0][0].sizes
            weights = (line.weight * sizes[j] for line, j in lines)
            least = NEGLIGIBLE * max(filter(math.isfinite, weights), default=0.0)
        except RvmError:
            return INFINITY
        return max(line.part(least / sizes[j] if sizes[j] else 0.0) for line, j in lines)

    @cached_property
    def _lines(self) -> list[Estimate]:
        """The estimates of the errors of all lines."""
        _, _, along, _ = self._ways()
        registers = self.known.function.registers
        given = {k: raw_directions(_bar(registers[k].type), v) for k, v in units(along).items()}
        return [
            Estimate(self._line({k: direction(v, n) for k, v in given.items()}, at))
            for n, at in enumerate((j, i) for j in along for i in range(math.prod(along[j])))
        ]

    def _ways(self) -> tuple[dict[int, Shape], ...]:
        """The shapes of the parameters of rows and columns, and of those of and along lines."""
        to, of = (self._shapes(leaves(names)) for names in self.layouts)
        return to, of, *((to, of) if self.rows else (of, to))

    def now(self) -> None:
        """Compute it."""
        _ = self.error

    def _shapes(self, registers: Sequence[int]) -> dict[int, Shape]:
        types = self.known.function.registers
        held = self.known.seeds if self.rows else self.known.start
        return {k: real_shape(types[k].type, held[k]) for k in registers}

    def _line(self, dual: Mapping[int, Any], at: tuple[int, int]) -> Evidence:
        """The evidence on the line of one number of a register;

        `dual` is 1 there and 0 elsewhere.
        """
        (j, i), known = at, self.known
        _, _, along, across = self._ways()
        count, found = math.prod(along[j]), {}
        for k, shape in across.items():
            part, size = self.parts[(j, k) if self.rows else (k, j)], math.prod(shape)
            flat = part.reshape(count, size)[i] if self.rows else part.reshape(size, count)[:, i]
            t = _bar(known.function.registers[k].type)
            found[k] = direction(raw_directions(t, flat.reshape(1, *shape)), 0)
        zeros = {k: zero_dual(known.function, k, seed) for k, seed in known.seeds.items()}
        if self.rows:
            return replace(known, seeds=zeros | dict(dual), found=found)
        start = {k: zero_dual(known.function, k, known.start[k]) for k in known.seeds}
        return curving(known, start | dict(dual), found)


def _bar(t: RegisterType) -> RegisterType:
    bar = bar_type(t)
    assert bar is not None
    return bar
