"""A schedule's grammar as functions would play it: runs of equal actions, and names to be called.

Each name of the grammar is a stretch of a schedule.  It is *narrow* if all that it finds and leaves
are pebbles on its first node and one other: then it can be a function of two states.  Wide ones,
as rows of steps and visits that leave pebbles behind, are spliced into the names that use them.
Rows, which the grammar makes by halving, become one run again: a body of actions that is repeated
from piece to piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from rvm.pebble.actions import Action, Kind
from rvm.pebble.grammar import Item, Name, Schedule

RUNS = 4
"""Names that are so few runs need no names of their own to be spliced quickly."""
UNDOING = (Kind.UNADVANCE, Kind.UNSHIFT)


@dataclass(frozen=True, slots=True)
class Repetition:
    """A body of actions, done `count` times, its nodes shifted by `first + k * stride`."""

    body: tuple[Action, ...]
    first: int
    stride: int = 0
    count: int = 1

    def moved(self, shift: int, back: bool) -> Repetition:
        """The run at another place, and undone if `back`."""
        if not back:
            return replace(self, first=self.first + shift)
        body = tuple(Action(a.kind ^ 1, a.start, a.stop) for a in reversed(self.body))
        last = self.first + (self.count - 1) * self.stride
        return Repetition(body, last + shift, -self.stride, self.count)


class Play(NamedTuple):
    """A name to be played as a whole, its nodes shifted; undone if `back`."""

    name: Name
    shift: int
    back: bool


Part = Repetition | Play


def moved(part: Part, shift: int) -> Part:
    """A part at another place."""
    if isinstance(part, Repetition):
        return part.moved(shift, False)
    return part._replace(shift=part.shift + shift)


def run_of(actions: Sequence[Action]) -> Repetition:
    """Actions as one run, whose body begins at node 0."""
    low = min(a.start for a in actions)
    return Repetition(tuple(Action(a.kind, a.start - low, a.stop - low) for a in actions), low)


def span(body: Iterable[Action]) -> int:
    """How far the next piece is away, if a body is repeated."""
    own = [a for a in body if a.kind != Kind.REVERSE]
    low, high = min((a.start for a in own), default=0), max((a.stop for a in own), default=0)
    return max(1, high - low)


def joined(parts: Iterable[Part]) -> list[Part]:
    """The parts with neighbouring runs made one where they are pieces of one row."""
    out: list[Part] = []
    for part in parts:
        last = out[-1] if out else None
        if isinstance(part, Repetition) and isinstance(last, Repetition) and part.body == last.body:
            stride = part.first - last.first - max(last.count - 1, 0) * last.stride
            own = {r.stride for r in (last, part) if r.count > 1}
            if abs(stride) == span(part.body) and own <= {stride}:
                out[-1] = Repetition(last.body, last.first, stride, last.count + part.count)
                continue
        out.append(part)
    return out


def early(actions: Sequence[Action]) -> list[Action]:
    """Each `Reverse(k+1), undo of k` as `undo of k, Reverse(k)`: the adjoint as soon as it can be.

    What undoes a state reads the one before it, which the adjoint needs: so both are one.
    """
    out: list[Action] = []
    for a in actions:
        if out and a.kind in UNDOING and out[-1] == (Kind.REVERSE, a.stop, a.stop + 1):
            out[-1:] = [a, Action(Kind.REVERSE, a.stop - 1, a.stop)]
        else:
            out.append(a)
    return out


class Score:
    """A schedule's names, and what a function for each of them has to do."""

    def __init__(self, schedule: Schedule, n: int) -> None:
        self.schedule = schedule
        self._sized = schedule.weights.sizes is not None
        self.root = schedule.root
        self.names = schedule.names
        self._root = list(schedule.expand(self.root))
        while len(self._root) == 1 and isinstance(self._root[0].what, tuple):
            only = self._root[0]
            if isinstance(only.what, Action) or only.shift or only.back:
                break
            self.root = only.what
            self.names = self.names[: self.names.index(self.root) + 1]
            self._root = list(schedule.expand(self.root))
        self.early = self._begin_early(n)
        self._runs: dict[Name, list[Repetition] | None] = {}
        for name in self.names:
            self._runs[name] = self._pure(name)

    def _begin_early(self, n: int) -> bool:
        """Whether each adjoint is taken with the undoing of its step, but for the last step's.

        A sweep of the names P and Q takes an adjoint just before the state after the next step is
        undone (see `early`): taken a step before that, the first of them stands at the root.
        """
        root = self._root
        if len(root) < 2 or root[-1] != Item(Action(Kind.REVERSE, 0, 1)):
            return False
        sweep = root[-2].what
        if isinstance(sweep, Action) or not isinstance(sweep, tuple) or sweep[0] != "Q":
            return False
        self._root = [*root[:-2], Item(Action(Kind.REVERSE, n - 1, n)), root[-2]]
        return True

    def _items(self, name: Name) -> Sequence[Item]:
        return self._root if name == self.root else self.schedule.expand(name)

    def _pure(self, name: Name) -> list[Repetition] | None:
        """The runs of a name that is nothing but some runs."""
        items = self._items(name)
        if name != self.root and all(isinstance(i.what, Action) for i in items):
            return [self._leaf(items)]
        parts: list[Repetition] = []
        for what, shift, back in items:
            if isinstance(what, Action):
                parts.append(run_of([what]).moved(shift, back))
                continue
            inner = self._runs[what]
            if inner is None or self.called(what):
                return None
            parts += _moved(inner, shift, back)
        found = [r for r in joined(parts) if isinstance(r, Repetition)]
        return found if len(found) <= RUNS else None

    def _leaf(self, items: Sequence[Item]) -> Repetition:
        actions = []
        for what, shift, back in items:
            assert isinstance(what, Action)
            actions.append(Action(what.kind ^ back, what.start + shift, what.stop + shift))
        return run_of(early(actions) if self.early else actions)

    def called(self, name: Name) -> bool:
        """Whether a name may be a function: it leaves or takes one pebble at most.

        That it finds no more is seen from its parts.
        """
        runs = self._runs[name]
        if runs is not None and len(runs) == 1 and runs[0].count == 1:
            return False
        return self._sized or abs(self.schedule.held(name)) <= 1

    def parts(self, root: Name, wide: Set[Name]) -> list[Part]:
        """What a function for the name does; names in `wide` are spliced."""
        return joined(self._parts(root, wide))

    def _parts(self, root: Name, wide: Set[Name]) -> Iterator[Part]:
        stack = [Item(root)]
        while stack:
            what, shift, back = stack.pop()
            if isinstance(what, Action):
                yield run_of([what]).moved(shift, back)
                continue
            runs = self._runs[what]
            if what != root and what not in wide and self.called(what):
                yield Play(what, shift, back)
            elif runs is not None:
                yield from _moved(runs, shift, back)
            else:
                items = self._items(what)
                stack += [
                    Item(i.what, i.shift + shift, i.back ^ back)
                    for i in (items if back else reversed(items))
                ]


def _moved(runs: Sequence[Repetition], shift: int, back: bool) -> list[Repetition]:
    return [r.moved(shift, back) for r in (reversed(runs) if back else runs)]
