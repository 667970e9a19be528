"""Texts as people write them: what is blank means nothing."""

from __future__ import annotations

import pytest

import rvm

TEXT = "func f(x: i64)\n    add x, 2"


@pytest.mark.parametrize(
    "ending", ["", "\n", "    ", "\n        ", "\n\n\t", " ; done", "\r\n  \r\n "]
)
def test_blanks_at_the_end_are_nothing(ending: str) -> None:
    assert rvm.assemble(TEXT + ending).f(x=1).x == 3


def test_a_text_may_be_indented_as_a_whole() -> None:
    indented = "".join(f"        {line}\n" for line in TEXT.splitlines()) + "    "
    assert rvm.assemble(indented).f(x=1).x == 3
