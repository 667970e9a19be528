"""Expressions as values of all iterations at once.

What no iteration changes is computed once, by the scalar code of the ordinary loop.  The rest is
computed by NumPy where that rounds as the scalar code does, else lane by lane with the scalar
function itself: runs are cut into pieces by the clock, so an iteration must give the same bits in
a vectorised piece, in ordinary code and in a single step.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import cast

from rvm.accounts.counts import Mark
from rvm.emit.python.printer import Printer
from rvm.engines.vector.access import Access, access
from rvm.engines.vector.graph import Node
from rvm.engines.vector.loops import Counted, Declined
from rvm.expr import Apply, Const, Expr, Part, Place, walk
from rvm.ir.typed import type_of
from rvm.isa import FUNCTIONS, implementation, value
from rvm.isa.implementation import deciding
from rvm.numbers import NAMES, compiled, fill
from rvm.program import Function
from rvm.types import BOOL, I64, Array, Scalar, elem_of, rank_of

NEW = frozenset({"+", "-", "*", "/", "neg", "sqrt", "square"})
"""Functions whose NumPy code gives a new array."""


def is_alike(fn: str, elems: tuple[Scalar, ...]) -> bool:
    """Whether a function's NumPy code gives the bits of its scalar code."""
    return implementation(fn, elems).alike or FUNCTIONS[fn].moves


class LoopPrinter(Printer):
    """Prints what no iteration changes, as scalars; elements are read from the arrays.

    `mark` tells the names that it binds from those of other loops.
    """

    mark = 0
    viewed = False

    def bind(self, v: object) -> str:
        name = next((k for k, known in self.constants.items() if known is v), "")
        if not name:
            name = f"_k{self.mark}_{len(self.constants)}"
            self.constants[name] = v
        return name

    def scalar(self, node: Expr) -> tuple[list[str], str]:
        """An expression, and the lines that go before it."""
        return self.begin(), self.value(node)

    def template(self, template: str, args: int) -> str:
        """A template whose temporaries have names."""
        slots = [f"{{{k}}}" for k in range(args)]
        return fill(template, *slots, fresh=self.text.temp() + "_")


class Context:
    """Some of the iterations: all, or those that a condition selects from those of `parent`."""

    def __init__(self, parent: Context | None = None, chosen: Node | None = None) -> None:
        self.parent = parent
        self.chosen = chosen
        """Which lanes of the parent these are."""
        self.rival: Context | None = None
        """What takes the parent's other lanes."""
        self.sel: Node | None = None
        """Which lanes of all these are."""
        if chosen is not None:
            outer = parent.sel if parent is not None else None
            self.sel = chosen if outer is None else Node("{0}[{1}]", (outer, chosen))
        self.count = Node("_k", lanes=False) if chosen is None else Node("len({0})", (chosen,))
        self.ticks = 0
        """Those that an iteration spends in it, inner contexts aside."""
        self.marks: list[Mark] = []
        """What an iteration executes in it."""

    def path_from(self, outer: Context) -> list[Context] | None:
        """The contexts after `outer` down to this one; None if it does not lie in `outer`."""
        path: list[Context] = []
        at: Context | None = self
        while at is not None:
            if at is outer:
                return path[::-1]
            path.append(at)
            at = at.parent
        return None

    def meets(self, other: Context) -> Context | None:
        """The context around both, if they may share lanes but neither is in the other."""
        mine, others = self.around(), other.around()
        pairs = enumerate(zip(mine, others, strict=False))
        at = next((k for k, (a, b) in pairs if a is not b), None)
        return None if at is None or mine[at].rival is others[at] else mine[at - 1]

    def around(self) -> list[Context]:
        """The contexts from the outermost to this one."""
        return [*(self.parent.around() if self.parent is not None else ()), self]


class Values:
    """Makes nodes of expressions.  What iterations change is asked of `read` and `element`."""

    def __init__(self, function: Function, counted: Counted, names: dict[str, object]) -> None:
        self.function = function
        self.counted = counted
        self.printer = LoopPrinter(function, names)
        self.printer.mark = counted.loop.head
        self.top: list[str] = []
        """Lines that are done once, before the first iteration."""
        self.used: set[int] = set()
        """Registers whose values at the beginning the source uses."""
        self._fixed: dict[Expr, Node] = {}
        self._memo: dict[Hashable, Node] = {}
        self._changing: dict[Expr, tuple[int, ...]] = {}
        self._packed: dict[Hashable, Node] = {}
        self._kept: list[object] = []
        self.variable = self.printer.regs[counted.var]
        self.printer.regs[counted.var] = "_at"
        self.root = Context()
        self.every = Node("steps(_at, _by, _k)", (), I64)
        """The loop's variable."""

    # ------------------------------------------------------------ asked of the body

    def read(self, place: Place, context: Context) -> Node:
        """A register that iterations change, as it is now."""
        raise NotImplementedError

    def element(self, found: Access, context: Context) -> Node:
        """An element that iterations reach or change, as it is now."""
        raise NotImplementedError

    def version(self, reg: int) -> int:
        """A number that changes whenever the register does."""
        raise NotImplementedError

    # ------------------------------------------------------------ values

    def value(self, node: Expr, context: Context) -> Node:
        """An expression in the lanes of a context."""
        if self.counted.is_fixed(node):
            return self.fixed(node)
        key = (node, context, tuple((r, self.version(r)) for r in self._regs(node)))
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._value(node, context)
        return found

    def _regs(self, node: Expr) -> tuple[int, ...]:
        """The changing registers that an expression reads."""
        found = self._changing.get(node)
        if found is None:
            regs = {n.reg for n in walk(node) if isinstance(n, Place)}
            found = self._changing[node] = tuple(sorted(regs & self.counted.changed))
        return found

    def fixed(self, node: Expr) -> Node:
        """An expression that no iteration changes: computed once."""
        found = self._fixed.get(node)
        if found is None:
            t = type_of(node)
            if isinstance(node, Const):
                return Node(self.printer.constant(node.value), (), cast(Scalar, t), lanes=False)
            if rank_of(t):
                raise Declined("it computes with whole arrays")
            self._use(node)
            lines, text = self.printer.scalar(node)
            self.top.extend(lines)
            if not text.isidentifier():
                name = f"_u{len(self._fixed)}"
                self.top.append(f"{name} = {text}")
                text = name
            found = self._fixed[node] = Node(text, (), cast(Scalar, t), lanes=False)
        return found

    def _use(self, node: Expr) -> None:
        for inner in walk(node):
            if isinstance(inner, Place):
                self.used.add(inner.reg)

    def _value(self, node: Expr, context: Context) -> Node:
        t = type_of(node)
        if rank_of(t):
            raise Declined("it computes with whole arrays")
        assert isinstance(t, Scalar)
        match node:
            case Place(reg, ()) if reg == self.counted.var:
                return self.pack(self.every, self.root, context)
            case Place(reg, path) if not isinstance(self.function.registers[reg].type, Array):
                found = self.read(Place(reg, (), self._type(reg)), context)
                if path:
                    part = {"re": "real", "im": "imag"}[cast(Part, path[0]).name]
                    return Node("{0}." + part, (found,), t, found.lanes, found.memory)
                return found
            case Place():
                return self.element(access(node, self.counted), context)
            case Apply("and" | "or" as fn, (a, b)):
                return self._lazy(fn, a, b, context)
            case Apply("choose", (c, a, b)):
                return self._chosen(self.value(c, context), (a, b), t, context)
            case Apply(fn, args):
                elems = []
                for a in args:
                    if rank_of(type_of(a)):
                        raise Declined("it computes with whole arrays")
                    elems.append(elem_of(type_of(a)))
                return self.apply(fn, [self.value(a, context) for a in args], elems, t, context)
        raise TypeError(f"a template cannot be evaluated: {node!r}")

    def _type(self, reg: int) -> Scalar:
        return cast(Scalar, self.function.registers[reg].type)

    def apply(
        self, fn: str, args: list[Node], elems: Sequence[Scalar], t: Scalar, context: Context
    ) -> Node:
        """A function on values."""
        types = tuple(elems)
        code = implementation(fn, types)
        if not any(a.lanes for a in args):
            text = self.printer.template(code.python, len(args))
            return Node(text, tuple(args), t, lanes=False)
        if fn == "*" and deciding(types).is_complex:
            return Node("times({0}, {1})", tuple(args), t, fresh=True)
        if is_alike(fn, types) and code.numpy:
            text = self.printer.template(code.numpy, len(args))
            # What moves numbers may give a view of its argument.
            memory = max(a.memory for a in args) if fn not in NEW else -1
            return Node(text, tuple(args), t, memory=memory, fresh=fn in NEW)
        whole = value(fn, types)
        name = code.python.removesuffix("({0})").removesuffix("({0}, {1})")
        fast = NAMES[name] if name in NAMES else compiled(code.python, len(args), NAMES)
        slots = "".join(f", {{{k}}}" for k in range(len(args)))
        text = (
            f"each({self.printer.bind(fast)}, {self.printer.bind(whole)}, "
            f"dtype_{t.name}, {{{len(args)}}}{slots})"
        )
        return Node(text, (*args, context.count), t, fresh=True)

    def _lazy(self, fn: str, a: Expr, b: Expr, context: Context) -> Node:
        """`and`, `or`: the right side is evaluated only in those lanes that need it."""
        first = self.value(a, context)
        t = cast(Scalar, type_of(a))
        if not first.lanes:
            first = Node("np.full({1}, {0})", (first, context.count), t)
        test = "np.flatnonzero({0})" if fn == "and" else "np.flatnonzero(np.logical_not({0}))"
        inner = Context(context, Node(test, (first,)))
        second = self.value(b, inner)
        assert inner.chosen is not None
        return self.merge(context, first, [(inner, second)], t)

    def _chosen(self, test: Node, arms: tuple[Expr, Expr], t: Scalar, context: Context) -> Node:
        """`choose`: each value in those lanes that take it."""
        if not test.lanes:
            test = Node("np.full({1}, {0})", (test, context.count), BOOL)
        parts = []
        for text, arm in zip(("{0}", "np.logical_not({0})"), arms, strict=True):
            inner = Context(context, Node(f"np.flatnonzero({text})", (test,)))
            parts.append((inner, self.value(arm, inner)))
        return self.merge(context, None, parts, t)

    # ------------------------------------------------------------ lanes

    def pack(self, node: Node, outer: Context, context: Context) -> Node:
        """A value of the lanes of `outer` in those of a context inside it."""
        if not node.lanes:
            return node
        path = context.path_from(outer)
        assert path is not None
        for inner in path:
            key = (id(node), id(inner))
            found = self._packed.get(key)
            if found is None:
                assert inner.chosen is not None
                found = Node("{0}[{1}]", (node, inner.chosen), node.type)
                self._packed[key] = found
                self._kept += [node, inner]
            node = found
        return node

    def merge(
        self,
        outer: Context,
        before: Node | None,
        parts: Sequence[tuple[Context, Node]],
        t: Scalar,
    ) -> Node:
        """A value in the lanes of `outer` that inner contexts have replaced in theirs."""
        args = [outer.count]
        text = f"merged(None, {{0}}, dtype_{t.name}"
        if before is not None:
            text = f"merged({{1}}, {{0}}, dtype_{t.name}"
            args.append(before)
        for inner, node in parts:
            path = inner.path_from(outer)
            assert path
            chosen = path[0].chosen
            for deeper in path[1:]:
                assert chosen is not None and deeper.chosen is not None
                chosen = Node("{0}[{1}]", (chosen, deeper.chosen))
            assert chosen is not None
            text += f", {{{len(args)}}}, {{{len(args) + 1}}}"
            args += [chosen, node]
        return Node(text + ")", tuple(args), t)
