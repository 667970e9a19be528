"""What `rvm run` does."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import rich_click as click

from rvm.faults import Fault, InvertibilityError, RvmError
from rvm.program import Function, Program
from rvm.run.binding import snapshot
from rvm.run.machine import Machine
from rvm.state import Options
from rvm_tools import show
from rvm_tools.directives import directives
from rvm_tools.drift import Drift, drifts
from rvm_tools.messages import end, errors_as_json
from rvm_tools.programs import check_is_npz, load_program, pick_function, write_arrays
from rvm_tools.progress import watching
from rvm_tools.values import assignments, inputs_for
from rvm_tools.words import count

REVERSED = {"forwards": "backwards", "backwards": "forwards"}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The command's options and arguments."""

    file: str
    values: Sequence[str] = ()
    function: str | None = None
    back: bool = False
    round_trip: bool = False
    engine: str = "auto"
    strict: bool = False
    tolerance: float | None = None
    max_steps: int | None = None
    max_memory: int | None = None
    on_error: str = "back"
    out: str | None = None
    as_json: bool = False


@dataclass(slots=True)
class Leg:
    """One way of a run: where it went and what the parameters were at its end."""

    way: str
    steps: int
    regs: list[Any]
    erased_bits: int
    residue_bytes: int
    function: Function = field(repr=False)


def run(request: RunRequest) -> None:
    """Run, and print; errors are raised, with --json printed as an object."""
    printed: list[str] = []
    if not request.as_json:
        _run(request, None)
        return
    try:
        answer = _run(request, printed.append)
    except Fault as error:
        state = _failing_state(error)
        answer = errors_as_json(error) | state
        if printed:
            answer["output"] = printed
        click.echo(json.dumps(answer, ensure_ascii=False))
        end(error.exit_code)
    if printed:
        answer["output"] = printed
    click.echo(json.dumps(answer, ensure_ascii=False))


def _run(request: RunRequest, output: Callable[[str], Any] | None) -> dict[str, Any]:
    """Do what is asked for; the answer as an object (printed already unless JSON is wanted)."""
    program = load_program(request.file)
    function = pick_function(program, request.function)
    check_is_npz(request.out, "results")
    given = assignments(request.values, Path())
    hint = example("run", request.file, request.function, program, function.name)
    inputs = inputs_for(function, given, Path(), hint)
    machine = start(request, program, function.name, inputs, output)
    before = snapshot(function, machine.state.frames[0].regs)
    way = "backwards" if request.back else "forwards"
    quiet = request.as_json
    legs = [_leg(machine, function, way, request)]
    if not quiet:
        _print_leg(legs[0], request)
    lost: list[Drift] | None = None
    if request.round_trip:
        legs.append(_leg(machine, function, REVERSED[way], request, back=True))
        lost = drifts(function, before, legs[1].regs, request.tolerance)
        if not quiet:
            _print_leg(legs[1], request)
            click.echo(verdict(lost))
    if request.out is not None:
        write_arrays(request.out, show.arrays(function, legs[0].regs))
    answer = _answer(request, machine, function, before, legs, lost)
    if lost is not None and not all(d.within for d in lost):
        error = InvertibilityError(
            "C001",
            "the run did not come back to where it started",
            values={d.name: f"{d.bits} bits off" for d in lost if not d.within},
            hint="floats come back exactly with --strict, or where they are fixed-point numbers",
        )
        if not quiet:
            raise error
        answer |= errors_as_json(error)
        click.echo(json.dumps(answer, ensure_ascii=False))
        end(error.exit_code)
    return answer


def example(command: str, file: str, named: str | None, program: Program, function: str) -> str:
    """The inputs of the file's first `;! run` line for a function, as a command.

    `named` is the function that the command line named, if it did.
    """
    if not program.sources:
        return ""
    try:
        found = directives(program.sources[0].text)
    except RvmError:
        return ""
    line = next((d for d in found if d.function == function and not d.codes), None)
    if line is None:
        return ""
    words = ["rvm", command, file, *(["-f", function] if named else [])]
    return " ".join([*words, *map(_shell_word, line.words)])


def _shell_word(word: str) -> str:
    word = word.replace(" ", "")
    return word if re.fullmatch(r"[\w=.,:@+\[\]-]+", word) else shlex.quote(word)


def start(
    request: RunRequest,
    program: Program,
    function: str,
    inputs: Mapping[str, Any],
    output: Callable[[str], Any] | None,
) -> Machine:
    """A machine before its first instruction; with --back at the function's end."""
    options = Options(
        engine=request.engine,
        tolerance=request.tolerance,
        strict=request.strict,
        on_error=request.on_error,
        max_steps=request.max_steps,
        max_memory=request.max_memory,
        output=output,
    )
    return Machine.start(program, function, inputs, options, undo=request.back)


def _leg(
    machine: Machine, function: Function, way: str, request: RunRequest, back: bool = False
) -> Leg:
    """Run to the end (`back`: to the start again)."""
    here = machine.time
    try:
        with watching(machine, here if back else request.max_steps, way):
            if back:
                machine.run_back()
            else:
                machine.run()
    except Fault as error:
        if request.on_error == "stop":
            if request.as_json:
                error.values["machine"] = machine
            else:
                _print_failing(machine)
        raise
    frame = machine.state.frames[0]
    return Leg(
        way,
        abs(machine.time - here),
        snapshot(function, frame.regs),
        machine.erased_bits,
        machine.residue_bytes,
        function,
    )


def _print_leg(leg: Leg, request: RunRequest) -> None:
    steps = f"{count(leg.steps, 'step')} {leg.way}"
    if leg.residue_bytes:
        steps += f", {leg.residue_bytes:,} bytes in the residue log"
    if leg.erased_bits:
        steps += f", {leg.erased_bits:,} bits erased"
    click.echo(f"{leg.function.name}: {steps}")
    names = show.parameters(leg.function)
    for line in show.lines(leg.function, leg.regs, names, page_width()):
        click.echo(line)


def page_width() -> int:
    """Columns for a table: a terminal's, else 100."""
    return max(60, get_terminal_size((100, 24)).columns) if sys.stdout.isatty() else 100


def verdict(lost: Sequence[Drift]) -> str:
    """What a round trip came to, in a line."""
    if not lost:
        return "back at the start: every bit is as it was"
    return "back at the start, with lost bits: " + "; ".join(d.text() for d in lost)


def _print_failing(machine: Machine) -> None:
    """The innermost frame's registers at a failing instruction."""
    frame = machine.state.top
    function = frame.code.function
    names = show.parameters(function)
    for slot in range(function.n_args, len(function.registers)):
        if frame.regs[slot] is not None:
            names.append((function.registers[slot].name, slot))
    click.echo(f"stopped in {function.name} at time {machine.time}:")
    for line in show.lines(function, frame.regs, names, page_width()):
        click.echo(line)


def _failing_state(error: Fault) -> dict[str, Any]:
    """The parameters at a failing instruction, where a run was to stop there."""
    machine = error.values.pop("machine", None)
    if not isinstance(machine, Machine):
        return {}
    frame = machine.state.top
    return {"stopped_in": frame.code.name, "values": show.as_json(frame.code.function, frame.regs)}


def _answer(
    request: RunRequest,
    machine: Machine,
    function: Function,
    before: Sequence[Any],
    legs: Sequence[Leg],
    lost: Sequence[Drift] | None,
) -> dict[str, Any]:
    first = legs[0]
    answer: dict[str, Any] = {
        "function": function.name,
        "direction": first.way,
        "engine": machine.engine,
        "steps": first.steps,
        "erased_bits": first.erased_bits,
        "values": show.as_json(function, first.regs),
    }
    if request.strict:
        answer["residue_bytes"] = first.residue_bytes
    if lost is not None:
        answer["start"] = show.as_json(function, before)
        answer["back"] = show.as_json(function, legs[1].regs)
        answer["restored"] = not lost
        answer["lost_bits"] = {d.name: d.bits for d in lost}
    return answer
