"""Where the states of a stretch of a schedule are: pebbles with their lives, part by part.

A *pebble* here is a state, or a row of them, from the part that makes it to the one that takes it
away, with the nodes it stands on.  Rows are cut where one part does not treat them alike.  What a
stretch finds and leaves is its *face*; node 0 of it is always there, and never changed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rvm.pebble.actions import Action, Kind
from rvm.pebble.bridge.emission.score import Part, Repetition, moved
from rvm.pebble.grammar import Name


@dataclass(slots=True, eq=False)
class Pebble:
    """A state, or a row of states in one array; `outer` if it is the caller's."""

    nodes: range
    """Where it is first, rising."""
    outer: bool = False


class Face(NamedTuple):
    """What a narrow stretch has to do with its caller."""

    base: int
    """The node that it begins at; the stretch's layout has it as node 0."""
    node: int | None
    """The one node beside that where it finds a pebble, or leaves one, counted from there."""
    found: bool
    left: bool
    sweeps: bool
    """Whether adjoints are taken in it."""


@dataclass(slots=True)
class Life:
    """What a part makes, takes away, and moves to another node."""

    made: list[Pebble] = field(default_factory=list)
    taken: list[Pebble] = field(default_factory=list)
    moved: list[tuple[Pebble, int]] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """Parts with the lives of their pebbles, and the face; None if the stretch is wide."""

    parts: list[Part]
    lives: list[Life]
    start: list[Pebble]
    """The caller's pebbles that are there at the beginning, node 0 first."""
    face: Face | None


class Effect(NamedTuple):
    """What a body of actions does to nodes, relative to its own node 0."""

    reads: tuple[int, ...]
    """Nodes that it needs, and leaves as they are."""
    made: tuple[int, ...]
    taken: tuple[int, ...]
    moved: tuple[tuple[int, int], ...]
    placed: tuple[tuple[Action, int | None, int | None], ...]
    """Each action with the nodes that stand for the states it reads and changes.

    A pebble that moves has one name throughout: the node where it ends if the body makes it, else
    where it begins.
    """


def effect_of(body: Sequence[Action]) -> Effect:
    """The effect of a body."""
    here: dict[int, int] = {}
    """The pebble on each node that the body has touched."""
    first: dict[int, int | None] = {}
    """For each pebble where it was found; None if it was made."""
    last: dict[int, int | None] = {}
    born: dict[int, int] = {}
    reads: dict[int, None] = {}
    used: list[tuple[Action, int | None, int | None]] = []

    def found(node: int) -> int:
        if node not in here:
            here[node] = len(first)
            first[here[node]] = last[here[node]] = node
        return here[node]

    for a in body:
        source: int | None = None
        changed: int | None = None
        match a.kind:
            case Kind.ADVANCE:
                source, changed = found(a.start), len(first)
                here[a.stop], first[changed], last[changed] = changed, None, a.stop
                born[changed] = a.stop
            case Kind.UNADVANCE:
                source, changed = found(a.start), found(a.stop)
                last[here.pop(a.stop)] = None
            case Kind.SHIFT | Kind.OVERWRITE:
                changed = found(a.start)
                here[a.stop], last[changed] = here.pop(a.start), a.stop
            case Kind.UNSHIFT:
                changed = found(a.stop)
                here[a.start], last[changed] = here.pop(a.stop), a.start
            case Kind.FREE:
                changed = found(a.start)
                last[here.pop(a.start)] = None
            case _:
                source = found(a.start)
        used.append((a, source, changed))
    name: dict[int, int] = {}
    for p, begin in first.items():
        end = last[p]
        name[p] = begin if begin is not None else end if end is not None else born[p]
        if begin is not None and begin == end:
            reads[begin] = None
    return Effect(
        tuple(reads),
        tuple(name[p] for p in born),
        tuple(name[p] for p in first if last[p] is None),
        tuple(
            (b, e)
            for p, b in first.items()
            if b is not None and (e := last[p]) is not None and b != e
        ),
        tuple(
            (a, None if s is None else name[s], None if c is None else name[c]) for a, s, c in used
        ),
    )


def rows(run: Repetition, node: int) -> range:
    """The nodes that one of the body's comes to, rising."""
    low = run.first + node
    if run.count == 1:
        return range(low, low + 1)
    found = range(low, low + run.count * run.stride, run.stride)
    return found if run.stride > 0 else found[::-1]


def _needed(run: Repetition, effect: Effect) -> list[int]:
    """The nodes that a run reads, and neither makes nor takes."""
    changed = [rows(run, v) for v in (*effect.made, *effect.taken)]
    out = [v for v, _ in effect.moved]
    for node in effect.reads:
        nodes = rows(run, node)
        for way in (nodes, nodes[::-1]):
            for v in way:
                if any(v in r for r in changed):
                    break
                out.append(v)
    return out


class _Board:
    """The pebbles while parts are played."""

    def __init__(self, ranges: Iterable[range]) -> None:
        self.cuts = sorted({cut for r in ranges for cut in (r[0], r[-1] + 1)})
        self.live: list[Pebble] = []
        self.start: list[Pebble] = [Pebble(range(1), True)]
        self.single: dict[int, Pebble] = {0: self.start[0]}
        self.long: list[Pebble] = []

    def split(self, nodes: range) -> list[range]:
        """The nodes in the pieces that all parts treat alike."""
        if len(nodes) == 1:
            return [nodes]
        inner = self.cuts[bisect_left(self.cuts, nodes[0] + 1) :]
        at = [-(-(c - nodes[0]) // nodes.step) for c in inner if c <= nodes[-1]]
        edges = sorted({0, *at, len(nodes)})
        return [nodes[a:b] for a, b in pairwise(edges)]

    def put(self, pebble: Pebble) -> None:
        if len(pebble.nodes) == 1:
            self.single[pebble.nodes[0]] = pebble
        else:
            self.long.append(pebble)

    def find(self, node: int) -> Pebble | None:
        found = self.single.get(node)
        return found or next((p for p in self.long if node in p.nodes), None)

    def need(self, nodes: range) -> Pebble:
        """The pebble on nodes; one that nobody has put there is the caller's."""
        found = self.find(nodes[0])
        if found is None:
            found = Pebble(nodes, True)
            self.start.append(found)
            self.put(found)
        return found

    def take(self, nodes: range) -> Pebble:
        """Take away what is there, and tell what it was."""
        pebble = self.need(nodes)
        if len(nodes) == 1 and self.single.pop(nodes[0], None) is not None:
            return pebble
        self.long.remove(pebble)
        return pebble


class Doing(NamedTuple):
    """What a part needs and does, in nodes of the stretch."""

    needs: list[int]
    made: list[range]
    taken: list[range]
    moved: list[tuple[int, int]]
    sweeps: bool


def _doing(part: Part, faces: Callable[[Name], Face]) -> Doing:
    if isinstance(part, Repetition):
        effect = effect_of(part.body)
        return Doing(
            _needed(part, effect),
            [rows(part, v) for v in effect.made],
            [rows(part, v) for v in effect.taken],
            [(part.first + a, part.first + b) for a, b in effect.moved],
            any(a.kind == Kind.REVERSE for a in part.body),
        )
    face = faces(part.name)
    base = part.shift + face.base
    needs = [base]
    made: list[range] = []
    taken: list[range] = []
    if face.node is not None:
        node = base + face.node
        found, left = (face.left, face.found) if part.back else (face.found, face.left)
        own = range(node, node + 1)
        if found and left:
            needs.append(node)
        elif found:
            taken.append(own)
        else:
            made.append(own)
    return Doing(needs, made, taken, [], face.sweeps)


def lay_out(parts: list[Part], faces: Callable[[Name], Face]) -> Layout:
    """The lives of a stretch's pebbles.  Its nodes are counted from the lowest that it needs."""
    base = min(v for part in parts for v in _doing(part, faces).needs)
    parts = [moved(part, -base) for part in parts]
    doings = [_doing(part, faces) for part in parts]
    board = _Board(r for d in doings for r in (*d.made, *d.taken))
    lives = []
    for needs, made, taken, moves, _ in doings:
        life = Life()
        for v in needs:
            board.need(range(v, v + 1))
        for nodes in made:
            for piece in board.split(nodes):
                life.made.append(Pebble(piece))
                board.put(life.made[-1])
        for nodes in taken:
            life.taken += [board.take(piece) for piece in board.split(nodes)]
        for start, stop in moves:
            life.moved.append((board.take(range(start, start + 1)), stop))
            board.single[stop] = life.moved[-1][0]
        lives.append(life)
    ends = {v: p for v, p in board.single.items() if v}
    others = {*ends, *(p.nodes[0] for p in board.start[1:])}
    whole = [*board.start[1:], *board.long]
    face = None
    if len(others) <= 1 and all(len(p.nodes) == 1 for p in whole):
        sweeps = any(d.sweeps for d in doings)
        face = Face(base, next(iter(others), None), len(board.start) > 1, bool(ends), sweeps)
    for pebble in ends.values():
        pebble.outer = True
    return Layout(parts, lives, board.start, face)
