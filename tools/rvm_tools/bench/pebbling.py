"""What plans cost: to make, to stream, and to follow, by strategy, length and budget.

`python -m rvm_tools.bench.pebbling` prints the table of plans; with `--rates` how many actions a
second come out, one by one and in blocks; with `--peers` what checkpoint_schedules takes for the
same chains, if it is installed.  Times are seconds of the processor.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from time import process_time
from typing import Any

from rvm.faults import BudgetError
from rvm.pebble import Plan, plan
from rvm.pebble.knill import line
from rvm.pebble.limited import limited
from rvm.pebble.online import online
from rvm.pebble.priced import priced

BUDGETS = {256: (10, 16, 32), 1_000: (12, 20, 60), 10**6: (24, 40, 100)}
STRATEGIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bennett", {}),
    ("knill", {}),
    ("priced", {"price": 8}),
    ("reversible", {"goal": "gradient"}),
    ("hybrid", {"goal": "gradient", "price": 8}),
    ("revolve", {"goal": "gradient"}),
    ("online", {"goal": "gradient"}),
    ("multistage", {"goal": "gradient", "disk": 10}),
)

PATIENCE = 2.0
"""Seconds beyond which a plan is not made again for its memory, which takes far longer."""


@dataclass(frozen=True, slots=True)
class Row:
    """A plan, the seconds it took to make, and the most bytes held for it, if that was measured."""

    plan: Plan
    seconds: float
    memory: int | None


def made(n: int, pebbles: int, strategy: str, terms: dict[str, Any]) -> Row:
    """A plan made from nothing, once for the time and once for the memory."""

    def make() -> Plan:
        for tables in (line, priced, limited, online):
            tables.cache_clear()
        return plan(n, strategy=strategy, pebbles=pebbles, **terms)

    begin = process_time()
    found = make()
    seconds = process_time() - begin
    if seconds > PATIENCE:
        return Row(found, seconds, None)
    tracemalloc.start()
    make()
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Row(found, seconds, memory)


def rows() -> Iterator[Row]:
    """All strategies on all lengths and budgets; those that a budget is too small for are left."""
    for n, budgets in BUDGETS.items():
        for pebbles in budgets:
            for strategy, terms in STRATEGIES:
                try:
                    yield made(n, pebbles, strategy, terms)
                except BudgetError:
                    continue


def table(found: Iterable[Row]) -> Iterator[str]:
    """Lines of the table of plans."""
    yield (
        f"{'steps':>9} {'pebbles':>7}  {'strategy':<11}{'goal':<9}{'moves':>15}{'peak':>6}"
        f"{'erased':>12}{'plan s':>9}{'plan MB':>9}"
    )
    for row in found:
        p = row.plan
        memory = "-" if row.memory is None else f"{row.memory / 1e6:.1f}"
        yield (
            f"{p.n:>9,} {p.rules.pebbles:>7,}  {p.strategy:<11}{p.goal:<9}{p.cost.moves:>15,.0f}"
            f"{p.cost.peak:>6,.0f}{p.cost.erased:>12,.0f}{row.seconds:>9.3f}{memory:>9}"
        )


def rate(counts: Iterable[int]) -> str:
    """How many actions there were, and how many came in a second."""
    begin = process_time()
    actions = sum(counts)
    seconds = process_time() - begin
    return f"{actions:>12,} actions in {seconds:6.2f} s: {actions / seconds / 1e6:5.1f} M/s"


def rates() -> Iterator[str]:
    """Lines on streaming: single actions and blocks of the reversible optimum and of Revolve."""
    cases = (
        ("knill", plan(10**6, pebbles=40)),
        ("revolve", plan(10**6, pebbles=10, goal="gradient", price=0)),
    )
    for name, p in cases:
        yield f"{name:<9}one by one {rate(1 for _ in p.actions())}"
        yield f"{name:<9}in blocks  {rate(block.shape[1] for block in p.blocks())}"


def peers() -> Iterator[str]:
    """Lines on checkpoint_schedules: seconds for all actions, and the steps done forwards."""
    import checkpoint_schedules as cs

    from rvm.pebble import checkpointing

    def followed(schedule: Any) -> tuple[float, int]:
        begin, steps = process_time(), 0
        for action in schedule():
            if isinstance(action, cs.Forward):
                steps += action.n1 - action.n0
            elif isinstance(action, cs.EndReverse):
                break
        return process_time() - begin, steps

    def ours(n: int, **terms: Any) -> Any:
        return lambda: checkpointing.schedule(plan(n, goal="gradient", pebbles=10, **terms))

    for n in (1_000, 10**4, 10**6):
        contest = [
            ("rvm revolve", ours(n, price=0)),
            ("rvm multistage, 10 on disk", ours(n, strategy="multistage", disk=10)),
            ("Multistage", lambda n=n: cs.MultistageCheckpointSchedule(n, 10, 0)),
            ("Multistage, 10 on disk", lambda n=n: cs.MultistageCheckpointSchedule(n, 10, 10)),
        ]
        if n == 1_000:
            contest += [
                ("rvm disk, w = r = 5", ours(n, disk=inf, write=5, read=5)),
                ("Revolve", lambda n=n: cs.Revolve(n, 10)),
                ("DiskRevolve, w = r = 5", lambda n=n: cs.DiskRevolve(n, 10, wd=5, rd=5)),
            ]
        for name, schedule in contest:
            seconds, steps = followed(schedule)
            yield f"{n:>9,}  {name:<28}{seconds:>8.2f} s{steps:>13,} steps"


def main() -> None:
    """Print what the command line asks for."""
    wanted = sys.argv[1:]
    lines = {"--rates": rates, "--peers": peers}
    unknown = [name for name in wanted if name not in lines]
    if unknown:
        sys.exit(f"there is no option {unknown[0]}; options: {', '.join(lines)}")
    for produce in [lines[name] for name in wanted] or [lambda: table(rows())]:
        for text in produce():
            print(text, flush=True)


if __name__ == "__main__":
    main()
