"""A legal schedule of a large graph under change, in arrays.

For each move: the node that it changes, and what it adds to what is held.  Where the next move of a
node is, and whether it has a pebble, is counted when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from rvm.pebble.graphs.change import Change
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.exact import connected

Ints = npt.NDArray[np.int64]

NEAR = 48
"""So many moves are looked at one by one, those beyond as arrays."""


class ArrayBoard:
    """A schedule under change.  `excess` sums what is held beyond the budget over all positions."""

    def __init__(self, dag: Dag, toggles: Iterable[int], budget: int) -> None:
        n = len(dag)
        self.preds = dag.preds
        self.sizes = [dag.size(v) for v in range(n)]
        self.costs = [dag.cost(v) for v in range(n)]
        self.even = dag.costs is None
        self.uses = [frozenset((v, *dag.users[v])) for v in range(n)]
        """The moves that a rest of node v ends with: its own and those of its users."""
        self.bound = [frozenset((v, *dag.users[v], *dag.preds[v])) for v in range(n)]
        """The moves that a move of node v cannot go past."""
        self.budget = budget
        self.toggles: Ints = np.array(list(toggles), np.int64)
        self._prices = np.array(self.costs, np.int64)
        self.cost = int(self._prices[self.toggles].sum())
        added = []
        pebbled: set[int] = set()
        for v in self.toggles.tolist():
            pebbled ^= {v}
            added.append(self.sizes[v] if v in pebbled else -self.sizes[v])
        self.added: Ints = np.array(added, np.int64)
        self.held: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.added)])
        self.excess = self._beyond(self.held)
        self._mark = np.zeros(n, np.bool_)

    def __len__(self) -> int:
        return len(self.toggles)

    def peak(self) -> int:
        """The most that is held."""
        return int(self.held.max())

    def schedule(self) -> tuple[int, ...]:
        """The nodes that the moves change."""
        return tuple(self.toggles.tolist())

    def load(self, p: int) -> int:
        """What is held at a position."""
        return int(self.held[p])

    def pebbled(self, v: int, p: int) -> bool:
        """Whether a node has a pebble at a position."""
        return bool(np.count_nonzero(self.toggles[:p] == v) & 1)

    def do(self, change: Change) -> None:
        """Make a change."""
        low, high = change.low, change.high
        self.excess += change.excess
        self.cost += change.moves
        if len(change.nodes) == high - low:
            self.toggles[low:high] = change.nodes
            self.added[low:high] = change.marks
            self.held[low + 1 : high + 1] = change.held
            return
        old = self.toggles, self.added, self.held
        self.toggles = np.concatenate([old[0][:low], change.nodes, old[0][high:]])
        self.added = np.concatenate([old[1][:low], change.marks, old[1][high:]])
        self.held = np.concatenate([old[2][: low + 1], change.held, old[2][high + 1 :]])

    # ------------------------------------------------------------ changes

    def drop(self, p: int, v: int) -> Change | None:
        """Node v, which has a pebble at position p, is without it around there."""
        toggles, size = self.toggles, self.sizes[v]
        first = self._before(p, self.uses[v]) + 1
        last = self._after(p, self.uses[v])
        if last == len(toggles):
            return None
        born, dies = toggles[first - 1] == v, toggles[last] == v
        there = None if born and dies else self._computable(v, first, last)
        before: list[int] = []
        after: list[int] = []
        start, stop = first, last
        if not born:
            assert there is not None
            found = int(there[:-1].argmax()) if first < last else 0
            before = [v] if there[found] else self._visit(v, first)
            start = first + found if there[found] else first
        if not dies:
            assert there is not None
            rest = there[start - first + 1 :][::-1]
            after = [v] if rest.any() else self._visit(v, last)
            stop = last - int(rest.argmax()) if rest.any() else last
        if start >= stop and (before or after):
            return None
        signs = [
            self._signs(before, v, -size),
            self.added[start:stop],
            self._signs(after, v, size),
        ]
        nodes = [np.array(before, np.int64), toggles[start:stop], np.array(after, np.int64)]
        low = first - 1 if born else start
        high = last + 1 if dies else stop
        return self._change(low, high, np.concatenate(nodes), np.concatenate(signs))

    def _computable(self, v: int, first: int, last: int) -> npt.NDArray[np.bool_]:
        """For the positions from `first` to `last` whether all predecessors of v have pebbles."""
        there = np.ones(last - first + 1, np.bool_)
        stretch = self.toggles[first:last]
        for u in self.preds[v]:
            here = np.bitwise_xor.accumulate(
                np.concatenate([[self.pebbled(u, first)], stretch == u])
            )
            there &= here
        return there

    def _visit(self, v: int, p: int) -> list[int]:
        """The moves that change v at a position that lacks predecessors, and nothing else."""
        missing: set[int] = set()
        stack = [v]
        while stack:
            for u in self.preds[stack.pop()]:
                if u not in missing and not self.pebbled(u, p):
                    missing.add(u)
                    stack.append(u)
        # Numbers are in topological order.
        up = sorted(missing)
        return [*up, v, *reversed(up)]

    def _signs(self, nodes: Sequence[int], v: int, added: int) -> Ints:
        """What moves add to what is held: nodes before v come, those after it go."""
        half = len(nodes) // 2
        up = [self.sizes[u] for u in nodes[:half]]
        return np.array([*up, *([added] if nodes else []), *(-s for s in reversed(up))], np.int64)

    def keep(self, p: int) -> Change | None:
        """The move at p and the next of the same node fall away, and what only they needed."""
        v = int(self.toggles[p])
        if self.added[p] > 0:
            q = self._after(p + 1, self.uses[v])
            if q == len(self) or self.toggles[q] != v:
                return None
        else:
            q = self._after(p + 1, frozenset((v,)))
            if q == len(self):
                return None
        return self._without(p, q)

    def _without(self, p: int, q: int) -> Change:
        toggles = self.toggles
        gone = {p, q}
        work = [p, q]
        while work:
            k = work.pop()
            for u in self.preds[int(toggles[k])]:
                # The stretch in which u is held around k; users that are gone do not count.
                uses = self.uses[u]
                a = self._before(k, uses)
                while a in gone and toggles[a] != u:
                    a = self._before(a, uses)
                if toggles[a] != u or a in gone:
                    continue
                b = self._after(k + 1, uses)
                while b in gone and toggles[b] != u:
                    b = self._after(b + 1, uses)
                if b < len(toggles) and toggles[b] == u:
                    gone |= {a, b}
                    work += (a, b)
        low, high = min(gone), max(gone) + 1
        kept = np.ones(high - low, np.bool_)
        kept[[k - low for k in gone]] = False
        return self._change(low, high, toggles[low:high][kept], self.added[low:high][kept])

    def slide(self, p: int, later: bool, far: float) -> Change | None:
        """The move at p goes past others: `far` of the way, from 0 to 1, that is open to it."""
        v = int(self.toggles[p])
        if later:
            k = self._after(p + 1, self.bound[v])
            if k < len(self) and self.toggles[k] == v:
                return self._without(p, k)
            low, high, by = p, p + 1 + round(far * (k - p - 1)), -1
        else:
            k = self._before(p, self.bound[v])
            if k >= 0 and self.toggles[k] == v:
                return self._without(k, p)
            low, high, by = p - round(far * (p - k - 1)), p + 1, 1
        if high - low == 1:
            return None
        turned = [_turned(values[low:high], by) for values in (self.toggles, self.added)]
        return self._change(low, high, *turned)

    def window(self, p: int, width: int) -> Change | None:
        """A shortest stretch in place of that from p on which is about `width` nodes."""
        seen: set[int] = set()
        high = p
        for v in self.toggles[p : p + 16 * width].tolist():
            if v not in seen and len(seen) == width:
                break
            seen.add(v)
            high += 1
        nodes = sorted(seen)
        number = {v: k for k, v in enumerate(nodes)}
        need = [sum(1 << number[u] for u in self.preds[v] if u in number) for v in nodes]
        sizes = [self.sizes[v] for v in nodes]
        start = sum(1 << k for k, v in enumerate(nodes) if self.pebbled(v, p))
        goal = start
        for v in self.toggles[p:high].tolist():
            goal ^= 1 << number[v]
        others = int(self.held[p]) - sum(s for k, s in enumerate(sizes) if start >> k & 1)
        most = max(self.budget, int(self.held[p : high + 1].max()))
        costs = None if self.even else [self.costs[v] for v in nodes]
        found = connected(need, sizes, start, goal, most - others, costs)
        if found is None:
            return None
        mask, added = start, []
        for k in found:
            mask ^= 1 << k
            added.append(sizes[k] if mask >> k & 1 else -sizes[k])
        changed = np.array([nodes[k] for k in found], np.int64)
        change = self._change(p, high, changed, np.array(added, np.int64))
        return change if change.moves <= 0 else None

    # ------------------------------------------------------------ moves around a position

    def _before(self, p: int, nodes: frozenset[int]) -> int:
        """The last move before position p that changes one of these nodes; -1: none."""
        near = max(0, p - NEAR)
        k = p
        for v in reversed(self.toggles[near:p].tolist()):
            k -= 1
            if v in nodes:
                return k
        found = self._marked(0, near, nodes)
        return int(found[-1]) if len(found) else -1

    def _after(self, p: int, nodes: frozenset[int]) -> int:
        """The first move from position p on that changes one of these nodes; the length: none."""
        k = p
        for v in self.toggles[p : p + NEAR].tolist():
            if v in nodes:
                return k
            k += 1
        found = self._marked(p + NEAR, len(self), nodes)
        return p + NEAR + int(found[0]) if len(found) else len(self)

    def _marked(self, low: int, high: int, nodes: frozenset[int]) -> Ints:
        """The moves in a stretch that change one of these nodes, counted from its start."""
        if low >= high:
            return np.zeros(0, np.int64)
        stretch = self.toggles[low:high]
        if len(nodes) == 1:
            return np.flatnonzero(stretch == next(iter(nodes)))
        which = list(nodes)
        self._mark[which] = True
        found = np.flatnonzero(self._mark[stretch])
        self._mark[which] = False
        return found

    # ------------------------------------------------------------ what changes cost

    def _change(self, low: int, high: int, nodes: Ints, added: Ints) -> Change:
        held = np.cumsum(added) + self.held[low]
        excess = self._beyond(held) - self._beyond(self.held[low + 1 : high + 1])
        moves = len(nodes) - (high - low)
        if not self.even:
            prices = self._prices
            moves = int(prices[nodes].sum() - prices[self.toggles[low:high]].sum())
        return Change(low, high, nodes, added, held, moves, excess)

    def _beyond(self, held: Ints) -> int:
        return int(np.maximum(held - self.budget, 0).sum())


def _turned(values: Ints, by: int) -> Ints:
    """The values with the last one first (1), or the first one last (-1)."""
    if by > 0:
        return np.concatenate([values[-1:], values[:-1]])
    return np.concatenate([values[1:], values[:1]])
