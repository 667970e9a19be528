"""A legal schedule of a graph under small changes that keep it legal.

A change replaces a part of the schedule by another between the same two positions, so nothing
outside the part has to be examined.

    drop    a node that rests for a while is undone and computed again, or later, or undone earlier
    keep    a node that is undone and computed again stays; what was held for that alone goes
    slide   a move goes to another time, past moves that have nothing to do with it
    window  a stretch about few nodes becomes a shortest one (exhaustive search)

The moves are a string with a character for each node, so finding a node's next move, or counting
its moves, is a search in C.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from sys import maxunicode

from rvm.faults import UsageError
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.exact import connected

MOST = maxunicode + 1
"""The most nodes: as many as there are characters."""


@dataclass(frozen=True, slots=True)
class Change:
    """A new stretch in place of the moves from `low` up to `high`, and what that changes."""

    low: int
    high: int
    toggles: str
    """The nodes that the moves change."""
    added: list[int]
    """The change of the amount held by each move."""
    held: list[int]
    """The amount held after each move."""
    moves: int
    """The moves that are added, each with its cost."""
    excess: int
    """The excess that is added."""


class Board:
    """A schedule under change.  Position p is before move p; the last is after all moves.

    UsageError P006: the graph has too many nodes.
    `excess` is what is held beyond the budget, summed over all positions; `cost` that of the moves.
    """

    def __init__(self, dag: Dag, toggles: Iterable[int], budget: int) -> None:
        nodes = range(len(dag))
        if len(dag) > MOST:
            raise UsageError(
                "P006",
                f"the search takes {MOST:,} nodes at most, and the graph has {len(dag):,}",
                hint='a larger budget, for the strategy "bennett" or "eager"',
            )
        self.preds = dag.preds
        self.sizes, self.costs = [dag.size(v) for v in nodes], [dag.cost(v) for v in nodes]
        self.even = dag.costs is None
        self.uses = [f"{chr(v)}{_text(dag.users[v])}" for v in nodes]
        """The moves that a rest of node v ends with: its own and those of its users."""
        self.bound = [self.uses[v] + _text(dag.preds[v]) for v in nodes]
        """The moves that a move of node v cannot go past."""
        self.budget = budget
        self.toggles = _text(toggles)
        self.cost = self._costs(self.toggles)
        self.added, pebbled = [], set[int]()
        for v in map(ord, self.toggles):
            pebbled ^= {v}
            self.added.append(self.sizes[v] if v in pebbled else -self.sizes[v])
        self.held = [0, *accumulate(self.added)]
        self.excess = self._beyond(self.held)

    def __len__(self) -> int:
        return len(self.toggles)

    def peak(self) -> int:
        """The most that is held."""
        return max(self.held)

    def schedule(self) -> tuple[int, ...]:
        """The nodes that the moves change."""
        return tuple(map(ord, self.toggles))

    def pebbled(self, v: int, p: int) -> bool:
        """Whether a node has a pebble at a position."""
        return bool(self.toggles.count(chr(v), 0, p) & 1)

    def do(self, change: Change) -> None:
        """Make a change that was proposed since the last one was made."""
        low, high = change.low, change.high
        self.toggles = f"{self.toggles[:low]}{change.toggles}{self.toggles[high:]}"
        self.added[low:high] = change.added
        self.held[low + 1 : high + 1] = change.held
        self.excess += change.excess
        self.cost += change.moves

    # ------------------------------------------------------------ changes

    def drop(self, p: int, v: int) -> Change | None:
        """Node v, which has a pebble at position p, is without it around there."""
        toggles, char = self.toggles, chr(v)
        first = self._before(p, self.uses[v]) + 1
        last = self._after(p, self.uses[v])
        if last == len(toggles):
            return None
        born, dies = toggles[first - 1] == char, toggles[last] == char
        before, after, start, stop = "", "", first, last
        if not (born and dies):
            there = self._computable(v, first, last)
            if not born:
                at = next((k for k in there if k < last), -1)
                before, start = (char, at) if at >= 0 else (self._visit(v, first), first)
            if not dies:
                at = next((k for k in reversed(there) if k > start), -1)
                after, stop = (char, at) if at >= 0 else (self._visit(v, last), last)
        if start >= stop and (before or after):
            return None
        low, high = first - 1 if born else start, last + 1 if dies else stop
        size = self.sizes[v]
        signs = [*self._signs(before, -size), *self.added[start:stop], *self._signs(after, size)]
        return self._change(low, high, f"{before}{toggles[start:stop]}{after}", signs)

    def _computable(self, v: int, first: int, last: int) -> Sequence[int]:
        """The positions from `first` to `last` at which all predecessors of v have pebbles."""
        preds = self.preds[v]
        missing = sum(not self.pebbled(u, first) for u in preds)
        here = _text(preds)
        if not any(u in self.toggles[first:last] for u in here):
            return () if missing else range(first, last + 1)
        found = [] if missing else [first]
        for k in range(first, last):
            if self.toggles[k] in here:
                missing += -1 if self.added[k] > 0 else 1
            if not missing:
                found.append(k + 1)
        return found

    def _visit(self, v: int, p: int) -> str:
        """The moves that change v at a position that lacks predecessors, and nothing else."""
        missing: set[int] = set()
        stack = [v]
        while stack:
            for u in self.preds[stack.pop()]:
                if u not in missing and not self.pebbled(u, p):
                    missing.add(u)
                    stack.append(u)
        # Numbers are in topological order.
        up = _text(sorted(missing))
        return f"{up}{chr(v)}{up[::-1]}"

    def _signs(self, nodes: str, added: int) -> list[int]:
        """The changes in the amount held: nodes before the middle are added, later removed."""
        up = [self.sizes[ord(u)] for u in nodes[: len(nodes) // 2]]
        return [*up, added, *(-s for s in reversed(up))] if nodes else []

    def keep(self, p: int) -> Change | None:
        """The move at p and the next of the same node fall away, and what only they needed."""
        char = self.toggles[p]
        q = self._after(p + 1, self.uses[ord(char)] if self.added[p] > 0 else char)
        return None if q == len(self) or self.toggles[q] != char else self._without(p, q)

    def _without(self, p: int, q: int) -> Change:
        toggles = self.toggles
        gone, work = {p, q}, [p, q]
        while work:
            k = work.pop()
            for u in self.preds[ord(toggles[k])]:
                # The stretch in which u is held around k; users that are gone do not count.
                uses, char = self.uses[u], chr(u)
                a = self._before(k, uses)
                while a in gone and toggles[a] != char:
                    a = self._before(a, uses)
                if toggles[a] != char or a in gone:
                    continue
                b = self._after(k + 1, uses)
                while b in gone and toggles[b] != char:
                    b = self._after(b + 1, uses)
                if b < len(toggles) and toggles[b] == char:
                    gone |= {a, b}
                    work += (a, b)
        low, high = min(gone), max(gone) + 1
        kept = [k for k in range(low, high) if k not in gone]
        nodes = "".join([toggles[k] for k in kept])
        return self._change(low, high, nodes, [self.added[k] for k in kept])

    def slide(self, p: int, later: bool, far: float) -> Change | None:
        """The move at p goes past others: `far` of the way, from 0 to 1, that is open to it."""
        char = self.toggles[p]
        bound = self.bound[ord(char)]
        if later:
            k = self._after(p + 1, bound)
            if k < len(self) and self.toggles[k] == char:
                return self._without(p, k)
            low, high, at = p, p + 1 + round(far * (k - p - 1)), 1
        else:
            k = self._before(p, bound)
            if k >= 0 and self.toggles[k] == char:
                return self._without(k, p)
            low, high, at = p - round(far * (p - k - 1)), p + 1, -1
        if high - low == 1:
            return None
        nodes, added = self.toggles[low:high], self.added[low:high]
        return self._change(low, high, nodes[at:] + nodes[:at], added[at:] + added[:at])

    def window(self, p: int, width: int) -> Change | None:
        """A shortest stretch in place of that from p on which is about `width` nodes."""
        seen: set[int] = set()
        high = p
        for v in map(ord, self.toggles[p:]):
            if v not in seen and len(seen) == width:
                break
            seen.add(v)
            high += 1
        nodes = sorted(seen)
        number = {v: k for k, v in enumerate(nodes)}
        need = [sum(1 << number[u] for u in self.preds[v] if u in number) for v in nodes]
        sizes = [self.sizes[v] for v in nodes]
        start = goal = sum(1 << k for k, v in enumerate(nodes) if self.pebbled(v, p))
        for v in map(ord, self.toggles[p:high]):
            goal ^= 1 << number[v]
        others = self.held[p] - sum(s for k, s in enumerate(sizes) if start >> k & 1)
        most = max(self.budget, *self.held[p : high + 1])
        costs = None if self.even else [self.costs[v] for v in nodes]
        found = connected(need, sizes, start, goal, most - others, costs)
        if found is None:
            return None
        mask, added = start, []
        for k in found:
            mask ^= 1 << k
            added.append(sizes[k] if mask >> k & 1 else -sizes[k])
        change = self._change(p, high, _text(nodes[k] for k in found), added)
        return change if change.moves <= 0 else None

    # ------------------------------------------------------------ moves around a position

    def _before(self, p: int, nodes: str) -> int:
        """The last move before position p that changes one of these nodes; -1: none."""
        found, rfind = -1, self.toggles.rfind
        for node in nodes:
            found = max(found, rfind(node, found + 1, p))
        return found

    def _after(self, p: int, nodes: str) -> int:
        """The first move from position p on that changes one of these nodes; the length: none."""
        found, find = len(self.toggles), self.toggles.find
        for node in nodes:
            at = find(node, p, found)
            found = at if at >= 0 else found
        return found

    # ------------------------------------------------------------ what changes cost

    def _change(self, low: int, high: int, nodes: str, added: list[int]) -> Change:
        held = list(accumulate(added, initial=self.held[low]))[1:]
        excess = self._beyond(held) - self._beyond(self.held[low + 1 : high + 1])
        moves = self._costs(nodes) - self._costs(self.toggles[low:high])
        return Change(low, high, nodes, added, held, moves, excess)

    def _costs(self, nodes: str) -> int:
        return len(nodes) if self.even else sum(self.costs[ord(v)] for v in nodes)

    def _beyond(self, held: Sequence[int]) -> int:
        budget = self.budget
        return sum([h - budget for h in held if h > budget])


def _text(nodes: Iterable[int]) -> str:
    return "".join(map(chr, nodes))
