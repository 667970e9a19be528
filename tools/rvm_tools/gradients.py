"""What `rvm grad` does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

import rvm
from rvm.derive.gradients import Pullback
from rvm.faults import Fault, InvertibilityError, RvmError, UsageError
from rvm.library.handle import FunctionHandle
from rvm.program import Function
from rvm.run.binding import Result, snapshot
from rvm.run.machine import Machine
from rvm.state import Options
from rvm.transform.duals import bar_slots
from rvm.types import Scalar, Stack, elem_of
from rvm_tools import derivatives, show
from rvm_tools.drift import Drift, drifts
from rvm_tools.messages import end, errors_as_json
from rvm_tools.programs import check_is_npz, load_program, pick_function, write_arrays
from rvm_tools.progress import watching
from rvm_tools.runs import page_width
from rvm_tools.values import assignments, inputs_for
from rvm_tools.words import count

if TYPE_CHECKING:
    from rvm.derive.differences import GradCheck


@dataclass(frozen=True, slots=True)
class GradientRequest:
    """The command's options and arguments."""

    file: str
    values: Sequence[str] = ()
    function: str | None = None
    loss: str | None = None
    wrt: str | None = None
    hessian: bool = False
    check: bool = False
    back: bool = False
    emit: bool = False
    engine: str = "auto"
    strict: bool = False
    tolerance: float | None = None
    max_steps: int | None = None
    max_memory: int | None = None
    out: str | None = None
    as_json: bool = False


@dataclass(slots=True)
class Answer:
    """All that is asked for: derivatives by parameter, and what they took."""

    function: Function
    loss: str
    value: float
    inputs: list[Any]
    """The parameters' registers before the run."""
    adjoints: Result
    forward: int
    """Steps of the run forwards."""
    total: int
    """Steps of both runs: forwards, and back with the adjoints."""
    lost: list[Drift]
    """Values that did not come back to the very bits."""
    astray: InvertibilityError | None
    """Why the adjoints cannot be trusted."""
    hessian: Result | None = None
    check: GradCheck | None = None


def differentiate(request: GradientRequest) -> None:
    """Differentiate, and print; errors are raised, with --json printed as an object."""
    if not request.as_json:
        _differentiate(request, None)
        return
    printed: list[str] = []
    try:
        answer = _differentiate(request, printed.append)
    except Fault as error:
        answer = errors_as_json(error) | ({"output": printed} if printed else {})
        click.echo(json.dumps(answer, ensure_ascii=False))
        end(error.exit_code)
    if printed:
        answer["output"] = printed
    click.echo(json.dumps(answer, ensure_ascii=False))
    if "errors" in answer:
        end(InvertibilityError.exit_code if "R017" in str(answer["errors"]) else 1)


def _differentiate(request: GradientRequest, output: Callable[[str], Any] | None) -> dict[str, Any]:
    """Do what is asked for; the answer as an object (printed already unless JSON is wanted)."""
    program = load_program(request.file)
    function = pick_function(program, request.function)
    check_is_npz(request.out, "derivatives")
    options = Options(
        engine=request.engine,
        tolerance=request.tolerance,
        strict=request.strict,
        max_steps=request.max_steps,
        max_memory=request.max_memory,
        output=output,
    )
    handle = FunctionHandle(program, function.name, undo=request.back, options=options)
    if request.emit:
        return _emit(handle, request)
    loss = request.loss or _no_loss(function)
    given = assignments(request.values, Path())
    inputs = inputs_for(function, given, Path())
    answer = _answer(handle, loss, inputs, request)
    if not request.as_json:
        _print(answer)
    if request.out is not None:
        _write(request.out, answer)
    found = _as_json(answer, handle)
    try:
        _raise_if_wrong(answer)
    except RvmError as error:
        if not request.as_json:
            raise
        found |= errors_as_json(error)
    return found


def _raise_if_wrong(answer: Answer) -> None:
    """The error that says why the derivatives are not to be trusted, if they are not."""
    if answer.astray is not None:
        raise answer.astray
    if answer.check is not None:
        answer.check.raise_if_bad()


def _emit(handle: FunctionHandle, request: GradientRequest) -> dict[str, Any]:
    """The gradient program as strict code."""
    from rvm_asm import disassemble

    text = disassemble(handle.gradient_program, positions=False)
    if not request.as_json:
        click.echo(text, nl=False)
    return {"function": handle.name, "gradient_program": text}


def _no_loss(function: Function) -> str:
    """UsageError U014: there is no loss; with the places that could be one."""
    able = []
    for name, slot in show.parameters(function):
        t = function.registers[slot].type
        if slot not in bar_slots(function) or isinstance(t, Stack):
            continue
        index = "" if isinstance(t, Scalar) else f"[{', '.join('0' * t.rank)}]"
        able.append(f"{name}{index}{'.re' if elem_of(t).is_complex else ''}")
    raise UsageError(
        "U014",
        f"which place of `{function.name}` is the loss?",
        hint=" or ".join(f"--loss '{a}'" if "[" in a else f"--loss {a}" for a in able[:4])
        or "it has no parameter that carries an adjoint",
    )


def _watched(machine: Machine, way: str) -> AbstractContextManager[None]:
    """A progress bar for a run whose length is known where it goes back to the start."""
    return watching(machine, machine.time or None, way)


def _answer(
    handle: FunctionHandle, loss: str, inputs: Mapping[str, Any], request: GradientRequest
) -> Answer:
    from rvm.derive.hessians import hessian

    wrt = [n.strip() for n in request.wrt.split(",") if n.strip()] if request.wrt else None
    pull = Pullback(handle.target, inputs, _watched)
    pull.seed(loss)
    value, forward = pull.value(loss), pull.ticks
    before = snapshot(handle.function, pull.start)
    adjoints = pull(wrt, check=False)
    after = pull.machine.state.frames[0].regs
    astray = None
    try:
        pull.check_returned(after, pull.found)
    except InvertibilityError as error:
        astray = error
    answer = Answer(
        handle.function,
        loss,
        value,
        before,
        adjoints,
        forward,
        pull.ticks,
        drifts(handle.function, before, after),
        astray,
    )
    if request.hessian and astray is None:
        answer.hessian = hessian(handle.target, loss, wrt, inputs, watch=_watched)
    if request.check:
        answer.check = rvm.check_grad(handle, inputs, loss=loss, wrt=wrt)
    return answer


# ---------------------------------------------------------------- for people


def _print(answer: Answer) -> None:
    width = page_width()
    ratio = answer.total / answer.forward if answer.forward else 1.0
    click.echo(f"{answer.function.name}: {answer.loss} = {answer.value!r}")
    for line in derivatives.table(answer.function, answer.inputs, answer.adjoints, width):
        click.echo(line)
    click.echo(
        f"{count(answer.forward, 'step')} forwards, {count(answer.total - answer.forward, 'step')}"
        f" back with the adjoints: {ratio:.2f} times the function"
    )
    if answer.lost:
        click.echo(
            "values came back with lost bits: " + "; ".join(d.text(False) for d in answer.lost)
        )
    if answer.hessian is not None:
        click.echo(f"\nHessian of {answer.loss}")
        for line in derivatives.matrix(answer.function, answer.hessian, width):
            click.echo(line)
    if answer.check is not None:
        click.echo(f"\n{derivatives.checked(answer.check)}")


# ---------------------------------------------------------------- JSON and arrays


def _as_json(answer: Answer, handle: FunctionHandle) -> dict[str, Any]:
    out: dict[str, Any] = {
        "function": answer.function.name,
        "direction": "backwards" if handle.undo else "forwards",
        "loss": answer.loss,
        "value": derivatives.number_json(answer.value),
        "inputs": show.as_json(answer.function, answer.inputs),
        "gradient": derivatives.nested_json(answer.adjoints),
        "steps": answer.forward,
        "gradient_steps": answer.total,
        "lost_bits": {d.name: d.bits for d in answer.lost},
    }
    if answer.hessian is not None:
        out["hessian"] = derivatives.nested_json(answer.hessian)
    if answer.check is not None:
        out["check"] = {
            "ok": answer.check.ok,
            "tolerance": answer.check.tolerance,
            "rows": [
                {
                    "place": row.place,
                    "gradient": derivatives.number_json(row.gradient),
                    "quotient": derivatives.number_json(row.quotient),
                    "uncertainty": derivatives.number_json(row.uncertainty),
                    "error": derivatives.number_json(row.error),
                }
                for row in answer.check.rows
            ],
        }
    return out


def _write(path: str, answer: Answer) -> None:
    """Adjoints under the parameters' names, blocks of the Hessian under two, `x,y`."""
    arrays: dict[str, Any] = dict(derivatives.leaves(answer.adjoints))
    if answer.hessian is not None:
        for a, row in derivatives.blocks(answer.function, answer.hessian).items():
            arrays |= {f"{a},{b}": block for b, block in row.items()}
    write_arrays(path, arrays)
