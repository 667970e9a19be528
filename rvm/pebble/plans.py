"""Plans: a schedule with its rules, its exact cost, and the known facts about it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rvm.host.write import writing
from rvm.pebble.actions import Action, Block
from rvm.pebble.drawing.film import Film, chain_scenes, check_drawable, ticks_of
from rvm.pebble.game import Rules, check
from rvm.pebble.grammar import CHUNK, Schedule
from rvm.pebble.tally import Tally

if TYPE_CHECKING:
    from os import PathLike

BOLTZMANN = 1.380649e-23
"""J/K, exact by definition of the kelvin."""

VERSION = 1
"""The version of files of plans."""
CONVENTION = (
    "the input is not counted; the result is, and so is the state that moves on",
    "a move is a step done or undone; the n steps done with their adjoints are not moves",
)


@dataclass(frozen=True, slots=True)
class Units:
    """The physical units of states and steps: bytes, joules, kelvins; prices in moves."""

    state_bytes: int | None = None
    step_energy: float | None = None
    temperature: float = 300.0
    price: float = 0.0
    write: float = 0.0
    read: float = 0.0

    def erasure_energy(self) -> float:
        """Landauer's least energy for erasing one state, in joules: B k T ln 2 for B bits."""
        return 8 * (self.state_bytes or 0) * BOLTZMANN * self.temperature * log(2)

    def landauer_price(self) -> float:
        """The price of an erased state in moves: B k T ln 2 / e_step."""
        return self.erasure_energy() / (self.step_energy or inf)


@dataclass(frozen=True, slots=True)
class Cost:
    """The exact cost of a schedule, known before it is played."""

    moves: float
    """Steps done or undone, without those done together with their adjoints."""
    reversals: int
    """Steps done with their adjoints."""
    peak: float
    """The most pebbles at a time; bytes, if states have sizes of their own."""
    peak_bytes: float | None
    erased: float
    """States that are lost."""
    erased_bits: float | None
    writes: int
    reads: int
    disk_peak: int
    actions: int
    total: float
    """Moves, and erased states, writes and reads with their prices."""
    energy: float | None
    """Joules, if the energy of a step is known."""


def cost_of(tally: Tally, units: Units, sized: bool) -> Cost:
    """A tally in the units of the world; `sized` if peaks are bytes already."""
    size = 1 if sized else units.state_bytes
    extra = units.write * tally.writes + units.read * tally.reads
    if tally.erased:
        extra += units.price * tally.erased
    energy = None
    if units.step_energy is not None:
        lost = tally.erased * units.erasure_energy() if tally.erased else 0.0
        energy = units.step_energy * tally.moves + lost
    return Cost(
        tally.moves,
        tally.reversals,
        tally.peak,
        None if size is None else tally.peak * size,
        tally.erased,
        None if size is None else 8 * tally.erased * size,
        tally.writes,
        tally.reads,
        tally.disk_peak,
        tally.actions,
        tally.moves + extra,
        energy,
    )


class Shown(ABC):
    """A plan, of a chain or a graph, as it is drawn and saved."""

    __slots__ = ()

    @abstractmethod
    def film(self) -> Film:
        """The plan as it is drawn.  UsageError P030: it is too long to be drawn."""

    @abstractmethod
    def stored(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The header and the arrays of the plan's file; see `rvm.pebble.storage`."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan to a file, in its compact form; `rvm.pebble.load` reads it."""
        header, arrays = self.stored()
        text = np.array(json.dumps({"version": VERSION, **header}))
        with writing(path) as file:
            np.savez_compressed(file, allow_pickle=False, header=text, **arrays)

    def picture(self, width: int | None = None, height: int | None = None) -> str:
        """Nodes by time as text, of a given size; by default, a terminal's.

        Where there is no room for each step and node, a cell stands for several, and the last line
        says for how many.  UsageError P030: more than 200 million steps.
        """
        from rvm.pebble.drawing.pictures import picture

        return picture(self.film(), width, height)

    def svg(self) -> str:
        """Nodes by time as SVG text: bars of states that are held, and marks of adjoints.

        Long schedules are drawn as an image of cells.  UsageError P030 as for `picture`.
        """
        from rvm.pebble.drawing.diagrams import diagram

        return diagram(self.film())


@dataclass(frozen=True, slots=True)
class Plan(Shown):
    """A schedule that reaches a goal on a chain, with everything known in advance."""

    strategy: str
    rules: Rules
    schedule: Schedule = field(repr=False)
    cost: Cost
    proof: str
    units: Units = field(default_factory=Units)
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of steps."""
        return self.rules.n

    @property
    def goal(self) -> str:
        """persist, visit, erase or gradient."""
        return self.rules.goal

    def actions(self) -> Iterator[Action]:
        """The actions, one by one, made on demand."""
        return self.schedule.actions()

    def blocks(self, chunk: int = CHUNK) -> Iterator[Block]:
        """The actions as int64 arrays of shape (3, m): kinds, starts and stops."""
        return self.schedule.blocks(chunk)

    def check(self) -> Tally:
        """Play the schedule by the rules; the counts must equal the predictions."""
        return check(self.rules, self.actions())

    def film(self) -> Film:
        if self.rules.weights.costs is None:
            length = int(self.cost.moves) + self.cost.reversals
            check_drawable(length)
        else:
            length = sum(int(ticks_of(block).sum()) for block in self.blocks())
        gradient = self.goal == "gradient"
        peak = "" if self.rules.weights.sizes is not None else f", {self.cost.peak:,.0f} pebbles"
        return Film(
            f"{self.goal} of {self.n:,} step{'' if self.n == 1 else 's'} by {self.strategy}{peak}",
            0 if gradient else 1,
            self.n,
            length,
            "step",
            str,
            lambda: chain_scenes(self.blocks()),
            gradient,
            self.cost.writes > 0,
        )

    def stored(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        rules = self.rules
        header = {
            "strategy": self.strategy,
            "goal": rules.goal,
            "n": rules.n,
            "pebbles": rules.pebbles,
            "erasures": rules.erasures,
            "disk": rules.disk,
            "proof": self.proof,
            "notes": self.notes,
            "units": asdict(self.units),
        }
        starts, items = self.schedule.tables()
        in_place = np.array(sorted(rules.in_place), dtype=np.int64)
        arrays: dict[str, NDArray[Any]] = {"rules": starts, "items": items, "in_place": in_place}
        for name, values in rules.weights._asdict().items():
            if values is not None:
                arrays[name] = np.array(values)
        return header, arrays

    def describe(self) -> str:
        """A description in some lines: cost, proof, and method of counting."""
        c, n = self.cost, self.n
        sized = self.rules.weights.sizes is not None
        steps = self.rules.weights.steps(0, n)
        lines = [
            f"{self.goal} of {n:,} step{'s' if n != 1 else ''} by `{self.strategy}`",
            f"  moves     {_number(c.moves)}, {c.moves / steps:.3g} times the chain's own",
        ]
        if self.goal == "gradient":
            both = c.moves + c.reversals
            lines.append(f"  adjoints  {c.reversals:,}; with their steps {_number(both)} in all")
        peak = f"{_number(c.peak)} bytes" if sized else _count(c.peak, "pebble")
        if c.peak_bytes is not None and not sized:
            peak += f", {_number(c.peak_bytes)} bytes"
        budget = "" if self.rules.pebbles == inf else f" (budget {_number(self.rules.pebbles)})"
        lines.append(f"  peak      {peak}{budget}")
        erased = _count(c.erased, "byte" if sized else "state")
        if c.erased_bits is not None:
            erased += f", {_number(c.erased_bits)} bits"
        lines.append(f"  erased    {erased}")
        if c.writes or c.reads or self.rules.disk:
            lines.append(
                f"  disk      {c.writes:,} writes, {c.reads:,} reads, "
                f"{_count(c.disk_peak, 'state')} at most"
            )
        if c.total != c.moves:
            lines.append(f"  total     {_number(c.total)} moves, with what else has a price")
        if c.energy is not None:
            lines.append(f"  energy    {c.energy:.4g} J at {self.units.temperature:g} K")
        lines.append(f"  proof     {self.proof}")
        lines += [f"  note      {note}" for note in self.notes]
        lines += [f"  counted   {line}" for line in CONVENTION]
        return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.6g}"


def _count(value: float, noun: str) -> str:
    return f"{_number(value)} {noun}{'' if value == 1 else 's'}"
