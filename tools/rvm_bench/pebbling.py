"""The cost of plans: to make, to stream, and to follow, by strategy, length and budget.

`python -m rvm_bench.pebbling` prints the table of plans, how fast whole schedules of a
million steps stream, and what other libraries take for the same chains, as far as they are
installed (`rvm_bench.pebble_peers`); `--plans`, `--rates` and `--peers` print one of these.
Times are seconds of the processor.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from time import process_time
from typing import Any

from rvm.faults import BudgetError
from rvm.pebble import Plan, plan
from rvm.pebble.chains.knill import line_of_bits
from rvm.pebble.chains.limited import limited
from rvm.pebble.chains.online import online
from rvm.pebble.chains.priced import priced
from rvm_bench.pebble_peers import peers

BUDGETS = {256: (10, 16, 32), 1_000: (12, 20, 60), 10**6: (24, 40, 100)}
_STRATEGIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bennett", {}),
    ("knill", {}),
    ("priced", {"price": 8}),
    ("reversible", {"goal": "gradient"}),
    ("hybrid", {"goal": "gradient", "price": 8}),
    ("revolve", {"goal": "gradient"}),
    ("online", {"goal": "gradient"}),
    ("multistage", {"goal": "gradient", "disk": 10}),
)

_SPELL = 0.3
"""The seconds for which a plan's actions are streamed to measure their rate."""
_PATIENCE = 2.0
"""Seconds beyond which a plan is not made again for its memory, which takes far longer."""


@dataclass(frozen=True, slots=True)
class _PlanCost:
    """A plan, and the cost of making it."""

    plan: Plan
    seconds: float
    """To make it."""
    memory: int | None
    """The most bytes held for that, if it was measured."""
    singly: float
    """Actions a second, one by one."""
    in_blocks: float
    """Actions a second, in blocks."""


def _made(n: int, pebbles: int, strategy: str, terms: dict[str, Any]) -> _PlanCost:
    """A plan made from nothing, once for the time and once for the memory."""

    def make() -> Plan:
        for tables in (line_of_bits, priced, limited, online):
            tables.cache_clear()
        return plan(n, strategy=strategy, pebbles=pebbles, **terms)

    begin = process_time()
    found = make()
    seconds = process_time() - begin
    singly, in_blocks = speed(one_by_one(found)), speed(block_sizes(found))
    memory = None
    if seconds <= _PATIENCE:
        tracemalloc.start()
        make()
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return _PlanCost(found, seconds, memory, singly, in_blocks)


def one_by_one(plan: Plan) -> Iterator[int]:
    """A plan's actions, made singly; their numbers, some thousands at a time."""
    actions = plan.actions()
    while count := sum(1 for _ in islice(actions, 10_000)):
        yield count


def block_sizes(plan: Plan) -> Iterator[int]:
    """A plan's blocks; how many actions each has."""
    return (block.shape[1] for block in plan.blocks())


def speed(counts: Iterable[int], spell: float = _SPELL) -> float:
    """The number per second; measured for not much longer than the spell."""
    begin, total = process_time(), 0
    for count in counts:
        total += count
        if process_time() - begin > spell:
            break
    return total / max(process_time() - begin, 1e-6)


def rows() -> Iterator[_PlanCost]:
    """All strategies on all lengths and budgets; those that a budget is too small for are left."""
    for n, budgets in BUDGETS.items():
        for pebbles in budgets:
            for strategy, terms in _STRATEGIES:
                try:
                    yield _made(n, pebbles, strategy, terms)
                except BudgetError:
                    continue


def table(found: Iterable[_PlanCost]) -> Iterator[str]:
    """Lines of the table of plans."""
    yield (
        f"{'steps':>9} {'pebbles':>7}  {'strategy':<11}{'goal':<9}{'moves':>15}{'peak':>6}"
        f"{'erased':>12}{'plan s':>9}{'plan MB':>9}{'M/s':>7}{'in blocks':>11}"
    )
    for row in found:
        p = row.plan
        memory = "-" if row.memory is None else f"{row.memory / 1e6:.1f}"
        yield (
            f"{p.n:>9,} {p.rules.pebbles:>7,}  {p.strategy:<11}{p.goal:<9}{p.cost.moves:>15,.0f}"
            f"{p.cost.peak:>6,.0f}{p.cost.erased:>12,.0f}{row.seconds:>9.3f}{memory:>9}"
            f"{row.singly / 1e6:>7.2f}{row.in_blocks / 1e6:>11.1f}"
        )


def rate(counts: Iterable[int]) -> str:
    """The number of actions, and their rate per second."""
    begin = process_time()
    actions = sum(counts)
    seconds = process_time() - begin
    return f"{actions:>12,} actions in {seconds:6.2f} s: {actions / seconds / 1e6:5.1f} M/s"


def _rates() -> Iterator[str]:
    """Lines on streaming: single actions and blocks of the reversible optimum and of Revolve."""
    cases = (
        ("knill", plan(10**6, pebbles=40)),
        ("revolve", plan(10**6, pebbles=10, goal="gradient", price=0)),
    )
    for name, p in cases:
        yield f"{name:<9}one by one {rate(1 for _ in p.actions())}"
        yield f"{name:<9}in blocks  {rate(block.shape[1] for block in p.blocks())}"


PARTS: dict[str, Callable[[], Iterable[str]]] = {
    "--plans": lambda: table(rows()),
    "--rates": _rates,
    "--peers": peers,
}


def main() -> None:
    """Print the tables requested on the command line."""
    wanted = sys.argv[1:]
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        sys.exit(f"there is no option {unknown[0]}; options: {', '.join(PARTS)}")
    for number, name in enumerate(wanted or PARTS):
        if number:
            print()
        for text in PARTS[name]():
            print(text, flush=True)


if __name__ == "__main__":
    main()
