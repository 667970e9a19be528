"""The page on NiLang's programs: each of ours is there, as long as it says, and not too long."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from sizes import wide
from tools.running import rvm

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "nilang.md"
ROW = re.compile(r"\| (.*) \| (.*) \| (\d+) \| \[`[^`]*`\]\(([^)]*)\): (.*) \| (\d+) \|")
ROWS = [m.groups() for m in map(ROW.fullmatch, PAGE.read_text("utf-8").splitlines()) if m]
PYTHON = re.findall(
    r"^\| ([^|]*) \| (\d+) \| \[`[^`]*`\]\(([^)]*)\): (.*) \| (\d+) \|$",
    PAGE.read_text("utf-8"),
    re.M,
)
DECLARATION = re.compile(r"(?:func|pure|macro|record|const) (\w+)")


def lengths(path: Path) -> dict[str, int]:
    """How many lines each declaration of a file has, without empty ones and comments."""
    out: dict[str, int] = {}
    name = ""
    for line in path.read_text("utf-8").splitlines():
        found = DECLARATION.match(line)
        if found is not None:
            name = found[1]
        elif not line.startswith((" ", "end")):
            name = ""
        if name and line.strip() and not line.strip().startswith(";"):
            out[name] = out.get(name, 0) + 1
    return out


def test_the_page_has_all_rows() -> None:
    assert len(ROWS) == 51
    assert len(PYTHON) == 11
    assert len(ROWS) + len(PYTHON) == PAGE.read_text("utf-8").count("\n| ") - 2


@pytest.mark.parametrize("row", ROWS, ids=[r[0] for r in ROWS])
def test_lines_are_as_many_as_it_says(row: tuple[str, ...]) -> None:
    _, _, theirs, link, names, ours = row
    found = lengths((PAGE.parent / link).resolve())
    counted = found if names == "all" else {n: found[n] for n in re.findall(r"`(\w+)`", names)}
    assert sum(counted.values()) == int(ours)
    assert int(ours) <= 1.5 * int(theirs)


def test_every_translation_is_on_the_page() -> None:
    listed = {Path(link).name for _, _, _, link, _, _ in ROWS}
    for path in (ROOT / "examples" / "nilang").glob("*.rasm"):
        assert path.name in listed


@pytest.mark.parametrize("row", PYTHON, ids=[r[0] for r in PYTHON])
def test_lines_in_python_are_as_many_as_it_says(row: tuple[str, ...]) -> None:
    what, theirs, link, names, ours = row
    text = (PAGE.parent / link).read_text("utf-8")
    found = {n.name: n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    lines = [
        line.strip()
        for name in re.findall(r"`(\w+)`", names)
        for line in text.splitlines()[found[name].lineno - 1 : found[name].end_lineno]
    ]
    assert sum(bool(line) and not line.startswith("#") for line in lines) == int(ours)
    assert int(ours) <= 1.5 * int(theirs)
    assert (what, theirs) in [(r[0], r[2]) for r in ROWS]


@wide
def test_the_functions_in_python_do_what_they_say() -> None:
    found = rvm("check", str(ROOT / "examples" / "nilang" / "first.py"))
    assert found.stdout.count("ok ") >= 12, found.stdout
