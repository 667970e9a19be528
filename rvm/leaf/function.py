"""Functions written over leaf operations: traced once, printed for each target.

A function may have a *guard*: a condition on its arguments under which another text, the cold one,
is evaluated instead of its body.  Cold texts may have guards too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from rvm.leaf.ops import F64, OPS, Op
from rvm.leaf.trace import Node

Body = Callable[..., Node]


class Function:
    """A function of floats (or of the kinds given) by its text, which is traced when it is needed.

    `params` are the arguments' nodes, `result` the body's value, `guard` the condition under which
    `cold` is evaluated instead; both are None of a function that has none.
    """

    def __init__(
        self,
        name: str,
        body: Body,
        kinds: tuple[str, ...],
        guard: Body | None = None,
        cold: Function | None = None,
    ) -> None:
        if (guard is None) != (cold is None):
            raise ValueError("a guard goes with a cold text")
        self.name = name
        self.params = tuple(Node("argument", kind, (), k) for k, kind in enumerate(kinds))
        self.cold = cold
        self.body = body
        self._guard = guard

    @cached_property
    def result(self) -> Node:
        """The body's value."""
        return self.body(*self.params)

    @cached_property
    def guard(self) -> Node | None:
        """The condition under which the cold text is evaluated."""
        return None if self._guard is None else self._guard(*self.params)

    @property
    def doc(self) -> str:
        """The docstring of the body."""
        return inspect.getdoc(self.body) or ""

    @cached_property
    def ordered(self) -> Order:
        """The nodes needed for the guard, if there is one, and then for the result."""
        order = Order()
        if self.guard is not None:
            order.add(self.guard)
        order.add(self.result)
        return order

    def __repr__(self) -> str:
        return f"<leaf function {self.name}>"

    @cached_property
    def is_native(self) -> bool:
        """Whether all operations have machine code."""
        return all(op.native for op in self.operations())

    def operations(self) -> Iterator[Op]:
        """The operations of the body."""
        return (OPS[node.op] for node in self.ordered.nodes if node.op in OPS)

    def texts(self) -> Iterator[Function]:
        """The function and its cold texts."""
        at: Function | None = self
        while at is not None:
            yield at
            at = at.cold


def function(
    name: str, *kinds: str, guard: Body | None = None, cold: Function | None = None
) -> Callable[[Body], Function]:
    """Makes a function of a body; its arguments are floats unless kinds are given."""

    def make(body: Body) -> Function:
        arity = len(inspect.signature(body).parameters)
        return Function(name, body, kinds or (F64,) * arity, guard, cold)

    return make


class Order:
    """The nodes needed for results, each after its arguments; equal operations are one node.

    `results` are the nodes of the results added, `ends` the number of nodes after adding each.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.results: list[Node] = []
        self.ends: list[int] = []
        self._known: dict[tuple[Any, ...], Node] = {}
        self._made: dict[int, Node] = {}
        self._kept: list[Node] = []

    def add(self, result: Node) -> None:
        """Add a result and the nodes that it needs."""
        self._kept.append(result)
        made = self._made
        stack: list[tuple[Node, bool]] = [(result, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in made:
                continue
            if not ready:
                stack.append((node, True))
                stack.extend((a, False) for a in reversed(node.args))
                continue
            args = tuple(made[id(a)] for a in node.args)
            key = (node.op, node.kind, *map(id, args), _key(node.aux))
            same = self._known.get(key)
            if same is None:
                same = node if args == node.args else Node(node.op, node.kind, args, node.aux)
                self._known[key] = same
                self.nodes.append(same)
            made[id(node)] = same
        self.results.append(made[id(result)])
        self.ends.append(len(self.nodes))


def _key(aux: Any) -> Any:
    if isinstance(aux, float):
        return aux.hex()
    return aux if isinstance(aux, (int, bool, type(None))) else id(aux)
