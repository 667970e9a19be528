"""Texts of `print` and `assert` are filled as Python fills them, or refused."""

from __future__ import annotations

import numpy as np
import pytest
import rvm_janus
from hypothesis import given
from hypothesis import strategies as st

import rvm
from rvm.codec import decode, encode
from rvm.codes.templates import escaped, filled, holes
from rvm.library.handle import Library

TEXT = """
func main(x: i64, a: u8[3], f: f64)
    extern both
        print {}
    end
"""

SHOWN = {
    '"{}", x': "-255",
    '"{:x}", x': "-ff",
    '"{{{}}}", x': "{-255}",
    '"{{}} {{y}} {:x} }}", x': "{} {y} -ff }",
    '"{:[]} {:x} {:{}}", a, a, a': "[1, 16, 255] [1 10 ff] {1, 16, 255}",
    '"left", x, f': "left -255 0.5",
}


@pytest.mark.parametrize("line", SHOWN)
def test_texts_are_filled(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    library = rvm.assemble(TEXT.replace("{}", line, 1))
    for f in (library.main, Library(decode(encode(library))).main):
        f(x=-255, a=np.array([1, 16, 255], np.uint8), f=0.5)
        assert capsys.readouterr().out == SHOWN[line] + "\n"


REFUSED = {
    '"{y}", x': "`{y}` has no value",
    '"a } b"': "`}` has no value",
    '"{", x': "`{` has no value",
    '"{:5}", x': "`{:5}` has no value",
    '"{} {}", x': "there is no value for `{}`",
    '"{:x}", f': "`{:x}` shows integers, not an f64",
}


@pytest.mark.parametrize("line", REFUSED)
def test_braces_that_stand_for_nothing_are_refused(line: str) -> None:
    with pytest.raises(rvm.AssemblyError) as failed:
        rvm.assemble(TEXT.replace("{}", line, 1))
    (found,) = failed.value.diagnostics
    assert found.message == REFUSED[line] and found.where.line == 4
    condition = TEXT.replace("print {}", "assert x == 0, " + line)
    with pytest.raises(rvm.AssemblyError) as failed:
        rvm.assemble(condition)
    assert REFUSED[line] in str(failed.value)


@given(st.text("{}x:[a ]", max_size=12))
def test_an_escaped_text_is_itself(text: str) -> None:
    assert list(holes(escaped(text))) == []
    assert filled(escaped(text), lambda form, hole: "?") == text


def test_janus_texts_keep_their_braces(capsys: pytest.CaptureFixture[str]) -> None:
    text = """procedure main()
    int x = 3
    print("{} {x} }")
    printf("{%d} {y}", x)
"""
    Library(rvm_janus.assemble(text)).main()
    assert capsys.readouterr().out == "{} {x} }\n{3} {y}\n"
