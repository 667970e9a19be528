"""The command `rvm check`."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import rich_click as click

from rvm.codes.words import count
from rvm.engines import ENGINES, executing
from rvm.engines.native.compiler import compiler
from rvm.faults import (
    AssemblyError,
    Diagnostic,
    InputError,
    InternalError,
    RvmError,
    UsageError,
    Where,
)
from rvm.program import Function, Program
from rvm.registry import EngineRow
from rvm.run.binding import bind
from rvm.transform.derived import MARKS
from rvm_tools.directives import Directive, directives
from rvm_tools.generate import inputs as generated
from rvm_tools.messages import end, show, show_error, warnings_to
from rvm_tools.options import allowed_includes
from rvm_tools.programs import base_of, checked, load_program, pick_function, read_text
from rvm_tools.requests import asked_inputs
from rvm_tools.rows import CheckRow
from rvm_tools.show import literal_text, parameters
from rvm_tools.streams import json_text
from rvm_tools.trial import Trial, attempt, differences, same, was_limited
from rvm_tools.values import assignments, inputs_for, value_for

WITHIN = {"stated": 0.0, "machine": 1e-9}
"""The largest accepted difference between engines, by the option `bits`: machine code has its own
functions."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The command's options and arguments."""

    file: str
    values: Sequence[str] = ()
    function: str | None = None
    engines: Sequence[str] = ()
    strict: bool = False
    tolerance: float | None = None
    runs: int = 4
    seed: int = 0
    max_steps: int = 20_000
    as_json: bool = False
    bits: str = "stated"

    @property
    def every_engine(self) -> tuple[str, ...]:
        """The engines to check with: those requested, else all available ones."""
        return tuple(self.engines) or tuple(n for n in executing() if n not in self.skipped)

    @property
    def skipped(self) -> dict[str, str]:
        """Unavailable engines that are left out, and what they lack."""
        names = () if self.engines else executing()
        lacks = {n: _lack(ENGINES[n]) for n in names}
        return {n: error.message for n, error in lacks.items() if error is not None}


def _lack(row: EngineRow) -> UsageError | None:
    """The reason why an engine cannot run here, for one that compiles by loading its compiler."""
    missing = row.missing()
    if missing is None and row.compiles and not row.chooses:
        try:
            compiler()
        except UsageError as error:
            return error
    return missing


def check(request: CheckRequest) -> None:
    """Check, print the report, and end with the exit code of the worst that was found."""
    rows = list(_rows(request))
    for row in rows:
        row.name_engines(request.every_engine)
    errors = [e for row in rows for e in row.errors]
    if request.as_json:
        click.echo(json_text(_as_json(request, rows)))
    else:
        width = max(len(row.what) for row in rows)
        for name, lacks in request.skipped.items():
            click.echo(f"{'-':<4}  {f'{name} engine':<{width}}  skipped: {lacks}")
        for row in rows:
            click.echo(f"{row.verdict:<4}  {row.what:<{width}}  {row.say}".rstrip())
        for row in rows:
            for warning in row.warnings.values():
                show(warning)
        for error in errors:
            show_error(error)
    if errors:
        codes = {e.exit_code for e in errors}
        end(next(c for c in (70, 4, 3, 2, 1) if c in codes))


def _rows(request: CheckRequest) -> Iterator[CheckRow]:
    is_text = request.file != "-" and not request.file.endswith(".rbc")
    source = read_text(request.file) if is_text else None
    allowed = allowed_includes()
    if request.file == "-" and allowed == "below":
        allowed = "none"  # a text alone has no folder
    found = directives(source, request.file, allowed) if source is not None else []
    refused = tuple(c for d in found if not d.is_run for c in d.codes)
    if refused:
        yield _refusal(request.file, refused)
        return
    about: list[Diagnostic] = []
    with warnings_to(about.append):
        program = checked(load_program(request.file))
    if request.file == "-" and program.sources:
        found = directives(program.sources[0].text, "<stdin>", allowed)
    yield _static(program, about)
    if request.values:
        given = assignments(request.values, Path())
        program, function = pick_function(program, request.function, given)
        values = asked_inputs(program, function, request.function, given)
        yield _given(request, program, function, values)
        return
    if request.function is not None:
        program, picked = pick_function(program, request.function)
        names = [picked.name]
    else:
        names = [name for name in _own(program) if not _is_made(name, program)]
    for directive in found:
        wanted = request.function is None or directive.function in (request.function, *names)
        if directive.is_run and wanted:
            yield _directive(request, program, directive)
    told = {d.function for d in found}
    for name in names:
        if not told & {name, name.split("[")[0]} and request.runs:
            yield _generated(request, program, program.function(name))


# ---------------------------------------------------------------- the kinds of check


def _refusal(file: str, codes: Sequence[str]) -> CheckRow:
    """The file must be refused with these codes."""
    row = CheckRow(f"fails {', '.join(codes)}")
    try:
        checked(load_program(file))
        seen: set[str] = set()
    except AssemblyError as error:
        seen = {d.code for d in error.diagnostics}
    except RvmError as error:
        seen = {error.code}
    missing = [c for c in codes if c not in seen]
    row.say = f"refused with {', '.join(sorted(seen))}" if seen else "not refused"
    if missing:
        row.fail(
            RvmError(
                "C003",
                f"the file was to be refused with {', '.join(missing)}",
                values={"found": ", ".join(sorted(seen)) or "no errors"},
            )
        )
    return row


def _static(program: Program, about: Sequence[Diagnostic]) -> CheckRow:
    """Checks of the bytecode itself, which is verified already, with warnings about its text."""
    from rvm.codec import decode, encode
    from rvm.transform import invert

    instructions = sum(len(f.code) for f in program.functions)
    row = CheckRow(
        "bytecode",
        say=f"{count(len(program.functions), 'function')}, "
        f"{count(instructions, 'instruction')}, verified",
        warnings={str(k): d for k, d in enumerate(about)},
    )
    twice = invert(invert(program))
    data = encode(program)
    for f, g in zip(program.functions, twice.functions, strict=True):
        if f.code != g.code:
            row.fail(InternalError("C004", f"`{f.name}` is not its inverse's inverse"))
    if encode(decode(data)) != data:
        row.fail(InternalError("C004", "the bytecode is another one after writing and reading"))
    row.say += f", {len(data):,} bytes"
    return row


def _directive(request: CheckRequest, program: Program, directive: Directive) -> CheckRow:
    """A `;! run` line on every engine, there and back."""
    text = directive.text if len(directive.text) <= 60 else directive.text[:57] + "..."
    row = CheckRow(f"line {directive.line}: {text}")
    where = Where(request.file, directive.line, 1, 1, f";! {directive.text}")
    try:
        base = base_of(request.file)
        program, function = pick_function(program, directive.function, directive.inputs, base)
        values = inputs_for(function, directive.inputs, base)
        for name in directive.expected:
            if name not in {p.name for p in function.params}:
                inputs_for(function, {name: 0}, base)
        expected = _expected(function, directive.expected, base)
    except RvmError as error:
        error.where = where
        row.fail(error)
        return row
    for trial in _trials(request, program, function, values, row, where=where):
        engine, ended = trial.engine, trial.ended_by
        if directive.codes:
            if ended is None or ended.code not in directive.codes:
                row.fail(_no_error(directive, ended, where), engine)
        elif ended is not None:
            row.fail(ended, engine)
        else:
            wrong = differences(function, trial.regs, expected, directive.within)
            if wrong:
                row.fail(_unmet(wrong, where), engine)
    row.say = row.summary(request.strict)
    return row


def _expected(function: Function, given: Mapping[str, Any], base: Path) -> dict[str, Any]:
    return {
        p.name: value_for(function, p.layout, p.name, given[p.name], base)
        for p in function.params
        if p.name in given
    }


def _own(program: Program) -> list[str]:
    """The functions of the file itself; all if it has none."""
    own = [f.name for f in program.functions if not f.spans or not all(s.source for s in f.spans)]
    return own or list(program)


def _is_made(name: str, program: Program) -> bool:
    """Whether a function is derived (`step.times_100`, `f'`), and is run where called."""
    ends = (m for m in MARKS if name.endswith(m))
    return name.rpartition(".")[0] in program or any(name[: -len(m)] in program for m in ends)


def _no_error(directive: Directive, ended: RvmError | None, where: Where) -> RvmError:
    message = f"the run was to fail with {', '.join(directive.codes)}"
    return ended or RvmError("C003", message, where=where)


def _unmet(wrong: Mapping[str, tuple[str, str]], where: Where) -> RvmError:
    found = "; ".join(f"`{name}` is {have}, not {want}" for name, (have, want) in wrong.items())
    return RvmError("C002", found, where=where)


def _given(
    request: CheckRequest, program: Program, function: Function, values: Mapping[str, Any]
) -> CheckRow:
    """A run on inputs without expected results: it must run back to its start."""
    row = CheckRow(f"{function.name}: given values")
    for trial in _trials(request, program, function, values, row):
        if trial.ended_by is not None:
            row.fail(trial.ended_by, trial.engine)
    row.say = row.summary(request.strict)
    return row


def _generated(request: CheckRequest, program: Program, function: Function) -> CheckRow:
    """Runs on random inputs; an error turns them back, and is not a failure of the program.

    A function that can be run without values is first run so.
    """
    alone = all(p.zero for p in function.params)
    row = CheckRow(f"{function.name}: {'zeros and ' * alone}generated inputs")
    # A generic function has the same numbers for all types.
    rng = random.Random(f"{request.seed} {function.name.split('[')[0]}")
    ends: dict[str, int] = {}
    limited = doubtful = 0
    for k in range(request.runs):
        values = {} if alone and k == 0 else generated(function, rng, easy=k % 2 == 0)
        code = ""
        known = len(row.errors)
        try:
            first = _trials(request, program, function, values, row, request.max_steps)[0]
        except InputError as error:
            # Two lengths that the types bind to each other in a way that was not guessed.
            code = error.code
        else:
            limited += was_limited(first)
            if first.ended_by is not None and not was_limited(first):
                code = first.ended_by.code
        if len(row.errors) > known:
            notes, rounding = _in_doubt(request, program, function, values)
            if rounding and not any(isinstance(e, InternalError) for e in row.errors[known:]):
                row.doubt(known, notes)
                doubtful += 1
            for found in row.errors[known:]:
                found.notes += notes
        if code:
            ends[code] = ends.get(code, 0) + 1
    row.say = f"{count(request.runs, 'run')}, {row.summary(request.strict)}"
    if doubtful:
        row.say += f"; {doubtful} beyond the tolerance by rounding"
    if limited:
        row.say += f"; {limited} turned back after {request.max_steps:,} steps"
    if ends:
        row.say += "; ended early by " + ", ".join(f"{c} ({n})" for c, n in sorted(ends.items()))
    if limited + sum(ends.values()) == request.runs:
        row.say += "; none came to its end"
        row.verdict = "?" if row.verdict == "ok" else row.verdict
    return row


def _in_doubt(
    request: CheckRequest, program: Program, function: Function, values: Mapping[str, Any]
) -> tuple[tuple[str, ...], bool]:
    """Notes about inputs that fail: how to run on them, and the cause according to strict mode.

    And whether that is rounding.
    """
    regs = bind(function, deepcopy(dict(values)), frozenset())
    given = [
        shlex.quote(f"{name}={literal_text(function.registers[k].type, regs[k])}")
        for name, k in parameters(function)
    ]
    command = ["rvm run", shlex.quote(request.file), "-f", shlex.quote(function.name), *given]
    command.append("--round-trip")
    notes = [f"on these inputs: {' '.join(command)}"]
    back = False
    if not request.strict:
        strict = attempt(
            program,
            function,
            deepcopy(dict(values)),
            engine="auto",
            strict=True,
            tolerance=None,
            max_steps=request.max_steps,
        )
        back = strict.failed is None and all(d.within for d in strict.lost)
        notes.append(
            "with --strict they come back: rounding goes beyond the tolerance, the program is right"
            if back
            else "with --strict they do not come back either: it is not rounding"
        )
    return tuple(notes), back


def _trials(
    request: CheckRequest,
    program: Program,
    function: Function,
    values: Mapping[str, Any],
    row: CheckRow,
    max_steps: int | None = None,
    where: Where | None = None,
) -> list[Trial]:
    """A trial on each engine, with progress; all must agree.

    `where` is the place that requests the run, if not only the function.
    """
    out: list[Trial] = []
    where = where or Where(request.file, function=function.name)
    for engine in request.every_engine:
        trial = attempt(
            program,
            function,
            deepcopy(dict(values)),
            engine=engine,
            strict=request.strict,
            tolerance=request.tolerance,
            max_steps=max_steps,
            bits=request.bits,
            estimates=not out,
        )
        if out:
            trial.digits = out[0].digits
        row.take(trial, values, where)
        if out and not same(function, out[0], trial, WITHIN[request.bits]):
            row.fail(
                InternalError(
                    "C005",
                    f"the engines {out[0].engine} and {engine} differ in `{function.name}`",
                    values={out[0].engine: out[0].regs, engine: trial.regs},
                )
            )
        out.append(trial)
    return out


def _as_json(request: CheckRequest, rows: Sequence[CheckRow]) -> dict[str, Any]:
    return {
        "file": request.file,
        "ok": not any(row.errors for row in rows),
        "engines": list(request.every_engine),
        "skipped": request.skipped,
        "checks": [
            {
                "what": row.what,
                "verdict": row.verdict.lower(),
                "say": row.say,
                "steps": row.steps,
                "lost_bits": row.lost_bits,
                "off_by": {k: str(v) if v != v or v == inf else v for k, v in row.off.items()},
                "erased_bits": row.erased_bits,
                "residue_bytes": row.residue_bytes,
                "warnings": [d.as_json() for d in row.warnings.values()],
                "errors": [d.as_json() for e in row.errors for d in e.diagnostics],
            }
            for row in rows
        ],
    }
