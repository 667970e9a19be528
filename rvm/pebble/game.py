"""The rules of the games on a chain, and a player that checks any schedule against them.

The player does not know how schedules are made.  It keeps the set of pebbles, executes each action
if the rules allow it, counts, and finally compares the position with the goal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NoReturn

from rvm.faults import ScheduleError
from rvm.pebble.actions import Action, Kind, effect
from rvm.pebble.tally import Tally, Weights


@dataclass(frozen=True, slots=True)
class Rules:
    """A game on a chain of n steps.

    The place of the input, node 0, is not counted.  The input is never lost: it may be overwritten
    or freed while it is on disk, and is in memory again at the end.
    """

    n: int
    goal: str
    """persist, visit, erase or gradient."""
    pebbles: float = inf
    """The most that may be held at a time: a number of states, or their sizes together."""
    erasures: float = 0
    """The number of states (or the sum of their sizes) that may be lost."""
    disk: float = 0
    """The number of states that may be on disk at a time."""
    in_place: frozenset[int] = frozenset()
    """The steps that can be done and undone in place."""
    weights: Weights = field(default_factory=Weights)


ADVANCE, UNADVANCE, SHIFT, UNSHIFT, OVERWRITE, FREE, REVERSE, COPY, SAVE, LOAD, DROP = map(
    int, Kind
)
"""The kinds as plain numbers, which are faster to compare, since there are millions."""


class Player:
    """A position of a game: pebbles, states on disk, adjoints taken, and what has been spent.

    What is held of a node is its value in `pebbles`: nothing here.  A subclass that plays on states
    has a `change` of its own, which is called with each action that the rules allow.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.pebbles: dict[int, Any] = {0: None}
        self.disk: set[int] = set()
        self.adjoint = rules.n
        """The adjoint is at this node: the next to be reversed is the step with this number."""
        self.count = self.reversals = self.copies = 0
        self.moves: float = 0
        self.erased: float = 0
        self.held: float = 0
        self.peak: float = 0
        self.writes = self.reads = self.disk_peak = 0

    def play(self, actions: Iterable[Sequence[int]]) -> None:
        """Do these actions.  ScheduleError P003: one that the rules forbid."""
        for _ in self.sweep(actions):
            pass

    def sweep(self, actions: Iterable[Sequence[int]]) -> Iterator[tuple[int, Any]]:
        """Do these actions; at each adjoint yield its step j and the value held of node j - 1."""
        rules = self.rules
        # What most actions of uniform chains are is played here if nothing is against it, and
        # otherwise as all others are.
        pebbles, n, room, erasures = self.pebbles, rules.n, rules.pebbles, rules.erasures
        uniform = rules.weights == Weights()
        plain, change = type(self).change is Player.change, self.change
        for kind, i, j in actions:
            self.count += 1
            if uniform and i in pebbles:
                if kind == ADVANCE:
                    lost = self.erased + j - i - 1
                    free = self.held < self.peak <= room and j not in pebbles
                    if free and i < j <= n and lost <= erasures:
                        if plain:
                            pebbles[j] = None
                        else:
                            change(kind, i, j)
                        self.held += 1
                        self.moves += j - i
                        self.erased = lost
                        continue
                elif kind == UNADVANCE:
                    if j == i + 1 and j in pebbles:
                        if plain:
                            del pebbles[j]
                        else:
                            change(kind, i, j)
                        self.held -= 1
                        self.moves += 1
                        continue
                elif kind == REVERSE:
                    if j == i + 1 == self.adjoint:
                        self.adjoint = i
                        self.reversals += 1
                        yield j, pebbles[i]
                        continue
                elif kind == FREE and i == j and i and self.erased < erasures:
                    change(kind, i, j)
                    self.held -= 1
                    self.erased += 1
                    continue
            self.do(kind, i, j)
            if kind == REVERSE:
                yield j, pebbles[i]

    def do(self, kind: int, i: int, j: int) -> None:
        """Do one action."""
        rules, size = self.rules, self.rules.weights.states
        reads, taken, made, (first, end) = effect(kind, i, j)
        if why := self._against(kind, i, j) or self._missing(kind, i, j, (reads, taken)):
            self._refuse(kind, i, j, why)
        if first < end:
            if first == 0 and 0 not in self.disk:
                self._refuse(kind, i, j, "the input is never lost")
            self.erased += size(first, end)
            if self.erased > rules.erasures:
                most = f"it would lose a state, and {rules.erasures} may be lost in all"
                self._refuse(kind, i, j, most)
        if taken is not None:
            self.held -= size(taken, taken + 1)
        if made is not None:
            if made in self.pebbles:
                self._refuse(kind, i, j, f"node {made} has a pebble already")
            self.held += size(made, made + 1)
            self.peak = max(self.peak, self.held)
            if self.held > rules.pebbles:
                self._refuse(kind, i, j, f"the budget is {rules.pebbles}")
        if kind == REVERSE:
            self.adjoint = i
        else:
            self.change(kind, i, j)
        if kind == SAVE:
            self.disk.add(i)
            self.disk_peak = max(self.disk_peak, len(self.disk))
        elif kind == DROP:
            self.disk.remove(i)
        if kind <= OVERWRITE:
            self.moves += rules.weights.steps(i, j)
        self.reversals += kind == REVERSE
        self.copies += kind == COPY
        self.writes += kind == SAVE
        self.reads += kind == LOAD

    def change(self, kind: int, i: int, j: int) -> None:
        """Apply an action to the values held of nodes."""
        _, taken, made, _ = effect(kind, i, j)
        if taken is not None:
            del self.pebbles[taken]
        if made is not None:
            self.pebbles[made] = None

    def _against(self, kind: int, i: int, j: int) -> str:
        """The reason why an action is never possible, whatever is held; "" if there is none."""
        n = self.rules.n
        if not 0 <= i <= j <= n:
            return f"nodes are numbers from 0 to {n}"
        if kind <= OVERWRITE and i == j:
            return "it does no step"
        if kind > REVERSE and i != j:
            return "it is about one node"
        if not 0 <= kind < len(Kind):
            return "there is no such kind of action"
        if kind == UNADVANCE and j != i + 1:
            return "only a single step can be undone into fresh memory"
        if kind == REVERSE and not j == i + 1 == self.adjoint:
            return f"the adjoint of step {self.adjoint} is the next to take"
        return ""

    def _missing(self, kind: int, i: int, j: int, nodes: Sequence[int | None]) -> str:
        """Why an action on these nodes cannot be in this position; nothing if it can."""
        for node in nodes:
            if node is not None and node not in self.pebbles:
                return f"node {node} has no pebble"
        saved = kind == OVERWRITE and 0 in self.disk
        if i == 0 and kind in (SHIFT, UNSHIFT, OVERWRITE) and not saved:
            return "the input is never changed"
        if kind in (SHIFT, UNSHIFT):
            for step in range(i + 1, j + 1):
                if step not in self.rules.in_place:
                    return f"step {step} cannot be undone in place"
        if kind == COPY and i != self.rules.n:
            return f"only the result, node {self.rules.n}, is copied out"
        if kind == SAVE and i in self.disk:
            return f"state {i} is on disk already"
        if kind == SAVE and len(self.disk) >= self.rules.disk:
            return f"the disk holds {self.rules.disk} states at most"
        if kind in (LOAD, DROP) and i not in self.disk:
            return f"state {i} is not on disk"
        if kind == DROP and i == 0 and 0 not in self.pebbles:
            return "the input is never lost"
        return ""

    def _refuse(self, kind: int, i: int, j: int, why: str) -> NoReturn:
        shown: Any = Action(kind, i, j) if 0 <= kind < len(Kind) else (kind, i, j)
        held = sorted(self.pebbles)
        raise ScheduleError(
            "P003",
            f"action {self.count}, {shown!r}, is against the rules: {why}",
            values={
                "action": self.count,
                "start": i,
                "stop": j,
                "pebbles": held if len(held) <= 20 else [*held[:10], "...", *held[-10:]],
                "held": self.held,
                "moves so far": self.moves,
            },
        )

    # ------------------------------------------------------------ the end

    def finish(self) -> Tally:
        """The total cost. ScheduleError P004: the goal is not reached."""
        n, goal, held = self.rules.n, self.rules.goal, self.pebbles.keys() - {0}
        missing = ""
        if goal == "persist" and held != ({n} if n else set()):
            missing = f"a pebble on node {n}, and no other"
        elif goal == "visit" and n not in self.pebbles:
            missing = f"a pebble on node {n}"
        elif goal in ("erase", "gradient") and held:
            missing = "no pebble left"
        elif goal == "erase" and not self.copies:
            missing = f"a copy of the result, node {n}"
        elif 0 not in self.pebbles:
            missing = "the input in memory"
        elif goal == "gradient" and self.adjoint:
            missing = f"the adjoints of all steps; {self.adjoint} are missing"
        elif self.disk:
            missing = "nothing left on disk"
        if missing:
            raise ScheduleError(
                "P004",
                f"the schedule ends without {missing}",
                values={"pebbles": sorted(held)[:20], "adjoint": self.adjoint, "goal": goal},
            )
        return self.tally()

    def tally(self) -> Tally:
        """The cost so far."""
        return Tally(
            self.count,
            self.moves,
            self.erased,
            self.reversals,
            self.copies,
            self.writes,
            self.reads,
            self.held,
            self.peak,
            len(self.disk),
            self.disk_peak,
        )


def check(rules: Rules, actions: Iterable[tuple[int, int, int]]) -> Tally:
    """Play a schedule to its end by the rules, and count what it costs."""
    player = Player(rules)
    player.play(actions)
    return player.finish()
