"""The rules of the games on a chain, and a player that holds any schedule to them.

The player knows nothing of how schedules are made.  It keeps the set of pebbles, does each action
if the rules allow it, counts, and at the end compares the position with the goal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any, NoReturn

from rvm.faults import ScheduleError
from rvm.pebble.actions import Action, Kind
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
    """How many states (or how much of their sizes) may be lost."""
    disk: float = 0
    """How many states may be on disk at a time."""
    in_place: frozenset[int] = frozenset()
    """The steps that can be done and undone in place."""
    weights: Weights = field(default_factory=Weights)


class Player:
    """A position of a game: pebbles, states on disk, adjoints taken, and what has been spent."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.pebbles = {0}
        self.disk: set[int] = set()
        self.adjoint = rules.n
        """The adjoint is at this node: the next to be reversed is the step with this number."""
        self.copied = False
        self.count = 0
        self.moves: float = 0
        self.erased: float = 0
        self.held: float = 0
        self.peak: float = 0
        self.writes = self.reads = self.disk_peak = 0

    def play(self, actions: Iterable[tuple[int, int, int]]) -> None:
        """Do these actions.  ScheduleError P003: one that the rules forbid."""
        if self.rules.weights != Weights():
            for action in actions:
                self.count += 1
                self.do(*action)
            return
        # Single steps done and undone are most of all actions of uniform chains: they are played
        # here if nothing is against it, and otherwise as all others are.
        pebbles, n, room = self.pebbles, self.rules.n, self.rules.pebbles
        for kind, i, j in actions:
            self.count += 1
            if kind <= 1 and j == i + 1 and i in pebbles and j <= n:
                if kind == 1 and j in pebbles:
                    pebbles.remove(j)
                    self.held -= 1
                    self.moves += 1
                    continue
                if kind == 0 and j not in pebbles and self.held < self.peak <= room:
                    pebbles.add(j)
                    self.held += 1
                    self.moves += 1
                    continue
            self.do(kind, i, j)

    def do(self, kind: int, i: int, j: int) -> None:
        """Do one action."""
        rules, pebbles = self.rules, self.pebbles
        if not 0 <= i <= j <= rules.n:
            self._refuse(kind, i, j, f"nodes are numbers from 0 to {rules.n}")
        if kind <= Kind.OVERWRITE and i == j:
            self._refuse(kind, i, j, "it does no step")
        if kind > Kind.REVERSE and j != i:
            self._refuse(kind, i, j, "it is about one node")
        if kind == Kind.ADVANCE:
            self._need(i, kind, i, j)
            if j in pebbles:
                self._refuse(kind, i, j, f"node {j} has a pebble already")
            if j > i + 1:
                self._lose(i + 1, j, kind, i, j)
            self._put(j, kind, i, j)
            self.moves += rules.weights.steps(i, j)
        elif kind == Kind.UNADVANCE:
            if j != i + 1:
                self._refuse(kind, i, j, "only a single step can be undone into fresh memory")
            self._need(i, kind, i, j)
            self._need(j, kind, i, j)
            self._take(j)
            self.moves += rules.weights.steps(i, j)
        elif kind in (Kind.SHIFT, Kind.UNSHIFT, Kind.OVERWRITE):
            self._in_place(kind, i, j)
        elif kind == Kind.FREE:
            self._need(i, kind, i, j)
            self._lose(i, i + 1, kind, i, j)
            self._take(i)
        elif kind == Kind.REVERSE:
            if j != i + 1 or j != self.adjoint:
                self._refuse(kind, i, j, f"the adjoint of step {self.adjoint} is the next to take")
            self._need(i, kind, i, j)
            self.adjoint = i
        elif kind == Kind.COPY:
            self._need(i, kind, i, j)
            if i != rules.n:
                self._refuse(kind, i, j, f"only the result, node {rules.n}, is copied out")
            self.copied = True
        else:
            self._disk(kind, i, j)

    def _in_place(self, kind: int, i: int, j: int) -> None:
        old, new = (j, i) if kind == Kind.UNSHIFT else (i, j)
        self._need(old, kind, i, j)
        if i == 0 and not (kind == Kind.OVERWRITE and 0 in self.disk):
            self._refuse(kind, i, j, "the input is never changed")
        if new in self.pebbles:
            self._refuse(kind, i, j, f"node {new} has a pebble already")
        if kind == Kind.OVERWRITE:
            self._lose(i, j, kind, i, j)
        else:
            for step in range(i + 1, j + 1):
                if step not in self.rules.in_place:
                    self._refuse(kind, i, j, f"step {step} cannot be undone in place")
        self._take(old)
        self._put(new, kind, i, j)
        self.moves += self.rules.weights.steps(i, j)

    def _disk(self, kind: int, i: int, j: int) -> None:
        if kind == Kind.SAVE:
            self._need(i, kind, i, j)
            if i in self.disk:
                self._refuse(kind, i, j, f"state {i} is on disk already")
            self.disk.add(i)
            self.writes += 1
            self.disk_peak = max(self.disk_peak, len(self.disk))
            if len(self.disk) > self.rules.disk:
                self._refuse(kind, i, j, f"the disk holds {self.rules.disk} states at most")
        elif kind in (Kind.LOAD, Kind.DROP):
            if i not in self.disk:
                self._refuse(kind, i, j, f"state {i} is not on disk")
            if kind == Kind.DROP:
                if i == 0 and 0 not in self.pebbles:
                    self._refuse(kind, i, j, "the input is never lost")
                self.disk.remove(i)
                return
            if i in self.pebbles:
                self._refuse(kind, i, j, f"node {i} has a pebble already")
            self._put(i, kind, i, j)
            self.reads += 1
        else:
            self._refuse(kind, i, j, "there is no such kind of action")

    # ------------------------------------------------------------ the board

    def _need(self, node: int, kind: int, i: int, j: int) -> None:
        if node not in self.pebbles:
            self._refuse(kind, i, j, f"node {node} has no pebble")

    def _put(self, node: int, kind: int, i: int, j: int) -> None:
        self.pebbles.add(node)
        self.held += self.rules.weights.states(node, node + 1)
        if self.held > self.peak:
            self.peak = self.held
            if self.held > self.rules.pebbles:
                self._refuse(kind, i, j, f"the budget is {self.rules.pebbles}")

    def _take(self, node: int) -> None:
        self.pebbles.remove(node)
        self.held -= self.rules.weights.states(node, node + 1)

    def _lose(self, first: int, end: int, kind: int, i: int, j: int) -> None:
        if first == 0 and 0 not in self.disk:
            self._refuse(kind, i, j, "the input is never lost")
        self.erased += self.rules.weights.states(first, end)
        if self.erased > self.rules.erasures:
            self._refuse(
                kind, i, j, f"it would lose a state, and {self.rules.erasures} may be lost in all"
            )

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
        """What was spent.  ScheduleError P004: the goal is not reached."""
        n, goal, held = self.rules.n, self.rules.goal, self.pebbles - {0}
        missing = ""
        if goal == "persist" and held != ({n} if n else set()):
            missing = f"a pebble on node {n}, and no other"
        elif goal == "visit" and n not in self.pebbles:
            missing = f"a pebble on node {n}"
        elif goal in ("erase", "gradient") and held:
            missing = "no pebble left"
        elif goal == "erase" and not self.copied:
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
        return Tally(
            self.count,
            self.moves,
            self.erased,
            n - self.adjoint,
            int(self.copied),
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
