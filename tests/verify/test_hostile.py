"""Programs made to waste time: the verifier's work is in proportion to them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from sizes import wide
from verify.making import Maker, array, program
from work import processor_time

from rvm.expr import Apply, Const, Expr, Place
from rvm.program import Program
from rvm.types import BOOL, F64, I64
from rvm.verify import MAX_FINDINGS, findings

ZERO = Const(0, I64)


def straight(n: int) -> Program:
    """Simple instructions, of which a good many a second must pass."""
    m = Maker("f", s=I64, x=array(I64))
    i = m.local("i")
    m.op("alloc", i, 0)
    for _ in range(n):
        m.op("add", m["s"], i)
        m.op("add", m.elem("x", i), Apply("*", (m["s"], Const(3))))
        m.op("inc", i)
        m.op("sub", i, 1)
    m.op("free", i, 0)
    return program(m)


def many_ancillas(n: int) -> Program:
    """All live at once, freed in the order in which they were made."""
    m = Maker("f", y=I64)
    made = [m.local(f"t{k}") for k in range(n)]
    for t in made:
        m.raw("alloc", t, ZERO)
    for t in made:
        m.raw("free", t, ZERO)
    return program(m)


def sliding_window(n: int) -> Program:
    """Ancillas that overlap like tiles of a roof: every live set is another one."""
    m = Maker("f", y=I64)
    made = [m.local(f"t{k}") for k in range(n)]
    m.raw("alloc", made[0], ZERO)
    for a, b in pairwise(made):
        m.raw("alloc", b, ZERO)
        m.raw("free", a, ZERO)
    m.raw("free", made[-1], ZERO)
    return program(m)


def disagreements(n: int) -> Program:
    """n branches, each of which disagrees on n ancillas."""
    m = Maker("f", y=I64)
    made = [m.local(f"t{k}") for k in range(n)]
    cond = Apply("==", (m["y"], ZERO), BOOL)
    for k in range(n):
        m.raw("br", cond, aux=5 * n - 1 - k)
    for t in made:
        m.raw("alloc", t, ZERO)
    for _ in range(2 * n):
        m.op("inc", m["y"])
    for k in range(n):
        m.raw("cf", cond, aux=n - 1 - k)
    return program(m)


def shared_roots(n: int) -> Program:
    """Instructions that all hold another root above the same large expression."""
    m = Maker("f", y=I64, x=I64)
    big: Expr = m["x"]
    for _ in range(9):
        big = Apply("+", (big, big), I64)
    for k in range(n):
        m.raw("add", m["y"], Apply("+", (big, Const(k, I64)), I64))
    return program(m)


def wide_calls(n: int) -> Program:
    """Calls that pass 255 elements of one array, all of them changed by the callee."""
    g = Maker("g", **{f"p{k}": F64 for k in range(255)})
    for k in range(255):
        g.op("neg", g[f"p{k}"])
    m = Maker("f", x=array())
    args = [m.elem("x", k) for k in range(255)]
    for _ in range(n):
        m.op("call", *args, symbol="g")
    return program(m, g)


def chain_of_calls(n: int) -> Program:
    """A parameter that is changed at the end of a chain of calls."""
    makers = []
    for k in range(n):
        m = Maker(f"f{k}", x=I64)
        if k < n - 1:
            m.op("call", m["x"], symbol=f"f{k + 1}")
        else:
            m.op("inc", m["x"])
        makers.append(m)
    return program(*makers)


def many_parameters(n: int) -> Program:
    m = Maker("f", **{f"p{k}": I64 for k in range(n)})
    t = m.local("t")
    for _ in range(n):
        m.raw("alloc", t, ZERO)
        m.raw("free", t, ZERO)
    return program(m)


CASES: list[tuple[Callable[[int], Program], int]] = [
    (straight, 5_000),
    (many_ancillas, 20_000),
    (sliding_window, 20_000),
    (disagreements, 1_000),
    (shared_roots, 20_000),
    (wide_calls, 16),
    (chain_of_calls, 2_000),
    (many_parameters, 5_000),
]
"""Programs, and how large they are made."""


@pytest.mark.deep
@pytest.mark.parametrize(("make", "n"), CASES, ids=[c.__name__ for c, _ in CASES])
def test_time_is_in_proportion(make: Callable[[int], Program], n: int) -> None:
    """A program four times as large takes some four times as long, not sixteen times."""
    small, large = make(n // 4), make(n)
    ratio = processor_time(lambda: findings(large)) / processor_time(lambda: findings(small))
    assert ratio < 9
    found = findings(large)
    assert bool(found) is (make is disagreements)
    assert len(found) <= MAX_FINDINGS


@wide
def test_a_deep_graph_is_refused_without_recursion() -> None:
    m = Maker("f", y=I64)
    node: Expr = Place(0, (), I64)
    for _ in range(200_000):
        node = Apply("neg", (node,), I64)
    m.raw("print", node, aux=1)
    assert [f.code for f in findings(program(m))] == ["A046"]
    while isinstance(node, Apply):  # let go of it from outside in, without recursion
        node = node.args[0]
