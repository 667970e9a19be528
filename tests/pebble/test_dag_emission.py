"""Functions made from plans of graphs compute what the originals do, in the planned memory."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pebble.graphs import adder
from rvm_asm import assemble, disassemble
from sizes import examples, wide

import rvm
from rvm.codec import decode, encode
from rvm.engines import ENGINES
from rvm.faults import BudgetError, InputError, UsageError
from rvm.pebble import (
    Circuit,
    DagPlan,
    check_dag,
    dag_of,
    emit_circuit,
    emit_dag,
    load_circuit,
    parse_circuit,
    plan_dag,
)
from rvm.types import U64

DATA = Path(__file__).parents[2] / "examples" / "data"
INTEGERS = ("{} + {}", "{} ^ {}", "{} * {}", "{} - {}", "({} & 1023) * 3 - {}")
REALS = ("{} + {}", "{} * {}", "sin({}) - {}", "{} - cos({})")


def straight(random: Random, nodes: int, kind: str) -> str:
    """A function of so many values in the schedule of Bennett: all made, then all taken back."""
    shapes = INTEGERS if kind == "i64" else REALS
    known = ["p", "q"]
    lines: list[str] = []
    values = []
    for k in range(nodes):
        value = random.choice(shapes).format(random.choice(known[-4:]), random.choice(known[-6:]))
        values.append((f"v{k}", value))
        lines += [f"alloc v{k}: {kind}", f"add v{k}, {value}"]
        known.append(f"v{k}")
    outputs = [f"add y, {known[-1]} + {random.choice(known[2:])}", f"sub z, {known[-1]} * 3"]
    for name, value in reversed(values):
        outputs += [f"sub {name}, {value}", f"free {name}"]
    body = "\n".join(f"    {line}" for line in [*lines, *outputs])
    return f"func f(p: {kind}, q: {kind}, y: {kind}, z: {kind})\n{body}\n"


def tightest(program: rvm.Library) -> DagPlan:
    """A plan with the fewest pebbles that are found quickly."""
    return plan_dag(dag_of(program), max_moves=10**6, rounds=2_000)


def peak(program: rvm.Library, values: Mapping[str, Any]) -> int:
    """The most bytes that live at a time, as the machine counts them."""
    machine = rvm.Machine(program, engine="reference", **values)
    machine.run()
    return machine.state.account.peak_bytes


@given(st.randoms(use_true_random=False), st.integers(2, 9), st.integers(-(2**40), 2**40))
@examples(25)
def test_whole_numbers_agree_on_all_engines(random: Any, nodes: int, p: int) -> None:
    program = rvm.assemble(straight(random, nodes, "i64"))
    plan = tightest(program)
    made = emit_dag(plan, program)
    given = {"p": p, "q": 12345, "y": 7, "z": -3}
    expected = program["f"](**given, engine="reference")
    for engine in ENGINES:
        found = made["f"](**given, engine=engine)
        assert found == expected
        assert (~made["f"])(**found, engine=engine) == given


@given(st.randoms(use_true_random=False), st.integers(2, 9))
@examples(15)
def test_reals_and_their_gradients_agree(random: Any, nodes: int) -> None:
    program = rvm.assemble(straight(random, nodes, "f64"))
    made = emit_dag(tightest(program), program)
    given = {"p": 0.3, "q": 0.7, "y": 0.0, "z": 0.0}
    expected = program["f"](**given)
    for engine in ENGINES:
        assert made["f"](**given, engine=engine) == expected
    one, other = (f["f"].grad(**given, loss="y") for f in (program, made))
    assert one == pytest.approx(dict(other), rel=1e-9)


@pytest.mark.parametrize("pebbles", [6, 8, 12, 17])
def test_registers_and_memory_are_those_of_the_plan(pebbles: int) -> None:
    steps = [(f"v{k}", f"{f'v{k - 1}' if k else 'x'} * 1.5") for k in range(16)]
    lines = [f"alloc {v}: f64[n]\n    add {v}, {value}" for v, value in steps]
    back = [f"sub {v}, {value}\n    free {v}" for v, value in reversed(steps)]
    body = "\n    ".join([*lines, "add y, v15", *back])
    program = rvm.assemble(f"func f(x: f64[n], y: f64[n])\n    {body}\n")
    plan = plan_dag(dag_of(program), pebbles=pebbles)
    made = emit_dag(plan, program)
    # The output is a pebble of the plan, and a parameter of the function.
    held, most = set(), 0
    for placed, node in plan.moves():
        held = held | {node} if placed else held - {node}
        most = max(most, len(held - set(plan.dag.outputs)))
    assert len(made.program.function("f").registers) - 2 == most <= pebbles
    values = [{"x": np.ones(1000), "y": np.zeros(1000)} for _ in range(2)]
    before, after = peak(program, values[0]), peak(made, values[1])
    assert before - after == 8000 * (16 - most)
    assert np.array_equal(values[0]["y"], values[1]["y"]) and values[0]["y"][0] == 1.5**16


def test_moves_are_instructions() -> None:
    program = rvm.assemble(straight(Random(3), 8, "i64"))
    plan = tightest(program)
    code = emit_dag(plan, program).program.function("f").code
    found = [instr.op for instr in code]
    outputs = set(plan.dag.outputs)
    inner = [m for m in plan.schedule if (m if m >= 0 else ~m) not in outputs]
    assert found.count("alloc") == sum(m >= 0 for m in inner) == found.count("free")
    assert len(found) == len(plan.schedule) + len(inner)


def test_several_updates_and_constants_make_a_node() -> None:
    program = rvm.assemble(
        "func f(x: i64, y: i64)\n    alloc a: i64 = 5\n    add a, x\n    xor a, x * 7\n"
        "    add y, a\n    xor a, x * 7\n    sub a, x\n    free a = 5\n"
    )
    made = emit_dag(tightest(program), program, name="g")
    assert list(made) == ["f", "g"] and made.program.entry == "g"
    assert made["g"](x=11, y=100).y == 100 + ((5 + 11) ^ 77) == program["f"](x=11, y=100).y


def test_arrays_of_two_lengths_are_two_nodes() -> None:
    program = rvm.assemble(
        "func f(x: i64[n], w: i64[m], y: i64[n], z: i64[m])\n"
        "    alloc a: i64[n]\n    alloc b: i64[m]\n    add a, 3\n    add b, 3\n"
        "    add y, a * x\n    add z, b * w\n    sub b, 3\n    sub a, 3\n    free b\n    free a\n"
    )
    made = emit_dag(tightest(program), program)
    given = {"x": np.arange(4), "w": np.arange(3), "y": np.zeros(4, int), "z": np.zeros(3, int)}
    found = made["f"](**given)
    assert found.y.tolist() == [0, 3, 6, 9] and found.z.tolist() == [0, 3, 6]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "alloc m: i64\nadd m, x\nalloc a: i64[m]\nadd a, 3\nadd y, a[0]\nsub a, 3\n"
            "free a\nsub m, x\nfree m",
            "makes an array of a length that `m` holds",
        ),
        (
            "alloc a: i64[x]\nadd a, 3\nadd y, a[0]\nsub a, 3\nfree a\nadd x, 1",
            "reads `x` as it was passed, and another changes it",
        ),
    ],
)
def test_lengths_that_depend_on_the_schedule_are_refused(body: str, told: str) -> None:
    program = rvm.assemble("func f(x: i64, y: i64)\n    " + body.replace("\n", "\n    ") + "\n")
    with pytest.raises(InputError, match=told) as error:
        dag_of(program)
    assert error.value.code == "P010"


def test_a_parameter_that_holds_two_values_in_turn() -> None:
    body = ["add x, 1", "add y, x", "sub x, 1", "add x, 2", "add z, x * x", "sub x, 2"]
    text = "func f(x: i64, y: i64, z: i64)\n" + "".join(f"    {line}\n" for line in body)
    program = rvm.assemble(text)
    with pytest.raises(UsageError, match="`x` of `f` holds one value after the other") as error:
        emit_dag(tightest(program), program)
    assert error.value.code == "P031"
    once = rvm.assemble(text.replace("    add x, 2\n", "").replace("    sub x, 2\n", ""))
    with pytest.raises(InputError, match="reads `x` as it was passed"):
        dag_of(once)
    one = rvm.assemble(text.replace("    add x, 2\n    add z, x * x\n    sub x, 2\n", ""))
    assert emit_dag(tightest(one), one)["f"](x=4, y=0, z=0) == {"x": 4, "y": 5, "z": 0}


def test_lengths_that_a_parameter_holds() -> None:
    program = rvm.assemble(
        "func f(x: i64, y: i64)\n    alloc a: i64[x]\n    add a, 3\n    add y, sum(a)\n"
        "    sub a, 3\n    free a\n"
    )
    assert emit_dag(tightest(program), program)["f"](x=7, y=0).y == 21


def test_callers_get_the_new_function() -> None:
    program = rvm.assemble(
        straight(Random(1), 5, "i64")
        + "\nfunc main(p: i64, q: i64, y: i64, z: i64)\n"
        + "    call f(p, q, y, z)\n" * 2
    )
    plan = plan_dag(dag_of(program, "f"), max_moves=10**6)
    made = rvm.Library(replace(emit_dag(plan, program, "f").program, entry="main"))
    given = {"p": 2, "q": 3, "y": 0, "z": 0}
    assert made["main"](**given) == program["main"](**given)
    assert decode(encode(made)) == made
    again = rvm.Library(assemble(disassemble(made)))
    assert again["main"](**given) == program["main"](**given)


def test_a_plan_of_another_graph_is_refused() -> None:
    one, other = (rvm.assemble(straight(Random(k), 4 + k, "i64")) for k in (1, 2))
    with pytest.raises(UsageError) as error:
        emit_dag(tightest(one), other)
    assert error.value.code == "P031"
    with pytest.raises(UsageError) as error:
        emit_circuit(tightest(one), load_circuit(DATA / "c17.bench"))
    assert error.value.code == "P031"


# ---------------------------------------------------------------- circuits


def bits(value: int, count: int) -> np.ndarray:
    return np.array([value >> k & 1 for k in range(count)], bool)


@wide
@pytest.mark.parametrize("pebbles", [40, 20, 11])
def test_an_adder_adds_under_any_budget(pebbles: int) -> None:
    circuit = load_circuit(DATA / "adder8.bench")
    plan = plan_dag(circuit.dag, pebbles=pebbles)
    made = emit_circuit(plan, circuit)
    for a, b, c in [(0, 0, 0), (255, 255, 1), (200, 99, 1), (85, 170, 0)]:
        given = {"a": bits(a, 8), "b": bits(b, 8), "c0": bool(c), "s": bits(0, 8), "c8": False}
        out = made["circuit"](**given)
        total = sum(int(bit) << k for k, bit in enumerate(out.s)) + (int(out.c8) << 8)
        assert total == a + b + c
        back = (~made["circuit"])(**out)
        assert not back.s.any() and not back.c8 and np.array_equal(back.a, given["a"])


def test_sixty_four_sums_at_a_time() -> None:
    circuit = load_circuit(DATA / "adder8.bench")
    made = emit_circuit(plan_dag(circuit.dag, pebbles=20), circuit, of=U64)
    random = np.random.default_rng(3)
    a, b = random.integers(0, 256, (2, 64))

    def sliced(values: np.ndarray) -> np.ndarray:
        rows = [sum(int(v >> k & 1) << lane for lane, v in enumerate(values)) for k in range(8)]
        return np.array(rows, np.uint64)

    for engine in ENGINES:
        out = made["circuit"](
            a=sliced(a), b=sliced(b), c0=0, s=np.zeros(8, np.uint64), c8=0, engine=engine
        )
        rows = [*out.s.tolist(), out.c8]
        sums = [sum((row >> lane & 1) << k for k, row in enumerate(rows)) for lane in range(64)]
        assert sums == (a + b).tolist()


GATES = {
    "AND": all,
    "OR": any,
    "XOR": lambda values: sum(values) % 2 == 1,
    "NAND": lambda values: not all(values),
    "NOR": lambda values: not any(values),
    "XNOR": lambda values: sum(values) % 2 == 0,
    "NOT": lambda values: not values[0],
    "BUFF": lambda values: values[0],
}


def simulated(circuit: Circuit, values: dict[str, bool]) -> dict[str, bool]:
    """The outputs, gate by gate in topological order."""
    known = dict(values)
    for v in range(len(circuit.dag)):
        gate = circuit.gates[circuit.dag.name(v)]
        values = [known[u] for u in gate.reads]
        if gate.kind in GATES:
            value = bool(GATES[gate.kind](values))
        else:
            value = bool(gate.table >> sum(bit << k for k, bit in enumerate(values)) & 1)
        known[circuit.dag.name(v)] = value
    return {name: known[name] for name in circuit.outputs}


@st.composite
def circuits(draw: st.DrawFn) -> Circuit:
    inputs = ["1", "b[0]", "c.x"]
    known, lines = [*inputs], [f"INPUT({name})" for name in inputs]
    for k in range(draw(st.integers(1, 9))):
        kind = draw(st.sampled_from([*sorted(GATES), "LUT", "LUT", "LUT", "vdd", "gnd"]))
        count = 1 if kind in ("NOT", "BUFF") else draw(st.integers(1 + (kind != "LUT"), 4))
        reads = ", ".join(draw(st.sampled_from(known)) for _ in range(count))
        if kind == "LUT":
            kind = f"LUT {draw(st.integers(0, (1 << (1 << count)) - 1)):#x} "
        lines.append(f"g{k} = {kind}" + (f"({reads})" if kind not in ("vdd", "gnd") else ""))
        known.append(f"g{k}")
    gates = known[3:]
    outputs = draw(st.lists(st.sampled_from(gates), min_size=1, max_size=3, unique=True))
    return parse_circuit("\n".join([*(f"OUTPUT({name})" for name in outputs), *lines]))


@given(circuits(), st.integers(0, 7))
@examples(50)
def test_circuits_compute_their_gates(circuit: Circuit, number: int) -> None:
    plan = plan_dag(circuit.dag, max_moves=10**6)
    made = emit_circuit(plan, circuit)
    function = made.program.function("circuit")
    inputs = {name: bool(number >> k & 1) for k, name in enumerate(circuit.inputs)}
    names = [p.name for p in function.params]
    assert names[:3] == ["n1", "b_0_", "c_x"]
    given: dict[str, Any] = dict(zip(names, inputs.values(), strict=False))
    expected = simulated(circuit, inputs)
    rows = {p.name: function.registers[k] for k, p in enumerate(function.params)}
    for name in names[3:]:
        length = rows[name].dims
        given[name] = np.zeros(length[0].value, bool) if length else False  # type: ignore[union-attr]
    out = made["circuit"](**given)
    found = [bool(b) for name in names[3:] for b in np.atleast_1d(out[name])]
    assert sorted(found) == sorted(expected.values())
    assert check_dag(circuit.dag, plan.schedule) == plan.cost


def test_gates_of_many_inputs() -> None:
    inputs = [f"x{k}" for k in range(300)]
    text = "\n".join(
        [*(f"INPUT({x})" for x in inputs), "OUTPUT(y)", f"y = XOR({', '.join(inputs)})"]
    )
    circuit = parse_circuit(text)
    made = emit_circuit(plan_dag(circuit.dag, pebbles=1), circuit)
    values = np.random.default_rng(0).integers(0, 2, 300).astype(bool)
    assert made["circuit"](x=values, y=False).y == reduce(operator.xor, values.tolist())


def test_no_schedule_no_function() -> None:
    with pytest.raises(BudgetError):
        plan_dag(parse_circuit(adder(3)).dag, pebbles=3)
