"""The places that a Python function changes, found before it is read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

MAX_SHOWN = 60
Changed = Callable[[ast.Call], Sequence[ast.expr]]
"""The arguments that a call on a separate line changes."""


def root(e: ast.AST) -> str:
    """The name with which a place begins; "" if the expression is not a place."""
    while isinstance(e, (ast.Attribute, ast.Subscript)):
        e = e.value
    return e.id if isinstance(e, ast.Name) else ""


def changed_names(body: Sequence[ast.AST], changed: Changed) -> dict[str, int]:
    """The names of places that a body changes, with the first line that does so."""
    found: dict[str, int] = {}
    for node in statements(body):
        for target in _targets(node, changed):
            name = root(target)
            if name:
                found.setdefault(name, node.lineno)
    return found


def statements(body: Sequence[ast.AST]) -> Iterator[ast.stmt]:
    """Every statement of a body, those inside others too, in the order of the text.

    Expressions hold none, and are most of a tree: they are not entered.
    """
    for node in body:
        if isinstance(node, ast.stmt):
            yield node
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            inner = getattr(node, field, None)
            if inner and isinstance(inner, list):
                yield from statements(inner)


def _targets(stat: ast.stmt, changed: Changed) -> Iterator[ast.expr]:
    match stat:
        case ast.AugAssign(target):
            yield target
        case ast.Assign([target], value) if is_exchange(target, value):
            assert isinstance(target, ast.Tuple)
            yield from target.elts
        case ast.Assign([target], value) if same(operand_of(value), target):
            yield target
        case ast.Expr(ast.Call() as call):
            yield from changed(call)


def operand_of(value: ast.expr) -> ast.expr | None:
    """The operand of `-x`, `~x`, `not x`, `x.conjugate()` or `f(x)`."""
    match value:
        case ast.UnaryOp(ast.USub() | ast.Invert() | ast.Not(), operand):
            return operand
        case ast.Call(ast.Attribute(whole, "conjugate" | "conj"), [], []):
            return whole
        case ast.Call(_, [operand], []):
            return operand
    return None


def places(e: ast.expr) -> Iterator[ast.expr]:
    """The places that a reversible call may change by an argument: `-x` and `10 - x` are of x."""
    match e:
        case ast.Name() | ast.Attribute() | ast.Subscript():
            yield e
        case ast.UnaryOp(_, operand):
            yield from places(operand)
        case ast.BinOp(left, _, right):
            yield from places(left)
            yield from places(right)


def is_exchange(target: ast.expr, value: ast.expr) -> bool:
    """Whether an assignment is `a, b = b, a`, of places in any order."""
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return False
    here, there = [sorted(map(_key, t.elts)) for t in (target, value)]
    return here == there and len(set(here)) == len(here)


def same(a: ast.AST | None, b: ast.AST | None) -> bool:
    """Whether two expressions have the same text."""
    return type(a) is type(b) and a is not None and b is not None and _key(a) == _key(b)


def shown(e: ast.AST) -> str:
    """A piece of Python as messages show it: its first line, cut where it is long."""
    text = ast.unparse(e).split("\n")[0]
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _key(e: ast.AST) -> str:
    return e.id if isinstance(e, ast.Name) else ast.unparse(e)


def reads(e: ast.expr, keep: Callable[[str], bool] = lambda _: True) -> Iterator[ast.Name]:
    """The names whose values an expression reads; lengths of arrays are not values."""
    match e:
        case ast.Call(ast.Name("len"), [ast.Name()], []):
            return
        case ast.Subscript(ast.Attribute(ast.Name(), "shape")):
            return
        case ast.Attribute(ast.Name(), "shape"):
            return
        case ast.Name():
            yield e
    for inner in ast.iter_child_nodes(e):
        if isinstance(inner, ast.expr):
            yield from reads(inner)
        elif isinstance(inner, ast.keyword):
            yield from reads(inner.value)
