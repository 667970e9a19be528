"""What loops would compute again in every round is computed once, before them.

Counted by the machine's account, in runs of few and of many rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from pure.steps import by_steps
from rvm_pure import PureFunction, functions
from rvm_pure.account import Run, run_of, run_with_adjoints
from rvm_pure.cost import Cost

import rvm
from rvm.faults import RvmError

D, K, M = 5, 4, 3
FEW, MANY = 2, 9


class Case(NamedTuple):
    """A definition with n rounds of a loop, and the same in NumPy, of complex numbers too."""

    params: str
    body: str
    by_numpy: Callable[..., Any]
    nlops: int = 0
    """The nonlinear operations of each round."""


ONCE = {
    "an array": Case(
        "xs: f64[n, d], w: f64[d]",
        "sum(map (r. sum(exp(w) * r)) xs)",
        lambda xs, w: (np.exp(w) * xs).sum(),
    ),
    "elements": Case(
        "x: f64[n], a: f64[d], b: f64[d]",
        "sum(map (t. sum(map2 (p, q. sin(p) * q * t) a b)) x)",
        lambda x, a, b: (np.sin(a) * b).sum() * x.sum(),
    ),
    "elements of pairs": Case(
        "x: f64[n], a: f64[d], b: f64[d]",
        "sum(map (t. sum(map ((p, q). sin(p * q) * t) (zip a b))) x)",
        lambda x, a, b: np.sin(a * b).sum() * x.sum(),
    ),
    "with lets": Case(
        "x: f64[n], a: f64[d], b: f64[d]",
        "sum(map (t. sum(map2 (p, q. let h = 2 * p in let g = h + 1 in exp(sin(g)) * q * t + h) "
        "a b)) x)",
        lambda x, a, b: sum((np.exp(np.sin(2 * a + 1)) * b * t + 2 * a).sum() for t in x),
    ),
    "by index": Case(
        "x: f64[n], a: f64[d]",
        "sum(map (t. sum(map (i. sin(a[i]) * t) (iota d))) x)",
        lambda x, a: np.sin(a).sum() * x.sum(),
    ),
    "rows": Case(
        "x: f64[n], rows: f64[k, d]",
        "sum(map (t. sum(map (r. sum(exp(r)) * t) rows)) x)",
        lambda x, rows: np.exp(rows).sum() * x.sum(),
    ),
    "elements of rows": Case(
        "x: f64[n], rows: f64[k, d]",
        "sum(map (t. sum(map (r. sum(map (q. sin(q) * t * q) r)) rows)) x)",
        lambda x, rows: (np.sin(rows) * rows).sum() * x.sum(),
    ),
    "out of two loops": Case(
        "x: f64[n], y: f64[m], rows: f64[k, d]",
        "sum(map (t. sum(map (u. sum(map (r. sum(exp(r)) * t * u) rows)) y)) x)",
        lambda x, y, rows: np.exp(rows).sum() * x.sum() * y.sum(),
    ),
    "a number in a loop": Case(
        "x: f64, w: f64, n: i64",
        "loop s = x for i < n do s * exp(w) + sin(w)",
        lambda x, w, n: x * np.exp(w) ** n + np.sin(w) * sum(np.exp(w) ** k for k in range(n)),
    ),
    "a number in a fold": Case(
        "x: f64[n], w: f64",
        "foldl (s, t. s * sin(w) + t * let a = exp(w) in a * a) 1 x",
        lambda x, w: (
            np.sin(w) ** len(x)
            + sum(t * np.exp(2 * w) * np.sin(w) ** (len(x) - 1 - k) for k, t in enumerate(x))
        ),
    ),
    "a number in a map in a loop": Case(
        "p: f64[d], w: f64, n: i64",
        "sum(loop q = p for i < n do map (t. t * exp(w) + q[0] * sin(w)) q)",
        lambda p, w, n: (
            p.sum() * np.exp(w) ** n
            + len(p)
            * p[0]
            * np.sin(w)
            * sum((np.exp(w) + np.sin(w)) ** k * np.exp(w) ** (n - 1 - k) for k in range(n))
        ),
    ),
    "a number in a scan": Case(
        "x: f64[n], w: f64",
        "(scanl (s, t. s * sin(w) + t) 0 x)[len(x)]",
        lambda x, w: sum(t * np.sin(w) ** (len(x) - 1 - k) for k, t in enumerate(x)),
    ),
    "in a loop": Case(
        "p: f64[d], w: f64[d], n: i64",
        "sum(loop q = p for i < n do q * exp(w))",
        lambda p, w, n: (p * np.exp(w) ** n).sum(),
    ),
    "in a map in a loop": Case(
        "p: f64, w: f64[d], n: i64",
        "loop q = p for i < n do q + sum(map (t. exp(t) * q) w)",
        lambda p, w, n: p * (1 + np.exp(w).sum()) ** n,
    ),
    "in a fold": Case(
        "x: f64[n], w: f64[d]",
        "foldl (s, t. s * 0.5 + sum(map (u. exp(u) * t) w)) 0 x",
        lambda x, w: sum(t * np.exp(w).sum() * 0.5**k for k, t in enumerate(x[::-1])),
    ),
    "elements of a fold": Case(
        "x: f64[n], w: f64[d]",
        "sum(map (t. foldl (s, u. s * t + exp(u)) 0 w) x)",
        lambda x, w: sum((np.exp(w) * t ** np.arange(len(w) - 1, -1, -1.0)).sum() for t in x),
    ),
    "what is left": Case(
        "x: f64[n], a: f64[d]",
        "sum(map (t. exp(t) * sum(map (p. sin(p) * t) a)) x)",
        lambda x, a: np.sin(a).sum() * (np.exp(x) * x).sum(),
        nlops=1,
    ),
    "sums of rows": Case(
        "xs: f64[n, d], rows: f64[k, d]",
        "sum(map (r. log(sum(map (a. exp(a @ r - 0.5 * (a @ a) + sum(exp(a)))) rows))) xs)",
        lambda xs, rows: sum(
            np.log(np.exp(rows @ r - 0.5 * (rows * rows).sum(1) + np.exp(rows).sum(1)).sum())
            for r in xs
        ),
        nlops=2 * K + 1,
    ),
}
AGAIN = {
    "in a branch": (
        "x: f64[n], a: f64[d]",
        "sum(map (t. if t < 0 then sum(map (p. sin(p) * t) a) else 0) x)",
    ),
    "larger than what it is made of": (
        "x: f64[n], a: f64[d]",
        "sum(map (t. sum(map (p. sum(map2 * (exp(p * a)) (t * a))) a)) x)",
    ),
    "of no array": (
        "x: f64[n], d: i64",
        "sum(map (t. sum(map (i. sin(f64(i)) * t) (iota d))) x)",
    ),
}


def made(params: str, body: str) -> PureFunction:
    (f,) = functions(f"def f({params}) = {body}\n").values()
    return f


def given(params: str, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    sizes = {"n": n, "d": D, "k": K, "m": M}
    found: dict[str, Any] = {}
    for p in params.replace(", d]", " d]").split(", "):
        name, t = p.split(": ")
        shape = [sizes[s] for s in t.partition("[")[2].rstrip("]").split()]
        found[name] = sizes[name] if t == "i64" else rng.uniform(-1, 1, shape)[()]
    return found


def costs(f: PureFunction, run: Callable[..., Run] = run_of) -> list[Cost]:
    """What runs of few and of many rounds cost."""
    handle = f.program[f.name].with_options(engine="python")
    sizes = {"d": D, "k": K, "m": M}
    return [run(f.definition, handle, {**sizes, "n": n}).counted for n in (FEW, MANY)]


@pytest.mark.parametrize("name", ONCE)
def test_it_is_computed_once(name: str) -> None:
    case = ONCE[name]
    f = made(case.params, case.body)
    few, many = costs(f)
    assert few.nlops > 0
    assert many.nlops - few.nlops == (MANY - FEW) * case.nlops
    few, many = costs(f, run_with_adjoints)
    assert case.nlops or many.nlops == few.nlops


@pytest.mark.parametrize("name", ONCE)
def test_values_and_derivatives_are_those_of_numpy(name: str) -> None:
    case = ONCE[name]
    f = made(case.params, case.body).program.f.with_options(engine="python")
    values = given(case.params, FEW)
    value, slopes = f.value_and_grad(out=0.0, **values, loss="out")
    np.testing.assert_allclose(value, case.by_numpy(**values), rtol=1e-13)
    for k, v in by_steps(case.by_numpy, values).items():
        np.testing.assert_allclose(slopes[k], v, rtol=1e-11, atol=1e-13, err_msg=k)


@pytest.mark.parametrize("name", AGAIN)
def test_it_is_computed_again(name: str) -> None:
    f = made(*AGAIN[name])
    few, many = costs(f)
    assert many.nlops * FEW == few.nlops * MANY > 0


def test_products_are_computed_once() -> None:
    f = made("xs: f64[n, d], W: f64[d, d], v: f64[d]", "sum(map (r. (W @ v) @ r) xs)")
    few, many = costs(f)
    assert many.mults - few.mults == (MANY - FEW) * D


def test_what_may_have_no_value_is_computed_only_if_the_loop_runs() -> None:
    f = made("x: f64[n], rows: f64[k, d]", "sum(map (t. sum(map (r. amax(r) * t) rows)) x)")
    rows = np.array([[1.0, 3.0], [2.0, -1.0]])
    assert f(np.array([1.0, 2.0]), rows) == 15.0
    assert f(np.zeros(0), np.zeros((2, 0))) == 0.0
    with pytest.raises(RvmError, match="amax"):
        f(np.ones(1), np.zeros((2, 0)))
    assert f(np.ones(1), np.zeros((0, 0))) == 0.0


def test_it_is_explained_with_its_size() -> None:
    case = ONCE["rows"]
    (line,) = made(case.params, case.body).lets
    assert "f64[k], 8 * k bytes" in line and "same in every round" in line


COLUMNS: dict[str, Callable[..., Any]] = {
    "a product": lambda x, w: x * np.exp(w)[:, None],
    "a sum of one": lambda x, w: np.sum(x * np.exp(w)[:, None], axis=0),
    "a column on the left": lambda x, w: np.exp(w)[:, None] - x,
    "a column kept by a reduction": lambda x, w: x * np.exp(np.sum(x, axis=1, keepdims=True)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_what_columns_have_is_computed_once_for_each_row(name: str) -> None:
    """A column of nonlinear functions is broadcast over rows: there are as many as rows."""
    by_numpy = COLUMNS[name]
    f = rvm.pure(by_numpy, x=rvm.f64["m", "d"], w=rvm.f64["m"])
    rows, few, many = 4, 3, 11
    costs = [
        run_of(f.definition, f._exchanged[f.name], {"m": rows, "d": d}).counted.counts[-1]
        for d in (few, many)
    ]
    assert costs[0] == costs[1] > 0
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(rows, few)), rng.normal(size=rows)
    assert f(x, w) == pytest.approx(by_numpy(x, w), rel=1e-13)
    empty = f(np.zeros((rows, 0)), w)
    assert empty.shape == by_numpy(np.zeros((rows, 0)), w).shape
