"""What is said when a run of a Python function fails: in words of Python, there and back."""

from __future__ import annotations

import pickle
import re
import textwrap

import numpy as np
import pytest

import rvm

FOREIGN = re.compile(
    r"\b(alloc|uncompute|register|freed|free|arm|come-from|instruction)\b|`(add|sub|end|undo)\b"
)
"""Words of the assembly language that are not of Python."""
HEAD = "def f(x: i64, y: i64, v: Array[i64, 'n'], s: Stack[i64], z: f64):\n"
NAMES = {"rvm": rvm, "np": np, "i64": rvm.i64, "f64": rvm.f64, "Array": rvm.Array}
NAMES["Stack"] = rvm.Stack
NAMES["halve"] = rvm.reversible.source("def halve(y: f64, x: f64):\n    y += x / 2\n", NAMES)
BODIES = {
    "with rvm.ancilla(y + 1) as t:\n    t += 1": ("R001", "`t` ends with a wrong value"),
    "with rvm.ancilla(x) as t:\n    x += 1": ("R001", "`t` ends with a wrong value"),
    "t: i64 = 5\nt += 1\ndel t": ("R001", "`t` ends with a wrong value"),
    "with rvm.ancilla(i64, 3) as t:\n    t[0] += 1": ("R001", "`t` ends with a wrong value"),
    "if x == 3:\n    x += 1": ("R002", "this block was run, but `x == 3` does not hold after it"),
    "if rvm.when(x == 4, x == 3):\n    x += 1": ("R002", "this block was not run, but"),
    "if (\n    x == 3\n):\n    x += 1": ("R002", "this block was run, but `x == 3` does not hold"),
    "while rvm.loop(x < 9, x > 0):\n    x += 1": ("R002", "holds before the first iteration"),
    "for i in range(x):\n    x += v[i]": ("R001", "the last value of the loop over `i`"),
    "v[y] += v[0]": ("R004", "overlap"),
    "v[x] += 1": ("R003", "outside 0 … 2"),
    "rvm.pop(x, s)": ("R006", "a place that is not zero"),
    "with rvm.ancilla(0) as t:\n    rvm.pop(t, s)\n    rvm.pop(x, s)": ("R006", "not zero"),
    "z *= y": ("R007", "loses the value"),
    "x += 1 // y": ("R005", "division by zero"),
    "with rvm.ancilla(2.0) as t:\n    rvm.iterate(halve, z, t, times=5, pebbles=4)": (
        "R001",
        "the first argument of `rvm.iterate` is not zero before it",
    ),
    "assert x == y, f'the free arm is {x}'": ("R013", "the free arm is 3"),
}


def failure(f: object) -> str:
    with pytest.raises(rvm.RvmError) as caught:
        f(3, 0, np.array([1, 2, 3]), [5], 1.0)  # type: ignore[operator]
    return str(caught.value)


@pytest.mark.filterwarnings("ignore::rvm.AssemblyWarning")
@pytest.mark.parametrize("body", BODIES)
def test_failures_are_told_in_words_of_python(body: str) -> None:
    code, says = BODIES[body]
    f = rvm.reversible.source(HEAD + textwrap.indent(body, "    "), NAMES, name="f.py")
    said = failure(f)
    assert f"error[{code}]" in said and says in said
    if code != "R013":
        assert not FOREIGN.search(said), said
    lib = pickle.loads(pickle.dumps(rvm.Library(f.program)))
    assert failure(lib.f) == said


def test_failures_of_runs_back_are_told_in_words_of_python() -> None:
    bodies = {
        "if rvm.when(x == 4, x == 3):\n    x += 1": "this block was undone, but `x == 4` does not",
        "with rvm.ancilla(5) as t:\n    t += x\n    x += y\n    t -= 2": "`t` does not have its",
    }
    for body, says in bodies.items():
        f = rvm.reversible.source(HEAD + textwrap.indent(body, "    "), NAMES, name="f.py")
        said = failure(~f)
        assert says in said and not FOREIGN.search(said), said


def test_the_exit_of_an_assertion_is_that_of_a_failed_check() -> None:
    f = rvm.reversible.source("def f(x: i64):\n    assert x > 0\n", NAMES)
    with pytest.raises(rvm.AssertionFailed) as caught:
        f(0)
    assert caught.value.exit_code == 4
    lib = rvm.assemble('func g(x: i64)\n    extern both\n        assert x > 0, "no"\n    end\n')
    with pytest.raises(rvm.AssertionFailed):
        lib.g(x=0)
