"""Requests of commands that run a function, and the printing of their answers as JSON."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich_click as click

from rvm.faults import Fault, InputError, RvmError
from rvm.program import Function, Program
from rvm.run.binding import start_of
from rvm.state import Options
from rvm_tools.directives import directives
from rvm_tools.messages import end, errors_as_json
from rvm_tools.programs import load_program, pick_function
from rvm_tools.streams import json_text
from rvm_tools.values import assignments, inputs_for

Output = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class FunctionRequest:
    """The options and arguments that these commands share."""

    file: str
    values: Sequence[str] = ()
    function: str | None = None
    back: bool = False
    engine: str = "auto"
    strict: bool = False
    tolerance: float | None = None
    max_steps: int | None = None
    max_memory: int | None = None
    bits: str = "stated"

    def opened(self) -> tuple[Program, Function]:
        """The program, and the requested function."""
        program = load_program(self.file)
        values = assignments(self.values, Path()) if program.generics is not None else {}
        return pick_function(program, self.function, values)

    def inputs(
        self, program: Program, function: Function, command: str = "", base: Path = Path()
    ) -> dict[str, Any]:
        """The inputs; where one is missing, the error shows the file's own example of `command`.

        Files with values are looked for in `base`.
        """
        given = assignments(self.values, base)
        example = self._example(command, program, function.name) if command else ""
        return asked_inputs(program, function, self.function, given, base, example)

    def options(self, output: Output | None = None, on_error: str = "back") -> Options:
        """The options of the run."""
        return Options(
            engine=self.engine,
            tolerance=self.tolerance,
            strict=self.strict,
            on_error=on_error,
            max_steps=self.max_steps,
            max_memory=self.max_memory,
            bits=self.bits,
            output=output,
        )

    def _example(self, command: str, program: Program, function: str) -> str:
        """The inputs of the file's first `;! run` line for a function, as a command."""
        if not program.sources:
            return ""
        try:
            found = directives(program.sources[0].text)
        except RvmError:
            return ""
        names = (function, function.split("[")[0])
        line = next((d for d in found if d.function in names and not d.codes), None)
        if line is None:
            return ""
        words = ["rvm", command, self.file, *(["-f", self.function] if self.function else [])]
        return " ".join([*words, *map(_shell_word, line.words)])


def asked_inputs(
    program: Program,
    function: Function,
    named: str | None,
    given: Mapping[str, Any],
    base: Path = Path(),
    example: str = "",
) -> dict[str, Any]:
    """The arguments of a call, as of `inputs_for`, of the function that is `named`, or the entry.

    Errors about the names of values say so if nothing named the function.
    """
    try:
        return inputs_for(function, given, base, example)
    except InputError as error:
        heads = _heads(program)
        if error.code not in ("I001", "I002") or named is not None or len(heads) == 1:
            raise
        able = [n for n, params in heads.items() if given and given.keys() <= params.keys()]
        whole = [n for n in able if given.keys() >= {p for p, needed in heads[n].items() if needed}]
        able = whole or (able if error.code == "I002" else [])
        names = " or ".join(f"-f {_shell_word(n)}" for n in able[:3])
        hint = f"{names} names a function that takes such values" if able else ""
        raise InputError(
            error.code,
            error.message,
            notes=[f"`{program.entry}` is the entry, which is run if no function is named"],
            hint="\n".join(filter(None, (hint, error.hint))),
        ) from None


def _heads(program: Program) -> dict[str, dict[str, bool]]:
    """For each function its parameters, and whether each requires a value."""
    heads = {f.name: {p.name: start_of(f, p) is None for p in f.params} for f in program.functions}
    if program.generics is not None:
        for name in program.generics.names:
            heads[name] = dict.fromkeys(program.generics.parameters(name), True)
    return heads


def _shell_word(word: str) -> str:
    word = word.replace(" ", "")
    return word if re.fullmatch(r"[\w=.,:@+\[\]-]+", word) else shlex.quote(word)


def answer(
    work: Callable[[Output | None], tuple[dict[str, Any], Fault | None]], as_json: bool
) -> None:
    """Do a command's work, which prints, or whose answer is printed as one JSON object.

    `work` takes a callback for the lines that the program prints, and returns the answer and its
    error, if any. The error is raised, or is in the object, with its exit code.
    """
    if not as_json:
        _, wrong = work(None)
        if wrong is not None:
            raise wrong
        return
    printed: list[str] = []
    found: dict[str, Any] = {}
    try:
        found, wrong = work(printed.append)
    except Fault as error:
        wrong = error
    if wrong is not None:
        found = errors_as_json(wrong) | found
    if printed:
        found["output"] = printed
    click.echo(json_text(found))
    if wrong is not None:
        end(wrong.exit_code)
