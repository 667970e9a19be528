"""How expressions get their types, and how rows are found."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import partial

import pytest
from isa.evaluating import evaluate, place

from rvm.expr import Apply, Const, Formal, Place, lift
from rvm.isa.implementation import implementation, register_callable, value
from rvm.isa.rows import FUNCTIONS, FunctionRow
from rvm.isa.rules import TypeFault, elementwise
from rvm.isa.typing import typed
from rvm.leaf.ops import Op, add
from rvm.leaf.trace import apply as operation
from rvm.types import BOOL, C128, F32, F64, FIXED, I64, LOG64, U8, U64, Array, fixed

X, K, C, Z, FX = (place(n, t) for n, t in enumerate((F64, U8, BOOL, C128, FIXED)))
V, M, I = place(5, F64, 1), place(6, F64, 2), place(7, I64, 1)  # noqa: E741


def f(name, *args):
    return Apply(name, tuple(map(lift, args)))


@pytest.mark.parametrize(
    ("expr", "want", "expected"),
    [
        (X + 1, None, F64),
        (f("select", C, 1, 0) * X, None, F64),
        (f("select", C, f("+", 1, 1), X), None, F64),
        (f("+", 1, 2) * X, None, F64),
        (f("+", 1, 2), None, I64),
        (f("+", 1, 2), U8, U8),
        (f("<", f("+", 1, 2), 3), BOOL, BOOL),
        (f("and", f("<", 1, 2), C), None, BOOL),
        (f("sqrt", 2), None, F64),
        (f("sqrt", f("+", 1, 1)), None, F64),
        (f("/", 1, 3), None, F64),
        (f("exp", 1j), None, C128),
        (f("f32", f("/", 1, 3)), None, F32),
        (f("i64", 2.5), None, I64),
        (f("u64", 2**64 - 1), None, U64),
        (f("fixed(30)", X), None, fixed(30)),
        (f("log64", 7), None, LOG64),
        (f("log", place(9, LOG64)), None, F64),
        (place(9, LOG64) ** 2, None, LOG64),
        (FX**2, None, FIXED),
        (Z * X + 1, None, C128),
        (X / Z, None, C128),
        (f("abs", Z) + X, None, F64),
        (K + f("+", 1, 2), None, U8),
        (f("<<", K, 3), None, U8),
        (V + X, None, Array(F64, 1)),
        (f("@", M, V), None, Array(F64, 1)),
        (f("@", V, V), None, F64),
        (f("@", M, M), None, Array(F64, 2)),
        (f("outer", V, V), None, Array(F64, 2)),
        (f("gather", V, I), None, Array(F64, 1)),
        (f("scatter", V, I, 3), None, Array(F64, 1)),
        (f("sum", V > 0), None, None),
        (f("dim", M, 1), None, I64),
        (f("sum_like", M, V), None, Array(F64, 1)),
    ],
    ids=str,
)
def test_types(expr, want, expected):
    if expected is None:
        with pytest.raises(TypeFault):
            typed(expr, want)
    else:
        assert typed(expr, want).type == expected


@pytest.mark.parametrize(
    ("expr", "code", "text"),
    [
        (K + X, "A040", "u8 and f64"),
        (f("f64", 2) * place(9, F32), "A040", "f64 and f32"),
        (f("u8", 300), "A041", "does not fit u8"),
        (K + 256, "A041", "does not fit u8"),
        (f("/", K, K), "A040", "`/` does not take"),
        (f("sin", K), "A040", "`sin` does not take"),
        (f("%", Z, Z), "A040", "`%` does not take"),
        (f("f64", Z), "A040", "complex"),
        (f("nosuch", X), "A004", "no function"),
        (f("sin", X, X), "A044", "takes 1 argument"),
        (f("dim", V, 1), "A042", "axis from 0 to 0"),
        (f("sum", X), "A042", "takes an array"),
        (f("dot", M, V), "A042", "does not multiply"),
        (f("gather", V, V), "A040", "indices"),
        (f("select", X, X, X), "A040", "the condition has the type f64"),
        (X ** place(9, LOG64), "A040", "types"),
    ],
    ids=str,
)
def test_faults(expr, code, text):
    with pytest.raises(TypeFault) as info:
        typed(expr)
    assert info.value.code == code
    assert text in info.value.message
    assert info.value.node is not None


def test_literals_keep_their_digits():
    node = typed(f("fixed", Decimal("0.1")))
    assert node.args[0] == Const(round(2**43 / 10), FIXED)
    assert typed(FX + Decimal("0.5")).args[1] == Const(2**42, FIXED)
    assert typed(X**2).args[1] == Const(2, I64), "a whole exponent carries no derivative"


def test_rotation_mixes_a_complex_number_and_a_real_angle():
    node = typed(Z * f("cos", X))
    assert evaluate(node, {0: 0.0, 3: 1 + 2j}) == 1 + 2j


def test_conversions_to_any_fraction_are_found():
    assert FUNCTIONS["fixed(30)"] is FUNCTIONS.get("fixed(30)")
    assert "fixed(62)" in FUNCTIONS and "fixed(63)" not in FUNCTIONS
    assert "fixed(07)" not in FUNCTIONS and FUNCTIONS.get("fixed(-1)") is None
    assert "fixed(30)" not in list(FUNCTIONS)
    with pytest.raises(KeyError):
        FUNCTIONS["fixed()"]
    assert value("fixed(30)", (F64,))(1.5) == 3 << 29


def test_a_users_function():
    called = []

    def gamma(x):
        called.append(x)
        return math.gamma(x)

    name = register_callable("gamma", gamma)
    assert name.isidentifier() and register_callable("gamma", gamma) == name
    assert register_callable("gamma", math.gamma) != name
    FUNCTIONS["own_gamma"] = FunctionRow(
        "own_gamma", ("x",), elementwise("real"), "x!", body=partial(operation, "own_gamma")
    )
    add(Op("own_gamma", ("f64",), "f64", f"{name}({{0}})", "", ""))
    try:
        assert value("own_gamma", (F64,))(5.0) == 24.0
        assert value("own_gamma", (F32,))(5.0) == 24.0
        assert value("own_gamma", (FIXED,))(5 << 43) == 24 << 43
        assert implementation("own_gamma", (F64,)).python == f"{name}({{0}})"
    finally:
        del FUNCTIONS["own_gamma"]
    assert called == [5.0, 5.0, 5.0]


def test_a_formula_stands_for_the_function():
    FUNCTIONS["twice"] = FunctionRow(
        "twice", ("x",), elementwise("number"), "2 x", formula=Formal(0) + Formal(0)
    )
    try:
        assert typed(f("twice", X)) == typed(X + X)
        assert typed(f("twice", K)) == typed(K + K)
    finally:
        del FUNCTIONS["twice"]


def test_rows_say_what_they_are():
    for name, row in FUNCTIONS.items():
        assert row.name == name and row.doc and row.arity >= 1
        assert row.cost in ("MOVES", "ADDS", "MULTS", "NLOPS")


def test_an_axis_that_is_typed_already_is_checked_too() -> None:
    with pytest.raises(TypeFault) as fault:
        typed(Apply("dim", (Place(0, (), Array(I64, 1)), Const(1, I64))))
    assert fault.value.code == "A042"
