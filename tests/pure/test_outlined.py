"""Folds inside of functions of folds: the code grows with the depth alone, and does the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pure.terms import Writer
from rvm_asm import assemble
from rvm_pure import functions, outlined
from sizes import thin


def nested(depth: int, k: int = 1) -> str:
    """A fold whose function folds from its own state, and so on: none can be computed before."""
    start = "0.5" if k == 1 else f"s{k - 1}"
    inner = nested(depth, k + 1) if k < depth else f"sin(s{k} * x{k})"
    return f"foldl (s{k}, x{k}. s{k} * 0.5 + {inner}) {start} (map (t. t * 1.25) a)"


def by_hand(a: np.ndarray, depth: int, start: float = 0.5, k: int = 1) -> float:
    s = start
    for x in a * 1.25:
        s = s * 0.5 + (by_hand(a, depth, s, k + 1) if k < depth else math.sin(s * x))
    return s


def size(depth: int) -> int:
    f = functions(f"def f(a: f64[n]) = {nested(depth)}\n")["f"]
    return sum(len(g.code) for g in f.program.program.functions)


def test_the_code_grows_by_so_much_at_each_level() -> None:
    sizes = [size(d) for d in range(3, 11)]
    steps = np.diff(sizes)
    # Three levels are one function; below it the next begins.
    assert max(steps[3:]) == max(steps[:3]) and sizes[-1] < 1500


@pytest.mark.parametrize("depth", range(1, 5))
def test_values_and_gradients_of_nested_folds(depth: int) -> None:
    f = functions(f"def f(a: f64[n]) = {nested(depth)}\n")["f"]
    a = np.array([0.75, -0.5])
    assert f(a) == pytest.approx(by_hand(a, depth), rel=1e-13)
    slope = f.by("rasm").grad(a)
    for k in range(2):
        h = 1e-5 * np.eye(2)[k]
        by_differences = (by_hand(a + h, depth) - by_hand(a - h, depth)) / 2e-5
        assert slope[k] == pytest.approx(by_differences, rel=1e-7, abs=1e-9)
    there = f.program.f(out=1.0, a=a)
    assert (~f.program.f)(**there).out == pytest.approx(1.0)


def test_the_text_of_a_deep_definition_has_the_same_instructions() -> None:
    f = functions(f"def f(a: f64[n]) = {nested(7)}\n")["f"]
    assert [g.code for g in assemble(f.stage("rasm")).functions] == [
        g.code for g in f.program.program.functions
    ]


def found(text: str) -> list[object]:
    """The value of a definition, its derivatives, and what a run back leaves."""
    f = functions(text)["f"]
    rng = np.random.default_rng(1)
    given = {"x": 0.75, "y": -1.25, "A": rng.normal(size=3), "B": rng.normal(size=3)}
    value = f(**given)
    lib = f.program.f
    back = (~lib)(**lib(out=0.5, **given))
    slopes = lib.grad(out=0.0, **given, loss="out")
    return [value, back.out, *(np.asarray(slopes[n]).tobytes() for n in given)]


@thin
@pytest.mark.parametrize("seed", range(24))
def test_calls_do_what_their_routines_do(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, wherever routines are inside each other."""
    text = Writer(seed, nesting=3).definition(5)
    monkeypatch.setattr(outlined, "LEVELS", 10**6)
    whole = found(text)
    monkeypatch.setattr(outlined, "LEVELS", 1)
    assert repr(found(text)) == repr(whole), text


def test_routines_of_random_definitions_are_inside_of_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outlined, "LEVELS", 1)
    texts = [Writer(seed, nesting=3).definition(5) for seed in range(24)]
    calls = [len(functions(t)["f"].program.program.functions) - 1 for t in texts]
    assert sum(map(bool, calls)) > 3
