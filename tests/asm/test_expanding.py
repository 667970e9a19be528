"""Expansion to strict code: the same results, there and back, one function an instruction."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from attack.programs import sound as programs_random
from rvm_asm import assemble
from rvm_asm.expand import expand
from sizes import part, sized

import rvm
from rvm.expr import Apply, Expr, walk
from rvm.faults import RvmError
from rvm.program import Program
from rvm.verify import verify


def values(program: Program, expression: Expr) -> Iterator[Apply]:
    """The functions inside an operand's functions, lazily evaluated ones and lengths left out."""
    for node in walk(expression):
        if isinstance(node, Apply) and node.fn not in ("and", "or"):
            for arg in node.args:
                if isinstance(arg, Apply) and arg.fn not in ("dim", "len"):
                    yield arg


def run(program: Program, **inputs: Any) -> list[dict[str, Any]]:
    """The results of a run and of the run back."""
    f = rvm.Library(program)["main" if "main" in program else program.entry]
    there = dict(f(**deepcopy(inputs)))
    return [deepcopy(there), dict((~f)(**there))]


def agree(text: str, **inputs: Any) -> Program:
    """Assemble both ways and compare; the expanded program."""
    fused, strict = assemble(text), assemble(text, expand=True)
    verify(strict)
    assert expand(strict).functions == strict.functions
    for one, two in zip(run(fused, **inputs), run(strict, **inputs), strict=True):
        assert one.keys() == two.keys()
        for name in one:
            assert repr(one[name]) == repr(two[name]), name
    return strict


def test_scalars() -> None:
    text = "func main(v: f64, p: f64, q: f64, r: f64)\n add v, 2*p*q + 3*r - sin(cos(p) * q)\n"
    strict = agree(text, v=1.0, p=2.0, q=3.0, r=0.5)
    function = strict.functions[0]
    assert not [a for i in function.code for arg in i.args for a in values(strict, arg)]
    assert {r.name for r in function.registers[4:]} == {"t"}


def test_the_lines_of_the_design() -> None:
    """add v, 2*p*q + 3*r, step by step."""
    text = "func main(v: i64, p: i64, q: i64, r: i64)\n add v, 2*p*q + 3*r\n"
    ops = [i.op for i in agree(text, v=1, p=2, q=3, r=4).functions[0].code]
    assert ops == ["alloc"] * 3 + ["add"] + ["free"] * 3


def test_arrays() -> None:
    text = (
        "func main(y: f64[m], A: f64[m, n], x: f64[n], s: f64)\n"
        " add y, A @ (x * 2 + 1) + sum(x * x)\n add s, (x + 1) @ (x - 1)\n"
    )
    x = np.array([1.0, 2.0, 3.0])
    agree(text, y=np.zeros(2), A=np.arange(6.0).reshape(2, 3), x=x, s=0.0)


def test_indices() -> None:
    text = (
        "func main(x: f64[n], i: i64)\n add x[2 * i + 1], x[2 * (i + 0)] * 2 + 1\n"
        " swap x[i + 1], x[n - 1]\n add x[i + 0 : i + 1], x[i * 0 + 4]\n"
    )
    agree(text, x=np.array([1.0, 2.0, 3.0, 4.0, 5.0]), i=1)


@pytest.mark.parametrize(("x", "y"), [(1, 0), (5, 3), (-2, 7), (0, 0), (4, 1)])
def test_nested_conditions(x: int, y: int) -> None:
    text = """
func main(x: i64, y: i64, n: i64)
    if x * 2 + 1 > y, x + y * 0 > y - 5 - x
        add n, x * y + 1
    elseif x + y == 5 and (x - 1) * 2 < 3
        dec n
    else
        add n, x * x * x
    end
    while n * 2 < x * x, n != x * 0 - 100
        inc n
    end
    for i = x - 1 to x + y * 2 step 1 + 1
        add n, i * (i + 1) * 2
    end
"""
    try:
        assemble(text)
        run(assemble(text), x=x, y=y, n=-100)
    except RvmError as error:
        with pytest.raises(type(error)):
            run(assemble(text, expand=True), x=x, y=y, n=-100)
        return
    agree(text, x=x, y=y, n=-100)


def test_the_right_side_of_and_is_still_not_evaluated() -> None:
    text = (
        "func main(x: f64[n], i: i64, k: i64)\n if i + 1 < n and x[i + 1] * 2 > 0\n  inc k\n end\n"
    )
    agree(text, x=np.ones(3), i=7, k=0)
    agree(text, x=np.ones(3), i=1, k=0)


def test_arguments_by_value() -> None:
    text = (
        "func g(y: i64, a: i64)\n add y, a * a + 1\n"
        "func main(y: i64, k: i64)\n call g(y, 2 * k - 1)\n uncall g(y, k * (k + 1))\n"
    )
    agree(text, y=0, k=5)


def test_effects_and_allocs() -> None:
    text = (
        "func main(y: f64, x: f64)\n alloc t: f64 = sin(x) * 2 + 1\n add y, t * (t + 1)\n"
        " extern both\n  assert x * 2 + 1 > 0 - 5\n end\n free t = sin(x) * 2 + 1\n"
    )
    agree(text, y=0.0, x=0.25)


def test_infinities_and_signed_zeros_survive_temporaries() -> None:
    text = "func main(y: f64, x: f64)\n add y, atan2(x * 0, 0 - 1) + 1 / (x * inf)\n"
    agree(text, y=0.0, x=-1.0)


@pytest.mark.parametrize("seed", range(part(60)))
@sized
def test_random_programs(seed: int) -> None:
    """The same values bit for bit, or an error of the same kind, there and back."""
    text = programs_random.program(seed)
    fused, strict = assemble(text), assemble(text, expand=True)
    verify(strict)
    assert expand(strict).functions == strict.functions
    inputs = programs_random.inputs(seed)
    try:
        expected = run(fused, **inputs)
    except RvmError as error:
        with pytest.raises(type(error)):
            run(strict, **inputs)
        return
    for one, two in zip(expected, run(strict, **inputs), strict=True):
        for name in one:
            assert repr(one[name]) == repr(two[name]), name
