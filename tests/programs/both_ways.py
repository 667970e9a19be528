"""Runs the `;! run` lines of a program on every engine, forwards and backwards.

Imported by the tests of the programs beside it and of the examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rvm_asm import assemble, disassemble, expand
from rvm_tools.directives import Directive, directives
from rvm_tools.drift import drifts
from rvm_tools.programs import pick_function
from rvm_tools.trial import differences
from rvm_tools.values import inputs_for, value_for
from sizes import first_and_another

import rvm
from rvm import Machine, RvmError
from rvm.engines import executing
from rvm.program import Function, Program
from rvm.run.backup import snapshot
from rvm.types import elem_of

ENGINES = executing()
MODES = ("tolerant", "strict")


@cache
def load(path: Path) -> rvm.Library:
    """The program in a file, assembled once."""
    return rvm.load(str(path))


def strict_code(program: Program) -> rvm.Library:
    """The program with one function an instruction, printed and assembled again."""
    if strict_code not in program.cache:
        program.cache[strict_code] = rvm.Library(assemble(disassemble(expand(program))))
    found = program.cache[strict_code]
    assert isinstance(found, rvm.Library)
    return found


@dataclass(frozen=True)
class Case:
    """A `;! run` line of a file."""

    path: Path
    directive: Directive
    strict: bool = False
    """Whether to run the strict code that the file stands for."""

    def __str__(self) -> str:
        return f"{self.path.stem}:{self.directive.line}"

    @property
    def picked(self) -> tuple[Program, Function]:
        """The program and its function, a generic one for the types of the arguments."""
        return pick_function(
            load(self.path).program, self.directive.function, self.directive.inputs
        )

    @property
    def program(self) -> rvm.Library:
        program, _ = self.picked
        return strict_code(program) if self.strict else rvm.Library(program)

    @property
    def function(self) -> Function:
        return self.program.program.function(self.picked[1].name)

    def inputs(self) -> dict[str, Any]:
        """The arguments, new ones each time."""
        return inputs_for(self.function, self.directive.inputs, self.path.parent)

    def expected(self) -> dict[str, Any]:
        """What the parameters must be at the end; those that are not named, what they were."""
        out = self.inputs()
        for p in self.function.params:
            if p.name in self.directive.expected:
                value = self.directive.expected[p.name]
                out[p.name] = value_for(self.function, p.layout, p.name, value, self.path.parent)
        return out


def cases(path: Path) -> Iterator[Case]:
    """The `;! run` lines of a file."""
    for d in directives(path.read_text(encoding="utf-8"), path.name):
        if d.is_run:
            yield Case(path, d)


def refusals(path: Path) -> tuple[str, ...]:
    """The codes that the file must be refused with, by its `;! fails` lines."""
    found = directives(path.read_text(encoding="utf-8"), path.name)
    return tuple(c for d in found if not d.is_run for c in d.codes)


def bits(values: list[Any]) -> list[bytes]:
    """Registers as bytes, to compare floats by their bits."""
    return [np.asarray(v).tobytes() for v in values]


def parameters(machine: Machine) -> list[Any]:
    """Copies of the outermost function's parameters, as registers."""
    frame = machine.state.frames[0]
    return snapshot(frame.code.function, frame.regs)


@dataclass
class Outcome:
    """What a run on one engine came to."""

    at_end: list[Any]
    steps: int
    error: str


def run(case: Case, engine: str, mode: str) -> Outcome:
    """Run a case to its end (or error), compare, run back, and compare with the start."""
    strict = mode == "strict"
    function = case.function
    options = {"engine": engine, "strict": strict}
    machine = Machine(
        case.program, function.name, **case.inputs(), **options, callbacks=_Silence(), output=str
    )
    start = parameters(machine)
    codes, error = case.directive.codes, ""
    try:
        machine.run()
    except RvmError as fault:
        assert fault.code in codes, str(fault)
        error = str(fault)
    else:
        assert not codes, f"{case}: no error, but {codes} was to come"
    outcome = Outcome(parameters(machine), machine.time, error)
    if not codes:
        wrong = differences(function, outcome.at_end, case.expected(), case.directive.within)
        assert not wrong, f"{case}: {wrong}"
    machine.run_back()
    assert machine.time == 0
    lost = drifts(function, start, parameters(machine), 1e-8, outcome.at_end)
    assert all(d.within for d in lost), f"{case}: {lost}"
    if strict or exact(function):
        assert bits(parameters(machine)) == bits(start), f"{case}: {lost}"
    if strict:
        assert machine.residue_bytes == 0
    return outcome


def agree(case: Case, mode: str) -> None:
    """Run a case on engines: results, times and errors are the same, floats to the bit."""
    engines = first_and_another(ENGINES, (str(case), mode))
    first, *others = (run(case, engine, mode) for engine in engines)
    for engine, other in zip(engines[1:], others, strict=True):
        assert (other.steps, other.error) == (first.steps, first.error), engine
        assert bits(other.at_end) == bits(first.at_end), engine


def exact(function: Function) -> bool:
    """Whether a function has only registers of exact types."""
    return not any(
        elem_of(r.type).name in ("f32", "f64", "c128", "log64") for r in function.registers
    )


def from_the_end(case: Case, engine: str) -> None:
    """Give the results to `~f`: the inputs come out."""
    handle = case.program[case.function.name].with_options(engine=engine, callbacks=_Silence())
    start = case.inputs()
    there = handle(**case.inputs())
    back = (~handle)(**there)
    regs = parameters(Machine(case.program, case.function.name, **back))
    wrong = differences(case.function, regs, start, 1e-8)
    assert not wrong, f"{case}: {wrong}"


def transaction(case: Case, engine: str) -> None:
    """A call that fails leaves the caller's arrays and lists as they were, bit for bit."""
    handle = case.program[case.function.name].with_options(engine=engine, callbacks=_Silence())
    given = case.inputs()
    before = {k: np.array(v).tobytes() for k, v in given.items()}
    try:
        handle(**given)
    except RvmError as fault:
        assert fault.code in case.directive.codes
    else:
        raise AssertionError(f"{case}: no error")
    assert {k: np.array(v).tobytes() for k, v in given.items()} == before


class _Silence(dict[str, Any]):
    """Callbacks by any name, which do nothing."""

    def get(self, name: str, default: Any = None) -> Any:
        return lambda *_: None
