"""Every code that a source can raise is explained, and every explained code can be raised."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from pathlib import Path

import pytest
from rvm_asm import assemble
from rvm_tools import cli
from rvm_tools.explanations import GROUPS
from rvm_tools.explanations import explanations as installed

from rvm.codes import explanations
from rvm.faults import AssemblyError
from rvm.library import frontends

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parent.parent
PACKAGES = {
    path.name: path
    for folder in (".", "asm", "tools")
    for path in sorted((ROOT / folder).glob("rvm*"))
    if (path / "__init__.py").exists()
}
CODE = re.compile(r'"([ABCDIPRU]\d{3})"')
SECTION = re.compile(r"^## (\w+)", re.M)


def test_all_packages_that_plug_in_are_asked() -> None:
    assert set(GROUPS) == {cli.GROUP, frontends.GROUP}


def test_codes_and_explanations_are_the_same_set() -> None:
    raised = {
        code
        for package in PACKAGES.values()
        for path in package.rglob("*.py")
        for code in CODE.findall(path.read_text(encoding="utf-8"))
    }
    explained = set(installed())
    assert raised - explained == set(), "raised, but not explained"
    assert explained - raised == set(), "explained, but never raised"


def test_no_code_is_explained_twice() -> None:
    told = Counter(
        code
        for package in PACKAGES.values()
        for path in package.glob("codes/*.md")
        for code in SECTION.findall(path.read_text(encoding="utf-8"))
    )
    assert set(told) == set(installed()) and set(told.values()) == {1}


@pytest.mark.parametrize("package", PACKAGES)
def test_sections_are_read_whole(package: str) -> None:
    """Titles of one line, texts with neither a lost line nor one of the next section's."""
    found = explanations(package)
    text = "".join(p.read_text(encoding="utf-8") for p in PACKAGES[package].glob("codes/*.md"))
    assert all(e.title and e.text and "\n## " not in e.text for e in found.values())
    lines = [line for e in found.values() for line in e.text.splitlines() if line]
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert len(lines) + len(heads) == len([line for line in text.splitlines() if line])
    assert len(heads) == len(found) + len(list(PACKAGES[package].glob("codes/*.md")))


CONTEXT = "func main(x: f64, y: f64, n: i64)"
CONTEXTS = {
    "A015": "func main(i: i64, p: i64[n], x: i64[n])",
    "A016": "func main(x: f64[5], t: f64, i: i64)",
    "A031": "func main(x: i64)",
    "A056": "record P\n    x: f64\n    z: f64\nend\nfunc main(p: P, q: P)",
}
"""What the examples of a code stand in, where it is another function than `CONTEXT`."""
RIGHT = {
    "A008",
    "A010",
    "A012",
    "A021",
    "A061",
    "A066",
    "A067",
    "A068",
    "A069",
    "A070",
    "A072",
    "A075",
}
"""Codes whose examples show what is right, or stand elsewhere."""
HEADS = re.compile(r"^(func|record|macro|const|pure|include)\b", re.M)
TOLD = {
    code: e.text
    for package in ("rvm", "rvm_asm")
    for code, e in explanations(package).items()
    if code.startswith("A") and code not in RIGHT
}


def examples(text: str) -> list[list[str]]:
    """The indented stretches of an explanation, as lines."""
    found = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", text + "\n", re.M)
    return [[line[4:] for line in block.splitlines()] for block in found]


def codes_of(code: str, lines: list[str]) -> set[str]:
    """What is wrong with an example of a code, in its context."""
    text = "\n".join(lines)
    if not HEADS.search(text):
        head = CONTEXTS.get(code, CONTEXT)
        text = "\n".join([head, *(f"    {line}" for line in lines)])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            assemble(text + "\n")
        except AssemblyError as error:
            return {d.code for d in error.diagnostics}
    return {code for w in told for code in re.findall(r"\[(A\d+)\]", str(w.message))}


@pytest.mark.parametrize("code", TOLD)
def test_examples_of_errors_give_them(code: str) -> None:
    """Lines marked `no` each by themselves; those marked `yes` none.  Parts of texts have a `…`."""
    blocks = [block for block in examples(TOLD[code]) if "…" not in "".join(block)]
    seen: set[str] = set()
    for block in blocks:
        seen |= codes_of(code, block)
        marked = [re.search(r"; (no|yes)\b", line) for line in block]
        rest = [line for line, mark in zip(block, marked, strict=True) if mark is None]
        for line, mark in zip(block, marked, strict=True):
            if mark is not None:
                one = codes_of(code, [*rest, line])
                assert (code in one) == (mark[1] == "no"), (line, one)
                assert mark[1] == "no" or not one, (line, one)
    assert code in seen or not blocks, (blocks, seen)


def test_examples_are_indented_from_their_first_line() -> None:
    for package in PACKAGES:
        for code, e in explanations(package).items():
            assert not re.search(r"(?:\A|\n\n)(?![-*|]|\d+\.)\S.*\n {4,}\S", e.text), code
