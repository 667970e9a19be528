"""Golden diagnostics: every `errors/*.rasm` with all that the assembler says about it.

After a change that is meant, `python tests/asm/test_errors.py` writes the expected texts anew.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from rvm_asm import assemble

from rvm.codes import explanations
from rvm.faults import AssemblyError

pytestmark = pytest.mark.smoke

FILES = sorted((Path(__file__).parent / "errors").glob("*.rasm"))


def messages(path: Path) -> AssemblyError:
    """What is wrong with a file."""
    with pytest.raises(AssemblyError) as caught:
        assemble(path.read_text(encoding="utf-8"), path.name, path=path, includes="below")
    return caught.value


def text_of(error: AssemblyError) -> str:
    """The human form of all messages, without the folders of this machine."""
    text = "\n\n".join(d.human() for d in error.diagnostics)
    return re.sub(r"looked in .*", "looked in …", text) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_golden(path: Path) -> None:
    assert text_of(messages(path)) == path.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_spans_point_into_their_lines(path: Path) -> None:
    """Every place and label is a stretch of a line of the file (or just after its end)."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for d in messages(path).diagnostics:
        for line, column, end in (
            (d.where.line, d.where.column, d.where.end),
            *((b.line, b.column, b.end) for b in d.labels),
        ):
            text = lines[line - 1]
            assert 1 <= column < end <= len(text) + 2
            assert column <= len(text) + 1
        assert d.where.text == lines[d.where.line - 1]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_short_and_json(path: Path) -> None:
    for d in messages(path).diagnostics:
        found = re.fullmatch(
            r"(\S+):(\d+):(\d+): (?:error|warning)\[([AP]\d{3})\]: (.+)", d.short(), re.DOTALL
        )
        assert found is not None
        data = json.loads(json.dumps(d.as_json()))
        assert found.groups() == (
            data["source"], str(data["line"]), str(data["column"]), data["code"], data["message"]
        )  # fmt: skip


def test_every_code_of_the_assembler_has_an_example() -> None:
    seen = {d.code for path in FILES for d in messages(path).diagnostics}
    static = {c for c in explanations("rvm") if c.startswith("A")}
    # Only a text without errors has that warning: tests/gradients/test_calls_of_derivatives.py.
    assert set(explanations("rvm_asm")) - seen == {"A081"}
    # A jump out of its function can't be written: a label that is not there is A060.
    assert static - seen == {"A021"}


def test_the_example_of_the_language_page() -> None:
    """Word for word what the design asks for."""
    text = "\n" * 6 + "    add x, x * y\n"
    text = "func f(x: f64, y: f64)" + text
    with pytest.raises(AssemblyError) as caught:
        assemble(text, "examples/bad.rasm")
    assert str(caught.value) == (
        "error[A013]: the destination `x` is also read by the expression\n"
        "  --> examples/bad.rasm:7:9\n"
        "   |\n"
        " 7 |     add x, x * y\n"
        "   |         ^  - read here\n"
        "   |         written here\n"
        "   = note: `x += x*y` cannot be undone when y = -1\n"
        "   = help: accumulate into a fresh ancilla:  alloc t: f64 / add t, x * y"
    )


def test_all_errors_in_one_run() -> None:
    """One message for each of twenty wrong lines, in the order of the lines."""
    body = "".join(f"    add x, missing{k}\n" for k in range(20))
    with pytest.raises(AssemblyError) as caught:
        assemble(f"func f(x: f64)\n{body}")
    assert [d.where.line for d in caught.value.diagnostics] == list(range(2, 22))


def test_long_and_strange_lines_are_shown_in_part() -> None:
    """The caret still stands under what is meant."""
    with pytest.raises(AssemblyError) as caught:
        assemble("func f(x: f64)\n add x, 1" + " " * 500 + "+ zzz ;" + " " * 500 + "\0")
    shown = str(caught.value).split("\n")
    line, marks = next((a, b) for a, b in pairwise(shown) if "zzz ;" in a)
    assert line.index("zzz") == marks.index("^^^")
    assert len(line) < 200 and all(c.isprintable() for c in "".join(shown))


def test_a_line_that_cannot_be_read_excuses_its_names() -> None:
    """One slip, one message: what the broken line declares is not reported as unknown."""
    with pytest.raises(AssemblyError) as caught:
        assemble("func f(x: f64)\n alloc t: f64 = (1\n add x, t\n free t\n")
    assert len(caught.value.diagnostics) == 1


if __name__ == "__main__":
    for file in FILES:
        file.with_suffix(".txt").write_text(text_of(messages(file)), encoding="utf-8")
