"""Accounts: counts of a run summed up by opcode, by source line and by function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from rvm.accounts.cost import Kind
from rvm.accounts.counts import Counts, Node
from rvm.isa.rows import COSTS
from rvm.program import Program

Key = TypeVar("Key")

FREED, DROPPED, RETURNED, ROUNDED = "freed", "dropped", "returned", "rounded away"
SENT, LEFT, KEPT = "sent out", "left on stacks", "left in the strict log"
"""Why bits are lost: in residues of freed values, with values that `drop` forgets, in residues of
expressions passed to calls, by updates of inexact numbers, by effects, and on stacks and in the
strict log where these hold more at the end than at the start.
"""


@dataclass(slots=True)
class Tally:
    """The costs of some instructions.

    `executed` counts an instruction also as the other end of a jump; `ticks` are steps of time.
    `erased` holds bits by reason of loss, `overwritten` the bits that an ordinary machine would
    erase, see `rvm.accounts.cost.Cost`.
    """

    executed: int = 0
    ticks: int = 0
    calls: int = 0
    checks: int = 0
    work: Counter[Kind] = field(default_factory=Counter)
    erased: Counter[str] = field(default_factory=Counter)
    overwritten: int = 0

    def add(self, other: Tally) -> None:
        """Add another one."""
        self.executed += other.executed
        self.ticks += other.ticks
        self.calls += other.calls
        self.checks += other.checks
        self.work.update(other.work)
        self.erased.update(other.erased)
        self.overwritten += other.overwritten

    @property
    def erased_bits(self) -> int:
        return sum(self.erased.values())

    def classes(self) -> dict[str, int]:
        """Operations by class."""
        out = dict.fromkeys(COSTS, 0)
        for kind, n in self.work.items():
            out[kind.cls] += n
        return out


@dataclass(frozen=True, slots=True, order=True)
class SourceLine:
    """A line of one of the program's sources; number 0 where none is known."""

    source: int
    number: int


@dataclass(slots=True)
class Of:
    """A function in one direction: its own work, and that with all it called.

    `calls` counts how often it was entered; recursion is counted in the outermost call.
    """

    name: str
    own: Tally = field(default_factory=Tally)
    total: Tally = field(default_factory=Tally)
    calls: int = 0


class CostAccount:
    """The costs of a run, or of a part of one.

    `left` are bits that the run left on stacks, `kept` those in the strict log; they belong to the
    outermost function, and to no instruction.
    """

    def __init__(self, program: Program, counts: Counts, left: int = 0, kept: int = 0) -> None:
        self.program = program
        self.counts = counts
        self.nodes: list[Node] = list(counts.nodes())
        """All nodes, callers first."""
        given = {LEFT: left, KEPT: kept}
        self.left = Tally(erased=Counter({why: bits for why, bits in given.items() if bits}))
        self._tallies: dict[int, list[Tally]] = {}
        self._totals: dict[int, Tally] = {}

    @property
    def left_label(self) -> str:
        """The label of the row of bits left over."""
        return f"({', '.join(self.left.erased)})"

    def tallies(self, node: Node) -> list[Tally]:
        """A node's instructions, in order."""
        found = self._tallies.get(id(node))
        if found is None:
            found = [_tally(node, pc) for pc in range(len(node.code))]
            self._tallies[id(node)] = found
        return found

    def own(self, node: Node) -> Tally:
        """The costs of a function itself along one path."""
        return _sum([*self.tallies(node), *([self.left] if self._outermost(node) else [])])

    def total(self, node: Node) -> Tally:
        """The costs of a function along one path, with all that it called."""
        found = self._totals.get(id(node))
        if found is None:
            found = _sum([self.own(node), *(self.total(n) for n in node.own_children())])
            self._totals[id(node)] = found
        return found

    def _outermost(self, node: Node) -> bool:
        return bool(self.counts.roots) and node is self.counts.roots[0]

    @cached_property
    def all(self) -> Tally:
        """Everything."""
        return _sum([self.total(root) for root in self.counts.roots])

    # ------------------------------------------------------------ sums

    def by_opcode(self) -> dict[str, Tally]:
        """By opcode, in the order of the table."""
        return self._by(lambda node, pc: node.code.instrs[pc].op)

    def by_line(self) -> dict[SourceLine, Tally]:
        """By source line, in the sources' order; also lines that were not executed."""
        found = self._by(line_of)
        return {line: found[line] for line in sorted(found)}

    def by_function(self) -> dict[str, Of]:
        """By function and direction, callers first."""
        out: dict[str, Of] = {}
        for node in self.nodes:
            of = out.setdefault(node.name, Of(node.name))
            of.own.add(self.own(node))
            # A node for the same function stands never above this one: see `rvm.accounts.counts`.
            of.total.add(self.total(node))
        for _, _, callee, n in self.edges():
            out[callee.name].calls += n
        return out

    def edges(self) -> Iterator[tuple[Node, int, Node, int]]:
        """(caller, position of the call, callee, calls), those of recursion too."""
        for node in self.nodes:
            for pc, callee in node.children.items():
                yield node, pc, callee, node.done[pc]

    def _by(self, key: Callable[[Node, int], Key]) -> dict[Key, Tally]:
        out: dict[Key, Tally] = {}
        for node in self.nodes:
            for pc, tally in enumerate(self.tallies(node)):
                out.setdefault(key(node, pc), Tally()).add(tally)
        return out


def line_of(node: Node, pc: int) -> SourceLine:
    """The source line of the instruction at `pc`."""
    span = node.code.span(pc)
    sources = node.code.image.program.sources
    return (
        SourceLine(span.source, span.line) if 0 <= span.source < len(sources) else SourceLine(-1, 0)
    )


def _sum(tallies: list[Tally]) -> Tally:
    out = Tally()
    for t in tallies:
        out.add(t)
    return out


def _tally(node: Node, pc: int) -> Tally:
    instr = node.code.instrs[pc]
    ticks = node.done[pc] + node.jumps[pc] + node.returns[pc]
    out = Tally(node.executed(pc), ticks)
    if instr.op in ("call", "uncall"):
        out.calls = node.done[pc]
    for n, cost in node.costs(pc):
        out.checks += n * cost.checks
        out.overwritten += n * cost.overwritten
        for kind, k in cost.work.items():
            out.work[kind] += n * k
        if cost.sent and n:
            out.erased[SENT] += n * cost.sent
    lost = node.erased.get(pc, 0)
    if lost:
        why = {"free": FREED, "drop": DROPPED}.get(instr.op, RETURNED)
        out.erased[why] += lost
    if pc in node.rounded:
        out.erased[ROUNDED] += node.rounded[pc]
    return out
