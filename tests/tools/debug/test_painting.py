"""Rows of code in colours: the text stays, and words get the style of what they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rvm_tools.debug.colours import row

ROWS = [
    ">   28      swap y, x",
    " b  12  func merge(x: i64[n])",
    ">    9  L2: cf    k != 0, L7                 br    k != 0, L2",
    "> @0  call norm(y, x)",
    "     8  br    0 == k.end, L8   now false",
    ">   32      for k = 0 to n - 1   [inside: L2: cf    k != 0, L7]",
    "     3      add x, y       ; a   comment",
    "no row at all",
    "",
]


@pytest.mark.parametrize("text", ROWS)
def test_the_text_stays(text: str) -> None:
    assert row(text).plain == text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])), st.booleans())
def test_any_text_stays(text: str, code: bool) -> None:
    shown = f">   12  {text}" if code else text
    assert row(shown).plain == shown


def styles(text: str, word: str, *, last: bool = False) -> str:
    """The style of a word's first letter."""
    painted = row(text, "bold green")
    at = text.rindex(word) if last else text.index(word)
    return " ".join(str(s.style) for s in painted.spans if s.start <= at < s.end)


def test_words_have_styles() -> None:
    assert styles(ROWS[0], "28") == "bold green"
    opcode = styles(ROWS[0], "swap")
    assert opcode and opcode != styles(ROWS[0], "y,")
    for word in ("cf", "br"):  # the inverse stands in a second column
        assert styles(ROWS[2], word) == opcode
    assert styles(ROWS[2], "k", last=True) == styles(ROWS[0], "y,")
    assert styles(ROWS[4], "now") == styles(ROWS[5], "[inside") == "dim"
    assert "dim" not in styles(ROWS[4], "L8")
