"""Bijections of the array on top of a stack: as those of an array that is no top."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rvm_asm import disassemble
from sizes import sample, thin

import rvm
from rvm.engines import executing
from rvm.faults import AssemblyError

ENGINES = executing()
N = 3
INNER = """
func whole(v: f64[3], by: f64[3])
    add v, 2.0 * by
    add v[0], 3.0
func one(v: f64, by: f64)
    add v, sin(by) + 1.0
func inner(v: f64[3], by: f64[3])
    call whole(1.0 - v, by)
func keep(v: f64, by: f64)
    add by, v * v
"""
LINES = {
    "an instruction": "add -A, x",
    "with a constant": "sub A + 2.0, x",
    "turned around": "add 2.0 - A, x",
    "with an array": "add A + x, 3.0",
    "an element": "add -A[1], x[0]",
    "of another": "sub 3.0 - 2.0 * A[k], x[0]",
    "a part": "add -A[1:], x[1:]",
    "an exchange": "swap -A, x",
    "of elements": "swap 1.0 - A[0], x[2]",
    "an argument": "call whole(-A, x)",
    "undone": "uncall whole(A + 1.0, x)",
    "handed on": "call inner(2.0 - A, x)",
    "an element as an argument": "call one(-A[2], x[0])",
    "as a value": "call keep(-A[2], x[0])",
    "in a loop": "for i = 0 to 2\n        call one(1.0 - A[i], x[i])\n"
    "        add -A[i], x[i]\n    end",
    "where it is asked": "if A[0] > 0.0, A[0] > 0.0\n        add -A[1], A[0]\n    end",
    "in a block": "with t = -A[0]\n        add -A[1], t\n    end",
    "moved": "push -A, r\n    pop A, r",
    "moved back": "push A, r\n    pop -A, r",
    "a gradient": "call one'(x[0], x[1]; 1.0, -A[1])",
}
BODY = "x: f64[3], k: i64)\n    alloc r: stack[f64[3]]\n    {}\n    free r\n"
HEADS = {
    "an array": "func f(A: f64[3], " + BODY,
    "a top": "func f(s: stack[f64[3]], " + BODY,
    "a field": "record P\n    m: f64\n    v: f64[3]\nend\nfunc f(s: stack[P], " + BODY,
}
NAMES = {"an array": "A", "a top": "s.top", "a field": "s.top.v"}


KINDS = ("of another", "handed on", "moved")
SEVERAL = "\n    ".join(LINES[what] for what in KINDS)
"""Lines of which each becomes other statements: engines know nothing of how they were written."""


def text_of(what: str, where: str) -> str:
    return text_with(LINES[what], where)


def text_with(line: str, where: str) -> str:
    return HEADS[where].format(line.replace("A", NAMES[where])) + INNER


def given(where: str, a: Any) -> Any:
    below = np.array([7.0, 8.0, 9.0])
    match where:
        case "an array":
            return {"A": a}
        case "a top":
            return {"s": [below, a]}
    return {"s": {"m": [1.0, 2.0], "v": [below, a]}}


def top(where: str, values: Any) -> list[float]:
    match where:
        case "an array":
            return list(values["A"])
        case "a top":
            return list(values["s"][-1])
    return list(values["s"]["v"][-1])


@sample
@pytest.mark.parametrize("strict", [False, True], ids=["tolerant", "strict"])
@pytest.mark.parametrize("where", ["a top", "a field"])
@pytest.mark.parametrize("what", LINES)
def test_they_do_what_they_do_to_arrays(what: str, where: str, strict: bool) -> None:
    do_alike(LINES[what], where, strict, "reference", 1e-14)


@sample
@pytest.mark.parametrize("strict", [False, True], ids=["tolerant", "strict"])
@pytest.mark.parametrize("where", ["a top", "a field"])
@pytest.mark.parametrize("engine", ENGINES)
def test_so_do_several_on_every_engine(engine: str, where: str, strict: bool) -> None:
    do_alike(SEVERAL, where, strict, engine, 1e-12)


def do_alike(line: str, where: str, strict: bool, engine: str, near: float) -> None:
    """Hold what a line does to an array on a stack to what it does to another, there and back."""
    a, x = np.array([0.5, -1.25, 2.0]), np.array([1.5, 0.25, -3.0])
    oracle = rvm.assemble(text_with(line, "an array")).f
    want = oracle.with_options(engine="reference")(A=a.copy(), x=x.copy(), k=1)
    f = rvm.assemble(text_with(line, where)).f.with_options(engine=engine, strict=strict)
    found = f(**given(where, a.copy()), x=x.copy(), k=1)
    assert top(where, found) == list(want["A"])
    assert list(found["x"]) == list(want["x"])
    back = (~f)(found)
    np.testing.assert_allclose(top(where, back), a, rtol=near, atol=near)
    np.testing.assert_allclose(back["x"], x, rtol=near, atol=near)
    if strict:
        assert top(where, back) == list(a)


@pytest.mark.parametrize("what", [w for w in LINES if w != "a gradient"])
def test_so_do_their_gradients(what: str) -> None:
    have_gradients_alike(LINES[what], "reference", 1e-14)


@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_so_do_those_of_several_on_every_engine(engine: str) -> None:
    have_gradients_alike(SEVERAL, engine, 1e-12)


def have_gradients_alike(line: str, engine: str, near: float) -> None:
    a, x = np.array([0.5, -1.25, 2.0]), np.array([1.5, 0.25, -3.0])
    seed = np.array([1.0, -2.0, 0.5])
    oracle = rvm.assemble(text_with(line, "an array")).f.with_options(engine="reference")
    want = oracle.vjp({"A": seed, "x": seed}, {"A": a, "x": x, "k": 1})
    f = rvm.assemble(text_with(line, "a top")).f
    found = f.with_options(engine=engine).vjp(
        {"s": [np.zeros(3), seed], "x": seed}, {**given("a top", a), "x": x, "k": 1}
    )
    np.testing.assert_allclose(top("a top", found), want["A"], rtol=near)
    np.testing.assert_allclose(found["x"], want["x"], rtol=near)


@pytest.mark.parametrize("what", LINES)
def test_they_are_disassembled_to_the_same_program(what: str) -> None:
    program = rvm.assemble(text_of(what, "a top")).program
    again = rvm.assemble(disassemble(program)).program
    assert [f.code for f in again.functions] == [f.code for f in program.functions]


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("push -s.top, s", "A016", "used together with the stack itself"),
        ("swap -s.top, s.top", "A016", "one place"),
        ("add -s.top, s.top", "A013", "also read by the expression"),
        ("add 1.0 - s.top[len(s)], 1.0", "A016", "used together with the stack itself"),
        ("call whole(-s.top, s.top)", "A014", ""),
        ("add s.top * s.top, 1.0", "A013", ""),
        ("add sin(s.top), 1.0", "A040", "must be a place"),
    ],
)
def test_what_they_are_refused_for(line: str, code: str, part: str) -> None:
    text = f"func f(s: stack[f64[3]])\n    {line}\n{INNER}"
    with pytest.raises(AssemblyError) as info:
        rvm.assemble(text)
    assert info.value.code == code
    assert part in str(info.value)
