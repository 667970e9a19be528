"""Loops in machine code that exchange values with elements which should be zero, and may not be.

The reference engine says where such a run ends: at the end, or in the iteration whose `free` finds
something else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sizes import part, thin, wide

import rvm
from rvm.engines import LAW
from rvm.image import image_of
from rvm.ir.function import plan_of
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")

STORE = "alloc v: f64 = {e}\nswap v, {at}\nfree v"
LOOPS = {
    "up": (1, "for i = 0 to n - 1", [("x[i] * 2", "s[i, 0]")]),
    "down": (1, "for i = n - 1 downto 0", [("x[i] - c", "s[i + 1, 1]")]),
    "by two": (1, "for i = 1 to n - 1 step 2", [("x[i]", "s[n - i, 1]")]),
    "two arrays": (1, "for i = 0 to n - 1", [("x[i]", "s[i, 0]"), ("x[i] * c", "r[2 * i]")]),
    "a diagonal": (1, "for i = 0 to 1", [("c", "s[i, i]")]),
    "by its own": (1, "for i = 0 to n - 1", [("s[i, 0] + c", "s[i + 1, 0]")]),
    "in a row": (1, "for i = 0 to n - 1\nfor j = 0 to 1", [("x[i] + f64(j)", "s[i, j]")]),
    "in a column": (1, "for j = 0 to 1\nfor i = 0 to n - 1", [("x[i] * f64(j)", "s[i + 1, j]")]),
    "if": (1, "for i = 0 to n - 1\nif x[i] > 0", [("x[i]", "s[i, 0]")]),
    "one element": (0, "for i = 0 to n - 1", [("x[i]", "s[1, 0]")]),
    "some twice": (0, "for i = 0 to n - 1", [("x[i]", "s[i // 2, 0]")]),
    "in two places": (0, "for i = 0 to n - 1", [("x[i]", "s[i, 0]"), ("x[i]", "s[i + 1, 0]")]),
    "of others": (0, "for i = 0 to n - 1", [("x[i]", "out[i, 0]")]),
}
"""For each loop how many of its kind are found in it, its head, and what it stores where."""
ODD = (0.0, -0.0, 1.0, 1e-17, -1e-300, np.nan, np.inf)


def program(name: str, swapped: bool = False) -> rvm.Library:
    _, head, stores = LOOPS[name]
    heads = head.split("\n")
    body = "\n".join(STORE.format(e=e, at=at) for e, at in stores)
    if swapped:
        body = body.replace("swap v, s[", "swap s[").replace("]\nfree", "], v\nfree", 1)
        body = body if "], v" in body and "swap s[" in body else body.replace("], v\n", "]\n")
    loop = "\n".join([*heads, body, *["end"] * len(heads)])
    return rvm.assemble(
        f"""
func main(out: f64[n, m], x: f64[n], c: f64, w: f64[p, m], z: f64[q])
    alloc s: f64[p, m]
    alloc r: f64[q]
    add s, w
    add r, z
    routine
{loop}
    result
        add out, s[1:, :]
        add out[:, 0], r[:n]
    end
    sub r, z
    sub s, w
    free r
    free s
"""
    )


def inputs(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    return {
        "out": np.zeros((n, 2)),
        "x": rng.normal(size=n),
        "c": 0.75,
        "w": np.zeros((n + 1, 2)),
        "z": np.zeros(2 * n),
    }


def ended(engine: str, code: rvm.Library, stop: int | None, given: dict[str, Any]) -> Any:
    """Registers, time and bits at the end, or at a stop on the way, or at an error."""
    copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()}
    m = Machine.start(code, "main", copies, rvm.Options(engine=engine))
    error = ""
    try:
        m.run() if stop is None else m.seek(stop)
    except rvm.RvmError as found:
        error = str(found)
    values = [v.tobytes() if isinstance(v, np.ndarray) else repr(v) for v in m.state.top.regs]
    return values, m.time, m.state.top.pc, m.erased_bits, error


def same(code: rvm.Library, stop: int | None = None, **given: Any) -> Any:
    one, two = (ended(e, code, stop, given) for e in (LAW, "native"))
    assert one == two
    return two


def found(code: rvm.Library) -> int:
    """How many loops store what machine code looks at before them."""
    whole = image_of(code).code("main", False)
    return len(
        {head for loop in plan_of(whole, True, False).loops.values() for head in loop.vacant}
    )


@thin
@pytest.mark.parametrize("name", LOOPS)
def test_where_others_are_found_the_run_ends_there(name: str) -> None:
    want = LOOPS[name][0]
    code = program(name, swapped=len(name) % 2 == 0)
    assert found(code) == want
    failed = 0
    for n in (4, 9):
        time = same(code, **inputs(n))[1]
        rng = np.random.default_rng(n)
        for odd in ODD:
            given = inputs(n)
            given["w"][rng.integers(n + 1), rng.integers(2)] = odd
            given["z"][rng.integers(2 * n)] = odd * (name == "two arrays")
            failed += bool(same(code, **given)[-1])
            for stop in rng.integers(0, time + 1, 2):
                same(code, int(stop), **given)
    assert failed or name in ("of others",)


@wide
def test_gradients_and_results_of_lanes_are_those_of_others() -> None:
    for name in list(LOOPS)[: part(40)]:
        code, given = program(name), inputs(6)
        engines = [code.main.with_options(engine=e) for e in (LAW, "native")]
        grads = [f.vjp({"out": np.ones((6, 2))}, dict(given), wrt=("x", "c")) for f in engines]
        assert np.array_equal(grads[0]["x"], grads[1]["x"]) and grads[0]["c"] == grads[1]["c"]
        xs = np.stack([given["x"] * k for k in range(5)])
        outs = [f.map(**{**given, "x": xs}).out for f in engines]
        assert outs[0].tobytes() == outs[1].tobytes()
