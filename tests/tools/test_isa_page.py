"""The reference page is made from the table, and says what the table says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rvm_tools.isa_page import members, page

from rvm.isa import FUNCTIONS, OPCODES

PAGE = Path(__file__).parents[2] / "docs" / "isa.md"


@cache
def built() -> str:
    return page()


def rows(name: str) -> list[list[str]]:
    """The cells of the tables' rows that begin with a name."""
    out = []
    for line in built().splitlines():
        cells = [c.strip() for c in line.replace("\\|", "¦").strip("|").split("|")]
        if line.startswith("|") and cells[0] == f"`{name}`":
            out.append(cells)
    return out


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == built(), "python -m rvm_tools.isa_page > docs/isa.md"


def test_every_opcode_and_function_is_there() -> None:
    text = built()
    for name in OPCODES:
        assert f"### `{name}`" in text
    count = text.split("## Functions")[1].split("## Number types")[0].count("\n| `")
    assert count == len(FUNCTIONS)


def test_some_rows() -> None:
    ((_, does, inverse, types, cost),) = rows("rot a, b, t")
    assert does == "`a, b = a * cos(t) - b * sin(t), a * sin(t) + b * cos(t)`"
    assert (inverse, types, cost) == ("`irot`", "rotated", "MULTS")
    ((_, _, types, cost, derivative),) = rows("sin(x)")
    assert derivative == "`x: g * cos(x)`" and cost == "NLOPS"
    ((_, _, _, _, derivative),) = rows("x * y")
    assert derivative == "`x: g * y`<br>`y: g * x`"
    ((_, gives, types, _, derivative),) = rows("x < y")
    assert "a bool" in gives and types == "ordered" and derivative == "—"
    ((_, _, types, _, _),) = rows("~x")
    assert types == "bits"
    assert rows("x ¦ y")


def test_classes() -> None:
    assert members("bits") == ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
    assert members("complex") == ["c128"]


def test_arguments_have_names_of_their_own() -> None:
    for row in FUNCTIONS.values():
        assert row.operands and len(set(row.operands)) == row.arity
        assert "g" not in row.operands, row.name
