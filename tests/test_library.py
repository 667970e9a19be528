"""What loading gives: a library stands for its program, which is data."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from rvm_asm import assemble, disassemble
from rvm_asm.expand import expand
from rvm_tools.debug import Session

import rvm
from rvm.codec import decode, encode
from rvm.engines.vector.explain import explain
from rvm.image import image_of
from rvm.pebble import dag_of, emit, emit_dag, plan, plan_dag
from rvm.verify import findings, verify

TEXT = """
func step(y: f64, x: f64)
    add y, 2 * x + 1

func program(x: i64)
    add x, 1

func f(y: f64, x: f64)
    add y, x * x
"""
LIBRARY = rvm.assemble(TEXT, "text.rasm")
PROGRAM = assemble(TEXT, "text.rasm")

TAKES: dict[str, Callable[[Any], Any]] = {
    "Library": rvm.Library,
    "FunctionHandle": lambda p: rvm.FunctionHandle(p, "f")(y=0.0, x=3.0),
    "Machine": lambda p: rvm.Machine(p, "f", y=0.0, x=3.0).run().result,
    "Machine.start": lambda p: rvm.Machine.start(p, "f", {"y": 0.0, "x": 3.0}).run().result,
    "Session": lambda p: Session(p, "f", {"y": 0.0, "x": 3.0}).program,
    "invert": rvm.invert,
    "gradient": lambda p: rvm.gradient(p, "f", loss="y"),
    "tangent": lambda p: rvm.tangent(p, "f"),
    "encode": encode,
    "findings": findings,
    "verify": verify,
    "image_of": image_of,
    "explain": explain,
    "disassemble": disassemble,
    "expand": expand,
    "dag_of": lambda p: dag_of(p, "f"),
    "emit": lambda p: emit(plan(9, pebbles=5), p, "step"),
    "emit_dag": lambda p: emit_dag(plan_dag(dag_of(p, "f"), pebbles=2), p, "f"),
}


@pytest.mark.parametrize("what", TAKES)
def test_a_library_is_taken_where_a_program_is(what: str) -> None:
    assert TAKES[what](rvm.Library(PROGRAM)) == TAKES[what](PROGRAM)


def test_nothing_else_is_taken() -> None:
    for other, told in ((LIBRARY.f, "a FunctionHandle"), (TEXT, "a str"), (None, "None")):
        with pytest.raises(TypeError, match=f"not {told}$"):
            rvm.Machine(other, "f", y=0.0, x=1.0)  # type: ignore[arg-type]


def test_functions_are_found_by_name() -> None:
    assert LIBRARY.f(y=0.0, x=3.0).y == LIBRARY["f"](y=0.0, x=3.0).y == 9.0
    assert (~LIBRARY.f)(y=9.0, x=3.0).y == 0.0
    assert LIBRARY["program"](x=1).x == 2 and LIBRARY.program == PROGRAM
    assert list(LIBRARY) == ["step", "program", "f"] and len(LIBRARY) == 3
    assert "f" in LIBRARY and "g" not in LIBRARY and {"f", "step", "program"} <= set(dir(LIBRARY))
    with pytest.raises(AttributeError, match="no function `g`"):
        LIBRARY.g  # noqa: B018
    with pytest.raises(rvm.UsageError, match="no function `g`"):
        LIBRARY["g"]
    assert repr(LIBRARY) == "<library of step, program, f; entry step>"


def test_what_programs_are_made_to_are_libraries() -> None:
    made = (
        LIBRARY.f.gradient_program,
        rvm.invert(LIBRARY),
        rvm.gradient(PROGRAM, "f"),
        rvm.tangent(PROGRAM, "f"),
        emit(plan(9, pebbles=5), LIBRARY, "step"),
    )
    assert {type(library) for library in made} == {rvm.Library}
    assert LIBRARY.f.gradient_program == rvm.gradient(LIBRARY, "f")
    assert rvm.invert(LIBRARY).f(y=9.0, x=3.0).y == 0.0


def test_equal_programs_are_equal_libraries() -> None:
    assert rvm.Library(PROGRAM) == rvm.Library(LIBRARY) == LIBRARY == PROGRAM
    assert hash(LIBRARY) == hash(PROGRAM)
    assert decode(encode(LIBRARY)) == LIBRARY
    assert rvm.invert(LIBRARY) != LIBRARY and LIBRARY != "f"
    for again in (pickle.loads(pickle.dumps(LIBRARY)), copy.copy(LIBRARY), copy.deepcopy(LIBRARY)):
        assert type(again) is rvm.Library and again == LIBRARY and again.f(y=0.0, x=3.0).y == 9.0
