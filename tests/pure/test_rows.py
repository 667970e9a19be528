"""Maps over rows that are formulas of whole arrays, and those that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pure.steps import by_steps
from rvm_pure import PureFunction, functions

FORMULAS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "map (r. r * w + 1) xs": lambda xs, w, s: xs * w + 1,
    "map (r. w - r) xs": lambda xs, w, s: w - xs,
    "map (r. exp(r) * s) xs": lambda xs, w, s: np.exp(xs) * s,
    "map (r. map (q. sin(q) * s) r) xs": lambda xs, w, s: np.sin(xs) * s,
    "map (r. map2 (q, u. sin(q) * u) r w) xs": lambda xs, w, s: np.sin(xs) * w,
    "map2 (r, u. r * sin(u)) xs xs": lambda xs, w, s: xs * np.sin(xs),
    "map ((r, u). r * sin(u)) (zip xs xs)": lambda xs, w, s: xs * np.sin(xs),
    "map (r. let t = 2 * r in t * t + w) xs": lambda xs, w, s: 4 * xs * xs + w,
    "map (r. map2 * (map (q. q * s) r) r) xs": lambda xs, w, s: xs * xs * s,
    "map (r. map (q. s) r) xs": lambda xs, w, s: 0 * xs + s,
    "map (r. w) xs": lambda xs, w, s: 0 * xs + w,
}
OTHERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "map (r. replicate d s) xs": lambda xs, w, s: 0 * xs + s,
    "map (r. exp(w) * r) xs": lambda xs, w, s: np.exp(w) * xs,
    "let e = 2 * w in map (r. r * e) xs": lambda xs, w, s: 2 * w * xs,
    "map (r. r / sum(r * r + 1)) xs": lambda xs, w, s: xs / (xs * xs + 1).sum(1)[:, None],
    "map2 (t, r. t * r) (map (r. sum(r)) xs) xs": lambda xs, w, s: xs.sum(1)[:, None] * xs,
}


def made(body: str) -> PureFunction:
    (f,) = functions(f"def f(xs: f64[n, d], w: f64[d], s: f64) = {body}\n").values()
    return f


@pytest.mark.parametrize("body", {**FORMULAS, **OTHERS})
def test_values_and_derivatives_are_those_of_numpy(body: str) -> None:
    whole = (FORMULAS | OTHERS)[body]
    f, g = (
        made(text).program.f.with_options(engine="python")
        for text in (body, f"sum(map (r. r @ cos(w)) ({body}))")
    )
    rng = np.random.default_rng(1)
    for n, d in ((3, 4), (3, 3), (1, 2), (2, 1), (0, 2)):
        given = {"xs": rng.normal(size=(n, d)), "w": rng.normal(size=d), "s": 0.3}
        np.testing.assert_allclose(f(out=np.zeros((n, d)), **given).out, whole(**given), rtol=1e-14)
        want = by_steps(lambda xs, w, s: (whole(xs, w, s) * np.cos(w)).sum(), given)
        have = g.grad(out=0.0, **given, loss="out")
        for name, v in want.items():
            np.testing.assert_allclose(have[name], v, rtol=1e-12, atol=1e-14, err_msg=name)


def test_formulas_take_one_instruction() -> None:
    assert {len(made(body).program.f.program.function("f").code) for body in FORMULAS} == {1}


def test_what_rows_have_in_common_is_held() -> None:
    for body in list(OTHERS)[1:3]:
        code = made(body).program.f.program.function("f").code
        assert [i.op for i in code] == ["alloc", "add", "free"]
