"""The `;!` lines of a source: what a program must do, said inside it.

    ;! run norm(y=0, r=0, x=[3, 4]) -> y=25, r=5
    ;! run drop(x=1.5) -> x=2.25 within 1e-6
    ;! run drop(x=1.2) fails R002
    ;! fails A013

In Python they are comments, `# ;! run …`.
A directive goes on over following `;!` lines while a bracket is open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn

from rvm.faults import InputError, Where
from rvm_tools.literals import Reader

_WITHIN = 1e-9
"""The allowed difference of a float from the expected value, relative to it where it exceeds 1."""

_LINE = re.compile(r"^\s*(?:#\s*)?;!\s*(.*?)\s*$")
_CODE = re.compile(r"[A-Z]\d{3}")


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive; `codes` are the expected errors, those of the file if no function is named."""

    line: int
    text: str
    function: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    """The inputs as they are written, `x=[1, 2]`."""
    expected: dict[str, Any] = field(default_factory=dict)
    within: float = _WITHIN
    codes: tuple[str, ...] = ()

    @property
    def is_run(self) -> bool:
        return bool(self.function)


def directives(text: str, name: str = "<text>", files: str = "any") -> list[Directive]:
    """All directives of a source text; InputError I010 for an unreadable one.

    `files` says which files their values may name: "any", "below" or "none".
    """
    return [_directive(line, body, name, files) for line, body in _joined(text)]


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Line numbers and texts of the directives, continued ones put together."""
    first, body = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _LINE.match(line)
        if found is None:
            if body:
                yield first, body
            body = ""
        elif _open(body) and body:
            body += " " + found[1]
        else:
            if body:
                yield first, body
            first, body = number, found[1]
    if body:
        yield first, body


def _open(text: str) -> bool:
    depth = sum(text.count(c) for c in "([{") - sum(text.count(c) for c in ")]}")
    return depth > 0 or text.endswith((",", "->"))


def _directive(line: int, text: str, name: str, files: str) -> Directive:
    reader = Reader(text, files=files)
    try:
        match reader.word():
            case "fails":
                return Directive(line, text, codes=_codes(reader))
            case "run":
                return _run(reader, line, text)
        reader.at = 0
        reader.fail("a directive begins with `run` or `fails`")
    except InputError as error:
        column = len(";! ") + reader.at + 1
        place = Where(name, line, column, column + 1, f";! {text}")
        raise InputError(
            "I010", error.message, where=place, hint="`;! run f(x=1) -> y=2` or `;! fails A013`"
        ) from None


def _run(reader: Reader, line: int, text: str) -> Directive:
    function = reader.word()
    if function is None:
        reader.fail("a function's name is expected")
    function += reader.bracketed()
    reader.expect("(")
    inputs: dict[str, Any] = {}
    words: list[str] = []
    while not reader.accept(")"):
        if inputs:
            reader.expect(",")
            if reader.accept(")"):
                break
        start = reader.at
        _assignment(reader, inputs)
        words.append(text[start : reader.at].strip())
    expected: dict[str, Any] = {}
    if reader.accept("->"):
        _assignment(reader, expected)
        while reader.accept(","):
            _assignment(reader, expected)
    within = _WITHIN
    codes: tuple[str, ...] = ()
    while not reader.done:
        match reader.word():
            case "within":
                found = reader.value()
                if not isinstance(found, (int, Decimal)) or found < 0:
                    reader.fail("a tolerance is a number that is not negative")
                within = float(found)
            case "fails":
                codes = _codes(reader)
            case _:
                reader.fail("`within` or `fails` is expected")
    return Directive(line, text, function, inputs, tuple(words), expected, within, codes)


def _codes(reader: Reader) -> tuple[str, ...]:
    out: list[str] = []
    while not reader.done:
        word = reader.word() or ""
        if not _CODE.fullmatch(word):
            _no_code(reader)
        out.append(word)
        reader.accept(",")
    if not out:
        _no_code(reader)
    return tuple(out)


def _no_code(reader: Reader) -> NoReturn:
    reader.fail("a code such as A013 is expected")


def _assignment(reader: Reader, into: dict[str, Any]) -> None:
    """`name=value` or `p.field=value`."""
    name = reader.word()
    if name is None:
        reader.fail("a parameter's name is expected")
    while reader.accept("."):
        into = into.setdefault(name, {})
        name = reader.word()
        if name is None or not isinstance(into, dict):
            reader.fail("a field's name is expected")
    reader.expect("=")
    if name in into:
        reader.fail(f"`{name}` is given twice")
    into[name] = reader.value()
