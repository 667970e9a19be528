"""The generated source of a function: its blocks, with whole loops and conditionals.

A run begins at a gate, and `block` selects the next block.  Ticks are counted down in `n`: a basic
block subtracts its ticks at its end.  For each line that does something, the source records the
position to which a run is taken back if it raises, the number of ticks that were executed but not
yet counted there, and whether it has raised because the ticks were used up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rvm.emit.python.function import PythonMaker
from rvm.emit.python.lines import PRINTED, bare
from rvm.emit.python.printer import Printer
from rvm.engines.support import SUPPORT
from rvm.host.signals import listen
from rvm.image import Code
from rvm.ir.context import SPENT
from rvm.ir.function import label_of
from rvm.ir.node import Node
from rvm.ir.structure import MAX_DEPTH, Again, Choice, Jumping, Loop, Pieces, Structure, height
from rvm.ir.typed import Unprintable
from rvm.isa import VARIADIC
from rvm.numbers.support import NAMES
from rvm.types import Array

Way = tuple[int, int, int]
"""The exit of a run: the position, ticks not yet counted there, and the way of leaving."""
Line = tuple[int, str, Way | None]
"""The depth of a line, its text, and where a run is left if it raises."""


class Source:
    """The generated source of one function in one direction."""

    parameters = "regs, block, n, state"
    """The parameters of the generated function."""
    support: ClassVar[dict[str, object]] = SUPPORT
    """The names that the source may use besides the number systems' functions."""
    counts = False
    """Whether the source counts what it executes."""

    def __init__(self, code: Code, strict: int) -> None:
        self.code = code
        self.strict = strict
        self.printer = Printer(code.function, (*NAMES, *self.support))
        self.lines_of: dict[int, tuple[int, int, bool]] = {}
        """For lines that may raise: position, ticks done but not counted, whether all are spent."""
        self._temps = 0
        lines = {}
        for pc, instr in enumerate(code.instrs):
            listen()
            if instr.op == "br" or instr.op in VARIADIC:
                continue
            try:
                lines[pc] = self._instruction(pc)
            except Unprintable:
                continue
            self._temps = max(self._temps, self.printer.text.temps)
        builder = self.printer.builder
        PythonMaker(builder, code, lines, self.counts).make()
        self.blocks = {block.label: block.items for block in builder.blocks}
        self.flow = builder.flow
        self.entries = self.flow.gates - self.flow.apart - {len(code)}
        """The entry points of runs."""
        self.structure = Structure(code, self.flow)
        self._out: list[Line] = []
        self._arms: list[int] = []
        """The leaders that a run reaches through `block`."""
        self._printed: dict[str, tuple[list[Line], Node]] = {}
        self._conditions: dict[Node, tuple[str, Way | None]] = {}
        """For forks: their conditions, and the exit of a run if these raise."""
        self._text = ""

    def _instruction(self, pc: int) -> list[str]:
        code = self.code
        way = code.logging(pc, self.strict)
        stmts = code.logged(pc, way)
        rounding = pc if self.counts and not way and code.rounds(pc) else None
        return self.printer.instruction(stmts, code.clashes(pc), code.notes(pc), way, rounding)

    # ------------------------------------------------------------ text

    def text(self) -> str:
        """The source, printed at first use."""
        if not self._text:
            self._text = "".join(self._numbered())
        return self._text

    def _numbered(self) -> Iterable[str]:
        for number, (depth, text, way) in enumerate(self._lines(), 1):
            if way is not None:
                self.lines_of[number] = way[0], way[1], way[2] == SPENT
            yield f"{'    ' * depth}{text}\n"

    def _lines(self) -> Sequence[Line]:
        """All lines."""
        arms = self._all_arms()
        regs = self.printer.regs
        registers = self.code.function.registers
        self._out = []
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
        self._block(1, "entry")
        self._line(1, "try:")
        self._line(2, "while True:")
        self._tree(3, sorted(arms), arms)
        self._line(1, "except REFUSALS as error:")
        # What comes from between instructions is not of this code's making.
        self._line(2, "if error.__traceback__.tb_lineno not in LINES: raise")
        self._line(2, "block, done, spent = LINES[error.__traceback__.tb_lineno]")
        self._line(2, "n -= done")
        self._block(1, "stop")
        self._line(1, f"regs[:] = ({''.join(r + ', ' for r in regs)})")
        self._line(1, "return n, block, spent")
        return self._out

    def _line(self, depth: int, text: str, way: Way | None = None) -> None:
        self._out.append((depth, text, way))

    def _tree(self, depth: int, starts: list[int], arms: dict[int, list[Line]]) -> None:
        """Find the block by halving; printing stays shallow for Python's own limits."""
        if len(starts) > 8 and depth < 16:
            half = len(starts) // 2
            self._line(depth, f"if block < {starts[half]}:")
            self._tree(depth + 1, starts[:half], arms)
            self._line(depth, "else:")
            self._tree(depth + 1, starts[half:], arms)
            return
        for k, start in enumerate(starts):
            self._line(depth, f"{'if' if k == 0 else 'elif'} block == {start}:")
            self._out += [(depth + 1 + more, text, way) for more, text, way in arms[start]]
        if starts:
            self._line(depth, "else:")
            depth += 1
        self._line(depth, "spent = False; break")

    # ------------------------------------------------------------ from block to block

    def _all_arms(self) -> dict[int, list[Line]]:
        """The lines of all leaders that a run reaches through `block`."""
        arms: dict[int, list[Line]] = {}
        self._arms = sorted(self.entries, reverse=True)
        while self._arms:
            start = self._arms.pop()
            if start not in arms:
                listen()
                arms[start] = self._out = []
                loop = self.structure.loop(start)
                if loop is None:
                    self._arm(0, start, frozenset())
                else:
                    self._loop(0, loop)
                    self._go(0, loop.cycle.back + 1)
        return arms

    def _arm(self, depth: int, at: int, before: frozenset[int]) -> None:
        """The code from a leader on, up to where a run continues through `block`.

        The blocks of the leaders in `before` have been executed.
        """
        while True:
            match self.structure.ways[at]:
                case []:
                    self._leave(depth, self._block(depth, label_of(at)).aux)
                    return
                case [way]:
                    self._straight(depth, at)
                    before, at = before | {at}, way.target
                case [jumped, fallen]:
                    try:
                        choice, end = self._small(at)
                    except Jumping:
                        yes, no = self._fork(depth, at)
                        self._block(depth + 1, yes)
                        self._onward(depth + 1, jumped.target, before | {at})
                        self._line(depth, "else:")
                        self._block(depth + 1, no)
                        self._onward(depth + 1, fallen.target, before | {at})
                        return
                    self._choice(depth, choice)
                    before, at = before.union(range(at, end)), end
            if not self._is_only_behind(at, before):
                self._go(depth, at)
                return

    def _onward(self, depth: int, at: int, before: frozenset[int]) -> None:
        """Continue within the code from a leader on."""
        if depth < MAX_DEPTH and self._is_only_behind(at, before):
            self._arm(depth, at, before)
        else:
            self._go(depth, at)

    def _is_only_behind(self, leader: int, before: frozenset[int]) -> bool:
        """Whether a run reaches a leader only from some others."""
        return leader not in self.flow.gates and self.structure.before[leader] <= before

    def _small(self, leader: int) -> tuple[Choice, int]:
        """A choice that holds no gates, and where it ends: else its lines would be many."""
        choice, end = self.structure.choice(leader)
        gates = self.flow.gates.intersection(range(leader + 1, end))
        if gates or height((choice,)) > MAX_DEPTH:
            raise Jumping
        return choice, end

    def _go(self, depth: int, leader: int) -> None:
        """Continue at a leader."""
        outside = leader in self.flow.apart or leader == len(self.code)
        if outside and leader not in self.code.traps:
            self._line(depth, f"block = {leader}; spent = False; break")
        else:
            self._line(depth, f"block = {leader}")
            self._arms.append(leader)

    def _leave(self, depth: int, way: Way) -> None:
        position, done, _ = way
        if done:
            self._line(depth, f"n -= {done}")
        self._line(depth, f"block = {position}; spent = False; break")

    # ------------------------------------------------------------ pieces

    def _pieces(self, depth: int, pieces: Pieces) -> None:
        for piece in pieces:
            match piece:
                case Loop():
                    self._loop(depth, piece)
                case Choice():
                    self._choice(depth, piece)
                case Again(leader):
                    yes, no = self._fork(depth, leader, negated=True)
                    if self.counts:
                        self._block(depth + 1, no)
                        self._line(depth + 1, "break")
                    else:
                        self._end_with("break")
                    self._block(depth, yes)
                case _:
                    self._straight(depth, piece.leader)

    def _loop(self, depth: int, loop: Loop) -> None:
        """A whole loop."""
        self._line(depth, "while True:")
        self._pieces(depth + 1, loop.body)

    def _choice(self, depth: int, choice: Choice) -> None:
        """A whole choice."""
        yes, no = self._fork(depth, choice.leader)
        begun = len(self._out)
        self._block(depth + 1, yes)
        self._pieces(depth + 1, choice.jumped)
        if len(self._out) > begun:
            self._line(depth, "else:")
        else:
            self._out.pop()
            self._fork_line(depth, choice.leader, negated=True)
        begun = len(self._out)
        self._block(depth + 1, no)
        self._pieces(depth + 1, choice.fallen)
        if len(self._out) == begun:
            self._line(depth + 1, "pass")

    def _straight(self, depth: int, leader: int) -> None:
        """A block with a single successor."""
        last = self._block(depth, label_of(leader))
        if last.aux != label_of(self.structure.ways[leader][0].target):
            # A jump that is always made, or never.
            self._block(depth, last.aux)

    def _end_with(self, text: str) -> None:
        """A statement behind the one before, in its line."""
        depth, before, way = self._out.pop()
        self._line(depth, f"{before} {text}", way)

    def _fork(self, depth: int, leader: int, negated: bool = False) -> tuple[str, str]:
        """A block up to its branch; the labels of the targets if it jumps, and if it does not."""
        last = self._block(depth, label_of(leader))
        self._fork_line(depth, leader, negated)
        yes, no, _ = last.aux
        return yes, no

    def _fork_line(self, depth: int, leader: int, negated: bool) -> None:
        text, way = self._conditions[self._printed[label_of(leader)][1]]
        self._line(depth, f"if not {text}:" if negated else f"if {bare(text)}:", way)

    def _block(self, depth: int, label: str) -> Node:
        """The lines of a block; how it ends."""
        if label not in self._printed:
            outer, self._out = self._out, []
            self._printed[label] = self._out, self._print(self.blocks[label])
            self._out = outer
        lines, last = self._printed[label]
        self._out += [(depth + more, text, way) for more, text, way in lines]
        return last

    def _print(self, items: Sequence[Node]) -> Node:
        begun, way = 0, None
        for k, node in enumerate(items):
            match node.op:
                case "begin" | "way":
                    self._items(items[begun:k], way)
                    begun, way = k + 1, node.aux if node.op == "way" else node.aux[1]()
                case "trouble" if way is None:
                    way = node.aux
                case "jump" | "fork":
                    self._items(items[begun:k], way, node.args)
                    if node.args:
                        self._conditions[node] = self.printer.text.text(node.args[0]), way
                    return node
        self._items(items[begun:], way)
        return Node("end", "", (), None)

    def _items(self, items: Sequence[Node], way: Way | None, results: Sequence[Node] = ()) -> None:
        """The lines of an instruction."""
        text = self.printer.text
        if not results and all(node.op in PRINTED for node in items):
            for node in items:
                if node.op == "text":
                    lines, filed = node.aux
                    self._out += [(0, line, way if filed else None) for line in lines]
            return
        text.begin()
        text.temps = self._temps
        text.print(items, *results)
        done = len(text.lines) if text.done is None else text.done
        for k, line in enumerate(text.lines):
            self._line(0, line, way if k < done else None)
