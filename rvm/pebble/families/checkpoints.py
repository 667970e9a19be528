"""Families of schedules for gradients with a disk, and for chains of unknown length."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from rvm.faults import UsageError
from rvm.pebble.chains import disk as levels
from rvm.pebble.chains import multistage as stages
from rvm.pebble.chains import online as unknown
from rvm.pebble.chains.knill import INFEASIBLE
from rvm.pebble.chains.revolve import beta, forwards, repetitions
from rvm.pebble.families.base import CHECKED, Family, whole
from rvm.pebble.grammar import Schedule


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
        if budget < 1:
            return inf
        return self.schedule(budget).tally().moves

    def schedule(self, budget: float) -> Schedule:
        return unknown.online(self.n, whole(budget, self.n))

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


@dataclass
class Staged(Family):
    """Schedules with a disk: places for states there, and the prices of a write and a read."""

    n: int
    places: float
    write: float
    read: float
    keep_input: bool = False
    goal: str = "gradient"
    erasures: float = inf

    def __post_init__(self) -> None:
        self.disk = self.places

    def floor(self) -> float:
        return self.n - 1

    def notes(self, budget: float) -> tuple[str, ...]:
        return (f"a write to disk costs {self.write:g} moves, a read {self.read:g}",)


class Disk(Staged):
    """The optimum with a disk, by tables."""

    name = "disk"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.places >= self.n:
            self.places = inf
        rows = 1 if self.places == inf else self.places + 1
        if self.n * self.n * rows > levels.WORK:
            raise UsageError(
                "P006",
                f"an exact table for n = {self.n} and {self.places} states on disk is too large",
                hint='say strategy="multistage", which has no tables',
            )

    def _tables(self) -> levels.DiskTables:
        return levels.disk_tables(self.n, self.places, self.write, self.read, self.keep_input)

    def fewest(self) -> int:
        return min(self.n - 1, 1 if self.keep_input or not self.places else 0)

    def total(self, budget: float) -> float:
        return self._tables().cost(whole(budget, self.n))

    def schedule(self, budget: float) -> Schedule:
        return self._tables().schedule(whole(budget, self.n))

    def proof(self, budget: float) -> str:
        return f"optimal by the recursions for two levels of memory, {CHECKED}"

    def notes(self, budget: float) -> tuple[str, ...]:
        stays = "stays in memory" if self.keep_input else "makes room in memory while it is on disk"
        return (*super().notes(budget), f"the input {stays}")


class Multistage(Staged):
    """Revolve's steps, with the places used least on disk."""

    name = "multistage"

    def fewest(self) -> int:
        return min(self.n - 1, 1)

    def total(self, budget: float) -> float:
        if budget < self.fewest():
            return inf
        steps = forwards(self.n, whole(budget + min(self.places, self.n), self.n))
        if steps >= INFEASIBLE:
            return inf
        done = self.schedule(budget).tally()
        return done.moves + self.write * done.writes + self.read * done.reads

    def schedule(self, budget: float) -> Schedule:
        on_disk = int(min(self.places, self.n))
        pebbles = whole(budget, self.n)
        return stages.MultistageRules(self.n, pebbles, on_disk, self.write, self.read).schedule()

    def proof(self, budget: float) -> str:
        return (
            "the fewest steps that all places together allow, by the closed form of Revolve; "
            "steps, writes and reads together: best known"
        )
