"""Opcodes and functions of a user's own have their gradients at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gradients import properties
from gradients.agreeing import ENGINES, agree
from sizes import sized, wide

import rvm
from rvm.isa import OPCODES
from rvm.isa.user import apply
from rvm.transform.maps import adjoint_map, tangent_map
from rvm.types import SCALARS

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


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    return apply("select", condition, then, otherwise)


Maps = tuple[Callable[..., Any], Callable[..., Any], Callable[..., tuple[float, float, float]]]
NEARLY_LINEAR: dict[str, Maps] = {
    "a coefficient of 1e-10": (
        lambda a, b, u: (a + 1e-10 * apply("sin", b), b),
        lambda a, b, u: (a - 1e-10 * apply("sin", b), b),
        lambda a, b, u: (1.0, 1e-10 * math.cos(b), 0.0),
    ),
    "a coefficient of 1e-10 that is not on both sides": (
        lambda a, b, u: (a + 1e-10 * b, b),
        lambda a, b, u: (a - 1e-10 * b, b),
        lambda a, b, u: (1.0, 1e-10, 0.0),
    ),
    "a choice by what changes": (
        lambda a, b, u: (choose(apply("abs", a) < 3, -a, a), b),
        lambda a, b, u: (choose(apply("abs", a) < 3, -a, a), b),
        lambda a, b, u: (-1.0 if abs(a) < 3 else 1.0, 0.0, 0.0),
    ),
    "a choice by what does not": (
        lambda a, b, u: (a + choose(u > 1000, b, 0.0), b),
        lambda a, b, u: (a - choose(u > 1000, b, 0.0), b),
        lambda a, b, u: (1.0, 1.0 if u > 1000 else 0.0, 0.0),
    ),
    "steps": (
        lambda a, b, u: (a + apply("floor", b * 1e-3), b),
        lambda a, b, u: (a - apply("floor", b * 1e-3), b),
        lambda a, b, u: (1.0, 0.0, 0.0),
    ),
    "a constant": (
        lambda a, b, u: (5 - a, b + 1e-10),
        lambda a, b, u: (5 - a, b - 1e-10),
        lambda a, b, u: (-1.0, 0.0, 0.0),
    ),
    "a small square": (
        lambda a, b, u: (a + 1e-12 * b * b, b),
        lambda a, b, u: (a - 1e-12 * b * b, b),
        lambda a, b, u: (1.0, 2e-12 * b, 0.0),
    ),
    "a rotation": (
        lambda a, b, u: (0.6 * a - 0.8 * b, 0.8 * a + 0.6 * b),
        lambda a, b, u: (0.6 * a + 0.8 * b, 0.6 * b - 0.8 * a),
        lambda a, b, u: (0.6, -0.8, 0.0),
    ),
    "numbers between that are large": (
        lambda a, b, u: (apply("sinh", a), b),
        lambda a, b, u: (apply("asinh", a), b),
        lambda a, b, u: (math.cosh(a), 0.0, 0.0),
    ),
    "numbers between that are large, the other way": (
        lambda a, b, u: (apply("asinh", a), b),
        lambda a, b, u: (apply("sinh", a), b),
        lambda a, b, u: (1 / math.hypot(1.0, a), 0.0, 0.0),
    ),
    "an exponential of a logarithm": (
        lambda a, b, u: (apply("exp", 3 * apply("log", a)), b),
        lambda a, b, u: (apply("exp", apply("log", a) / 3), b),
        lambda a, b, u: (3 * a * a, 0.0, 0.0),
    ),
}


@pytest.mark.parametrize("name", NEARLY_LINEAR)
def test_maps_that_are_linear_or_nearly(name: str) -> None:
    """Linear ones are their own derivatives; of others these are made, whatever is small in them.

    Adjoints and tangents may be of any size themselves: the seed is one of three.
    """
    forth, back, partials = NEARLY_LINEAR[name]

    @rvm.opcode(name="bend", inverse="unbend", types="float")
    def bend(a: rvm.Mut, b: rvm.Mut, u: rvm.Use) -> Any:
        return forth(a, b, u)

    @rvm.opcode(name="unbend", inverse="bend", types="float")
    def unbend(a: rvm.Mut, b: rvm.Mut, u: rvm.Use) -> Any:
        return back(a, b, u)

    f = rvm.assemble("func f(a: f64, b: f64, u: f64)\n    bend a, b, u\n").f
    for a, b, u in ((0.5, 0.25, 0.75), (5.0, 3.0, 2000.0)):
        want = partials(a, b, u)
        for seed in (1.0, 5000.0, 1e-9):
            adjoints = f.vjp({"a": seed}, a=a, b=b, u=u)
            np.testing.assert_allclose([adjoints[k] / seed for k in "abu"], want, rtol=1e-12)
            for k, slope in zip("ab", want, strict=False):
                tangents = f.jvp({k: seed}, a=a, b=b, u=u)[1]
                np.testing.assert_allclose(tangents.a / seed, slope, rtol=1e-12)


@wide
@pytest.mark.parametrize("t", ["f32", "f64", "c128"])
@pytest.mark.parametrize("name", ["rot", "irot", "neg", "conj", "hadamard"])
def test_opcodes_of_the_table_that_are_their_own_derivatives(name: str, t: str) -> None:
    """As the table's own they are tried on few numbers, here on all."""
    row = replace(OPCODES[name], module="elsewhere")
    inverse = OPCODES[name].inverse
    assert adjoint_map.__wrapped__(row, SCALARS[t]) == (inverse, False)
    assert tangent_map.__wrapped__(row, SCALARS[t]) == (name, False)
