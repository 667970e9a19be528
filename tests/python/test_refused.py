"""What is refused in a Python function, and in which words: `refused.txt` says it case by case.

A case is a body at the margin, and below it what is said: the code and the message, what is
underlined, and the help.
"""

from __future__ import annotations

import math
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rvm_python.messages import INSTEAD

import rvm
from rvm import f64
from rvm.isa import FUNCTIONS

ASSEMBLY = re.compile(
    r"operand `|\b(alloc|uncall) \w|`(free|undo) |`(sub|xor|mul|div|neg|conj)\b[ `]"
)
"""Phrases of the assembly language, which mean nothing to those who write Python."""
CASES = Path(__file__).with_name("refused.txt")
WEIGHTS = np.arange(3.0)
TABLE = [1, 2]
PAIR = (1.0, 2.0)
BOX = SimpleNamespace(size=4)


def helper(x):
    return x


@rvm.reversible
def add(x: f64, y: f64):
    y += x


HEAD = """@rvm.reversible
def f(x: f64, y: f64, k: i64, v: Array[f64, "n"], A: Array[f64, "n", "n"], s: Stack[f64]):
"""
NAMES = {
    "rvm": rvm, "np": np, "math": math, "WEIGHTS": WEIGHTS, "TABLE": TABLE, "PAIR": PAIR,
    "helper": helper, "add": add, "f64": f64, "i64": rvm.i64, "Array": rvm.Array,
    "Stack": rvm.Stack, "BOX": BOX,
}  # fmt: skip


def said(body: str) -> str:
    """All that is said of a function with such a body."""
    text = HEAD + textwrap.indent(body, "    ")
    with pytest.raises(rvm.AssemblyError) as caught:
        f = rvm.reversible.source(text, NAMES, name="f.py")
        f.of(x=1.0, y=2.0, k=3, v=np.ones(2), A=np.ones((2, 2)), s=[])
    out = ""
    for d in caught.value.diagnostics:
        where = d.where
        assert where.source == "f.py" and where.line > 2, d
        out += f"    {d.code} {d.message}\n"
        out += f"    at   {(where.text or '')[where.column - 1 : where.end - 1]}\n"
        out += f"    help {d.hint}\n" if d.hint else ""
    return out


def cases() -> list[tuple[str, str]]:
    """Bodies, and what is said of each."""
    found = []
    for block in CASES.read_text().strip("\n").split("\n\n"):
        body = re.split(r"(?m)^(?=    [A-Z]\d\d\d )", block, maxsplit=1)
        found.append((body[0], body[1].rstrip() + "\n" if len(body) > 1 else ""))
    return found


@pytest.mark.parametrize(("body", "expected"), cases(), ids=lambda v: v.split("\n")[0][:40])
def test_what_is_refused(body: str, expected: str) -> None:
    assert said(body) == expected
    assert not ASSEMBLY.search(expected)


def rewritten() -> None:
    """Write what is said now; the difference is to be read."""
    blocks = [body.rstrip("\n") + "\n" + said(body) for body, _ in cases()]
    CASES.write_text("\n".join(blocks))


def test_what_is_given_instead_is_there() -> None:
    """The functions that hints name are read, and what they stand for is not a function here."""
    for name, hint in INSTEAD.items():
        assert name not in FUNCTIONS
        for call in re.findall(r"(?:np|rvm)\.\w+", hint):
            found = getattr({"np": np, "rvm": rvm}[call.split(".")[0]], call.split(".")[1], None)
            assert found is not None, (name, call)
        for formula in re.findall(r"`(np\.[^`…]*\))`", hint):
            arrays = ", ".join(f"{name}: Array[f64, 'n']" for name in "xyw")
            body = f"def f(o, {arrays}, m: f64, lo: f64, hi: f64):\n"
            body += f"    o += {formula}\n"
            if "lo" in formula or "floor" in formula:
                body = body.replace("Array[f64, 'n']", "f64")
            f = rvm.reversible.source(body, NAMES)
            one = 2.0 if "lo" in formula or "floor" in formula else np.ones(2)
            f(o=0.0, y=one, x=one, w=one, m=1.0, lo=0.0, hi=1.0)


def test_a_function_of_a_text_may_call_itself() -> None:
    text = "def fact(r, n):\n    if n == 0:\n        r += 1\n    else:\n"
    text += "        with rvm.ancilla(0, like=r) as t:\n            fact(t, n - 1)\n"
    text += "            r += n * t\n            (~fact)(t, n - 1)\n"
    fact = rvm.reversible.source(text, {"rvm": rvm})
    assert fact(0, 5).r == 120


def test_a_number_that_does_not_fit_is_reported_where_it_stands() -> None:
    f = rvm.reversible.source("def f(x, y):\n    x += y + 256\n")
    with pytest.raises(rvm.AssemblyError, match="256 does not fit u8") as caught:
        f(np.uint8(3), np.uint8(4))
    where = caught.value.where
    assert (where.text or "")[where.column - 1 : where.end - 1] == "256"
    assert f(np.uint16(3), np.uint16(4)).x == 263


def test_coroutines_and_generators_are_refused() -> None:
    with pytest.raises(rvm.UsageError, match="coroutine"):
        rvm.reversible.source("async def f(x):\n    x += 1\n")(1.0)
    with pytest.raises(rvm.AssemblyError, match="changes nothing"):
        rvm.reversible.source("def f(x):\n    x += 1\n    yield x\n")(1.0)


def test_the_words_are_listed() -> None:
    assert {"ancilla", "loop", "when", "swap", "f64", "u8", "rol"} <= set(dir(rvm))
    for name in dir(rvm):
        assert getattr(rvm, name) is not None


if __name__ == "__main__":
    rewritten()


@rvm.reversible
def takes_any(*args):
    args[0] += 1


@rvm.reversible
def takes_more(x, y=1, *rest):
    x += y


@rvm.reversible
def takes_named(x, **more):
    x += 1


@pytest.mark.parametrize(
    ("f", "args", "names", "what"),
    [
        (takes_any, (1,), {}, "`*args`"),
        (takes_any, (), {}, "`*args`"),
        (takes_any, (), {"x": 1}, "`*args`"),
        (takes_more, (1,), {}, "`*rest`"),
        (takes_more, (1, 2), {}, "`*rest`"),
        (takes_more, (1, 2, 3), {}, "`*rest`"),
        (takes_named, (1,), {}, "`**more`"),
        (takes_named, (1, 2), {}, "`**more`"),
        (takes_named, (1,), {"z": 2}, "`**more`"),
    ],
)
def test_starred_parameters_are_refused_however_it_is_called(f, args, names, what):
    """At the line of the function, and not for the number of arguments."""
    with pytest.raises(rvm.RvmError) as caught:
        f(*args, **names)
    assert caught.value.code == "A091" and f"{what} is not a place" in caught.value.message
    assert what.strip("`") in (caught.value.where.text or "")
