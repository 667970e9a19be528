"""A user's own opcodes and functions, and what the table refuses."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest

import rvm
from rvm.engines import executing
from rvm.isa import FUNCTIONS, OPCODES
from rvm.isa.user import apply

ENGINES = executing()
each_engine = pytest.mark.parametrize("engine", ENGINES)


pytestmark = pytest.mark.usefixtures("clean_tables")


@each_engine
def test_a_user_defined_opcode(engine: str) -> None:
    @rvm.opcode(inverse="unlift")
    def lift(even: rvm.Mut, odd: rvm.Mut) -> None:
        """A step of the lifting scheme with two half steps."""
        odd -= even
        even += odd * 0.5

    @rvm.opcode(inverse="lift")
    def unlift(even: rvm.Mut, odd: rvm.Mut) -> None:
        """Undo `lift`."""
        even -= odd * 0.5
        odd += even

    program = rvm.assemble("func f(a: f64, b: f64[n])\n    lift a, b[1]\n")
    b = np.array([0.0, 3.0])
    out = program.f(a=1.0, b=b, engine=engine)
    assert (out.a, b.tolist()) == (2.0, [0.0, 2.0])
    back = (~program.f)(**out, engine=engine)
    assert (back.a, b.tolist()) == (1.0, [0.0, 3.0])


@each_engine
def test_a_map_proved_to_undo_itself(engine: str) -> None:
    @rvm.opcode(types="number")
    def mirror(a: rvm.Mut, b: rvm.Mut) -> Any:
        """Exchange and negate both."""
        return -b, -a

    program = rvm.assemble("func f(a: i64, b: i64)\n    mirror a, b\n")
    out = program.f(a=1, b=5, engine=engine)
    assert (out.a, out.b) == (-5, -1)
    assert (~program.f)(**out, engine=engine) == {"a": 1, "b": 5}


@each_engine
def test_a_formula_works_on_every_type(engine: str) -> None:
    @rvm.function()
    def softsign(x: Any) -> Any:
        """x / (1 + |x|)"""
        return x / (1 + apply("abs", x))

    text = "func f(y: {t}, x: {t})\n    add y, softsign(x)\n"
    assert rvm.assemble(text.format(t="f64")).f(y=0.0, x=3.0, engine=engine).y == 0.75
    y = rvm.assemble(text.format(t="fixed")).f(y=0, x=3, engine=engine).y
    assert float(y) == 0.75
    arrays = rvm.assemble("func f(y: f64[n], x: f64[n])\n    add y, softsign(x)\n")
    x = np.array([1.0, -3.0])
    assert arrays.f(y=np.zeros(2), x=x, engine=engine).y.tolist() == [0.5, -0.75]


@each_engine
def test_a_python_callable_as_a_function(engine: str) -> None:
    @rvm.function(partials=lambda x: (apply("*", 2, x),))
    def gamma(x: float) -> float:
        """The gamma function, by the C library."""
        return math.gamma(x)

    program = rvm.assemble("func f(y: f64, x: f64)\n    add y, gamma(x) + 1.0\n")
    out = program.f(y=0.0, x=5.0, engine=engine)
    assert out.y == 25.0
    assert (~program.f)(**out, engine=engine).y == 0.0
    with pytest.raises(rvm.MachineError) as caught:
        program.f(y=0.0, x=0.0, engine=engine)
    assert caught.value.code == "R014"
    assert caught.value.where.line == 2


@pytest.mark.parametrize("kind", ["function", "opcode"])
def test_of_definitions_of_one_name_in_several_threads_one_is_made(kind: str) -> None:
    """And the others are refused, whose code must not replace that of the first."""
    table = FUNCTIONS if kind == "function" else OPCODES
    for attempt in range(30):
        name, made, codes = f"shared{attempt}", [], []
        barrier = threading.Barrier(3)

        def define(k: int) -> None:
            barrier.wait()  # noqa: B023
            try:
                if kind == "function":
                    rvm.function(name=name)(lambda x: math.fsum([x, k]))  # noqa: B023
                else:
                    rvm.opcode(name=name, types="float")(lifted(k))  # noqa: B023
            except rvm.DefinitionError as error:
                codes.append(error.code)  # noqa: B023
            else:
                made.append(k)  # noqa: B023

        def lifted(k: int) -> Any:
            def body(a: rvm.Mut) -> Any:
                return k - a

            return body

        threads = [threading.Thread(target=define, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1 and name in table
        assert codes == 2 * ["D007" if kind == "function" else "D008"]
        if attempt % 10 == 0:
            line = f"add y, {name}(x)" if kind == "function" else f"{name} y"
            f = rvm.assemble(f"func f(y: f64, x: f64)\n    {line}\n").f
            assert f(y=0.0, x=0.0).y == made[0]


def test_conditions_are_on_scalars() -> None:
    """One that arrays decide would have to be made for each element."""

    @rvm.opcode(inverse="fall")
    def rise(a: rvm.Mut, b: rvm.Mut, u: rvm.Use) -> None:
        with rvm.when(u > 0):
            a += b
            with rvm.when(b == u):
                a += u

    @rvm.opcode(inverse="rise")
    def fall(a: rvm.Mut, b: rvm.Mut, u: rvm.Use) -> None:
        with rvm.when(u > 0):
            with rvm.when(b == u):
                a -= u
            a -= b

    for given, line in (
        ("a: f64[n], b: f64[n], u: f64[n]", "rise a, b, u"),
        ("a: f64[n], b: f64[n], u: f64", "rise a, b, u"),
        ("a: f64[n], b: f64[n], u: f64", "fall a, b, u"),
    ):
        with pytest.raises(rvm.AssemblyError, match="decides whether something is done") as caught:
            rvm.assemble(f"func f({given})\n    {line}\n")
        assert "A042" in str(caught.value)
    f = rvm.assemble("func f(a: f64[n], b: f64[n], u: f64)\n    rise a[0], b[1], u\n").f
    for engine in ENGINES:
        a = np.zeros(2)
        out = f(a=a, b=np.array([1.0, 2.0]), u=2.0, engine=engine)
        assert a.tolist() == [4.0, 0.0]
        (~f)(out, engine=engine)
        assert a.tolist() == [0.0, 0.0]


def refused(body: Callable[..., Any], **options: Any) -> str:
    with pytest.raises(rvm.DefinitionError) as caught:
        rvm.opcode(**options)(body)
    assert body.__name__ not in OPCODES
    return caught.value.code


def test_what_an_opcode_may_not_be() -> None:
    def reads_itself(d: rvm.Mut, a: rvm.Use) -> None:
        d += d * a

    def never_absorbed(d: rvm.Mut, a: rvm.Use) -> None:
        d = d + a  # type: ignore[assignment]

    def writes_use(d: rvm.Mut, a: rvm.Use) -> None:
        a += d  # type: ignore[assignment]

    def no_mode(d: float) -> None:
        d += 1

    def too_few(a: rvm.Mut, b: rvm.Mut) -> Any:
        return a + b

    def not_itself(a: rvm.Mut) -> Any:
        return a * 2

    def branches(d: rvm.Mut, a: rvm.Use) -> None:
        if a > 0:
            d += a

    def moves_its_condition(c: Annotated[rvm.Mut, "bool"], a: rvm.Mut, b: rvm.Mut) -> None:
        with rvm.when(c):
            rvm.exchange(a, b)
            c ^= True

    assert refused(reads_itself) == "D005"
    assert refused(never_absorbed) == "D002"
    assert refused(writes_use) == "D004"
    assert refused(no_mode) == "D003"
    assert refused(too_few) == "D001"
    assert refused(not_itself) == "D006"
    assert refused(moves_its_condition) == "D005"
    with pytest.raises(TypeError, match="truth value"):
        rvm.opcode()(branches)


def test_a_false_inverse_is_refused() -> None:
    @rvm.opcode(inverse="undouble")
    def double(a: rvm.Mut) -> Any:
        return a * 2

    def undouble(a: rvm.Mut) -> Any:
        return a / 3

    assert refused(undouble, inverse="double") == "D006"


def test_names_that_a_function_cannot_have() -> None:
    for name in ("sin", "no name"):
        with pytest.raises(rvm.DefinitionError) as caught:
            rvm.function(name=name)(lambda x: x + 1)
        assert caught.value.code == "D007"
