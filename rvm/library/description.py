"""The signatures and documentation of program functions, for `help` and `inspect.signature`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from inspect import Parameter, Signature
from typing import Any

from rvm.program import Function, Source, layout_text
from rvm.run.binding import start_of

COMMENT = re.compile(r"^\s*(?:;+(?![!@|])|//)\s?(.*)$")
"""A line that is a comment: `; text`, or `// text` as in Janus."""
BEHIND = re.compile(r"(?:;|//)\s*(.*)$")
"""A comment after code."""


class TypeText(str):
    """A parameter's type as a text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature(function: Function) -> Signature:
    """The parameters of a function, with their types; the return annotation is `Result`."""
    found: list[Parameter] = []
    for p in function.params:
        start = start_of(function, p)
        found.append(
            Parameter(
                p.name if p.name.isidentifier() else f"_{len(found)}",
                Parameter.POSITIONAL_OR_KEYWORD,
                annotation=TypeText(layout_text(function, p.layout)),
                default=Parameter.empty if start is None else start,
            )
        )
    # A parameter with a default may come before one without, which is then keyword-only here: a
    # call takes it in order as well, but Python's signatures cannot say so.
    needed = [k for k, p in enumerate(found) if p.default is Parameter.empty]
    free = next((k for k, p in enumerate(found) if p.default is not Parameter.empty), len(found))
    first = next((k for k in needed if k > free), len(found))
    found[first:] = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in found[first:]]
    return Signature(found, return_annotation=TypeText("Result"))


def documentation(sources: Iterable[Source], name: str) -> str:
    """The comment above a function's head, and after it, in its source text."""
    plain = re.escape(name.partition("[")[0])
    head = re.compile(rf"^\s*(?:func|procedure|pure|record)\s+{plain}\b")
    for source in sources:
        lines = source.text.splitlines()
        for k, line in enumerate(lines):
            if head.match(line):
                return "\n".join([*_above(lines[:k]), *_behind(line)])
    return ""


def _above(lines: list[str]) -> list[str]:
    found: list[str] = []
    while lines and (comment := COMMENT.match(lines.pop())):
        found.insert(0, comment[1].rstrip())
    return found


def _behind(line: str) -> list[str]:
    comment = BEHIND.search(line)
    return [comment[1].rstrip()] if comment else []


class Documented:
    """A descriptor for `__doc__` that gives each instance its own text."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, instance: Any, owner: type) -> str | None:
        if instance is None:
            return self.text
        return f"{instance!r}\n\n{instance.comment()}".rstrip()
