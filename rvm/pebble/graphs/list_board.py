"""A legal schedule of a small graph under change: lists, and a bit mask for each position.

What a change costs grows with the stretch that it is about; `array_board` has the same for large
graphs, with arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rvm.pebble.graphs.change import Change
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.exact import connected


class ListBoard:
    """A schedule under change.  `excess` sums what is held beyond the budget over all positions."""

    def __init__(self, dag: Dag, toggles: Iterable[int], budget: int) -> None:
        n = len(dag)
        self.preds = dag.preds
        self.sizes = [dag.size(v) for v in range(n)]
        self.costs = [dag.cost(v) for v in range(n)]
        self.even = dag.costs is None
        self.bits = [1 << v for v in range(n)]
        self.need = [sum(1 << u for u in preds) for preds in dag.preds]
        self.uses = [frozenset((v, *dag.users[v])) for v in range(n)]
        """The moves that a rest of node v ends with: its own and those of its users."""
        self.bound = [frozenset((v, *dag.users[v], *dag.preds[v])) for v in range(n)]
        """The moves that a move of node v cannot go past."""
        self.budget = budget
        self.toggles: list[int] = list(toggles)
        self.cost = sum(self.costs[v] for v in self.toggles)
        self.masks, self.held = [0], [0]
        masks, held = self._positions(0, self.toggles)
        self.masks += masks
        self.held += held
        self.excess = self._beyond(self.held)

    def __len__(self) -> int:
        return len(self.toggles)

    def peak(self) -> int:
        """The most that is held."""
        return max(self.held)

    def schedule(self) -> tuple[int, ...]:
        """The nodes that the moves change."""
        return tuple(self.toggles)

    def load(self, p: int) -> int:
        """What is held at a position."""
        return self.held[p]

    def pebbled(self, v: int, p: int) -> bool:
        """Whether a node has a pebble at a position."""
        return bool(self.masks[p] >> v & 1)

    def do(self, change: Change) -> None:
        """Make a change."""
        low, high = change.low, change.high
        self.toggles[low:high] = change.nodes
        self.masks[low + 1 : high + 1] = change.marks
        self.held[low + 1 : high + 1] = change.held
        self.excess += change.excess
        self.cost += change.moves

    # ------------------------------------------------------------ changes

    def drop(self, p: int, v: int) -> Change | None:
        """Node v, which has a pebble at position p, is without it around there."""
        toggles, masks, uses = self.toggles, self.masks, self.uses[v]
        first = p
        while toggles[first - 1] not in uses:
            first -= 1
        last, end = p, len(toggles)
        while last < end and toggles[last] not in uses:
            last += 1
        if last == end:
            return None
        need = self.need[v]
        low, high = first, last
        before: list[int] = []
        after: list[int] = []
        if toggles[first - 1] == v:
            low, start = first - 1, first
        else:
            start = next((k for k in range(first, last) if masks[k] & need == need), -1)
            if start < 0:
                start = first
                before = self._visited(v, masks[first])
            else:
                before = [v]
            low = start
        if toggles[last] == v:
            high, stop = last + 1, last
        else:
            stop = next((k for k in range(last, start, -1) if masks[k] & need == need), -1)
            if stop < 0:
                stop = last
                after = self._visited(v, masks[last])
            else:
                after = [v]
            high = stop
        if start >= stop and (before or after):
            return None
        return self._change(low, high, [*before, *toggles[start:stop], *after])

    def _visited(self, v: int, mask: int) -> list[int]:
        """The moves that change v from a position that may lack predecessors, and nothing else."""
        missing: set[int] = set()
        stack = [v]
        while stack:
            for u in self.preds[stack.pop()]:
                if not mask >> u & 1 and u not in missing:
                    missing.add(u)
                    stack.append(u)
        # Numbers are in topological order.
        up = sorted(missing)
        return [*up, v, *reversed(up)]

    def keep(self, p: int) -> Change | None:
        """The move at p and the next of the same node fall away, and what only they needed."""
        toggles = self.toggles
        v = toggles[p]
        try:
            q = toggles.index(v, p + 1)
        except ValueError:
            return None
        if not self.masks[p] >> v & 1 and not self.uses[v].isdisjoint(toggles[p + 1 : q]):
            return None
        return self._without(p, q)

    def _without(self, p: int, q: int) -> Change:
        toggles = self.toggles
        gone = {p, q}
        work = [p, q]
        while work:
            k = work.pop()
            for u in self.preds[toggles[k]]:
                # The stretch in which u is held around k; users that are gone do not count.
                uses = self.uses[u]
                a = k - 1
                while toggles[a] != u and (a in gone or toggles[a] not in uses):
                    a -= 1
                if toggles[a] != u or a in gone:
                    continue
                b, end = k + 1, len(toggles)
                while b < end and toggles[b] != u and (b in gone or toggles[b] not in uses):
                    b += 1
                if b < end and toggles[b] == u:
                    gone |= {a, b}
                    work += (a, b)
        low, high = min(gone), max(gone) + 1
        return self._change(low, high, [toggles[k] for k in range(low, high) if k not in gone])

    def slide(self, p: int, later: bool, far: float) -> Change | None:
        """The move at p goes past others: `far` of the way, from 0 to 1, that is open to it."""
        toggles = self.toggles
        v = toggles[p]
        bound = self.bound[v]
        if later:
            k, end = p + 1, len(toggles)
            while k < end and toggles[k] not in bound:
                k += 1
            if k < end and toggles[k] == v:
                return self._without(p, k)
            stop = p + 1 + round(far * (k - p - 1))
            if stop == p + 1:
                return None
            return self._change(p, stop, [*toggles[p + 1 : stop], v])
        k = p - 1
        while k >= 0 and toggles[k] not in bound:
            k -= 1
        if k >= 0 and toggles[k] == v:
            return self._without(k, p)
        start = p - round(far * (p - k - 1))
        if start == p:
            return None
        return self._change(start, p + 1, [v, *toggles[start:p]])

    def window(self, p: int, width: int) -> Change | None:
        """A shortest stretch in place of that from p on which is about `width` nodes."""
        toggles = self.toggles
        seen: set[int] = set()
        high = p
        while high < len(toggles):
            seen.add(toggles[high])
            if len(seen) > width:
                seen.discard(toggles[high])
                break
            high += 1
        nodes = sorted(seen)
        number = {v: k for k, v in enumerate(nodes)}
        need = [sum(1 << number[u] for u in self.preds[v] if u in number) for v in nodes]
        sizes = [self.sizes[v] for v in nodes]
        start, goal = (
            sum(1 << k for k, v in enumerate(nodes) if self.masks[at] >> v & 1) for at in (p, high)
        )
        others = self.held[p] - sum(s for k, s in enumerate(sizes) if start >> k & 1)
        most = max(self.budget, *self.held[p : high + 1])
        costs = None if self.even else [self.costs[v] for v in nodes]
        found = connected(need, sizes, start, goal, most - others, costs)
        if found is None:
            return None
        change = self._change(p, high, [nodes[k] for k in found])
        return change if change.moves <= 0 else None

    # ------------------------------------------------------------ what changes cost

    def _change(self, low: int, high: int, stretch: Sequence[int]) -> Change:
        masks, held = self._positions(low, stretch)
        excess = self._beyond(held) - self._beyond(self.held[low + 1 : high + 1])
        moves = len(stretch) - (high - low)
        if not self.even:
            old = self.toggles[low:high]
            moves = sum(self.costs[v] for v in stretch) - sum(self.costs[v] for v in old)
        return Change(low, high, stretch, masks, held, moves, excess)

    def _positions(self, low: int, stretch: Sequence[int]) -> tuple[list[int], list[int]]:
        mask, weight = self.masks[low], self.held[low]
        bits, sizes = self.bits, self.sizes
        masks, held = [], []
        for v in stretch:
            bit = bits[v]
            mask ^= bit
            weight += sizes[v] if mask & bit else -sizes[v]
            masks.append(mask)
            held.append(weight)
        return masks, held

    def _beyond(self, held: Sequence[int]) -> int:
        budget = self.budget
        return sum([h - budget for h in held if h > budget])
