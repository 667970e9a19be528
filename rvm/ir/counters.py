"""The edges of a code that have counters, and the counts of the others derived from them.

A run leaves a basic block as often as it enters it, except where the run itself began and stopped,
which its caller knows.  So the counts of the edges of a spanning tree follow from the counts of the
others (D. E. Knuth, F. R. Stevenson, "Optimal measurement points for program frequency counts",
BIT 13, 1973); the tree takes edges in the innermost loops first (T. Ball, J. R. Larus,
"Optimally profiling and tracing programs", TOPLAS 16, 1994).  A loop without branches has one
counter, on its back edge, which LLVM turns into its number of iterations.

A *row* holds the counters of a code along one call path, as 64-bit words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rvm.accounts.counts import Key, Sized, sized_of
from rvm.expr import Const, Expr, Index, Place, Shaped, Span, Transposed
from rvm.host.once import once
from rvm.image import Code
from rvm.ir.flow import JUMPS, Edge, Flow
from rvm.types import rank_of

UNKNOWN = "?"
"""A length that does not follow from the text."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The counter of the sizes that an instruction meets: the count, then the sizes.

    The sizes are those met last; before others replace them they are written down.
    """

    at: int
    ranks: tuple[int, ...]
    """The number of axes of each; -1 for a length."""

    @property
    def words(self) -> int:
        """The number of words for the sizes."""
        return sum(1 if r < 0 else r for r in self.ranks)

    def key(self, words: Sequence[int]) -> Key:
        """The sizes, from words."""
        out: list[tuple[int, ...] | int] = []
        at = 0
        for rank in self.ranks:
            if rank < 0:
                out.append(words[at])
                at += 1
            else:
                out.append(tuple(words[at : at + rank]))
                at += rank
        return tuple(out)


class Counters:
    """The counters of a code: their places in a row, and how they are read."""

    def __init__(self, code: Code, flow: Flow) -> None:
        self.code = code
        self.flow = flow
        self.sized: Sized = sized_of(code)
        self.end = len(code)
        # As often as a run comes to the end, it begins again with the next call.
        self.edges = (Edge(self.end, self.end, "", 0), *flow.edges())
        self._tree = self._spanning_tree()
        self.size = 0
        self.children = {pc: self._place() for pc in sorted(flow.calls)}
        """The positions of calls' rows for callees."""
        self.counted = {
            k: self._place() for k in range(len(self.edges)) if k not in set(self._tree)
        }
        """The counters of edges, by the edges' numbers."""
        self.numbers = {edge: k for k, edge in enumerate(self.edges)}
        self.erased = {
            pc: self._place()
            for pc in range(self.end)
            if self.sized.may_erase(pc) and pc not in flow.apart
        }
        """The bits that instructions have erased."""
        self.rounded = {
            pc: self._place() for pc in range(self.end) if code.rounds(pc) and pc not in flow.apart
        }
        """The bits that updates have lost to rounding."""
        self.fixed: dict[int, Key] = {}
        """The sizes of instructions that always find the same."""
        self.meters: dict[int, Meter] = {}
        for pc, nodes in enumerate(self.sized.of):
            if nodes and pc not in flow.apart:
                key = self._constant(nodes)
                if key is not None:
                    self.fixed[pc] = key
                    continue
                meter = Meter(self.size, tuple(map(rank_at, nodes)))
                self.meters[pc] = meter
                self._place(1 + meter.words)
        self.order = self._elimination()

    def _place(self, words: int = 1) -> int:
        at = self.size
        self.size += words
        return at

    def leader(self, position: int) -> int:
        """The leader at which the piece that holds a position begins."""
        while position not in self.flow.leaders:
            position -= 1
        return position

    def depth(self, *positions: int) -> int:
        """The nesting depth of loops at both positions."""
        low, high = min(positions), max(positions)
        return sum(c.head < low and high <= c.back for c in self.flow.cycles)

    # ------------------------------------------------------------ sizes

    def _constant(self, nodes: Sequence[Expr]) -> Key | None:
        """Sizes that follow from the text; None if they do not."""
        out: list[tuple[int, ...] | int] = []
        for node in nodes:
            if isinstance(node, Place) and rank_at(node) >= 0:
                dims = lengths(self.code, node, lambda *_: UNKNOWN, lambda *_: UNKNOWN)
                if UNKNOWN in dims:
                    return None
                out.append(tuple(dims))
            elif isinstance(node, Const):
                out.append(node.value)
            else:
                return None
        return tuple(out)

    # ------------------------------------------------------------ edges

    def _spanning_tree(self) -> list[int]:
        """The numbers of the edges without counters; edge 0 is one."""
        above = {leader: leader for leader in self.flow.leaders}

        def top(leader: int) -> int:
            while above[leader] != leader:
                above[leader] = above[above[leader]]
                leader = above[leader]
            return leader

        def rank(k: int) -> tuple[int, bool]:
            edge = self.edges[k]
            return -self.depth(edge.start, edge.target), edge.target <= edge.start

        tree = []
        for k in (0, *sorted(range(1, len(self.edges)), key=rank)):
            a, b = top(self.edges[k].start), top(self.edges[k].target)
            if a != b:
                above[a] = b
                tree.append(k)
        return tree

    def _elimination(self) -> tuple[tuple[int, int], ...]:
        """The tree's edges, each with a leader whose other edges are then known."""
        at: dict[int, set[int]] = {leader: set() for leader in self.flow.leaders}
        for k in self._tree:
            at[self.edges[k].start].add(k)
            at[self.edges[k].target].add(k)
        leaves = [v for v, edges in at.items() if len(edges) == 1]
        out = []
        while leaves:
            v = leaves.pop()
            if len(at[v]) != 1:
                continue
            k = at[v].pop()
            out.append((k, v))
            edge = self.edges[k]
            other = edge.target if edge.start == v else edge.start
            at[other].discard(k)
            if len(at[other]) == 1:
                leaves.append(other)
        return tuple(out)

    def solve(self, row: Sequence[int], entries: Mapping[int, int]) -> list[int]:
        """The number of times each edge was passed.

        `entries` say how often a run was entered at a leader, minus the number of stops in the
        block that begins there, or at the outermost function's end.
        """
        counts = [0] * len(self.edges)
        balance = dict.fromkeys(self.flow.leaders, 0)
        balance.update(entries)
        for k, at in self.counted.items():
            n = counts[k] = row[at]
            balance[self.edges[k].target] += n
            balance[self.edges[k].start] -= n
        for k, v in self.order:
            edge = self.edges[k]
            n = counts[k] = balance[v] if edge.start == v else -balance[v]
            balance[edge.target] += n
            balance[edge.start] -= n
        return counts

    def ticks(
        self, row: Sequence[int], entries: Mapping[int, int]
    ) -> tuple[list[int], list[int], list[int]]:
        """By instruction: how often it was done, jumped, and was returned to."""
        done, jumps, returns = ([0] * self.end for _ in range(3))
        for edge, n in zip(self.edges, self.solve(row, entries), strict=True):
            if not n or not edge.how:
                continue
            for pc in range(edge.start, edge.last):
                done[pc] += n
            if edge.how == JUMPS:
                jumps[edge.last] += n
            elif edge.last < edge.target:
                done[edge.last] += n
                if edge.last in self.flow.calls:
                    returns[edge.last] += n
        return done, jumps, returns


def lengths(
    code: Code, place: Place, held: Callable[[int, int], Any], between: Callable[[Span, Any], Any]
) -> list[Any]:
    """The lengths of an array place: numbers where they follow from the text.

    `held` gives that of a register's axis, `between` that of a span in an axis of some length.
    """
    dims = [
        d.value if isinstance(d, Const) else held(place.reg, axis)
        for axis, d in enumerate(code.function.registers[place.reg].dims)
    ]
    for step in place.path:
        if isinstance(step, Transposed):
            dims.reverse()
        elif isinstance(step, Shaped):
            # Each is as long as the slice up to it, which is no longer than the whole.
            (whole,) = dims
            dims = [
                d.value if isinstance(d, Const) else between(Span(None, d), whole)
                for d in step.dims
            ]
        elif isinstance(step, Index):
            kept = []
            for item, dim in zip(step.items, dims, strict=False):
                if isinstance(item, Span):
                    known = constant_span(item, dim)
                    kept.append(between(item, dim) if known is None else known)
            dims = kept + dims[len(step.items) :]
    return dims


def constant_span(item: Span, dim: Any) -> Any:
    """The length of a span whose ends are known; None if they are not."""
    if item.is_whole:
        return dim
    if not all(isinstance(e, Const) for e in item.given):
        return None
    lo, hi, by = (None if e is None else cast(Const, e).value for e in item.ends)
    step = 1 if by is None else by
    if isinstance(dim, int) and step:
        return len(range(dim)[lo:hi:step])
    first = 0 if lo is None and step > 0 else lo
    end = -1 if hi is None and step < 0 else hi
    return None if first is None or end is None or not step else len(range(first, end, step))


def rank_at(node: Expr) -> int:
    """The number of axes of an array place; -1 for a length."""
    if isinstance(node, Place) and node.type is not None and rank_of(node.type) > 0:
        return rank_of(node.type)
    return -1


def counters_of(code: Code, flow: Flow) -> Counters:
    """The counters of a code with this flow, found once."""
    return once(code.compiled, (Counters, flow), Counters, lambda: Counters(code, flow))
