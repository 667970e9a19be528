"""The cost account of the paper, and its bound in the reading in which it is true."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from pure.terms import Writer
from rvm_pure import functions
from rvm_pure.account import Counting, arguments
from rvm_pure.cost import Cost, figure, kappa, nesting, work
from rvm_pure.gradient import gradient
from rvm_pure.terms import free
from sizes import wide
from tools.running import rvm as command

from rvm.derive.gradients import Pullback
from rvm.faults import AssemblyError, UsageError
from rvm.isa import FUNCTIONS

DOT = "def dot(A: f64[n], B: f64[n]) = reduce + 0 (map2 * A B)\n"


def test_figure_11_by_hand() -> None:
    """map2: n (3 + 2 named + 2) moves and 2 for A and B; reduce: n (3 + 2 + 2) and 1 for 0."""
    d = functions(DOT)["dot"].definition
    assert figure(d.body, {"n": 10}) == Cost(7 * 10 + 2 + 7 * 10 + 1, 10, 10, 0)
    assert work(d.body, {"n": 10}) == Cost(5 * 10 + 5 * 10, 10, 10, 0)
    assert nesting(d.body) == 1


@pytest.mark.parametrize(
    ("text", "nao"),
    [
        ("x * y", 0),
        ("let a = x in sum(A) + a", 0),
        ("reduce + 0 (map sin A)", 1),
        ("reduce + 0 (map (a. reduce * a B) A)", 2),
        ("loop p = x for i < 3 do p * reduce + 0 A", 2),
    ],
)
def test_nesting_of_array_operations(text: str, nao: int) -> None:
    (f,) = functions(f"def f(x: f64, y: f64, A: f64[n], B: f64[n]) = {text}\n").values()
    assert nesting(f.definition.body) == nao


def ratios(seeds: range) -> tuple[list[float], list[float]]:
    """The worst ratios of work, and of arithmetic, by NAO, of terms on + - * sin."""
    worst, arithmetic = [0.0] * 5, [0.0] * 5
    for seed in seeds:
        text = Writer(seed, nesting=3, more=False).definition(random.Random(seed).randint(2, 9))
        d = functions(text)["f"].definition
        named = [p.name for p in d.params if p.name in free(d.body)]
        before = work(d.body, {"n": (1, 2, 5, 20)[seed % 4]})
        if not named or not before.total:
            continue
        after = work(gradient(d, named).body, {"n": (1, 2, 5, 20)[seed % 4]})
        p = nesting(d.body)
        worst[p] = max(worst[p], after.total / before.total)
        assert after.total <= 4 * 3**p * before.total, text
        assert after.arithmetic <= (4 + 2 * p) * max(1, before.arithmetic), text
        if before.arithmetic:
            arithmetic[p] = max(arithmetic[p], after.arithmetic / before.arithmetic)
    return worst, arithmetic


@wide
def test_gradients_cost_at_most_4_times_3_to_the_nesting() -> None:
    worst, arithmetic = ratios(range(60))
    assert max(worst) > 2 and max(arithmetic) > 2


@pytest.mark.deep
@pytest.mark.parametrize("part", range(20))
def test_gradients_of_many_terms_cost_no_more(part: int) -> None:
    ratios(range(500 * part + 100, 500 * part + 600))


def test_a_product_of_many_comes_near_the_bound() -> None:
    text = "def f(x: f64) = " + " * ".join("x" * 60) + "\n"
    d = functions(text)["f"].definition
    found = work(gradient(d).body, {}).total / work(d.body, {}).total
    assert 2.9 < found <= 4


def test_the_account_and_what_the_machine_counts() -> None:
    found = functions(DOT)["dot"].cost(n=100)
    assert found.source.run.counted.mults == 100 and found.source.run.counted.adds >= 99
    # The gradient by the term is the other array; gradient mode takes each factor apart.
    assert found.gradient.run.counted.mults == 0 and found.mode.run.counted.mults >= 200
    assert {row.stage for row in found.others} == {"direct", "unf-reverse"}
    assert all(row.work.mults % 100 == 0 for row in found.others)
    assert found.nesting == 1 and found.bound == 12 and found.ratio < 0.01
    with pytest.raises(UsageError):
        functions(DOT)["dot"].cost()


def test_the_command_prints_it(tmp_path: Any) -> None:
    (tmp_path / "d.pure").write_text(DOT)
    out = command("pure", str(tmp_path / "d.pure"), "--cost", "n=100").stdout
    assert "kappa 4, NAO 1" in out and out.count("counted") == 3
    assert "not a length" in command("pure", str(tmp_path / "d.pure"), "--cost", "n", code=2).stderr
    wrong = command("pure", str(tmp_path / "d.pure"), "--cost", "m=3,n=3", code=2).stderr
    assert "`m` is no length here" in wrong


def test_lengths_are_counted_not_values() -> None:
    (f,) = functions("def f(A: f64[n]) = reduce + 0 (scanl * 1 A)\n").values()
    for n in (0, 1, 7):
        assert work(f.definition.body, {"n": n}).mults == n
        assert np.isfinite(f(np.ones(n)))


def modes(seeds: range) -> float:
    """The worst ratio of the run back to that forwards, in gradient mode of random terms."""
    worst = 0.0
    for seed in seeds:
        text = Writer(seed, nesting=seed % 3, more=False).definition(2 + seed % 8)
        f = functions(text)["f"]
        handle = f.program.f.with_options(engine="python")
        counting = Counting()
        given = (0.0, *arguments(f.definition, {"n": (1, 2, 5)[seed % 3]}))
        values = dict(zip(handle.parameters, given, strict=True))
        pull = Pullback(handle.target, values, counting)
        pull.seed("out")
        pull(check=False)
        there, back = counting.runs.values()
        ratio = back.work.total / max(1, there.work.total)
        # Whatever the nesting: each line is differentiated once.
        assert ratio <= 6 and back.counted.arithmetic <= 6 * max(1, there.counted.arithmetic), text
        worst = max(worst, ratio)
    return worst


def test_gradient_mode_costs_the_same_however_deep_folds_are_nested() -> None:
    assert modes(range(12)) > 2


@pytest.mark.deep
def test_gradient_mode_of_many_terms_costs_no_more() -> None:
    modes(range(12, 1012))


UNARY = [n for n, r in FUNCTIONS.items() if r.arity == 1 and r.partials and n.isidentifier()]


def test_the_bound_holds_of_every_function_of_one_number() -> None:
    seen = 0
    for fn in UNARY:
        try:
            f = functions(f"def f(x: f64) = let y = {fn}(x) in y * {fn}({fn}(y))")["f"]
        except AssemblyError:  # Of another type than f64.
            continue
        many = functions(f"def f(x: f64[n]) = sum({fn}(x) * {fn}(x))")["f"]
        for g in (f, many):
            body, n = g.definition.body, {"n": 50}
            after = work(g.gradient().definition.body, n).total
            assert after <= kappa(body) * 3 ** nesting(body) * work(body, n).total, (fn, g)
        seen += 1
    assert seen > 25
