"""Unary forms are read again, stand for the same values, and lead to the same gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pure.terms import Writer
from pure.values import evaluate
from rvm_pure import functions
from rvm_pure.gradient import simple
from rvm_pure.unary import rebuilt
from rvm_pure.unary_text import read_unary, text
from sizes import wide

from rvm.faults import AssemblyError

PAPER = """
def first(x1: f64, x2: f64, x3: f64) = let w1 = x1 * x2 in let w2 = w1 * x1 in w2
def prod(A: f64[n]) = reduce * 1 A
def pairs(x: f64, y: f64) = let p = (x * y, sin(x)) in fst p * snd p
"""


def test_the_primitives_of_the_paper_s_example() -> None:
    assert functions(PAPER)["prod"].stage("unf") == (
        "unf prod(A: f64[n]) =\n    const 1\n    var 1\n    reduce *\n    proj 1 2 1\n"
    )
    lines = functions(PAPER)["pairs"].stage("unf").splitlines()[1:]
    assert [x.strip() for x in lines[:8]] == [
        "var 1",
        "var 2",
        "op *",
        "proj 2 2 1",
        "var 1",
        "op sin",
        "proj 3 1 1",
        "pair",
    ]


EXAMPLE = """
unf f(x1: f64, x2: f64, x3: f64) =
    op cos
    pair
"""
TARGET = """
unf reverse f(x1: f64, x2: f64, x3: f64) =
    <proj 3 1 0; op cos, proj 0 3 1 o (proj 3 1 0; J op cos)>
    <proj 4 1 0; pair, proj 0 4 1 o (proj 4 1 0; J pair)>
"""


def test_the_paper_s_example_of_the_unary_form_and_of_its_reverse() -> None:
    """Examples 4.1 and 4.2, whose context `R3` is that of three real numbers."""
    source = read_unary(EXAMPLE[1:])
    assert text(source) == EXAMPLE[1:]
    reverse = replace(source, is_reverse=True)
    assert text(reverse) == TARGET[1:] and read_unary(TARGET[1:]).lines == source.lines
    value = evaluate(simple(rebuilt(source)).body, {"x1": 1.0, "x2": 2.0, "x3": 0.5})
    assert value == (0.5, np.cos(0.5))


def agree(seeds: range) -> None:
    for seed in seeds:
        source = Writer(seed, more=False).definition(6)
        f = functions(source)["f"]
        rng = np.random.default_rng(seed)
        n = (0, 1, 2, 5)[seed % 4]
        given = {"x": 0.3, "y": -1.2, "A": rng.normal(size=n), "B": rng.normal(size=n), "n": n}
        want = evaluate(f.definition.body, given)
        forms = {s: read_unary(f.stage(s)) for s in ("unf", "unf-reverse")}
        for s, form in forms.items():
            assert text(form) == f.stage(s)
        assert evaluate(simple(rebuilt(forms["unf"])).body, given) == pytest.approx(want, rel=1e-12)
        value, found = evaluate(simple(rebuilt(forms["unf-reverse"])).body, given)
        assert value == pytest.approx(want, rel=1e-12, abs=1e-12)
        gradient = evaluate(f.gradient().definition.body, given)
        top = max(np.max(np.abs(w), initial=1e-300) for w in gradient)
        for a, b in zip(found, gradient, strict=True):
            assert np.allclose(a, b, rtol=0, atol=1e-12 * top), source


@wide
def test_random_terms_by_their_unary_form() -> None:
    agree(range(12))


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
def test_many_random_terms_by_their_unary_form(part: int) -> None:
    agree(range(100 + 100 * part, 200 + 100 * part))


PAIR = "unf reverse f(x: f64) =\n    <proj {} 1 0; var 1, proj 0 1 1 o (proj 1 1 0; J {})>\n"


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("unf f(x: f64) =\n    vra 1\n", "vra"),
        ("unf f(x: f64) =\n    op frob\n", "frob"),
        (PAIR.format(2, "var 1"), "proj"),
        (PAIR.format(1, "op sin"), "op"),
    ],
)
def test_what_is_wrong_with_a_form_is_shown(source: str, wrong: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        read_unary(source)
    where = caught.value.diagnostics[0].where
    assert (where.text or "")[where.column - 1 :].startswith(wrong)


def test_what_is_not_of_the_core_language_is_refused() -> None:
    for body in ("loop p = x for i < 3 do p * x", "if x < 0 then x else 1"):
        with pytest.raises(AssemblyError):
            functions(f"def f(x: f64) = {body}\n")["f"].stage("unf")
