"""The command `rvm grad`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import rich_click as click

from rvm.codes.words import count
from rvm.derive.gradients import Pullback
from rvm.faults import Fault, InvertibilityError, RvmError, UsageError
from rvm.library.handle import FunctionHandle
from rvm.program import Function
from rvm.run.backup import snapshot
from rvm.run.machine import Machine
from rvm.run.results import Result
from rvm.transform.duals import bar_slots
from rvm.types import Scalar, Stack, elem_of
from rvm_tools import derivatives, show
from rvm_tools.drift import Drift, drifts
from rvm_tools.outputs import check_names, outputs, streamed, write
from rvm_tools.progress import naming, watching
from rvm_tools.requests import FunctionRequest, Output, answer
from rvm_tools.runs import page_width

if TYPE_CHECKING:
    from rvm_pure.account import Run

    from rvm.derive.differences import GradCheck


@dataclass(frozen=True, slots=True)
class GradientRequest(FunctionRequest):
    """The command's options and arguments."""

    loss: str | None = None
    wrt: str | None = None
    hessian: bool = False
    check: bool = False
    error: bool = False
    emit: bool = False
    cost: bool = False
    out: Sequence[str] = ()
    as_json: bool = False


@dataclass(slots=True)
class _GradientAnswer:
    """The results of a request: derivatives by parameter, and their cost."""

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
    """Values that did not come back to the bit."""
    astray: InvertibilityError | None
    """Why the adjoints cannot be trusted."""
    hessian: Result | None = None
    check: GradCheck | None = None
    error: Result | None = None
    """The possible error of each number of the adjoints."""
    cost: dict[str, Run] | None = None
    """The costs of the runs forwards and back, by what a run is called."""


def differentiate(request: GradientRequest) -> None:
    """Differentiate, and print; errors are raised, with --json printed as an object."""
    answer(lambda output: _differentiate(request, output), request.as_json)


def _differentiate(
    request: GradientRequest, output: Output | None
) -> tuple[dict[str, Any], Fault | None]:
    """Carry out a request; the answer, printed already unless JSON is wanted, and its error."""
    program, function = request.opened()
    files = outputs(request.out, "derivatives", request.as_json)
    if streamed(files):
        output = partial(click.echo, err=True)
    options = request.options(output)
    handle = FunctionHandle(program, function.name, undo=request.back, options=options)
    if request.emit:
        return _emit(handle, request), None
    loss = request.loss or _no_loss(function)
    found = _found(handle, loss, request.inputs(program, function), request)
    arrays = _arrays(found)
    check_names(files, list(arrays))
    if not request.as_json and not streamed(files):
        _print(found)
    write(files, arrays, lambda: {k: derivatives.nested_json(v) for k, v in arrays.items()})
    wrong: RvmError | None = None
    try:
        _raise_if_wrong(found)
    except RvmError as error:
        wrong = error
    return _as_json(found, handle), wrong


def _raise_if_wrong(found: _GradientAnswer) -> None:
    """Raise the error that explains why the derivatives cannot be trusted, if they cannot."""
    if found.astray is not None:
        raise found.astray
    if found.check is not None:
        found.check.raise_if_bad()


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


def _found(
    handle: FunctionHandle, loss: str, inputs: Mapping[str, Any], request: GradientRequest
) -> _GradientAnswer:
    from rvm.derive.differences import compared
    from rvm.derive.hessians import hessian

    wrt = [n.strip() for n in request.wrt.split(",") if n.strip()] if request.wrt else None
    counting = None
    if request.cost:
        from rvm_pure.account import Counting

        counting = Counting(_watched)
    pull = Pullback(handle.target, inputs, counting or _watched)
    pull.seed(loss)
    value, forward = pull.value(loss), pull.ticks
    before = snapshot(handle.function, pull.start)
    adjoints = pull(wrt, check=False)
    after = pull.machine.state.frames[0].regs
    astray = None
    try:
        pull.check_returned(after, pull.found, pull.info.drift)
    except InvertibilityError as error:
        astray = error
    found = _GradientAnswer(
        handle.function,
        loss,
        value,
        before,
        adjoints,
        forward,
        pull.ticks,
        drifts(handle.function, before, after),
        astray,
        cost=None if counting is None else counting.runs,
    )
    if request.error:
        found.error = adjoints.info.error
    if request.hessian and astray is None:
        found.hessian = hessian(handle.target, loss, wrt, inputs, watch=_watched)
    if request.check and astray is None:
        with naming("differences") as watch:
            found.check = compared(handle.target, inputs, loss, wrt, watch=watch)
    return found


# ---------------------------------------------------------------- for people


def _print(found: _GradientAnswer) -> None:
    width = page_width()
    ratio = found.total / found.forward if found.forward else 1.0
    click.echo(f"{found.function.name}: {found.loss} = {found.value!r}")
    for line in derivatives.table(found.function, found.inputs, found.adjoints, width):
        click.echo(line)
    click.echo(
        f"{count(found.forward, 'step')} forwards, {count(found.total - found.forward, 'step')}"
        f" back with the adjoints: {ratio:.2f} times the function"
    )
    if found.lost:
        click.echo(
            "values came back with lost bits: " + "; ".join(d.text(False) for d in found.lost)
        )
    if found.error is not None:
        click.echo("\nestimated error of the adjoints")
        for line in derivatives.table(found.function, found.inputs, found.error, width, "error"):
            click.echo(line)
    if found.cost is not None:
        from rvm_pure.account import Row, table

        there, back = (run.work.total for run in found.cost.values())
        click.echo("\n".join(["", *table([Row(way, run) for way, run in found.cost.items()])]))
        click.echo(
            f"work of the run back {back / max(1, there):.2f} times that of the run forwards"
        )
    if found.hessian is not None:
        click.echo(f"\nHessian of {found.loss}")
        for line in derivatives.matrix(found.function, found.hessian, width):
            click.echo(line)
    if found.check is not None:
        click.echo(f"\n{derivatives.checked(found.check)}")


# ---------------------------------------------------------------- JSON and arrays


def _as_json(found: _GradientAnswer, handle: FunctionHandle) -> dict[str, Any]:
    out: dict[str, Any] = {
        "function": found.function.name,
        "direction": "backwards" if handle.undo else "forwards",
        "loss": found.loss,
        "value": derivatives.number_json(found.value),
        "inputs": show.as_json(found.function, found.inputs),
        "gradient": derivatives.nested_json(found.adjoints),
        "steps": found.forward,
        "gradient_steps": found.total,
        "lost_bits": {d.name: d.bits for d in found.lost},
        "info": show.info_json(found.adjoints.info),
    }
    if found.error is not None:
        out["info"]["error"] = derivatives.nested_json(found.error)
    if found.cost is not None:
        runs = zip(("forwards", "back"), found.cost.values(), strict=True)
        out["cost"] = {
            way: {"work": run.work.by_class, "counted": run.counted.by_class} for way, run in runs
        }
    if found.hessian is not None:
        out["hessian"] = derivatives.nested_json(found.hessian)
    if found.check is not None:
        out["check"] = {
            "ok": found.check.ok,
            "tolerance": found.check.tolerance,
            "rows": [
                {
                    "place": row.place,
                    "gradient": derivatives.number_json(row.gradient),
                    "quotient": derivatives.number_json(row.quotient),
                    "uncertainty": derivatives.number_json(row.uncertainty),
                    "error": derivatives.number_json(row.error),
                    "comparable": row.tells,
                }
                for row in found.check.rows
            ],
        }
    return out


def _arrays(found: _GradientAnswer) -> dict[str, Any]:
    """Adjoints under the parameters' names, blocks of the Hessian under two, `x,y`."""
    adjoints = dict(derivatives.leaves(found.adjoints))
    arrays: dict[str, Any] = {k: np.asarray(v) for k, v in adjoints.items()}
    if found.hessian is not None:
        for a, row in derivatives.blocks(found.function, found.hessian).items():
            arrays |= {f"{a},{b}": block for b, block in row.items()}
    return arrays
