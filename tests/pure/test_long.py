"""Definitions of hundreds of lines: their stages are texts that are read again."""

from __future__ import annotations

import math
import time

import pytest
from rvm_pure import functions
from rvm_pure.unary_text import read_unary
from sizes import wide

import rvm
from rvm import f64

STEPS = 49


@rvm.pure
def turned(x: f64, y: f64):
    """Not quite as many operations as a trace may have."""
    for _ in range(STEPS):
        x, y = x + 0.01 * y, y - 0.01 * x * y
    return x * y


def by_hand(x: float, y: float) -> float:
    for _ in range(STEPS):
        x, y = x + 0.01 * y, y - 0.01 * x * y
    return x * y


@pytest.mark.parametrize("stage", ["source", "anf", "dup", "forward", "reverse"])
def test_stages_of_long_traces_are_read_again(stage: str) -> None:
    text = turned.stage(stage)
    assert text.count("\n") > 200
    (again,) = functions(text).values()
    assert len(again.stage("source").splitlines()) > 200
    if stage in ("anf", "dup", "forward"):
        assert again.stage("source") == text
    (once_more,) = functions(again.stage("source")).values()
    assert once_more.stage("source") == again.stage("source")


def test_the_unary_form_of_a_long_trace_is_read_again() -> None:
    read_unary(turned.stage("unf"))


def test_a_text_of_lines_is_a_program_that_computes_them() -> None:
    (again,) = functions(turned.stage("anf")).values()
    assert again(1.0, 2.0) == turned(1.0, 2.0) == pytest.approx(by_hand(1.0, 2.0), rel=1e-14)


def lets(n: int) -> str:
    more = "".join(f"let v{k} = sin v{k - 1} in " for k in range(1, n))
    return f"def f(x: f64) = let v0 = x in {more}v{n - 1}\n"


def inner(n: int) -> str:
    """Each let in the value of the one before."""
    begun = "".join(f"let v{k} = " for k in range(n))
    return f"def f(x: f64) = {begun}x{''.join(f' in sin v{k}' for k in reversed(range(n)))}\n"


@pytest.mark.parametrize("write", [lets, inner])
def test_hundreds_of_lets_are_read_and_compiled(write: object) -> None:
    f = functions(write(150))["f"]  # type: ignore[operator]
    want = 0.5
    for _ in range(150 - (write is lets)):
        want = math.sin(want)
    assert f(0.5) == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize(
    "text", [lets(7000), inner(7000), f"def f(x: f64) = {'(' * 101}x{')' * 101}\n"]
)
def test_texts_that_are_too_long_or_deep_are_refused(text: str) -> None:
    with pytest.raises(rvm.AssemblyError, match="A046"):
        functions(text)


def test_programs_of_too_many_names_are_refused() -> None:
    f = functions(lets(1500))["f"]
    assert f.stage("anf").count("\n") == 1502
    with pytest.raises(rvm.AssemblyError, match=r"A046.*too long"):
        f.program  # noqa: B018


@wide
def test_a_long_trace_has_a_gradient_soon() -> None:
    """Forms that take time to make are not compared."""

    @rvm.pure
    def some(x: f64, y: f64):
        for _ in range(20):
            x, y = x + 0.01 * y, y - 0.01 * x * y
        return x * y

    start = time.process_time()
    slopes = some.grad(1.0, 2.0)
    assert time.process_time() - start < 30
    h = 1e-6
    assert slopes[0] == pytest.approx((some(1 + h, 2.0) - some(1 - h, 2.0)) / (2 * h), rel=1e-8)
    assert "unf-reverse: none" in some.explain()
