"""Rows of counters, as filled by generated code, and the counts derived from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, overload

from rvm.accounts.counts import Node
from rvm.ir.counters import Counters


class Words(Protocol):
    """A list of integers, or memory that can be used as one."""

    @overload
    def __getitem__(self, at: int, /) -> int: ...

    @overload
    def __getitem__(self, at: slice, /) -> list[int]: ...

    def __setitem__(self, at: int, value: int, /) -> None: ...


class Row:
    """The counters of a node's code, in words that generated code writes to."""

    def __init__(self, node: Node, counters: Counters, words: Words) -> None:
        self.node = node
        self.counters = counters
        self.words = words
        self.entries: Counter[int] = Counter()
        """The number of times runs were entered at each leader."""
        self.stops: Counter[tuple[int, bool]] = Counter()
        """The number of times they stopped at each position, and whether in the call there."""

    def settle(self) -> None:
        """Add the counters to the node's counts, and reset them."""
        node, counters, words = self.node, self.counters, self.words
        held = words[:]
        if not (self.entries or self.stops or any(held)):
            return
        for (position, _), n in self.stops.items():
            self.entries[counters.leader(position)] -= n
        done, jumps, returns = counters.ticks(held, self.entries)
        for (position, called), n in self.stops.items():
            for pc in range(counters.leader(position), position + called):
                done[pc] += n
        self.entries.clear()
        self.stops.clear()
        for to, counts in ((node.done, done), (node.jumps, jumps), (node.returns, returns)):
            for pc, n in enumerate(counts):
                to[pc] += n
        for pc, key in counters.fixed.items():
            instr = node.code.instrs[pc]
            n = done[pc] + jumps[pc] + (jumps[instr.aux] if instr.op == "cf" else 0)
            if n:
                node.sizes[pc][key] += n
        for at in counters.counted.values():
            words[at] = 0
        for pc, at in counters.erased.items():
            if held[at]:
                node.erased[pc] += held[at]
                words[at] = 0
        for pc, at in counters.rounded.items():
            if held[at]:
                node.rounded[pc] += held[at]
                words[at] = 0
        for pc in counters.meters:
            self.pass_on(pc)

    def pass_on(self, pc: int) -> None:
        """Add the count in an instruction's meter to those for its sizes."""
        at, n = self.counters.meters[pc].at, self.counters.meters[pc].words
        times, self.words[at] = self.words[at], 0
        if times:
            self.met(pc, times, self.words[at + 1 : at + 1 + n])

    def met(self, pc: int, times: int, sizes: Sequence[int]) -> None:
        """An instruction has found some sizes so often."""
        self.node.sizes[pc][self.counters.meters[pc].key(sizes)] += times
