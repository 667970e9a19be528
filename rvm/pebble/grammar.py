"""A schedule as a grammar: names that stand for lists of actions and of other names.

An optimal schedule of a million steps has tens of millions of moves, but it repeats itself: the
same parts occur at many places, forwards and backwards.  So a schedule is a root name and a
function `expand` from a name to its items.  An item is an action or a name, with a shift of all its
nodes, and a mark if it is to be undone.  Cost, actions and blocks are computed from this without
recursion, and only the names are ever stored (see `rvm.pebble.storage`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rvm.faults import ScheduleError
from rvm.pebble.actions import LAST_INVERTIBLE, Action, Block, actions_of, block_of
from rvm.pebble.tally import Tally, Weights, priced

Name = Hashable
Table = NDArray[np.int64]
LEAF = 2048
"""Stretches of at most this many actions are made once, and then copied."""
CACHE = 1 << 20
"""The number of actions of expanded stretches held at a time, 24 bytes each."""
CHUNK = 1 << 16
"""The most actions in a block."""


class Item(NamedTuple):
    """An action or a name; its nodes are shifted, and it is undone if `back`."""

    what: Action | Name
    shift: int = 0
    back: bool = False


class Schedule:
    """A list of actions that is never written down: a root name, and `expand`.

    `weights` are the costs and sizes that the tally uses; with any, no name may be shifted.
    `sizes` has the number of actions of each name, and `total` the cost of the root, where that is
    known without a walk over the names, of which there may be very many.  `form` names the
    recursion that it is, with its pebbles or radix: "knill" and "bennett" for equal steps.
    """

    def __init__(
        self,
        root: Name,
        expand: Callable[[Name], Sequence[Item]],
        weights: Weights = Weights(),  # noqa: B008  (immutable)
        sizes: Callable[[Name], int] | None = None,
        total: Tally | None = None,
        form: tuple[str, int] | None = None,
    ) -> None:
        self.root = root
        self.form = form
        self.expand = expand
        self.weights = weights
        self._sizes = sizes or (lambda name: self._tallies[name].actions)
        self._known = sizes is not None
        self._total = total
        self._tallies: dict[Name, Tally] = {}
        self._leaves: OrderedDict[tuple[Name, bool], Block] = OrderedDict()
        self._cached = 0

    @classmethod
    def of(cls, actions: Iterable[Action], weights: Weights = Weights()) -> Schedule:  # noqa: B008
        """A schedule that is a plain list."""
        items = [Item(action) for action in actions]
        return cls("all", lambda name: items, weights)

    @classmethod
    def listed(cls, starts: Table, items: Table, weights: Weights = Weights()) -> Schedule:  # noqa: B008
        """The schedule in two tables, as `tables` gives them."""
        rows, begin = items.T.tolist(), starts.tolist()

        def expand(name: Name) -> Sequence[Item]:
            k = cast(int, name)
            return [
                Item(Action(kind, i, j)) if what < 0 else Item(what, i, bool(kind))
                for what, kind, i, j in rows[begin[k] : begin[k + 1]]
            ]

        return cls(len(begin) - 2, expand, weights)

    def tables(self) -> tuple[Table, Table]:
        """The grammar as data: where the items of each name begin, and the items.

        int64[r + 1] and int64[4, m]: an item is its name's number (of an action -1), its kind (of a
        name: 1 if it is undone), its start (or shift) and its stop.  A name's items mention earlier
        ones only; the last name is the root.
        """
        number = {name: k for k, name in enumerate(self.names)}
        starts, rows = [0], []
        for name in number:
            for what, shift, back in self.expand(name):
                if isinstance(what, Action):
                    rows.append((-1, what.kind ^ back, what.start + shift, what.stop + shift))
                else:
                    rows.append((number[what], int(back), shift, 0))
            starts.append(len(rows))
        return np.array(starts, np.int64), np.array(rows, np.int64).reshape(-1, 4).T

    def __reduce__(self) -> tuple[Any, ...]:
        return Schedule.listed, (*self.tables(), self.weights)

    # ------------------------------------------------------------ cost

    def tally(self) -> Tally:
        """The cost of the schedule."""
        if self._total is None:
            self._total = self._summed_up()
        return self._total

    def _summed_up(self) -> Tally:
        """The tally of the root, from those of all its names."""
        found = self._tallies
        stack = [self.root]
        while stack:
            top = stack[-1]
            if top in found:
                stack.pop()
                continue
            items = self.expand(top)
            missing = [
                i.what for i in items if not isinstance(i.what, Action) and i.what not in found
            ]
            if missing:
                stack.extend(missing)
            else:
                found[top] = self._summed(items)
                stack.pop()
        return found[self.root]

    def _summed(self, items: Sequence[Item]) -> Tally:
        total = Tally()
        for what, shift, back in items:
            if isinstance(what, Action):
                kind = what.kind ^ back if what.kind <= LAST_INVERTIBLE else what.kind
                if back and what.kind > LAST_INVERTIBLE:
                    raise _lossy(what)
                moved = Action(kind, what.start + shift, what.stop + shift)
                part = priced(moved, self.weights)
            else:
                part = self._tallies[what]
                if back:
                    effects = part.reversals or part.copies or part.writes or part.reads
                    if part.erased or effects or part.disk:
                        raise _lossy(what)
                    part = part.undone()
            total = total.then(part)
        return total

    @property
    def names(self) -> list[Name]:
        """All names that the root needs, each after those in its items."""
        self._summed_up()
        return list(self._tallies)

    def held(self, name: Name) -> float:
        """The number (or sizes) of pebbles that a name adds."""
        if name not in self._tallies:
            self._summed_up()
        return self._tallies[name].held

    # ------------------------------------------------------------ actions

    def actions(self) -> Iterator[Action]:
        """The actions one by one, made on demand."""
        for block in self.blocks():
            yield from actions_of(block)

    def blocks(self, chunk: int = CHUNK) -> Iterator[Block]:
        """The actions as arrays of shape (3, m), m <= chunk: kinds, starts, stops."""
        if not self._known:
            self._summed_up()
        buffer, filled = np.empty((3, chunk), dtype=np.int64), 0
        for leaf, shift in self._pieces():
            taken, length = 0, leaf.shape[1]
            while taken < length:
                part = min(length - taken, chunk - filled)
                source = leaf[:, taken : taken + part]
                target = buffer[:, filled : filled + part]
                target[0] = source[0]
                np.add(source[1:], shift, out=target[1:])
                taken += part
                filled += part
                if filled == chunk:
                    yield buffer
                    buffer, filled = np.empty((3, chunk), dtype=np.int64), 0
        if filled:
            yield buffer[:, :filled]

    def _pieces(self) -> Iterator[tuple[Block, int]]:
        """Made stretches with their shifts, in order."""
        stack = [Item(self.root)]
        while stack:
            what, shift, back = stack.pop()
            if isinstance(what, Action):
                plain = [Action(what.kind ^ back, what.start + shift, what.stop + shift)]
                while stack and len(plain) < CHUNK:
                    top = stack[-1]
                    if not isinstance(top.what, Action):
                        break
                    kind, i, j = top.what
                    plain.append(Action(kind ^ top.back, i + top.shift, j + top.shift))
                    stack.pop()
                yield block_of(plain), 0
            elif self._sizes(what) <= LEAF:
                yield self._leaf(what, back), shift
            else:
                items = self.expand(what)
                ordered = items if back else reversed(items)
                stack.extend(Item(i.what, i.shift + shift, i.back ^ back) for i in ordered)

    def _leaf(self, name: Name, back: bool) -> Block:
        """The block of a short name, from shorter ones."""
        leaves = self._leaves
        stack = [(name, back)]
        while stack:
            top = stack[-1]
            found = leaves.get(top)
            if found is not None:
                leaves.move_to_end(top)
                stack.pop()
                continue
            items, undo = self.expand(top[0]), top[1]
            missing = [
                (i.what, i.back ^ undo)
                for i in items
                if not isinstance(i.what, Action) and (i.what, i.back ^ undo) not in leaves
            ]
            if missing:
                stack.extend(missing)
                continue
            leaves[top] = self._joined(items, undo)
            self._cached += leaves[top].shape[1]
        block = leaves[name, back]
        while self._cached > CACHE:
            _, old = leaves.popitem(last=False)
            self._cached -= old.shape[1]
        return block

    def _joined(self, items: Sequence[Item], undo: bool) -> Block:
        parts: list[Block] = []
        plain: list[Action] = []
        for what, shift, back in reversed(items) if undo else items:
            if isinstance(what, Action):
                kind = what.kind ^ (back ^ undo)
                plain.append(Action(kind, what.start + shift, what.stop + shift))
                continue
            if plain:
                parts.append(block_of(plain))
                plain = []
            part = self._leaves[what, back ^ undo].copy()
            part[1:] += shift
            parts.append(part)
        if plain or not parts:
            parts.append(block_of(plain))
        return np.concatenate(parts, axis=1)


def _lossy(what: object) -> ScheduleError:
    return ScheduleError(
        "P005",
        f"{what!r} is to be undone, but it loses a state or has an effect outside of memory",
        hint="only Advance, Unadvance, Shift and Unshift can be undone",
    )
