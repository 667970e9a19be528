"""The forms of derivatives: that they agree, and that the one chosen costs least when it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pure import oracle
from pure.terms import NAMES, Writer, case
from rvm_pure import functions
from rvm_pure.account import run_of, run_with_adjoints
from rvm_pure.choice import FORMS, MODE, derived
from rvm_pure.faults import StageFault
from sizes import some
from tools.running import rvm as command

from rvm.faults import AssemblyError, UsageError

TEXT = """
def dot(A: f64[n], B: f64[n]) = reduce + 0 (map2 * A B)
def total(A: f64[n]) = sum A
def prod(A: f64[n]) = reduce * 1 A
def horner(c: f64[n], x: f64) = foldl (s, a. s * x + a) 0 c
def power(x: f64, n: i64) = loop p = 1.0 for i < n do p * x
def layer(W: f64[m, n], x: f64[n]) = sum(tanh(W @ x))
def numbers(x: f64, y: f64) = let w = x * y in w * sin(w) + exp(x)
def state(u: f64[n], c: f64) = sum(loop v = u for i < 3 do map (t. t + c * sin(t)) v)
"""
CHOSEN = {"prod": MODE, "horner": MODE, "power": MODE, "state": MODE}
"""Functions for which gradient mode is cheaper; of the others it is the term's derivative."""


@pytest.mark.parametrize("name", functions(TEXT))
@some
def test_what_is_chosen_counts_least_at_other_lengths(name: str) -> None:
    f = functions(TEXT)[name]
    d, choice = f.definition, f.choice
    assert (choice.name == MODE) == (name in CHOSEN), str(choice)
    sizes = dict.fromkeys(("n", "m"), 8)
    found = {MODE: run_with_adjoints(d, f._exchanged[name], sizes)}
    for form in choice.forms:
        if form.definition is not None:
            found[form.name] = run_of(
                form.definition, f._of(form.definition)._exchanged[name], sizes
            )
    # As the machine counts, in whose account no operand is fetched.
    least = found.pop(choice.name).counted
    assert all(least.total <= other.counted.total for other in found.values()), (least, found)


def agreeing(text: str, given: dict[str, Any], n: int) -> set[str]:
    """The forms that a definition has; all of them agree with sixty digits."""
    f = functions(text)["f"]
    exact = oracle.exact_gradient(f.definition.body, {**given, "n": n}, NAMES[: len(given)])
    seen = set()
    for name in (*FORMS, MODE):
        try:
            found = f.by(name).grad(**given)
        except AssemblyError:
            continue
        seen.add(name)
        assert oracle.apart(found, exact) <= 1e-12, (name, text)
    return seen


@pytest.mark.parametrize("seed", [0, 6, 12])
@some
def test_all_forms_of_terms_of_the_core_agree(seed: int) -> None:
    c = case(seed)
    assert {"gradient", "direct", "unf-reverse", MODE} <= agreeing(c.text, c.given, c.n)


def test_all_forms_of_formulas_agree() -> None:
    for seed in range(3):
        writer = Writer(seed, nesting=0, more=False)
        body = writer.scalar(5, {"x": "s", "y": "s"}, 0)
        text = f"def f(x: f64, y: f64) = {body} * y + x\n"
        assert agreeing(text, {"x": 0.75, "y": -1.25}, 0) == {*FORMS, MODE}


@pytest.mark.deep
def test_all_forms_of_many_terms_agree() -> None:
    for seed in range(0, 600, 3):
        c = case(seed)
        if c.is_core:
            agreeing(c.text, c.given, c.n)


def test_forms_are_requested_by_name() -> None:
    found = functions(TEXT)
    f = found["numbers"]
    assert f.by("forward").grad(0.5, 2.0) == pytest.approx(f.grad(0.5, 2.0), rel=1e-14)
    assert "in the form `forward`, as requested" in f.by("forward").keeping(pebbles=3).explain()
    with pytest.raises(UsageError) as unknown:
        f.by("backward")
    assert "unf-reverse" in str(unknown.value)
    with pytest.raises(AssemblyError) as none:
        found["dot"].by("reverse").grad(np.ones(2), np.ones(2))
    assert "`A` is not a number" in str(none.value)
    with pytest.raises(StageFault):
        derived(functions("def f(x: f64[n]) = x\n")["f"].definition, "gradient")


def test_what_has_no_account_is_differentiated_by_the_program() -> None:
    # At the lengths of the account there is no such element.
    f = functions("def f(x: f64[n]) = x[7] * x[0]\n")["f"]
    assert f.choice.name == MODE and "not known" in f.choice.why
    assert f.grad(np.arange(1.0, 9.0)).tolist() == [8.0, 0, 0, 0, 0, 0, 0, 1.0]


def test_the_command_explains_the_choice(tmp_path: Any) -> None:
    (tmp_path / "f.pure").write_text(TEXT + "def whole(k: i64[n]) = sum k\n")
    out = command("pure", str(tmp_path / "f.pure"), "-f", "prod", "--explain").stdout
    assert "derivatives: gradient mode of the program, at a cost of" in out
    assert "forward: none, as `A` is not a number" in out
    out = command("pure", str(tmp_path / "f.pure"), "-f", "whole", "--explain").stdout
    assert "derivatives: none, as a gradient is of a real number" in out
