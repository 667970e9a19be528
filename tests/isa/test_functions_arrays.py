"""Functions of arrays, on every type, against sums and products of scalars."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pytest
from engines.order import ordered
from sizes import wide

from rvm.isa.implementation import array_value, value
from rvm.isa.rows import FUNCTIONS
from rvm.isa.rules import Arg, TypeFault
from rvm.numbers import NumberFault, system
from rvm.types import BOOL, F32, F64, I64, LOG64, SCALARS, U8, elem_of, fixed, rank_of

TYPES = [*SCALARS.values(), fixed(8)]
NUMBERS = [t for t in TYPES if t != BOOL and t != LOG64]
SHAPES = {1: (4,), 2: (4, 4)}


def array(t, shape, seed=3):
    rng = np.random.default_rng(seed)
    if t.is_bool:
        return rng.random(shape) < 0.5
    if t.is_integer:
        return rng.integers(0, 200, shape).astype(system(t).dtype)
    if t.is_fixed:
        return rng.integers(-(3 << t.frac), 3 << t.frac, shape)
    x = rng.uniform(-2, 2, shape)
    return (x + 1j * rng.uniform(-2, 2, shape) if t.is_complex else x).astype(system(t).dtype)


def fold(f, t, items, start):
    g = value(f, (t, t))
    return reduce(g, items, system(t).literal(start) if start is not None else None)


def close(t, got, want):
    tolerance = 1e-5 if t == F32 else 1e-12
    return np.shape(got) == np.shape(want) and system(t).close(got, want, tolerance)


@pytest.mark.parametrize("t", [*NUMBERS, LOG64], ids=str)
def test_reductions(t):
    for x in (array(t, (7,)), array(t, (2, 3)), array(t, (3, 4))[::2, 1:].T):
        items = [v.item() for v in x.flat]
        total = array_value("sum", (t,))(x)
        if t == LOG64:
            assert close(t, total, reduce(value("+", (t, t)), items))
        else:
            assert close(t, total, fold("+", t, items, 0))
        product = array_value("prod", (t,))(x)
        assert close(t, product, ordered(items, value("*", (t, t)), 1))
        assert type(total) is type(product) is type(system(t).zero)
        if not t.is_complex:
            assert array_value("amin", (t,))(x) == min(items)
            assert array_value("amax", (t,))(x) == max(items)
    if t != LOG64:
        empty = np.zeros(0, system(t).dtype)
        assert array_value("sum", (t,))(empty) == 0
        assert array_value("prod", (t,))(empty) == system(t).literal(1)


def test_an_extreme_of_nothing_is_an_error():
    with pytest.raises(NumberFault) as info:
        array_value("amin", (F64,))(np.zeros(0))
    assert info.value.code == "R015"
    assert np.isnan(array_value("amax", (F64,))(np.array([1.0, np.nan])))


@pytest.mark.parametrize("t", NUMBERS, ids=str)
def test_products(t):
    a, b, x, y = array(t, (2, 3)), array(t, (3, 4), 5), array(t, (3,), 7), array(t, (3,), 9)

    def dot(u, v):
        pairs = zip(u, v, strict=True)
        return fold("+", t, [value("*", (t, t))(p.item(), q.item()) for p, q in pairs], 0)

    dtype = system(t).dtype
    both = (t, t)
    got = array_value("dot", both)(x, y)
    assert close(t, got, dot(x, y)) and type(got) is type(system(t).zero)
    assert close(t, array_value("@", both)(x, y), dot(x, y))
    rows = np.array([dot(r, x) for r in a], dtype)
    full = np.array([[dot(r, c) for c in b.T] for r in a], dtype)
    for f, args, want in (
        ("matvec", (a, x), rows),
        ("@", (a, x), rows),
        ("@", (x, b), np.array([dot(x, c) for c in b.T], dtype)),
        ("matmul", (a, b), full),
        ("@", (a, b), full),
    ):
        got = array_value(f, both)(*args)
        assert got.dtype == dtype and close(t, got, want)
    table = [[value("*", both)(p.item(), q.item()) for q in y] for p in x]
    got = array_value("outer", both)(x, y)
    assert got.dtype == dtype and close(t, got, np.array(table, dtype))
    for f, args in (("dot", (x, y[:2])), ("matvec", (a, x[:2])), ("@", (b, a))):
        with pytest.raises(NumberFault, match="lengths do not match") as info:
            array_value(f, both)(*args)
        assert info.value.code == "R008"


@pytest.mark.parametrize("t", NUMBERS, ids=str)
def test_scans(t):
    x = array(t, (6,))
    left, right = array_value("scan_left", (t,))(x), array_value("scan_right", (t,))(x)
    assert left.dtype == right.dtype == system(t).dtype
    for i in range(6):
        assert close(t, left[i].item(), fold("+", t, [v.item() for v in x[: i + 1]], 0))
        assert close(t, right[i].item(), fold("+", t, [v.item() for v in x[i:]], 0))


@pytest.mark.parametrize("t", NUMBERS, ids=str)
def test_gather_and_scatter(t):
    x, idx = array(t, (5,)), np.array([4, 0, 4])
    assert array_value("gather", (t, I64))(x, idx).tolist() == [x[4], x[0], x[4]]
    got = array_value("scatter", (t, I64, I64))(x[:3], idx, 5)
    zero = system(t).zero
    repeated = value("+", (t, t))(x[0].item(), x[2].item())
    assert got.dtype == system(t).dtype
    assert got.tolist() == [x[1].item(), zero, zero, zero, repeated]


@pytest.mark.parametrize("bad", [-1, 5])
def test_indices_are_checked_and_never_count_from_the_end(bad):
    x, idx = np.zeros(5), np.array([0, bad])
    for call in (
        lambda: array_value("gather", (F64, I64))(x, idx),
        lambda: array_value("scatter", (F64, I64, I64))(x[:2], idx, 5),
    ):
        with pytest.raises(NumberFault) as info:
            call()
        assert info.value.code == "R003"
        assert info.value.values["index"] == bad
    with pytest.raises(NumberFault) as info:
        array_value("scatter", (F64, I64, I64))(x, idx, 5)
    assert info.value.code == "R008"
    with pytest.raises(NumberFault):
        array_value("scatter", (F64, I64, I64))(x[:0], idx[:0], -1)


def test_lengths_and_transposes():
    a = np.zeros((2, 3))
    assert array_value("len", (F64,))(a) == 2
    assert array_value("dim", (F64, I64))(a, 1) == 3
    assert array_value("transpose", (F64,))(a).shape == (3, 2)
    with pytest.raises(NumberFault) as info:
        array_value("dim", (F64, I64))(a, 2)
    assert info.value.code == "R003"


def test_integer_sums_wrap_in_their_type():
    assert array_value("sum", (U8,))(np.array([200, 100], np.uint8)) == 44
    assert array_value("prod", (U8,))(np.array([16, 16], np.uint8)) == 0
    assert array_value("scan_left", (U8,))(np.array([200, 100], np.uint8)).tolist() == [200, 44]


@wide
def test_every_function_of_arrays_has_code_for_all_that_it_takes():
    tried = set()
    for name, row in FUNCTIONS.items():
        if row.formula is not None:
            # It stands for an expression of others, which each have code.
            continue
        for types in itertools.product(TYPES, repeat=row.arity):
            for shape in itertools.product((0, 1, 2), repeat=row.arity):
                if not any(shape):
                    continue
                try:
                    args = [Arg(t, r) for t, r in zip(types, shape, strict=True)]
                    typing = row.rule(args, None)
                except TypeFault:
                    continue
                if typing.elems != types:
                    continue
                array_value(name, types)
                tried.add((name, types, rank_of(typing.result)))
    assert len(tried) > 1500


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_arrays_are_of_the_type_s_storage(name):
    """Also where a scalar, which says nothing of its width, becomes an array."""
    row = FUNCTIONS[name]
    for t in TYPES:
        for kinds in {(t,) * row.arity, (BOOL, t, t), (t, I64), (t, U8), (U8, t), (t, F64)}:
            for ranks in itertools.product(range(3), repeat=row.arity):
                if len(kinds) != row.arity or not any(ranks):
                    continue
                try:
                    typing = row.rule([Arg(*a) for a in zip(kinds, ranks, strict=True)], None)
                except TypeFault:
                    continue
                if typing.elems != kinds or not rank_of(typing.result):
                    continue
                ones = [
                    np.ones(SHAPES[rank], system(k).dtype) if rank else one(k)
                    for k, rank in zip(kinds, ranks, strict=True)
                ]
                try:
                    with np.errstate(all="ignore"):
                        got = array_value(name, kinds)(*ones)
                except (NumberFault, ValueError):  # shapes that do not broadcast
                    continue
                assert got.dtype == system(elem_of(typing.result)).dtype, (kinds, ranks)


def one(t):
    return True if t.is_bool else system(t).literal(1)
