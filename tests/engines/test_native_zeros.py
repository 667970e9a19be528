"""Sums that begin at -0 in machine code: which ones they are, and that nobody can tell."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.engines import ENGINES, executing
from rvm.faults import Fault
from rvm.image import image_of
from rvm.ir.function import plan_of
from rvm.ir.loop_facts import live_at
from rvm.ir.zeros import zeros
from rvm.registry import LAW
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")
COMPARED = (LAW, *(e for e in executing() if ENGINES[e].compiles))
"""The engine that is right, and the one with machine code."""
ODD = (0.0, -0.0, 1.5, -2.0, float("inf"), float("nan"), 5e-324)
HEAD = """
func f(y: f64, v: f64[n], a: f64, b: f64, i: i64)
    local r: f64
    local q: f64
    local g: f64
    local h: f64
    fresh r
    fresh q
    add r, a * b
"""
TAIL = """
    drop q
    drop r
"""
QUIET = {
    "a product": "    add q, r * b",
    "a quotient": "    sub q, r / b",
    "a difference": "    add q, -(a - r) + r",
    "an ancilla": "    alloc g = r * a\n    add q, g\n    free g = r * a",
    "an ancilla of another": "    alloc h = r * a\n    alloc g = h - r\n    add q, g * b\n"
    "    free g = h - r\n    free h = r * a",
    "two of one register": "    alloc g = r * a\n    add q, g\n    free g = r * a\n"
    "    alloc g = a * b\n    add y, g\n    free g = a * b",
    "a sum that is told": "    add q, r\n    add y, q",
}
"""What tells no sign of the zero of r."""
TELLING = {
    "a result": "    add y, r",
    "an element": "    add v[0], r",
    "a divisor": "    add q, a / r",
    "a function": "    add q, atan2(r, a)",
    "a branch": "    if r == 0.0\n        add q, a\n    end",
    "an ancilla that is a result": "    alloc g = r * a\n    add y, g\n    free g = r * a",
    "an ancilla of it": "    alloc h = r * a\n    alloc g = h * b\n    add y, g\n"
    "    free g = h * b\n    free h = r * a",
    "an ancilla over a jump": "    alloc g = r * a\n    if i == 0\n        add q, a\n    end\n"
    "    add q, g\n    free g = r * a",
    "an ancilla that changes": "    alloc g = r * a\n    add g, 1.0\n    add q, g\n"
    "    sub g, 1.0\n    free g = r * a",
    "a swap": "    swap r, q",
}
"""What may tell it."""
GRADIENTS = {
    "products": "    add y, a * b * (a - b)\n",
    "divided": "    add y, (a / b - b) / a\n",
    "a routine": "    routine\n        alloc c = a / b\n        alloc d = c * c - a * c\n"
    "    result\n        add y, d * c + a\n    end\n",
    "functions": "    add y, sin(a * b) * sqrt(a) + exp(a / b)\n",
    "calls": "    call g(y, a, b)\n    call g(y, b, a)\n",
    "loops": "    for k = 1 to i\n        add y, a * b * sin(a)\n    end\n",
}


def text_of(body: str) -> str:
    return HEAD + body + TAIL


def sums(body: str) -> set[str]:
    code = image_of(rvm.assemble(text_of(body))).code("f", False)
    found = zeros(code, plan_of(code, True, 0).flow)
    return {code.function.registers[k].name for k in found.sums}


def bits(value: Any) -> Any:
    """A value of which all bits are told but those of NaNs."""
    if isinstance(value, np.ndarray):
        return [bits(v) for v in value.tolist()]
    return "nan" if value != value else repr(value)


def state(m: Machine) -> Any:
    """The live registers of all frames."""
    return [
        (f.code.name, f.pc, {k: bits(f.regs[k]) for k in sorted(live_at(f.code, f.pc))})
        for f in m.state.frames
    ]


def machine(program: rvm.Program, engine: str, a: float, b: float, i: int = 0) -> Machine:
    v = np.array([-0.0, 1.0])
    return Machine(program, y=-0.0, v=v, a=a, b=b, i=i, engine=engine)


@pytest.mark.parametrize("what", QUIET)
def test_sums_whose_sign_cannot_be_observed(what: str) -> None:
    assert "r" in sums(QUIET[what])


@pytest.mark.parametrize("what", TELLING)
def test_sums_whose_sign_can_be_observed(what: str) -> None:
    assert "r" not in sums(TELLING[what])


@thin
@pytest.mark.parametrize("what", QUIET | TELLING)
def test_all_states_on_the_way_are_those_of_the_tree_walk(what: str) -> None:
    program = rvm.assemble(text_of((QUIET | TELLING)[what])).program
    for a, b in product(ODD, repeat=2):
        one, other = (machine(program, e, a, b) for e in COMPARED)
        while not one.finished:
            one.step()
            other.seek(one.time)
            assert state(one) == state(other), (a, b, one.time)
            again = machine(program, "native", a, b)
            again.seek(one.time)
            assert state(one) == state(again), (a, b, one.time)


@pytest.mark.parametrize("what", ["an ancilla", "an ancilla of another", "two of one register"])
def test_so_are_those_at_an_error(what: str) -> None:
    program = rvm.assemble(
        text_of(QUIET[what].replace("add q", "add v[i], 1.0\n    add q"))
    ).program
    for a, b in product(ODD, repeat=2):
        seen: list[Any] = []
        for engine in COMPARED:
            m = machine(program, engine, a, b, 2)
            with pytest.raises(Fault):
                m.run()
            seen.append((m.time, state(m)))
        assert seen[0] == seen[1], (a, b)


@thin
@pytest.mark.parametrize("what", GRADIENTS)
@pytest.mark.parametrize("t", ["f64", "f32"])
def test_gradients_have_the_bits_of_the_tree_walk(what: str, t: str) -> None:
    head = f"func f(y: {t}, a: {t}, b: {t}, i: i64)\n"
    other = f"func g(y: {t}, a: {t}, b: {t})\n    add y, a * a / b\n"
    body = GRADIENTS[what].replace("alloc c", f"alloc c: {t}").replace("alloc d", f"alloc d: {t}")
    f = rvm.assemble(f"{head}{body}{other}").f
    for a, b, seed in product(ODD, ODD, (1.0, -0.0)):
        start = {"y": -0.0, "a": a, "b": b, "i": 2}
        seen: list[Any] = []
        for engine in COMPARED:
            try:
                found = f.with_options(engine=engine).vjp({"y": seed}, start)
                seen.append({k: bits(v) for k, v in dict(found).items()})
            except Fault as error:
                seen.append(error.code)
        assert seen[0] == seen[1], (a, b, seed)
