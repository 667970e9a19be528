"""Programs made to waste time: the verifier's work is in proportion to them."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from verify.making import Maker, array, program

from rvm.expr import Apply, Const, Expr, Place
from rvm.program import Program
from rvm.types import BOOL, F64, I64
from rvm.verify import MAX_FINDINGS, findings

ZERO = Const(0, I64)


def straight() -> Program:
    """Simple instructions, of which a good many a second must pass."""
    m = Maker("f", s=I64, x=array(I64))
    i = m.local("i")
    m.op("alloc", i, 0)
    for _ in range(5_000):
        m.op("add", m["s"], i)
        m.op("add", m.elem("x", i), Apply("*", (m["s"], Const(3))))
        m.op("inc", i)
        m.op("sub", i, 1)
    m.op("free", i, 0)
    return program(m)


def many_ancillas() -> Program:
    """20,000 live at once, freed in the order in which they were made."""
    m = Maker("f", y=I64)
    made = [m.local(f"t{k}") for k in range(20_000)]
    for t in made:
        m.raw("alloc", t, ZERO)
    for t in made:
        m.raw("free", t, ZERO)
    return program(m)


def sliding_window() -> Program:
    """Ancillas that overlap like tiles of a roof: every live set is another one."""
    m = Maker("f", y=I64)
    made = [m.local(f"t{k}") for k in range(20_000)]
    m.raw("alloc", made[0], ZERO)
    for a, b in pairwise(made):
        m.raw("alloc", b, ZERO)
        m.raw("free", a, ZERO)
    m.raw("free", made[-1], ZERO)
    return program(m)


def disagreements() -> Program:
    """A thousand branches, each of which disagrees on a thousand ancillas."""
    m = Maker("f", y=I64)
    made = [m.local(f"t{k}") for k in range(1_000)]
    cond = Apply("==", (m["y"], ZERO), BOOL)
    for k in range(1_000):
        m.raw("br", cond, aux=4_999 - k)
    for t in made:
        m.raw("alloc", t, ZERO)
    for _ in range(2_000):
        m.op("inc", m["y"])
    for k in range(1_000):
        m.raw("cf", cond, aux=999 - k)
    return program(m)


def shared_roots() -> Program:
    """Instructions that all hold another root above the same large expression."""
    m = Maker("f", y=I64, x=I64)
    big: Expr = m["x"]
    for _ in range(9):
        big = Apply("+", (big, big), I64)
    for k in range(20_000):
        m.raw("add", m["y"], Apply("+", (big, Const(k, I64)), I64))
    return program(m)


def wide_calls() -> Program:
    """Calls that pass 255 elements of one array, all of them changed by the callee."""
    g = Maker("g", **{f"p{k}": F64 for k in range(255)})
    for k in range(255):
        g.op("neg", g[f"p{k}"])
    m = Maker("f", x=array())
    args = [m.elem("x", k) for k in range(255)]
    for _ in range(10):
        m.op("call", *args, symbol="g")
    return program(m, g)


def chain_of_calls() -> Program:
    """A parameter that is changed at the end of a chain of 2,000 calls."""
    makers = []
    for k in range(2_000):
        m = Maker(f"f{k}", x=I64)
        if k < 1_999:
            m.op("call", m["x"], symbol=f"f{k + 1}")
        else:
            m.op("inc", m["x"])
        makers.append(m)
    return program(*makers)


def many_parameters() -> Program:
    m = Maker("f", **{f"p{k}": I64 for k in range(5_000)})
    t = m.local("t")
    for _ in range(5_000):
        m.raw("alloc", t, ZERO)
        m.raw("free", t, ZERO)
    return program(m)


CASES: list[tuple[Callable[[], Program], float]] = [
    (straight, 2.0),
    (many_ancillas, 4.0),
    (sliding_window, 4.0),
    (disagreements, 2.0),
    (shared_roots, 4.0),
    (wide_calls, 4.0),
    (chain_of_calls, 2.0),
    (many_parameters, 2.0),
]
"""Programs and seconds: several times what each takes on a slow computer."""


@pytest.mark.deep
@pytest.mark.parametrize(("make", "limit"), CASES, ids=[c.__name__ for c, _ in CASES])
def test_time_is_in_proportion(make: Callable[[], Program], limit: float) -> None:
    p = make()
    start = time.perf_counter()
    found = findings(p)
    assert time.perf_counter() - start < limit
    assert bool(found) is (make is disagreements)
    assert len(found) <= MAX_FINDINGS


def test_a_deep_graph_is_refused_without_recursion() -> None:
    m = Maker("f", y=I64)
    node: Expr = Place(0, (), I64)
    for _ in range(200_000):
        node = Apply("neg", (node,), I64)
    m.raw("print", node, aux=1)
    assert [f.code for f in findings(program(m))] == ["A046"]
    while isinstance(node, Apply):  # let go of it from outside in, without recursion
        node = node.args[0]
