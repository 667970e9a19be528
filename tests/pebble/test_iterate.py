"""Plans played on Python functions: states, gradients and counts, against runs that keep all."""

from __future__ import annotations

import random
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples

import rvm.pebble
from rvm.faults import BudgetError, ScheduleError, UsageError
from rvm.pebble import iterate, plan
from rvm.pebble.actions import Action, Kind
from rvm.pebble.bridge.runs.budgets import byte_count
from rvm.pebble.grammar import Schedule

INF = float("inf")
BUDGETS: list[dict[str, Any]] = [
    {"strategy": "revolve"},
    {"price": INF},
    {"price": 3},
    {"price": 0, "overwrite": False},
    {"strategy": "online"},
    {"strategy": "bennett", "radix": 2},
    {"disk": 3, "write": 1, "read": 1},
    {"disk": 3, "write": 1, "read": 5, "keep_input": False},
    {"strategy": "multistage", "disk": 2},
    {"costs": True},
    {"reversible_steps": True},
]
WRITES = ("new", "out", "in place")


def ways(a: np.ndarray, writes: str) -> Any:
    """x -> a x in one of the three ways."""
    if writes == "new":
        return lambda x: a @ x
    if writes == "out":
        return lambda x, out: np.matmul(a, x, out=out)

    def step(x: np.ndarray) -> None:
        x[:] = a @ x

    return step


def terms_for(n: int, pebbles: int, terms: dict[str, Any]) -> dict[str, Any]:
    """Terms for a chain, with a feasible number of pebbles."""
    out = dict(terms)
    if out.get("costs"):
        out["costs"] = [1 + k % 3 for k in range(n)]
    if out.get("reversible_steps"):
        out["reversible_steps"] = [k for k in range(1, n + 1) if k % 3]
    if out.get("strategy") == "bennett":
        return out
    for s in range(pebbles, 40):
        try:
            for goal in ("persist", "gradient"):
                own = out if goal == "gradient" else ("price", "overwrite")
                fitting = {k: v for k, v in out.items() if k in own}
                plan(n, goal=goal, pebbles=s, **fitting)
        except BudgetError:
            continue
        return {**out, "pebbles": s}
    raise AssertionError


@given(
    st.integers(1, 40),
    st.integers(1, 8),
    st.sampled_from(BUDGETS),
    st.sampled_from(WRITES),
    st.integers(0, 2**32),
)
@examples(150)
def test_linear_steps_are_powers_of_a_matrix(
    n: int, pebbles: int, terms: dict[str, Any], writes: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # Whole numbers modulo a power of two: products are exact whatever their order.
    a = rng.integers(0, 2**63, (3, 3), dtype=np.uint64) | np.tri(3, dtype=np.uint64)
    a[np.triu_indices(3, 1)] = 0
    a[np.diag_indices(3)] = 1
    # The inverse of 1 + L is 1 - L + L^2 for strictly lower triangular L.
    lower = a - np.eye(3, dtype=np.uint64)
    back = np.eye(3, dtype=np.uint64) - lower + lower @ lower
    assert (a @ back == np.eye(3, dtype=np.uint64)).all()
    x0, bar = rng.integers(0, 2**63, (2, 3), dtype=np.uint64)
    powers = [np.eye(3, dtype=np.uint64)]
    for _ in range(n):
        powers.append(a @ powers[-1])
    begun = x0.copy()
    chosen = terms_for(n, pebbles, terms)
    inverse = ways(back, writes) if terms.get("reversible_steps") else None
    run = iterate(
        ways(a, writes),
        n,
        adjoint=lambda x, y: a.T @ y,
        inverse=inverse,
        writes=writes,
        progress=False,
        **chosen,
    )
    there = run.reach(x0)
    assert (there.state == powers[n] @ x0).all()
    assert there.played == there.plan.schedule.tally()
    with run.back(x0) as walk:
        for i, (k, state) in zip(range(n, -1, -1), walk, strict=True):
            assert k == i and (state == powers[i] @ x0).all()
        assert walk.played == walk.plan.schedule.tally()
    found = run.gradient(x0, seed=bar)
    assert (found.state == powers[n].T @ bar).all()
    assert found.played == found.plan.schedule.tally()
    assert (found.played.moves, found.played.peak) == (found.plan.cost.moves, found.plan.cost.peak)
    assert (x0 == begun).all() and x0.flags.writeable


class Wave(NamedTuple):
    """A state with two arrays, and what is not an array."""

    u: np.ndarray
    v: np.ndarray
    rest: dict[str, Any]


def swing(x: Wave, k: int, c: float) -> Wave:
    v = x.v - c * np.sin(x.u) * (1 + k)
    return Wave(x.u + 0.1 * v, v, {"energy": x.rest["energy"] + float(v @ v), "n": k})


def swing_back(x: Wave, bar: Wave, k: int, c: float) -> tuple[Wave, dict[str, Any]]:
    v = x.v - c * np.sin(x.u) * (1 + k)
    vbar = bar.v + 0.1 * bar.u + 2 * v * bar.rest["energy"]
    ubar = bar.u - vbar * c * np.cos(x.u) * (1 + k)
    cbar = -float(vbar @ np.sin(x.u)) * (1 + k)
    return Wave(ubar, vbar, {"energy": bar.rest["energy"], "n": None}), {"c": cbar}


def swung(u: list[Any], v: list[Any], c: Any, n: int, each: bool) -> Any:
    """The loss of `swing` in mpmath: sum u + energy, and all u^2 on the way."""
    total = energy = mpmath.mpf(0)
    for k in range(n + 1):
        if each:
            total += sum(x * x for x in u)
        if k < n:
            v = [b - c * mpmath.sin(a) * (1 + k) for a, b in zip(u, v, strict=True)]
            u = [a + b / 10 for a, b in zip(u, v, strict=True)]
            energy += sum(b * b for b in v)
    return total + sum(u) + energy


@pytest.mark.parametrize("each", (False, True))
@pytest.mark.parametrize(
    "terms", ({"pebbles": 3}, {"pebbles": 5, "price": INF}, {"pebbles": 2, "disk": 2})
)
def test_gradients_of_nested_states_constants_and_running_losses(
    terms: dict[str, Any], each: bool
) -> None:
    rng, n, c = np.random.default_rng(1), 7, 0.013
    u, v = rng.normal(size=(2, 3))
    x0 = Wave(u, v, {"energy": 0.0, "n": -1})

    def loss(s: Wave) -> tuple[float, Wave]:
        ones = np.ones(3)
        return s.u.sum() + s.rest["energy"], Wave(ones, 0 * ones, {"energy": 1.0, "n": None})

    def running(s: Wave, i: int) -> tuple[float, Wave] | None:
        if not each:
            return None
        return s.u @ s.u, Wave(2 * s.u, np.zeros(3), {"energy": 0.0, "n": None})

    run = iterate(swing, n, adjoint=swing_back, number=True, progress=False, **terms)
    found = run.gradient(x0, loss, running=running, constants={"c": c})
    with mpmath.workdps(40):
        exact = [mpmath.mpf(float(x)) for x in (*u, *v, c)]
        by = [
            mpmath.diff(
                lambda *p: swung(list(p[:3]), list(p[3:6]), p[6], n, each),
                exact,
                tuple(int(j == i) for j in range(7)),
            )
            for i in range(7)
        ]
        value = swung(exact[:3], exact[3:6], exact[6], n, each)
    got = [*found.state.u, *found.state.v, found.constants["c"]]
    assert got == pytest.approx([float(b) for b in by], rel=1e-12)
    assert found.value == pytest.approx(float(value), rel=1e-13)
    assert isinstance(found.state, Wave)


def test_a_seed_stands_for_a_loss_and_losses_on_the_way_for_one_at_the_end() -> None:
    a = np.array([[0.5, 0.25], [0.0, 1.0]])
    terms: Any = {"pebbles": 2, "adjoint": lambda x, y: a.T @ y, "progress": False}
    run = iterate(lambda x: a @ x, 6, **terms)
    x0, target = np.array([1.0, 2.0]), 4
    only = run.gradient(x0, running=lambda s, i: (s.sum(), np.ones(2)) if i == target else None)
    short = iterate(
        lambda x: a @ x, target, pebbles=2, adjoint=lambda x, y: a.T @ y, progress=False
    )
    assert only.state == pytest.approx(short.gradient(x0, seed=np.ones(2)).state, rel=1e-15)
    assert only.value == pytest.approx(short(x0).sum(), rel=1e-15)
    assert short.gradient(x0, seed=np.ones(2)).value is None
    nothing = run.gradient(x0, running=lambda s, i: None)
    assert nothing.value == 0 and nothing.state.tolist() == [0.0, 0.0]


# ------------------------------------------------------------------ numbers, bytes


def test_numbers_and_bytes_are_states() -> None:
    import hashlib

    def link(x: bytes) -> bytes:
        return hashlib.sha256(x).digest()

    links = [b"seed" * 8]
    for _ in range(100):
        links.append(link(links[-1]))
    for terms in ({"pebbles": 4}, {"pebbles": 7, "price": INF}, {"pebbles": 2, "disk": 3}):
        walk = iterate(link, 100, progress=False, **terms).back(links[0])
        assert [state for _, state in walk] == links[::-1]
    big = iterate(lambda x: x * x - 1, 12, pebbles=2, disk=3, progress=False)
    assert next(big.back(-7)) == (12, big(-7)) and big(-7).bit_length() > 4000
    assert [x for _, x in iterate(lambda x: x / 2, 3, 1, progress=False).back(1.0)] == [
        0.125,
        0.25,
        0.5,
        1.0,
    ]


def test_steps_get_their_number_from_zero() -> None:
    seen: list[int] = []

    def step(x: float, k: int) -> float:
        seen.append(k)
        return x + 10.0**k

    run = iterate(step, 5, pebbles=5, number=True, progress=False)
    assert run(0.0) == 11111 and seen == [0, 1, 2, 3, 4]
    assert [s for _, s in run.back(0.0)] == [11111, 1111, 111, 11, 1, 0]


# ------------------------------------------------------------------ lengths that are not known


@given(st.integers(1, 60), st.integers(1, 6))
@examples(60)
def test_a_run_that_finds_its_end_is_like_one_that_knew_it(n: int, pebbles: int) -> None:
    def step(x: np.ndarray) -> np.ndarray:
        return x + np.array([1.0, x[0]])

    def adjoint(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return y + np.array([y[1], 0.0])

    x0, bar = np.array([0.0, 0.0]), np.array([0.5, 1.0])
    known = iterate(step, n, pebbles=pebbles, strategy="online", adjoint=adjoint, progress=False)
    open_end = iterate(
        step, until=lambda x, i: x[0] == n, pebbles=pebbles, adjoint=adjoint, progress=False
    )
    a, b = known.gradient(x0, seed=bar), open_end.gradient(x0, seed=bar)
    assert (a.state == b.state).all() and b.n == n and b.plan is None
    # Steps in place are joined in a plan: the actions are fewer, and all else is the same.
    assert a.played == b.played._replace(actions=a.played.actions)
    assert [i for i, _ in open_end.back(x0)] == list(range(n, -1, -1))
    assert (open_end(x0) == known(x0)).all()
    half = iterate(step, n // 2 + 1, until=lambda x, i: False, pebbles=pebbles, progress=False)
    assert half.reach(x0).n == n // 2 + 1


# ------------------------------------------------------------------ budgets


@pytest.mark.parametrize("writes", WRITES)
@pytest.mark.parametrize("what", ("forwards", "back", "gradient"))
def test_a_budget_in_bytes_names_the_least_that_will_do(writes: str, what: str) -> None:
    x0 = np.ones(100)
    a = np.eye(100)

    def go(**terms: Any) -> Any:
        run = iterate(
            ways(a, writes), 50, writes=writes, adjoint=lambda x, y: y, progress=False, **terms
        )
        if what == "forwards":
            return run.reach(x0)
        return run.back(x0) if what == "back" else run.gradient(x0, seed=x0)

    with pytest.raises(BudgetError) as caught:
        go(memory=10)
    least = caught.value.values["least"]
    assert least % 800 == 0 and f"memory={least}" in caught.value.hint
    assert go(memory=least).plan.n == 50
    with pytest.raises(BudgetError):
        go(memory=least - 1)
    more = go(memory=f"{(least + 4000) / 1000} kB").plan
    assert more.rules.pebbles == (1 if what == "forwards" else 6)


def test_a_run_of_unknown_length_names_the_least_budget() -> None:
    for terms, hint in (({"pebbles": 0}, "pebbles=1 "), ({"memory": 30}, "memory=32 ")):
        run = iterate(lambda x: x + 1, until=lambda x, i: i == 5, progress=False, **terms)
        with pytest.raises(BudgetError) as caught:
            run.back(np.zeros(2))
        assert caught.value.code == "P002" and caught.value.hint.startswith(hint)
    assert (
        len(list(iterate(lambda x: x + 1, until=lambda x, i: i == 5, memory=32).back(np.zeros(2))))
        == 6
    )


@pytest.mark.parametrize(
    ("text", "count"),
    (("2 GB", 2e9), ("64MiB", 64 * 2**20), ("1e3 kB", 1e6), ("12", 12), (" 1.5 TiB", 1.5 * 2**40)),
)
def test_bytes_as_people_write_them(text: str, count: float) -> None:
    assert byte_count(text) == count


def test_budgets_of_moves_and_energy_and_ready_plans(tmp_path: Any) -> None:
    x0 = np.zeros(2)
    run = iterate(lambda x: x + 1, 1000, max_moves=5000, progress=False)
    walk = run.back(x0)
    assert walk.plan.cost.moves <= 5000 and walk.plan.strategy == "revolve"
    walk.close()
    run = iterate(lambda x: x + 1, 100, pebbles=9, step_energy=1e-20, progress=False)
    walk = run.back(x0)
    # 128 bits at 300 K are 3.7e-19 J: an erased state costs as much as 37 steps.
    assert walk.plan.strategy == "hybrid" and walk.plan.units.price == pytest.approx(
        36.75, abs=0.01
    )
    walk.close()
    made = plan(30, goal="gradient", pebbles=5)
    made.save(tmp_path / "plan.npz")
    loaded = rvm.pebble.load(tmp_path / "plan.npz")
    a = [s.tolist() for _, s in iterate(lambda x: x + 1, budget=made, progress=False).back(x0)]
    b = [s.tolist() for _, s in iterate(lambda x: x + 1, budget=loaded, progress=False).back(x0)]
    assert a == b == [[float(i)] * 2 for i in range(30, -1, -1)]
    erase = iterate(lambda x: x + 1, budget=plan(30, goal="erase", pebbles=6), progress=False)
    assert erase.reach(x0).state.tolist() == [30.0, 30.0]


@pytest.mark.parametrize(
    ("terms", "words"),
    (
        ({"n": 10}, "needs a budget"),
        ({"n": 10, "pebbles": 3, "memory": 100}, "only one budget may be given"),
        ({"n": 10, "budget": 3, "pebbles": 3}, "only one budget may be given"),
        ({"n": 10, "budget": "three"}, "not a number of bytes"),
        ({"n": 10, "budget": [3]}, "a budget is not a list"),
        ({"n": 10, "pebbles": 3, "colour": 1}, "takes no `colour`"),
        ({"pebbles": 3}, "a number of steps, or a condition"),
        ({"n": 0, "pebbles": 3}, "a step at least"),
        ({"n": 10, "pebbles": 3, "writes": "over"}, "a step writes"),
        ({"n": 10, "pebbles": 3, "reversible_steps": [1]}, "need an inverse"),
        ({"n": 10, "pebbles": 3, "in_place": "f"}, "functions of programs"),
        ({"until": lambda x, i: True, "max_moves": 3}, "unknown length takes"),
        ({"until": lambda x, i: True}, "unknown length needs a budget"),
        ({"n": 9, "budget": plan(10, goal="gradient", pebbles=4)}, "is for `gradient` of 10"),
        ({"n": 9, "budget": plan(9, pebbles=5)}, "is for `persist` of 9"),
        ({"budget": plan(9, pebbles=5), "price": 3}, "no further terms"),
        ({"budget": plan(9, pebbles=5, reversible_steps=[2, 4, 6, 8])}, "need an inverse"),
    ),
)
def test_terms_that_cannot_be(terms: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        list(iterate(lambda x: x + 1, progress=False, **terms).back(0.0))
    assert caught.value.code == "P001"


def test_runs_and_results_are_reported_in_a_line() -> None:
    def step(x: float) -> float:
        return x + 1

    run = iterate(step, 1000, pebbles=4, adjoint=lambda x, y: y, progress=False)
    assert repr(run) == "<`step` 1,000 times, pebbles=4>"
    assert repr(run.reach(0.0)) == (
        "<the state after 1,000 steps by priced: 1,000 moves, peak 1, 999 erased>"
    )
    # Revolve: r = 10, as C(13, 4) < 1000 <= C(14, 4), so 10 * 1000 - C(14, 5) moves.
    assert repr(run.gradient(0.0, seed=1.0)) == (
        f"<a gradient over 1,000 steps by revolve: {10_000 - 2002:,} moves, peak 4, 7,998 erased>"
    )
    walk = iterate(step, until=lambda x, i: i == 3, pebbles=4, progress=False).back(0.0)
    assert repr(walk) == "<a walk back over 0 steps by online: 0 moves, peak 0, 0 erased>"
    assert len(list(walk)) == 4
    assert repr(walk) == "<a walk back over 3 steps by online: 3 moves, peak 3, 3 erased>"
    disk = iterate(step, 50, pebbles=1, disk=3, write=1, read=1, progress=False).back(0.0)
    next(disk)
    assert ", 3 written, 0 read>" in repr(disk)
    disk.close()
    with pytest.raises(UsageError, match="a step is a function, not int"):
        iterate(3, 4, 2)  # type: ignore[arg-type]


def test_a_gradient_needs_an_adjoint_and_one_loss() -> None:
    run = iterate(lambda x: x + 1, 4, 2, progress=False)
    with pytest.raises(UsageError, match="needs the adjoint"):
        run.gradient(1.0, seed=1.0)
    run = iterate(lambda x: x + 1, 4, 2, adjoint=lambda x, y: y, progress=False)
    for losses in ({}, {"loss": lambda s: (s, 1.0), "seed": 1.0}):
        with pytest.raises(UsageError, match="loss"):
            run.gradient(1.0, **losses)


# ------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("x0", "step", "words"),
    (
        (np.zeros(3), lambda x: x[:2], r"is float64\[2\], where the input has float64\[3\]"),
        (np.zeros(3), lambda x: x.astype(np.float32), "is float32"),
        (np.zeros(3), lambda x: None, "is None"),
        ((1.0, 2.0), lambda x: (1.0,), "is a tuple of 1"),
        ({"a": 1.0}, lambda x: {"b": 1.0}, "a dict of 'b'"),
        ({"a": (np.zeros(2),)}, lambda x: {"a": (np.zeros(1),)}, r"\['a'\]\[0\] is float64\[1\]"),
        (1, lambda x: x / 2, "is a float, where the input has int"),
    ),
)
def test_states_keep_their_form(x0: Any, step: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        iterate(step, 3, 1, progress=False)(x0)
    assert caught.value.code == "P040"


def test_adjoints_have_the_form_of_states() -> None:
    def go(adjoint: Any, seed: Any = None, **constants: Any) -> Any:
        run = iterate(lambda x, **c: x + 1, 3, 2, adjoint=adjoint, progress=False)
        return run.gradient(
            np.zeros(2), seed=np.ones(2) if seed is None else seed, constants=constants
        )

    for adjoint, more in (
        (lambda x, y: y[:1], {}),
        (lambda x, y: (y, y), {}),
        (lambda x, y, c: y, {"c": 1.0}),
        (lambda x, y, c: (y, {"d": 1.0}), {"c": 1.0}),
        (lambda x, y: y, {"seed": np.ones(3)}),
    ):
        with pytest.raises(UsageError) as caught:
            go(adjoint, **more)
        assert caught.value.code == "P040"


def test_a_step_that_changes_its_input_is_refused_and_the_input_is_as_it_was() -> None:
    def step(x: np.ndarray) -> np.ndarray:
        x += 1
        return x

    x0 = np.zeros(2)
    with pytest.raises(UsageError, match="step 1 writes to a state") as caught:
        iterate(step, 3, 2, progress=False)(x0)
    assert caught.value.code == "P041" and x0.tolist() == [0, 0] and x0.flags.writeable
    memory = np.zeros(2)

    def reusing(x: np.ndarray) -> np.ndarray:
        return np.add(x, 1, out=memory)

    with pytest.raises(UsageError, match="step 2 writes to a state") as caught:
        iterate(reusing, 3, 2, progress=False)(x0)
    assert caught.value.code == "P041"

    def adjoint(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x[0] = 1
        return y

    run = iterate(lambda x: x + 1, 3, 2, adjoint=adjoint, progress=False)
    with pytest.raises(UsageError, match="the adjoint of step 3 writes"):
        run.gradient(x0, seed=x0)


def test_steps_may_return_their_input_or_a_part_of_something() -> None:
    wide = np.arange(8.0)
    run = iterate(lambda x, k: x if k % 2 else wide[k : k + 2], 5, 2, number=True, progress=False)
    x0 = np.zeros(2)
    assert [s.tolist() for _, s in run.back(x0)] == [[4, 5], [2, 3], [2, 3], [0, 1], [0, 1], [0, 0]]
    out = run(x0)
    out += 1
    assert wide.tolist() == list(range(8)) and x0.tolist() == [0, 0]


@pytest.mark.parametrize("writes", WRITES)
def test_a_step_with_a_memory_of_its_own_cannot_be_undone(writes: str) -> None:
    count = 0

    def amount() -> int:
        nonlocal count
        count += 1
        return count

    def in_place(x: np.ndarray) -> None:
        x += amount()

    step: Any = {
        "new": lambda x: x + amount(),
        "out": lambda x, out: np.add(x, amount(), out=out),
        "in place": in_place,
    }[writes]
    run = iterate(step, 6, pebbles=4, price=INF, writes=writes, progress=False)
    with pytest.raises(UsageError, match="was done twice") as caught:
        run(np.zeros(2))
    assert caught.value.code == "P043"


@pytest.mark.parametrize("shape", ((), (0,), (1, 1, 70_000), (3, 40_000), (70_000, 1)))
def test_states_of_any_shape_are_compared(shape: tuple[int, ...]) -> None:
    def step(x: np.ndarray) -> np.ndarray:
        y = np.array(x + 1)
        y.flat[-1:] = np.nan
        return y

    run = iterate(step, 4, pebbles=3, price=INF, progress=False)
    found = run(np.zeros(shape))
    assert iterate(lambda x: x + 1, 4, 1, progress=False)(np.zeros(shape)).shape == shape
    assert found.shape == shape and ((found == 4) | np.isnan(found)).all()
    calls = 0

    def restless(x: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        y = np.array(x + 1)
        y.flat[-1] += calls
        return y

    if 0 not in shape:
        with pytest.raises(UsageError) as caught:
            iterate(restless, 4, pebbles=3, price=INF, progress=False)(np.zeros(shape))
        assert caught.value.code == "P043"


@pytest.mark.parametrize("x0", ([1.0], {"a": [1]}, "text", object(), {1, 2}, np.array([None])))
def test_what_is_not_a_state(x0: Any) -> None:
    with pytest.raises(UsageError) as caught:
        iterate(lambda x: x, 2, 1, progress=False)(x0)
    assert caught.value.code == "P042"


def test_numbers_cannot_be_written_to() -> None:
    with pytest.raises(UsageError) as caught:
        iterate(lambda x, out: None, 2, 1, writes="out", progress=False)((np.zeros(1), 1.0))
    assert caught.value.code == "P042"
    with pytest.raises(UsageError, match="returned a ndarray") as caught:
        iterate(lambda x: x + 1, 2, 1, writes="in place", progress=False)(np.zeros(1))
    assert caught.value.code == "P040"


def test_errors_of_a_step_tell_its_number() -> None:
    def step(x: float, k: int) -> float:
        return x / (3 - k)

    with pytest.raises(ZeroDivisionError) as caught:
        iterate(step, 9, 2, number=True, progress=False)(1.0)
    assert caught.value.__notes__ == ["in step 4 of the chain"]


def tampered(n: int, *actions: tuple[Kind, int, int]) -> Any:
    """A gradient plan with another schedule than its own."""
    made = plan(n, goal="gradient", pebbles=2, price=0)
    return replace(made, schedule=Schedule.of(Action(*a) for a in actions))


@pytest.mark.parametrize(
    "actions",
    (
        [(Kind.ADVANCE, 1, 2)],
        [(Kind.ADVANCE, 0, 1), (Kind.ADVANCE, 0, 1)],
        [(Kind.REVERSE, 2, 3)],
        [(Kind.REVERSE, 0, 1)],
        [(Kind.UNADVANCE, 0, 1)],
        [(Kind.FREE, 0, 0)],
        [(Kind.OVERWRITE, 0, 1)],
        [(Kind.LOAD, 1, 1)],
        [(Kind.SAVE, 1, 1)],
        [(Kind.DROP, 1, 1)],
        [(Kind.COPY, 3, 3)],
        [(Kind.ADVANCE, 0, 1), (Kind.SHIFT, 1, 2)],
        [(Kind.ADVANCE, 0, 2), (Kind.UNSHIFT, 1, 2)],
    ),
)
def test_schedules_against_the_rules_are_refused(actions: list[tuple[Kind, int, int]]) -> None:
    with pytest.raises(ScheduleError) as caught:
        list(iterate(lambda x: x + 1, budget=tampered(3, *actions), progress=False).back(0.0))
    assert caught.value.code == "P003"


@pytest.mark.parametrize("goal", ("persist", "erase", "gradient"))
def test_schedules_that_end_too_early_are_refused(goal: str) -> None:
    made = plan(3, goal=goal, pebbles=3)
    short = list(made.actions())[: 1 if goal != "gradient" else -3]
    early = replace(made, schedule=Schedule.of(short))
    run = iterate(lambda x: x + 1, budget=early, adjoint=lambda x, y: y, progress=False)
    with pytest.raises(ScheduleError) as caught:
        run.gradient(0.0, seed=1.0) if goal == "gradient" else run(0.0)
    assert caught.value.code == "P004"


def test_progress_is_reported() -> None:
    told: list[tuple[int, int | None]] = []
    run = iterate(
        lambda x: x + 1,
        30,
        pebbles=3,
        adjoint=lambda x, y: y,
        progress=lambda done, total: told.append((done, total)),
    )
    found = run.gradient(1.0, seed=1.0)
    # The last state is made for the loss, beside what is in the plan.
    steps = found.plan.cost.moves + found.plan.cost.reversals + 1
    assert told[-1] == (steps, steps)
    for _ in run.back(1.0):
        pass
    assert told[-1] == (steps - 30, steps - 30)
    run(1.0)
    assert told[-1] == (30, 30)


class Late(Exception):
    """What a handler raises."""


@pytest.mark.skipif(sys.platform == "win32", reason="its signals are others")
def test_a_run_with_a_disk_that_is_interrupted_leaves_no_folder(tmp_path: Path) -> None:
    """Whenever a handler raises; and what it raises arrives."""

    def raising(number: int, frame: object) -> None:
        raise Late

    run = rvm.pebble.iterate(
        lambda x: x * 1.01,
        20,
        pebbles=2,
        disk=2,
        write=1,
        read=1,
        adjoint=lambda x, bar: bar * 1.01,
        progress=False,
        folder=tmp_path,
    )
    x = np.linspace(0, 1, 5)

    def go() -> None:
        run.gradient(x, lambda s: (float(s.sum()), np.ones_like(s)))

    began = time.perf_counter()
    go()
    lasts = time.perf_counter() - began
    rng, raised = random.Random(1), 0
    before = signal.signal(signal.SIGALRM, raising)
    try:
        for _ in range(200):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, lasts))
                    go()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Late:
                raised += 1
            assert list(tmp_path.iterdir()) == []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert raised
