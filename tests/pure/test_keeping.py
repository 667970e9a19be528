"""Loops keep all states, some by a schedule, or one in place: the same values, back to zero."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from pure.values import evaluate
from rvm_asm.program import Declarations
from rvm_pure import functions
from rvm_pure.assembler import read
from sizes import thin, wide

import rvm
from rvm import f64, i64
from rvm.engines import executing
from rvm.faults import AssemblyError, MachineError, UsageError
from rvm.types import DEFAULT_FRAC

TEXT = """
def power(x: f64, n: i64) = loop p = 1.0 for i < n do p * x
def down(x: f64, n: i64) = loop p = x for i = n - 1 to 0 do sin(p) + f64(i)
def fixed(x: f64) = loop p = x for i < 30 do sin(p) + x
def leap(x: f64, v: f64, n: i64) =
    loop (x, v) = (x, v) for i < n do let w = v - 0.1 * x in (x + 0.1 * w, w)
def horner(c: f64[n], x: f64) = foldl (s, a. s * x + a) 0.5 c
def heat(u: f64[n], c: f64, k: i64) =
    loop u = u for i < k do
        map (j. if j == 0 or j == n - 1 then u[j]
                else u[j] + c * (u[j + 1] - 2 * u[j] + u[j - 1])) (iota n)
def both(a: f64[n], p: (f64, f64[n]), k: i64) =
    loop (x, u) = p for i < k do (x + sum(u), map2 (s, t. tanh(s * t + x)) a u)
def inner(x: f64, n: i64) = loop s = x for i < n do (loop t = s for j < i do t * 0.5 + sin(t))
def used(x: f64, n: i64) = let p = loop s = x for i < n do s * s - 0.5 in p * sin(p) + 1 / p
def rows(A: f64[m, n]) = map (r. foldl (s, t. s * t + 1) 1 r) A
def hash(k: i64[n]) = foldl (s, x. (s ^ x) * 31 + 7) 7 k
def count(k: i64[n], m: i64) =
    loop h = replicate m 0'i64 for i < n do h with [k[i]] = h[k[i]] + 1
def parity(k: i64[n]) = foldl (s, x. s != (x % 2 == 1)) (0 == 1) k
def drift(x: fixed[n]) = foldl (s, a. a - s) 0 x
"""
R = np.random.default_rng(5)
K = np.array([2, 0, 2, 1])
GIVEN: dict[str, dict[str, Any]] = {
    "power": {"x": 1.25, "n": 9},
    "down": {"x": 0.5, "n": 6},
    "fixed": {"x": 0.25},
    "leap": {"x": 1.0, "v": 0.5, "n": 11},
    "horner": {"c": R.normal(size=7), "x": 0.75},
    "heat": {"u": R.normal(size=5), "c": 0.25, "k": 6},
    "both": {"a": R.normal(size=3), "p": (0.5, R.normal(size=3)), "k": 4},
    "inner": {"x": 0.5, "n": 5},
    "used": {"x": 0.9, "n": 6},
    "rows": {"A": R.normal(size=(2, 5))},
    "hash": {"k": K},
    "count": {"k": K, "m": 3},
    "parity": {"k": K},
}
EXACT = ("hash", "count", "parity", "drift")
"""What goes on in place without being asked to."""


BUDGETS: list[dict[str, Any]] = [{}, {"pebbles": 6}, {"pebbles": 6, "in_place": True}]


def flat(v: Any) -> list[float]:
    """The numbers of a value or of adjoints, in order."""
    if hasattr(v, "keys"):
        return [x for k in v.keys() for x in flat(v[k])]  # noqa: SIM118
    if isinstance(v, (tuple, list)):
        return [x for w in v for x in flat(w)]
    return [] if v is None else [float(x) for x in np.ravel(v)]


def recorded(v: Any, times: int = 1) -> Any:
    """A value with records for tuples, or zeros like it."""
    if isinstance(v, dict):
        return {k: recorded(x) for k, x in v.items()}
    if isinstance(v, tuple):
        return {f"p{k + 1}": recorded(x, times) for k, x in enumerate(v)}
    return v if times else np.zeros_like(v)[()] + np.zeros_like(v)[()]


@thin
@pytest.mark.parametrize("engine", executing())
def test_budgets_change_what_is_kept_and_nothing_else(engine: str) -> None:
    made = functions(TEXT)
    for name in GIVEN if engine == "reference" else ("power", "count"):
        f = made[name]
        lengths = f.lengths(f.given((), GIVEN[name]))
        want = evaluate(f.definition.body, {**lengths, **GIVEN[name]})
        given, out = recorded(GIVEN[name]), recorded(want, 0)
        slopes: list[list[float]] = []
        for budget in BUDGETS:
            handle = f.keeping(**budget).program[name].with_options(engine=engine)
            found = handle(out=out, **given)
            np.testing.assert_allclose(flat(found["out"]), flat(want), rtol=1e-13)
            back = (~handle)(**found)
            np.testing.assert_allclose(flat(back["out"]), 0, atol=1e-13)
            if isinstance(out, float):
                slope = handle.grad(out=out, **given, loss="out")
                slopes.append(flat([slope[k] for k in given if k in dict(slope)]))
        for found in slopes:
            np.testing.assert_allclose(found, slopes[0], rtol=1e-11, err_msg=name)


@rvm.pure(pebbles=5)
def logistic(x: f64, n: i64) -> f64:
    return rvm.pure.loop(n, lambda i, s: 3.5 * s * (1 - s), x)


def test_a_budget_bounds_the_states_that_there_are() -> None:
    # So many states of eight bytes, of as many steps as the schedule takes: 2^(5 - 1).
    x = 0.3
    for _ in range(16):
        x = 3.5 * x * (1 - x)
    assert logistic(0.3, 16) == x
    with pytest.raises(MachineError, match="done 17 times; with 5 pebbles it can be done 0 to 16"):
        logistic(0.3, 17)
    assert "with pebbles = 5" in logistic.stage("rasm")
    assert "with pebbles = 5" in logistic.keeping(memory=7 * 8 + 3).stage("rasm")
    text = "def f(x: f64) = loop s = x for i < 1000 do sin(s)"
    f = functions(text)["f"]
    with pytest.raises(AssemblyError, match="P002"):
        f.keeping(pebbles=9).program  # noqa: B018
    assert "the last state" in str(f.keeping(pebbles=12).lets)


def test_an_update_that_can_be_undone_is_made_in_place() -> None:
    found = {name: str(f.lets) for name, f in functions(TEXT).items()}
    assert [name for name, text in found.items() if "in place" in text] == list(EXACT)
    floats = {name: str(f.keeping(in_place=True).lets) for name, f in functions(TEXT).items()}
    more = ["power", "leap", "horner", "rows"]
    assert [n for n in floats if "in place" in floats[n] and n not in EXACT] == more


def test_numbers_with_a_fixed_point_go_on_in_place() -> None:
    raw = np.array([2, 9, -4, 12]) << DEFAULT_FRAC - 2
    handle = functions(TEXT)["drift"].program.drift
    found = handle(out=1.5, x=raw)
    assert found.out == 1.5 + 3.0 - (-1.0 - (2.25 - 0.5))
    assert (~handle)(**found).out == 1.5


def _term(r: random.Random, names: list[str], depth: int) -> str:
    if not depth or r.random() < 0.2:
        return r.choice([*names, "i", "3'i64", "2'i64"])
    a, b = (_term(r, names, depth - 1) for _ in range(2))
    return r.choice([f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} ^ {b})", f"(-{a})"])


def _undone(r: random.Random) -> str:
    """A step of a state (a, b, c) that goes through changes each of which can be undone."""
    now, lets = ["a", "b", "c"], []
    r.shuffle(now)
    for k in r.sample(range(3), 3):
        by = _term(r, [n for j, n in enumerate(now) if j != k], 2)
        form = r.choice([f"{now[k]} + {by}", f"{by} - {now[k]}", f"{now[k]} * 5'i64 ^ {by}"])
        lets.append(f"let n{k} = {form} in ")
        now[k] = f"n{k}"
    return "".join(lets) + f"({', '.join(now)})"


def test_random_states_of_whole_numbers_go_on_in_place_where_they_can() -> None:
    stored = 0
    for seed in range(24):
        r = random.Random(seed)
        can = seed % 2 == 0
        free = f"({', '.join(_term(r, ['a', 'b', 'c'], 2) for _ in range(3))})"
        body = _undone(r) if can else free
        start = "loop (a, b, c) = (x, y, 1'i64) for i < n do"
        text = f"def f(x: i64, y: i64, n: i64) = {start} {body}"
        f = functions(text)["f"]
        in_place = "in place" in str(f.lets)
        assert in_place or not can, text
        stored += not in_place
        given = {"x": r.randint(-9, 9), "y": r.randint(-9, 9), "n": 1 + seed % 7}
        (d,) = read(text, Declarations())
        with np.errstate(over="ignore"):
            state = evaluate(d.body, {k: np.int64(v) for k, v in given.items()})
        handle = f.program.f.with_options(engine="reference")
        out = handle(out={"p1": 0, "p2": 0, "p3": 0}, **given)
        assert [out["out"][k] for k in ("p1", "p2", "p3")] == [int(v) for v in state], text
        assert flat((~handle)(**out)["out"]) == [0, 0, 0]
    assert stored > 3


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"pebbles": 3, "memory": 100}, "one budget"),
    ({"pebbles": 0}, "1 or more, not 0"),
    ({"memory": 1.5}, "1 or more, not 1.5"),
    ({"stones": 3}, "no budget is called `stones`"),
]


@pytest.mark.parametrize(("budget", "message"), WRONG)
def test_a_value_that_is_not_a_budget_is_refused(budget: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        logistic.keeping(**budget)


def test_bytes_of_states_must_be_known_and_enough() -> None:
    found = functions(TEXT)
    with pytest.raises(AssemblyError, match="not known before the run"):
        found["heat"].keeping(memory=10**6).program  # noqa: B018
    with pytest.raises(AssemblyError, match="47 bytes are less than three states of 16 bytes"):
        found["leap"].keeping(memory=47).lets  # noqa: B018
    assert "16 * 3 bytes" in str(found["leap"].keeping(memory=48).lets)


@wide
def test_gradients_by_a_schedule_are_those_of_stored_states_to_the_bit() -> None:
    # Each state that is made again has an adjoint of its own: what rounding leaves of an old
    # one would grow with each, and by a factor of 1e45 in two thousand steps with twelve pebbles.
    text = """
def power(x: f64, n: i64) = loop p = 1.0 for i < n do p * x
def heat(u: f64[3], c: f64, n: i64) =
    let v = loop u = u for i < n do
        map (j. if j == 0 then u[j] else u[j] + c * (u[j - 1] - u[j])) (iota 3) in
    v @ v
"""
    given = {
        "power": {"x": 1.001, "n": 60},
        "heat": {"u": np.array([1.0, 2.0, -3.0]), "c": 0.01, "n": 30},
    }
    for name, f in functions(text).items():
        want, *found = (
            g.program[name]
            .with_options(engine="reference")
            .grad(out=0.0, **given[name], loss="out")
            for g in (f, f.keeping(pebbles=7), f.keeping(pebbles=20))
        )
        for slope in found:
            assert flat(dict(slope)) == flat(dict(want))
    assert functions(text)["power"].keeping(pebbles=12)(1e200, 9) == np.inf
