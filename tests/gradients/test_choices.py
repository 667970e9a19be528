"""What a choice does not take is not looked at by derivatives either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from sizes import first_and_another, sample, sized, thin

import rvm
from rvm.engines import executing
from rvm.isa import FUNCTIONS

PLACES = {
    "x[i]": "i < n",
    "A[i, 0]": "i < n",
    "A[:, i][1]": "i < n",
    "z[i].re": "i < n",
    "sum(x[i:i + 1])": "i < n",
    "top(s)": "not empty(s)",
}
"""Places that are not always there, and when they are."""
VALUES = {
    "choose({c}, sin({p}), 1.5)": "if {c}\n {op} y, sin({p})\nelse\n {op} y, 1.5\nend {c}",
    "choose(not ({c}), w, -{p} * {p})": "if {c}\n {op} y, -{p} * {p}\nelse\n {op} y, w\nend {c}",
    "choose({c}, choose(w > 0, w * {p}, exp(-{p})), w)": (
        "if {c}\n if w > 0\n  {op} y, w * {p}\n else\n  {op} y, exp(-{p})\n end w > 0\n"
        "else\n {op} y, w\nend {c}"
    ),
}
"""Choices among such places, and the same as branches."""
HEAD = "(y: f64, w: f64, x: f64[n], A: f64[m, n], z: c128[n], s: stack[f64], i: i64)\n"
TEXT = "func f" + HEAD + "{body}\n"
CALLED = (
    "func d(y_bar: f64, w_bar: f64, x_bar: f64[n], A_bar: f64[m, n], z_bar: c128[n], y: f64,"
    " w: f64, x: f64[n], A: f64[m, n], z: c128[n], s: stack[f64], t: stack[f64], i: i64)\n"
    " call f'(y, w, x, A, z, s, i; y_bar, w_bar, x_bar, A_bar, z_bar, t)\n"
)
BODIES = {
    "add": "add y, {v}",
    "sub": "sub y, {v}",
    "mul": "mul y, {v}",
    "alloc": "alloc t: f64 = {v}\nmul y, t\nfree t = {v}",
    "call": "call g(y, {v})",
}


def inputs(i: int, stack: list[float]) -> dict[str, Any]:
    return {
        "y": 2.0, "w": 0.25, "x": np.array([0.5, -1.25]), "A": np.array([[1.0, 2], [3, 0.125]]),
        "z": np.array([1 + 2j, 0.5 - 1j]), "s": stack, "i": i,
    }  # fmt: skip


def equal(a: Any, b: Any) -> None:
    if isinstance(a, Mapping):
        assert list(a) == list(b)
        for k in a:
            equal(a[k], b[k])
    else:
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-14)


def pair(place: str, value: str, how: str) -> tuple[rvm.Library, rvm.Library]:
    """The choice, and the branches that it stands for."""
    op = how if how in ("add", "sub") else "mul"
    c, v = PLACES[place], value.format(c=PLACES[place], p=place)
    branches = VALUES[value].format(c=c, p=place, op=op)
    g = "func g(y: f64, v: f64)\n mul y, v\n"
    lazy = TEXT.format(body=BODIES[how].format(v=v)) + CALLED + g
    return rvm.assemble(lazy), rvm.assemble(TEXT.format(body=branches) + CALLED)


CASES = [(p, v, h) for p in PLACES for v in VALUES for h in BODIES]


@thin
@pytest.mark.parametrize(("place", "value", "how"), CASES)
@sample
def test_derivatives_of_choices_are_those_of_branches(place: str, value: str, how: str) -> None:
    lazy, branches = pair(place, value, how)
    for values in (inputs(1, [0.75]), inputs(2, [])):
        for engine in first_and_another(executing(loops=False), (place, value, how)):
            found, wanted = (
                lib.f.grad(loss="y", engine=engine, **values) for lib in (lazy, branches)
            )
            equal(found, wanted)
        real = {k: v for k, v in values.items() if k != "i"}
        bars = {f"{k}_bar": 0 * np.asarray(v) for k, v in real.items() if k not in "ys"}
        names = ("y_bar", *bars, "t")
        one, two = (
            lib.d(y_bar=1.0, t=[0.0] * len(values["s"]), **bars, **values)
            for lib in (lazy, branches)
        )
        equal({k: one[k] for k in names}, {k: two[k] for k in names})


@pytest.mark.parametrize("value", VALUES)
@sized
def test_second_derivatives_and_lanes(value: str) -> None:
    lazy, branches = pair("x[i]", value, "mul")
    for values in (inputs(1, []), inputs(2, [])):
        equal(*(lib.f.hessian(loss="y", **values) for lib in (lazy, branches)))
    lanes = {**inputs(1, []), "i": np.array([0, 2, 1])}
    equal(*(lib.f.map.grad(loss="y", **lanes) for lib in (lazy, branches)))


def test_the_functions_that_evaluate_only_what_they_take() -> None:
    """Of these only a choice has values with derivatives."""
    assert {name for name, row in FUNCTIONS.items() if row.lazy} == {"choose", "and", "or"}
