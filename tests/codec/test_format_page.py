"""`docs/bytecode.md` against the format itself."""

from __future__ import annotations

import re
from pathlib import Path

from rvm.codec.layout import (
    DIRECTORY,
    HEADER,
    MAGIC,
    MAX_LAYOUT_DEPTH,
    TABLES,
    VERSION,
    WORK_BASE,
    WORK_PER_BYTE,
)
from rvm.isa.typing import MAX_NODES
from rvm.types import SCALARS
from rvm.verify.instructions import MAX_OPERANDS
from rvm.verify.nodes import MAX_DEPTH, MAX_RANK

PAGE = (Path(__file__).parents[2] / "docs" / "bytecode.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def cells(text: str) -> list[list[str]]:
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[c.strip() for c in row] for row in rows if not set("".join(row)) <= set("-: ")]


def test_tables_are_those_of_the_format_in_order() -> None:
    rows = cells(section("Tables").split("\n\n")[0])[1:]
    assert rows == [[t.tag.decode(), str(t.record.size), t.holds] for t in TABLES]


def test_header_and_directory() -> None:
    for title, record in (("Header", HEADER), ("Directory", DIRECTORY)):
        rows = cells(section(title))[1:]
        end = 0
        for offset, width, _ in rows:
            assert int(offset) == end
            end += int(width)
        assert end == record.size
    assert " ".join(f"{b:02X}" for b in MAGIC) in section("Header")
    assert f"version: {VERSION}" in section("Header")
    assert f"number of tables: {len(TABLES)}" in section("Header")


def test_limits() -> None:
    numbers = [re.findall(r"\d+", row[-1]) for row in cells(section("Limits"))[1:]]
    limits = [MAX_NODES, MAX_DEPTH, MAX_OPERANDS, MAX_RANK, MAX_LAYOUT_DEPTH]
    assert numbers[:-1] == [[str(n)] for n in limits]
    assert numbers[-1] == [str(WORK_BASE), str(WORK_PER_BYTE)]


def test_scalar_types_are_all_named() -> None:
    named = section("Tables").split("**Types.**")[1].split("**Constants.**")[0]
    assert set(re.findall(r"`(\w+)`", named)) - {"name"} == set(SCALARS)
