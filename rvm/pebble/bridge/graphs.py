"""Plans of graphs as functions that follow them: fewer ancillas at a time, the same outputs.

    program = rvm.load("f.rasm")
    plan = rvm.pebble.plan_dag(rvm.pebble.dag_of(program, "f"), pebbles=12)
    thrifty = rvm.pebble.emit_dag(plan, program, "f")

A pebble on a node is an ancilla that is allocated, and updated as in the original function;
removing the pebble does this backwards.  Ancillas of one type share registers: as many as there are
pebbles of that type at a time.  A pebble on an output updates the parameter.  The result is
ordinary code, which runs back and can be differentiated like any other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from rvm.expr import Expr, Place, rebuild
from rvm.faults import UsageError
from rvm.library.handle import Library
from rvm.pebble.bridge.functions import GraphReader, Made
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.plan import DagPlan
from rvm.program import AnyProgram, Function, Instr, Program, Register, Span, program_of
from rvm.stmt import UNDO
from rvm.transform.duals import unique
from rvm.types import Stack
from rvm.verify import verify

OPCODES = {"+": "add", "-": "sub", "^": "xor", "*": "mul", "/": "div"}
"""The opcode of each update operator."""


def emit_dag(
    plan: DagPlan, program: AnyProgram, function: str | None = None, *, name: str | None = None
) -> Library:
    """The program with a function that computes under a plan of its graph, as the entry.

    It takes the place of `function` (by default the entry) for all who call that; or it is a new
    one beside it, if it is given another `name`.  UsageError P031: the plan is of another graph, or
    a parameter holds one value after the other.
    """
    program = program_of(program)
    old = program.function(function or program.entry)
    reader = GraphReader(program, old)
    same_graph(plan, reader.read(), f"the function `{old.name}`")
    _one_value_each(old, reader.made)
    writer = GraphWriter(old.registers[: old.n_args])
    cells = [_cell(old, made) for made in reader.made]
    for placed, node in plan.moves():
        made = reader.made[node]
        initial = made.initial
        if placed:
            writer.put(node, cells[node], initial, span=old.span(made.steps[0].pc))
        steps = made.steps if placed else made.steps[::-1]
        for step in steps:
            op = step.op if placed else UNDO[step.op]
            writer.update(node, op, writer.present(step.value), old.span(step.pc))
        if not placed:
            writer.take(node, initial, span=old.span(made.steps[0].pc))
    new = replace(
        old,
        name=name or old.name,
        registers=tuple(writer.registers),
        code=tuple(writer.code),
        spans=tuple(writer.spans) if old.spans else (),
    )
    others = [f for f in program.functions if f.name != new.name]
    made_program = Program((*others, new), new.name, program.sources)
    verify(made_program)
    return Library(made_program)


def same_graph(plan: DagPlan, dag: Dag, what: str) -> None:
    """UsageError P031 if a plan is not of this graph."""
    if (plan.dag.preds, plan.dag.outputs) != (dag.preds, dag.outputs):
        raise UsageError(
            "P031",
            f"the plan is of another graph than that of {what}",
            values={"nodes of the plan": len(plan.dag), "nodes there": len(dag)},
        )


def _one_value_each(function: Function, made: Sequence[Made]) -> None:
    """UsageError P031 if two nodes are in one parameter, where a plan might hold both."""
    seen: set[int] = set()
    for node in made:
        if node.register < function.n_args and node.register in seen:
            name = function.registers[node.register].name
            raise UsageError(
                "P031",
                f"the parameter `{name}` of `{function.name}` holds one value after the other",
                hint="values needed only for a while belong in an ancilla",
            )
        seen.add(node.register)


@dataclass(frozen=True, slots=True)
class Cell:
    """A place for a node: a parameter, or an ancilla of this kind."""

    parameter: Place | None
    ancilla: Register | None


def _cell(function: Function, made: Made) -> Cell:
    register = function.registers[made.register]
    if made.register < function.n_args:
        return Cell(_place(made.register, register), None)
    return Cell(None, register)


class GraphWriter:
    """The code of a function while it is made, and the registers that its ancillas share."""

    def __init__(self, parameters: Iterable[Register]) -> None:
        self.registers: list[Register] = list(parameters)
        self.code: list[Instr] = []
        self.spans: list[Span] = []
        self.where: dict[int, Place] = {}
        """The places of the nodes that are held."""
        self._names = {r.name for r in self.registers}
        self._free: dict[Hashable, list[int]] = {}

    def put(self, node: int, cell: Cell, initial: Expr | None, span: Span) -> None:
        """Make room for a node."""
        if cell.parameter is not None:
            self.where[node] = cell.parameter
            return
        assert cell.ancilla is not None
        kind = (cell.ancilla.type, cell.ancilla.dims)
        free = self._free.setdefault(kind, [])
        if not free:
            name = unique(f"t{len(self.registers)}", self._names)
            self._names.add(name)
            free.append(len(self.registers))
            self.registers.append(replace(cell.ancilla, name=name))
        place = _place(free.pop(), cell.ancilla)
        self.where[node] = place
        self.add("alloc", (place, *_valued(initial)), span)

    def take(self, node: int, initial: Expr | None, span: Span) -> None:
        """Free the place of a node, which holds its initial value."""
        place = self.where.pop(node)
        register = self.registers[place.reg]
        if place.path or initial is None:
            return
        self.add("free", (place, *_valued(initial)), span)
        self._free[register.type, register.dims].append(place.reg)

    def update(self, node: int, op: str, value: Expr, span: Span) -> None:
        """Update a node that is held."""
        self.add(OPCODES[op], (self.where[node], value), span)

    def present(self, value: Expr) -> Expr:
        """An expression over nodes (registers below 0) and parameters, nodes where they are."""

        def present(node: Expr) -> Expr:
            if isinstance(node, Place):
                inner = rebuild(node, present)
                assert isinstance(inner, Place)
                if node.reg < 0:
                    held = self.where[-1 - node.reg]
                    return Place(held.reg, (*held.path, *inner.path), node.type)
                return inner
            return rebuild(node, present)

        return present(value)

    def add(self, op: str, args: Sequence[Expr], span: Span) -> None:
        """One more instruction."""
        self.code.append(Instr(op, tuple(args)))
        self.spans.append(span)


def _place(number: int, register: Register) -> Place:
    assert not isinstance(register.type, Stack), "only what can be updated is a node"
    return Place(number, (), register.type)


def _valued(initial: Expr | None) -> tuple[Expr, ...]:
    return () if initial is None else (initial,)
