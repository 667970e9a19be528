"""The adjoints that an expression passes back to the places that it reads.

The parts of an expression are visited from its result down, each once: the adjoint of a part is the
sum of the terms from all parts of which it is an argument, and it passes terms on to its own
arguments.  Every occurrence of a place receives a term of its own: `x * x` gives x two terms, and
both are added (for an array in `dot(x, x)` they are combined, as twice the adjoint).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rvm.expr import Apply, Const, Expr, Part, Place, Transposed
from rvm.isa.derivatives import adjoint_type, gains
from rvm.isa.shapes import Lengths
from rvm.isa.simplify import simplify
from rvm.isa.tangents import zero_like
from rvm.isa.typing import apply, typed
from rvm.transform.factors import signed, summed
from rvm.transform.graph import Graph, Node
from rvm.types import elem_of, rank_of

Gain = tuple[Place, Expr]
"""A place that is read, and the term that its adjoint receives."""
Signed = tuple[bool, int]
"""Whether a node counts negative, and its number."""


def carries(node: Expr) -> bool:
    """Whether a value of this expression's type has an adjoint."""
    assert node.type is not None
    return adjoint_type(elem_of(node.type)) is not None


def contributions(node: Expr, g: Expr) -> Iterator[Gain]:
    """The gains of all places in `node` when its value has the adjoint `g`; typed both."""
    graph = Graph(Lengths())
    for read, (negative, gain) in sweep(graph, graph.intern(node), graph.intern(g)):
        found = graph.expr(gain)
        yield read, apply("neg", found) if negative else found


def sweep(graph: Graph, root: int, g: int) -> Iterator[tuple[Place, Signed]]:
    """The gains of all places in a node when its value has the adjoint `g`, in their order."""
    first: Signed = (False, g)
    if rank_of(graph[g].type) > rank_of(graph[root].type):
        first = _like(graph, first, root)
    waiting = _uses(graph, root)
    found: dict[int, list[Signed]] = {root: [first]}
    todo: list[tuple[int, Signed | None]] = [(root, first)]
    while todo:
        number, gain = todo.pop()
        leaf = graph[number].leaf
        if leaf is not None:
            if gain is not None and isinstance(leaf, Place) and carries(leaf):
                yield leaf, _like(graph, gain, number)
            continue
        ready: list[tuple[int, Signed | None]] = []
        total = _total(graph, number, found.pop(number, []))
        if graph[number].lazy and total is not None:
            yield from _chosen(graph, number, _like(graph, total, number))
            total = None
        for arg, passed in _passed(graph, number, total):
            if graph[arg].leaf is not None:
                ready.append((arg, passed))
                continue
            if passed is not None:
                found.setdefault(arg, []).append(passed)
            waiting[arg] -= 1
            if not waiting[arg]:
                ready.append((arg, None))
        todo += reversed(ready)


def _chosen(graph: Graph, number: int, total: Signed) -> Iterator[tuple[Place, Signed]]:
    """The gains of the places in a choice, each taken only where the choice evaluates it."""
    node, (negative, g) = graph[number], total
    condition, seed = graph.ref(node.args[0]), graph.expr(g)
    for k, arm in enumerate(node.lazy):
        for read, gain in contributions(arm, seed):
            assert gain.type is not None and read.type is not None
            t = elem_of(gain.type)
            if rank_of(gain.type) < rank_of(read.type):
                gain = apply("spread_like", gain, read)
            zero = zero_like(gain, t)
            taken = apply(node.fn, condition, *((zero, gain) if k else (gain, zero)))
            yield read, (negative, graph.intern(taken))


def where_taken(graph: Graph, read: Place, number: int) -> Expr | None:
    """The condition under which the place of a node exists: that of the enclosing choices;

    None if it always exists.
    """
    if all(isinstance(step, (Part, Transposed)) for step in read.path):
        return None
    return _taken(graph.expr(number))


def _taken(gain: Expr) -> Expr | None:
    """The condition under which a gain is that of an arm of a choice, as `_chosen` makes them."""
    match gain:
        case Apply("neg" | "spread_like", (inner, *_)):
            return _taken(inner)
        case Apply("choose", (condition, one, two)):
            assert two.type is not None
            second = one == zero_like(two, elem_of(two.type))
            inner, here = (two, apply("not", condition)) if second else (one, condition)
        case _:
            return None
    more = _taken(inner)
    return here if more is None else apply("and", here, more)


def _uses(graph: Graph, root: int) -> Counter[int]:
    """The number of times each part of a node is an argument in it."""
    out: Counter[int] = Counter()
    seen, todo = {root}, [root]
    while todo:
        args = graph[todo.pop()].args
        out.update(args)
        todo += set(args) - seen
        seen.update(args)
    return out


def _passed(graph: Graph, number: int, total: Signed | None) -> Iterator[tuple[int, Signed | None]]:
    """The arguments of a node, and the term that the adjoint of each receives."""
    node = graph[number]
    if total is None:
        yield from ((a, None) for a in node.args)
        return
    negative, g = total
    args = tuple(map(graph.ref, node.args))
    found = _gains(graph, node, args, g)
    if not rank_of(graph[g].type) and _is_square(graph, node, found):
        # Double the number, rather than what it is multiplied with twice.
        double = graph.intern(apply("*", graph.ref(g), typed(Const(2), elem_of(graph[g].type))))
        found = [_gains(graph, node, args, double)[0], None]
    for arg, gain in zip(node.args, found, strict=True):
        yield arg, None if gain is None else (gain[0] != negative, gain[1])


def _is_square(graph: Graph, node: Node, found: Sequence[Signed | None]) -> bool:
    """Whether a node is as `dot(x, x)`, whose arguments are one array that gains the same twice."""
    return (
        len(node.args) == 2
        and node.args[0] == node.args[1]
        and rank_of(graph[node.args[0]].type) > 0
        and found[0] is not None
        and found[0] == found[1]
    )


def _gains(graph: Graph, node: Node, args: tuple[Expr, ...], g: int) -> list[Signed | None]:
    """The term that each argument of a node receives from its adjoint `g`."""
    out: list[Signed | None] = []
    for arg, gain in zip(args, gains(node.fn, args, graph.ref(g)), strict=True):
        if gain is None or isinstance(arg, Const):
            out.append(None)
        else:
            negative, value = signed(graph, simplify(gain))
            out.append((negative, graph.intern(value)))
    return out


def _total(graph: Graph, number: int, passed: Sequence[Signed]) -> Signed | None:
    """The sum of the terms of a node's adjoint, in the shape of the node if there are several."""
    if len(passed) < 2:
        return passed[0] if passed else None
    negative, total = _like(graph, passed[0], number)
    for gain in passed[1:]:
        minus, term = _like(graph, gain, number)
        a, b = graph.ref(total), graph.ref(term)
        if minus == negative:
            total = graph.intern(apply("+", a, b))
        elif negative:
            negative, total = False, graph.intern(apply("-", b, a))
        else:
            total = graph.intern(apply("-", a, b))
    return negative, total


def _like(graph: Graph, gain: Signed, number: int) -> Signed:
    """A term in the shape of a node: summed where the node was broadcast."""
    negative, g = gain
    if not rank_of(graph[g].type):
        return gain
    if not rank_of(graph[number].type):
        node = graph[g]
        value = apply(node.fn, *map(graph.ref, node.args)) if node.fn == "*" else graph.ref(g)
        return negative, graph.intern(summed(graph, value))
    return negative, graph.intern(apply("sum_like", graph.ref(g), graph.ref(number)))
