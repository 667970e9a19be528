"""Completions of commands: commands, places, functions, labels, marks, files, by argument kind."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rvm.faults import RvmError
from rvm.program import Record
from rvm_tools.debug.console import Console, find, load_commands
from rvm_tools.debug.expressions import names
from rvm_tools.debug.lines import labels
from rvm_tools.show import leaves
from rvm_tools.trace.energy import MODELS

_WORD = re.compile(r"@?[\w.]*$")
_CONDITION = re.compile(r"(?:^|\s)if\s")
_EDGES = ("start", "end")


def completions(console: Console, text: str) -> tuple[int, list[str]]:
    """Completions of a command's last word: its position in the text, and the words."""
    head = text.lstrip()
    word = re.search(r"[\w?!-]*$", head)
    if word is not None and word[0] == head:
        return len(text) - len(head), _fitting(load_commands(), head)
    try:
        command, rest = find(head)
    except RvmError:
        return len(text), []
    takes = command.takes
    if _CONDITION.search(rest) or rest.rfind("{") > rest.rfind("}"):
        takes = "expression"
    if takes == "file" or (takes == "energy" and "/" in rest):
        return len(text) - len(rest), _files(rest)
    found = _WORD.search(text)
    assert found is not None
    known: list[str] = [*_known(console, takes)]
    if takes in ("where", "place") and rest != found[0]:
        known.append("if")
    return found.start(), _fitting(known, found[0])


def _fitting(known: Iterable[str], word: str) -> list[str]:
    return sorted(k for k in dict.fromkeys(known) if k.startswith(word) and k != word)


def _known(console: Console, takes: str) -> Iterator[str]:
    """All words that a command which takes something is for."""
    session = console.session
    match takes:
        case "place" | "expression":
            yield from live_names(console)
        case "where":
            yield from session.program
            yield from labels(session.program)
        case "function":
            yield from session.program
        case "time":
            yield from _EDGES
            yield from (f"@{m}" for m in session.marks)
        case "number":
            yield from (str(p.number) for p in session.probes)
        case "display":
            yield from session.displays
            yield "all"
        case "command":
            yield from load_commands()
        case "energy":
            yield from MODELS
            yield from _files("")
        case _:
            yield from takes.split("|")


def live_names(console: Console) -> Iterator[str]:
    """Names for expressions in the selected frame: registers, lengths, fields."""
    frame = console.session.frame
    function, regs = frame.code.function, frame.regs
    for name in names(function, regs):
        slots = [k for k, r in enumerate(function.registers) if r.name == name]
        if not slots or any(regs[k] is not None for k in slots):
            yield name
    for p in function.params:
        if isinstance(p.layout, Record):
            yield from (name for name, _ in leaves(function, p.layout, p.name))


def _files(text: str) -> list[str]:
    """The files and folders whose paths begin so."""
    folder, begun = os.path.split(text)
    try:
        entries = list(os.scandir(Path(folder or ".").expanduser()))
    except OSError:
        return []
    before = text.removesuffix(begun)
    return sorted(
        before + entry.name + ("/" if entry.is_dir() else "")
        for entry in entries
        if entry.name.startswith(begun) and (begun or not entry.name.startswith("."))
    )
