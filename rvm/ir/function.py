"""One function in one direction: its plan, and its blocks, gates and jumps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from rvm.expr import Place, reads
from rvm.host.once import once
from rvm.host.signals import listen
from rvm.image import Code
from rvm.ir import context
from rvm.ir.arm import arm
from rvm.ir.arrays import ask_finite
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.builder import Builder, Way
from rvm.ir.calls import call, is_callable
from rvm.ir.certain import certain
from rvm.ir.count import count
from rvm.ir.fills import fills
from rvm.ir.flow import FALLS, JUMPS, RETURNS, Cycle, Edge, Flow
from rvm.ir.hoist import hoisted
from rvm.ir.kind import INNER, Kind
from rvm.ir.loop_facts import live_at, turns
from rvm.ir.loops import Counted, counted
from rvm.ir.node import Node
from rvm.ir.oneway import one_way
from rvm.ir.registers import declare, enter, finish, stop
from rvm.ir.short import short
from rvm.ir.statements import instruction_at, note
from rvm.ir.typed import Unprintable
from rvm.ir.values import scalar
from rvm.ir.zeros import zeros
from rvm.stmt import Branch, Land, Stmt, Update, writes
from rvm.types import Array

Onward = Callable[[int, bool], None]
"""Goes on at a leader, which may have been fallen into."""


@dataclass(frozen=True, slots=True)
class CodePlan:
    """The facts about a code that are known before its graph is made."""

    flow: Flow
    loops: dict[int, Counted]


def plan_of(code: Code, checks: bool, strict: int) -> CodePlan:
    """The shape of a code, worked out once."""
    key = (CodePlan, checks, strict)
    return once(code.compiled, key, CodePlan, lambda: _planned(code, checks, strict))


def _planned(code: Code, checks: bool, strict: int) -> CodePlan:
    calls = {
        pc
        for pc, i in enumerate(code.instrs)
        if i.op in ("call", "uncall") and is_callable(code, pc)
    }
    # Code for all gates checks what others are certain of.
    b = FunctionBuilder("trial", code, Kind(INNER, frozenset(), checks, strict), Flow(code, (), ()))
    declare(b)
    apart = {pc for pc in range(len(code)) if pc not in calls and not _is_able(b, pc)}
    flow = Flow(code, apart, calls)
    return CodePlan(flow, counted(code, flow, strict))


def _is_able(b: FunctionBuilder, pc: int) -> bool:
    """Whether an instruction that is not a call can be made: it is tried."""
    listen()
    code, instr = b.code, b.code.instrs[pc]
    b.items = []
    b.leaving(lambda: "out")
    try:
        if instr.op == "br":
            scalar(b, instr.args[0])
            scalar(b, code.instrs[instr.aux].args[0])
        else:
            instruction_at(b, pc)
    except Unprintable:
        return False
    return instr.op not in ("call", "uncall")


def label_of(leader: int, copy: int = 0) -> str:
    """The label of a leader's block."""
    return f"b{copy}_{leader}"


class Maker(ABC):
    """Makes one function; targets have their own entries and exits.

    `last` is the cost of reaching the code's end.
    """

    def __init__(self, b: Builder, last: int) -> None:
        self.b = b
        self.looked: frozenset[int] = frozenset()
        """The parameters whose numbers are looked at where they get them."""
        self.trusted: frozenset[int] = frozenset()
        """The branches whose come-froms need no check."""
        self.needs = b.flow.needs(last)
        self.around: tuple[Cycle, ...] = b.flow.around(max(b.kind.entry, 0))
        self._todo: list[tuple[int, int]] = []
        self._seen: set[tuple[int, int]] = set()

    @abstractmethod
    def enter(self) -> None:
        """The entry of a run."""

    @abstractmethod
    def instruction(self, pc: int) -> None:
        """An instruction that is neither a jump nor a call."""

    @abstractmethod
    def call(self, pc: int, done: int, way: Way) -> None:
        """A call, `done` ticks into its block."""

    @abstractmethod
    def condition(self, pc: int, done: int) -> tuple[Node, int]:
        """A branch's condition, and the ticks that are to be counted behind it."""

    @abstractmethod
    def finish(self) -> None:
        """The end of the code."""

    @abstractmethod
    def stop(self) -> None:
        """The exit of the function."""

    def make(self) -> None:
        """Make the function's blocks."""
        b = self.b
        b.block("entry")
        self.enter()
        while self._todo:
            self._block(*self._todo.pop())
        b.block("stop")
        self.stop()
        blocks = [*b.blocks, *b.tail]
        b.tail = []
        arm(b, blocks)
        if b.kind.counts:
            count(b, blocks)
        b.blocks = blocks + b.tail

    def reach(self, copy: int, target: int) -> str:
        """The label of a leader's block, which is to be made."""
        to = self.b.flow.copy(self.around, copy, target)
        if (to, target) not in self._seen:
            self._seen.add((to, target))
            self._todo.append((to, target))
        return label_of(target, to)

    def goto(self, copy: int, target: int) -> None:
        """End the block by going on at a leader."""
        self.b.jump(self.reach(copy, target))

    def _block(self, copy: int, start: int) -> None:
        """The block of one leader: up to the next jump, or an instruction that is not compiled."""
        self.b.block(label_of(start, copy))
        if start in self.b.flow.gates and self.needs[start]:
            self.gate(start)
        self.straight(start, lambda target, falling: self.onward(copy, target, falling))

    def onward(self, copy: int, target: int, falling: bool) -> None:
        """Continue at a leader, which may also be reached by falling through."""
        self.goto(copy, target)

    def gate(self, start: int) -> None:
        """Leave at a gate unless enough ticks are left to reach the next ones."""
        b = self.b
        b.leaving(b.way_out(start, 0, context.SPENT))
        b.trouble(b.op("lt", b.get(b.ticks), b.i64(self.needs[start])))

    def straight(self, start: int, onward: Onward) -> None:
        """Instructions from a leader on, and the jump that ends them."""
        b = self.b
        flow, code, pc = b.flow, b.code, start
        while True:
            done = pc - start
            if pc != start and pc in flow.leaders:
                b.count(done)
                self.along(Edge(start, pc, FALLS, pc))
                onward(pc, True)
                return
            way = b.way_out(pc, done)
            b.do("begin", aux=(pc, way))
            b.leaving(way)
            if pc == len(code):
                if b.kind.finite:
                    ask_finite(b, sorted(b.kind.finite - self.looked))
                b.count(done)
                self.finish()
                return
            if pc in flow.apart:
                b.jump(way())
                return
            if pc in flow.calls:
                self.call(pc, done, way)
                self.along(Edge(start, pc, RETURNS, pc + 1))
                onward(pc + 1, False)
                return
            if code.instrs[pc].op == "br":
                self._branch(pc, done, onward)
                return
            listen()
            if b.kind.counts:
                b.do("perform", aux=pc)
            self.instruction(pc)
            if b.kind.counts:
                b.do("done", aux=pc)
            pc += 1

    def along(self, edge: Edge) -> None:
        """Mark that a basic block is done, and that the run continues along this edge."""
        if self.b.kind.counts:
            self.b.do("edge", self.b.i64(1), aux=edge)

    def _branch(self, pc: int, done: int, onward: Onward) -> None:
        b = self.b
        stmt = cast(Branch, b.code.stmts(pc)[0])
        landing = cast(Land, b.code.stmts(stmt.partner)[0])
        taken, not_taken = b.fresh("taken"), b.fresh("falls")
        condition, uncounted = self.condition(pc, done)
        b.fork(condition, taken, not_taken)
        b.block(taken)
        if b.checks and pc not in self.trusted and landing.cond != stmt.cond:
            holds = scalar(b, landing.cond)
            if holds.op != "constant" or not holds.aux:
                b.trouble(b.invert(holds))
        b.count(uncounted)
        self.along(Edge(pc - done, pc, JUMPS, stmt.partner + 1))
        onward(stmt.partner + 1, False)
        b.block(not_taken)
        b.count(uncounted)
        self.along(Edge(pc - done, pc, FALLS, pc + 1))
        onward(pc + 1, False)


class MachineMaker(Maker):
    """Makes one function of machine code; `loops` are the counting loops to be hoisted."""

    b: FunctionBuilder

    def __init__(self, b: FunctionBuilder, loops: Mapping[int, Counted]) -> None:
        super().__init__(b, 0 if b.kind.root and b.left is None else 1)
        self.loops = loops
        flow, code = b.flow, b.code
        self.short = frozenset[int]() if b.lanes else short(code, flow)
        b.passed = frozenset(
            a.reg for pc in flow.calls for a in code.instrs[pc].args if isinstance(a, Place)
        )
        if not b.lanes:
            # Of lanes the C library takes one at a time.
            b.turns = turns(code)
        gaining = _gaining(code)
        if b.kind.blank:
            b.filling = frozenset(id(code.stmts(pc)[0]) for pc in fills(code).values())
        if b.kind.finite:
            # What was no number once is none at the end.
            self.looked = frozenset(gaining.keys() & b.kind.finite)
            b.looking = frozenset(k for reg in self.looked for k in gaining[reg])
        if b.from_beginning:
            # A run that is entered in its middle may have been given anything.
            b.certain = certain(code)
            if not b.lanes:
                b.one_ways = {c.reg: c for c in one_way(code)}
            if not (b.lanes or b.kind.strict or b.kind.counts or code.traps):
                b.sums, b.made = zeros(code, flow)

    def enter(self) -> None:
        b = self.b
        declare(b)
        enter(b)
        if b.kind.finite:
            b.variables.append(b.infinite)
            b.set(b.infinite, b.i64(0))
        if b.anywhere:
            self._choose_gate()
        else:
            self.goto(len(self.around), max(b.kind.entry, 0))

    def _choose_gate(self) -> None:
        """Continue at the gate given in the context."""
        b = self.b
        gates = b.left.at if b.left else sorted(b.flow.gates - b.flow.apart)
        ways = tuple((gate, b.fresh("gate")) for gate in gates)
        b.do("switch", b.read_field(context.PC), aux=ways)
        for gate, label in ways:
            b.block(label)
            self.goto(0, gate)

    def gate(self, start: int) -> None:
        super().gate(start)
        if start - 1 not in self.loops:
            self.remind(start)

    def remind(self, position: int) -> None:
        """Assert on which side of their initial values live monotonic registers are."""
        b = self.b
        if not b.one_ways:
            return
        for reg in sorted(live_at(b.code, position) & b.one_ways.keys()):
            register = b.one_ways[reg]
            begin = scalar(b, register.begin)
            held = b.get(b.scalars[reg][0])
            b.do("assume", b.op("ge" if register.up else "le", held, begin))

    def onward(self, copy: int, target: int, falling: bool) -> None:
        loop = self.loops.get(target - 1) if falling else None
        if loop is not None and hoisted(self, loop, copy):
            return
        if not falling and target - 1 in self.short:
            self.b.again(self.reach(copy, target), "straight")
        else:
            self.goto(copy, target)

    def instruction(self, pc: int) -> None:
        instruction_at(self.b, pc)

    def call(self, pc: int, done: int, way: Way) -> None:
        call(self.b, pc, done, way)
        note(self.b, self.b.code.notes(pc))

    def condition(self, pc: int, done: int) -> tuple[Node, int]:
        b = self.b
        cond = cast(Branch, b.code.stmts(pc)[0]).cond
        found = scalar(b, cond)
        if b.varying and any(place.reg in b.varying for place in reads(cond)):
            b.partings.append(pc)
            b.do("part", found, aux=b.way_out(pc, done, context.PARTED)())
        return found, done + 1

    def finish(self) -> None:
        finish(self.b)

    def stop(self) -> None:
        stop(self.b)


def _gaining(code: Code) -> dict[int, frozenset[int]]:
    """The array parameters that statements only add to as a whole, with the `id`s of these."""
    found: dict[int, list[Stmt]] = {}
    for stmt in (s for pc in range(len(code)) for s in code.stmts(pc)):
        for place in writes(stmt):
            found.setdefault(place.reg, []).append(stmt)
    registers, n = code.function.registers, code.function.n_args
    return {
        reg: frozenset(map(id, stmts))
        for reg, stmts in found.items()
        if reg < n and isinstance(registers[reg].type, Array) and all(map(_gains, stmts))
    }


def _gains(stmt: Stmt) -> bool:
    match stmt:
        case Update(Place(_, ()), "+" | "-"):
            return True
    return False


def machine_function(b: FunctionBuilder, loops: Mapping[int, Counted]) -> FunctionBuilder:
    """The builder, with the blocks of its function."""
    MachineMaker(b, loops).make()
    return b
