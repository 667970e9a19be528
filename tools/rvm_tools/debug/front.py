"""The command `rvm debug`: a session on a file and values, fed by scripts, a pipe or a prompt."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import numpy as np
import rich_click as click

from rvm.derive.gradients import loss_place
from rvm.derive.named import nested
from rvm.faults import InputError, RvmError
from rvm.numbers import system
from rvm.program import Function, Program, Record
from rvm.transform.duals import bar_slots
from rvm.transform.gradient import gradient
from rvm.types import Array, Stack, elem_of
from rvm_tools.debug.console import Answer, Console, OutputLine
from rvm_tools.debug.progress import ProgressBar
from rvm_tools.debug.scripts import read_script
from rvm_tools.debug.session import Session
from rvm_tools.debug.views import arrive
from rvm_tools.messages import end, errors_as_json
from rvm_tools.requests import FunctionRequest
from rvm_tools.streams import json_text
from rvm_tools.trace.energy import Model
from rvm_tools.trace.energy_models import model

_BATCH_WIDTH = 80


@dataclass(frozen=True, slots=True)
class DebugRequest(FunctionRequest):
    """The command's options and arguments."""

    gradient: str | None = None
    scripts: Sequence[str] = ()
    batch: bool = False
    as_json: bool = False
    tui: bool = False
    energy: str = "landauer"
    keyframes: int = 256
    """Megabytes of states of the past, at most."""
    base: Path = Path()
    """The folder that files with values are looked for in."""


def debug(request: DebugRequest) -> None:
    """Debug; in batch mode the exit code is that of the first command that went wrong."""
    if request.tui:
        from rvm_tools.debug import tui

        tui.check(alone=not (request.batch or request.as_json))
        used = model(request.energy)
        lines = [line for script in request.scripts for line in read_script(script)]
        tui.full_screen(open_session(request), lines, used)
        return
    if request.as_json:
        try:
            used, session = model(request.energy), open_session(request)
        except RvmError as error:
            click.echo(json_text(errors_as_json(error)))
            end(error.exit_code)
        _as_json(session, request, used)
        return
    used, session = model(request.energy), open_session(request)
    on_terminal = sys.stdin.isatty() and not request.batch
    painted = sys.stdout.isatty() and not request.batch and not os.environ.get("NO_COLOR")
    width = get_terminal_size((_BATCH_WIDTH, 24)).columns if on_terminal else _BATCH_WIDTH
    console = Console(session, _painter() if painted else _plain, width, used)
    if sys.stderr.isatty() and not request.batch:
        session.watched_by(ProgressBar())
    arrive(console, session.stop)
    failed = 0
    for script in request.scripts:
        failed = _feed(console, read_script(script)) or failed
    if on_terminal and not console.finished:
        from rvm_tools.debug.prompt import converse

        converse(console)
        return
    if not request.scripts or not request.batch:
        failed = _feed(console, iter(sys.stdin)) or failed
    if failed:
        end(failed)


def _plain(line: OutputLine) -> None:
    click.echo(line.text)


def _feed(console: Console, lines: Iterable[str]) -> int:
    """Run commands, each shown after its prompt; the first error's exit code."""
    failed = 0
    for line in lines:
        if console.finished:
            break
        command = line.strip()
        if command.startswith("#"):
            continue
        console.show(OutputLine(f"{console.prompt()}{command}", "dim"))
        answer = console.execute(command)
        if answer.error is not None and not failed:
            failed = answer.error.exit_code
    return failed


def _as_json(session: Session, request: DebugRequest, used: Model) -> None:
    """One object: the session's start, and every command's answer."""
    console = Console(session, width=_BATCH_WIDTH, model=used)
    answers: list[Answer] = []
    sources: Iterator[str] = (
        (line for script in request.scripts for line in read_script(script))
        if request.scripts
        else iter(sys.stdin)
    )
    for line in sources:
        if console.finished:
            break
        if line.strip():
            answers.append(console.execute(line))
    out = {
        "function": session.function,
        "answers": [a.as_json() for a in answers],
        "time": session.time,
        "work": session.work,
        "length": session.length,
    }
    click.echo(json_text(out, default=str))
    failed = next((a.error.exit_code for a in answers if a.error is not None), 0)
    if failed:
        end(failed)


def _painter() -> Callable[[OutputLine], None]:
    """Shows lines in colours on a terminal."""
    from rich.console import Console as Rich
    from rich.text import Text

    from rvm_tools.debug.colours import row

    rich = Rich(highlight=False, soft_wrap=True)
    styles = {
        "head": "bold",
        "current": "bold green",
        "changed": "yellow",
        "error": "red",
        "dim": "dim",
        "printed": "cyan",
        "source": "",
    }

    def show(line: OutputLine) -> None:
        style = styles.get(line.style, "")
        code = line.style in ("source", "current")
        rich.print(row(line.text, style) if code else Text(line.text, style=style))

    return show


# ---------------------------------------------------------------- the session


def open_session(request: DebugRequest) -> Session:
    """Open the session that a command line requests."""
    program, function = request.opened()
    inputs = request.inputs(program, function, base=request.base)
    options = request.options()
    keyframes = request.keyframes << 20
    if request.gradient is None:
        return Session(
            program, function.name, inputs, options, undo=request.back, keyframes=keyframes
        )
    if request.back:
        raise InputError("I008", "--gradient and --back do not go together")
    made, inputs = gradient_of(program, function, inputs, request.gradient)
    return Session(made, made.entry, inputs, options, keyframes=keyframes)


def gradient_of(
    program: Program, function: Function, inputs: Mapping[str, Any], loss: str
) -> tuple[Program, dict[str, Any]]:
    """A function's gradient program and its inputs: adjoints of zero, that of the loss one."""
    made = gradient(program, function.name)
    entry = made.function(made.entry)
    bars = bar_slots(function)
    place = loss_place(function, loss)
    values: list[Any] = [None] * entry.n_args
    for p in function.params:
        _spread(p.layout, inputs.get(p.name), values)
    one: Any = 1j if place.part == "im" else 1.0
    for slot, bar in bars.items():
        register = entry.registers[bar].type
        sys_ = system(elem_of(register))
        held = values[slot]
        if isinstance(register, Array):
            zeros: Any = np.zeros(held.shape, sys_.dtype)
            if slot == place.slot:
                try:
                    zeros[place.index] += one
                except IndexError:
                    raise InputError("I008", f"`{loss}` is outside the array") from None
        elif isinstance(register, Stack):
            zeros = [0.0] * len(held or [])
        else:
            zeros = one if slot == place.slot else sys_.to_python(sys_.zero)
        values[bar] = zeros
    return made, {p.name: nested(p.layout, values) for p in entry.params}


def _spread(layout: int | Record, value: Any, values: list[Any]) -> None:
    """A parameter's value over its registers."""
    if isinstance(layout, int):
        values[layout] = [] if value is None else value
        return
    for name, inner in layout.fields:
        _spread(inner, value[name], values)


__all__ = ["DebugRequest", "debug", "gradient_of", "open_session"]
