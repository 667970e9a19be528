"""Generated source that counts: a counter for each straight piece, jump and loop.

A counter is raised where its piece begins.  Where an instruction inside is given up, the line
that failed is noted; from it `rvm.accounts.counts` finds what was counted too early.  Instructions
on arrays also count how often they find which sizes, and those that may erase bits how many they
did.
"""

from __future__ import annotations

from collections.abc import Sequence

from rvm.accounts.counts import DONE, Mark, Marks, sized_of
from rvm.engines.blocks import If, Loop
from rvm.engines.source import Source
from rvm.expr import Expr
from rvm.image import Code
from rvm.isa import MAKES


class CountedSource(Source):
    """The generated source of one function in one direction, with counters.

    `hits` are the counters, `early` how often a line failed; `sizes`, `cells` and `erased` are
    those of a `rvm.accounts.counts.Node`.  Where the sizes stay the same as long as a frame's
    arrays do, an instruction finds its cell once, and then only raises it.
    """

    parameters = "regs, block, n, state, hits, early, sizes, cells, erased"

    def __init__(self, code: Code, strict: int) -> None:
        self.marks = Marks()
        self._current = -1
        """The counter of the straight piece being printed; -1 if it has none yet."""
        self._waiting: list[int] = []
        """The counters of pieces that go on after the ifs being printed."""
        super().__init__(code, strict)

    def _instruction(self, pc: int) -> list[str]:
        lines = super()._instruction(pc)
        sized = sized_of(self.code)
        before: list[str] = []
        after: list[str] = []
        for k in self._depending(pc):
            after.append(f"_c{k} = None")
        if sized.of[pc]:
            found, text = self.printer.sizes(sized.of[pc])
            if sized.steady(pc):
                before.append(f"if _c{pc} is None:")
                before += [f"    {line}" for line in (*found, f"_c{pc} = cells[{pc}][{text}]")]
                after.append(f"_c{pc}[0] += 1")
            elif sized.after(pc):
                after += [*found, f"sizes[{pc}][{text}] += 1"]
            else:
                before += [*found, f"_sizes = {text}"]
                after.append(f"sizes[{pc}][_sizes] += 1")
        if sized.may_erase(pc):
            before.append("_erased = state.account.erased_bits")
            after.append("_erased = state.account.erased_bits - _erased")
            after.append(f"if _erased: erased[{pc}] += _erased")
        return [*before, *lines, *after]

    def _depending(self, pc: int) -> Sequence[int]:
        """The instructions whose cells are no longer theirs when this one has made an array."""
        instr = self.code.instrs[pc]
        if instr.op not in MAKES:
            return ()
        made = instr.args[0].reg  # type: ignore[attr-defined]
        return sized_of(self.code).depending.get(made, ())

    def _begin(self, depth: int) -> None:
        sized = sized_of(self.code)
        for pc in self.plain:
            if sized.of[pc] and sized.steady(pc):
                self._line(depth, f"_c{pc} = None")

    def _condition(self, depth: int, pc: int, cond: Expr) -> str:
        """A jump whose conditions look at arrays is given up: a step counts the sizes it finds."""
        instr, of = self.code.instrs[pc], sized_of(self.code).of
        if instr.op == "br" and (of[pc] or of[instr.aux]):
            return "trouble()"
        return super()._condition(depth, pc, cond)

    # ------------------------------------------------------------ counters

    def _bump(self, *marks: Mark) -> str:
        """A statement that raises a new counter."""
        self.marks.counters.append(list(marks))
        return f"hits[{len(self.marks.counters) - 1}] += 1"

    def _mark(self, depth: int, *marks: Mark) -> None:
        super()._mark(depth, *marks)
        self._current = len(self.marks.counters) - 1

    def _follow(self, depth: int, mark: Mark) -> None:
        if self._current < 0:
            super()._follow(depth, mark)
        else:
            self.marks.counters[self._current].append(mark)

    def _line(self, depth: int, text: str, pc: int = -1) -> None:
        super()._line(depth, text, pc)
        if pc >= 0:
            counters = self.marks.counters
            raised = (k for k in dict.fromkeys((*self._waiting, self._current)) if k >= 0)
            self.marks.lines[len(self._out)] = tuple((k, len(counters[k])) for k in raised)

    def _plain(self, depth: int, pc: int) -> None:
        if self._current < 0:
            self._mark(depth)
        super()._plain(depth, pc)
        self.marks.counters[self._current].append((pc, DONE, 1))

    def _block(self, depth: int, start: int) -> None:
        self._current = -1
        super()._block(depth, start)

    def _loop(self, depth: int, loop: Loop) -> None:
        super()._loop(depth, loop)
        self._current = -1

    def _branching(self, depth: int, piece: If, after: int) -> None:
        before = self._current
        inside = (self.shape.structure.get(pc) for pc in range(piece.test + 1, piece.join))
        if before < 0 or any(isinstance(p, Loop) for p in inside):
            super()._branching(depth, piece, after)
            self._current = -1
            return
        # What stands after an if is passed as often as what stands before it: where a line inside
        # fails, so does that.  Loops inside can be left in other ways.
        self._waiting.append(before)
        super()._branching(depth, piece, after)
        self._current = self._waiting.pop()

    def _failed(self, depth: int) -> None:
        self._line(depth, "early[error.__traceback__.tb_lineno] += 1")
