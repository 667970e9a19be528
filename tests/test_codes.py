"""Every code that a source can raise is explained, and every explained code can be raised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rvm_asm.codes import EXPLANATIONS as ASSEMBLY
from rvm_python.codes import EXPLANATIONS as PYTHON
from rvm_tools.codes import TOOLS

from rvm.codes import EXPLANATIONS

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parent.parent
CODE = re.compile(r'"([ABCDIPRU]\d{3})"')


def raised() -> set[str]:
    found: set[str] = set()
    for folder in ("rvm", "asm", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name != "codes.py" and path.parent.name != "codes":
                found |= set(CODE.findall(path.read_text()))
    return found


def test_codes_and_explanations_are_the_same_set() -> None:
    explained = set(EXPLANATIONS) | set(ASSEMBLY) | set(PYTHON) | set(TOOLS)
    assert raised() - explained == set(), "raised, but not explained"
    assert explained - raised() == set(), "explained, but never raised"


def test_no_code_is_explained_twice() -> None:
    assert not set(EXPLANATIONS) & set(ASSEMBLY)
    assert not set(PYTHON) & (set(EXPLANATIONS) | set(ASSEMBLY))
    assert not set(TOOLS) & (set(EXPLANATIONS) | set(ASSEMBLY) | set(PYTHON))
