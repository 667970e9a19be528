"""The generated source of a function: blocks, whole loops, and the ticks they take.

Ticks are counted down in `n`: straight code subtracts what it did at its end, and
each line is filed with the instruction it belongs to and the ticks that were done
but not yet counted there, so that an exception finds the exact position and time.
"""

from __future__ import annotations

from typing import ClassVar

from rvm.accounts.counts import DONE, JUMP, Mark
from rvm.emit.python.printer import Printer
from rvm.engines.blocks import If, Loop, Shape
from rvm.engines.support import SUPPORT
from rvm.expr import Const, Expr, places
from rvm.host.signals import listen
from rvm.image import Code
from rvm.image.traps import Changed, Guard
from rvm.ir.typed import Unprintable
from rvm.isa import VARIADIC
from rvm.numbers.support import NAMES
from rvm.stmt import Branch, Land
from rvm.types import BOOL, Array


class Source:
    """The generated source of one function in one direction."""

    parameters = "regs, block, n, state"
    """Those of the generated function."""
    support: ClassVar[dict[str, object]] = SUPPORT
    """What the source may name beside the number systems' functions."""

    logs = True
    """Whether the source uses the strict log itself."""

    def __init__(self, code: Code, strict: int) -> None:
        self.code = code
        self.strict = strict
        self.printer = Printer(code.function, (*NAMES, *self.support))
        self.lines_of: dict[int, tuple[int, int]] = {}
        """For a source line: the instruction it belongs to, ticks done but not yet counted."""
        self.guards: set[int] = set()
        """Source lines of traps' guards: what raises there is no instruction's fault."""
        self.plain: dict[int, list[str]] = {}
        self.apart: set[int] = set()
        """Instructions that are left to the reference engine."""
        for pc, instr in enumerate(code.instrs):
            listen()
            if instr.op == "br":
                self.printer.look_at(*code.instrs[pc].args, *code.instrs[instr.aux].args)
                continue
            if instr.op in VARIADIC or (not self.logs and code.logging(pc, strict)):
                self.apart.add(pc)
                continue
            try:
                self.plain[pc] = self._instruction(pc)
            except Unprintable:
                self.apart.add(pc)
        self.shape = Shape(code, self.apart, frozenset(code.traps))
        self._out: list[str] = []
        self._uncounted = 0
        self._text = ""

    def _instruction(self, pc: int) -> list[str]:
        code = self.code
        way = code.logging(pc, self.strict)
        stmts = code.logged(pc, way)
        return self.printer.instruction(stmts, code.clashes(pc), code.notes(pc), way)

    # ------------------------------------------------------------ text

    def text(self) -> str:
        """The source, printed at first use."""
        if not self._text:
            self._print()
            self._text = "\n".join(self._out) + "\n"
        return self._text

    def _line(self, depth: int, text: str, pc: int = -1) -> None:
        self._out.append("    " * depth + text)
        if pc >= 0:
            self.lines_of[len(self._out)] = (pc, self._uncounted)

    def _print(self) -> None:
        regs = self.printer.regs
        registers = self.code.function.registers
        self._line(0, f"def run({self.parameters}):")
        if regs:
            self._line(1, f"{', '.join(regs)}, = regs")
        for k in sorted(self.printer.elements):
            name, t = regs[k], registers[k].type
            assert isinstance(t, Array)
            test = "" if k < self.code.function.n_args else f" if {name} is not None else None"
            self._line(1, f"{name}_m = memoryview({name}){test}")
        if self.printer.builder.asks_exactly:
            self._line(1, "exactly = state.options.tolerance == 0")
        self._begin(1)
        self._line(1, "try:")
        self._line(2, "while True:")
        traps, end = self.code.traps, len(self.code)
        starts = [p for p in self.shape.leaders if p in traps or (p not in self.apart and p < end)]
        self._tree(3, starts)
        self._line(1, "except Exception as error:")
        # What comes from between instructions is not of this code's making.
        self._line(2, "if error.__traceback__.tb_lineno not in LINES: raise")
        self._line(2, "block, done = LINES[error.__traceback__.tb_lineno]")
        self._line(2, "n -= done")
        self._failed(2)
        self._line(2, "how = error.__traceback__.tb_lineno not in GUARDS" if traps else "how = 1")
        self._save(1)
        self._line(1, "return n, block, how")

    # What a subclass may count: straight pieces begun, jumps taken or not.

    def _bump(self, *marks: Mark) -> str:
        """A statement that counts what now comes true; here none."""
        return ""

    def _mark(self, depth: int, *marks: Mark) -> None:
        text = self._bump(*marks)
        if text:
            self._line(depth, text)

    def _follow(self, depth: int, mark: Mark) -> None:
        """Count what comes true as often as what stands before it."""
        self._mark(depth, mark)

    def _begin(self, depth: int) -> None:
        """What comes before the first block."""

    def _failed(self, depth: int) -> None:
        """What is to be done where an instruction was given up."""

    def _save(self, depth: int) -> None:
        self._line(depth, f"regs[:] = ({''.join(r + ', ' for r in self.printer.regs)})")

    def _tree(self, depth: int, starts: list[int]) -> None:
        """Find the block by halving; printing stays shallow for Python's own limits."""
        if len(starts) > 8 and depth < 16:
            half = len(starts) // 2
            self._line(depth, f"if block < {starts[half]}:")
            self._tree(depth + 1, starts[:half])
            self._line(depth, "else:")
            self._tree(depth + 1, starts[half:])
            return
        for k, start in enumerate(starts):
            self._line(depth, f"{'if' if k == 0 else 'elif'} block == {start}:")
            self._block(depth + 1, start)
        if not starts:
            self._line(depth, "how = 1; break")
            return
        self._line(depth, "else:")
        self._line(depth + 1, "how = 1; break")

    # ------------------------------------------------------------ blocks

    def _block(self, depth: int, start: int) -> None:
        """One leader's block: up to the next jump, or the next instruction set apart."""
        listen()
        shape, code = self.shape, self.code
        if start in self.apart or start == len(code):
            self._trap(depth, start)
            self._line(depth, f"how = 1; block = {start}; break")
            return
        ends = [p for p in shape.leaders if p > start]
        outer = self._loop_body(start)
        if outer is not None:
            self._loop(depth, outer)
            self._line(depth, f"block = {outer.back + 1}")
            self._line(depth, "continue")
            return
        stop = ends[0] if ends else len(code)
        cost = stop - start
        pc = start
        self._uncounted = 0
        self._line(depth, f"if n < {max(cost, 1)}: how = 0; block = {start}; break")
        while pc < stop:
            if code.instrs[pc].op == "br":
                self._trap(depth, pc)
                self._flush(depth, 1)
                self._jump(depth, pc)
                return
            self._plain(depth, pc)
            pc += 1
        self._flush(depth)
        self._line(depth, f"block = {stop}")
        if stop in code.traps:
            return
        if stop in self.apart or stop == len(code):
            self._line(depth, "how = 1; break")
        elif stop not in shape.leaders:
            raise AssertionError(f"a block ends at {stop}, which is not a leader")

    def _loop_body(self, start: int) -> Loop | None:
        """The whole loop whose body begins at `start`, if there is one."""
        piece = self.shape.structure.get(start - 1)
        if isinstance(piece, Loop) and start - 1 in self.shape.whole:
            return piece
        return None

    def _trap(self, depth: int, pc: int) -> None:
        """Leave before the instruction at `pc` if a trap there is due."""
        for k, trap in enumerate(self.code.traps.get(pc, ())):
            self._uncounted, counted = 0, self._uncounted
            first = len(self._out) + 1
            text = self._guard(depth, pc, k, trap.guard)
            saved = "".join(r + ", " for r in self.printer.regs)
            left = f"n - {counted}" if counted else "n"
            self._line(depth, f"if {text}: regs[:] = ({saved}); return {left}, {pc}, 0", pc)
            self._uncounted = counted
            for line in range(first, len(self._out) + 1):
                self.lines_of[line] = (pc, counted)
                self.guards.add(line)

    def _guard(self, depth: int, pc: int, k: int, guard: Guard) -> str:
        """A guard as a condition; True where the source can't tell."""
        name = f"_trap_{pc}_{k}"
        if isinstance(guard, Changed):
            self.printer.constants[name] = guard.cell
            if guard.element is not None:
                self.printer.constants[f"{name}_item"] = guard.element[0].item
                return f"{name}_item() != {name}[0]"
            if guard.place is None:
                self.printer.constants[f"{name}_look"] = guard.holds
                return f"{name}_look(())"
            return f"{self._condition(depth, pc, guard.place)} != {name}[0]"
        if guard is None:
            return "True"
        first = len(self._out)
        try:
            text = self._condition(depth, pc, guard)
        except Unprintable:
            del self._out[first:]
            return "True"
        local = sorted({p.reg for p in places(guard)} - set(range(self.code.function.n_args)))
        return "".join(f"{self.printer.regs[r]} is None or " for r in local) + text

    def _plain(self, depth: int, pc: int) -> None:
        self._trap(depth, pc)
        for line in self.plain[pc]:
            self._line(depth, line, pc)
        self._uncounted += 1

    def _flush(self, depth: int, more: int = 0) -> None:
        """Count the ticks done so far, and `more` that are about to be.

        Should one of those fail, it was counted too early: hence the negative number.
        """
        if self._uncounted + more:
            self._line(depth, f"n -= {self._uncounted + more}")
        self._uncounted = -more

    def _jump(self, depth: int, pc: int) -> None:
        """A branch at the end of a block."""
        stmt = self.code.stmts(pc)[0]
        assert isinstance(stmt, Branch)
        self._line(depth, f"if {self._condition(depth, pc, stmt.cond)}:", pc)
        self._landing(depth + 1, pc, stmt)
        self._mark(depth + 1, (pc, JUMP, 1))
        self._line(depth + 1, f"block = {stmt.partner + 1}")
        self._line(depth, "else:")
        self._mark(depth + 1, (pc, DONE, 1))
        self._line(depth + 1, f"block = {pc + 1}")
        self._uncounted = 0
        self._line(depth, "continue")

    def _landing(self, depth: int, pc: int, stmt: Branch) -> None:
        """The check of the come-from's condition when its branch is taken."""
        landing = self.code.stmts(stmt.partner)[0]
        assert isinstance(landing, Land)
        if landing.cond == stmt.cond or landing.cond == Const(True, BOOL):
            return
        text = self._condition(depth, pc, landing.cond)
        self._line(depth, f"if not {text}: trouble()", pc)

    def _condition(self, depth: int, pc: int, cond: Expr) -> str:
        """A condition as an expression, what it needs printed before it."""
        lines, text = self.printer.condition(cond)
        for line in lines:
            self._line(depth, line, pc)
        return text

    # ------------------------------------------------------------ whole pieces

    def _loop(self, depth: int, loop: Loop) -> None:
        """A whole loop, from the beginning of its body to after its branch."""
        cost = loop.back - loop.head
        self._uncounted = 0
        # Every passing of the body's begin comes from outside or by the branch back.
        self._mark(depth, (loop.back, JUMP, -1))
        self._line(depth, "while True:")
        left = self._bump((loop.back, JUMP, 1))
        self._line(depth + 1, f"if n < {cost}: {_both(left, self._leave(loop.head + 1))}")
        self._mark(depth + 1, (loop.back, JUMP, 1))
        self._sequence(depth + 1, loop.head + 1, loop.back, 1)
        self._trap(depth + 1, loop.back)
        self._flush(depth + 1, 1)
        stmt = self.code.stmts(loop.back)[0]
        assert isinstance(stmt, Branch)
        text = self._condition(depth + 1, loop.back, stmt.cond)
        fell = self._bump((loop.back, DONE, 1))
        self._line(depth + 1, f"if not {text}: {_both(fell, 'break')}", loop.back)
        self._landing(depth + 1, loop.back, stmt)
        self._uncounted = 0

    def _leave(self, pc: int) -> str:
        """Return from inside nested loops, to be resumed at the leader `pc`."""
        saved = "".join(r + ", " for r in self.printer.regs)
        return f"regs[:] = ({saved}); return n, {pc}, 0"

    def _sequence(self, depth: int, lo: int, hi: int, after: int) -> None:
        """Plain instructions and whole pieces, lo … hi-1.

        `after` is the most ticks from there to where `n` is looked at again.
        """
        pc = lo
        while pc < hi:
            piece = self.shape.structure.get(pc)
            if piece is None:
                self._plain(depth, pc)
                pc += 1
                continue
            if isinstance(piece, Loop):
                self._plain(depth, pc)
                self._flush(depth)
                self._loop(depth, piece)
            else:
                self._branching(depth, piece, hi - self.shape.end(piece) + after)
            pc = self.shape.end(piece)
            if isinstance(piece, Loop):
                # An inner loop has used ticks: what follows needs enough of them again.
                self._line(depth, f"if n < {hi - pc + after}: {self._leave(pc)}")

    def _branching(self, depth: int, piece: If, after: int) -> None:
        """An if: the branch is taken past the first part, into the other or to the join."""
        stmt = self.code.stmts(piece.test)[0]
        assert isinstance(stmt, Branch)
        self._trap(depth, piece.test)
        self._flush(depth, 1)
        text = self._condition(depth, piece.test, stmt.cond)
        self._line(depth, f"if {text}:", piece.test)
        self._line(depth + 1, "pass")
        self._landing(depth + 1, piece.test, stmt)
        self._mark(depth + 1, (piece.test, JUMP, 1))
        self._uncounted = 0
        if piece.other >= 0:
            self._part(depth + 1, piece.other + 1, piece.join, after)
        self._line(depth, "else:")
        self._mark(depth + 1, (piece.test, DONE, 1))
        if piece.other < 0:
            self._part(depth + 1, piece.test + 1, piece.join, after)
            return
        skip = piece.other - 1
        self._sequence(depth + 1, piece.test + 1, skip, after + 1)
        self._trap(depth + 1, skip)
        self._flush(depth + 1, 1)
        stmt = self.code.stmts(skip)[0]
        assert isinstance(stmt, Branch)
        self._landing(depth + 1, skip, stmt)
        self._follow(depth + 1, (skip, JUMP, 1))
        self._uncounted = 0

    def _part(self, depth: int, lo: int, join: int, after: int) -> None:
        """A part of an if that ends by falling into the come-from at `join`."""
        self._sequence(depth, lo, join, after + 1)
        self._plain(depth, join)
        self._flush(depth)


def _both(first: str, then: str) -> str:
    """Two simple statements in a line; the first may be missing."""
    return f"{first}; {then}" if first else then
