"""The examples of the library against formulas, NumPy and second implementations."""

from __future__ import annotations

from math import factorial, prod
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from programs.both_ways import ENGINES, load

from rvm import FunctionHandle

EXAMPLES = Path(__file__).parents[2] / "examples"
STD = EXAMPLES.parent / "asm" / "rvm_asm" / "std"
# Their `;! run` lines run on all engines; machine code of gradients takes long to make.
each_engine = pytest.mark.parametrize(
    "engine",
    [e if e == "python" else pytest.param(e, marks=pytest.mark.deep) for e in ENGINES],
)


def function(name: str, which: str, engine: str = "python") -> FunctionHandle:
    return load(EXAMPLES / f"{name}.rasm")[which].with_options(engine=engine)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_every_file_of_the_library_is_used_by_an_example() -> None:
    texts = [p.read_text(encoding="utf-8") for p in EXAMPLES.rglob("*.rasm")]
    # What a file of the library includes is used with it.
    texts += [p.read_text(encoding="utf-8") for p in STD.glob("*.rasm")]
    for path in STD.glob("*.rasm"):
        used = [f'include "{folder}{path.name}"' for folder in ("std/", "")]
        assert any(u in t for u in used for t in texts), path.name


def covariances(t: NDArray[np.float64], size: float, width: float) -> NDArray[np.float64]:
    found: NDArray[np.float64] = size**2 * np.exp(-(((t[:, None] - t) / width) ** 2) / 2)
    return found


@each_engine
def test_the_likelihood_of_a_gaussian_process_and_its_gradient(engine: str) -> None:
    t, v = np.sort(rng().uniform(0, 10, 8)), rng(2).normal(size=8)
    size, width, noise = 1.3, 0.8, 0.4
    f = function("gaussian_process", "log_likelihood", engine)
    given = {"t": t, "v": v, "size": size, "width": width, "noise": noise}
    there = f(y=0.0, **given)
    smooth = covariances(t, size, width)
    summed = smooth + noise**2 * np.eye(8)
    # Rasmussen and Williams, equation 2.30, by the eigenvalues.
    values, axes = np.linalg.eigh(summed)
    terms = (axes.T @ v) ** 2 / values + np.log(2 * np.pi * values)
    assert there.y == pytest.approx(-terms.sum() / 2, rel=1e-12)
    assert (~f)(**there).y == pytest.approx(0, abs=1e-12)
    # Equation 5.9.
    w, inverse = np.linalg.solve(summed, v), np.linalg.inv(summed)

    def slope(changes: NDArray[np.float64]) -> float:
        return float(np.trace((np.outer(w, w) - inverse) @ changes)) / 2

    grad = f.grad(loss="y", y=0.0, **given)
    away = (t[:, None] - t) ** 2
    assert grad.size == pytest.approx(slope(2 * smooth / size), rel=1e-9)
    assert grad.width == pytest.approx(slope(smooth * away / width**3), rel=1e-9)
    assert grad.noise == pytest.approx(slope(2 * noise * np.eye(8)), rel=1e-9)
    assert np.allclose(grad.v, -w, rtol=1e-9)


@each_engine
def test_a_product_of_polynomials_to_the_last_places(engine: str) -> None:
    f = function("convolution", "product", engine)
    a, b = (np.append(rng(k).integers(-50, 50, 8), np.zeros(8, np.int64)) for k in (1, 2))
    unit = 2.0**43
    given = {"a": (a * unit).astype(np.int64), "b": (b * unit).astype(np.int64)}
    there = f(y=np.zeros(16, np.int64), **given)
    assert np.allclose(there.y / unit, np.append(np.convolve(a[:8], b[:8]), 0), atol=1e-9)
    back = (~f)(**there)
    assert not back.y.any() and np.array_equal(back.a, given["a"])


@each_engine
def test_random_points_and_the_way_back_to_the_seed(engine: str) -> None:
    f = function("monte_carlo", "quarter", engine)
    seed = np.array([7, 11, 13, 17], np.uint64)
    there = f(inside=0, n=400, s=seed.copy())
    assert there.inside == pytest.approx(100 * np.pi, abs=30)
    back = (~f)(**there)
    assert back.inside == 0 and np.array_equal(back.s, seed)


@each_engine
def test_a_table_and_its_order_as_a_number(engine: str) -> None:
    f = function("league", "arrange", engine)
    points, teams = rng(3).integers(0, 9, 12), np.arange(12)
    there = f(points=points.copy(), teams=teams.copy(), order=0)
    order = np.argsort(points, kind="stable")
    assert np.array_equal(there.points, points[order])
    assert np.array_equal(there.teams, order)
    assert there.order == sum(
        factorial(11 - k) * int(np.sum(order[k + 1 :] < order[k])) for k in range(12)
    )
    back = (~f)(**there)
    assert np.array_equal(back.points, points) and np.array_equal(back.teams, teams)
    assert back.order == 0


@each_engine
def test_an_image_with_a_flat_histogram(engine: str) -> None:
    x = np.clip(rng(4).normal(100, 12, (20, 30)), 0, 255).astype(np.uint8)
    f = function("equalise", "equalise", engine)
    there = f(y=np.zeros_like(x), x=x.copy())
    darker = np.searchsorted(np.sort(x.ravel()), x)
    assert np.array_equal(there.y, 255 * darker // prod(x.shape))
    assert abs(there.y.mean() - 127) < 8 < abs(x.mean() - 127)
    back = (~f)(**there)
    assert not back.y.any() and np.array_equal(back.x, x)


@each_engine
def test_a_polynomial_by_least_squares_and_its_gradient(engine: str) -> None:
    x, y = np.linspace(-1, 2, 15), rng(5).normal(size=15)
    f = function("fit", "polynomial", engine)
    given = {"x": x, "y": y}
    there = f(c=np.zeros(4), misfit=0.0, **given)
    powers = np.vander(x, 4, increasing=True)
    c, misfit = np.linalg.lstsq(powers, y)[:2]
    assert np.allclose(there.c, c, rtol=1e-10) and there.misfit == pytest.approx(misfit[0])
    back = (~f)(**there)
    assert np.allclose(back.c, 0, atol=1e-12) and back.misfit == pytest.approx(0, abs=1e-12)
    grad = f.grad(loss="misfit", c=np.zeros(4), misfit=0.0, **given)
    # The misfit changes with y by twice what the polynomial leaves of it.
    assert np.allclose(grad.y, 2 * (y - powers @ c), atol=1e-9)
