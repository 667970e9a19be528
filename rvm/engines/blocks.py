"""The shape of code: basic blocks, and loops that can be run as one piece.

Positions are those between instructions.  A position is a leader if a run can
come to it other than by going on from the instruction before it, or must stop
there: the beginning, where a jump lands, after a branch, after a call.
"""

from __future__ import annotations

from dataclasses import dataclass

from rvm.expr import Const
from rvm.image import Code

MAX_DEPTH = 12
"""Pieces nested deeper are run block by block: Python nests no more than 20 blocks."""


@dataclass(frozen=True, slots=True)
class Loop:
    """`head: cf … ; body ; back: br …` whose body is made of loops, ifs and plain instructions.

    A run enters the body at `head + 1` and leaves it at `back + 1`.
    """

    head: int
    back: int


@dataclass(frozen=True, slots=True)
class If:
    """A forward branch at `test`, skipping to its come-from at `join`.

    With `other` set, the skipped part ends in an unconditional branch at `other - 1`, landing at
    `join`, and the branch lands at `other`, where the alternative begins.
    """

    test: int
    join: int
    other: int = -1


class Shape:
    """What `rvm.engines.python` needs to know of a code's jumps.

    `apart` are the instructions that must not be inside a structured piece, `stops` further
    positions at which a run must be able to begin.
    """

    def __init__(self, code: Code, apart: set[int], stops: frozenset[int] = frozenset()) -> None:
        self.code = code
        self.apart = apart
        self.stops = stops
        self.leaders = self._leaders()
        self.structure: dict[int, Loop | If] = {}
        """Structured pieces by the index of their first instruction."""
        for pc, instr in enumerate(code.instrs):
            if instr.op == "cf" and instr.aux > pc:
                self.structure[pc] = Loop(pc, instr.aux)
            elif instr.op == "br" and instr.aux > pc:
                found = self._if(pc)
                if found is not None:
                    self.structure[pc] = found
        self.whole: dict[int, int] = {}
        """Those of them that hold only whole pieces and plain instructions: their nesting depth."""
        for start in sorted(self.structure, key=lambda p: self.end(self.structure[p]) - p):
            self._decide(start)

    def _leaders(self) -> list[int]:
        n = len(self.code)
        found = {0, n, *self.stops}
        for pc, instr in enumerate(self.code.instrs):
            if instr.op == "br":
                found |= {pc + 1, instr.aux + 1}
            elif pc in self.apart:
                found |= {pc, pc + 1}
        return sorted(found)

    def _if(self, pc: int) -> If | None:
        instrs = self.code.instrs
        join = instrs[pc].aux
        last = instrs[join - 1]
        if (
            last.op == "br"
            and join - 1 > pc
            and last.aux > join
            and _is(last.args[0], True)
            and _is(instrs[join].args[0], True)
        ):
            return If(pc, last.aux, join)
        return If(pc, join)

    def end(self, piece: Loop | If) -> int:
        """The position after a piece."""
        return (piece.back if isinstance(piece, Loop) else piece.join) + 1

    def bodies(self, start: int) -> tuple[tuple[int, int], ...]:
        """The ranges of instructions inside a piece."""
        match self.structure[start]:
            case Loop(head, back):
                return ((head + 1, back),)
            case If(test, join, other) if other < 0:
                return ((test + 1, join),)
            case If(test, join, other):
                return ((test + 1, other - 1), (other + 1, join))

    def _decide(self, start: int) -> None:
        """Enter a piece among the whole ones if it is; those inside it are decided already."""
        depths = [self._depth(lo, hi) for lo, hi in self.bodies(start)]
        deepest = max(d if d is not None else MAX_DEPTH for d in depths)
        if deepest < MAX_DEPTH:
            self.whole[start] = deepest + 1

    def _depth(self, lo: int, hi: int) -> int | None:
        """How deep whole pieces nest among the instructions lo … hi-1; None if others are there."""
        pc, depth = lo, 0
        while pc < hi:
            if pc in self.whole:
                depth = max(depth, self.whole[pc])
                pc = self.end(self.structure[pc])
            elif pc in self.apart or self.code.instrs[pc].op in ("br", "cf"):
                return None
            else:
                pc += 1
        return depth if pc == hi else None


def _is(node: object, value: bool) -> bool:
    return isinstance(node, Const) and node.value is value
