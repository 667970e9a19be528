"""Instructions that hold common subexpressions in ancillas.

A part that would be evaluated three times or more is computed once, held, and uncomputed
afterwards, which evaluates it twice (compute, copy, uncompute).  So is a number computed from an
array that would be evaluated twice, and a part whose elements are computed all at once:

    add v, h * f(x)             alloc t = f(x)
    add a, g * f(x)             add   v, h * t
    add b, f(x) ** 2            add   a, g * t
                                add   b, t ** 2
                                free  t = f(x)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rvm.expr import LENGTHS, Place, places
from rvm.isa import FUNCTIONS
from rvm.isa.shapes import Dims
from rvm.program import Instr
from rvm.transform.graph import Graph
from rvm.types import ValueType, rank_of

TWICE = 2
"""The number of evaluations of a held part: where it is made, and where it is freed."""
AGAIN = 3
"""The number of evaluations counted for an array whose elements are used repeatedly."""
WORTH = 2
"""The number of functions that an ancilla must save: as many as the instructions it costs."""
DEEP = 40
"""The depth of an expression from which a part of it is held in any case."""

Maker = Callable[[int, ValueType, Dims], Place]
"""Makes a register for a node of some type and lengths."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Instructions over ancillas, and those that make and free these."""

    made: tuple[Instr, ...]
    body: tuple[Instr, ...]

    @property
    def freed(self) -> tuple[Instr, ...]:
        """The uncomputation of the ancillas."""
        return tuple(replace(i, op="free") for i in reversed(self.made))


def share(
    graph: Graph,
    body: Sequence[Instr],
    make: Maker,
    *,
    changing: Collection[int] = (),
    held: Mapping[int, Place] | None = None,
) -> Shared:
    """`body`, whose operands are expressions or stand-ins for nodes, with its ancillas.

    Nothing that `body` reads may change while it runs, but for the registers `changing`: what reads
    those is not held.  `held` are nodes that places hold already; an `alloc` or `free` of
    such a place still evaluates its value.
    """
    roots = [[graph.intern(a) for a in instr.args] for instr in body]
    known = dict(held or {})
    chosen = _chosen(graph, roots, body, changing, known)
    made: list[Instr] = []
    for number in sorted(chosen):
        node, dims = graph[number], graph.dims(number)
        assert dims is not None
        value = graph.expr(number, known, top=True)
        known[number] = make(number, node.type, dims)
        made.append(Instr("alloc", (known[number], value)))
    new = tuple(
        replace(instr, args=tuple(graph.expr(n, known, top=_ends(instr, known)) for n in numbers))
        for instr, numbers in zip(body, roots, strict=True)
    )
    return Shared(tuple(made), new)


def _ends(instr: Instr, held: Mapping[int, Place]) -> bool:
    """Whether an instruction makes or frees an ancilla that holds a node."""
    return instr.op in ("alloc", "free") and instr.args[0] in held.values()


def _chosen(
    graph: Graph,
    roots: Sequence[Sequence[int]],
    body: Sequence[Instr],
    changing: Collection[int],
    held: Mapping[int, Place],
) -> set[int]:
    """The nodes that are worth an ancilla."""
    times: Counter[int] = Counter()
    for instr, numbers in zip(body, roots, strict=True):
        for n in numbers:
            if n in held and _ends(instr, held):
                times.update(graph[n].args)
            else:
                times[n] += 1
    total: list[int] = []
    for number in range(len(graph)):
        total.append(graph.work(number) + sum(total[a] for a in graph[number].args))
    chosen: set[int] = set()
    tied = _tied(graph, {n for n, place in held.items() if place.reg in changing})
    for number in range(max(times, default=-1), -1, -1):
        count, node = times[number], graph[number]
        if not count or node.leaf is not None or number in held:
            continue
        keeps = number not in tied and _keeps(graph, number, set(changing))
        worth = (count - TWICE) * total[number] >= WORTH or FUNCTIONS[node.fn].at_once
        worth = worth or (count >= TWICE and _reduces(graph, number))
        if worth and keeps:
            chosen.add(number)
            count = TWICE
        for a in node.args:
            times[a] += count * (AGAIN if _again(graph, number, a) else 1)
    return chosen | _deep(graph, times, chosen | set(held), set(changing), tied)


def _reduces(graph: Graph, number: int) -> bool:
    """Whether a node is a number computed from an array, which is much more than an instruction.

    Held it takes no longer, and less where it is known when freed, as machine code knows.
    """
    node = graph[number]
    if rank_of(node.type) or node.fn in LENGTHS:
        return False
    return any(rank_of(graph[a].type) for a in node.args)


def _again(graph: Graph, number: int, arg: int) -> bool:
    """Whether a node uses each element of an array among its arguments for several of its own."""
    many, few = rank_of(graph[number].type), rank_of(graph[arg].type)
    return many > 0 < few and (few < many or FUNCTIONS[graph[number].fn].contracts)


def _tied(graph: Graph, loose: set[int]) -> set[int]:
    """The nodes that are computed from those that places hold for a while only."""
    out = set(loose)
    for number in range(len(graph)):
        if not out.isdisjoint(graph[number].args):
            out.add(number)
    return out


def _deep(
    graph: Graph, times: Mapping[int, int], held: set[int], changing: set[int], tied: set[int]
) -> set[int]:
    """Nodes that are held only so that no expression becomes too deep."""
    out: set[int] = set()
    depth = [0] * len(graph)
    for number in range(len(graph)):
        args = graph[number].args
        if args and number not in held and times.get(number):
            depth[number] = 1 + max(depth[a] for a in args)
            keeps = number not in tied and _keeps(graph, number, changing)
            if depth[number] >= DEEP and keeps:
                out.add(number)
                depth[number] = 0
    return out


def _keeps(graph: Graph, number: int, changing: set[int]) -> bool:
    """Whether a node's value and lengths stay: they are known, and read nothing that changes."""
    dims = graph.dims(number)
    return dims is not None and not (
        graph.reads(number) & changing
        or any(p.reg in changing for length in dims for p in places(length))
    )


__all__ = ["Maker", "Shared", "share"]
