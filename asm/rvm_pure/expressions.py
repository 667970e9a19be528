"""Terms as single expressions of the machine, where this is possible.

A map whose function works on numbers becomes the same formula over whole arrays, a `reduce` with
`+` or `*` a `sum`, a `prod` or a product `@`.  A let is substituted where it is used: within one
instruction equal parts are computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rvm_asm.nodes import Application, FieldStep, Lit, Node, Operator, Ref, Sub, TypeRef

from rvm.expr import LENGTHS
from rvm.isa import FUNCTIONS
from rvm.isa.rows import reduction_by
from rvm.isa.rules import outer
from rvm.types import Scalar
from rvm_pure.terms import (
    Each,
    Fold,
    If,
    Index,
    Lam,
    Let,
    Num,
    Op,
    Pattern,
    Prim,
    Proj,
    Term,
    Tup,
    Var,
    free,
    names_in,
    walk,
)
from rvm_pure.types import Arr, Product, Type, leaves

Value = Node | tuple["Value", ...]
"""A value of the machine: an expression, or for a tuple one for each part."""
Env = Mapping[str, Value]
MOST_NODES = 400
"""The largest expression, in nodes, that lets are put in for; the machine takes ten times that."""


MOST_LEVELS = 60
"""The deepest expression, of 100 levels that the machine takes."""


class Hard(Exception):
    """A term that is not a single expression."""

    def __init__(self, term: Term) -> None:
        super().__init__()
        self.term = term


def expression(e: Term, env: Env) -> Value:
    """The expression for a typed term; Hard with the part that must be made first."""
    match e:
        case Num(value):
            return literal(e, value)
        case Var(name):
            v = env[name]
            return v if isinstance(v, Ref) and v.steps else _at(e, v)
        case Tup(items):
            return tuple(expression(x, env) for x in items)
        case Proj(k, of):
            whole = expression(of, env)
            assert isinstance(whole, tuple)
            return whole[k]
        case Let(p, a, b):
            try:
                return _checked(e, expression(b, bound(p, expression(a, env), env)))
            except Hard:
                # What is hard may be in the body, and see the name.
                raise Hard(e) from None
        case Op(fn, (array,)) if FUNCTIONS[fn].repeats:
            return _checked(e, _op(e, fn, [_elements(array, env)]))
        case Op(fn, args):
            found = [expression(a, env) for a in args]
            if fn in PRODUCTS and isinstance(e.type, Arr):
                for a, v in zip(args, found, strict=True):
                    if not _is_at_hand(v):
                        raise Hard(a)
            return _checked(e, _op(e, fn, found))
        case If():
            return _choice(e, env)
        case Index(of, items):
            indices = [_node(expression(i, env)) for i in items]
            return _element(e, expression(of, env), indices)
        case Each(fn, arrays):
            return _vector(e, fn, arrays, env)
        case Fold("reduce" | "foldl"):
            return _reduction(e, env)
        case Prim("dup", (a,)):
            value = expression(a, env)
            return value, value
        case Prim("replicate", (Op("len", (array,)), a)) if isinstance(a.type, Scalar):
            # As long as an array that there is.
            like = expression(array, env)
            one = literal(a, a.value) if isinstance(a, Num) else _node(expression(a, env))
            if isinstance(like, Node):
                return Application("spread_like", [one, like], e.start, e.end)
    raise Hard(e)


PRODUCTS = frozenset(n for n, row in FUNCTIONS.items() if row.contracts or row.rule is outer)
"""Functions that take each element of their arguments many times, if their value is an array."""


def _elements(array: Term, env: Env) -> Value:
    """An array to be reduced; if it is not an expression, it is made first as a whole."""
    try:
        return expression(array, env)
    except Hard:
        raise Hard(array) from None


def _is_at_hand(v: Value) -> bool:
    """Whether the elements of an array are in a place, and so need no work each time."""
    if isinstance(v, Application) and v.name == "transpose":
        v = v.args[0]
    return isinstance(v, Ref)


def bound(p: Pattern, v: Value, env: Env) -> dict[str, Value]:
    """The meanings of names, extended by those of a pattern."""
    out = dict(env)
    todo: list[tuple[Pattern, Value]] = [(p, v)]
    while todo:
        q, w = todo.pop()
        if isinstance(q, str):
            out[q] = w
        else:
            assert isinstance(w, tuple)
            todo += zip(q, w, strict=True)
    return out


def literal(e: Term, value: Any) -> Lit:
    """A number of a term's type."""
    t = e.type
    assert isinstance(t, Scalar)
    if t.is_float and isinstance(value, int):
        value = float(value)
    if isinstance(e, Num) and e.elem:
        return Lit(value, e.start, e.end, TypeRef(e.elem, None, None, None, e.start, e.end))
    return Lit(value, e.start, e.end)


def _node(v: Value) -> Node:
    assert not isinstance(v, tuple)
    return v


def size(v: Value) -> int:
    """The number of nodes of an expression, counted up to a little over the limit.

    An expression that nests too deep counts as too large.
    """
    todo: list[tuple[Any, int]] = [(v, 1)]
    n = 0
    while todo and n <= MOST_NODES:
        x, level = todo.pop()
        n += 1
        inner: Any = ()
        if isinstance(x, tuple):
            inner = x
        elif isinstance(x, Application):
            inner = x.args
        elif isinstance(x, Ref):
            inner = [i for s in x.steps if isinstance(s, Sub) for i in s.items]
        if inner and level > MOST_LEVELS:
            return MOST_NODES + 1
        todo += [(i, level + 1) for i in inner]
    return n


def _checked(e: Term, v: Value) -> Value:
    if size(v) > MOST_NODES:
        raise Hard(e)
    return v


def _op(e: Op, fn: str, args: list[Value]) -> Node:
    if fn in LENGTHS:
        while isinstance(args[0], tuple):
            args[0] = args[0][0]
    nodes = [_node(a) for a in args]
    made = Operator if FUNCTIONS[fn].symbol else Application
    return made(fn, nodes, e.start, e.end)


def _choice(e: If, env: Env) -> Value:
    try:
        c = _node(expression(e.cond, env))
    except Hard as hard:
        raise Hard(hard.term) from None
    try:
        a, b = expression(e.yes, env), expression(e.no, env)
    except Hard:
        raise Hard(e) from None
    return _checked(e, _chosen(e, c, a, b))


def _chosen(e: If, c: Node, a: Value, b: Value) -> Value:
    if isinstance(a, tuple):
        assert isinstance(b, tuple)
        return tuple(_chosen(e, c, x, y) for x, y in zip(a, b, strict=True))
    return Application("choose", [c, a, _node(b)], e.start, e.end)


def _element(e: Term, of: Value, indices: list[Node]) -> Value:
    if isinstance(of, tuple):
        return tuple(_element(e, x, indices) for x in of)
    if not isinstance(of, Ref):
        raise Hard(e)
    return indexed(_at(e, of), indices)


def _at(e: Term, v: Any) -> Any:
    """A value whose places are where a term stands that names them."""
    if isinstance(v, tuple):
        return tuple(_at(e, x) for x in v)
    return Ref(v.name, v.steps, e.start, e.end) if isinstance(v, Ref) and e.end else v


def indexed(of: Ref, indices: list[Node]) -> Ref:
    """An element of a place."""
    *steps, last = (*of.steps, None)
    if of.steps and isinstance(of.steps[-1], Sub):
        steps, last = list(of.steps[:-1]), of.steps[-1]
        assert isinstance(last, Sub)
        return Ref(
            of.name, (*steps, Sub([*last.items, *indices], last.start, last.end)), of.start, of.end
        )
    return Ref(of.name, (*of.steps, Sub([*indices], of.start, of.end)), of.start, of.end)


def field(of: Ref, name: str) -> Ref:
    """A field of a record."""
    return Ref(of.name, (*of.steps, FieldStep(name, of.start, of.end)), of.start, of.end)


# Whole arrays.


def _vector(e: Each, fn: Lam, arrays: tuple[Term, ...], env: Env) -> Value:
    """A map as a formula over arrays."""
    if any(isinstance(a, Prim) and a.name == "iota" for a in arrays):
        raise Hard(e)  # The loop that makes it counts, and needs no array of numbers.
    held = [expression(a, env) for a in arrays]
    ranks = {r for a in arrays for r in _ranks(a.type)}
    if len(ranks) != 1 or not _is_plain(fn, ranks.pop() - 1):
        raise Hard(e)
    outside = free(fn)
    rows = {v.name for v in walk(fn.body) if isinstance(v, Var) and _ranks(v.type) != {0}}
    if not all(_is_at_hand(env[name]) for name in rows & outside.keys()):
        # Elements would be computed for each row.
        raise Hard(e)
    inner: dict[str, Value] = dict(env)
    for p, v in zip(fn.params, held, strict=True):
        inner = bound(p, v, inner)
    try:
        found = expression(fn.body, inner)
    except Hard:
        raise Hard(e) from None
    first = held[0]
    while isinstance(first, tuple):
        first = first[0]
    names = {n for p in fn.params for n in names_in(p)}
    return _checked(e, _spread(found, fn.body, names, first))


def _spread(v: Value, e: Term, names: set[str], like: Node) -> Value:
    """A value that is to be an array, like `like` where no element goes into it."""
    if isinstance(v, tuple):
        items = e.items if isinstance(e, Tup) else (e,) * len(v)
        return tuple(_spread(w, x, names, like) for w, x in zip(v, items, strict=True))
    if _depends(e, names):
        return v
    return Application("spread_like", [v, like], e.start, e.end)


def _depends(e: Term, names: set[str]) -> bool:
    if isinstance(e, Let):
        more = set(names_in(e.pattern)) if _depends(e.value, names) else set()
        return _depends(e.body, names | more)
    if isinstance(e, Op) and e.fn in LENGTHS:
        return False
    return any(n in names for n in free(e))


def _ranks(t: Type | None) -> set[int]:
    """The numbers of dimensions of the arrays that hold a value's numbers."""
    match t:
        case Arr(elem):
            return {r + 1 for r in _ranks(elem)}
        case Product(items):
            return {r for item in items for r in _ranks(item)}
    return {0}


def _is_plain(fn: Lam, rank: int) -> bool:
    """Whether a function of elements of a rank is a formula that holds of arrays as of numbers."""

    def plain(e: Term) -> bool:
        match e:
            case Num() | Var():
                return True
            case Op(name, args):
                return FUNCTIONS[name].is_elementwise and all(map(plain, args))
            case Each(f, arrays):
                of_rows = all(_ranks(a.type) == {rank} and plain(a) for a in arrays)
                return of_rows and _is_plain(f, rank - 1)
            case Let(p, a, b):
                return isinstance(p, str) and plain(a) and plain(b)
            case Proj(_, of):
                return isinstance(of, Var)
        return False

    body = fn.body
    items = body.items if isinstance(body, Tup) else (body,)
    # Arrays from outside have no more dimensions, and are combined with each element.
    return all(_ranks(x.type) == {rank} and plain(x) for x in items)


def _reduction(e: Fold, env: Env) -> Value:
    match e.fn:
        case Lam((str(s), str(x)), Op("+" | "*" as fn, (Var(a), Var(b)))) if {a, b} == {s, x}:
            pass
        case _:
            raise Hard(e)
    if not isinstance(e.init.type, Scalar) or next(leaves(e.init.type)).is_bool:
        raise Hard(e)
    array = e.array
    total: Node
    match array:
        case Each(Lam((str(u), str(v)), Op("*", (Var(a), Var(b)))), (p, q)) if (
            fn == "+" and {a, b} == {u, v} and _ranks(p.type) == _ranks(q.type) == {1}
        ):
            sides = [_node(expression(p, env)), _node(expression(q, env))]
            total = Operator("@", sides, e.start, e.end)
        case _:
            total = Application(reduction_by(fn), [_node(_elements(array, env))], e.start, e.end)
    if isinstance(e.init, Num) and e.init.value == (fn == "*"):
        return total
    return Operator(fn, [_node(expression(e.init, env)), total], e.start, e.end)
