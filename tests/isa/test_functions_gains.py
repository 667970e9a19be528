"""What adjoints gain, and tangents, for every function, against central differences of it."""

from __future__ import annotations

import numpy as np
import pytest
from isa.evaluating import evaluate, place
from oracles import DOMAIN

from rvm.expr import Const
from rvm.faults import DefinitionError
from rvm.isa.derivatives import adjoint_type, gains
from rvm.isa.functions.logs import LOG_PARTIALS
from rvm.isa.rows import FUNCTIONS, FunctionRow
from rvm.isa.rules import Arg, TypeFault, elementwise
from rvm.isa.tangents import tangent_of
from rvm.isa.typing import apply
from rvm.numbers import Code
from rvm.types import BOOL, C128, F32, F64, FIXED, I64, LOG64, elem_of, fixed, rank_of

STATE = {}


@pytest.fixture(autouse=True)
def _seeded():
    """Every test draws the same numbers wherever it runs."""
    STATE["rng"] = np.random.default_rng(7)


def draw(t, shape, low=0.25, high=1.25):
    rng = STATE["rng"]
    x = rng.uniform(low, high, shape)
    if t.is_complex:
        x = x + 1j * rng.uniform(-1.0, 1.0, shape)
    return x if shape else x.item()


def raws_of(values, types):
    """Numbers as raw values of their types; logarithms and f64 as they are."""
    out = []
    for v, t in zip(values, types, strict=True):
        if not (t.is_fixed or t.is_integer or t.is_bool):
            out.append(v)
        elif t.is_fixed:
            raw = np.rint(np.asarray(v) * 2.0**t.frac).astype(np.int64)
            out.append(raw if np.ndim(v) else int(raw))
        else:
            out.append(v)
    return out


def number(raw, t):
    """A raw value as the number whose derivative the machine takes (of a log64: its logarithm)."""
    return raw * 2.0**-t.frac if t.is_fixed else raw


def along(node, dot, raws):
    """The value of a tangent, which has the type and rank of an expression's result."""
    if dot is None:
        return np.zeros(np.shape(evaluate(node, raws)))
    assert elem_of(dot.type) == adjoint_type(elem_of(node.type))
    assert rank_of(dot.type) == rank_of(node.type)
    return evaluate(dot, raws)


def check(name, types, values, ranks=None, step=1e-6, tolerance=2e-8):
    """Compare `gains` and tangents with central differences, along random directions."""
    ranks = ranks or [np.ndim(v) for v in values]
    args = tuple(place(k, t, r) for k, (t, r) in enumerate(zip(types, ranks, strict=True)))
    node = apply(name, *args)
    result = elem_of(node.type)
    raws = dict(enumerate(raws_of(values, types)))
    y = evaluate(node, raws)
    seed = draw(adjoint_type(result), np.shape(y), -1.0, 1.0)
    g = place(99, adjoint_type(result), rank_of(node.type))
    found = gains(name, args, g)
    assert len(found) == len(args)
    every, compared = range(len(args)), 0
    for k, (gain, t) in enumerate(zip(found, types, strict=True)):
        if adjoint_type(t) is None:
            assert gain is None
            continue
        if gain is None:
            got = np.zeros(np.shape(values[k]))
        else:
            assert elem_of(gain.type) == adjoint_type(t)
            assert rank_of(gain.type) <= ranks[k]
            got = np.broadcast_to(evaluate(gain, {**raws, 99: seed}), np.shape(values[k]))
        for _ in range(3):
            d = draw(t, np.shape(values[k]), -1.0, 1.0)

            def moved(h, k=k, d=d):
                changed = list(values)
                changed[k] = values[k] + h * d
                return np.asarray(
                    number(evaluate(node, dict(enumerate(raws_of(changed, types)))), result)
                )

            slope = (moved(step) - moved(-step)) / (2 * step)
            want = float(np.real(np.sum(np.conj(seed) * slope)))
            have = float(np.real(np.sum(np.conj(got) * d)))
            assert have == pytest.approx(want, rel=tolerance, abs=tolerance * 10), (name, k)
            dots = tuple(place(98, adjoint_type(t), ranks[k]) if j == k else None for j in every)
            dot = along(node, tangent_of(name, args, dots), {**raws, 98: d})
            assert np.shape(dot) == np.shape(y), (name, k)
            ahead = float(np.real(np.sum(np.conj(seed) * dot)))
            assert ahead == pytest.approx(want, rel=tolerance, abs=tolerance * 10), (name, k)
            compared += 1
    return compared


ELEMENTWISE = [
    r.name
    for r in FUNCTIONS.values()
    if r.partials is not None and r.name in DOMAIN and r.name not in ("select", "detach")
]
RANGES = {**dict.fromkeys(("leg", "asin", "acos", "atanh"), (-0.9, 0.9)), "acosh": (1.25, 2.25)}
"""Where functions are tried that are not defined, or too steep, where the others are."""


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("t", [F64, fixed(50)], ids=str)
def test_elementwise_on_arrays_and_broadcast(name, t):
    arity = FUNCTIONS[name].arity
    loose = {"step": 1e-5, "tolerance": 1e-7} if t.is_fixed else {}
    bounds = RANGES.get(name, (0.25, 1.25))
    assert check(name, (t,) * arity, [draw(t, (4,), *bounds) for _ in range(arity)], **loose)
    if arity == 2:
        check(name, (t, t), [draw(t, (3, 4)), draw(t, (4,))], **loose)
        check(name, (t, t), [draw(t, ()), draw(t, (3, 4))], **loose)
        check(name, (t, t), [draw(t, (3, 1)), draw(t, (3, 4))], **loose)


COMPLEX = [
    *("identity", "neg", "+", "-", "*", "/", "**", "abs", "sqrt", "square", "exp", "log", "sin"),
    *("cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "conj", "abs2", "angle"),
    *("real", "imag", "leg", "sech"),
]


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name):
    arity = FUNCTIONS[name].arity
    assert check(name, (C128,) * arity, [draw(C128, (5,)) for _ in range(arity)])
    assert check(name, (C128,) * arity, [draw(C128, ()) for _ in range(arity)])


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "**"])
def test_complex_mixed_with_real(name):
    check(name, (C128, F64), [draw(C128, (3,)), draw(F64, (3,))])
    check(name, (F64, C128), [draw(F64, ()), draw(C128, (3,))])


def test_parts_and_conversions():
    check("complex", (F64, F64), [draw(F64, (3,)), draw(F64, ())])
    check("c128", (F64,), [draw(F64, (3,))])
    check("f64", (fixed(40),), [draw(F64, (3,))], step=1e-3, tolerance=1e-6)
    check("f64", (LOG64,), [draw(F64, (3,))])
    check("log64", (F64,), [draw(F64, (3,))])
    check("log", (LOG64,), [draw(F64, (3,))])
    check("exp_log64", (F64,), [draw(F64, (3,))])
    check("c128", (LOG64,), [draw(F64, ())])
    x = place(0, F64)
    (gain,) = gains("f32", (x,), place(1, F32))
    assert gain.type == F64 and evaluate(gain, {0: 2.0, 1: 0.5}) == 0.5
    assert gains("i64", (x,), place(1, F64)) == (None,)
    assert gains("f64", (place(0, I64),), place(1, F64)) == (None,)


def test_select():
    c = np.array([True, False, True])
    check("select", (BOOL, F64, F64), [c, draw(F64, (3,)), draw(F64, ())])
    check("select", (BOOL, LOG64, LOG64), [c, draw(F64, (3,)), draw(F64, (3,))])


@pytest.mark.parametrize(
    "name", ["identity", "neg", "+", "*", "/", "min", "max", "abs", "sqrt", "square"]
)
def test_logarithms(name):
    arity = FUNCTIONS[name].arity
    check(name, (LOG64,) * arity, [draw(F64, (4,), -2.0, 2.0) for _ in range(arity)])


def test_differences_and_powers_of_logarithms():
    check("-", (LOG64, LOG64), [draw(F64, (4,), 2.0, 3.0), draw(F64, (4,), 0.0, 1.0)])
    check("**", (LOG64, F64), [draw(F64, (4,), 0.5, 2.0), draw(F64, (4,), -2.0, 2.0)])


REDUCTIONS = [("sum", C128), ("prod", C128)]
REDUCTIONS += [(f, t) for f in ("sum", "prod", "amin", "amax") for t in (F64, LOG64)]


@pytest.mark.parametrize(("name", "t"), REDUCTIONS, ids=str)
def test_reductions(name, t):
    check(name, (t,), [draw(t, (5,))])
    check(name, (t,), [draw(t, (2, 3))])


@pytest.mark.parametrize("t", [F64, C128], ids=str)
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("dot", [(4,), (4,)]),
        ("matvec", [(3, 4), (4,)]),
        ("matmul", [(2, 3), (3, 4)]),
        ("outer", [(3,), (4,)]),
        ("@", [(4,), (4,)]),
        ("@", [(3, 4), (4,)]),
        ("@", [(3,), (3, 4)]),
        ("@", [(2, 3), (3, 2)]),
        ("scan_left", [(5,)]),
        ("scan_right", [(5,)]),
        ("transpose", [(2, 3)]),
        ("prod_others", [(4,)]),
        ("prod_others_1", [(4,), (4,)]),
    ],
    ids=str,
)
def test_products_and_scans(name, shapes, t):
    check(name, (t,) * len(shapes), [draw(t, s) for s in shapes])


def test_products_of_fixed_point_arrays():
    t = fixed(40)
    check("dot", (t, t), [draw(t, (3,)), draw(t, (3,))], step=1e-3, tolerance=1e-6)
    check("matvec", (t, t), [draw(t, (2, 3)), draw(t, (3,))], step=1e-3, tolerance=1e-6)
    assert adjoint_type(FIXED) == F64


@pytest.mark.parametrize("t", [F64, C128], ids=str)
def test_gather_and_scatter_with_repeated_indices(t):
    idx = np.array([2, 0, 2, 2])
    check("gather", (t, I64), [draw(t, (4,)), idx])
    check("scatter", (t, I64, I64), [draw(t, (4,)), idx, 5])
    x, i = place(0, F64, 1), place(1, I64, 1)
    gain, none = gains("gather", (x, i), place(2, F64, 1))
    assert none is None
    got = evaluate(gain, {0: np.zeros(4), 1: idx, 2: np.array([1.0, 10.0, 100.0, 1000.0])})
    assert got.tolist() == [10.0, 0.0, 1101.0, 0.0]


def test_shapes():
    check("sum_like", (F64, F64), [draw(F64, (3, 4)), draw(F64, (4,))])
    check("spread_like", (F64, F64), [draw(F64, (4,)), draw(F64, (3, 4))])


def test_the_product_with_zeros():
    (gain,) = gains("prod", (place(0, F64, 1),), place(1, F64))
    assert evaluate(gain, {0: np.array([2.0, 0.0, 5.0]), 1: 1.0}).tolist() == [0.0, 10.0, 0.0]
    assert evaluate(gain, {0: np.array([0.0, 0.0, 5.0]), 1: 1.0}).tolist() == [0.0, 0.0, 0.0]


def test_the_product_is_differentiated_three_times():
    args = tuple(place(k, F64, 1) for k in range(3))
    with pytest.raises(DefinitionError, match="three times"):
        gains("prod_others_2", args, place(3, F64, 1))


def test_ties_go_to_the_first():
    (gain,) = gains("amax", (place(0, F64, 1),), place(1, F64))
    assert evaluate(gain, {0: np.array([1.0, 3.0, 3.0]), 1: 2.0}).tolist() == [0.0, 2.0, 0.0]


def test_the_modulus_at_zero_has_no_nan():
    z, g = place(0, C128), place(1, F64)
    (gain,) = gains("abs", (z,), g)
    assert evaluate(gain, {0: 0j, 1: 1.0}) == 0
    got = evaluate(gain, {0: 2 - 2.3j, 1: 1.0})
    assert got == pytest.approx(0.6561787149 - 0.7546055222j, rel=1e-9)


def test_the_published_gradient_of_a_real_part():
    # L = Re exp(z) at 2 - 2.3i: dL/dRe + i dL/dIm
    z = place(0, C128)
    (to_w,) = gains("real", (apply("exp", z),), Const(1.0, F64))
    (gain,) = gains("exp", (z,), to_w)
    got = evaluate(gain, {0: 2 - 2.3j})
    assert got == pytest.approx(-4.923150899 + 5.510057646j, rel=1e-9)


def test_integers_carry_nothing_and_steps_are_flat():
    assert gains("*", (place(0, I64), place(1, I64)), place(2, I64)) == (None, None)
    for name in ("sign", "floor"):
        assert gains(name, (place(0, F64),), place(1, F64)) == (None,)
    assert gains("//", (place(0, F64), place(1, F64)), place(2, F64)) == (None, None)
    assert gains("<", (place(0, F64), place(1, F64)), place(2, F64)) == (None, None)


def test_all_functions_of_real_numbers_have_a_derivative_or_are_known_to_be_flat():
    for name, row in FUNCTIONS.items():
        if row.partials or row.vjp or row.steps or name in LOG_PARTIALS:
            continue
        try:
            result = row.rule([Arg(F64, 0)] * row.arity, None).result
        except TypeFault:
            continue  # takes no floats
        assert adjoint_type(elem_of(result)) is None, name


def test_a_function_without_derivative_says_so():
    row = FunctionRow("opaque", ("x",), elementwise("f64"), "x", code={"f64": Code("{0}", "{0}")})
    FUNCTIONS["opaque"] = row
    try:
        with pytest.raises(DefinitionError, match="has no derivative"):
            gains("opaque", (place(0, F64),), place(1, F64))
    finally:
        del FUNCTIONS["opaque"]
