"""Expression nodes checked one by one: every type is computed anew and compared with the node's.

Nothing here recurses: an expression may be as deep as its maker liked until it
has been measured, and a graph with shared parts is measured without being
unfolded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rvm.expr import (
    LENGTHS,
    Apply,
    Const,
    Expr,
    Index,
    Part,
    Peek,
    Place,
    Shaped,
    Transposed,
    children,
    inside,
)
from rvm.isa import FUNCTIONS, TypeFault, place_type
from rvm.isa.rules import Arg
from rvm.isa.typing import MAX_NODES
from rvm.numbers import system
from rvm.program import Register
from rvm.types import SCALARS, Array, Scalar, Stack, ValueType, elem_of, rank_of

MAX_DEPTH = 100
"""The deepest expression of one instruction; engines may recurse on verified ones."""
MAX_RANK = 32
"""The most dimensions that an array may have; NumPy's limit."""


class Malformed(TypeFault):
    """A node that no assembler makes: its type does not match its contents."""

    def __init__(self, message: str, node: Expr | None = None) -> None:
        super().__init__(message, node, code="B020")


@lru_cache(maxsize=4096)
def is_type(t: object) -> bool:
    """Whether `t` is a type that registers may have."""
    if isinstance(t, Array):
        return is_type(t.elem) and isinstance(t.rank, int) and 1 <= t.rank <= MAX_RANK
    if isinstance(t, Stack):
        return is_type(t.elem)
    return isinstance(t, Scalar) and t.name in SCALARS


@lru_cache(maxsize=4096)
def result_type(fn: str, types: tuple[ValueType, ...]) -> ValueType:
    """The type of `fn` applied to values of these types; TypeFault where it does not take them."""
    row = FUNCTIONS.get(fn)
    if row is None:
        raise TypeFault(f"there is no function `{fn}`", code="A004")
    if len(types) != row.arity:
        raise TypeFault(
            f"`{fn}` takes {row.arity} argument{'s' * (row.arity != 1)}, not {len(types)}",
            code="A044",
        )
    if row.formula is not None:
        raise TypeFault(f"`{fn}` is a formula, which its use is replaced by", code="B020")
    typing = row.rule([Arg(elem_of(t), rank_of(t)) for t in types], None)
    for k, (t, elem) in enumerate(zip(types, typing.elems, strict=True), 1):
        if elem_of(t) != elem:
            raise TypeFault(f"argument {k} of `{fn}` has the type {t}, not {elem}")
    if rank_of(typing.result) > MAX_RANK:
        raise TypeFault(f"`{fn}` gives an array of too many dimensions", code="A042")
    result: ValueType = typing.result
    return result


def constant_fits(value: object, t: Scalar) -> bool:
    """Whether `value` is a raw value of type `t`, as `Const` holds it."""
    held = t.row.dtype[0]
    kind = type(value)
    if kind is not {"b": bool, "i": int, "u": int, "f": float, "c": complex}[held]:
        return False
    if isinstance(value, int) and held in "iu":
        low = -(1 << t.bits - 1) if t.is_signed else 0
        return low <= value < low + (1 << t.bits)
    return not isinstance(value, float) or system(t).holds(value)


class Nodes:
    """The checks of all expressions of one function; nodes met before are not checked again."""

    def __init__(self, registers: Sequence[Register]) -> None:
        self.registers = registers
        self._types = [r.type for r in registers]
        self._whole = {k: (t, (k,)) for k, t in enumerate(self._types) if not isinstance(t, Stack)}
        self._measured: dict[int, tuple[int, int]] = {}
        self._registers: dict[int, tuple[int, ...]] = {}

    def check(self, root: Expr, stack: bool = False) -> tuple[int, ...]:
        """The registers that `root` names, after checking all of its nodes.

        With `stack`, the root may be a whole stack. TypeFault (with its `node`) describes an error.
        The caller must keep `root` alive while this object is in use.
        """
        if type(root) is Place and not root.path:  # most operands are whole registers
            whole = self._whole.get(root.reg)
            if whole is not None and (root.type is whole[0] or root.type == whole[0]):
                return whole[1]
        key = id(root)
        done = self._registers.get(key)
        if done is None:
            done = self._registers[key] = self._check(root)
        if root.type is None and not stack:
            raise TypeFault("a stack is not a value", root)
        return done

    def _check(self, root: Expr) -> tuple[int, ...]:
        measured = self._measured
        if type(root) is Place and not root.path:
            self._measured[id(root)] = (1, 1)
            self._place(root, root=True)
            return (root.reg,)
        seen: set[int] = set()
        named: dict[int, None] = {}
        todo = [root]
        while todo:
            node = todo[-1]
            key = id(node)
            if key in seen:
                todo.pop()
                continue
            inner = node.args if type(node) is Apply else tuple(children(node))
            waiting = False
            for c in inner:
                if id(c) in seen:
                    continue
                if type(c) is Const or (type(c) is Place and not c.path):
                    self._leaf(c, seen, named)
                else:
                    waiting = True
                    todo.append(c)
            if waiting:
                continue
            todo.pop()
            seen.add(key)
            if isinstance(node, Place):
                named[node.reg] = None
            if key not in measured:
                self._node(node, root=node is root)
                measured[key] = self._measure(node, inner)
        size, depth = measured[id(root)]
        if size > MAX_NODES or depth > MAX_DEPTH:
            what = f"more than {MAX_NODES} nodes" if size > MAX_NODES else f"{depth} levels"
            raise TypeFault(
                f"the expression is too large: it has {what}",
                root,
                code="A046",
                hint="compute a part of it into an ancilla first",
            )
        return tuple(named)

    def _leaf(self, node: Expr, seen: set[int], named: dict[int, None]) -> None:
        """A node without parts, below the root: most nodes are."""
        key = id(node)
        if key not in self._measured:
            self._node(node, root=False)
            self._measured[key] = (1, 1)
        seen.add(key)
        if isinstance(node, Place):
            named[node.reg] = None

    def _measure(self, node: Expr, inner: Sequence[Expr]) -> tuple[int, int]:
        """Nodes of the tree (path steps count as one each) and its depth; both saturate."""
        size = 1 + (len(node.path) if isinstance(node, Place) else 0)
        depth = 0
        for child in inner:
            s, d = self._measured[id(child)]
            size += s
            depth = max(depth, d)
        return min(size, MAX_NODES + 1), depth + 1

    def _node(self, node: Expr, root: bool) -> None:
        try:
            match node:
                case Apply():
                    self._apply(node)
                case Place():
                    self._place(node, root)
                case Const():
                    if not (isinstance(node.type, Scalar) and is_type(node.type)):
                        raise Malformed("a constant without a type")
                    if not constant_fits(node.value, node.type):
                        raise Malformed(f"a constant that is not a value of {node.type}")
                case _:
                    raise Malformed(f"a {type(node).__name__} is not an expression of a program")
        except TypeFault as fault:
            fault.node = node if fault.node is None else fault.node
            raise

    def _apply(self, node: Apply) -> None:
        types = tuple(a.type for a in node.args if a.type is not None)
        if len(types) != len(node.args):
            raise TypeFault("a stack is not a value")
        t = result_type(node.fn, types)
        if node.fn in LENGTHS and len(node.args) == 2 and isinstance(node.args[1], Const):
            axis = node.args[1].value
            if not 0 <= axis < rank_of(types[0]):
                raise TypeFault(f"axis {axis} of a {types[0]}", code="A042")
        if node.type is not t and node.type != t:
            raise Malformed(f"`{node.fn}` gives {t}, but its node says {node.type}")

    def _place(self, node: Place, root: bool) -> None:
        if not 0 <= node.reg < len(self._types):
            raise Malformed(f"there is no register {node.reg}", node)
        base = self._types[node.reg]
        if isinstance(base, Stack) and not node.path and node.type is None:
            if root:
                return
            raise TypeFault("a stack is not a value", node)
        t: object = base
        if node.path:
            for step in node.path:
                self._step(step)
            t = place_type(base, node.path)
        if node.type is not t and node.type != t:
            raise Malformed(f"the place has the type {t}, but its node says {node.type}", node)

    @staticmethod
    def _step(step: object) -> None:
        match step:
            case Index(items) | Shaped(items) if items:
                for end in inside(step):
                    if not (isinstance(end.type, Scalar) and end.type.is_integer):
                        raise TypeFault(
                            f"an index is an integer, not a value of type {end.type}", end
                        )
            case Part("re" | "im") | Transposed() | Peek("top" | "len"):
                pass
            case _:
                raise Malformed("a step that places do not have")
