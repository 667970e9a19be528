"""Sums and products of arrays have one order, whatever the engine: that of `engines.order`."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from engines.order import one_by_one, ordered
from numpy.typing import NDArray
from rvm_tools.isa_page import members
from sizes import DEEP, first_and_another, sized, thin, wide

import rvm
from rvm.registry import executing, having
from rvm.run.machine import Machine

Array = NDArray[Any]
TYPES = {"f64": np.float64, "f32": np.float32, "c128": np.complex128}
ARRAYS = "x: T[l], y: T[l], a: T[m, l], b: T[l, k], like: T[k], at: i64[l]"
TEXT = f"""
func f(s: T, t: T, o: T, p: T, r: T, d: T, e: T, h: T[k], v: T[m], w: T[k], q: T[m, k], {ARRAYS})
    add s, sum(x)
    add t, sum(a.T)
    add o, sum(gather(x, at))
    add p, prod(x)
    add r, prod(a.T)
    add d, dot(x, y)
    add e, b[:, 1] @ y
    add h, sum_like(b, like)
    add v, a @ x
    add w, x @ b
    add q, a @ b
"""
FOUND = ("s", "t", "o", "p", "r", "d", "e", "h", "v", "w", "q")
LENGTHS = (
    range(301)
    if DEEP
    else (*range(10), 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 300)
)
ROWS, COLUMNS, LANES = 3, 2, 9


def numbers(rng: np.random.Generator, dtype: Any, kind: str, *shape: int) -> Array:
    """Numbers of all sizes; of `kind` zeros many are -0, or all; beyond: infinities, NaN."""
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6, shape)
    if kind == "zeros":
        x[rng.random(shape) < rng.choice([0.3, 1.0])] = -0.0
    elif kind == "beyond":
        x[rng.random(shape) < 0.1] = np.inf
        x[rng.random(shape) < 0.02] = np.nan
    found = x.astype(dtype)
    if found.dtype.kind == "c":
        found.imag = x[..., ::-1]
    return found


def times(a: Any, b: Any) -> Any:
    """A product of two numbers, complex ones by four products that are rounded."""
    if not np.iscomplexobj(a):
        return a * b
    re, im = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
    found = np.zeros((), complex)
    found.real, found.imag = re, im
    return found[()]


def plus(a: Any, b: Any) -> Any:
    return a + b


def products(a: Any, b: Any) -> list[Any]:
    return [times(p, q) for p, q in zip(a, b, strict=True)]


def expected(x: Array, y: Array, a: Array, b: Array, at: Array) -> dict[str, Any]:
    """All results, in the stated order."""
    zero, one = x.dtype.type(0), x.dtype.type(1)

    def column(p: Array, q: Array) -> Any:
        return one_by_one(products(p, q), plus, zero)

    found = {"s": ordered(x, plus, zero), "t": ordered(a.T.reshape(-1), plus, zero)}
    found |= {"o": ordered(x[at], plus, zero), "p": ordered(x, times, one)}
    found |= {"r": ordered(a.T.reshape(-1), times, one), "d": ordered(products(x, y), plus, zero)}
    found["e"] = ordered(products(b[:, 1], y), plus, zero)
    found["h"] = [ordered(c, plus, zero) for c in b.T]
    found["v"] = [column(row, x) for row in a]
    found["w"] = [column(x, c) for c in b.T]
    found["q"] = [[column(row, c) for c in b.T] for row in a]
    # What they are added to is 0.
    return {k: plus(x.dtype.type(0), np.array(v, x.dtype)) for k, v in found.items()}


def same(a: Any, b: Any) -> bool:
    """Whether all bits are the same; a NaN is like any other."""
    a, b = np.asarray(a), np.asarray(b)
    if "c" in (a.dtype.kind, b.dtype.kind):
        return same(a.real, b.real) and same(a.imag, b.imag)
    signs = np.signbit(a) == np.signbit(b)
    return a.shape == b.shape and bool(np.all((a == b) & signs | np.isnan(a) & np.isnan(b)))


@cache
def library(t: str) -> rvm.Library:
    return rvm.assemble(re.sub(r": T\b", f": {t}", TEXT))


def start(dtype: Any) -> dict[str, Any]:
    shapes = {"h": (COLUMNS,), "v": (ROWS,), "w": (COLUMNS,), "q": (ROWS, COLUMNS)}
    zeros = {k: np.zeros(s, dtype) for k, s in shapes.items()}
    numbers = {k: zeros.get(k, dtype(0).item()) for k in FOUND}
    return {**numbers, "like": np.ones(COLUMNS, dtype)}


def inputs(dtype: Any, kind: str, n: int, *lanes: int) -> dict[str, Array]:
    """Vectors of n numbers, and matrices with n rows or columns."""
    rng = np.random.default_rng([n, len(kind)])
    x = numbers(rng, dtype, kind, *lanes, n)
    y = numbers(rng, dtype, kind, *lanes, n)
    a = numbers(rng, dtype, kind, *lanes, ROWS, n)
    b = numbers(rng, dtype, kind, *lanes, n, COLUMNS)
    at = np.broadcast_to(rng.permutation(n), (*lanes, n))
    return {"x": x, "y": y, "a": a, "b": b, "at": at}


def run(t: str, engine: str, counting: bool, given: dict[str, Array]) -> Any:
    given = {**start(TYPES[t]), **given}
    if not counting:
        return library(t).f(engine=engine, **given)
    machine = Machine(library(t), "f", engine=engine, **given)
    machine.count()
    return machine.run()


@thin
@pytest.mark.parametrize("kind", ["sizes", "zeros", "beyond"])
@pytest.mark.parametrize("t", TYPES)
@sized
def test_every_engine_keeps_the_order(t: str, kind: str) -> None:
    for n in LENGTHS:
        given = inputs(TYPES[t], kind, n)
        with np.errstate(all="ignore"):
            want = expected(**given)
        for engine in first_and_another(executing(), (t, kind)):
            for counting in (False, True):
                found = run(t, engine, counting, given)
                for name in FOUND:
                    assert same(want[name], found[name]), (n, engine, counting, name)


@thin
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("engine", having("lanes"))
@sized
def test_lanes_keep_the_order(t: str, engine: str) -> None:
    for n in LENGTHS[:: 1 if DEEP else 2]:
        given = inputs(TYPES[t], "beyond", n, LANES)
        found = library(t).f.map(engine=engine, **start(TYPES[t]), **given)
        assert not found.alone
        for k in range(LANES):
            with np.errstate(all="ignore"):
                want = expected(**{name: a[k] for name, a in given.items()})
            for name in FOUND:
                assert same(want[name], found[name][k]), (n, k, name)


@wide
@pytest.mark.parametrize("engine", having("lanes"))
def test_adjoints_of_what_lanes_share_are_summed_in_order(engine: str) -> None:
    f = rvm.assemble(
        "func f(e: f64, a: f64, b: f64[2], x: f64[2])\n    add e, a * x[0] + dot(b, x)\n"
    ).f
    for n in (1, 2, 63, 64, 65, 130, 300):
        x = numbers(np.random.default_rng(n), np.float64, "sizes", n, 2)
        grad = f.map.grad(engine=engine, loss="e", e=0.0, a=2.0, b=np.ones(2), x=x)
        assert grad.a == ordered(x[:, 0], plus, 0.0)
        assert grad.b.tolist() == [ordered(c, plus, 0.0) for c in x.T]


@pytest.mark.parametrize("t", members("inexact"))
def test_large_products_add_in_order(t: str) -> None:
    """Results of a few rows at once, in blocks, or a row at a time."""
    rng = np.random.default_rng(4)
    f = rvm.assemble(f"func f(c: {t}[m, n], a: {t}[m, k], b: {t}[k, n])\n    add c, a @ b\n").f
    g = rvm.assemble(f"func f(c: {t}[n], a: {t}[k], b: {t}[k, n])\n    add c, a @ b\n").f
    for m, k, n in ((90, 7, 80), (150, 5, 130), (3, 4, 9000), (2, 3, 20000), (20000, 3, 1)):
        a, b = numbers(rng, TYPES[t], "zeros", m, k), numbers(rng, TYPES[t], "sizes", k, n)
        products = [times_all(a[:, j, None], b[None, j]) for j in range(k)]
        for found, parts in (
            (f(c=np.zeros((m, n), TYPES[t]), a=a, b=b, engine="python").c, products),
            (g(c=np.zeros(n, TYPES[t]), a=a[0], b=b, engine="python").c, [p[0] for p in products]),
        ):
            want = parts[0]
            for part in parts[1:]:
                want = want + part
            assert same(0 + want, found)


def times_all(a: Any, b: Any) -> Any:
    """The products of all elements, complex ones by four products that are rounded."""
    if not np.iscomplexobj(a):
        return a * b
    found = np.empty(np.broadcast_shapes(a.shape, b.shape), complex)
    found.real = a.real * b.real - a.imag * b.imag
    found.imag = a.real * b.imag + a.imag * b.real
    return found


@pytest.mark.parametrize("t", members("float"))
def test_the_greatest_magnitude_is_a_nan_or_the_greatest(t: str) -> None:
    f = rvm.assemble(f"func f(y: {t}, x: {t}[n], z: {t}[n])\n    add y, amax(abs(x - z))\n").f
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 8, 9, 64, 300):
        for kind in ("sizes", "zeros", "beyond"):
            for _ in range(5):
                x, z = numbers(rng, TYPES[t], kind, n), np.zeros(n, TYPES[t])
                want = np.max(np.abs(x))
                for engine in executing():
                    assert same(want, f(engine=engine, y=TYPES[t](0).item(), x=x, z=z).y)


@wide
def test_logarithms_and_rounded_products_keep_it() -> None:
    """`prod` of fixed-point numbers, and both of numbers held as logarithms."""
    program = rvm.assemble(
        "func f(p: fixed, l: log64, m: log64, x: fixed[n], y: log64[n])\n"
        "    add p, prod(x)\n    mul l, prod(y)\n    mul m, sum(y)\n"
        "func g(p: fixed, x: fixed, y: fixed)\n    add p, x * y\n"
        "func h(l: log64, x: log64, y: log64)\n    mul l, x + y\n"
    )

    def product(a: int, b: int) -> int:
        return int(program.g(p=0, x=rvm.Fixed(a), y=rvm.Fixed(b)).p.raw)

    def total(a: float, b: float) -> float:
        return float(program.h(l=1, x=rvm.LogNumber(a), y=rvm.LogNumber(b)).l.log)

    for n in (1, 2, 40, 64, 65, 150):
        rng = np.random.default_rng(n)
        x = np.round(rng.uniform(0.9, 1.1, n) * 2.0**43).astype(np.int64)
        y = rng.normal(size=n)
        for engine in executing():
            found = program.f(engine=engine, p=0, l=1, m=1, x=x, y=y)
            assert found.p.raw == ordered(x.tolist(), product, 1 << 43)
            assert found.l.log == ordered(y.tolist(), plus, 0.0)
            assert found.m.log == ordered(y.tolist(), total, -np.inf)
        many = program.f.map(p=0, l=1, m=1, x=np.array([x, x]), y=np.array([y, y]))
        assert many.p.tolist() == [found.p.raw] * 2
        assert many.l.tolist() == [found.l.log] * 2 and many.m.tolist() == [found.m.log] * 2
