"""Characters and texts: bytes as Python reads them, in every place of a line."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rvm_asm.characters import Misspelt, bytes_of
from rvm_asm.disassemble import disassemble

import rvm

PIECES = [*(chr(k) for k in range(32, 127)), "é", "€", "😀", "\\", "\\\\", "\\n", "\\x41", "\\xff"]
PIECES += ["\\u20ac", "\\0", "\\t", "\\'", '\\"', "\\a", "\\x4", "\\u12"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_texts_are_as_python_reads_them(body: str) -> None:
    """What is read is Python's value, in UTF-8, with `\\xff` a byte as in bytes literals."""
    try:
        found = bytes_of(body)
    except Misspelt as wrong:
        assert body[wrong.at] == "\\"
        return
    # Bytes of UTF-8 as `\x`, and Python's own reading of the rest.
    spelt = "".join(c if ord(c) < 128 else "".join(f"\\x{b:02x}" for b in c.encode()) for c in body)
    spelt = "\\\\".join(CODE_POINT.sub(_of_utf8, p) for p in spelt.split("\\\\"))
    assert found == ast.literal_eval(_python(spelt))


CODE_POINT = re.compile(r"\\u([0-9a-f]{4})")


def _of_utf8(found: re.Match[str]) -> str:
    return "".join(f"\\x{b:02x}" for b in chr(int(found[1], 16)).encode())


def _python(spelt: str) -> str:
    """A bytes literal of Python with quotes that are escaped."""
    out, escaped = "", False
    for c in spelt:
        out += "\\x27" if c == "'" and not escaped else c
        escaped = c == "\\" and not escaped
    return f"b'{out}'"


EXPRESSIONS = [
    ("'a'", 97),
    ("~'a' & 255", 158),
    ("'a' + 'b'*'\\x02'", 293),
    ("('a' - '0') << ('1' - '0')", 98),
    ("i64('z')", 122),
    ("i64('z''u8 + 250)", 116),
    ("x[' ' - '\\x1f']", 8),
    ("';' - ':'", 1),
    ("'(' + ')' - '\\''", 42),
    ("-'a'", -97),
    ("select('a' == x[0] or not '~' < 'b', '\"', '`')", 34),
]


@pytest.mark.parametrize(("text", "value"), EXPRESSIONS)
def test_characters_are_numbers(text: str, value: int) -> None:
    lib = rvm.assemble(f"func f(y: i64, x: i64[2])\n    add y, {text} ; 'c'\n    add x[0], '!'\n")
    got = lib.f(y=0, x=np.array([7, 8]))
    assert (got.y, list(got.x)) == (value, [40, 8])
    again = rvm.assemble(disassemble(lib.program))
    assert again.program == lib.program


def test_quotes_of_derivatives_and_types_are_not_characters() -> None:
    """`'` before a type, and behind the name of a function whose gradient is called."""
    text = "func f(y: f64, x: f64, k: u8)\n    add y, x ** 2\n    add k, 1\n"
    for mark, count in ((" '", 2), ("'", 2), ("~'", 2), (" ~ '", 2), ("'.", 4), (" ' .", 4)):
        bars = ", ".join(f"b{k}" for k in range(2 if count == 2 else 4))
        args = "y, x, k" if count == 2 else "y, x, k, c, d"
        head = ", ".join(f"{n}: f64" for n in ("y", "x", "c", "d", "b0", "b1", "b2", "b3"))
        rvm.assemble(f"{text}\nfunc g({head}, k: u8)\n    call f{mark}({args}; {bars})\n")


@settings(max_examples=12, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_held(data: bytes) -> None:
    written = "".join(f"\\x{b:02x}" for b in data)
    lib = rvm.assemble(
        f'const T = "{written}"\nfunc f(x: u8[{len(data)}], n: i64)\n    add x, T\n'
        "    with t = T, u: i16[len(T)] = T\n        add n, sum(i64(t) * 2 - i64(u))\n    end\n"
    )
    got = lib.f(x=bytearray(len(data)), n=0)
    assert bytes(got.x) == data and got.n == sum(data)
    back = (~lib.f)(**got)
    assert not any(back.x) and back.n == 0


def test_what_is_freed_as_a_text_is_that_text() -> None:
    lib = rvm.assemble(
        'func f(x: u8)\n    alloc t: u8[3] = "abc"\n    add t[1], x\n    free t = "abc"\n'
    )
    assert lib.f(x=0).x == 0
    with pytest.raises(rvm.RvmError, match="R001"):
        lib.f(x=1)


def test_a_macro_takes_a_text() -> None:
    lib = rvm.assemble(
        'macro put y, t\n    add y[0:len(t)], t\nend\nfunc f(x: u8[n])\n    put x, "hi"\n'
    )
    assert bytes(lib.f(x=bytearray(4)).x) == b"hi\0\0"
