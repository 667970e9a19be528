"""The library's page is made from its texts, and says of each function what it changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rvm_asm import assemble
from rvm_asm.includes import library
from rvm_tools.library_page import Entry, entries, page, text_of
from sizes import thin

from rvm.isa.rules import CLASSES
from rvm.transform.changes import Changes
from rvm.types import SCALARS

PAGE = Path(__file__).parents[2] / "docs" / "library.md"
ALL = [pytest.param(f, e, id=e.name) for f in library() for e in entries(f)]
RUNNABLE = [p for p in ALL if re.search(rf"^func {p.id}\b", text_of(str(p.values[0])), re.M)]
FORMAL = re.compile(r"(\w+)(?:: ([\w |]+))?")


def types_of(head: str) -> str:
    """A type for each type parameter of a head: `[f64, i64]`."""
    formals = re.match(r"\w+\[([^\]]*(?:\[…\])?[^\]]*)\]\(", head)
    if formals is None:
        return ""
    found = []
    for _, classes in FORMAL.findall(formals[1].replace("[…]", "")):
        allowed = [c.strip() for c in classes.split("|")] if classes else ["any"]
        named = [t for t in ("f64", "i64", *SCALARS) if any(t == c for c in allowed)]
        fitting = [
            t
            for t in ("f64", "i64", *SCALARS)
            if any(c in CLASSES and CLASSES[c](SCALARS[t]) for c in allowed)
        ]
        found.append((named + fitting)[0])
    return f"[{', '.join(found)}]"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "python -m rvm_tools.library_page > docs/library.md"
    )


@pytest.mark.parametrize(("file", "entry"), ALL)
def test_everything_says_what_it_does(file: str, entry: Entry) -> None:
    assert entry.does.endswith(".") and f"`{entry.head}`".replace("|", "\\|") in page()
    assert entry.cost or f"record {entry.name}" in text_of(file)


@thin
@pytest.mark.parametrize(("file", "entry"), RUNNABLE)
def test_what_is_changed_is_said(file: str, entry: Entry) -> None:
    if "func(" in entry.head:
        return  # what a function that is passed changes, it does not know
    program = assemble(f'include "{file}"\nfunc main(x: i64)\n    inc x\n')
    name = entry.name
    if types := types_of(entry.head):
        assert program.generics is not None
        program, name = program.generics.made(name + types)
    function = program.function(name)
    changes = Changes(program)
    kept = changes.restored(name)
    for slot in sorted(changes[name] - kept):
        parameter = function.registers[slot].name.partition(".")[0]
        assert re.search(rf"(?<!\w){parameter}(?!\w)", entry.does), parameter


def test_fields_of_records_are_on_the_page() -> None:
    for file in library():
        text = re.sub(r";.*", "", text_of(file))
        for name, body in re.findall(r"^record (\w+)[^\n]*\n(.*?)^end", text, re.M | re.S):
            [row] = [line for line in page().splitlines() if line.startswith(f"| `{name}")]
            fields = [line.strip() for line in body.splitlines() if line.strip()]
            assert fields and all(f"`{f}`" in row for f in fields), name
