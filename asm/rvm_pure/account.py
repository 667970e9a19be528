"""The costs of programs that run, by the paper's account and by the machine's, and their tables.

The account of a run has for each executed function, update and exchange what figure 11 of Huot and
Shaikhha has for it: see `rvm.accounts.cost`.  Jumps and calls cost nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rvm.accounts.counts import Counts
from rvm.derive.gradients import Pullback, Watch, unwatched
from rvm.isa.rows import COSTS
from rvm.library.handle import FunctionHandle
from rvm.run.machine import Machine
from rvm.transform.unread import unread
from rvm.types import I64
from rvm_pure.cost import Cost, figure, work
from rvm_pure.definition import Definition
from rvm_pure.types import flat, is_active
from rvm_pure.zeros import filled, zeros


@dataclass(frozen=True, slots=True)
class Run:
    """The costs of a run: `work` by the paper's account, `counted` by the machine's."""

    work: Cost
    counted: Cost

    @classmethod
    def of(cls, counts: Iterable[Counts]) -> Run:
        """The costs of runs that were counted."""
        moved, found = 0, dict.fromkeys(COSTS, 0)
        for node in (node for c in counts for node in c.nodes()):
            for pc in range(len(node.code)):
                for times, cost in node.costs(pc):
                    moved += times * cost.moved
                    for kind, k in cost.work.items():
                        found[kind.cls] += times * k
        machine = Cost(*(found[c] for c in COSTS))
        return cls(Cost(moved, *machine.counts[1:]), machine)


class Counting:
    """Counts the runs of a gradient, forwards and back, inside of what else surrounds them."""

    def __init__(self, around: Watch = unwatched) -> None:
        self.around = around
        self.counts: dict[str, Counts] = {}
        """By the direction of the run."""

    @contextmanager
    def __call__(self, machine: Machine, way: str) -> Iterator[None]:
        with self.around(machine, way):
            self.counts[way] = machine.count()
            yield

    @property
    def runs(self) -> dict[str, Run]:
        """The costs of the runs by their directions."""
        return {way: Run.of([counts]) for way, counts in self.counts.items()}


def arguments(f: Definition, sizes: Mapping[str, int]) -> list[Any]:
    """Numbers and arrays for these lengths and counts: real ones are one half, others 1."""
    return [
        sizes[p.name]
        if t == I64 and p.name in sizes
        else filled(t, sizes, lambda elem: 0.5 if is_active(elem) else 1)
        for p in f.params
        for t in flat(p.type)
    ]


def run_of(f: Definition, handle: FunctionHandle, sizes: Mapping[str, int]) -> Run:
    """The costs of adding the function's value to zeros."""
    assert f.body.type is not None
    outs = [zeros(t, sizes) for t in flat(f.body.type)]
    machine = handle.machine(*outs, *arguments(f, sizes))
    counts = machine.count()
    machine.run()
    return Run.of([counts])


def run_with_adjoints(f: Definition, handle: FunctionHandle, sizes: Mapping[str, int]) -> Run:
    """The costs of gradient mode: of the run back, and of that forwards if it is needed."""
    watch = Counting()
    values = zip(handle.parameters, (0.0, *arguments(f, sizes)), strict=True)
    pull = Pullback(handle.target, dict(values), watch)
    pull.seed(handle.parameters[0])
    pull(check=False)
    needed = unread(handle.target.program, handle.target.name) is None
    return Run.of(c for way, c in watch.counts.items() if needed or way != "forwards")


@dataclass(frozen=True, slots=True)
class Row:
    """A stage's costs: of its term by figure 11 and by the account with a bound, and of its run."""

    stage: str
    run: Run | None = None
    figure: Cost | None = None
    work: Cost | None = None

    @classmethod
    def of(
        cls,
        stage: str,
        f: Definition,
        sizes: Mapping[str, int],
        handle: FunctionHandle | None = None,
    ) -> Row:
        """The costs of a definition, and of its run if there is a function to call."""
        both = figure(f.body, sizes), work(f.body, sizes)
        return cls(stage, None if handle is None else run_of(f, handle, sizes), *both)

    @property
    def lines(self) -> dict[str, Cost]:
        """The costs under their headings."""
        own = {"figure 11": self.figure, "work": self.work}
        out = {name: c for name, c in own.items() if c is not None}
        if self.run is not None:
            out |= {"work of the run": self.run.work, "counted": self.run.counted}
        return out


def table(rows: Sequence[Row]) -> list[str]:
    """The rows as lines."""
    lines = [f"{'':16}" + "".join(f"{c:>9}" for c in COSTS)]
    for row in rows:
        lines.append(row.stage)
        for name, cost in row.lines.items():
            lines.append(f"{name:16}" + "".join(f"{k:>9}" for k in cost.counts))
    return lines


@dataclass(frozen=True, slots=True)
class Account:
    """The costs of a function and of its derivatives at some lengths."""

    source: Row
    gradient: Row
    mode: Row
    """Gradient mode of the reversible program."""
    others: Sequence[Row]
    """Other forms of the derivatives, as terms."""
    nesting: int
    kappa: float

    @property
    def bound(self) -> float:
        """The most that the gradient's work may be, in parts of the function's."""
        return float(self.kappa * 3**self.nesting)

    @property
    def ratio(self) -> float:
        """The gradient's work in parts of the function's."""
        assert self.gradient.work is not None and self.source.work is not None
        return self.gradient.work.total / max(1, self.source.work.total)

    def __str__(self) -> str:
        last = (
            f"work of the gradient {self.ratio:.2f} times the function's, at most "
            f"{self.bound:g}: kappa {self.kappa:.3g}, NAO {self.nesting}"
        )
        return "\n".join([*table([self.source, self.gradient, self.mode, *self.others]), last])
