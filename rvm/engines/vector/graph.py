"""What an iteration computes, for all iterations at once: a graph of pure values.

A `Node` is a value a lane (an iteration), or one value for all.  Its text is a template over its
arguments' texts.  A node that is used once is printed where it is used, so that its memory is given
back early; others get names.  `Text` prints nodes in an order in which arguments come first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from rvm.engines.vector.loops import Declined
from rvm.types import Scalar

_ATOM = re.compile(r"[\w.()+-]+")
"""A name or a number."""
MAX_HEIGHT = 12
"""Levels that one line nests: Python's parser has its limits."""


class Node:
    """A value: a NumPy array of the number type's storage, or (not `lanes`) a Python number.

    `memory` is the register of whose array it is a view, if it is one: its value is that of the
    moment when it is used.  `fresh`: it is an array of its own, of all lanes.
    `label` names what an iteration finds as the one before has left it.
    """

    __slots__ = ("args", "fresh", "label", "lanes", "memory", "template", "type")

    def __init__(
        self,
        template: str,
        args: tuple[Node, ...] = (),
        type: Scalar | None = None,
        lanes: bool = True,
        memory: int = -1,
        fresh: bool = False,
        label: str = "",
    ) -> None:
        self.template = template
        self.args = args
        self.type = type
        self.lanes = lanes
        self.memory = memory
        self.fresh = fresh
        self.label = label

    def __repr__(self) -> str:
        return f"<Node {self.template} of {len(self.args)}>"

    @property
    def is_atom(self) -> bool:
        """Whether its text is as short as a name for it would be."""
        return not self.args and _ATOM.fullmatch(self.template) is not None


class Text:
    """Lines that compute nodes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._texts: dict[int, str] = {}
        """Of nodes that are used once: they have no names."""
        self._heights: dict[int, int] = {}
        self._uses: Counter[int] = Counter()
        self._under: set[int] = set()
        self._kept: list[Node] = []
        self._order: list[Node] = []
        """All nodes, each after its arguments."""

    def count(self, roots: Iterable[Node]) -> None:
        """Say what is going to be printed: what is used how often.

        Declined if a value depends on itself: it then comes from the iteration before.
        """
        done: set[int] = set()
        for root in roots:
            self._uses[id(root)] += 1
            stack = [(root, False)]
            while stack:
                node, left = stack.pop()
                if left:
                    self._under.discard(id(node))
                    done.add(id(node))
                    self._order.append(node)
                    continue
                if id(node) in done:
                    continue
                if id(node) in self._under:
                    names = [n.label for n in self._kept if n.label and id(n) in self._under]
                    raise Declined(
                        f"an iteration goes on from {' and '.join(sorted(set(names)))} "
                        "as the one before has left it"
                    )
                self._under.add(id(node))
                self._kept.append(node)
                stack.append((node, True))
                for arg in node.args:
                    self._uses[id(arg)] += 1
                    stack.append((arg, False))

    def print(self) -> None:
        """Print the lines of all nodes that have names."""
        for node in self._order:
            self.value(node)

    def value(self, node: Node, name: bool = False) -> str:
        """The text of a node, whose arguments have been printed; `name`: that of its name."""
        known = self._names.get(id(node))
        if known is not None:
            return known
        text = self._texts.get(id(node))
        if text is None:
            text = fill(node.template, [self.value(a) for a in node.args])
        height = 1 + max((self._heights.get(id(a), 0) for a in node.args), default=0)
        if node.is_atom:
            self._names[id(node)] = text
            return text
        if name or self._uses[id(node)] > 1 or height >= MAX_HEIGHT:
            self._names[id(node)] = made = f"_v{len(self.lines)}"
            self.lines.append(f"{made} = {text}")
            return made
        self._heights[id(node)], self._texts[id(node)] = height, text
        return text

    def uses(self, node: Node) -> int:
        """How often a node is used."""
        return self._uses[id(node)]


def fill(template: str, args: list[str]) -> str:
    """A template with its arguments in place; `{t…}` have been put in before."""
    for k, arg in enumerate(args):
        template = template.replace(f"{{{k}}}", f"\0{k}\0")
        args[k] = arg
    for k, arg in enumerate(args):
        template = template.replace(f"\0{k}\0", arg)
    return template
