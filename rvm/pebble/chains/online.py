"""Checkpointing while a chain runs, when its length is not yet known.

With S states in memory, including the moving one but not the input, states are kept and dropped
such that at every moment the adjoint could be computed from there with as few repetitions as if the
length had been known: no step is done more than r times before its adjoint, where n <= beta(S, r)
(Wang, Moin and Iaccarino 2009, minimal repetition).  A kept state has a level, 0 at first.  One
that is earlier than another of a higher level is dispensable.  If there is no room, the latest
dispensable state is dropped; if there is none, the newest state goes on in place, and its level
rises by one.

When the end is known, Revolve sweeps the pieces between kept states, which is optimal from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import inf
from typing import cast

from rvm.faults import UsageError
from rvm.pebble.actions import Action, Kind, advance, at, overwrite
from rvm.pebble.chains.family import Family, whole
from rvm.pebble.chains.revolve import RevolveRules, beta, forwards, repetitions
from rvm.pebble.grammar import LEAF, Item, Name, Schedule


class Online:
    """A run whose length is not known: `step` until it ends, then `finish`.

    Both give the actions to do.  `kept` are the nodes with a pebble, in order.
    """

    def __init__(self, pebbles: int) -> None:
        if pebbles < 1:
            raise UsageError("P001", "a run needs at least one pebble", values={"pebbles": pebbles})
        self.pebbles = pebbles
        self.n = 0
        self._kept: list[tuple[int, int]] = []
        self._sorted = True
        """Whether levels are known to fall from left to right, so that no state is dispensable."""
        self._finished = False

    @property
    def kept(self) -> tuple[int, ...]:
        """The nodes that hold a pebble now; the last is the state of the run."""
        return tuple(node for node, _ in self._kept)

    def step(self) -> tuple[Action, ...]:
        """The actions that take the run one step further."""
        if self._finished:
            raise UsageError("P001", "the run is finished; it cannot go on")
        here, self.n = self.n, self.n + 1
        kept = self._kept
        if len(kept) < self.pebbles:
            kept.append((self.n, 0))
            return (advance(here, self.n),)
        spare = None if self._sorted else self._latest_dispensable()
        if spare is not None:
            node, _ = kept.pop(spare)
            kept.append((self.n, 0))
            return at(Kind.FREE, node), advance(here, self.n)
        level = kept.pop()[1] + 1
        self._sorted = not kept or kept[-1][1] >= level
        kept.append((self.n, level))
        return (overwrite(here, self.n),)

    def _latest_dispensable(self) -> int | None:
        highest = -1
        for k in range(len(self._kept) - 1, -1, -1):
            level = self._kept[k][1]
            if level < highest:
                return k
            highest = max(highest, level)
        return None

    def finish(self) -> Iterator[Action]:
        """The actions of the adjoint sweep, back to the input."""
        return self.sweep().actions()

    def sweep(self) -> Schedule:
        """The same as a schedule, from the position in which the run ended."""
        if not self.n:
            raise UsageError("P001", "the run has done no step")
        self._finished = True
        rules = RevolveRules()
        items, end = [Item(at(Kind.FREE, self.n))], self.n
        nodes = [0, *self.kept[:-1]]
        for k in range(len(nodes) - 1, -1, -1):
            base = nodes[k]
            items.append(Item(rules.name(end - base, self.pebbles - k), base))
            if base:
                items.append(Item(at(Kind.FREE, base)))
            end = base
        return Schedule("all", lambda name: items if name == "all" else rules.expand(name))


@lru_cache(maxsize=4)
def online(n: int, pebbles: int) -> Schedule:
    """The schedule of a run that turns out to have n steps; steps in place are joined."""
    run = Online(pebbles)
    forwards: list[Action] = []
    for action in chain.from_iterable(run.step() for _ in range(n)):
        last = forwards[-1] if forwards else None
        if action.kind == Kind.OVERWRITE and last is not None and last.stop == action.start:
            forwards[-1] = last._replace(stop=action.stop)
        else:
            forwards.append(action)
    back = run.sweep()
    rest = back.expand(back.root) if back.root == "all" else [Item(back.root)]
    # In rows, which become blocks: so many actions one by one would take their time.
    rows = {("there", k): forwards[k : k + LEAF] for k in range(0, len(forwards), LEAF)}
    items = [*(Item(row) for row in rows), *rest]

    def expand(name: Name) -> Sequence[Item]:
        if name == "all":
            return items
        row = rows.get(cast("tuple[str, int]", name))
        return back.expand(name) if row is None else [Item(action) for action in row]

    return Schedule("all", expand)


@dataclass
class OnlineFamily(Family):
    """The schedule of a run that learns its length at its end."""

    n: int
    goal: str = "gradient"
    name = "online"
    erasures: float = inf

    def fewest(self) -> int:
        return 1

    def total(self, budget: float) -> float:
        return self.schedule(budget).tally().moves if budget >= 1 else inf

    def schedule(self, budget: float) -> Schedule:
        return online(self.n, whole(budget, self.n))

    def proof(self, budget: float) -> str:
        s = whole(budget, self.n)
        r = repetitions(self.n + 1, s)
        least = forwards(self.n + 1, s)
        return (
            f"no step is done more than {r} times, the least for n + 1 <= beta({s}, {r}) = "
            f"{beta(s, r)}; with n known beforehand {least} moves to s_n and back were enough"
        )

    def notes(self, budget: float) -> tuple[str, ...]:
        return ("made without knowing n; `rvm.pebble.Online` gives its actions step by step",)
