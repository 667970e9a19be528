"""Definitions from Python: what it would decide for all numbers at once is a formula, or refused.

What is refused leaves the tables as they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest

import rvm
from rvm.isa import FUNCTIONS, OPCODES
from rvm.isa.user import apply

Body = Callable[..., Any]


def mut(body: Body) -> Body:
    """A body of one operand, which it changes."""
    body.__annotations__ = {"a": rvm.Mut}
    return body


def named(name: str) -> Body:
    def body(a: rvm.Mut) -> Any:
        return -a

    body.__name__ = name
    return body


def bare(a, b):  # type: ignore[no-untyped-def]
    return b, a


def unknown(a: Nowhere) -> Any:  # type: ignore[name-defined] # noqa: F821
    return -a


def of_class(a: Annotated[rvm.Mut, "f23"]) -> Any:
    return -a


def some(*a: rvm.Mut) -> Any:
    return a


def preset(a: rvm.Mut = 0) -> Any:  # type: ignore[assignment]
    return -a


def exchanged(a: rvm.Mut) -> None:
    rvm.exchange(a, 3)  # type: ignore[arg-type]


def always(a: rvm.Mut) -> None:
    with rvm.when(True):  # type: ignore[arg-type]
        a += 1


GOOD: Body = named("good")
WRONG: dict[str, tuple[str, Body, dict[str, Any]]] = {
    "a type for a class": ("D008", GOOD, {"types": "f32"}),
    "a list of classes": ("D008", GOOD, {"types": ["f64"]}),
    "no class of exact types": ("D008", GOOD, {"exact_types": "floats"}),
    "a cost class in small letters": ("D008", GOOD, {"cost": "adds"}),
    "a number as cost": ("D008", GOOD, {"cost": 3}),
    "no cost": ("D008", GOOD, {"cost": None}),
    "a name with a blank": ("D008", GOOD, {"name": "a b"}),
    "an inverse that is no name": ("D008", GOOD, {"inverse": "a b"}),
    "an inverse that is a function": ("D008", GOOD, {"inverse": GOOD}),
    "a lambda": ("D008", lambda a: -a, {}),
    "a taken name": ("D008", named("add"), {}),
    "a taken name, given": ("D008", GOOD, {"name": "swap"}),
    "no annotations": ("D003", bare, {}),
    "an annotation that does not exist": ("D003", unknown, {}),
    "an operand of no class": ("D003", of_class, {}),
    "any number of operands": ("D003", some, {}),
    "a default value": ("D003", preset, {}),
    "no operands": ("D003", lambda: None, {"name": "none"}),
    "a callable without a signature": ("D003", max, {}),
    "an exchange with a number": ("D003", exchanged, {}),
    "a condition of Python": ("D003", always, {}),
    "a text": ("D001", mut(lambda a: a + "1"), {"name": "texts"}),
    "no number": ("D001", mut(lambda a: a * None), {"name": "nones"}),
    "an array": ("D001", mut(lambda a: apply("+", a, [1.0])), {"name": "lists"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_definitions_of_opcodes(case: str) -> None:
    code, body, options = WRONG[case]
    before = dict(OPCODES)
    with pytest.raises(rvm.DefinitionError) as caught:
        rvm.opcode(**options)(body)
    assert caught.value.code == code
    assert before == OPCODES


def test_statements_outside_a_definition() -> None:
    kept: list[Any] = []

    def keeps(a: rvm.Mut) -> Any:
        kept.append(a)
        return -a

    rvm.opcode(types="inexact")(keeps)
    try:
        for change in (lambda a: rvm.exchange(a, a), lambda a: a.__iadd__(1)):
            with pytest.raises(rvm.DefinitionError, match="outside the definition"):
                change(kept[0])
        assert kept[0] == kept[0]
    finally:
        del OPCODES["keeps"]


PYTHON: dict[str, Body] = {
    "if ==": lambda a: 1.0 if a == 0 else 1 / a,
    "if !=": lambda a: 1 / a if a != 0 else 1.0,
    "if == of formulas": lambda a: 1.0 if a * a == a else 2 * a,
    "0 ==": lambda a: 1.0 if 0 == a else 1 / a,  # noqa: SIM300
    "if <": lambda a: a if a < 1 else 2 - a,
    "between": lambda a: a if 0 < a < 1 else 2 - a,
    "in": lambda a: 1.0 if a in (0, 1) else 1 / a,
    "or": lambda a: (a < 0) or (a > 1.0),
    "not": lambda a: 0.0 if not a > 0 else a,
    "if": lambda a: 1 / a if a else 1.0,
    "max": lambda a: max(a, 0.5),
    "a table": lambda a: {0.0: 5.0, 1.0: 7.0}.get(a, 2 * a),
    "a set": lambda a: 1.0 if a in {0.0} else 1 / a,
    "int": lambda a: int(a) + 0.5,
    "round": lambda a: round(a) + 0.5,
    "math": lambda a: math.hypot(a, 1.0),
    "numpy": lambda a: np.where(a > 0, a, 3.0),
    "choose": lambda a: np.sign(a) * 2 + 1,
    "a loop": lambda a: sum(1.0 for _ in range(int(a))) + a,
}


@pytest.mark.parametrize("case", PYTHON)
def test_what_python_decides_is_no_formula(case: str) -> None:
    """A function is called with numbers then, and is right for each; an opcode is refused."""
    body = PYTHON[case]
    before = dict(OPCODES)
    with pytest.raises((TypeError, AttributeError, rvm.DefinitionError)):
        rvm.opcode(name="decided", types="inexact")(mut(lambda a: body(a)))
    assert before == OPCODES
    own = f"decided_{[*PYTHON].index(case)}"
    rvm.function(name=own)(body)
    try:
        f = rvm.assemble(f"func f(y: f64, a: f64)\n    add y, {own}(a)\n").f
        for a in (0.0, 0.25, 1.0, 2.5):
            assert f(y=0.0, a=a, engine="python").y == float(body(a))
    finally:
        del FUNCTIONS[own]


def test_comparisons_are_formulas() -> None:
    @rvm.opcode(types="inexact")
    def turned(a: rvm.Mut) -> Any:
        return apply("select", a == 7, a, apply("select", a != -7, -a, a))

    @rvm.function()
    def apart(a: Any) -> Any:
        return apply("select", a == 3, 9.0, a * a)

    try:
        f = rvm.assemble("func f(y: f64, a: f64)\n    turned a\n    add y, apart(a)\n").f
        for a, held in ((7.0, 7.0), (-7.0, -7.0), (2.0, -2.0), (-3.0, 3.0)):
            assert f(y=0.0, a=a) == {"y": held * held, "a": held}
        g = rvm.assemble("func g(y: f64, a: f64)\n    add y, apart(a)\n").g
        assert [g.grad(loss="y", y=0.0, a=a).a for a in (2.0, 3.0)] == [4.0, 0.0]
    finally:
        del OPCODES["turned"], FUNCTIONS["apart"]


def test_partials() -> None:
    """Comparisons in them are formulas too; those of a formula would not be looked at."""

    @rvm.function(partials=lambda a: (apply("select", a == 3, 0.0, 1 / a),))
    def logged(a: Any) -> Any:
        return math.log(a)

    try:
        text = "func g(y: f64, a: f64)\n    add y, NAME(a)\n"
        g = rvm.assemble(text.replace("NAME", "logged")).g
        assert [g.grad(loss="y", y=0.0, a=a).a for a in (2.0, 3.0)] == [0.5, 0.0]
        with pytest.raises(rvm.DefinitionError, match="leave `partials` out"):
            rvm.function(name="squared", partials=lambda a: (2 * a,))(lambda a: a * a)
        assert "squared" not in FUNCTIONS
    finally:
        del FUNCTIONS["logged"]


WRONG_PARTIALS: dict[str, Any] = {
    "a tuple with a formula for each of the 2 arguments, not 1 of them": lambda a, b: (b,),
    "not 3 of them": lambda a, b: (b, a, a),
    "not `Place`": lambda a, b: b,
    "not what is not a number": lambda a, b: (b, "a"),
    "not a condition": lambda a, b: (b, a > 0),
    "not what cannot be computed": lambda a, b: (b, apply("+", a > 0, 1.0)),
    "too many positional arguments": lambda a: (a, a),
    "not a callable object": (1.0, 1.0),
}


@pytest.mark.parametrize("says", WRONG_PARTIALS)
def test_wrong_partials(says: str) -> None:
    with pytest.raises(rvm.DefinitionError) as caught:
        rvm.function(name="times", partials=WRONG_PARTIALS[says])(lambda a, b: math.fsum([a * b]))
    assert caught.value.code == "D007" and says in str(caught.value)
    assert "times" not in FUNCTIONS


def test_partials_that_decide_are_refused_by_python() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        rvm.function(name="decided", partials=lambda a: (0.0 if a == 3 else 1 / a,))(
            lambda a: math.log(a)
        )
    assert "decided" not in FUNCTIONS


def test_partials_may_use_functions_that_are_defined_later() -> None:
    try:
        rvm.function(name="sine", partials=lambda a: (apply("cosine", a),))(math.sin)
        rvm.function(name="cosine", partials=lambda a: (-apply("sine", a),))(math.cos)
        g = rvm.assemble("func g(y: f64, a: f64)\n    add y, sine(a)\n").g
        assert g.grad(loss="y", y=0.0, a=0.5).a == math.cos(0.5)
        assert g.hessian(loss="y", y=0.0, a=0.5).a.a == -math.sin(0.5)
    finally:
        FUNCTIONS.pop("sine", None), FUNCTIONS.pop("cosine", None)


def test_a_function_whose_arguments_are_not_known_is_refused() -> None:
    with pytest.raises(rvm.DefinitionError, match="the arguments of `logarithm` are not known"):
        rvm.function(name="logarithm")(math.log)


def test_a_body_that_asks_what_its_arguments_are_is_refused() -> None:
    def shifted(x: Any) -> Any:
        return x + 1 if isinstance(x, int | float) else x * 2

    with pytest.raises(rvm.DefinitionError, match="another function of numbers"):
        rvm.function()(shifted)
    assert "shifted" not in FUNCTIONS
