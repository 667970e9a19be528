"""`bits="machine"`: functions of this machine's libraries, the same ones on the way back."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from sizes import one_of, sized, thin, wide

import rvm
from rvm.derive.hessians import METHODS
from rvm.derive.target import Target
from rvm.expr import Apply, walk
from rvm.image import image_of
from rvm.isa import FUNCTIONS
from rvm.isa.functions.machine import BLAS, LIBM, MACHINE, WHOLE
from rvm.isa.implementation import implementation, value
from rvm.numbers import NAMES, compiled
from rvm.registry import ENGINES as ROWS
from rvm.registry import executing
from rvm.run.bits import with_bits
from rvm.run.machine import Machine
from rvm.state import Options
from rvm.types import F64

TEXT = """
func f(y: f64, v: f64[m], c: f64[m, m], x: f64[n], a: f64[m, n], s: f64, k: i64[n], h: i64)
    add y, sum(x) + dot(x, x) + sin(s) ** 1.5 + prod(1.0 + 0.001 * x)
    add v, a @ x
    add c, a @ a.T
    alloc t: f64[n] = exp(x) + x ** 2
    add v, a @ t
    free t = exp(x) + x ** 2
    add h, sum(k) + dot(k, k)
    for i = 0 to m - 1
        add y, exp(0.01 * s) + log(x[i] * x[i])
    end
"""
LIB = rvm.assemble(TEXT)
ENGINES = [e for e in executing() if e != "auto"]


def inputs(m: int = 40, n: int = 90) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    x, a = rng.normal(size=n), rng.normal(size=(m, n))
    k = rng.integers(-9, 9, n)
    return {"y": 1.0, "v": np.zeros(m), "c": np.zeros((m, m)), "x": x, "a": a, "s": 0.7} | {
        "k": k,
        "h": 0,
    }


def called(f: Any, given: dict[str, Any], **options: Any) -> Any:
    return f(**options, **copy.deepcopy(given))


@wide
@pytest.mark.parametrize("engine", executing())
def test_results_differ_in_last_bits_at_most_and_come_back(engine: str) -> None:
    given = inputs()
    stated, found = (called(LIB.f, given, engine=engine, bits=b) for b in ("stated", "machine"))
    assert (stated.info.bits, found.info.bits) == ("stated", "machine")
    for name in given:
        np.testing.assert_allclose(found[name], stated[name], rtol=1e-12)
    assert found.h == stated.h
    back = called(~LIB.f, dict(found), engine=engine, bits="machine")
    assert back.info.bits == "machine" and back.h == 0
    for name in given:
        np.testing.assert_allclose(back[name], given[name], rtol=1e-12, atol=1e-11)


@sized
@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_added_on_the_way_is_what_is_taken_off_on_the_way_back(engine: str) -> None:
    """To the bit: an increment added to 0 and taken off again leaves 0."""
    f = rvm.assemble(
        "func f(y: f64, z: f64, v: f64[m], w: f64[m, m], x: f64[n], a: f64[m, n])\n"
        "    add y, sum(exp(x)) ** 0.3 + a[0] @ x\n    add v, a @ sin(x)\n    add w, a @ a.T\n"
        "    for i = 1 to m\n        add z, atan(a[i - 1, 0]) * dot(x, x)\n"
        "        sub z, atan(a[i - 1, 0]) * dot(x, x)\n    end\n"
    ).f
    large = [(410, 420)] if ROWS[engine].compiles else []  # what machine code leaves to BLAS
    for m, n in ((3, 5), (30, 70), (50, 90), *large):
        rng = np.random.default_rng(m)
        given = {"y": 0.0, "z": 0.0, "v": np.zeros(m), "w": np.zeros((m, m))}
        given |= {"x": rng.normal(size=n), "a": rng.normal(size=(m, n))}
        for steps in one_of((0, 3, 11), (engine, m)):
            machine = Machine(f.program, "f", engine=engine, bits="machine", **given)
            # Steps are the reference engine's.
            for _ in range(steps):
                machine.step()
            machine.run()
            there = machine.run_back()
            assert there["y"] == there["z"] == 0.0
            assert not np.any(there["v"]) and not np.any(there["w"])


def test_programs_name_the_functions_and_are_made_once() -> None:
    def functions(options: Options) -> set[str]:
        code = image_of(with_bits(LIB.program, options)).code("f", False)
        formulas = (n for i in code.instrs for a in i.args for n in walk(a))
        return {n.fn for n in formulas if isinstance(n, Apply) and "." in n.fn}

    assert functions(Options()) == set()
    every = {"sum", "dot", "sin", "**", "prod", "@", "exp", "log"}
    assert functions(Options(bits="machine")) == {f"{MACHINE}.{fn}" for fn in every}
    assert functions(Options(engine="native", bits="machine")) == {f"{BLAS}.@"}
    made = with_bits(LIB.program, Options(bits="machine"))
    assert with_bits(LIB.program, Options(bits="machine")) is made
    assert with_bits(made, Options(bits="machine")) is made
    code = image_of(made).code("f", False)
    squares = [
        n for i in code.instrs for a in i.args for n in walk(a) if getattr(n, "fn", "") == "**"
    ]
    assert len(squares) == 2


@pytest.mark.parametrize("fn", [*LIBM.split(), "**"])
def test_functions_of_libm_are_total_as_the_stated_ones(fn: str) -> None:
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e300, -1e300, 5e-324, 710.0, -746.0]
    edges += [math.inf, -math.inf, math.nan]
    arity = 2 if fn in ("atan2", "hypot", "**") else 1
    own, theirs = (value(name, (F64,) * arity) for name in (fn, f"{MACHINE}.{fn}"))
    whole = compiled(implementation(f"{MACHINE}.{fn}", (F64,) * arity).numpy, arity, NAMES)
    for x in edges:
        for y in edges if arity == 2 else [0.0]:
            args = (x, y)[:arity]
            with np.errstate(all="ignore"):
                want, found, many = own(*args), theirs(*args), whole(*map(np.array, args))
            if fn in ("sin", "cos", "tan") and abs(x) > 1e299:
                continue
            # NumPy has roots for some powers, in which -inf is not a number.
            both = [found, found if fn == "**" else many]
            np.testing.assert_allclose(both, [want] * 2, rtol=1e-14, err_msg=str(args))


def test_sums_are_numpys_on_arrays_of_all_inexact_types() -> None:
    rng = np.random.default_rng(2)
    for t, dtype in (("f64", np.float64), ("f32", np.float32), ("c128", np.complex128)):
        f = rvm.assemble(
            f"func f(s: {t}, d: {t}, p: {t}, w: {t}[m, m], x: {t}[n], a: {t}[m, n])\n"
            "    add s, sum(x)\n    add d, dot(x, x)\n    add p, prod(x)\n    add w, a @ a.T\n"
        ).f
        x, a = rng.normal(size=300).astype(dtype), rng.normal(size=(40, 300)).astype(dtype)
        zero = np.zeros((40, 40), dtype)
        for engine in (e for e in executing() if not ROWS[e].compiles):
            args = {"s": 0, "d": 0, "p": 0, "w": zero.copy(), "x": x, "a": a}
            found = f(engine=engine, bits="machine", **args)
            assert (found.s, found.d, found.p) == (np.sum(x), np.dot(x, x), np.prod(x))
            assert np.array_equal(found.w, a @ a.T)


def test_gradients_maps_and_copies_have_them() -> None:
    given = inputs()
    f = LIB.f.with_options(bits="machine")
    found, stated = (g.grad(loss="y", **given) for g in (f, LIB.f))
    assert (found.info.bits, stated.info.bits) == ("machine", "stated")
    np.testing.assert_allclose(found.x, stated.x, rtol=1e-10)
    many = LIB.f.map(bits="machine", **given | {"s": np.linspace(0, 1, 5)})
    assert many.info.bits == "machine"
    np.testing.assert_allclose(many.y, LIB.f.map(**given | {"s": np.linspace(0, 1, 5)}).y)
    machine = Machine(LIB, "f", bits="machine", **copy.deepcopy(given))
    machine.run()
    back = pickle.loads(pickle.dumps(machine)).run_back()
    assert abs(back["y"] - 1.0) < 1e-12
    assert Target(LIB.program, "f").gradient_program is LIB.f.gradient_program.program


PRODUCTS = rvm.assemble("""
func f(y: f64, v: f64[m], x: f64[n], a: f64[m, n])
    alloc t: f64[n] = exp(x)
    add v, a @ t
    free t = exp(x)
    add y, sum(a @ x)
""").f
"""Products are all of which native code has the libraries' functions."""


@thin(2)
@pytest.mark.parametrize("strict", [False, True])
def test_machine_code_is_the_same_and_says_so(strict: bool) -> None:
    """Without large products of matrices: calls, strict ones back by their log, and gradients."""
    given = {name: value for name, value in inputs(4, 6).items() if name in "yvxa"}
    f = PRODUCTS.with_options(engine="native", strict=strict)
    of_bits = [f.with_options(bits=b) for b in ("stated", "machine")]
    calls = [called(g, given) for g in of_bits]
    backs = [called(~g, dict(there)) for g, there in zip(of_bits, calls, strict=True)]
    grads = [g.grad(loss="y", **given) for g in of_bits]
    vjps = [g.vjp({"y": 1.0, "v": np.ones(4)}, given) for g in of_bits]
    valued = [g.value_and_grad(loss="y", **given)[1] for g in of_bits]
    for stated, found in (calls, backs, grads, vjps, valued):
        assert (stated.info.bits, found.info.bits) == ("stated", "machine")
        for name in stated:
            np.testing.assert_array_equal(found[name], stated[name])
    if strict:
        there = called(of_bits[1], given)
        back = (~of_bits[1])(there)
        assert back.info.bits == "machine"
        for name in given:
            np.testing.assert_array_equal(back[name], given[name])
        with pytest.raises(rvm.RvmError, match="strict log"):
            (~PRODUCTS)(called(PRODUCTS.with_options(bits="machine", strict=True), given))


CURVED = rvm.assemble("""
func f(y: f64, x: f64[n])
    add y, dot(x, x) * exp(x[0]) + sum(x) ** 3 + prod(x)
    for i = 0 to n - 1
        add y, sin(x[i])
    end
""").f
"""Its second derivatives take those of this machine's functions of arrays."""


@pytest.mark.parametrize("engine", executing(loops=False))
def test_every_derivative_has_them_and_says_so(engine: str) -> None:
    x = np.array([0.3, 0.7])
    many = np.array([x, [0.2, -0.4], [1.0, 0.5]])
    one = {"x": np.array([1.0, 0.0])}

    def doors(bits: str) -> list[Any]:
        f = CURVED.with_options(engine=engine, bits=bits)
        return [
            *(f.hessian(loss="y", y=0.0, x=x, method=m) for m in METHODS),
            f.hvp(one, loss="y", y=0.0, x=x),
            f.jacobian(y=0.0, x=x),
            *f.jvp(one, y=0.0, x=x),
            f.vjp({"y": 2.0}, y=0.0, x=x),
            f.map(y=0.0, x=many),
            f.map.grad(loss="y", y=0.0, x=many),
            f.map.value_and_grad(loss="y", y=0.0, x=many)[1],
        ]

    def numbers(found: Any) -> list[float]:
        values = found.values() if isinstance(found, Mapping) else [found]
        return [
            n
            for v in values
            for n in (numbers(v) if isinstance(v, Mapping) else np.ravel(v).tolist())
        ]

    for stated, found in zip(doors("stated"), doors("machine"), strict=True):
        assert (stated.info.bits, found.info.bits) == ("stated", "machine")
        np.testing.assert_allclose(numbers(found), numbers(stated), rtol=1e-12, atol=1e-13)


def test_gradients_in_lanes_are_this_machine_s_too() -> None:
    """Its sums are those of NumPy, which add in another order."""
    x = np.sin(np.arange(3000.0)).reshape(3, 1000)
    f = rvm.assemble("func f(y: f64, x: f64[n])\n    add y, sum(x) ** 2\n").f
    found = f.map.grad(loss="y", y=0.0, x=x, bits="machine", engine="python")
    assert found.x[:, 0].tolist() == [2 * np.sum(row) for row in x]


def test_other_words_are_refused_and_no_text_names_the_functions() -> None:
    with pytest.raises(rvm.RvmError, match="bits is"):
        LIB.f.with_options(bits="fast")
    with pytest.raises(rvm.RvmError):
        rvm.assemble("func f(y: f64, x: f64)\n    add y, machine.exp(x)\n")
    assert not any(f"{MACHINE}.{fn}" in set(FUNCTIONS) for fn in WHOLE)
