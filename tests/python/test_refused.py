"""What is refused in a Python function, and in which words: `refused.txt` says it case by case.

A case is a body at the margin, and below it what is said: the code and the message, what is
underlined, and the help.
"""

from __future__ import annotations

import math
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import rvm
from rvm import f64

CASES = Path(__file__).with_name("refused.txt")
WEIGHTS = np.arange(3.0)
TABLE = [1, 2]
PAIR = (1.0, 2.0)


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
    "Stack": rvm.Stack,
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


def rewritten() -> None:
    """Write what is said now; the difference is to be read."""
    blocks = [body.rstrip("\n") + "\n" + said(body) for body, _ in cases()]
    CASES.write_text("\n".join(blocks))


if __name__ == "__main__":
    rewritten()
