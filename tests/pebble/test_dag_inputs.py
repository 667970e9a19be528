"""Graphs from circuits, from programs and from traced Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pebble.graphs import adder

import rvm
from rvm.faults import InputError, UsageError
from rvm.pebble.bridge.circuits import emit_circuit
from rvm.pebble.bridge.functions import dag_of
from rvm.pebble.graphs.bench import load_bench, parse_bench, parse_circuit
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.plan import plan_dag
from rvm.pebble.graphs.trace import Value, apply, trace

DATA = Path(__file__).parents[2] / "examples" / "data"


def by_name(dag: Dag) -> dict[str, set[str]]:
    """The predecessors of each node, in names."""
    return {dag.name(v): {dag.name(u) for u in preds} for v, preds in enumerate(dag.preds)}


# ---------------------------------------------------------------- circuits


def test_c17() -> None:
    dag = load_bench(DATA / "c17.bench")
    assert by_name(dag) == {
        "10": set(),
        "11": set(),
        "16": {"11"},
        "19": {"11"},
        "22": {"10", "16"},
        "23": {"16", "19"},
    }
    assert [dag.name(v) for v in dag.outputs] == ["22", "23"]
    # Bennett: 10 moves with 6 pebbles; with 5, the cone of 22 is cleaned before 19 is made.
    assert plan_dag(dag, pebbles=6).cost.moves == 10
    assert plan_dag(dag, max_moves=10).cost.peak == 5


def test_the_adder() -> None:
    dag = load_bench(DATA / "adder8.bench")
    assert (len(dag), len(dag.outputs), dag.depth()) == (40, 9, 17)
    assert by_name(dag) == by_name(parse_bench(adder(8)))


def test_look_up_tables_and_constants() -> None:
    """As ABC writes them: the first input is the lowest bit of a table's index."""
    circuit = parse_circuit(
        "INPUT(a)\nINPUT(b)\nOUTPUT(y)\none   = vdd\nn1 = LUT 0x8 ( a, b )\n"
        "y = lut 0x2d (a, n1, one)\n"
    )
    assert by_name(circuit.dag) == {"one": set(), "n1": set(), "y": {"n1", "one"}}
    made = emit_circuit(plan_dag(circuit.dag, pebbles=3), circuit)
    for a in (False, True):
        for b in (False, True):
            index = a + 2 * (a and b) + 4
            assert made.circuit(a=a, b=b, y=False).y == bool(0x2D >> index & 1)


def test_small_letters_comments_and_any_order() -> None:
    dag = parse_bench(
        "output(y) # the result\ny = not( n1 )\nn1=nand(a,b,a)\ninput(a)\nINPUT( b )\n"
    )
    assert by_name(dag) == {"n1": set(), "y": {"n1"}}


@pytest.mark.parametrize(
    ("text", "line", "column", "told"),
    [
        ("INPUT(a)\nOUTPUT(y)\ny = NAND(a, z)", 3, 13, "`z` is not defined"),
        ("INPUT(a)\nOUTPUT(z)\ny = NOT(a)", 2, 8, "`z` is not defined"),
        ("INPUT(a)\nINPUT(a)", 2, 7, "an input twice"),
        ("INPUT(a)\na = NOT(a)", 2, 1, "defined in line 1 already"),
        ("INPUT(a)\ny = NOT(a)\n y = BUF(a)", 3, 2, "defined in line 2 already"),
        ("y = NOT(a)\nINPUT(y)", 2, 7, "a gate in line 1"),
        ("INPUT(a)\ny = MAYBE(a)", 2, 5, "no gate `MAYBE`"),
        ("INPUT(a)\ny = NOT(a, a)", 2, 5, "one input, not 2"),
        ("INPUT(a)\ny = AND(a)", 2, 5, "two inputs or more"),
        ("INPUT(a)\ny = AND(a,)", 2, 1, "not the name of a signal"),
        ("INPUT(a)\nq = DFF(a)", 2, 5, "flip-flop"),
        ("INPUT(a)\ny = LUT 0x5 (a)", 2, 9, "more than the 2 values for 1 input"),
        ("INPUT(a)\ny = LUT 5 (a)", 2, 1, "not a line of a circuit"),
        ("INPUT(a)\ny = vcc", 2, 1, "not a line of a circuit"),
        ("INPUT(a)\nwire y", 2, 1, "not a line of a circuit"),
        ("INPUT(a)\nOUTPUT(y)\ny = AND(a, w)\nw = NOT(y)", 3, 1, "computed from itself"),
        ("INPUT(a)\nOUTPUT(a)", 2, 1, "no gate as an output"),
    ],
)
def test_errors_name_their_line(text: str, line: int, column: int, told: str) -> None:
    with pytest.raises(InputError, match=told) as error:
        parse_bench(text, "c.bench")
    where = error.value.where
    assert (error.value.code, where.source, where.line) == ("P009", "c.bench", line)
    assert where.column == column and where.text == text.splitlines()[line - 1]


# ---------------------------------------------------------------- functions


def test_a_function_that_cleans_up() -> None:
    program = rvm.assemble("""
func f(x: i64, y: i64, z: i64)
    alloc a: i64
    alloc b: i64 = 7
    add a, x * x
    xor b, 3 * (a + x)      ; two updates, one value
    add b, x
    add y, a * b
    sub b, x
    xor b, 3 * (a + x)
    sub a, x * x
    inc a                   ; another value in the same place
    add z, a
    dec a
    free b = 7
    free a
""")
    dag = dag_of(program)
    assert by_name(dag) == {
        "a.0": set(),
        "b.1": {"a.0"},
        "a.2": set(),
        "y.3": {"a.0", "b.1"},
        "z.4": {"a.2"},
    }
    assert [dag.name(v) for v in dag.outputs] == ["y.3", "z.4"]


def test_a_value_that_is_computed_again_is_one_node() -> None:
    program = rvm.assemble("""
func f(x: f64[n], y: f64[n], z: f64[n])
    alloc a: f64[n]
    add a, x * x
    add y, a
    sub a, x * x
    free a
    alloc c: f64[n]
    add c, x * x
    add z, c
    sub c, x * x
    free c
""")
    dag = dag_of(program, "f")
    assert dag.preds == ((), (0,), (0,)) and dag.outputs == (1, 2)


@pytest.mark.parametrize(
    ("body", "line", "told"),
    [
        ("    swap x, y", 2, "is `swap`, which is not an update"),
        ("    if x > 0\n        inc y\n    end", 2, "is `br`"),
        ("    alloc a: i64\n    add a, x\n    add y, a\n    free a", 5, "not all taken back"),
        (
            "    alloc a: i64\n    add a, x\n    add y, a\n    add a, 1\n    sub a, 1\n"
            "    sub a, x\n    free a",
            5,
            "changes `a`, which was read",
        ),
        ("    add y, x\n    add x, 1", 2, "reads `x` as it was passed, and another changes it"),
        ("    alloc a: i64\n    add y, a\n    free a", 3, "reads `a`, a fresh register"),
        ("    alloc a: i64 = 1\n    inc a\n    free a = 2", 4, "not all taken back"),
        ("    alloc a: i64 = 1\n    add y, x\n    free a = 2", 4, "another value"),
        ("    alloc a: i64 = x\n    add y, 1\n    free a = x", 2, "not a constant"),
    ],
)
def test_functions_that_are_not_straight_lines(body: str, line: int, told: str) -> None:
    program = rvm.assemble(f"func f(x: i64, y: i64)\n{body}\n")
    with pytest.raises(InputError, match=told) as error:
        dag_of(program)
    assert error.value.code == "P010" and error.value.where.line == line


def test_a_function_without_an_output() -> None:
    with pytest.raises(InputError, match="no output"):
        dag_of(rvm.assemble("func f(x: i64)\n    alloc a: i64\n    free a\n"))


# ---------------------------------------------------------------- traced Python


def test_operators_are_nodes() -> None:
    def norm(a: Any, b: Any) -> Any:
        s = a * a + 2 * b
        return apply("sqrt", s), -s

    dag = trace(norm, 2)
    assert by_name(dag) == {
        "mul.0": set(),
        "mul.1": set(),
        "add.2": {"mul.0", "mul.1"},
        "sqrt.3": {"add.2"},
        "neg.4": {"add.2"},
    }
    assert dag.outputs == (3, 4)


def test_a_recurrence_is_a_chain() -> None:
    def steps(x: Any) -> Any:
        for k in range(16):
            x = k ^ x
        return x

    dag = trace(steps, 1)
    assert dag.is_chain() and plan_dag(dag, pebbles=5).cost.moves == 71


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda a: a + 1 if a > 0 else a, "does not depend on values"),
        (lambda a: a, "returns an input"),
        (lambda a: (a + 1, 3), "not a traced value"),
        (lambda a: [*a], "has no parts"),
        (lambda a: apply("sin", 1.0), "constants only"),
    ],
)
def test_programs_that_cannot_be_traced(function: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told) as error:
        trace(function, 1)
    assert error.value.code == "P008"


def test_values_of_two_programs_do_not_mix() -> None:
    kept: list[Value] = []
    trace(lambda a: kept.append(a + 1) or kept[0], 1)  # type: ignore[func-returns-value]
    with pytest.raises(UsageError, match="another traced program"):
        trace(lambda a: a + kept[0], 1)


def test_a_circuit_that_is_not_a_text(tmp_path: Path) -> None:
    path = tmp_path / "c.bench"
    path.write_bytes(b"INPUT(\xff)\n")
    with pytest.raises(InputError, match="not UTF-8 text"):
        load_bench(path)
