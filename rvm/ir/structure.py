"""Structured control flow for targets without jumps: the loops and conditionals of a function.

Leaders are taken in the order of their positions.  A *loop* is whole if a run can leave it only at
the end of an iteration, and if everything in it is whole; likewise a *choice*, from a branch to the
point where its paths meet again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from rvm.expr import Const
from rvm.image import Code
from rvm.ir.flow import JUMPS, Cycle, Edge, Flow

MAX_DEPTH = 12
"""The largest nesting depth of structured pieces: Python nests at most 20 loops."""


@dataclass(frozen=True, slots=True)
class Straight:
    """A leader's block, which goes on at one leader only."""

    leader: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A leader's block, and what follows where its branch jumps, and where it does not."""

    leader: int
    jumped: Pieces
    fallen: Pieces


@dataclass(frozen=True, slots=True)
class Again:
    """The last leader's block of an iteration: its branch goes back, or leaves the loop."""

    leader: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A whole loop; its iterations end with `Again`."""

    cycle: Cycle
    body: Pieces


Pieces = tuple[Straight | Choice | Again | Loop, ...]


class Jumping(Exception):
    """Code that cannot be expressed without jumps."""


class Structure:
    """The whole loops and choices of a code."""

    def __init__(self, code: Code, flow: Flow) -> None:
        self.flow = flow
        self.cycles = {c.head + 1: c for c in flow.cycles}
        """Loops by the leaders at which their iterations begin."""
        self.ways: dict[int, list[Edge]] = defaultdict(list)
        """By leader, where a run goes on from its block: first where that jumps."""
        self.before: dict[int, set[int]] = defaultdict(set)
        """From which leaders a run comes to a leader."""
        for edge in flow.edges():
            cond = code.instrs[edge.last].args[0] if self._is_branch(code, edge) else None
            if not isinstance(cond, Const) or cond.value == (edge.how == JUMPS):
                self.ways[edge.start].append(edge)
        todo, seen = list(flow.gates), set(flow.gates)
        while todo:
            for edge in self.ways[todo.pop()]:
                self.before[edge.target].add(edge.start)
                if edge.target not in seen:
                    seen.add(edge.target)
                    todo.append(edge.target)
        self._loops: dict[int, Loop | None] = {}

    @staticmethod
    def _is_branch(code: Code, edge: Edge) -> bool:
        return edge.how == JUMPS or (edge.last < edge.target and code.instrs[edge.last].op == "br")

    def loop(self, leader: int) -> Loop | None:
        """The whole loop whose iterations begin at a leader, if there is one."""
        cycle = self.cycles.get(leader)
        if cycle is None:
            return None
        if leader not in self._loops:
            try:
                body, end = self._between(leader, cycle.back + 1, leader)
                found = Loop(cycle, body) if end == cycle.back + 1 and _ends(body) else None
            except Jumping:
                found = None
            self._loops[leader] = found if found and height(found.body) < MAX_DEPTH else None
        return self._loops[leader]

    def choice(self, leader: int) -> tuple[Choice, int]:
        """The choice at the end of a leader's block, and where its ways meet; Jumping if none."""
        jumped, fallen = self.ways[leader]
        if jumped.target <= leader:
            raise Jumping
        no, end = self._between(fallen.target, jumped.target)
        yes, other = self._between(jumped.target, end)
        if other != end:
            raise Jumping
        return Choice(leader, yes, no), end

    def _between(self, at: int, stop: int, begin: int = -1) -> tuple[Pieces, int]:
        """The pieces from a leader up to another, or to where a jump at their end goes beyond it.

        Of an iteration that begins at `begin` the last one is `Again`.
        """
        out: list[Straight | Choice | Again | Loop] = []
        while at < stop:
            if at in self.cycles and (at != begin or out):
                loop = self.loop(at)
                if loop is None:
                    raise Jumping
                out.append(loop)
                at = loop.cycle.back + 1
                continue
            match self.ways[at]:
                case [way] if way.target > at:
                    out.append(Straight(at))
                    at = way.target
                case [jumped, fallen] if jumped.target == begin and fallen.target == stop:
                    out.append(Again(at))
                    at = stop
                case [_, _]:
                    made, at = self.choice(at)
                    out.append(made)
                case _:
                    raise Jumping
        return tuple(out), at


def _ends(body: Pieces) -> bool:
    return bool(body) and isinstance(body[-1], Again)


def height(pieces: Pieces) -> int:
    """The nesting depth of loops and conditionals."""
    deepest = 0
    for piece in pieces:
        match piece:
            case Loop(_, body):
                deepest = max(deepest, 1 + height(body))
            case Choice(_, jumped, fallen):
                deepest = max(deepest, 1 + height(jumped), 1 + height(fallen))
    return deepest
