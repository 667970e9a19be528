"""Every code that a source can raise is explained, and every explained code can be raised."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from rvm_tools import cli
from rvm_tools.explanations import GROUPS
from rvm_tools.explanations import explanations as installed

from rvm.codes import explanations
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
