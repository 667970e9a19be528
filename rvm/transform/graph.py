"""An expression graph: typed expressions in which equal parts are one node.

Derivatives contain the expressions that they are derivatives of, and share parts with each other;
the graph makes this explicit.  A node is identified by its number, which is greater than those of
its parts.  So that formulas can be built on nodes without being copied, `ref` returns a reference
to a node, which `intern` replaces by the node itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rvm.expr import LENGTHS, Apply, Expr, Place, places, rebuild
from rvm.isa import FUNCTIONS
from rvm.isa.shapes import Dims, Lengths, is_length, result_dims
from rvm.types import Array, ValueType, rank_of

"""Functions that evaluate their second argument only if the first does not decide."""
ARRAY_WORK = 4
"""The weight of a function of an array, compared with one of numbers."""


@dataclass(frozen=True, slots=True)
class Node:
    """A constant or place, or a function of nodes;

    `lazy` are arguments that may not be evaluated.
    """

    type: ValueType
    leaf: Expr | None = None
    fn: str = ""
    args: tuple[int, ...] = ()
    lazy: tuple[Expr, ...] = ()


class Graph:
    """A growing expression graph over the registers of a function."""

    def __init__(self, lengths: Lengths) -> None:
        self._nodes: list[Node] = []
        self._number: dict[Node, int] = {}
        self._dims: list[Dims | None] = []
        self._reads: list[frozenset[int]] = []
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, number: int) -> Node:
        return self._nodes[number]

    # ------------------------------------------------------------ in

    def intern(self, node: Expr) -> int:
        """The number of a typed expression, in which stand-ins may occur."""
        if isinstance(node, Place) and node.reg < 0:
            return ~node.reg
        assert node.type is not None
        if not isinstance(node, Apply) or (is_length(node) and _is_real(node.args[0])):
            return self._enter(Node(node.type, leaf=node))
        if FUNCTIONS[node.fn].lazy:
            first, lazy = self.intern(node.args[0]), tuple(map(self._resolved, node.args[1:]))
            return self._enter(Node(node.type, None, node.fn, (first,), lazy))
        args = tuple(map(self.intern, node.args))
        found = self._like(node, args)
        return self._enter(Node(node.type, None, node.fn, args)) if found is None else found

    def has(self, node: Expr) -> bool:
        """Whether a node is in the graph already."""
        before = len(self._nodes)
        return self.intern(node) < before

    def _resolved(self, node: Expr) -> Expr:
        if isinstance(node, Place) and node.reg < 0:
            return self.expr(~node.reg)
        return rebuild(node, self._resolved)

    def _enter(self, node: Node) -> int:
        number = self._number.setdefault(node, len(self._nodes))
        if number == len(self._nodes):
            self._nodes.append(node)
            self._dims.append(self._found_dims(node))
            own = node.lazy if node.leaf is None else (node.leaf,)
            regs = frozenset(p.reg for e in own for p in places(e))
            self._reads.append(regs.union(*(self._reads[a] for a in node.args)))
        return number

    def _like(self, node: Apply, args: tuple[int, ...]) -> int | None:
        """A function that uses only the shape of an argument need not evaluate it."""
        if FUNCTIONS[node.fn].takes_shape:
            value, shape = args
            dims = self.dims(shape)
            if dims is not None and dims == self.dims(value):
                return value
            found = None if dims is None else self._place_like(shape, dims)
            if found is not None and node.type is not None:
                return self._enter(Node(node.type, None, node.fn, (value, found)))
        elif node.fn in LENGTHS:
            dims = self.dims(args[0])
            axis = 0 if node.fn == "len" else getattr(self[args[1]].leaf, "value", None)
            if dims is not None and axis is not None:
                return self.intern(dims[axis])
        return None

    def _place_like(self, number: int, dims: Dims) -> int | None:
        """A place of these lengths among those that a node reads."""
        node = self[number]
        if isinstance(node.leaf, Place):
            return number if self.dims(number) == dims else None
        found = (self._place_like(a, dims) for a in node.args)
        return next((f for f in found if f is not None), None)

    # ------------------------------------------------------------ out

    def ref(self, number: int) -> Expr:
        """A constant or place itself; a stand-in for any other node."""
        node = self[number]
        return Place(~number, (), node.type) if node.leaf is None else node.leaf

    def opened(self, node: Expr) -> Expr:
        """The function of stand-ins that a stand-in is for; other expressions as they are."""
        if not isinstance(node, Place) or node.reg >= 0:
            return node
        held = self[~node.reg]
        return Apply(held.fn, (*map(self.ref, held.args), *held.lazy), held.type)

    def expr(self, number: int, held: Mapping[int, Place] | None = None, top: bool = False) -> Expr:
        """A node as an expression, those `held` as the places that hold them.

        With `top` the node itself is not taken from where it is held.
        """
        node = self[number]
        if node.leaf is not None:
            return node.leaf
        if held and not top and number in held:
            return held[number]
        args = tuple(self.expr(a, held) for a in node.args)
        return Apply(node.fn, args + node.lazy, node.type)

    # ------------------------------------------------------------ what is known

    def dims(self, number: int) -> Dims | None:
        """A node's lengths, () of a scalar, None where they are not known before a run."""
        return self._dims[number]

    def _found_dims(self, node: Node) -> Dims | None:
        if not isinstance(node.type, Array):
            return ()
        if node.leaf is not None:
            return self._lengths.of_place(node.leaf) if isinstance(node.leaf, Place) else None
        if node.lazy:
            return None  # what it may evaluate, and has the shape of, is not a node
        dims = [self.dims(a) for a in node.args]
        known = [d for d in dims if d is not None]
        if len(known) < len(dims):
            return None
        args = [self.expr(a) if rank_of(self[a].type) == 0 else self.ref(a) for a in node.args]
        return result_dims(node.fn, args, known)

    def reads(self, number: int) -> frozenset[int]:
        """The registers that evaluating a node reads."""
        return self._reads[number]

    def work(self, number: int) -> int:
        """About how much a function takes by itself: nothing if it only chooses or copies."""
        node = self[number]
        if node.leaf is not None or FUNCTIONS[node.fn].cost == "MOVES":
            return 0
        many = any(rank_of(self[n].type) for n in (number, *node.args))
        return ARRAY_WORK if many else 1


def _is_real(node: Expr) -> bool:
    return not (isinstance(node, Place) and node.reg < 0)
