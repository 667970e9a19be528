"""The pass that computes functions with rare cases ahead, for a row of iterations at once.

    for i: y[i] += exp(x[i])          for each row of iterations
                                          for i: v[i] = exp(x[i]) as if it were no rare case
                                          if any was one: for i: v[i] = exp(x[i])
                                          for i: y[i] += v[i]

The first loop and the last have no branches, so LLVM can vectorise them.  Each value is computed by
the same operations, so no bit differs.  This is done for a loop over elements that changes none of
the arguments, and cannot be left early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from rvm.ir.blocks import FunctionBuilder
from rvm.ir.node import I64, Block, Node, Var, walk
from rvm.ir.operations import CASTS, MNEMONICS
from rvm.ir.sums import LONG, QUICK

ROW = 64
"""Iterations."""
READS = frozenset(["get", "load", "dim", "stride", "table", "written", "select", "intrinsic"])
"""Operations allowed in arguments, besides arithmetic."""
CHANGES = frozenset(["set", "store", "if"])
"""Other operations allowed in a loop."""


def ahead(b: FunctionBuilder, blocks: Iterable[Block]) -> None:
    """Compute values ahead where it pays, in all loops inside instructions."""
    for block in blocks:
        block.items = b.inside(partial(_within, b, block.items))


def _within(b: FunctionBuilder, items: Sequence[Node]) -> None:
    for node in items:
        if node.op == "if":
            yes, no, unlikely = node.aux
            parts = [b.inside(partial(_within, b, part)) for part in (yes, no)]
            node.aux = (*parts, unlikely)
        elif node.op == "loop":
            variable, body = node.aux
            row = None if any(n.op == "loop" for n in walk(body)) else _row(body, variable)
            if row is not None:
                row.put(b, node.args[0], variable)
                continue
            node.aux = (variable, b.inside(partial(_within, b, body)))
        b.items.append(node)


def _row(body: list[Node], variable: Var) -> _Row | None:
    """The part of a loop's body to compute ahead; None if there is none."""
    every = list(walk(body))
    if not any(map(_is_rare, body)) or not all(map(_is_plain, every)):
        return None
    changed = {n.aux for n in every if n.op == "set"}
    stored = {n.aux[0] for n in every if n.op == "store"}
    here, steady = set(body), set[Node]()
    for node in body:
        fits = node.op not in CHANGES and all(a in steady or a not in here for a in node.args)
        if node.op == "get":
            fits = fits and node.aux not in changed
        elif node.op == "load":
            fits = fits and node.aux[0] not in stored
        if fits:
            steady.add(node)
    at = [n for n in body if n.op == "get" and n.aux is variable]
    varying = _made_of(body, at)
    # What is the same in all iterations is computed once, outside.
    found = [n for n in body if n in steady and n in varying and _is_rare(n)]
    return _Row(body, found) if found else None


def _is_rare(node: Node) -> bool:
    return node.op == "written" and node.aux.guard is not None


def _is_plain(node: Node) -> bool:
    return node.op in READS or node.op in CHANGES or node.op in MNEMONICS or node.op in CASTS


class _Row:
    """A loop's body, and the part of it that is computed ahead."""

    def __init__(self, body: list[Node], found: list[Node]) -> None:
        self.body = body
        self.found = _needed(body, (n for n in body if n.op in CHANGES), found)
        """Those that are used otherwise than by others of them."""
        self.ahead = [n for n in body if n in _closure(body, self.found)]

    def put(self, b: FunctionBuilder, count: Node, variable: Var) -> None:
        """Append the loop, which goes over a number of iterations by a variable."""
        held = {n: b.variable(n.kind, "ahead", many=ROW) for n in self.found}
        rare = b.variable(I64, "rare")
        bits = b.i64(ROW.bit_length() - 1)
        rows = b.op("lshr", b.op("wadd", count, b.i64(ROW - 1)), bits)

        def one(row: Sequence[Node]) -> None:
            first = b.op("shl", row[0], bits)
            many = b.intrinsic("smin", b.op("wsub", count, first), b.i64(ROW))

            def over(body: Callable[[Node], None], pace: str) -> None:
                def at(k: Sequence[Node]) -> None:
                    b.set(variable, b.op("wadd", first, k[0]))
                    body(k[0])

                b.nest((many,), at, pace)

            def hot(k: Node) -> None:
                self._computed(b, held, k, lambda node, args: _hot(b, node, args, rare))

            def whole(k: Node) -> None:
                self._computed(
                    b,
                    held,
                    k,
                    lambda node, args: b.op("written", *args, kind=node.kind, aux=node.aux),
                )

            def rest(k: Node) -> None:
                for node in self.found:
                    node.op, node.args, node.aux = "get", (k,), held[node]
                b.items += self.body

            b.set(rare, b.i64(0))
            over(hot, "")
            some = b.op("ne", b.get(rare), b.i64(0))
            b.when(some, lambda: over(whole, "single"), unlikely=True)
            over(rest, self._pace(variable))

        b.nest((rows,), one)

    def _computed(
        self,
        b: FunctionBuilder,
        held: dict[Node, Var],
        k: Node,
        written: Callable[[Node, Sequence[Node]], Node],
    ) -> None:
        """Append the values computed ahead, with calls as they are `written`."""
        new: dict[Node, Node] = {}
        for node in self.ahead:
            args = [new.get(a, a) for a in node.args]
            if node.op == "written":
                new[node] = written(node, args)
            else:
                new[node] = b.op(node.op, *args, kind=node.kind, aux=node.aux)
        for node, variable in held.items():
            b.set(variable, new[node], k)

    def _pace(self, variable: Var) -> str:
        """The pace of the rest: additions in order, vectors where these are few."""
        if variable.pace != "single":
            return variable.pace
        left = [n for n in self.body if n not in self.found]
        short = len(left) <= QUICK and LONG.isdisjoint(n.op for n in left)
        return "vectors 2" if short else "single"


def _hot(b: FunctionBuilder, node: Node, args: Sequence[Node], rare: Var) -> Node:
    """Append the body of a function, and note whether it is not for these arguments."""
    begun = len(b.items)
    *guard, found = b.graft(node.aux, args)
    for condition in guard:
        if condition.op != "constant":
            far = b.op("zext", condition, kind=I64)
            b.set(rare, b.op("or", b.get(rare), far))
    inner, b.items[begun:] = b.items[begun:], []
    new: dict[Node, Node] = {}
    for item in inner:
        given = [new.get(a, a) for a in item.args]
        if item.op == "written":
            new[item] = _hot(b, item, given, rare)
        else:
            item.args = tuple(given)
            b.items.append(item)
    result: Node = new.get(found, found)
    return result


def _needed(body: Sequence[Node], roots: Iterable[Node], ends: Sequence[Node]) -> list[Node]:
    """Those of `ends` that roots depend on, not looking into any of them."""
    here, seen, todo = set(body), set[Node](), list(roots)
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in ends:
            continue
        todo += [a for a in node.args if a in here]
        if node.op == "if":
            todo += [*walk(node.aux[0]), *walk(node.aux[1])]
    return [n for n in ends if n in seen]


def _made_of(body: Sequence[Node], roots: Iterable[Node]) -> set[Node]:
    """The nodes of a body that depend on some of its nodes, including these."""
    found = set(roots)
    for node in body:
        if not found.isdisjoint(node.args):
            found.add(node)
    return found


def _closure(body: Sequence[Node], roots: Iterable[Node]) -> set[Node]:
    """The nodes on which some nodes of a body depend, including these."""
    here, seen, todo = set(body), set[Node](), list(roots)
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += [a for a in node.args if a in here]
    return seen
