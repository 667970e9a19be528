"""Positions, what follows what, and live sets, compared with a plain search over all ways."""

from __future__ import annotations

import pytest
from attack.programs.blind import random_program
from sizes import wide
from verify.making import Maker
from work import processor_time

from rvm.expr import Apply, Const
from rvm.program import Function
from rvm.types import BOOL, I64
from rvm.verify.flow import liveness, successors

TRUE, FALSE = Const(True, BOOL), Const(False, BOOL)


def test_a_loop_by_hand() -> None:
    m = Maker("f", n=I64)
    m.op("cf", Apply("!=", (m["n"], Const(0))), aux=2)
    m.op("inc", m["n"])
    m.op("br", Apply("<", (m["n"], Const(5))), aux=0)
    code = m.function().code
    assert [successors(code, p) for p in range(4)] == [(1,), (2,), (3, 1), ()]


def test_constant_conditions_close_edges() -> None:
    """`if … else …`: nobody falls past `br true`, nobody falls into `cf true`."""
    m = Maker("f", n=I64)
    m.op("br", Apply("!=", (m["n"], Const(0))), aux=3)
    m.op("inc", m["n"])
    m.op("br", TRUE, aux=5)
    m.op("cf", TRUE, aux=0)
    m.op("dec", m["n"])
    m.op("cf", Apply("<", (m["n"], Const(0))), aux=2)
    code = m.function().code
    assert [successors(code, p) for p in range(7)] == [(1, 4), (2,), (6,), (), (5,), (6,), ()]
    m.code[0] = type(m.code[0])("br", (FALSE,), 3)
    assert successors(m.function().code, 0) == (1,)


def searched(f: Function) -> dict[int, set[frozenset[int]]]:
    """All live sets with which each position is reached from the start, by brute force."""
    seen: dict[int, set[frozenset[int]]] = {}
    todo = [(0, frozenset(f.param_slots))]
    while todo:
        p, live = todo.pop()
        if live in seen.setdefault(p, set()):
            continue
        seen[p].add(live)
        for q in successors(f.code, p):
            after = live
            if q == p + 1 and f.code[p].op in ("alloc", "free"):
                after = live ^ {f.code[p].args[0].reg}  # type: ignore[attr-defined]
            todo.append((q, after))
    return seen


@wide
def test_live_sets_are_those_that_a_search_finds() -> None:
    for seed in range(100):
        for f in random_program(seed).functions:
            lives = liveness(f)
            for p, sets in searched(f).items():
                assert sets == {lives.live(p)}


def test_branches_that_allocate_on_both_sides_agree() -> None:
    m = Maker("f", n=I64)
    t = m.local("t")
    zero = Apply("==", (m["n"], Const(0)))
    m.op("br", zero, aux=3)
    m.op("alloc", t, 1)
    m.op("br", TRUE, aux=5)
    m.op("cf", TRUE, aux=0)
    m.op("alloc", t, 2)
    m.op("cf", Apply("!=", (m["n"], Const(0))), aux=2)
    m.op("free", t, 1)
    lives = liveness(m.function())
    assert not lives.conflicts
    assert [lives.live(p) for p in (1, 4, 6, 7)] == [{0}, {0}, {0, 1}, {0}]


@pytest.mark.deep
def test_many_overlapping_lifetimes_take_linear_time_and_memory() -> None:
    """20,000 ancillas all live at once, and freed in the order in which they were made."""

    def overlapping(n: int) -> Function:
        m = Maker("f", n=I64)
        locals_ = [m.local(f"t{k}") for k in range(n)]
        for t in locals_:
            m.raw("alloc", t, Const(0, I64))
        for t in locals_:
            m.raw("free", t, Const(0, I64))
        return m.function()

    small, large = overlapping(5_000), overlapping(20_000)
    ratio = processor_time(lambda: liveness(large)) / processor_time(lambda: liveness(small))
    assert ratio < 9, "four times as many, so four times is right and sixteen is not"
    lives = liveness(large)
    assert lives.live(20_000) == frozenset(range(20_001))
    assert lives.live(40_000) == {0}
