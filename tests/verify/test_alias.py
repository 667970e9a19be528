"""`overlap` against NumPy: what it calls never or always is so for every value of the indices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples

from rvm.expr import (
    Apply,
    Const,
    Expr,
    Index,
    Part,
    Place,
    Span,
    Step,
    Transposed,
    index_reads,
    reads,
)
from rvm.isa import TypeFault, place, typed
from rvm.types import C128, I64, U8, Array, Scalar
from rvm.verify.alias import overlap

X, RI, RJ, RB = 0, 1, 2, 3
"""Registers: a matrix of c128, two i64, one u8."""
BASE = Array(C128, 2)
I8 = Scalar("i8")


def var(reg: int, t: Scalar = I64) -> Expr:
    return Place(reg, (), t)


def lit(value: int, t: Scalar = I64) -> Expr:
    return Const(value, t)


def f(fn: str, *args: Expr) -> Expr:
    return typed(Apply(fn, args))


def at(*path: Step) -> Place:
    return place(X, BASE, path)


def elem(*items: Expr | Span) -> Index:
    return Index(items)


i, j, b = var(RI), var(RJ), var(RB, U8)
i1, i2 = f("+", i, lit(1)), f("+", i, lit(2))

CASES = [
    (at(), at(), "always"),
    (at(elem(i)), at(), "always"),
    (at(elem(i)), at(elem(i)), "always"),
    (at(elem(i)), at(elem(i1)), "never"),
    (at(elem(i)), at(elem(j)), "maybe"),
    (at(elem(i, j)), at(elem(i, f("-", j, lit(1)))), "never"),
    (at(elem(i, j)), at(elem(j, i)), "maybe"),
    (at(elem(lit(1))), at(elem(lit(2))), "never"),
    (at(elem(i)), at(elem(f("-", f("+", i, j), j))), "always"),
    (at(elem(f("*", lit(2), i))), at(elem(f("+", i, i))), "always"),
    (at(elem(f("neg", i))), at(elem(f("-", lit(0), i))), "always"),
    (at(Part("re")), at(Part("im")), "never"),
    (at(Part("re")), at(elem(i)), "always"),
    (at(elem(i), Part("re")), at(Part("im"), elem(i)), "never"),
    (at(elem(Span(None, i))), at(elem(Span(i, None))), "never"),
    (at(elem(Span(i, i1))), at(elem(Span(i1, i2))), "never"),
    (at(elem(Span(lit(0), lit(2)))), at(elem(Span(lit(1), lit(3)))), "always"),
    (at(elem(Span(i, i2))), at(elem(i1)), "always"),
    (at(elem(Span(i, i2))), at(elem(i2)), "never"),
    (at(elem(Span(i, j))), at(elem(Span(i, j))), "always"),
    (at(elem(Span(i, j))), at(elem(i)), "maybe"),
    (at(elem(Span(lit(1), None)), elem(i)), at(elem(i1)), "always"),
    (at(elem(Span(lit(1), None)), elem(i)), at(elem(i)), "never"),
    (at(elem(Span(None, None, lit(2)))), at(elem(Span(lit(1), None, lit(2)))), "never"),
    (at(elem(Span(i, None, lit(3)))), at(elem(Span(i2, None, lit(3)))), "never"),
    (at(elem(Span(i, None, lit(4)))), at(elem(Span(i2, None, lit(6)))), "maybe"),
    (at(elem(Span(i, None, lit(4)))), at(elem(Span(i1, None, lit(6)))), "never"),
    (at(elem(Span(i, j, lit(2)))), at(elem(Span(i, j, lit(2)))), "always"),
    (at(elem(Span(i, None, lit(2)))), at(elem(i1)), "never"),
    (at(elem(Span(None, None, lit(2)), i)), at(elem(Span(), i1)), "never"),
    (at(elem(Span(None, None, lit(2))), elem(i)), at(elem(f("*", lit(2), i))), "always"),
    (at(elem(Span(None, None, lit(2))), elem(i)), at(elem(f("+", i, i1))), "never"),
    (at(elem(Span(None, i, lit(-1)))), at(elem(i)), "never"),
    (at(elem(Span(i, None, lit(-1)))), at(elem(Span(i1, None))), "never"),
    (at(elem(Span(i, None, lit(-1)))), at(elem(Span(i, None))), "maybe"),
    (at(elem(Span(lit(127, I8), None, lit(-1)))), at(elem(lit(0))), "maybe"),
    (at(elem(Span(None, None, j))), at(elem(Span(i, None, j))), "maybe"),
    (at(Transposed(), elem(i)), at(elem(j)), "always"),
    (at(Transposed(), elem(i)), at(elem(Span(None, None), i1)), "never"),
    (at(Transposed(), elem(i, j)), at(elem(j, i)), "always"),
    # A u8 wraps: b + 255 is b - 1, which is not b; which of them is larger is not known.
    (at(elem(b)), at(elem(f("+", b, lit(255, U8)))), "never"),
    (at(elem(Span(None, b))), at(elem(Span(f("+", b, lit(1, U8)), None))), "maybe"),
    (at(elem(b)), at(elem(f("+", f("+", b, lit(200, U8)), lit(56, U8)))), "always"),
    (at(elem(b)), at(elem(i)), "maybe"),
    (at(elem(lit(3, U8))), at(elem(lit(3))), "always"),
]


@pytest.mark.parametrize(("one", "two", "verdict"), CASES)
def test_known_cases_both_ways_round(one: Place, two: Place, verdict: str) -> None:
    assert overlap(one, two) == verdict
    assert overlap(two, one) == verdict


def test_other_registers_never_overlap() -> None:
    assert overlap(place(0, BASE), place(1, BASE)) == "never"


def test_large_indices_are_left_to_the_run() -> None:
    big = i
    for _ in range(200):
        big = f("+", big, lit(1))
    assert overlap(at(elem(i)), at(elem(big))) == "maybe"


def test_a_length_does_not_read_the_array_but_its_indices_do() -> None:
    row = at(elem(i))
    length = typed(Apply("dim", (row, lit(0))))
    assert [p.reg for p in reads(length)] == [RI]
    assert {p.reg for p in reads(f("+", length, j))} == {RI, RJ}
    assert sorted(p.reg for p in index_reads(at(elem(i, j)))) == [RI, RJ]


# --- against NumPy, by trying all values of i and j

N = 4
CELLS = np.arange(N * N * 2).reshape(N, N, 2)
"""The cells of an N by N array of pairs (re, im)."""

index = st.one_of(
    st.integers(0, 3).map(lit),
    st.sampled_from([i, j]),
    st.tuples(st.sampled_from([i, j]), st.sampled_from("+-"), st.integers(0, 3)).map(
        lambda t: f(t[1], t[0], lit(t[2]))
    ),
)
end = st.one_of(st.none(), index)
by = st.one_of(st.none(), st.sampled_from([1, 2, 3, -1, -2]).map(lit), st.just(i))
item = st.one_of(index, st.tuples(end, end, by).map(lambda t: Span(*t)))
step = st.one_of(
    st.lists(item, min_size=1, max_size=2).map(lambda items: Index(tuple(items))),
    st.sampled_from([Part("re"), Part("im")]),
    st.just(Transposed()),
)


def made(steps: list[Step]) -> Place:
    """A place from those steps that fit."""
    path: list[Step] = []
    for s in steps:
        try:
            place(X, BASE, [*path, s])
        except TypeFault:
            continue
        path.append(s)
    return at(*path)


def value(node: Expr, env: dict[int, int]) -> int:
    match node:
        case Const(v):
            return int(v)
        case Place(reg):
            return env[reg]
        case Apply("+", (p, q)):
            return value(p, env) + value(q, env)
        case Apply("-", (p, q)):
            return value(p, env) - value(q, env)
    raise AssertionError(node)


def cells(p: Place, env: dict[int, int]) -> set[int] | None:
    """The cells of a place; None where an index or a slice is out of bounds."""
    view, parts = CELLS, 1
    for s in p.path:
        if isinstance(s, Part):
            view, parts = view[..., 0 if s.name == "re" else 1], 0
        elif isinstance(s, Transposed):
            axes = view.ndim - parts
            view = view.transpose(*reversed(range(axes)), *range(axes, view.ndim))
        else:
            assert isinstance(s, Index)
            key: list[int | slice] = []
            for axis, it in enumerate(s.items):
                n = view.shape[axis]
                if isinstance(it, Span):
                    lo, hi, by = (None if e is None else value(e, env) for e in it.ends)
                    indices = range(n)[slice(lo, hi, by)] if by != 0 else None
                    # What NumPy would clip, or count from the end, is out of bounds.
                    ends = [e for e in (lo, hi) if e is not None]
                    upwards = by is None or by > 0
                    first, last = (lo or 0, n if hi is None else hi)
                    if not upwards:
                        first, last = (-1 if hi is None else hi, n - 1 if lo is None else lo)
                    top = n if upwards or lo is None else n - 1
                    if indices is None or not all(0 <= e <= top for e in ends) or first > last:
                        return None
                    key.append(slice(lo, hi, by))
                else:
                    k = value(it, env)
                    if not 0 <= k < n:
                        return None
                    key.append(k)
            view = view[tuple(key)]
    return set(np.asarray(view).ravel().tolist())


@pytest.mark.deep
@examples(1500)
@given(st.lists(step, max_size=3), st.lists(step, max_size=3))
def test_verdicts_hold_for_every_value(one: list[Step], two: list[Step]) -> None:
    a, c = made(one), made(two)
    verdict = overlap(a, c)
    assert verdict == overlap(c, a)
    for vi, vj in itertools.product(range(N), repeat=2):
        env = {RI: vi, RJ: vj}
        p, q = cells(a, env), cells(c, env)
        if not p or not q:
            continue
        if verdict == "never":
            assert not p & q, env
        elif verdict == "always":
            assert p & q, env


LENGTH = 24


@st.composite
def constant_slices(draw: st.DrawFn) -> tuple[Place, set[int]]:
    """A vector's part by slices whose ends and steps are constants, and what it holds of it."""
    held = np.arange(LENGTH)
    path: list[Step] = []
    for _ in range(draw(st.integers(1, 2))):
        n = len(held)
        first, last = sorted(draw(st.tuples(*[st.integers(0, n)] * 2)))
        by = draw(st.integers(1, 7))
        ends: tuple[int | None, ...] = (first, last)
        if n and draw(st.booleans()):
            below = draw(st.integers(-1, min(first, n - 1)))
            ends = min(last, n - 1), None if below < 0 else below
            by = -by
        held = held[slice(*ends, by)]
        path.append(elem(Span(*(None if e is None else lit(e) for e in (*ends, by)))))
    return place(X, Array(I64, 1), path), set(held.tolist())


@examples(3000)
@given(constant_slices(), constant_slices())
def test_of_constants_all_is_known(
    one: tuple[Place, set[int]], two: tuple[Place, set[int]]
) -> None:
    verdict = "always" if one[1] & two[1] else "never"
    assert overlap(one[0], two[0]) == overlap(two[0], one[0]) == verdict
