"""The page of the library's functions, by `python -m rvm_tools.library_page`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from rvm_asm.includes import STD, library

from rvm.library.description import documentation
from rvm.program import Source

_HEAD = """\
# The library

This page is generated from the library's texts by
`python -m rvm_tools.library_page > docs/library.md`; a test keeps the two in agreement.

`include "std/fold.rasm"` reads a file of the library; every policy allows this. The library
consists of ordinary [generic functions](language.md#generic-functions): they are instantiated for
the types that they are called with, can be undone, have gradients, and can be stepped through in
debuggers. In Python, `lib.find(…)` calls a function that a text has included, and `~lib.find`
undoes it.

A function changes only the arguments that its description mentions as changed. Run backwards it
restores them: to the bit for whole numbers and `fixed`, and up to rounding for floats. *Scratch* is
memory that is used temporarily.
"""
_HEADS = re.compile(r"^(?:func|pure|record) (\w+)", re.M)


@dataclass(frozen=True, slots=True)
class Entry:
    """A declaration in a file of the library: its head as written, description and cost."""

    name: str
    head: str
    does: str
    cost: str


def entries(file: str) -> list[Entry]:
    """The declarations of a file, `std/fold.rasm`, in order."""
    source = Source(file, text_of(file))
    return [_entry(source, name) for name in _HEADS.findall(source.text)]


def text_of(file: str) -> str:
    """The text of a file of the library."""
    return (STD.parent / file).read_text(encoding="utf-8")


def page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD]
    for file in library():
        parts += [f"## `{file}`\n", _introduction(file)]
        parts += ["| | description | cost |\n|---|---|---|"]
        parts += [
            f"| `{_cell(e.head)}` | {_cell(e.does)} | {_cell(e.cost)} |" for e in entries(file)
        ]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _entry(source: Source, name: str) -> Entry:
    match = re.search(rf"^(?:func|pure|record) {name}\b(.*?)(?: *;.*)?$", source.text, re.M)
    assert match is not None
    fields = ""
    if match[0].startswith("record"):
        lines = source.text[match.end() :].partition("\nend")[0].splitlines()
        fields = " Fields: " + ", ".join(f"`{c}`" for c in map(_code, lines) if c) + "."
    does, _, cost = " ".join(documentation([source], name).split()).partition(" Cost: ")
    return Entry(name, name + match[1], does + fields, cost.removesuffix("."))


def _introduction(file: str) -> str:
    """The comment at the beginning of a file: paragraphs, of which the first is a sentence."""
    lines = list(_comment(text_of(file).splitlines()))
    return "\n".join(line.removeprefix(";").strip() for line in lines) + "\n"


def _comment(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith(";"):
            return
        yield line


def _code(line: str) -> str:
    """A line without its comment."""
    return line.partition(";")[0].strip()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.buffer.write(page().encode())
