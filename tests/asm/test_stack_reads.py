"""The top of a stack is a place, and how many values it holds a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rvm_asm import assemble as program_of
from rvm_asm import disassemble
from sizes import some

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing
from rvm.faults import AssemblyError, RvmError

TEXT = """
func f(s: stack[i64], n: i64, y: i64, b: bool)
    xor b, empty(s)
    for i = 1 to n
        alloc t: i64 = i * i
        push t, s
        free t
        add y, top(s) + 100 * len(s)
    end
    add s.top, 5
    if not empty(s)
        add y, s.top
    end

func curve(y: f64, s: stack[f64], n: i64)
    for i = 1 to n
        add y, sin(top(s)) * f64(len(s))
        mul s.top, 1.5
    end

func spin(y: f64, s: stack[c128])
    add y, s.top.re * s.top.im
    add s.top, (1.0, 2.0)'c128

func swapped(s: stack[u8], x: u8)
    swap s.top, x

func inner(x: i64, n: i64)
    add x, n

func passed(s: stack[i64])
    call inner(s.top, len(s))
"""


@pytest.mark.parametrize("engine", executing())
@some
def test_reads_and_changes_there_and_back(engine: str) -> None:
    lib = rvm.assemble(TEXT)
    on: dict[str, Any] = {"engine": engine}
    there = lib.f(s=[7], n=3, y=0, b=False, **on)
    assert dict(there) == {
        "s": [7, 1, 4, 14],
        "n": 3,
        "y": 1 + 4 + 9 + 100 * (2 + 3 + 4) + 14,
        "b": False,
    }
    assert dict((~lib.f)(**there, **on)) == {"s": [7], "n": 3, "y": 0, "b": False}
    assert lib.spin(y=0.0, s=[9j, 2 + 3j], **on).y == 6.0
    assert lib.spin(y=0.0, s=[9j, 2 + 3j], **on).s == [9j, 3 + 5j]
    assert dict(lib.swapped(s=[1, 2], x=9, **on)) == {"s": [1, 9], "x": 2}
    assert lib.passed(s=[4, 10, 5], **on).s == [4, 10, 8]


def test_derivatives_go_to_the_value_on_top() -> None:
    lib = rvm.assemble(TEXT)
    at: dict[str, Any] = {"y": 0.0, "s": [0.7, 0.2], "n": 5}
    factors = 1.5 ** np.arange(5)
    slope = float(np.sum(2 * factors * np.cos(0.2 * factors)))
    bend = float(np.sum(-2 * factors**2 * np.sin(0.2 * factors)))
    assert np.allclose(lib.curve.grad(loss="y", **at).s, [0, slope], rtol=1e-12)
    assert np.isclose(lib.curve.jvp({"s": [0.0, 1.0]}, **at)[1].y, slope, rtol=1e-12)
    for method in ("forward-over-reverse", "taylor"):
        found = lib.curve.hessian(loss="y", **at, method=method).s.s
        assert np.allclose(found, [[0, 0], [0, bend]], rtol=1e-10)


@pytest.mark.parametrize("engine", executing())
@some
def test_lanes_read_stacks_of_their_own(engine: str) -> None:
    f = rvm.assemble(TEXT).curve
    tops = np.linspace(0, 1, 40)
    many = f.map(y=np.zeros(40), s=[[0.5, float(t)] for t in tops], n=4, engine=engine)
    for k, t in enumerate(tops):
        one = f(y=0.0, s=[0.5, float(t)], n=4)
        assert many.y[k] == one.y and list(many.s[k]) == one.s


@pytest.mark.parametrize("engine", executing())
@some
def test_an_empty_stack_has_no_top(engine: str) -> None:
    with pytest.raises(RvmError) as failed:
        rvm.assemble(TEXT).curve(y=0.0, s=[], n=1, engine=engine)
    assert failed.value.code == "R006" and failed.value.where.line == 17


def test_files_and_disassembled_code_keep_them() -> None:
    program = program_of(TEXT)
    assert decode(encode(program)) == program
    assert encode(program_of(disassemble(program))) == encode(program)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("add s.len, 1", "A034"),
        ("push s.top, s", "A016"),
        ("pop s.top, s", "A016"),
        ("add s.top, s.top", "A013"),
        ("add y, top(y)", "A040"),
        ("add y, s", "A040"),
        ("add y, y.top", "A055"),
        ("add y, s.middle", "A055"),
        ("call g(s, s.top)", "A014"),
    ],
)
def test_what_is_not_a_read_is_refused(line: str, code: str) -> None:
    text = f"func f(s: stack[i64], y: i64)\n    {line}\nfunc g(s: stack[i64], y: i64)\n"
    text += "    push y, s\n"
    with pytest.raises(AssemblyError) as refused:
        program_of(text)
    assert [d.code for d in refused.value.diagnostics] == [code]


def test_what_is_shown_of_stacks_and_arrays() -> None:
    printed: list[str] = []
    f = rvm.assemble(
        """
func f(s: stack[i64], e: stack[f64], a: i64[m, n])
    extern forward
        print "{:<]} {:()} {:<]} {:{}} {:[]} {:[]}", s, s, e, a, a[0, 0], s
    end
"""
    ).f
    f(s=[1, 2], e=[], a=np.arange(4).reshape(2, 2), output=printed.append)
    assert printed == ["<2, 1] (2, 1) nil {{0, 1}, {2, 3}} 0 [2, 1]"]


APART = """
func f(s: stack[c128], t: stack[i64], y: c128, k: i64, n: i64)
    for i = 1 to k
        if not empty(t) and top(t) > 2
            add y, s.top * 2
            add s.top.im, f64(top(t))
            alloc u: i64
            pop u, t
            add n, u
            push u, t
            free u
        end
        swap s.top, y
    end
"""


@pytest.mark.parametrize("engine", executing())
@some
def test_lanes_that_part_change_tops_of_their_own(engine: str) -> None:
    f = rvm.assemble(APART.replace("n: i64)", "n: i64 = 0)")).f
    ks = np.arange(50) % 4
    stacks = [[1j, complex(k, 1)] for k in range(50)]
    tops = [[[], [1], [5], [9, 3]][k % 4] for k in range(50)]
    ys = np.full(50, 1 + 0j)
    many = f.map(s=stacks, t=tops, y=ys.copy(), k=ks, n=np.zeros(50, int), engine=engine)
    for k in range(50):
        one = f(s=stacks[k], t=tops[k], y=1 + 0j, k=int(ks[k]))
        assert list(many.s[k]) == one.s and many.y[k] == one.y and many.n[k] == one.n
        assert list(many.t[k]) == one.t


def test_an_assertion_shows_no_stack() -> None:
    with pytest.raises(rvm.AssemblyError, match="a stack is not a value"):
        rvm.assemble('func f(s: stack[i64])\nextern both\nassert empty(s), "text", s\nend\n')
