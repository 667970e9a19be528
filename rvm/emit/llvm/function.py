"""One function in one direction as LLVM code: blocks, gates and jumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from rvm.emit.llvm import context
from rvm.emit.llvm.choices import print_choice
from rvm.emit.llvm.edges import FALLS, JUMPS, RETURNS, Edge
from rvm.emit.llvm.flow import Cycle, Flow
from rvm.emit.llvm.kind import ANYWHERE, Kind
from rvm.emit.llvm.loops import Counted
from rvm.emit.llvm.nests import Nests
from rvm.emit.llvm.registers import Callees
from rvm.emit.llvm.traps import print_traps
from rvm.emit.llvm.values import variable_types
from rvm.emit.llvm.writer import COLD
from rvm.expr import Expr
from rvm.host.signals import listen
from rvm.image import Code
from rvm.stmt import Branch, Land
from rvm.types import Scalar


class FunctionPrinter(Nests):
    """Prints one function."""

    def __init__(
        self,
        symbol: str,
        code: Code,
        kind: Kind,
        flow: Flow,
        loops: dict[int, Counted],
        callees: Callees,
    ) -> None:
        super().__init__(symbol, code, kind, flow, callees)
        self.loops = loops
        self.needs = flow.needs(0 if kind.root else 1)
        self.around: tuple[Cycle, ...] = flow.around(max(kind.entry, 0))
        self.choices = flow.choices
        self._todo: list[tuple[int, int]] = []
        self._seen: set[tuple[int, int]] = set()
        self._tail: list[str] = []

    def text(self) -> str:
        """The function's definition."""
        self._variables()
        if self.kind.root:
            self._bound_stack()
            self._from_slots()
        else:
            self._from_arguments()
        self.store("i64", self.load("i64", self.field(context.TICKS)), self.ticks)
        self.store("i64", "0", self.erased)
        if not self.kind.root:
            for held in self.arrays.values():
                if held.owner:
                    self.store("i64", "0", held.owner)
        if self.kind.entry == ANYWHERE:
            self._choose_gate()
        else:
            self.goto(len(self.around), max(self.kind.entry, 0))
        while self._todo:
            self._block(*self._todo.pop())
        self.lines += self._tail
        self._stop()
        args = "ptr noalias %regs, ptr noalias %ctx"
        if not self.kind.root:
            args = ", ".join([*self._arguments, "ptr noalias %ctx"])
        scope = "" if self.kind.root else "internal "
        head = f"define {scope}i32 @{self.symbol}({args}) #1 {{"
        return "\n".join([head, "entry:", *self.entry, *self.lines, "}"]) + "\n"

    # ------------------------------------------------------------ blocks

    def _choose_gate(self) -> None:
        """Go on at the gate that the context names."""
        gates = sorted(g for g in self.flow.gates if g not in self.flow.apart)
        ways = []
        for gate in gates:
            label = self.fresh("gate")
            ways.append((gate, label))
        wanted = self.load("i64", self.field(context.PC))
        cases = " ".join(f"i64 {gate}, label %{label}" for gate, label in ways)
        self.line(f"switch i64 {wanted}, label %{ways[0][1]} [ {cases} ]")
        for gate, label in ways:
            self.label(label)
            self.goto(0, gate)

    def goto(self, copy: int, target: int) -> None:
        """End the block by going on at a leader."""
        to = self.flow.copy(self.around, copy, target)
        key = (to, target)
        if key not in self._seen:
            self._seen.add(key)
            self._todo.append(key)
        self.jump(f"b{to}_{target}")

    def _block(self, copy: int, start: int) -> None:
        """One leader's block: up to the next jump, or to what is not compiled."""
        self.label(f"b{copy}_{start}")
        if start in self.flow.gates and self.needs[start]:
            self._gate(start)
            if start - 1 not in self.loops:
                self.remind(start)
        self.straight(start, lambda target, back: self._onward(copy, target, back))

    def _onward(self, copy: int, target: int, falling: bool) -> None:
        """Go on at a leader; a loop that is fallen into may be one that needs few checks."""
        loop = self.loops.get(target - 1) if falling else None
        if loop is not None:
            self._enter(loop, copy)
        else:
            self.goto(copy, target)

    def _gate(self, start: int) -> None:
        """Leave at a gate if there are not ticks enough to the next ones."""
        spent, going = self.fresh("spent"), self.fresh("go")
        left = self.load("i64", self.ticks)
        self.fork(self.compare("slt", "i64", left, str(self.needs[start])), spent, going, COLD)
        self._tail += [
            f"{spent}:",
            f"  store i64 {start}, ptr {self.position}",
            f"  store i32 {context.SPENT}, ptr {self.how}",
            "  br label %stop",
        ]
        self.label(going)

    def straight(self, start: int, onward: Callable[[int, bool], None]) -> None:
        """Instructions from a leader on, and the jump that ends them."""
        flow, pc, done = self.flow, start, 0
        while True:
            if pc != start and pc in flow.leaders:
                self.count(done)
                self.along(Edge(start, pc, FALLS, pc))
                onward(pc, True)
                return
            if pc in self.code.traps:
                print_traps(self, pc, self.way_out(pc, done))
            if pc == len(self.code):
                self.count(done)
                self._finish()
                return
            instr = self.code.instrs[pc]
            self.leaving(self.way_out(pc, done))
            if pc in flow.apart:
                self.jump(self.way_out(pc, done)())
                return
            if pc in flow.calls:
                self.call(pc, done)
                self.along(Edge(start, pc, RETURNS, pc + 1))
                onward(pc + 1, False)
                return
            if pc in self.choices:
                print_choice(self, pc, self.choices[pc], done, onward)
                return
            if instr.op == "br":
                self._branch(pc, done, onward)
                return
            self.perform(pc)
            done += 1
            pc += 1

    def beyond(
        self, target: int, onward: Callable[[int, bool], None], known: Mapping[Expr, bool]
    ) -> None:
        """Go on at a leader; if it is one end of a jump only, it is printed once more here.

        What is known of conditions often answers it.
        """
        if not self.flow.is_join(target):
            onward(target, False)
            return

        def forgetting(on: int, falling: bool) -> None:
            self.known = {}
            onward(on, falling)

        self.known = known
        self.straight(target, forgetting)

    # What a subclass may count.

    def perform(self, pc: int) -> None:
        """Print the instruction at `pc`, which is no jump and no call."""
        listen()
        self.instruction(self.code.stmts(pc), self.code.clashes(pc))

    def along(self, edge: Edge, times: str = "1") -> None:
        """A straight piece has been done, and a run goes on along this edge, or `times` is 0."""

    def entering(self, pc: int) -> list[str]:
        """What stands before the call at `pc`, which may be trouble; more arguments for it."""
        return []

    def unreturned(self, pc: int, entered: str) -> None:
        """The call at `pc` has not returned; `entered` are the ticks left behind its entry."""

    def returned(self, pc: int, entered: str, left: str) -> None:
        """The call at `pc` has returned, with so many ticks left."""

    def aside(self, *lines: str) -> None:
        """Add lines behind all blocks."""
        self._tail.extend(lines)

    def count(self, ticks: int | str) -> None:
        """Count ticks as done."""
        if ticks:
            left = self.op(f"sub i64 {self.load('i64', self.ticks)}, {ticks}")
            self.store("i64", left, self.ticks)

    def way_out(self, pc: int, done: int) -> Callable[[], str]:
        """The way out at an instruction of which nothing is done yet."""
        made: list[str] = []

        def label() -> str:
            if not made:
                name, left, rest = self.fresh("out"), self.fresh("x"), self.fresh("x")
                made.append(name)
                self._tail.extend(
                    [
                        f"{name}:",
                        f"  %{left} = load i64, ptr {self.ticks}",
                        f"  %{rest} = sub i64 %{left}, {done}",
                        f"  store i64 %{rest}, ptr {self.ticks}",
                        f"  store i64 {pc}, ptr {self.position}",
                        f"  store i32 {context.STOPPED}, ptr {self.how}",
                        "  br label %stop",
                    ]
                )
            return made[0]

        return label

    def _branch(self, pc: int, done: int, onward: Callable[[int, bool], None]) -> None:
        stmt = cast(Branch, self.code.stmts(pc)[0])
        landing = cast(Land, self.code.stmts(stmt.partner)[0])
        taken, not_taken = self.fresh("taken"), self.fresh("falls")
        self.fork(cast(str, self.value(stmt.cond)), taken, not_taken)
        self.label(taken)
        trusted = self._fast is not None and pc in self._fast.trusted
        if self.checks and not trusted and landing.cond != stmt.cond:
            holds = cast(str, self.value(landing.cond))
            if holds != "true":
                self.trouble(self.op(f"xor i1 {holds}, true"))
        self.count(done + 1)
        self.along(Edge(pc - done, pc, JUMPS, stmt.partner + 1))
        onward(stmt.partner + 1, False)
        self.label(not_taken)
        self.count(done + 1)
        self.along(Edge(pc - done, pc, FALLS, pc + 1))
        onward(pc + 1, False)

    def _finish(self) -> None:
        """The end of the code."""
        if self.kind.root:
            self.store("i64", str(len(self.code)), self.position)
            self.store("i32", str(context.DONE), self.how)
            self.jump("stop")
            return
        for k in sorted(self.changed):
            t = self.function.registers[k].type
            if isinstance(t, Scalar):
                for part, pointer in enumerate(self.scalars[k]):
                    self._fetch(variable_types(t)[part], pointer, f"%a{k}p{part}")
        self._settle()
        self.line(f"ret i32 {context.DONE}")

    # ------------------------------------------------------------ calls

    def call(self, pc: int, done: int) -> None:
        """A call: see `rvm.emit.llvm.calls`."""
        from rvm.emit.llvm.calls import print_call

        print_call(self, pc, done)


__all__ = ["FunctionPrinter"]
