"""Directed acyclic graphs of values: the results of a straight-line program and their operands.

A node is a value; its predecessors are the values that it is computed from.  Inputs of the program
are always available and are not nodes.  Outputs are the nodes whose values are required at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rvm.faults import UsageError


@dataclass(frozen=True, slots=True)
class Dag:
    """A graph with nodes 0, 1, ..., in topological order: predecessors have smaller numbers.

    `sizes` are whole numbers, e.g. of bytes; without them each node is one pebble.  `costs` are
    whole numbers, e.g. of operations: what a move of the node costs, done or undone; without them
    1.  UsageError P008: a predecessor that does not come before, a node twice, no output.
    """

    preds: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] | None = None
    costs: tuple[int, ...] | None = None
    users: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    """For each node the nodes that are computed from it."""

    def __post_init__(self) -> None:
        n = len(self.preds)
        users: list[list[int]] = [[] for _ in range(n)]
        for v, preds in enumerate(self.preds):
            for u in preds:
                if not 0 <= u < v:
                    raise wrong(f"node {v} is computed from {u}, which does not come before it")
                users[u].append(v)
            if len(set(preds)) < len(preds):
                raise wrong(f"node {v} has a predecessor twice", preds=preds)
        if not self.outputs:
            raise wrong("a graph has an output")
        if len(set(self.outputs)) < len(self.outputs):
            raise wrong("an output is given twice", outputs=self.outputs)
        if not all(0 <= v < n for v in self.outputs):
            raise wrong(f"outputs are nodes, from 0 to {n - 1}", outputs=self.outputs)
        for name, values in (("names", self.names), ("sizes", self.sizes), ("costs", self.costs)):
            if values and len(values) != n:
                raise wrong(
                    f"there is one of `{name}` for each of the {n} nodes", given=len(values)
                )
        for name, weights in (("sizes", self.sizes), ("costs", self.costs)):
            if weights is not None and not all(w > 0 and w == int(w) for w in weights):
                raise wrong(f"{name} are positive whole numbers", given=weights)
        object.__setattr__(self, "users", tuple(map(tuple, users)))

    def __len__(self) -> int:
        return len(self.preds)

    @classmethod
    def of(
        cls,
        preds: Mapping[str, Iterable[str]],
        outputs: Iterable[str],
        sizes: Mapping[str, int] | None = None,
        costs: Mapping[str, int] | None = None,
    ) -> Dag:
        """A graph from names, in any order.  A predecessor that is not a key is an input.

        UsageError P008: a cycle, or what the class refuses.
        """
        known = {v: list(dict.fromkeys(u for u in us if u in preds)) for v, us in preds.items()}
        order = sorted_topologically(known)
        number = {name: k for k, name in enumerate(order)}
        wanted = list(dict.fromkeys(outputs))
        for name in wanted:
            if name not in number:
                raise wrong(f"the output `{name}` is not a node")
        return cls(
            tuple(tuple(number[u] for u in known[v]) for v in order),
            tuple(number[v] for v in wanted),
            tuple(order),
            None if sizes is None else tuple(sizes[v] for v in order),
            None if costs is None else tuple(costs[v] for v in order),
        )

    def size(self, v: int) -> int:
        """The pebbles that a node takes."""
        return 1 if self.sizes is None else self.sizes[v]

    def cost(self, v: int) -> int:
        """The cost of a move of a node."""
        return 1 if self.costs is None else self.costs[v]

    def floor(self) -> int:
        """The cost of moving each live node as rarely as possible: twice, outputs once."""
        ends = sum(self.cost(v) for v in self.outputs)
        return 2 * sum(self.cost(v) for v in self.live()) - ends

    def name(self, v: int) -> str:
        """A node's name, or its number."""
        return self.names[v] if self.names else str(v)

    def live(self) -> list[int]:
        """The nodes that some output is computed from, outputs included, in order."""
        found = [False] * len(self)
        for v in self.outputs:
            found[v] = True
        for v in range(len(self) - 1, -1, -1):
            if found[v]:
                for u in self.preds[v]:
                    found[u] = True
        return [v for v, there in enumerate(found) if there]

    def part(self, nodes: Sequence[int]) -> Dag:
        """The graph of some nodes, in rising order, numbered anew; all outputs are among them."""
        number = {v: k for k, v in enumerate(nodes)}
        return Dag(
            tuple(tuple(number[u] for u in self.preds[v] if u in number) for v in nodes),
            tuple(number[v] for v in self.outputs),
            tuple(self.name(v) for v in nodes),
            None if self.sizes is None else tuple(self.sizes[v] for v in nodes),
            None if self.costs is None else tuple(self.costs[v] for v in nodes),
        )

    def depth(self) -> int:
        """The number of nodes on a longest path."""
        depths: list[int] = []
        for preds in self.preds:
            depths.append(1 + max((depths[u] for u in preds), default=0))
        return max(depths)

    def is_tree(self) -> bool:
        """One output, and every other node is used exactly once: a formula."""
        return len(self.outputs) == 1 and all(
            len(users) == (0 if v == self.outputs[0] else 1) for v, users in enumerate(self.users)
        )

    def is_chain(self) -> bool:
        """Each node is computed from the one before it, and the last is the output."""
        n = len(self)
        return self.outputs == (n - 1,) and all(
            preds == ((v - 1,) if v else ()) for v, preds in enumerate(self.preds)
        )


def chain(n: int) -> Dag:
    """n nodes in a row; the last is the output."""
    return Dag(tuple((v - 1,) if v else () for v in range(n)), (n - 1,))


def sorted_topologically(preds: Mapping[str, Sequence[str]]) -> list[str]:
    """Names with predecessors first, else in the given order.  UsageError P008: a cycle."""
    out: list[str] = []
    entered: set[str] = set()
    done: set[str] = set()
    for root in preds:
        stack = [root]
        while stack:
            v = stack[-1]
            if v in done:
                stack.pop()
                continue
            entered.add(v)
            missing = [u for u in preds[v] if u not in done]
            if not missing:
                out.append(v)
                done.add(v)
                stack.pop()
                continue
            for u in reversed(missing):
                if u in entered:
                    raise wrong(f"`{v}` is computed from itself, by way of `{u}`", node=v)
                stack.append(u)
    return out


def wrong(message: str, hint: str = "", **values: Any) -> UsageError:
    """P008: data that are not a graph."""
    return UsageError("P008", message, values=values, hint=hint)
