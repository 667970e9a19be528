"""Loops that store states and take them back, and add to neighbours: the law's bits and stops."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import LAW
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")

LOOPS = ("for i = 1 to n - 2", "for i = n - 2 downto 1")
STATE = """
alloc v: f64 = u[i] + c * (u[i - 1] - 2.0 * u[i] + u[i + 1])
swap v, s[i]
free v
"""


def made(body: str, loop: str = LOOPS[0]) -> rvm.Library:
    return rvm.assemble(
        f"""
        func main(s: f64[n], u: f64[n], k: i64[n], c: f64, total: f64)
            {loop}
                {body}
            end
        """
    )


def ended(engine: str, program: rvm.Library, undo: bool, stop: int | None, inputs: Any) -> Any:
    """Registers, costs and position at the end, or at a stop on the way, or at an error."""
    copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
    m = Machine.start(program, "main", copies, rvm.Options(engine=engine), undo=undo)
    error = ""
    try:
        m.run() if stop is None else m.seek(stop)
    except rvm.RvmError as found:
        error = str(found)
    values = [v.tobytes() if isinstance(v, np.ndarray) else repr(v) for v in m.state.top.regs]
    return values, m.time, m.state.top.pc, m.state.account.erased_bits, error


def same(program: rvm.Library, undo: bool = False, stop: int | None = None, **inputs: Any) -> Any:
    """Where both engines come to, which is the same place with the same bits."""
    one, two = (ended(e, program, undo, stop, inputs) for e in (LAW, "native"))
    assert one == two
    return two


def numbers(n: int, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    found = {"s": np.zeros(n), "u": rng.normal(size=n), "k": np.arange(n)[::-1].copy()}
    return {**found, "c": 0.1, "total": 0.0, **more}


@thin
@pytest.mark.parametrize("loop", LOOPS)
def test_states_are_stored_and_removed(loop: str) -> None:
    program = made(STATE, loop)
    for n in (2, 3, 17, 40):
        inputs = numbers(n)
        inputs["u"][n // 2] = math.inf
        state = ended("native", program, False, None, inputs)[0][0]
        if n > 2:
            assert np.isnan(np.frombuffer(state)[n // 2])
        time = same(program, **inputs)[1]
        stored = {**inputs, "s": np.frombuffer(state).copy()}
        assert same(program, undo=True, **stored)[0][0] == bytes(8 * n)
        if n == 40:
            for stop in range(0, time, 7):
                same(program, stop=stop, **inputs)
                same(program, undo=True, stop=stop, **stored)


@thin
@pytest.mark.parametrize("at", [1, 20, 38])
@pytest.mark.parametrize("held", [-0.0, 1e-300, 1.0, math.nan])
@pytest.mark.parametrize("undo", [False, True])
@sample
def test_a_condition_that_holds_in_one_iteration(at: int, held: float, undo: bool) -> None:
    """What is not zero before, or not what is to be removed; some of it is rounding."""
    program = made(STATE)
    inputs = numbers(40)
    if undo:
        inputs["s"] = np.frombuffer(ended(LAW, program, False, None, inputs)[0][0]).copy()
        inputs["s"][at] += held
    else:
        inputs["s"][at] = held
    *_, error = same(program, undo=undo, **inputs)
    # What the array holds gives the unit; before the first iteration it holds nothing else.
    alone = at == 1 and not undo and held != 0
    assert bool(error) == (abs(held) > 1e-200 or math.isnan(held) or alone)


@thin
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("near", list(product([-1, 0, 1], repeat=3)))
@sample
def test_elements_gather_what_iterations_add(loop: str, near: tuple[int, ...]) -> None:
    """The order of the additions is told by their rounding."""
    body = "\n".join(
        f"{word} s[i + {d}], {by}"
        for word, d, by in zip(
            ("add", "sub", "add"), near, ("u[i]", "u[i - 1] * c", "1e3 * u[i + 1]"), strict=True
        )
    )
    program = made(body, loop)
    for n in (3, 17, 37):
        inputs = numbers(n, s=np.random.default_rng(1).normal(size=n))
        time = same(program, **inputs)[1]
        same(program, undo=True, **inputs)
        same(program, stop=time // 2, **inputs)


def test_sums_are_gathered_before_what_they_are_made_of_is_removed() -> None:
    """As adjoints are: what an iteration takes out of one array it adds to parts of another."""
    body = """
        fresh g: f64
        swap g, u[i]
        add s[i - 1], g * c
        sub s[i], g * c * 2.0
        add s[i], g
        add s[i + 1], g * c
        drop g
    """
    for loop in LOOPS:
        program = made(body, loop)
        for n in (17, 50):
            inputs = numbers(n, s=np.random.default_rng(2).normal(size=n))
            values, *_, erased, _ = same(program, **inputs)
            assert erased == 64 * (n - 2)
            u = np.frombuffer(values[1])
            assert not u[1:-1].any()
            assert (u[[0, -1]] == inputs["u"][[0, -1]]).all()


@thin
@pytest.mark.parametrize(
    "body",
    [
        "add s[i], u[i]",
        "add s[i], s[i - 1]",
        "add s[i], u[i]\n add s[i + 1], s[i - 1]",
        "add s[i], u[i]\n add s[i + 1], u[i]\n add total, s[i]",
        "add s[i], u[i]\n add s[k[i]], u[i]",
        "add s[i], u[i]\n add s[i + 1], exp(u[i])",
        "add s[i], u[i]\n add s[i + 1], u[i]\n mul s[i], 2.0",
        "alloc v: f64 = s[i - 1] + 1.0\n swap v, s[i]\n free v",
        "swap s[i], s[i + 1]\n add s[i], u[i]",
        "add total, u[i]\n alloc v: f64 = u[i]\n free v = u[i]",
        "add s[2], u[i]\n alloc v: f64 = u[i]\n add v, c\n sub v, c\n free v = u[i]",
    ],
)
@sample
def test_iterations_that_depend_on_each_other(body: str) -> None:
    program = made(body)
    inputs = numbers(30)
    same(program, **inputs)
    same(program, undo=True, **inputs)
