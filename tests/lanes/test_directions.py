"""All directions together: tangents of a gradient program in lanes give a Hessian's columns."""

from __future__ import annotations

from typing import Any

import numpy as np

import rvm
from rvm.image import image_of
from rvm.run.lanes import run_lanes
from rvm.transform.duals import bar_slots

VECTOR = rvm.Options(engine="vector")
TEXT = """
func f(y: f64, x: f64[n], w: f64)
    alloc t: f64
    for i = 0 to n - 2
        add t, x[i] * x[i + 1]
        add y, exp(w * x[i]) + t * t
    end
    for i = 0 to n - 2
        sub t, x[i] * x[i + 1]
    end
    free t
"""


def test_a_hessian_is_one_run_in_lanes() -> None:
    """Against a Hessian by central differences of the function itself."""
    program = rvm.assemble(TEXT)
    gradient = rvm.gradient(program, "f", loss="y")
    tangent = rvm.tangent(gradient)
    f, t = program.program.function("f"), tangent.program
    g = gradient.program.function(gradient.program.entry)
    function = t.function(t.entry)
    x, w, n = np.array([0.3, -0.2, 0.5, 0.1]), 0.7, 4
    bars, dots = bar_slots(f), bar_slots(g)
    regs: list[Any] = [0.0, x, w]
    regs += [np.zeros(n) if k == 1 else 0.0 for k in bars]
    regs += [np.zeros_like(v) if isinstance(v, np.ndarray) else 0.0 for v in regs]
    assert len(regs) == function.n_args
    run = run_lanes(t, t.entry, regs, {dots[1]: np.eye(n)}, VECTOR)
    assert run.errors == {} and run.alone == ()
    hessian = run.regs[dots[bars[1]]]
    assert hessian.shape == (n, n)

    def value(v: np.ndarray[Any, Any]) -> float:
        return float(program.f(y=0.0, x=v.copy(), w=w).y)

    h, units = 1e-4, np.eye(n) * 1e-4
    for i in range(n):
        for j in range(n):
            a, b = units[i], units[j]
            second = value(x + a + b) - value(x + a - b) - value(x - a + b) + value(x - a - b)
            assert abs(hessian[i, j] - second / (4 * h * h)) < 1e-6
    assert np.allclose(x, [0.3, -0.2, 0.5, 0.1])
    # What the lanes share is not a vector: the values take no more work than in one run.
    assert image_of(t).code(t.entry, False) is not None
    assert np.ndim(run.regs[0]) == 1 and np.ndim(run.regs[2]) == 0


def test_registers_by_lane_and_shared() -> None:
    """The form of `run_lanes`: raw values in, raw values out, nothing changed that was passed."""
    program = rvm.assemble(
        "func f(q: fixed, a: i64[n], k: i64, s: stack[u8])\n    add q, 0.5\n    add a, k\n"
    )
    a, q = np.array([1, 2]), np.array([1 << 43, 0])
    run = run_lanes(program.program, "f", [None, a, 3, [7]], {0: q}, VECTOR)
    assert run.regs[0].tolist() == [3 << 42, 1 << 42] and run.regs[1].tolist() == [[4, 5]] * 2
    assert run.regs[2] == 3 and run.regs[3] == [7]
    assert a.tolist() == [1, 2] and q.tolist() == [1 << 43, 0]
    back = run_lanes(program.program, "f", run.regs, {0: run.regs[0], 1: run.regs[1]}, VECTOR, True)
    assert back.regs[0].tolist() == q.tolist() and back.regs[1].tolist() == [[1, 2]] * 2
