"""Control flow of a function: positions, their successors, and liveness.

A *position* is where a machine can be: position p is before instruction p, and position n is the
end of n instructions.  A jump never leaves its function and lands after the come-from that names
it, so code cannot be entered in the middle: the only entries are position 0 (forwards) and n
(backwards).

Control passes a `br` whose condition is the constant true only by jumping, and
a `cf` whose condition is the constant true only by landing; edges that a
constant closes do not exist here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rvm.expr import Const, Place
from rvm.isa import ENDS, MAKES
from rvm.program import Function, Instr

MAX_CONFLICTS = 20
"""The number of disagreements between paths that are reported in full."""


def condition(instr: Instr) -> bool | None:
    """The value of a jump's condition if it is a constant."""
    cond = instr.args[0] if instr.args else None
    return bool(cond.value) if isinstance(cond, Const) else None


def paired(code: Sequence[Instr], pc: int) -> bool:
    """Whether the jump at `pc` and the instruction that it names name each other."""
    instr = code[pc]
    if not 0 <= instr.aux < len(code):
        return False
    other = code[instr.aux]
    return other.aux == pc and {instr.op, other.op} == {"br", "cf"}


def falls(code: Sequence[Instr], pc: int) -> bool:
    """Whether control can pass instruction `pc` without a jump."""
    instr = code[pc]
    return instr.op not in ("br", "cf") or condition(instr) is not True


def jumps(code: Sequence[Instr], pc: int) -> bool:
    """Whether the jump with one end at `pc` can be taken."""
    return condition(code[pc]) is not False and condition(code[code[pc].aux]) is not False


def successors(code: Sequence[Instr], position: int) -> tuple[int, ...]:
    """The positions that can follow `position`; the end, n, has none."""
    if position >= len(code):
        return ()
    out: tuple[int, ...] = (position + 1,) if falls(code, position) else ()
    if code[position].op == "br" and paired(code, position) and jumps(code, position):
        out += (code[position].aux + 1,)
    return out


LIVES = frozenset((*MAKES, *ENDS))


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two paths to one position on which different registers are live."""

    position: int
    source: int
    """The position from which the second path comes."""
    differing: frozenset[int]


Visit = Callable[[int, set[int]], None]
"""Called once for each position with the registers live there, which it must not keep."""


@dataclass(slots=True)
class Liveness:
    """The live registers at each position of a function.

    Equal sets are one object, however many positions share it.
    """

    states: list[int]
    """For each position the number of its live set."""
    conflicts: list[Conflict] = field(default_factory=list)
    _parent: list[int] = field(default_factory=list)
    _toggled: list[int] = field(default_factory=list)
    _sets: dict[int, frozenset[int]] = field(default_factory=dict)

    def live(self, position: int) -> frozenset[int]:
        """The registers that are live at `position`."""
        return self._of(self.states[position])

    def _of(self, state: int) -> frozenset[int]:
        chain = []
        while state not in self._sets:
            chain.append(state)
            state = self._parent[state]
        current = self._sets[state]
        if chain:
            changed = set(current)
            for s in reversed(chain):
                changed ^= {self._toggled[s]}
            current = self._sets[chain[0]] = frozenset(changed)
        return current


def liveness(function: Function, visit: Visit | None = None) -> Liveness:
    """Follow `alloc` and `free` along every path through a function, in linear time.

    Paths are followed in both directions, from the start and from the end, since a run may go
    either way.  Code that neither direction reaches is assumed to be entered from above.
    """
    return _Walk(function, visit).run()


class _Walk:
    """A depth-first walk over positions with one live set, updated on the way and restored after.

    Live sets are distinguished by a sum of random keys (Zobrist hashing), drawn anew in each walk,
    so that comparing two is cheap and no file can be made in which different sets collide.
    """

    def __init__(self, function: Function, visit: Visit | None) -> None:
        self.code = function.code
        self.visit = visit
        n = len(function.registers)
        noise = os.urandom(16 * n)
        self.keys = [int.from_bytes(noise[16 * r : 16 * r + 16], "little") for r in range(n)]
        params = [r for r in function.param_slots if r < n]
        self.live = set(params)
        self.hash = 0
        for r in self.live:
            self.hash ^= self.keys[r]
        self.home = self.hash
        self.number = {self.hash: 0}
        self.out = Liveness([-1] * (len(self.code) + 1), [], [-1], [-1], {0: frozenset(self.live)})

    def run(self) -> Liveness:
        code, states = self.code, self.out.states
        self._from(0)
        if states[len(code)] < 0:
            self._from(len(code))
        for position in range(1, len(code)):
            if states[position] < 0:
                self._restore(self.out.live(position - 1))
                self._from(position)
        return self.out

    def _restore(self, live: frozenset[int]) -> None:
        self.live.clear()
        self.live.update(live)
        self.hash = 0
        for r in live:
            self.hash ^= self.keys[r]

    def _toggle(self, reg: int) -> None:
        self.live ^= {reg}
        self.hash ^= self.keys[reg]

    def _from(self, seed: int) -> None:
        """Visit everything connected with `seed`, where the current set is live."""
        states, number = self.out.states, self.number
        todo: list[tuple[int, int, int]] = [(seed, -1, -1)]
        while todo:
            position, reg, source = todo.pop()
            if reg >= 0:
                self._toggle(reg)
            if position < 0:  # the way back over an alloc or free
                continue
            state = number.get(self.hash, -1)
            seen = states[position]
            if seen >= 0:
                if seen != state:
                    self._disagree(position, source, seen)
                if reg >= 0:
                    self._toggle(reg)
                continue
            if state < 0:
                state = number[self.hash] = len(self.out._parent)
                self.out._parent.append(states[source])
                self.out._toggled.append(reg)
            states[position] = state
            if reg >= 0:
                todo.append((-1, reg, -1))
            if self.visit is not None:
                self.visit(position, self.live)
            self._neighbours(position, source, todo)

    def _neighbours(self, p: int, source: int, todo: list[tuple[int, int, int]]) -> None:
        code = self.code
        if p > 0:
            before = code[p - 1]
            if before.op == "cf" and paired(code, p - 1) and jumps(code, p - 1):
                todo.append((before.aux, -1, p))
            if p - 1 != source and falls(code, p - 1):
                todo.append((p - 1, self._change(before, forwards=False), p))
        if p < len(code):
            instr = code[p]
            if instr.op == "br" and paired(code, p) and jumps(code, p):
                todo.append((instr.aux + 1, -1, p))
            if p + 1 != source and falls(code, p):
                todo.append((p + 1, self._change(instr, forwards=True), p))

    def _change(self, instr: Instr, forwards: bool) -> int:
        """The register that passing `instr` makes or drops; -1 if none changes."""
        if instr.op not in LIVES or not instr.args:
            return -1
        place = instr.args[0]
        if not isinstance(place, Place) or not 0 <= place.reg < len(self.keys):
            return -1
        makes = (instr.op in MAKES) is forwards
        return place.reg if makes is (place.reg not in self.live) else -1

    def _disagree(self, position: int, source: int, seen: int) -> None:
        if len(self.out.conflicts) < MAX_CONFLICTS:
            differing = self.out._of(seen) ^ self.live
        elif len(self.out.conflicts) == MAX_CONFLICTS:
            differing = frozenset()
        else:
            return
        self.out.conflicts.append(Conflict(position, source, frozenset(differing)))
