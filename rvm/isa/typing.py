"""Giving types to expressions: templates in, typed nodes out."""

from __future__ import annotations

from collections.abc import Sequence

from rvm.expr import Apply, Const, Expr, Index, Part, Place, Span, Step, Transposed, substitute
from rvm.isa.rows import FUNCTIONS
from rvm.isa.rules import Arg, TypeFault, default_type
from rvm.numbers import system
from rvm.types import F64, I64, Array, Scalar, Stack, ValueType, elem_of, rank_of, with_rank

MAX_NODES = 4096
"""The largest expression that one instruction may hold, in nodes of its tree."""
MAX_DEPTH = 100
"""How deep an expression may nest: walking it must not meet Python's recursion limit."""


def literal(value: object, t: Scalar, node: Expr | None = None) -> Const:
    """A literal as a constant of type `t`; TypeFault where it has no exact or nearest value."""
    try:
        return Const(system(t).literal(value), t)
    except (ValueError, OverflowError, TypeError) as error:
        raise TypeFault(str(error), node, code="A041") from None


def typed(node: Expr, want: Scalar | None = None) -> Expr:
    """`node` with every part typed; `want` decides literals that nothing else does.

    Nodes that are typed already are returned as they are.  TypeFault names the part at fault.
    """
    if isinstance(node, Const) and node.type is None:
        return literal(node.value, want or default_type(node.value), node)
    if isinstance(node, Apply) and node.type is None:
        return _typed_apply(node, want)
    if node.type is None:
        raise TypeFault("an operand without a type", node)
    return node


def apply(fn: str, *args: Expr, want: Scalar | None = None) -> Expr:
    """The function `fn` applied to typed arguments (or literals)."""
    return typed(Apply(fn, args), want)


def _typed_apply(node: Apply, want: Scalar | None) -> Expr:
    row = FUNCTIONS.get(node.fn)
    if row is None:
        raise TypeFault(f"there is no function `{node.fn}`", node, code="A004")
    if len(node.args) != row.arity:
        raise TypeFault(
            f"`{node.fn}` takes {row.arity} argument{'s' * (row.arity != 1)}, not {len(node.args)}",
            node,
            code="A044",
        )
    first = [_half(a) for a in node.args]
    # An argument made of literals alone takes the type of its neighbours.
    known = next((elem_of(a.type) for a in first if a.type is not None), None)
    parts = [
        a if a.type is not None or isinstance(a, Const) else typed(a, known or want) for a in first
    ]
    try:
        typing = row.rule([_arg(p) for p in parts], want)
    except TypeFault as fault:
        if fault.message.startswith(("does not", "takes")):
            fault.message = f"`{row.symbol or row.name}` {fault.message}"
        fault.node = node if fault.node is None else fault.node
        raise
    done = tuple(typed(p, t) for p, t in zip(parts, typing.elems, strict=True))
    if row.formula is not None:
        return typed(substitute(row.formula, done), want)
    return Apply(node.fn, done, typing.result)


def _half(node: Expr) -> Expr:
    """`node` typed if something inside it decides; else left to its neighbours."""
    if node.type is not None or isinstance(node, Const):
        return node
    if isinstance(node, Apply) and all(_is_literal(a) for a in node.args):
        return node
    return typed(node)


def _is_literal(node: Expr) -> bool:
    if isinstance(node, Const):
        return node.type is None
    return isinstance(node, Apply) and node.type is None and all(_is_literal(a) for a in node.args)


def _arg(node: Expr) -> Arg:
    if node.type is None:
        return Arg(None, 0, node.value if isinstance(node, Const) else 0)
    return Arg(elem_of(node.type), rank_of(node.type))


def place_type(base: ValueType | Stack, path: Sequence[Step]) -> ValueType:
    """The type of a place: the register's type, followed along the path."""
    if isinstance(base, Stack):
        raise TypeFault("a stack has no parts and no value of its own")
    t: ValueType = base
    for step in path:
        match step:
            case Index(items):
                if len(items) > rank_of(t):
                    raise TypeFault(
                        f"{len(items)} indices for {rank_of(t)} dimensions", code="A042"
                    )
                t = with_rank(elem_of(t), rank_of(t) - sum(not isinstance(i, Span) for i in items))
            case Part():
                if not elem_of(t).is_complex:
                    raise TypeFault(f"a value of type {t} has no `.re` and `.im`")
                t = with_rank(F64, rank_of(t))
            case Transposed():
                if not isinstance(t, Array):
                    raise TypeFault("only an array has a `.T`", code="A042")
    return t


def place(reg: int, base: ValueType | Stack, path: Sequence[Step] = ()) -> Place:
    """A typed place; indices are typed as i64, TypeFault where they are anything else."""
    done: list[Step] = []
    for step in path:
        if isinstance(step, Index):
            step = Index(tuple(_item(i) for i in step.items))
        done.append(step)
    return Place(reg, tuple(done), place_type(base, done))


def _item(item: Expr | Span) -> Expr | Span:
    if isinstance(item, Span):
        return Span(
            None if item.lo is None else _index(item.lo),
            None if item.hi is None else _index(item.hi),
        )
    return _index(item)


def _index(node: Expr) -> Expr:
    done = typed(node, I64)
    if not (isinstance(done.type, Scalar) and done.type.is_integer):
        raise TypeFault(f"an index is an integer, not a value of type {done.type}", node)
    return done
