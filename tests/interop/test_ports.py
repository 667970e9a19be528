"""Ports themselves, which need no other library."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from interop.formulas import PARTS, example

import rvm
from rvm.interop.port import port


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_missing_library_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import import_module

    module = import_module(f"rvm.interop.{name}")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(rvm.UsageError) as caught:
        module.function(PARTS.turn, ["x", "t"], ["x"])
    assert caught.value.code == "U007"
    assert caught.value.hint == f'pip install "rvm[{name}]"'


def test_shapes_follow_from_those_of_the_inputs() -> None:
    product = port(example("matmul", "matmul"), ["A", "B"], ["C"], {})
    assert product.shapes([(2, 3), (3, 4)], product.finals) == [(2, 4)]
    tangent = product.tangent
    assert tangent.shapes([(2, 3), (3, 4)] * 2, tangent.finals) == [(2, 4), (2, 4)]


def test_a_run_back_leaves_everything_as_it_was() -> None:
    turn = port(PARTS.turn, ["x", "t"], ["x"], {})
    x, t = np.array([1.0, 2.0]), np.asarray(0.5)
    finals = turn.forward([x, t])
    kept = [v.copy() for v in finals]
    seed = np.array([1.0, 0.0])
    adjoints = turn.backward([x, t], finals, [seed])
    np.testing.assert_allclose(adjoints[0], [np.cos(0.5), -np.sin(0.5)], rtol=1e-15)
    np.testing.assert_allclose(adjoints[1], -np.sin(0.5) * 1.0 - np.cos(0.5) * 2.0, rtol=1e-15)
    np.testing.assert_array_equal(finals[0], kept[0])
    np.testing.assert_array_equal(seed, [1.0, 0.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_the_second_pullback_does_not_need_what_adjoints_forget() -> None:
    """The adjoint of the series drops adjoints of its constants: undoing that would give 0."""
    series = port(example("exp_taylor", "iexp"), ["x"], ["y"], {}).tangent
    one, zero = np.asarray(1.0), np.asarray(0.0)
    for x in (-2.0, 0.5, 1.6):
        inputs = [np.asarray(x), one]
        found = series.backward(inputs, series.forward(inputs), [zero, one])
        assert found[0] == pytest.approx(np.exp(x), rel=1e-12)
        assert found[1] == pytest.approx(np.exp(x), rel=1e-12)


def test_fixed_values_are_copies() -> None:
    data = np.ones(3)
    length = port(example("norm", "length"), ["y"], ["r"], {"x": data})
    data[0] = 5.0
    finals = length.forward([np.asarray(0.0)])
    assert finals[0] == pytest.approx(np.sqrt(3))
    assert len(finals) == 2, "y changes too"


def test_options_of_the_function_hold() -> None:
    f = example("norm", "length").with_options(max_steps=3)
    with pytest.raises(rvm.LimitError):
        port(f, ["x"], ["r"], {}).forward([np.ones(9)])
