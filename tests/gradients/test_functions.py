"""Every function of the table in a program: its gradient against mpmath, and by differences."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from gradients.agreeing import ENGINES, agree
from oracles import DOMAIN, REAL_FUNCTIONS, true
from sizes import sample, sized, some, thin

import rvm
from rvm.isa.rows import FUNCTIONS, FunctionRow
from rvm.types import TYPES

each_engine = pytest.mark.parametrize("engine", ENGINES)
KNOWN = [FUNCTIONS[name] for name in REAL_FUNCTIONS]
NAMES = ("a", "b")
FLAT = ("//", "sign", "floor")


def applied(row: FunctionRow, args: Sequence[str]) -> str:
    """The function's use in an assembly text."""
    if row.symbol and len(args) == 2:
        return f"{args[0]} {row.symbol} {args[1]}"
    return f"{row.symbol or row.name}({', '.join(args)})"


def program(row: FunctionRow, op: str, t: str, dims: Sequence[str], out: str) -> Any:
    names = NAMES[: row.arity]
    params = ", ".join(f"{n}: {t}{d}" for n, d in zip(names, dims, strict=False))
    text = f"func main(y: {t}{out}, {params})\n    {op} y, {applied(row, names)}\n"
    return rvm.assemble(text).main


def points(row: FunctionRow, n: int) -> list[list[float]]:
    """Arguments inside the domain, with few bits, so that coarser numbers hold them too."""
    rng = random.Random(row.name)
    out = []
    for _ in range(n):
        out.append(
            [round(rng.uniform(0.9 * lo, 0.9 * hi) * 512) / 512 for lo, hi in DOMAIN[row.name]]
        )
        if row.name not in FLAT:
            continue
        # Not on a step.
        out[-1] = [x + 1 / 1024 for x in out[-1]]
    return out


def partials(row: FunctionRow, at: Sequence[float]) -> list[float]:
    """The partial derivatives by mpmath, from the function's own name there."""
    f = true(row.name)
    with mpmath.workdps(40):
        exact = [mpmath.mpf(x) for x in at]
        unit = [tuple(int(j == k) for j in range(len(at))) for k in range(len(at))]
        return [float(mpmath.diff(f, tuple(exact), u).real) for u in unit]


@thin
@each_engine
@pytest.mark.parametrize("row", KNOWN, ids=lambda r: r.name)
@pytest.mark.parametrize(("t", "near"), [("f64", 1e-12), ("f32", 2e-5), ("fixed", 1e-9)])
@sample
def test_partials(row: FunctionRow, t: str, near: float, engine: str) -> None:
    for at in points(row, 4):
        want = partials(row, at)
        for op, sign in (("add", 1), ("sub", -1)):
            f = program(row, op, t, ("", ""), "").with_options(engine=engine)
            g = f.grad(loss="y", y=0.0, **dict(zip(NAMES, at, strict=False)))
            assert g.y == 1.0
            got = [sign * g[n] for n in NAMES[: row.arity]]
            assert got == pytest.approx(want, rel=near, abs=near), (row.name, at)


@thin
@pytest.mark.parametrize("row", KNOWN, ids=lambda r: r.name)
@sized
@some
def test_arrays_and_broadcasting(row: FunctionRow) -> None:
    at = np.array(points(row, 6))
    shapes: list[tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]] = [(("[m, n]",), ((2, 3),))]
    if row.arity == 2:
        shapes = [
            (("[m, n]", "[m, n]"), ((2, 3), (2, 3))),
            (("[m, n]", "[n]"), ((2, 3), (3,))),
            (("[n]", "[m, n]"), ((3,), (2, 3))),
            (("", "[m, n]"), ((), (2, 3))),
            (("[m, n]", ""), ((2, 3), ())),
        ]
    for dims, sizes in shapes:
        f = program(row, "add", "f64", dims, "[m, n]")
        inputs: dict[str, Any] = {"y": np.zeros((2, 3))}
        for k, size in enumerate(sizes):
            values = at[: int(np.prod(size)), k].reshape(size)
            inputs[NAMES[k]] = values.copy() if size else values.item()
        agree(f, inputs, "y[1, 2]", tolerance=2e-6)
        seed = np.arange(1.0, 7.0).reshape(2, 3)
        g = f.vjp({"y": seed}, **inputs)
        grid = [np.broadcast_to(inputs[n], (2, 3)) for n in NAMES[: row.arity]]
        each = np.array([partials(row, p) for p in zip(*(v.flat for v in grid), strict=True)])
        for k, size in enumerate(sizes):
            # An argument that was broadcast gains from all its copies.
            full = (each[:, k].reshape(2, 3) * seed).sum(tuple(range(2 - len(size))))
            assert g[NAMES[k]] == pytest.approx(full, rel=1e-11, abs=1e-11), (row.name, dims)


FIELD = ("identity", "neg", "+", "-", "*", "/", "**", "sqrt", "square", "exp", "log", "sin", "cos")
FIELD += ("tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")


@thin
@pytest.mark.parametrize("name", FIELD)
@sized
def test_holomorphic(name: str) -> None:
    """The adjoint of Re f is conj(f'), that of Im f is i conj(f')."""
    row = FUNCTIONS[name]
    f = program(row, "add", "c128", ("", ""), "")
    at = [0.7 - 0.4j, 1.3 + 0.6j][: row.arity]
    inputs = dict(zip(NAMES, at, strict=False))
    with mpmath.workdps(40):
        g = (lambda x: x) if name == "identity" else true(name)
        units = [tuple(int(j == k) for j in range(row.arity)) for k in range(row.arity)]
        want = [complex(mpmath.diff(g, tuple(map(mpmath.mpc, at)), u)) for u in units]
    for loss, turn in (("y.re", 1), ("y.im", 1j)):
        agree(f, {"y": 0j, **inputs}, loss)
        found = f.grad(loss=loss, y=0j, **inputs)
        for n, w in zip(NAMES, want, strict=False):
            assert found[n] == pytest.approx(turn * w.conjugate(), rel=1e-11, abs=1e-13)


@thin
@pytest.mark.parametrize(
    ("call", "t"),
    [
        ("abs(a)", "f64"),
        ("abs2(a)", "f64"),
        ("angle(a)", "f64"),
        ("real(a) * imag(a)", "f64"),
        ("conj(a) * b", "c128"),
        ("complex(abs(a), angle(b))", "c128"),
        ("a * conj(a) + b ** conj(a)", "c128"),
        ("exp(a) * abs(b)", "c128"),
        ("c128(abs(a)) ** b", "c128"),
        ("cis(r) * a", "c128"),
        ("a * r + r", "c128"),
        ("a ** r / r", "c128"),
        ("select(r > 0.0, a, conj(b))", "c128"),
        ("choose(r > 0.0, a * b, conj(b) * a)", "c128"),
    ],
)
@sized
def test_not_holomorphic(call: str, t: str) -> None:
    text = f"func main(y: {t}, a: c128, b: c128, r: f64)\n    add y, {call}\n"
    zero = 0j if t == "c128" else 0.0
    inputs = {"y": zero, "a": 0.7 - 0.4j, "b": -0.3 + 0.9j, "r": 0.8}
    for loss in ("y.re", "y.im") if t == "c128" else ("y",):
        agree(rvm.assemble(text).main, inputs, loss)


@thin
@pytest.mark.parametrize(
    "call",
    [
        "sum(x)",
        "prod(x)",
        "amin(x) * amax(x)",
        "logsumexp(x) * logsumexp(A)",
        "sum(A) + prod(A)",
        "dot(x, x)",
        "dot(x, A @ x)",
        "sum(matvec(A, x) ** 2)",
        "sum(matmul(A, A) * A)",
        "sum(A @ B)",
        "x @ x",
        "sum((x @ A) ** 2)",
        "sum(outer(x, x) * A)",
        "sum(scan_left(x) * x)",
        "sum(scan_right(x) ** 2)",
        "sum(A.T @ x)",
        "sum(A.T[0, :] * x) + sum(transpose(A) @ x)",
        "sum(A[:, 1] * A[2, :])",
        "sum(x[1:3] * x[0:2])",
        "sum(gather(x, k) ** 2)",
        "scatter(gather(x, k), k, 4)[1]",
        "sum(scatter(x, m, 5) ** 3)",
        "x[k[0]] * x[k[3]] * A[k[1], 0]",
        "sum(select(x > 0.0, x ** 2, A[0, :]))",
        "sum(sum_like(A, x) ** 2)",
        "sum(spread_like(x, A) * A)",
        "dot(x + 1.0, 2.0 * x) / f64(len(x)) + f64(dim(A, 1))",
        "sum(prod_others(x) * x)",
        "hypot(x[0], x[1]) + sum(atan2(x, A[1, :]))",
        "sum(scaled(x, A, B[0, 0]) + scaled(x[0], x, A[1, :]))",
        "sum(polygamma(1.0, x) * polygamma(2.0, A))",
    ],
)
@sized
def test_functions_of_arrays(call: str) -> None:
    """`k` and `m` have repeated indices."""
    text = (
        "func main(y: f64, x: f64[n], A: f64[n, n], B: f64[n, p], k: i64[q], m: i64[n])\n"
        f"    add y, {call}\n"
    )
    if call.startswith("scatter(gather"):
        text = text.replace(f"    add y, {call}", ELEMENT)
    rng = np.random.default_rng(3)
    inputs = {
        "y": 0.0,
        "x": np.array([0.5, -1.2, 0.8]),
        "A": rng.normal(size=(3, 3)),
        "B": rng.normal(size=(3, 2)),
        "k": np.array([1, 0, 1, 2, 1]),
        "m": np.array([4, 0, 4]),
    }
    agree(rvm.assemble(text).main, inputs, "y")


ELEMENT = """    alloc t: f64[4]
    add t, scatter(gather(x, k), k, 4)
    add y, t[1] * t[2]
    sub t, scatter(gather(x, k), k, 4)
    free t"""


def test_gather_and_scatter_count_repeated_indices() -> None:
    f = rvm.assemble("func main(y: f64[p], x: f64[n], k: i64[p])\n    add y, gather(x, k)\n").main
    k = np.array([2, 0, 2, 2])
    g = f.vjp({"y": np.array([1.0, 10.0, 100.0, 1000.0])}, y=np.zeros(4), x=np.ones(3), k=k)
    assert g.x.tolist() == [10.0, 0.0, 1101.0]
    f = rvm.assemble(
        "func main(y: f64[3], x: f64[n], k: i64[n])\n    add y, scatter(x, k, 3)\n"
    ).main
    g = f.vjp({"y": np.array([1.0, 10.0, 100.0])}, y=np.zeros(3), x=np.ones(4), k=k)
    assert g.x.tolist() == [100.0, 1.0, 100.0, 100.0]


LOGS = ("x * z", "x / z", "x + z", "x - z / x ** 3.0", "x ** r", "sqrt(x) * z", "min(x, z)")
LOGS += (
    "choose(r > 0.0, x * z, z)",
    "abs(-x)",
    "square(x + z)",
    "select(r > 0.0, x, z)",
    "log64(r) * x",
    "exp_log64(r) + x",
)


@thin
@pytest.mark.parametrize("call", LOGS)
@sized
def test_logarithms(call: str) -> None:
    """Adjoints of log64 are by the logarithm: s = log x moves, and the loss is a log or a value."""
    head = "(y: log64, v: f64, x: log64, z: log64, r: f64)"
    text = f"func main{head}\n    mul y, {call}\n    add v, f64({call}) + log({call})\n"
    f = rvm.assemble(text).main
    given = {"y": rvm.LogNumber(0.1), "v": 0.2, "x": rvm.LogNumber(0.6), "z": rvm.LogNumber(-0.5)}
    for loss in ("y", "v"):
        agree(f, {**given, "r": 1.3}, loss)
    # In the value: dv/dx = dv/ds / x.
    g = rvm.assemble("func main(v: f64, x: log64)\n    add v, f64(x ** 3.0)\n").main
    s = g.grad(loss="v", v=0.0, x=rvm.LogNumber(np.log(2.0))).x
    assert s / 2.0 == pytest.approx(12.0, rel=1e-14)


@pytest.mark.parametrize("t", ["f64", "f32", "fixed", "log64"])
def test_a_detached_factor_is_a_constant(t: str) -> None:
    f = rvm.assemble(f"func f(y: f64, x: {t})\n    add y, f64(detach(x) * x)\n").f
    by_square = rvm.assemble(f"func f(y: f64, x: {t})\n    add y, f64(x * x)\n").f
    one, two = (g.grad(y=0.0, x=1.5, loss="y").x for g in (f, by_square))
    assert one == pytest.approx(two / 2, rel=1e-6)


def test_every_function_is_checked() -> None:
    """Those of real numbers that no test here names would go unseen."""
    source = Path(__file__).read_text()
    kinds = {row.name for row in TYPES.values() if row.kind == "integer"}
    integers = {"&", "|", "^", "~", "<<", ">>", "rotl", "rotr", *kinds}
    integers |= {"odd_product", "odd_quotient", "high_product"}
    integers |= {"bool", "<", "<=", ">", ">=", "==", "!=", "and", "or", "not", "for_end"}
    internal = {"last_min", "first_max", "prod_others_1", "prod_others_2"}
    internal |= {
        "checked_add",
        "checked_sub",
        "turned",
        "shear",
        "lift_odd",
        "lift_tan",
        "lift_sin",
    }
    seen = {r.name for r in KNOWN}
    for name in set(FUNCTIONS) - seen - integers - internal:
        assert f"{name}(" in source or name in ("@", "f32", "fixed"), name


@pytest.mark.parametrize(
    "call",
    [
        *("a + f64(k)", "f64(k) - a", "a % f64(k)", "max(a, f64(k))", "select(k > 3, a, f64(k))"),
        *("select(a < 9.0, a, f64(k))", "choose(k[0, 0] > 0, a, a) + f64(k)", "hypot(a, f64(k))"),
    ],
)
def test_constants_longer_along_an_axis(call: str) -> None:
    """Only `a` has a tangent, and the other argument is longer than it."""
    f = rvm.assemble(f"func f(y: f64, a: f64[m, p], k: i64[m, n])\n    add y, sum({call})\n").f
    at = {"y": 0.0, "a": np.array([[1.0], [5.0], [7.5]]), "k": np.arange(2, 14).reshape(3, 4)}
    along, h = np.array([[1.0], [-2.0], [0.5]]), 2.0**-20

    def moved(by: float) -> float:
        return float(f(**at | {"a": at["a"] + by * along}).y)

    slope = (moved(h) - moved(-h)) / (2 * h)
    for engine in ENGINES:
        with_engine = f.with_options(engine=engine)
        assert with_engine.jvp({"a": along}, at)[1].y == pytest.approx(slope, rel=1e-6)
        g = with_engine.grad(at, loss="y", wrt=["a"])
        assert float((g.a * along).sum()) == pytest.approx(slope, rel=1e-6)
