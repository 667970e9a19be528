"""Gradients of pure functions beside those of JAX, on random terms and where numbers overflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pure import oracle
from pure.terms import Writer
from rvm_pure.functions import functions

pytestmark = pytest.mark.deep


@pytest.fixture(autouse=True)
def on_jax(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The walk over terms with the functions of JAX, which decides on `if` as it goes."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    jax.config.update("jax_enable_x64", True)
    own = {name: getattr(jnp, name) for name in ("sin", "cos", "tanh", "exp", "log")}
    own |= {"<": lambda a, b: a < b, "==": lambda a, b: a == b}
    monkeypatch.setattr(oracle, "FUNCTIONS", {**oracle.FUNCTIONS, **own})
    yield


def by_jax(body: Any, given: dict[str, Any], names: tuple[str, ...], **more: Any) -> list[Any]:
    import jax

    def value(active: dict[str, Any]) -> Any:
        # Arrays are lists of numbers in the walk.
        plain = {k: list(v) if np.ndim(v) else v for k, v in active.items()}
        return oracle.run(body, {**given, **plain, **more}) * 1.0

    found = jax.grad(value)({k: jax.numpy.asarray(given[k]) for k in names})
    return [np.asarray(found[k]) for k in names]


def staged(f: Any, given: dict[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
    """By the stage `gradient`, and the names of the parameters."""
    names = tuple(p.name for p in f.definition.params)
    g = f.gradient()
    zeros = {f"p{k + 1}": np.zeros_like(given[n]) + 0.0 for k, n in enumerate(names)}
    zeros = {k: z if z.ndim else 0.0 for k, z in zeros.items()}
    out = zeros if len(names) > 1 else zeros["p1"]
    handle = g.program.f.with_options(engine="reference")
    found = handle(out=out, **given)["out"]
    return [found[p] for p in zeros] if len(names) > 1 else [found], names


@pytest.mark.parametrize("part", range(10))
def test_random_terms_have_the_gradients_of_jax(part: int) -> None:
    for seed in range(20_000 + 4 * part, 20_004 + 4 * part):
        text = Writer(seed, more=bool(seed % 3)).definition(5)
        rng = np.random.default_rng(seed)
        n = (0, 1, 2, 5)[seed % 4]
        x, y = rng.normal(size=2)
        given = {"x": x, "y": y, "A": rng.normal(size=n), "B": rng.normal(size=n)}
        f = functions(text)["f"]
        stage, names = staged(f, given)
        mode = f.program.f.with_options(engine="reference").grad(out=0.0, **given, loss="out")
        want = by_jax(f.definition.body, given, names, n=n)
        top = max(float(np.max(np.abs(w), initial=1e-300)) for w in want)
        for have in (stage, [mode[k] for k in names]):
            worst = max(
                float(np.max(np.abs(np.asarray(h) - w), initial=0.0))
                for h, w in zip(have, want, strict=True)
            )
            assert worst <= 1e-12 * top, text


OVERFLOWING = {
    "def f(x: f64, y: f64) = exp(x) * y": {"x": 800.0, "y": 2.0},
    "def f(x: f64, y: f64) = x * y * y": {"x": 1e200, "y": 1e200},
    "def f(x: f64, A: f64[n]) = reduce * x A": {"x": 1e200, "A": np.array([1e200, 3.0])},
    "def f(A: f64[n]) = sum(map (a. exp(a)) A)": {"A": np.array([1.0, 710.0, -800.0])},
    "def f(x: f64) = log(x)": {"x": 5e-324},
}


@pytest.mark.parametrize("text", OVERFLOWING)
def test_what_overflows_in_jax_overflows_here(text: str) -> None:
    given = OVERFLOWING[text]
    f = functions(text)["f"]
    stage, names = staged(f, given)
    want = by_jax(f.definition.body, given, names, n=len(given.get("A", ())))
    mode = f.grad(**given)
    for have in (stage, mode if len(names) > 1 else [mode]):
        for h, w in zip(have, want, strict=True):
            np.testing.assert_allclose(h, w, rtol=1e-12)
