"""Functions of the table that jump, or whose derivatives do, are found by values on both sides."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import rvm
from rvm.derive.decisions import decides
from rvm.expr import Place
from rvm.isa import FUNCTIONS, apply
from rvm.isa.rows import FunctionRow
from rvm.isa.rules import CLASSES, TypeFault
from rvm.types import C128, F64, Scalar

STEP = 1e-9
LARGE = 1e3
"""Near a pole both sides are larger, and their difference tells nothing."""
POINTS = [0.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 1.0, -1.0]
PLACES = {
    F64: POINTS,
    C128: [complex(x) for x in POINTS] + [complex(0.0, x) for x in POINTS[1:]],
}


def formula(row: FunctionRow, t: Scalar) -> str | None:
    """A function of numbers `a`, `b`, … of a type as an expression with a number as its result."""
    try:
        value = apply(row.name, *(Place(k, (), t) for k in range(row.arity)))
    except TypeFault:
        return None
    if value.type not in (F64, C128) or not row.arity or row.lazy:
        return None
    names = "abcde"[: row.arity]
    if row.symbol and not row.name.isidentifier():
        return f" {row.name} ".join(names) if row.arity == 2 else None
    return f"{row.name}({', '.join(names)})"


DTYPES = {F64: np.float64, C128: np.complex128}
CASES = [
    pytest.param(name, t, id=f"{name} {t}")
    for name, row in sorted(FUNCTIONS.items())
    for t in PLACES
    if formula(row, t) and row.is_elementwise
]


def sides(f: rvm.FunctionHandle, t: Scalar, out: Any, arity: int) -> list[tuple[Any, Any]]:
    """The values and derivatives on two sides of points, along each argument and part."""
    units = [1.0, 1j] if t == C128 else [1.0]
    found = []
    for k, unit in product(range(arity), units):
        at = [np.array(v) for v in zip(*product(PLACES[t], repeat=arity), strict=True)]
        pairs = []
        for sign in (-STEP, STEP):
            moved = {"abcde"[j]: a + sign * unit * (j == k) for j, a in enumerate(at)}
            given = {"y": np.zeros(len(at[0]), out), "h": 0.0, **moved}
            along = ["abcde"[j] for j in range(arity)]
            seeds = [(n, u) for n in along for u in units]
            slopes = [f.jvp({n: np.full(len(at[0]), u)}, given)[1].y for n, u in seeds]
            pairs.append([f(**given).y, *slopes])
        found += zip(*pairs, strict=True)
    return found


@pytest.mark.parametrize("name, t", CASES)
def test_what_jumps_decides(name: str, t: Scalar) -> None:
    row = FUNCTIONS[name]
    text = formula(row, t)
    args = "abcde"[: row.arity]
    value = apply(name, *(Place(k, (), t) for k in range(row.arity)))
    heads = "".join(f", {a}: {t}[n]" for a in args)
    moves = "".join(f"    add {a}, h\n" for a in args)
    f = rvm.assemble(f"func f(y: {value.type}[n], h: {t}{heads})\n    add y, {text}\n{moves}").f
    jumps = False
    with np.errstate(all="ignore"):
        for one, two in sides(f, t, DTYPES[value.type], row.arity):
            seen = (np.abs(one) < LARGE) & (np.abs(two) < LARGE)
            jumps |= bool(np.any(np.abs(np.asarray(one) - two)[seen] > 0.01))
    known = decides(f.program, "f")
    assert known or not jumps
    if row.cuts and CLASSES[row.cuts](t):
        assert jumps and known


@pytest.mark.parametrize(
    "text, z, w",
    [
        ("real(sqrt(z))", complex(-3.0, -0.0), 1.1j),
        ("real(z ** 0.5)", complex(-3.0, -0.0), 1.1j),
        ("real(asin(z))", complex(3.0, -0.0), 1.1j),
        ("real(acos(z))", complex(-3.0, -0.0), 1.1j),
        ("abs(log(z))", complex(-3.0, -0.0), 1.1j),
        ("abs(atan(z))", complex(-0.0, 3.0), 1.1 + 0j),
        ("1e3 + hypot(real(z) - 3.0, 0.0)", 3.0 + 0j, 1.1 + 0j),
        ("1e3 + abs(z - 3.0)", 3.0 + 0j, 1.1 + 0j),
    ],
)
def test_a_run_back_on_the_other_side_of_a_cut_is_refused(
    text: str, z: complex, w: complex
) -> None:
    f = rvm.assemble(f"func f(y: f64, z: c128, w: c128)\n    add y, {text}\n    add z, w\n").f
    at: dict[str, Any] = {"y": 0.0, "z": z, "w": w}
    slopes = [f.jvp({"z": unit}, at)[1].y for unit in (1.0, 1j)]
    with pytest.raises(rvm.InvertibilityError, match="R017"):
        f.grad(at, loss="y")
    # A Jacobian is by tangents.
    assert f.jacobian(at, of=["y"]).y.z.tolist() == slopes
    strict = f.with_options(strict=True).grad(at, loss="y").z
    assert strict == pytest.approx(complex(*slopes), rel=1e-14)
