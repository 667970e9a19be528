"""Opcodes and functions of a user's own have their gradients at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gradients import properties
from gradients.agreeing import ENGINES, agree
from sizes import sized, wide

import rvm
from rvm.isa import OPCODES
from rvm.isa.user import apply

each_engine = pytest.mark.parametrize("engine", ENGINES)
pytestmark = [pytest.mark.usefixtures("clean_tables"), sized]


def held(f: Any, inputs: dict[str, Any], loss: str) -> None:
    """What holds of every gradient, of this one."""
    agree(f, inputs, loss)
    rng = np.random.default_rng(8)
    properties.adjoints_transpose_tangents(f, inputs, rng, 1e-12)
    properties.inverses_undo(f, inputs, rng, 1e-10)
    properties.gradients_run_back(f, inputs, rng)
    properties.hessians_are_symmetric(f, inputs, loss, rng, 1e-10, 1e-6)


def test_an_opcode_of_several_statements() -> None:
    @rvm.opcode(inverse="unmix", types="inexact")
    def mix(p: rvm.Mut, q: rvm.Mut, r: rvm.Use) -> None:
        """Two updates and an exchange."""
        q += p * r
        p -= apply("sin", q)
        rvm.exchange(p, q)

    @rvm.opcode(inverse="mix", types="inexact")
    def unmix(p: rvm.Mut, q: rvm.Mut, r: rvm.Use) -> None:
        """Undo `mix`."""
        rvm.exchange(p, q)
        p += apply("sin", q)
        q -= p * r

    f = rvm.assemble("func f(x: f64[n], r: f64)\n    mix x[0], x[1], r * x[2]\n").f
    for g in (f, ~f):
        held(g, {"x": np.array([0.3, 0.7, -0.4]), "r": 0.6}, "x[0]")
    z = rvm.assemble("func f(p: c128, q: c128, r: c128)\n    mix p, q, r\n").f
    agree(z, {"p": 0.3 + 1j, "q": 0.5 - 0.2j, "r": 1.5j}, "p.im")


def test_an_opcode_with_a_condition() -> None:
    @rvm.opcode(inverse="unpull", types="inexact")
    def pull(c: rvm.Use, p: rvm.Mut, q: rvm.Mut) -> None:
        """Updates, if the number c is positive."""
        with rvm.when(c > 0):
            p += q * q * c
            q += apply("sin", p)

    @rvm.opcode(inverse="pull", types="inexact")
    def unpull(c: rvm.Use, p: rvm.Mut, q: rvm.Mut) -> None:
        """Undo `pull`."""
        with rvm.when(c > 0):
            q -= apply("sin", p)
            p -= q * q * c

    f = rvm.assemble("func f(c: f64, p: f64, q: f64)\n    pull c, p, q\n").f
    for c in (0.75, -0.75):
        for g in (f, ~f):
            held(g, {"c": c, "p": 0.3, "q": -0.8}, "q")


def test_a_map_that_is_not_linear() -> None:
    """An adjoint opcode is derived for it, and one that undoes that."""

    @rvm.opcode(inverse="unshear", types="inexact")
    def shear(p: rvm.Mut, q: rvm.Mut) -> Any:
        """(p, q + p²), all at once."""
        return p, q + p * p

    @rvm.opcode(inverse="shear", types="inexact")
    def unshear(p: rvm.Mut, q: rvm.Mut) -> Any:
        """Undo `shear`."""
        return p, q - p * p

    f = rvm.assemble("func f(x: f64[n])\n    shear x[0], x[1]\n    unshear x[1], x[2]\n").f
    for g in (f, ~f):
        held(g, {"x": np.array([0.3, 0.7, -0.4])}, "x[2]")
    assert {"shear_adjoint", "shear_adjoint_undo"} <= set(OPCODES)
    g = f.grad(loss="x[2]", x=np.array([0.3, 0.7, -0.4]))
    # x2 - (x1 + x0²)²
    s = 0.7 + 0.3**2
    assert g.x.tolist() == pytest.approx([-4 * 0.3 * s, -2 * s, 1.0], rel=1e-13)
    arrays = rvm.assemble("func f(a: f64[n], b: f64[n])\n    shear a, b\n").f
    agree(arrays, {"a": np.array([0.3, 0.7]), "b": np.ones(2)}, "b[1]")


@wide
def test_a_map_with_an_operand_that_is_only_read() -> None:
    @rvm.opcode(inverse="unwarp", types="inexact")
    def warp(p: rvm.Mut, q: rvm.Mut, s: rvm.Use) -> Any:
        """Neither linear nor orthogonal."""
        return p * apply("exp", s), q + apply("sin", p) * s

    @rvm.opcode(inverse="warp", types="inexact")
    def unwarp(p: rvm.Mut, q: rvm.Mut, s: rvm.Use) -> Any:
        """Undo `warp`."""
        old = p * apply("exp", -s)
        return old, q - apply("sin", old) * s

    f = rvm.assemble("func f(p: f64, q: f64, s: f64)\n    warp p, q, s * s\n").f
    for g in (f, ~f):
        held(g, {"p": 0.3, "q": 0.7, "s": 0.6}, "q")


@each_engine
def test_functions(engine: str) -> None:
    @rvm.function()
    def softsign(x: Any) -> Any:
        """A formula: differentiated as such."""
        return x / (1 + apply("abs", x))

    @rvm.function(partials=lambda x: (apply("*", apply("gamma", x), apply("psi", x)),))
    def gamma(x: float) -> float:
        """The gamma function: derivatives by partials that use another function."""
        return math.gamma(x)

    @rvm.function()
    def psi(x: float) -> float:
        """The derivative of log gamma; it has none itself."""
        return (math.lgamma(x + 1e-6) - math.lgamma(x - 1e-6)) / 2e-6

    text = "func f(y: f64, x: f64, z: f64)\n    add y, softsign(x * z) * gamma(z)\n"
    f = rvm.assemble(text).f.with_options(engine=engine)
    agree(f, {"y": 0.0, "x": -0.7, "z": 2.5}, "y")
    g = f.grad(loss="y", y=0.0, x=0.5, z=2.0)
    assert g.x == pytest.approx(2.0 / (1 + 1.0) ** 2, rel=1e-14)
    with pytest.raises(rvm.DefinitionError) as caught:
        f.hessian(loss="y", y=0.0, x=0.5, z=2.0)
    assert caught.value.code == "D011"
