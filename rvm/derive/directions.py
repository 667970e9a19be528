"""Derivatives along directions, as Python sees them.

Tangents go forwards alongside values.  The inputs are left as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rvm.derive.estimate import gradient_check
from rvm.derive.gradients import Pullback, raw_inputs
from rvm.derive.named import add_seeds, bar_layout, zero_dual
from rvm.derive.sweep import Shape, Sweep, units
from rvm.derive.target import Target
from rvm.faults import RvmError
from rvm.program import Function, Program
from rvm.run.backup import copied
from rvm.run.binding import outside, result
from rvm.run.raw import Run
from rvm.run.results import Result, values_of
from rvm.state import Options
from rvm.transform.duals import bar_slots
from rvm.transform.programs import tangent_program

Seeds = Mapping[str, Any]


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
    of = target.program, target.name, target.undo
    check = gradient_check(*of, start, target.options, derivatives=True)
    if check is not None:
        check(run.regs, run.rounding.drift)
    found = result(target.function, run.regs, run.info), push.tangents(run)
    return push.with_errors(found, dots, run) if target.options.error else found
