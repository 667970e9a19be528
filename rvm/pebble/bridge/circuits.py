"""Circuits as functions that follow a plan: a pebble on a gate is one `xor` of an ancilla.

    circuit = rvm.pebble.load_circuit("adder8.bench")
    plan = rvm.pebble.plan_dag(circuit.dag, pebbles=14)
    adder = rvm.pebble.emit_circuit(plan, circuit)
    adder.circuit(a=..., b=..., c0=False, s=np.zeros(8, bool), c8=False)

Signals a0, a1, ..., a7 are an array a; signals that do not form such a row are separate parameters,
with an n before names that are not identifiers.  Inputs are read; each output is xored with its
gate.  Other gates that read an output read its whole value, so such outputs must be zero before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce

from rvm.expr import Const, Expr, Index, Place
from rvm.isa import apply
from rvm.library.handle import Library
from rvm.numbers import system
from rvm.pebble.bridge.graphs import Cell, GraphWriter, same_graph
from rvm.pebble.graphs.bench import Circuit, Gate
from rvm.pebble.graphs.plan import DagPlan
from rvm.program import Function, Param, Program, Register, Span
from rvm.transform.duals import unique
from rvm.types import BOOL, I64, Array, Scalar
from rvm.verify import verify

OPERATORS = {"AND": "&", "NAND": "&", "OR": "|", "NOR": "|", "XOR": "^", "XNOR": "^"}
NEGATED = frozenset({"NAND", "NOR", "XNOR", "NOT"})
ROW = re.compile(r"([A-Za-z_]\w*?)\[?(\d+)\]?")
"""A signal of a row: its name and number."""


def emit_circuit(
    plan: DagPlan, circuit: Circuit, *, of: Scalar = BOOL, name: str = "circuit"
) -> Library:
    """A program with one function, which computes a circuit under a plan of its graph.

    With an unsigned type, u64 say, a signal has a bit for each of so many circuits side by side.
    UsageError P031: the plan is of another graph.
    """
    same_graph(plan, circuit.dag, "the circuit")
    ports = Ports(circuit, of)
    writer = GraphWriter(ports.registers)
    zero = Const(system(of).zero, of)
    spare = Register("", of)
    nodes = {circuit.dag.name(v): v for v in range(len(circuit.dag))}

    def read(signal: str) -> Expr:
        return writer.where[nodes[signal]] if signal in nodes else ports.places[signal]

    for placed, node in plan.moves():
        signal = circuit.dag.name(node)
        output = ports.places.get(signal)
        initial = zero if output is None else None
        if placed:
            cell = Cell(output, spare if output is None else None)
            writer.put(node, cell, initial, Span())
        writer.update(node, "^", _value(circuit.gates[signal], read, zero), Span())
        if not placed:
            writer.take(node, initial, Span())
    function = Function(name, ports.params, tuple(writer.registers), tuple(writer.code))
    program = Program((function,), name)
    verify(program)
    return Library(program)


def _value(gate: Gate, read: Callable[[str], Expr], zero: Const) -> Expr:
    """The value computed by a gate."""
    values = [read(signal) for signal in gate.reads]
    if gate.kind in ("LUT", "VDD", "GND"):
        return _looked_up(gate.table, values, zero)
    # In pairs, so that expressions of gates with many inputs are not deep.
    while len(values) > 1:
        pairs = [values[k : k + 2] for k in range(0, len(values), 2)]
        values = [reduce(lambda a, b: apply(OPERATORS[gate.kind], a, b), pair) for pair in pairs]
    return apply("~", values[0]) if gate.kind in NEGATED else values[0]


def _looked_up(table: int, values: Sequence[Expr], zero: Const) -> Expr:
    """The value of a look-up table, by its last input first: f = f0 ^ (x & (f0 ^ f1))."""
    every = (1 << (1 << len(values))) - 1
    if table in (0, every):
        return apply("~", zero) if table else zero
    *others, x = values
    half = 1 << len(others)
    low, high = table & ((1 << half) - 1), table >> half
    if low == high:
        return _looked_up(low, others, zero)
    change = _looked_up(low ^ high, others, zero)
    chosen = x if low ^ high == (1 << half) - 1 else apply("&", x, change)
    return apply("^", _looked_up(low, others, zero), chosen) if low else chosen


class Ports:
    """The parameters of a circuit's function, and the places of its inputs and outputs in them."""

    def __init__(self, circuit: Circuit, of: Scalar) -> None:
        self.registers: list[Register] = []
        self.places: dict[str, Place] = {}
        self._names: set[str] = set()
        for signals in (circuit.inputs, circuit.outputs):
            rows = _rows(signals)
            for signal in signals:
                if signal in self.places:
                    continue
                row = next((r for r in rows.items() if signal in r[1]), None)
                if row is None:
                    self._scalar(signal, of)
                else:
                    self._array(*row, of)

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters, in the order of the text."""
        return tuple(Param(r.name, k) for k, r in enumerate(self.registers))

    def _scalar(self, signal: str, of: Scalar) -> None:
        self.places[signal] = Place(len(self.registers), (), of)
        self.registers.append(Register(self._name(signal), of))

    def _array(self, name: str, signals: Sequence[str], of: Scalar) -> None:
        for k, signal in enumerate(signals):
            index = Index((Const(k, I64),))
            self.places[signal] = Place(len(self.registers), (index,), of)
        length = Const(len(signals), I64)
        self.registers.append(Register(self._name(name), Array(of, 1), (length,)))

    def _name(self, signal: str) -> str:
        word = re.sub(r"\W", "_", signal)
        found = unique(word if word.isidentifier() else f"n{word}", self._names)
        self._names.add(found)
        return found


def _rows(signals: Sequence[str]) -> dict[str, list[str]]:
    """Rows of signals with the numbers 0, 1, ..., by their name."""
    found: dict[str, dict[int, str]] = {}
    for signal in signals:
        if parts := ROW.fullmatch(signal):
            found.setdefault(parts[1], {})[int(parts[2])] = signal
    return {
        name: [row[k] for k in range(len(row))]
        for name, row in found.items()
        if len(row) > 1 and set(row) == set(range(len(row)))
    }
