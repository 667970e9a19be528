"""The command `rvm run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from shutil import get_terminal_size
from typing import Any

import rich_click as click

from rvm.codes.words import count
from rvm.derive.target import Target
from rvm.faults import Fault, InvertibilityError
from rvm.library.frontends import front_end
from rvm.program import Function
from rvm.run.backup import snapshot
from rvm.run.machine import Machine
from rvm.run.results import Info
from rvm_tools import show
from rvm_tools.drift import Drift, drifts
from rvm_tools.outputs import check_names, outputs, streamed, write
from rvm_tools.progress import watching
from rvm_tools.requests import FunctionRequest, Output, answer

_REVERSED = {"forwards": "backwards", "backwards": "forwards"}


@dataclass(frozen=True, slots=True)
class RunRequest(FunctionRequest):
    """The command's options and arguments."""

    round_trip: bool = False
    error: bool = False
    on_error: str = "back"
    out: Sequence[str] = ()
    as_json: bool = False


@dataclass(slots=True)
class _Leg:
    """One direction of a run: where it went, and the parameters at its end."""

    way: str
    steps: int
    regs: list[Any]
    info: Info
    residue_bytes: int
    function: Function = field(repr=False)


def run(request: RunRequest) -> None:
    """Run, and print; errors are raised, with --json printed as an object."""
    answer(lambda output: _run(request, output), request.as_json)


def _run(request: RunRequest, output: Output | None) -> tuple[dict[str, Any], Fault | None]:
    """Carry out a request; the answer, printed already unless JSON is wanted, and its error."""
    program, function = request.opened()
    files = outputs(request.out, "results", request.as_json)
    check_names(files, [name for name, _ in show.parameters(function)])
    inputs = request.inputs(program, function, "run")
    if streamed(files):
        output = partial(click.echo, err=True)
    options = request.options(output, request.on_error)
    machine = Machine.start(program, function.name, inputs, options, undo=request.back)
    before = snapshot(function, machine.state.frames[0].regs)
    target = Target(program, function.name, request.back, options)
    way = "backwards" if request.back else "forwards"
    quiet = request.as_json or streamed(files)
    try:
        legs = [_leg(machine, function, way, request)]
    except Fault as fault:
        return _stopped(machine, request), fault
    store = getattr(front_end(request.file), "store", None)
    if not quiet and store is not None and not request.round_trip:
        click.echo("\n".join(store(function, legs[0].regs)))
    elif not quiet:
        _print_leg(legs[0])
    error = _estimated(target, before, legs[0], quiet) if request.error else None
    lost: list[Drift] | None = None
    if request.round_trip:
        try:
            legs.append(_leg(machine, function, _REVERSED[way], request, back=True))
        except Fault as fault:
            return _stopped(machine, request), fault
        lost = drifts(function, before, legs[1].regs, request.tolerance, legs[0].regs)
        if not quiet:
            _print_leg(legs[1])
            click.echo(_verdict(lost))
    regs = legs[0].regs
    write(files, show.arrays(function, regs), lambda: show.as_json(function, regs))
    found = _found(request, machine, function, before, legs, lost) if request.as_json else {}
    if error is not None and found:
        found["info"]["error"] = error
    if lost is not None and not all(d.within for d in lost):
        lasting = InvertibilityError(
            "C001",
            "the run did not come back to where it started",
            values={d.name: f"{d.bits} bits off" for d in lost if not d.within},
            hint=_come_back_hint(target, before, legs[0]),
        )
        return found, lasting
    return found, None


def _leg(
    machine: Machine, function: Function, way: str, request: RunRequest, back: bool = False
) -> _Leg:
    """Run to the end (`back`: to the start again)."""
    before = machine.work
    with watching(machine, machine.time if back else request.max_steps, way):
        if back:
            machine.run_back()
        else:
            machine.run()
    frame = machine.state.frames[0]
    return _Leg(
        way,
        machine.work - before,
        snapshot(function, frame.regs),
        machine.info,
        machine.residue_bytes,
        function,
    )


def _estimated(target: Target, before: Sequence[Any], leg: _Leg, quiet: bool) -> dict[str, Any]:
    """The estimated errors at the end of a leg as JSON has them, printed unless `quiet`."""
    from rvm.derive.result_errors import estimated, run_errors
    from rvm_tools.derivatives import nested_json, table

    error = estimated(leg.function, run_errors(target, before, leg.regs, leg.steps)).error
    if not quiet:
        click.echo("estimated error")
        for line in table(leg.function, leg.regs, error, page_width(), "error"):
            click.echo(line)
    found: dict[str, Any] = nested_json(error)
    return found


def _come_back_hint(target: Target, before: Sequence[Any], leg: _Leg) -> str:
    """A hint for a run from these registers to the end of a leg that did not come back."""
    from rvm_tools.digits import come_back_hint, lost_digits

    return come_back_hint(lost_digits(target, before, leg.regs, leg.steps))


def _print_leg(leg: _Leg) -> None:
    steps = f"{count(leg.steps, 'step')} {leg.way}"
    if leg.residue_bytes:
        steps += f", {leg.residue_bytes:,} bytes in the residue log"
    if leg.info.erased_bits:
        steps += f", {leg.info.erased_bits:,} bits erased"
    click.echo(f"{leg.function.name}: {steps}")
    names = show.parameters(leg.function)
    for line in show.lines(leg.function, leg.regs, names, page_width()):
        click.echo(line)


def page_width() -> int:
    """Columns for a table: a terminal's, else 100."""
    return max(60, get_terminal_size((100, 24)).columns) if sys.stdout.isatty() else 100


def _verdict(lost: Sequence[Drift]) -> str:
    """The outcome of a round trip, in a line."""
    if not lost:
        return "back at the start: every bit is as it was"
    head = "" if all(d.within for d in lost) else "not "
    return f"{head}back at the start, with lost bits: " + "; ".join(d.text() for d in lost)


def _stopped(machine: Machine, request: RunRequest) -> dict[str, Any]:
    """The values at a failing instruction where the run was to stop, printed or as an object."""
    if request.on_error != "stop":
        return {}
    frame = machine.state.top
    function = frame.code.function
    if request.as_json:
        return {"stopped_in": frame.code.name, "values": show.as_json(function, frame.regs)}
    names = show.parameters(function)
    for slot in range(function.n_args, len(function.registers)):
        if frame.regs[slot] is not None and not function.registers[slot].is_own:
            names.append((function.registers[slot].name, slot))
    click.echo(f"stopped in {function.name} at time {machine.time}:")
    for line in show.lines(function, frame.regs, names, page_width()):
        click.echo(line)
    return {}


def _found(
    request: RunRequest,
    machine: Machine,
    function: Function,
    before: Sequence[Any],
    legs: Sequence[_Leg],
    lost: Sequence[Drift] | None,
) -> dict[str, Any]:
    first = legs[0]
    found: dict[str, Any] = {
        "function": function.name,
        "direction": first.way,
        "engine": machine.engine,
        "steps": first.steps,
        "erased_bits": first.info.erased_bits,
        "info": show.info_json(first.info),
        "values": show.as_json(function, first.regs),
    }
    if request.strict:
        found["residue_bytes"] = first.residue_bytes
    if lost is not None:
        found["start"] = show.as_json(function, before)
        found["back"] = show.as_json(function, legs[1].regs)
        found["restored"] = not lost
        found["lost_bits"] = {d.name: d.bits for d in lost}
    return found
