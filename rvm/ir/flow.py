"""The shape of code for compiling: blocks, where ticks are counted, and copies for late entries.

Positions are between instructions.  A *leader* is the beginning of a basic block.  A *gate* is a
leader at which a run checks whether it has enough ticks to reach the next gates: the beginning, the
head of each loop, and the positions after a loop, a call, or an instruction that is not compiled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rvm.image import Code

FALLS, JUMPS, RETURNS = "falls", "jumps", "returns"
"""The end of a basic block: falling through, a jump, or the return of a call."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from a leader to another through one basic block.

    `last` is the jump or the call that ends the piece, or the target if nothing does.
    """

    start: int
    last: int
    how: str
    target: int


@dataclass(frozen=True, slots=True)
class Cycle:
    """A backward jump: from the branch at `back` to after the come-from at `head`."""

    head: int
    back: int

    def holds(self, position: int) -> bool:
        """Whether a position is inside an iteration, not at its beginning."""
        return self.head + 1 < position <= self.back


class Flow:
    """The jumps of a code, as needed by printers.

    `apart` are instructions that are not compiled, `calls` those that are calls, `entries` where
    else a run may begin.  `last` is what coming to the code's end costs: the tick of the return
    from a call.
    """

    def __init__(
        self,
        code: Code,
        apart: Collection[int],
        calls: Collection[int],
        entries: Collection[int] = (),
    ) -> None:
        self.code = code
        self.apart = frozenset(apart)
        self.calls = calls
        n = len(code)
        leaders, gates = {0, n, *entries}, {0}
        self.cycles: list[Cycle] = []
        for pc, instr in enumerate(code.instrs):
            if instr.op == "br":
                leaders |= {pc + 1, instr.aux + 1}
                if instr.aux < pc:
                    gates |= {pc + 1, instr.aux + 1}
                    self.cycles.append(Cycle(instr.aux, pc))
            elif pc in apart:
                leaders |= {pc, pc + 1}
                gates.add(pc + 1)
            elif pc in calls:
                leaders.add(pc + 1)
                gates.add(pc + 1)
        self.leaders = frozenset(leaders)
        self.gates = frozenset(gates)
        self._needs: dict[int, dict[int, int]] = {}

    def around(self, position: int) -> tuple[Cycle, ...]:
        """The active loops at a position, outermost first."""
        found = [c for c in self.cycles if c.holds(position)]
        return tuple(sorted(found, key=lambda c: (c.head - c.back, c.head)))

    def copy(self, around: tuple[Cycle, ...], copy: int, target: int) -> int:
        """The copy of the code that a jump to `target` goes to, from copy number `copy`.

        Copy 0 is the ordinary code.  Copy k is that in which the first k loops of `around` are in
        an iteration that was begun in its middle.  As a loop's head is only ever entered in front
        of a whole iteration, every copy is made of proper loops, which optimise well.
        """
        for k in range(copy):
            if not around[k].holds(target):
                return k
        return copy

    def edges(self) -> Iterator[Edge]:
        """All edges, by their starts."""
        for start in sorted(self.leaders - {len(self.code)}):
            pc = start
            while pc == start or pc not in self.leaders:
                instr = self.code.instrs[pc]
                if pc in self.apart:
                    break
                if pc in self.calls:
                    yield Edge(start, pc, RETURNS, pc + 1)
                    break
                if instr.op == "br":
                    yield Edge(start, pc, JUMPS, instr.aux + 1)
                    yield Edge(start, pc, FALLS, pc + 1)
                    break
                pc += 1
            else:
                yield Edge(start, pc, FALLS, pc)

    def needs(self, last: int) -> dict[int, int]:
        """For each leader the most ticks from there to the next gates."""
        found = self._needs.get(last)
        if found is None:
            found = {}
            for leader in sorted(self.leaders, reverse=True):
                found[leader] = self._need(leader, found, last)
            # Only now: other threads may ask as well.
            self._needs[last] = found
        return found

    def _need(self, leader: int, known: dict[int, int], last: int) -> int:
        pc, ticks = leader, 0
        while True:
            if pc != leader and pc in self.leaders:
                return ticks + self._rest(pc, known)
            if pc == len(self.code):
                return ticks + last
            if pc in self.apart:
                return ticks
            instr = self.code.instrs[pc]
            if instr.op == "br":
                ways = (self._rest(t, known) for t in (pc + 1, instr.aux + 1))
                return ticks + 1 + max(ways)
            if pc in self.calls:
                # Into the call; the callee's end has the tick of the return.
                return ticks + 1
            ticks += 1
            pc += 1

    def _rest(self, target: int, known: dict[int, int]) -> int:
        # A backward jump goes to a gate, so what is not a gate lies ahead and is known.
        return 0 if target in self.gates else known[target]
