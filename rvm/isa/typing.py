"""Typing of expressions: templates in, typed nodes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from rvm.expr import (
    Apply,
    Const,
    Expr,
    Index,
    Part,
    Peek,
    Place,
    Shaped,
    Span,
    Step,
    Transposed,
    substitute,
    through,
    walk,
)
from rvm.faults import DefinitionError
from rvm.isa.rows import FUNCTIONS, FunctionRow
from rvm.isa.rules import (
    CHOICES,
    FIXED_RESULT,
    Arg,
    TypeFault,
    Typing,
    default_type,
    widest_default,
)
from rvm.numbers import has_own_system, system
from rvm.types import (
    BOOL,
    C128,
    F64,
    I64,
    Array,
    Scalar,
    Stack,
    ValueType,
    elem_of,
    rank_of,
    with_rank,
)

MAX_NODES = 4096
"""The largest number of nodes in an expression of one instruction."""

Converted = Callable[[Expr, Scalar], None]
"""A callback with the message for a converted operand, and the type it is converted to."""
_converted: ContextVar[Converted | None] = ContextVar("converted", default=None)


@contextmanager
def wholes_as_reals(told: Converted) -> Iterator[None]:
    """A context in which whole numbers combined with real ones become real, as in Python.

    The same holds for whole numbers assigned to a real place, or passed to a function that takes no
    whole numbers, such as `/`.
    """
    token = _converted.set(told)
    try:
        yield
    finally:
        _converted.reset(token)


def as_real(node: Expr, typed_node: Expr, want: Scalar | None) -> Expr:
    """`typed_node`, converted if it is whole, a real is wanted, and Python would convert it."""
    told = _converted.get()
    t = typed_node.type
    if told is None or want is None or not _is_whole(t) or not _is_real(want):
        return typed_node
    told(node, want)
    return apply(str(want), typed_node)


def _is_whole(t: ValueType | None) -> bool:
    return t is not None and elem_of(t).is_integer


def _is_real(t: Scalar) -> bool:
    return not (t.is_integer or t.is_bool)


def literal(value: object, t: Scalar, node: Expr | None = None) -> Const:
    """A literal as a constant of type `t`; TypeFault where it has no exact or nearest value."""
    try:
        return Const(system(t).literal(value), t)
    except (ValueError, OverflowError, TypeError) as error:
        hint = "make the other operand complex: `c128(…)`" if isinstance(value, complex) else ""
        raise TypeFault(str(error), node, hint=hint, code="A041") from None


def typed(node: Expr, want: Scalar | None = None) -> Expr:
    """`node` with every part typed; `want` decides literals that nothing else does.

    Nodes that are typed already are returned as they are.  TypeFault names the part at fault.
    """
    if isinstance(node, Const) and node.type is None:
        return literal(node.value, want or default_type(node.value), node)
    if isinstance(node, Apply) and node.type is None:
        return _typed_apply(node, want)
    if node.type is None:
        hint = "`top(s)` is the value on top, `len(s)` the number of values"
        raise TypeFault("a stack is not a value", node, hint=hint)
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
    first = [a if _adapts(a) else typed(a) for a in node.args]
    # An argument made of literals alone takes the type of its neighbours.
    hint = want
    if any(isinstance(a, Apply) and a.type is None for a in first):
        hint = _neighbour(first, row, want)
    # The condition of a choice is a condition, of whatever type the values are.
    hints = [BOOL if row.rule in CHOICES and not k else hint for k in range(row.arity)]
    if _converted.get() is not None and hint is not None and not _is_real(hint):
        # Formulas of real literals are real beside whole numbers.
        hints = [
            _real_target([], want) if _says_real(a) else h
            for a, h in zip(first, hints, strict=True)
        ]
    parts = [
        a if a.type is not None or isinstance(a, Const) else typed(a, h)
        for a, h in zip(first, hints, strict=True)
    ]
    try:
        typing, done = _applied(node, row, parts, want)
    except TypeFault as fault:
        if fault.message.startswith(("does not", "takes")):
            fault.message = f"`{row.symbol or row.name}` {fault.message}"
            if row.symbol == "^":
                fault.hint = "a power is `**`"
            if row.name == "/" and fault.hint:
                fault.hint = f"`//` rounds down; for a real quotient {fault.hint}"
        if fault.node is None:
            fault.node = node
        raise
    if row.formula is not None:
        return typed(substitute(row.formula, done), want)
    own = next(filter(has_own_system, typing.elems), None)
    if own is not None and not _has_code(node.fn, typing.elems):
        raise TypeFault(f"`{row.symbol or row.name}` does not take a value of type {own}", node)
    return Apply(node.fn, done, typing.result)


def _applied(
    node: Apply, row: FunctionRow, parts: list[Expr], want: Scalar | None
) -> tuple[Typing, tuple[Expr, ...]]:
    """The types by the function's rule; whole numbers as real ones where it needs that."""
    told = _converted.get()
    wholes = [k for k, p in enumerate(parts) if _is_whole(p.type)] if told is not None else []
    by_rule: TypeFault | None = None
    if not (wholes and _has_real_literal(parts)):
        try:
            return _by_rule(row, parts, want)
        except TypeFault as fault:
            # A whole number that does not fit is not taken for a real one.
            if not wholes or fault.code == "A041":
                raise
            by_rule = fault
    assert told is not None
    target = _real_target(parts, want)
    as_reals = list(parts)
    for k in wholes:
        as_reals[k] = apply(str(target), parts[k])
    try:
        found = _by_rule(row, as_reals, want)
    except TypeFault:
        if by_rule is not None:
            raise by_rule from None
        return _by_rule(row, parts, want)
    for k in wholes:
        told(node.args[k], target)
    return found


def _by_rule(
    row: FunctionRow, parts: Sequence[Expr], want: Scalar | None
) -> tuple[Typing, tuple[Expr, ...]]:
    typing = row.rule([_arg(p) for p in parts], want)
    return typing, tuple(_as(p, t) for p, t in zip(parts, typing.elems, strict=True))


def _says_real(node: Expr) -> bool:
    """Whether a formula of literals has a real one among them."""
    return node.type is None and _has_real_literal([n for n in walk(node) if n.type is None])


def _has_real_literal(parts: Sequence[Expr]) -> bool:
    return any(
        p.type is None and isinstance(p, Const) and isinstance(p.value, (float, complex))
        for p in parts
    )


def _real_target(parts: Sequence[Expr], want: Scalar | None) -> Scalar:
    """The real type for whole numbers: that of the others, else what is wanted, else f64."""
    for p in parts:
        if p.type is not None and _is_real(elem_of(p.type)):
            return elem_of(p.type)
    if want is not None and _is_real(want):
        return want
    literals = [_arg(p) for p in parts if p.type is None and isinstance(p, Const)]
    return C128 if literals and widest_default(literals) == C128 else F64


def _has_code(fn: str, elems: tuple[Scalar, ...]) -> bool:
    from rvm.isa.implementation import implementation

    try:
        return implementation(fn, elems) is not None
    except DefinitionError:
        return False


def _neighbour(first: Sequence[Expr], row: FunctionRow, want: Scalar | None) -> Scalar | None:
    """The type for arguments that are expressions of literals."""
    values = first[1:] if row.rule in CHOICES else first
    for a in values:
        if a.type is not None:
            return elem_of(a.type)
    if want is not None and row.rule not in FIXED_RESULT:
        return want
    leaves = [n for a in values for n in walk(a) if isinstance(n, Const) and n.type is None]
    found = widest_default([Arg(None, 0, n.value) for n in leaves])
    if found == I64 and all(_adapts(a) for a in values):
        try:
            row.rule([Arg(I64, 0)] * row.arity, None)
        except TypeFault:
            return F64
    return found


def _as(node: Expr, t: Scalar) -> Expr:
    """An argument in the type that the rule gives it."""
    done = typed(node, t)
    if done.type is None or elem_of(done.type) != t:
        raise TypeFault(f"the operands have the types {done.type} and {t}", node)
    return done


def _adapts(node: Expr) -> bool:
    """Whether an argument takes the type of its neighbours: literals, and formulas of them."""
    if node.type is not None:
        return False
    if isinstance(node, Const):
        return True
    if not isinstance(node, Apply):
        return False
    row: FunctionRow | None = FUNCTIONS.get(node.fn)
    if row is None or row.rule in FIXED_RESULT or len(node.args) != row.arity:
        return False
    return all(_adapts(a) for a in (node.args[1:] if row.rule in CHOICES else node.args))


def _arg(node: Expr) -> Arg:
    value = node.value if isinstance(node, Const) else None
    if node.type is None:
        return Arg(None, 0, 0 if value is None else value)
    return Arg(elem_of(node.type), rank_of(node.type), value)


def surplus(indices: int, rank: int) -> str:
    """The message for more indices than there are dimensions."""
    if not rank:
        return "this is not an array, so it has no elements"
    many = "indices" if indices > 1 else "index"
    return f"{indices} {many} for {rank} dimension{'s' * (rank > 1)}"


def place_type(base: ValueType | Stack, path: Sequence[Step]) -> ValueType:
    """The type of a place: the register's type, followed along the path."""
    if isinstance(base, Stack):
        if not path or not isinstance(path[0], Peek):
            raise TypeFault(
                "a stack has no parts and is not a value",
                hint="`top(s)` is the value on top; `pop x, s` moves it to x, which must be 0",
            )
        base, path = base.elem if path[0].name == "top" else I64, path[1:]
    t: ValueType = base
    for step in path:
        match step:
            case Index(items):
                if len(items) > rank_of(t):
                    raise TypeFault(surplus(len(items), rank_of(t)), code="A042")
                t = with_rank(elem_of(t), rank_of(t) - sum(not isinstance(i, Span) for i in items))
            case Part():
                if not elem_of(t).is_complex:
                    raise TypeFault(f"a value of type {t} has no `.re` and `.im`")
                t = with_rank(F64, rank_of(t))
            case Transposed():
                if not isinstance(t, Array):
                    raise TypeFault("only an array has a `.T`", code="A042")
            case Shaped(dims):
                if rank_of(t) != 1:
                    raise TypeFault(
                        f"`.reshape` is of an array with one dimension, not {rank_of(t)}",
                        code="A042",
                        hint="hold the numbers in a row, and use `x.reshape(m, n)` for the matrix",
                    )
                t = with_rank(elem_of(t), len(dims))
            case Peek(name):
                raise TypeFault(f"only a stack has a `{name}`")
    return t


def place(reg: int, base: ValueType | Stack, path: Sequence[Step] = ()) -> Place:
    """A typed place; indices are typed as i64, TypeFault where they are anything else."""
    done: list[Step] = []
    for step in path:
        done.append(through(step, _index))
    return Place(reg, tuple(done), place_type(base, done))


def _index(node: Expr) -> Expr:
    done = typed(node, I64)
    if not (isinstance(done.type, Scalar) and done.type.is_integer):
        raise TypeFault(f"an index is an integer, not a value of type {done.type}", node)
    return done
