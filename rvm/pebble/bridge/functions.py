"""Straight-line functions of programs as graphs: each value that an ancilla takes is a node.

    func f(x: i64, y: i64)
        alloc a: i64
        add a, x * x        ; node a, from the input x
        add y, a + x        ; node y, an output, from a
        sub a, x * x        ; a is uncomputed, which is not a node
        free a

A register's contents are the updates made since it was fresh; an update that undoes the last one
removes it.  Contents that are read, or that a parameter has at the end, are a node, computed from
the nodes that its updates read.  The same contents computed again are the same node: so a function
that follows one schedule gives the graph for a better one.  After a register was read, its updates
may only be undone.  Parameters that are not updated are inputs; those that are updated are outputs,
whose old values must not be read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from rvm.expr import Apply, Const, Expr, Place, children, rebuild
from rvm.faults import InputError, Where
from rvm.isa import lower
from rvm.pebble.graphs.dag import Dag
from rvm.program import AnyProgram, Function, Instr, Program, program_of
from rvm.stmt import UNDO, Alloc, Free, Update


@dataclass(frozen=True, slots=True)
class NodeUpdate:
    """An update: its operator, what is read as an expression over nodes, and those nodes.

    In the expression the register -1 - v stands for node v; other registers are parameters.
    """

    op: str
    value: Expr
    reads: tuple[int, ...]
    pc: int = field(compare=False)
    """The instruction that it is from."""

    def undoes(self, other: NodeUpdate) -> bool:
        """Whether this takes the other back."""
        return UNDO[other.op] == self.op and other.value == self.value


@dataclass(frozen=True, slots=True)
class Made:
    """The way a node is made: the register that holds it, its fresh contents, and its updates."""

    register: int
    initial: Expr | None
    """The initial value of an ancilla; None for a parameter."""
    steps: tuple[NodeUpdate, ...]


class GraphReader:
    """A pass over a function, and the nodes so far."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.function = function
        self.contents: dict[int, list[NodeUpdate]] = {r: [] for r in range(function.n_args)}
        self.initial: dict[int, Expr | None] = {}
        """The constants with which ancillas are made."""
        self.sealed: set[int] = set()
        """Registers whose present contents were read."""
        self.inputs: dict[int, int] = {}
        """Parameters that were read as they were passed, and where."""
        self.changed: set[int] = set()
        """Registers that are updated somewhere."""
        self.preds: list[tuple[int, ...]] = []
        self.names: list[str] = []
        self.known: dict[Hashable, int] = {}
        self.made: list[Made] = []
        """The first way in which each node is made."""

    def read(self) -> Dag:
        """The graph.  InputError P010 names the instruction that is wrong."""
        for pc, instr in enumerate(self.function.code):
            self._instruction(pc, instr)
        outputs = [self._node(r) for r in range(self.function.n_args) if self.contents[r]]
        if not outputs:
            self._refuse(-1, "updates no parameter, so it has no output")
        for register, pc in self.inputs.items():
            if register in self.changed:
                name = self.function.registers[register].name
                self._refuse(pc, f"reads `{name}` as it was passed, and another changes it")
        return Dag(tuple(self.preds), tuple(outputs), tuple(self.names))

    def _instruction(self, pc: int, instr: Instr) -> None:
        for stmt in lower(instr):
            match stmt:
                case Alloc(reg, value):
                    if value is not None and not isinstance(value, Const):
                        self._refuse(pc, "makes a register with a value that is not a constant")
                    self._lengths(pc, reg.reg)
                    self.initial[reg.reg] = value
                    self.contents[reg.reg] = []
                case Free(reg, value):
                    name = self.function.registers[reg.reg].name
                    if self.contents.pop(reg.reg):
                        self._refuse(pc, f"frees `{name}`, whose updates are not all taken back")
                    if value != self.initial[reg.reg]:
                        self._refuse(pc, f"frees `{name}` with another value than it was made with")
                case Update(dst, op, value) if not dst.path:
                    self._update(pc, dst.reg, op, value)
                case _:
                    self._refuse(pc, f"is `{instr.op}`, which is not an update of a whole register")

    def _lengths(self, pc: int, register: int) -> None:
        """The lengths of an ancilla come from parameters as they are passed."""
        for length in self.function.registers[register].dims:
            for read in _read(length) if length is not None else ():
                if read >= self.function.n_args:
                    name = self.function.registers[read].name
                    self._refuse(pc, f"makes an array of a length that `{name}` holds, an ancilla")
                self.inputs.setdefault(read, pc)

    def _update(self, pc: int, register: int, op: str, value: Expr) -> None:
        reads: list[int] = []
        for read in _read(value):
            if self.contents.get(read):
                reads.append(self._node(read))
                self.sealed.add(read)
            elif read < self.function.n_args:
                self.inputs.setdefault(read, pc)
            else:
                self._refuse(pc, f"reads `{self.function.registers[read].name}`, a fresh register")
        step = NodeUpdate(op, self._resolved(value), tuple(sorted(set(reads))), pc)
        contents = self.contents[register]
        self.changed.add(register)
        if contents and step.undoes(contents[-1]):
            contents.pop()
            self.sealed.discard(register)
        elif register in self.sealed:
            name = self.function.registers[register].name
            self._refuse(pc, f"changes `{name}`, which was read before")
        else:
            contents.append(step)

    def _resolved(self, value: Expr) -> Expr:
        """The expression with registers that hold nodes replaced by these."""

        def resolved(node: Expr) -> Expr:
            if isinstance(node, Place) and self.contents.get(node.reg):
                inner = rebuild(node, resolved)
                assert isinstance(inner, Place)
                return Place(-1 - self._node(node.reg), inner.path, node.type)
            return rebuild(node, resolved)

        return resolved(value)

    def _node(self, register: int) -> int:
        contents = tuple(self.contents[register])
        # Equal contents of two parameters are two outputs.
        fresh = register >= self.function.n_args
        initial = self.initial[register] if fresh else None
        cell = self.function.registers[register]
        key = ((cell.type, cell.dims, initial) if fresh else register, contents)
        if key not in self.known:
            self.made.append(Made(register, initial, contents))
            self.known[key] = len(self.preds)
            self.preds.append(tuple(sorted({u for step in contents for u in step.reads})))
            self.names.append(f"{self.function.registers[register].name}.{len(self.names)}")
        return self.known[key]

    def _refuse(self, pc: int, what: str) -> NoReturn:
        span = self.function.span(pc)
        where = Where(function=self.function.name, pc=pc)
        if span.line:
            source = self.program.sources[span.source]
            where = Where(
                source.name,
                span.line,
                span.column,
                span.end,
                source.line(span.line),
                self.function.name,
                pc,
            )
        subject = "this instruction" if pc >= 0 else f"`{self.function.name}`"
        raise InputError(
            "P010",
            f"{subject} {what}",
            where=where,
            hint="a graph is made of alloc, updates such as add and xor, and free",
        )


def _read(node: Expr) -> Iterator[int]:
    """The registers whose values are read; the length of an array is not a value."""
    if isinstance(node, Place):
        yield node.reg
    if not (isinstance(node, Apply) and node.fn == "dim"):
        for child in children(node):
            yield from _read(child)


def dag_of(program: AnyProgram, name: str | None = None) -> Dag:
    """The graph of a function of a program, by default its entry.

    InputError P010: it is not straight-line, or changes in place what was read.
    """
    program = program_of(program)
    return GraphReader(program, program.function(name or program.entry)).read()
