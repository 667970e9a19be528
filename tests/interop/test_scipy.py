"""Losses as SciPy takes them, against derivatives by hand and SciPy's own."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sizes import thin, wide

import rvm
from rvm.faults import UsageError
from rvm.interop.scipy import objective

optimize = pytest.importorskip("scipy.optimize")
EXAMPLES = Path(__file__).parents[2] / "examples"

ROSENBROCK = """
func rosen(y: f64, x: f64[n])
    for i = 0 to n - 2
        add y, 100.0 * (x[i+1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    end
"""


def test_rosenbrock_has_scipys_own_derivatives() -> None:
    goal = objective(rvm.assemble(ROSENBROCK).rosen, "y", "x")
    x = np.array([1.3, 0.7, 0.8, 1.9, -1.2])
    value, gradient = goal.fun(x)
    assert value == pytest.approx(optimize.rosen(x), rel=1e-14)
    np.testing.assert_allclose(gradient, optimize.rosen_der(x), rtol=1e-13)
    np.testing.assert_allclose(goal.hess(x), optimize.rosen_hess(x), rtol=1e-12, atol=1e-11)
    p = np.array([0.1, -2.0, 3.0, 0.5, 1.0])
    np.testing.assert_allclose(goal.hessp(x, p), optimize.rosen_hess_prod(x, p), rtol=1e-12)


@thin
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("copied", [copy, deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_a_copy_is_the_same_objective(copied: Any, used: bool) -> None:
    goal = objective(rvm.assemble(ROSENBROCK).rosen, "y", "x", x=np.array([-1.2, 1.0, 0.5]))
    at = np.array([1.3, 0.7, 0.8])
    if used:
        goal.hess(at)
    other = copied(goal)
    assert other.fun(at)[0] == goal.fun(at)[0] == copied(goal.fun)(at)[0]
    np.testing.assert_array_equal(other.hess(at), goal.hess(at))
    np.testing.assert_array_equal(other.x0, goal.x0)


@thin
@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "trust-ncg", "trust-exact", "L-BFGS-B"])
def test_minimize_finds_the_valleys_end(method: str) -> None:
    goal = objective(rvm.assemble(ROSENBROCK).rosen, "y", "x", x=np.array([-1.2, 1.0, 0.5]))
    hessian = {"hess": goal.hess} if method.startswith(("Newton", "trust")) else {}
    found = optimize.minimize(goal.fun, goal.x0, jac=True, method=method, **hessian)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)
    if method == "trust-ncg":
        again = optimize.minimize(goal.fun, goal.x0, jac=True, method=method, hessp=goal.hessp)
        np.testing.assert_allclose(again.x, found.x, atol=1e-6)


def test_several_parameters_complex_ones_and_fixed_data() -> None:
    program = rvm.assemble(
        """
func fit(y: f64, a: f64, z: c128[n], M: f64[m, n], t: f64[m])
    for i = 0 to m - 1
        for j = 0 to n - 1
            add y, (a * M[i, j] * z[j].re + z[j].im ** 2 - t[i]) ** 2
        end
    end
"""
    )
    rng = np.random.default_rng(1)
    m, t = rng.normal(size=(3, 2)), rng.normal(size=3)
    z0 = np.array([1 + 2j, -0.5 + 1j])
    goal = objective(program.fit, "y", ["a", "z"], a=0.7, z=z0, M=m, t=t)

    def loss(v: np.ndarray) -> float:
        re, im = v[1::2], v[2::2]
        return float(np.sum((v[0] * m * re + im**2 - t[:, None]) ** 2))

    np.testing.assert_array_equal(goal.x0, [0.7, 1, 2, -0.5, 1])
    assert goal.value(goal.x0) == pytest.approx(loss(goal.x0), rel=1e-14)
    assert optimize.check_grad(goal.value, goal.grad, goal.x0) < 1e-5
    np.testing.assert_allclose(
        goal.grad(goal.x0), optimize.approx_fprime(goal.x0, loss), rtol=1e-6, atol=1e-5
    )
    by_gradient = np.array(
        [(goal.grad(goal.x0 + e) - goal.grad(goal.x0 - e)) / 2e-5 for e in 1e-5 * np.eye(5)]
    )
    np.testing.assert_allclose(goal.hess(goal.x0), by_gradient, rtol=1e-8, atol=1e-8)
    back = goal.unpack(goal.x0)
    assert back["a"] == 0.7 and isinstance(back["a"], float)
    np.testing.assert_array_equal(back["z"], z0)
    np.testing.assert_array_equal(goal.pack(z=z0, a=0.7), goal.x0)


def test_an_array_element_or_a_complex_part_as_the_loss() -> None:
    program = rvm.assemble(
        "func f(r: f64[3], z: c128, x: f64[3])\n    add r, x * x * x\n    add z.im, x[0] * x[2]\n"
    )
    x = np.array([1.0, 2.0, 3.0])
    goal = objective(program.f, "r[1]", "x")
    assert goal.value(x) == 8.0
    np.testing.assert_array_equal(goal.grad(x), [0, 12, 0])
    np.testing.assert_array_equal(goal.hess(x), np.diag([0, 12.0, 0]))
    goal = objective(program.f, "z.im", "x", z=2j)
    assert goal.value(x) == 5.0
    np.testing.assert_array_equal(goal.grad(x), [3, 0, 1])


@wide
def test_a_perfect_embedding_of_the_petersen_graph() -> None:
    program = rvm.load(EXAMPLES / "petersen.rasm")
    start = np.random.default_rng(3).normal(size=(10, 5))
    goal = objective(program.loss, "y", "x", x=start)
    found = optimize.minimize(goal.fun, goal.x0, jac=True, method="BFGS", options={"gtol": 1e-9})
    best = goal.unpack(found.x)["x"]
    assert best.shape == (10, 5)
    assert found.fun < 1e-12
    far = np.linalg.norm(best[0] - best[2])
    near = np.linalg.norm(best[0] - best[1])
    assert far / near == pytest.approx(np.sqrt(2), abs=1e-4)


def test_the_vector_is_not_kept_but_copied() -> None:
    goal = objective(rvm.assemble(ROSENBROCK).rosen, "y", "x")
    x = np.array([0.0, 0.0])
    assert goal.value(x) == 1.0
    x[0] = 1.0
    assert goal.value(x) == 100.0
    np.testing.assert_array_equal(x, [1.0, 0.0])


def test_values_that_are_not_the_vectors_are_refused() -> None:
    program = rvm.assemble(
        "func f(y: f64, A: f64[m, k], b: f64[n], z: c128)\n    add y, sum(A * A) + sum(b)\n"
    )
    start = {"A": np.zeros((2, 3)), "b": np.zeros(2), "z": 0j}
    goal = objective(program.f, "y", list(start), **start)
    np.testing.assert_array_equal(
        goal.pack(A=[[1, 2, 3], [4, 5, 6]], b=[7, 8], z=9), [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    )
    for wrong, said in (
        ({"A": np.ones(2), "b": np.ones(6)}, "2 dimensions, not 1"),
        ({"A": np.ones((3, 2))}, r"the shape \[2, 3\] of its start value, not \[3, 2\]"),
        ({"A": np.ones((2, 2)), "b": np.ones(4)}, r"not \[2, 2\]"),
        ({"b": np.ones(2) * 1j}, "expected a real number"),
        ({"b": ["1", "2"]}, "expected a real number"),
        ({"b": np.full(2, 2**53 + 1)}, "not a value of f64"),
        ({"b": np.ma.array([1.0, 2.0], mask=[True, False])}, "masked"),
    ):
        with pytest.raises(rvm.InputError, match=said):
            goal.pack(**{**start, **wrong})
    one = objective(rvm.assemble("func g(y: f64, x: f64[n])\n    add y, sum(x)\n").g, "y", "x")
    for x in (None, ["1"], [1j], np.array([1 + 0j]), [True], [2**53 + 1], np.ma.array([1.0])):
        for ask in (one.value, one.grad, one.fun, one.hess, lambda v: one.hessp([1.0], v)):
            with pytest.raises(rvm.InputError):
                ask(x)
    three = rvm.assemble("func h(r: f64[n], x: f64[n])\n    add r, x\n").h
    for ask in (goal_at := objective(three, "r[3]", "x")).value, goal_at.grad, goal_at.fun:
        with pytest.raises(rvm.InputError, match=r"`r\[3\]` is outside the array"):
            ask(np.ones(3))


def test_threads_get_each_its_own_run() -> None:
    """Another thread evaluates the objective at every point where this one's last run is kept."""
    goal = objective(rvm.assemble(ROSENBROCK).rosen, "y", "x")
    here, there = np.array([1.3, 0.7]), np.array([-1.0, 2.0])
    wanted = goal.fun(here)
    kind = type(goal)

    class Meddling(kind):  # type: ignore[misc, valid-type]
        meddled = False

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "_last" and value is not None and not Meddling.meddled:
                Meddling.meddled = True
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(self.fun, there).result()
                Meddling.meddled = False

    goal.__class__ = Meddling
    goal.value(there)
    value, gradient = goal.fun(here)
    assert value == wanted[0]
    np.testing.assert_array_equal(gradient, wanted[1])


def test_what_does_not_fit_is_said() -> None:
    program = rvm.assemble("func f(y: f64, n: i64, A: f64[m, k], z: c128)\n    add y, A[0, 0]\n")
    with pytest.raises(rvm.UsageError, match="does not tell its shape"):
        objective(program.f, "y", "A")
    with pytest.raises(rvm.UsageError, match="SciPy varies"):
        objective(program.f, "y", "n", n=3)
    with pytest.raises(rvm.InputError, match="not a real number"):
        objective(program.f, "z", "A", A=np.zeros((2, 2)))
    with pytest.raises(rvm.InputError, match="must have 4 elements, not 3"):
        objective(program.f, "y", "A", A=np.zeros((2, 2))).fun(np.zeros(3))
    with pytest.raises(rvm.UsageError, match="no start value"):
        _ = objective(rvm.assemble(ROSENBROCK).rosen, "y", "x").x0
    with pytest.raises(rvm.InputError, match="must be a NumPy array of float64"):
        objective(program.f, "y", "A", A=np.zeros((2, 2), np.float32))


def negative_log_likelihood(a: Any, mu: Any, x: Any) -> Any:
    """Minus the logarithm of the likelihood of a mixture of normal distributions."""
    logs = a - np.log(np.sum(np.exp(a))) - (x[:, None] - mu) ** 2 / 2 - math.log(2 * math.pi) / 2
    return -np.sum(np.log(np.sum(np.exp(logs), axis=1)))


mixture = rvm.pure(negative_log_likelihood, a="f64[k]", mu="f64[k]", x="f64[n]")


def test_a_function_under_pure_is_a_loss() -> None:
    """Its value is what is minimised; the true parameters have no greater likelihood."""
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(-2, 1, 30), rng.normal(3, 1, 50)])
    start = {"a": np.zeros(2), "mu": np.array([-1.0, 1.0])}
    goal = objective(mixture, "out", ["a", "mu"], **start, x=x)
    assert goal.fun(goal.x0)[0] == mixture(**start, x=x) == mixture.value_and_grad(**start, x=x)[0]
    assert optimize.check_grad(goal.value, lambda v: goal.fun(v)[1], goal.x0) < 1e-4
    found = optimize.minimize(goal.fun, goal.x0, jac=True, hess=goal.hess, method="trust-exact")
    best = goal.unpack(found.x)
    assert found.success
    true = {"a": np.log([3 / 8, 5 / 8]), "mu": np.array([-2.0, 3.0])}
    assert found.fun <= mixture(**true, x=x)
    np.testing.assert_allclose(best["mu"], true["mu"], atol=0.5)
    with pytest.raises(UsageError, match=r"U008.*not a builtin_function"):
        objective(len, "out", "x")
