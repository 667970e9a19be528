"""Triangles, Cholesky's factors, reflections and rotations of the library against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import executing
from rvm.faults import RvmError

TEXT = """
include "std/cholesky.rasm"
include "std/orthogonal.rasm"
func positive(A: f64[n, n], b: f64[n], y: f64)
    call cholesky(A)
    call cholesky_solve(b, A)
    call cholesky_logdet(y, A)
func reflected(A: T[m, n], b: T[m], d: T[n])
    call householder(A, d)
    call least_squares(b, A, d)
func rotated(A: T[m, n], b: T[m], t: T[m, n])
    call givens(A, t)
    call rotate(b, t)
""".replace("T[", "f64[")
ENGINES = executing()
SHAPES = [(1, 1), (3, 3), (6, 4)]


@pytest.fixture(scope="module")
def lib() -> rvm.Library:
    return rvm.assemble(TEXT)


def positive(n: int, seed: int = 0) -> np.ndarray:
    m = np.random.default_rng(seed).normal(size=(n, n + 2))
    return np.asarray(m @ m.T)


def slope(f: Callable[[np.ndarray], float], x: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """The gradient of f by central differences."""
    out = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[at] = h
        out[at] = (f(x + step) - f(x - step)) / (2 * h)
    return out


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [0, 1, 2, 5])
@sample
def test_positive_definite_matrices(lib: rvm.Library, engine: str, n: int) -> None:
    a, b = positive(n), np.arange(1.0, n + 1)
    f = lib.positive.with_options(engine=engine)
    out = f(A=a.copy(), b=b.copy(), y=0.5)
    np.testing.assert_allclose(np.tril(out.A), np.linalg.cholesky(a), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(np.triu(out.A, 1), np.triu(a, 1))
    np.testing.assert_allclose(out.b, np.linalg.solve(a, b), rtol=1e-9)
    assert out.y == pytest.approx(0.5 + np.linalg.slogdet(a)[1], rel=1e-12)
    back = (~f)(**out)
    np.testing.assert_allclose(back.A, a, rtol=1e-12)
    np.testing.assert_allclose(back.b, b, rtol=1e-9)


def test_a_triangle_as_single_precision_has_it(lib: rvm.Library) -> None:
    a = positive(4).astype(np.float32)
    out = lib.cholesky(A=a.copy())
    np.testing.assert_allclose(np.tril(out.A), np.linalg.cholesky(a), rtol=1e-4)


def test_gradients_of_the_logarithm_of_a_determinant_and_of_solutions(lib: rvm.Library) -> None:
    a, b = positive(4), np.array([1.0, -2, 0.5, 3])
    inverse = np.linalg.inv(a)
    g = lib.positive.vjp({"y": 1.0}, A=a.copy(), b=b.copy(), y=0.0)
    # An element of the lower triangle stands for two of the symmetric matrix.
    twice = np.tril(inverse) + np.tril(inverse, -1)
    np.testing.assert_allclose(g.A, twice, rtol=1e-8, atol=1e-10)
    seed = np.array([0.3, 1, -1, 2])
    g = lib.positive.vjp({"b": seed}, A=a.copy(), b=b.copy(), y=0.0)
    np.testing.assert_allclose(g.b, inverse @ seed, rtol=1e-8)
    full = -np.outer(inverse @ seed, inverse @ b)
    want = np.tril(full + full.T, -1) + np.diag(np.diag(full))
    np.testing.assert_allclose(g.A, want, rtol=1e-7, atol=1e-9)


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", SHAPES)
@sample
def test_reflections(lib: rvm.Library, engine: str, shape: tuple[int, int]) -> None:
    m, n = shape
    r = np.random.default_rng(m)
    a, b = r.normal(size=shape), r.normal(size=m)
    f = lib.reflected.with_options(engine=engine)
    out = f(A=a.copy(), b=b.copy(), d=np.zeros(n))
    upper = np.triu(out.A[:n], 1) + np.diag(out.d)
    np.testing.assert_allclose(upper.T @ upper, a.T @ a, rtol=1e-12, atol=1e-13)
    x, *_ = np.linalg.lstsq(a, b)
    np.testing.assert_allclose(out.b[:n], x, rtol=1e-10)
    np.testing.assert_allclose((out.b[n:] ** 2).sum(), ((a @ x - b) ** 2).sum(), atol=1e-13)
    back = (~f)(**out)
    for found, start in ((back.A, a), (back.b, b), (back.d, 0)):
        np.testing.assert_allclose(found, start, atol=1e-13)


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", SHAPES)
@sample
def test_rotations(lib: rvm.Library, engine: str, shape: tuple[int, int]) -> None:
    m = shape[0]
    r = np.random.default_rng(m)
    a, b = r.normal(size=shape), r.normal(size=m)
    f = lib.rotated.with_options(engine=engine)
    out = f(A=a.copy(), b=b.copy(), t=np.zeros(shape))
    np.testing.assert_allclose(np.tril(out.A, -1), 0, atol=1e-14)
    np.testing.assert_allclose(out.A.T @ out.A, a.T @ a, atol=1e-13)
    np.testing.assert_allclose(out.A.T @ out.b, a.T @ b, atol=1e-13)
    back = (~f)(**out)
    for found, start in ((back.A, a), (back.b, b), (back.t, 0)):
        np.testing.assert_allclose(found, start, atol=1e-13)


@pytest.mark.parametrize("name", ["householder", "givens"])
def test_fixed_point_factors_come_back_to_the_bit(lib: rvm.Library, name: str) -> None:
    a = np.random.default_rng(8).normal(size=(5, 3))
    held = np.rint(a * 2**30).astype(np.int64)
    zeros = np.zeros(3 if name == "householder" else (5, 3), np.int64)
    f = lib[f"{name}[fixed(30)]"]
    out = f(held.copy(), zeros.copy())
    exact = lib[f"{name}[f64]"](a.copy(), zeros.astype(float))
    for found, want in zip(out.values(), exact.values(), strict=True):
        np.testing.assert_allclose(found / 2**30, want, atol=50 * 2**-30)
    back = (~f)(*out.values())
    np.testing.assert_array_equal(back["A"], held)
    assert not any(np.any(v) for n, v in back.items() if n != "A")


def test_gradients_of_least_squares(lib: rvm.Library) -> None:
    r = np.random.default_rng(2)
    a, b, seed = r.normal(size=(5, 3)), r.normal(size=5), r.normal(size=3)
    given: dict[str, Any] = {"d": np.zeros(3)}
    weights = np.append(seed, [0, 0])
    g = lib.reflected.vjp({"b": weights}, A=a.copy(), b=b.copy(), **given)

    def loss(a: np.ndarray, b: np.ndarray = b) -> float:
        return float(seed @ np.linalg.lstsq(a, b)[0])

    np.testing.assert_allclose(g.A, slope(loss, a), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(g.b, slope(lambda v: loss(a, v), b), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("positive", {"A": np.diag([1.0, -1]), "b": np.ones(2), "y": 0.0}, "not positive definite"),
        ("positive", {"A": np.ones((2, 2)), "b": np.ones(2), "y": 0.0}, "not positive definite"),
        ("solve_lower", {"b": np.ones(2), "L": np.zeros((2, 2))}, "diagonal is zero in row"),
        ("solve_upper", {"b": np.ones(2), "U": np.zeros((2, 2))}, "diagonal is zero in row"),
        ("reflected", {"A": np.zeros((3, 2)), "b": np.ones(3), "d": np.zeros(2)}, "depend on each"),
    ],
)
def test_what_has_no_solution_is_reported(
    lib: rvm.Library, name: str, given: dict[str, Any], told: str
) -> None:
    before = {n: np.copy(v) for n, v in given.items()}
    with pytest.raises(RvmError, match=told) as caught:
        lib[name](**given)
    assert caught.value.code == "R013"
    for n, v in given.items():
        np.testing.assert_array_equal(v, before[n])


@pytest.mark.parametrize("name", ["solve_lower", "solve_upper"])
def test_only_the_triangle_is_read(lib: rvm.Library, name: str) -> None:
    r = np.random.default_rng(5)
    full, b = r.normal(size=(4, 4)), r.normal(size=4)
    triangle = np.tril(full) if name == "solve_lower" else np.triu(full)
    out = lib[name](b.copy(), full.copy())
    np.testing.assert_allclose(out.b, np.linalg.solve(triangle, b), rtol=1e-9)
    np.testing.assert_allclose((~lib[name])(*out.values()).b, b, rtol=1e-9)
