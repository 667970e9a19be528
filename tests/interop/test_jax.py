"""Functions of JAX arrays, against JAX's own gradients of the same formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from interop.formulas import PARTS, example
from sizes import thin, wide

import rvm
from rvm.interop.jax import function
from rvm.numbers import system
from rvm.types import SCALARS

jax = pytest.importorskip("jax")
jnp = jax.numpy
normal = np.random.default_rng(0).normal

close = np.testing.assert_allclose


@pytest.fixture(autouse=True)
def wide_numbers() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


FORMULAS = {
    "norm": (example("norm", "length"), "x", "r", jnp.linalg.norm, [normal(size=4)]),
    "matmul": (
        example("matmul", "by_loops"),
        ["A", "B"],
        "C",
        jnp.matmul,
        [normal(size=(2, 3)), normal(size=(3, 2))],
    ),
    "exp": (example("exp_taylor", "iexp"), "x", "y", jnp.exp, [np.float64(1.6)]),
    "log": (example("clog", "clog"), "x", "y", jnp.log, [np.complex128(-1.3 + 0.4j)]),
}
each_formula = pytest.mark.parametrize("name", FORMULAS)


def scalar(f: Any) -> Any:
    """A real function of one argument pair: the results, weighed and squared."""

    def loss(*x: Any) -> Any:
        y = f(*x)
        weights = jnp.arange(1.0, 1.0 + y.size).reshape(y.shape)
        return jnp.sum(weights * jnp.abs(y) ** 2)

    return loss


@thin
@each_formula
def test_values_and_gradients_are_jaxs_own(name: str) -> None:
    f, inputs, outputs, formula, arguments = FORMULAS[name]
    ported = function(f, inputs, outputs)
    close(ported(*arguments), formula(*arguments), rtol=1e-13)
    which = tuple(range(len(arguments)))
    for transformed in (lambda g: g, jax.jit):
        mine = transformed(jax.grad(scalar(ported), which))(*arguments)
        for a, b in zip(mine, jax.grad(scalar(formula), which)(*arguments), strict=True):
            assert a.dtype == b.dtype
            close(a, b, rtol=1e-12, atol=1e-13)


@wide
@each_formula
@pytest.mark.parametrize("mode", ["mixed", "reverse", "forward"])
def test_second_derivatives_are_jaxs_own(name: str, mode: str) -> None:
    f, inputs, outputs, formula, arguments = FORMULAS[name]
    ported = function(f, inputs, outputs, mode=mode)
    if name == "log":  # in real numbers: both parts in, both out

        def parted(log: Any) -> Any:
            return lambda x: jnp.stack([log(x[0] + 1j * x[1]).real, log(x[0] + 1j * x[1]).imag])

        ported, formula = parted(ported), parted(formula)
        arguments = [np.array([-1.3, 0.4])]
    inner = jax.jacfwd if mode == "forward" else jax.jacrev
    outer = jax.jacrev if mode == "reverse" else jax.jacfwd
    mine = jax.jit(outer(inner(scalar(ported))))(*arguments)
    close(mine, jax.hessian(scalar(formula))(*arguments), rtol=1e-11, atol=1e-12)


@thin
@each_formula
def test_batches(name: str) -> None:
    f, inputs, outputs, formula, arguments = FORMULAS[name]
    ported = function(f, inputs, outputs)
    many = [np.stack([a, a * 0.5, a * 0.7]) for a in arguments]
    close(jax.vmap(ported)(*many), jax.vmap(formula)(*many), rtol=1e-12)
    twice = [np.stack([a, a * 1.1]) for a in many]
    close(
        jax.jit(jax.vmap(jax.vmap(jax.grad(scalar(ported)))))(*twice),
        jax.vmap(jax.vmap(jax.grad(scalar(formula))))(*twice),
        rtol=1e-11,
        atol=1e-13,
    )
    one = (0, *[None] * (len(many) - 1))
    close(
        jax.vmap(ported, one)(many[0], *arguments[1:]),
        jax.vmap(formula, one)(many[0], *arguments[1:]),
        rtol=1e-12,
    )


@wide
def test_third_order_in_each_mode() -> None:
    f = example("norm", "length")
    x = jnp.array([1.0, 2.0, -0.5])
    expected = jax.jacfwd(jax.hessian(jnp.linalg.norm))(x)
    fwd, rev = jax.jacfwd, jax.jacrev
    by_mode = {"mixed": (rev, fwd, fwd), "reverse": (rev, rev, rev), "forward": (fwd, fwd, fwd)}
    for mode, (a, b, c) in by_mode.items():
        close(c(b(a(function(f, "x", "r", mode=mode))))(x), expected, atol=1e-14)


@wide
def test_inputs_that_are_outputs_integers_and_records() -> None:
    turn = function(PARTS.turn, ["x", "t"], "x")
    x, t = jnp.array([1.0, 2.0]), 0.3

    def own(x: Any, t: Any) -> Any:
        return jnp.array([[jnp.cos(t), -jnp.sin(t)], [jnp.sin(t), jnp.cos(t)]]) @ x

    for mine, theirs in zip(
        jax.jacrev(turn, (0, 1))(x, t), jax.jacrev(own, (0, 1))(x, t), strict=True
    ):
        close(mine, theirs, rtol=1e-14)
    close(function(~PARTS.turn, ["x", "t"], "x")(turn(x, t), t), x, rtol=1e-15)

    pick = function(PARTS.pick, ["x", "k"], "y")
    close(jax.grad(pick)(x, 1), [0.0, 12.0])
    close(jax.vmap(jax.grad(pick), (None, 0))(x, jnp.arange(2)), np.diag([3.0, 12.0]))

    energy = function(PARTS.energy, ["sun.mass", "sun.at", "v"], "e")
    close(jax.grad(energy, 2)(2.0, x, jnp.array([3.0, 4.0])), [6.0, 8.0])

    n, y = function(PARTS.count, ["n", "x"], ["n", "y"])(7, 1.5)
    assert (int(n), float(y)) == (8, 3.0)
    both = function(PARTS.both, ["x", "w"], ["p", "q"], p=1.0)
    w = jnp.array([1 + 2j, 0.5j])
    mine = jax.vjp(both, x, w)[1]((jnp.asarray(0.5), jnp.asarray(1 - 2j)))
    theirs = jax.vjp(lambda x, w: (1 + x.sum() ** 2, (w * w).sum() * x[0]), x, w)[1]
    for a, b in zip(mine, theirs((jnp.asarray(0.5), jnp.asarray(1 - 2j))), strict=True):
        close(a, b, rtol=1e-14)


def test_a_network_is_trained_through_it() -> None:
    length = function(example("norm", "length"), "x", "r")
    data = normal(size=(6, 3))

    @jax.jit
    def step(w: Any) -> tuple[Any, Any]:
        def loss(w: Any) -> Any:
            return jnp.mean((jax.vmap(length)(data @ w) - 1.0) ** 2)

        value, slope = jax.value_and_grad(loss)(w)
        return value, w - 0.05 * slope

    w = jnp.eye(3)
    first, w = step(w)
    for _ in range(40):
        last, w = step(w)
    assert last < 0.5 * first


def test_big_arrays_do_not_block() -> None:
    square = function(
        rvm.assemble("func f(y: f64, x: f64[n])\n    add y, sum(x ** 2)\n").f, "x", "y"
    )
    x = jnp.ones(300_000)
    value, slope = jax.jit(jax.value_and_grad(lambda x: square(2 * x)))(x)
    assert value == 1.2e6
    assert bool((slope == 8.0).all())


def test_what_does_not_fit_is_said() -> None:
    length = function(example("norm", "length"), "x", "r")
    with pytest.raises(rvm.InputError, match="array of float64, not of float32"):
        length(jnp.ones(2, jnp.float32))
    with pytest.raises(rvm.InputError, match="must have 1 dimension, not 2"):
        jax.jit(length)(jnp.ones((2, 2)))
    for wrong in (None, "3", np.arange(3.0).astype(">f8"), [1.0, None]):
        if wrong is None or isinstance(wrong, list):
            try:
                jnp.asarray(wrong)
            except (TypeError, ValueError):
                pass
            else:
                continue  # Older JAX itself takes None for NaN.
        with pytest.raises(rvm.InputError, match="takes an array of float64, not"):
            length(wrong)
    product = function(example("matmul", "matmul"), ["A", "B"], "C")
    for ported in (product, jax.jit(product), jax.grad(lambda a, b: product(a, b).sum())):
        with pytest.raises(rvm.InputError, match="axis 0 must be 3, not 2"):
            ported(jnp.ones((2, 3)), jnp.ones((2, 2)))
    with pytest.raises(rvm.UsageError, match="takes 1 arrays"):
        length(jnp.ones(2), jnp.ones(2))
    with pytest.raises(rvm.UsageError, match="`mode` is one of"):
        function(example("norm", "length"), "x", "r", mode="both")
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(rvm.UsageError, match="64-bit mode off") as caught:
        length(np.ones(2))
    assert "jax_enable_x64" in caught.value.hint


NUMBERS = (0, 1, -1, 300, 2**31, 2**53 + 1, 2**63, 2**70, True, 2.5, 1e300, -0.0, 1j, 2 + 0j)


@pytest.mark.parametrize("t", SCALARS.values(), ids=str)
def test_pythons_numbers_are_those_that_the_machine_takes(t: Any) -> None:
    if t.is_fixed or t.is_log:
        return
    program = rvm.assemble(f"func f(y: {t}, x: {t})\n    swap y, x\n")
    ported = function(program.f, "x", "y")
    zero = system(t).to_python(system(t).zero)
    for v in NUMBERS:
        try:
            wanted = program.f(y=zero, x=v).y
        except rvm.InputError as error:
            with pytest.raises(rvm.InputError, match=re.escape(error.message)):
                ported(v)
        else:
            got = ported(v)
            assert got.dtype == system(t).dtype
            assert repr(got.item()) == repr(wanted), v


def test_seeds_may_be_pythons_numbers() -> None:
    length = function(example("norm", "length"), "x", "r")
    (adjoint,) = jax.vjp(length, jnp.array([3.0, 4.0]))[1](1.0)
    close(adjoint, [0.6, 0.8], rtol=1e-14)


def test_a_fault_of_the_machine_is_in_jaxs_error() -> None:
    pick = function(PARTS.pick, ["x", "k"], "y")
    with pytest.raises(Exception, match="the index 7 is outside"):
        jax.jit(pick)(jnp.ones(3), 7).block_until_ready()
