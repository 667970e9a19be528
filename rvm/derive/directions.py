"""Derivatives along directions and Jacobians, as Python sees them.

Tangents go forwards alongside values.  The inputs are left as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.derive.estimate import copied
from rvm.derive.gate import gradient_check, later
from rvm.derive.gradients import (
    Pullback,
    add_seeds,
    bar_layout,
    by_field,
    raw_inputs,
    zero_dual,
)
from rvm.derive.places import wanted
from rvm.derive.sweep import Sweep, real_shape, units
from rvm.derive.target import Target
from rvm.faults import RvmError
from rvm.program import Function, Layout, Program, slots_of
from rvm.run.binding import outside, result
from rvm.run.raw import Run
from rvm.run.results import Info, Result, values_of
from rvm.state import Options
from rvm.transform.duals import bar_slots
from rvm.transform.programs import tangent_program

Seeds = Mapping[str, Any]
Shape = tuple[int, ...]


class Pushforward:
    """A function with its tangent program, on fixed inputs; call it with directions."""

    def __init__(
        self, program: Program, name: str, regs: list[Any], options: Options, undo: bool = False
    ) -> None:
        self.program = tangent_program(program, name)
        self.function: Function = self.program.function(self.program.entry)
        self.source = program.function(name)
        self.slots = bar_slots(self.source)
        self.regs = regs
        self.options = options
        self.undo = undo

    def zeros(self) -> dict[int, Any]:
        """Tangents of zero, by parameter register."""
        return {k: zero_dual(self.source, k, self.regs[k]) for k in self.slots}

    def run(self, dots: Mapping[int, Any]) -> Run:
        """A run with these tangents: its registers are the results, then their tangents."""
        n = self.source.n_args
        values = [copied(v) for v in self.regs[:n]] + [copied(dots[k]) for k in self.slots]
        return Run(self.program, self.function.name, values, self.options, undo=self.undo)

    def with_errors(
        self, found: tuple[Result, Result], dots: Mapping[int, Any], run: Run
    ) -> tuple[Result, Result]:
        """The results and the tangents of a run with estimates of their errors."""
        from rvm.derive.result_errors import estimated, run_errors

        target = Target(self.program, self.function.name, self.undo, self.options)
        start = [*self.regs[: self.source.n_args], *(dots[k] for k in self.slots)]
        errors = run_errors(target, start, run.regs, run.ticks)
        of_tangents = {k: errors[slot] for k, slot in self.slots.items()}
        judges = (estimated(self.source, e) for e in (errors, of_tangents))
        told = (replace(run.info, judge=judge) for judge in judges)
        values, tangents = (Result(values_of(r), info) for r, info in zip(found, told, strict=True))
        return values, tangents

    def sweep(self, shapes: Mapping[int, Shape]) -> Sweep:
        """Runs along all unit directions of the registers named, whose real shapes these are."""
        zeros = self.zeros()
        regs = [*self.regs[: self.source.n_args], *(zeros[k] for k in self.slots)]
        varying = {self.slots[k]: dots for k, dots in units(shapes).items()}
        return Sweep(self.program, self.function.name, regs, varying, self.options, self.undo)

    def tangents(self, run: Run) -> Result:
        """The tangents among a run's registers, by parameter."""
        out = {}
        for p in self.source.params:
            layout = bar_layout(p.layout, self.slots)
            if layout is not None:
                out[p.name] = outside(self.function, layout, run.regs)
        return Result(out, run.info)


def jvp(target: Target, tangents: Seeds, inputs: Seeds) -> tuple[Result, Result]:
    """The results, and their tangents for given tangents of the inputs (others: zero).

    Both come from one run. If it fails, the error is that of the function itself, if that fails
    too.
    """
    start = raw_inputs(target, inputs)
    push = Pushforward(target.program, target.name, start, target.options, target.undo)
    dots = push.zeros()
    add_seeds(push.source, dots, tangents, "tangent")
    try:
        run = push.run(dots)
    except RvmError:
        Pullback(target, inputs)
        raise
    check = gradient_check(target.program, target.name, target.undo, start, target.options)
    if check is not None:
        check(run.regs, run.rounding.drift)
    found = result(target.function, run.regs, run.info), push.tangents(run)
    return push.with_errors(found, dots, run) if target.options.error else found


def jacobian(
    target: Target,
    of: Collection[str] | None,
    wrt: Collection[str] | None,
    inputs: Seeds,
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
    rows = sum(map(_size, to.values())) <= sum(map(_size, of_what.values()))
    found = _pulled(pull, to) if rows else None
    if found is not None:
        info = Info.of(pull.result.info, found)
        parts = blocks(found, to, of_what, bar_slots(target.function), rows=True)
    else:
        push = Pushforward(target.program, target.name, pull.start, options, target.undo)
        columns = push.sweep(of_what)
        info = Info.of(columns)
        check = gradient_check(target.program, target.name, target.undo, pull.start, options)
        if check is not None:
            check(columns.first, columns.drift)
        parts = blocks(columns, to, of_what, push.slots, rows=False)
    from rvm.derive.matrices import MatrixJudge

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
    found = Sweep(pull.program, pull.adjoint.name, regs, varying, later(pull.options), undo)
    # What the values are does not depend on the adjoints.
    return found if found.drift <= 1 and pull.is_back(found.first) else None


def blocks(
    sweep: Sweep | Mapping[int, NDArray[np.float64]],
    to: Mapping[int, Shape],
    of: Mapping[int, Shape],
    slots: Mapping[int, int],
    *,
    rows: bool,
) -> dict[tuple[int, int], Any]:
    """The derivatives of registers by others, from runs along either (`rows`: along the former).

    `sweep` has for each register a row for each run.
    """
    out: dict[tuple[int, int], Any] = {}
    along, across = (to, of) if rows else (of, to)
    for k, shape in across.items():
        found = sweep[slots[k]]
        at = 0
        for j, other in along.items():
            part = found[at : at + _size(other)]
            at += _size(other)
            if rows:
                out[j, k] = plain(part.reshape((*other, *shape)))
            else:
                out[k, j] = plain(part.T.reshape((*shape, *other)))
    return out


def chosen(
    function: Function, names: Collection[str] | None, option: str = "wrt"
) -> dict[str, Layout]:
    """The parameters of a matrix, by name: the layouts of the parts that have duals.

    InputError I008 if one of `names` is not among them.
    """
    slots = {k: k for k in bar_slots(function)}
    layouts = {p.name: bar_layout(p.layout, slots) for p in function.params}
    able = {name: layout for name, layout in layouts.items() if layout is not None}
    found = wanted(function, able, names, option)
    return {name: layout for name, layout in able.items() if name in found}


def leaves(layouts: Mapping[str, Layout]) -> list[int]:
    """The registers of chosen parameters, in order."""
    return [k for layout in layouts.values() for k in slots_of(layout)]


def by_names(
    rows: Mapping[str, Layout],
    columns: Mapping[str, Layout],
    blocks: Mapping[tuple[int, int], Any],
    info: Info | None,
) -> Result:
    """Blocks of a matrix by parameters, those of records by their fields."""

    def row(k: int) -> Result:
        return Result({n: by_field(inner, lambda j: blocks[k, j]) for n, inner in columns.items()})

    return Result({name: by_field(layout, row) for name, layout in rows.items()}, info)


def _size(shape: Shape) -> int:
    return int(np.prod(shape, dtype=np.int64))


def plain(array: NDArray[Any]) -> Any:
    """An array, or the number that one of no dimensions holds."""
    return array.item() if array.ndim == 0 else array
