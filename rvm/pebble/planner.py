"""`plan`: from a budget to a schedule; `frontier`: the cost for each number of pebbles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from rvm.faults import BudgetError
from rvm.pebble.chains.family import Family
from rvm.pebble.game import Rules
from rvm.pebble.plans import Plan, Units, cost_of
from rvm.pebble.terms import STRATEGIES, Terms, chosen, wrong


def plan(
    n: int,
    *,
    goal: str = "persist",
    strategy: str = "optimal",
    pebbles: int | None = None,
    memory: float | None = None,
    max_moves: float | None = None,
    max_energy: float | None = None,
    state_bytes: int | None = None,
    step_energy: float | None = None,
    temperature: float = 300.0,
    price: float | None = None,
    erasures: int | None = None,
    overwrite: bool | None = None,
    radix: int | None = None,
    disk: float | None = None,
    write: float | None = None,
    read: float | None = None,
    keep_input: bool | None = None,
    reversible_steps: Collection[int] | None = None,
    costs: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    blocks: int | None = None,
) -> Plan:
    """A schedule for a chain of n steps.

    One budget is given: `pebbles`; `memory` in bytes, with `state_bytes` or with `sizes`; or the
    most that may be spent, `max_moves` (erased states, writes and reads count with their prices) or
    `max_energy` in joules, and then the plan takes the fewest pebbles that do.

    | goal | the schedule ends |
    |---|---|
    | persist | with a pebble on the result, and no other |
    | visit | as soon as the result is there |
    | erase | with no pebble; the result was copied out |
    | gradient | with no pebble; the adjoints of steps n, ..., 1 were taken |

    `strategy` is "optimal", which chooses by what else is said, or a name in
    `rvm.pebble.STRATEGIES`.  An erased state costs `price` moves, or by Landauer's principle
    8 state_bytes k T ln 2 / `step_energy`; without either nothing may be erased, save `erasures`
    times.  While the input is on disk its place in memory may be used, unless `keep_input`.
    BudgetError P002 names the least feasible budget; UsageError P001 a wrong argument.
    """
    units = Units(state_bytes, step_energy, temperature)
    _positive(state_bytes=state_bytes, step_energy=step_energy, temperature=temperature)
    if price is None and step_energy is not None and state_bytes is not None:
        takes = STRATEGIES[strategy][1] if strategy in STRATEGIES else ("price",)
        plain = costs is None and sizes is None and reversible_steps is None
        free = erasures is None and not disk and goal != "erase"
        if "price" in takes and plain and free:
            price = units.landauer_price()
    terms = Terms(
        price,
        erasures,
        overwrite,
        radix,
        disk,
        write,
        read,
        reversible_steps,
        costs,
        sizes,
        blocks,
        keep_input,
    )
    family = chosen(n, goal, strategy, terms)
    budget = _budget(family, units, sizes is not None, pebbles, memory, max_moves, max_energy)
    return planned(family, budget, terms, units)


def planned(family: Family, budget: float, terms: Terms, units: Units) -> Plan:
    """The plan of a family for a feasible budget."""
    staged = family.name in ("disk", "multistage")
    units = replace(
        units,
        price=terms.price if terms.price is not None and terms.price < inf else 0.0,
        write=(1.0 if terms.write is None else terms.write) if staged else 0.0,
        read=(1.0 if terms.read is None else terms.read) if staged else 0.0,
    )
    rules = Rules(
        family.n, family.goal, budget, family.erasures, family.disk, family.in_place, family.weights
    )
    schedule = family.schedule(budget)
    cost = cost_of(schedule.tally(), units, terms.sizes is not None)
    return Plan(
        family.name, rules, schedule, cost, family.proof(budget), units, family.notes(budget)
    )


def _positive(**values: float | None) -> None:
    for name, value in values.items():
        if value is not None and not value > 0:
            raise wrong(f"`{name}` is positive", given=value)


# ---------------------------------------------------------------- budgets


def _budget(
    family: Family,
    units: Units,
    sized: bool,
    pebbles: int | None,
    memory: float | None,
    max_moves: float | None,
    max_energy: float | None,
) -> float:
    """The pebbles (bytes, if states have sizes) that the given budget allows or needs."""
    given = {"pebbles": pebbles, "memory": memory, "max_moves": max_moves, "max_energy": max_energy}
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) > 1:
        raise wrong("only one budget may be given", given=", ".join(named))
    if not named:
        if getattr(family, "radix", None) is not None:
            return family.fewest()
        raise wrong("a plan needs a budget", "pebbles=, memory=, max_moves= or max_energy=")
    name, value = named.popitem()
    if value < 0 or value != value:
        raise wrong(f"`{name}` is 0 or more", given=value)
    if name in ("max_moves", "max_energy"):
        if name == "max_energy":
            if units.step_energy is None:
                raise wrong("a budget of energy needs the energy of a step", "step_energy= in J")
            value /= units.step_energy
        return cheapest(family, value, units if name == "max_energy" else None)
    if name == "pebbles" and sized:
        raise wrong("states have sizes, so the budget is in bytes", "memory=")
    size = 1
    if name == "memory" and not sized:
        if units.state_bytes is None:
            raise wrong("a budget of bytes needs the size of a state", "state_bytes= or sizes=")
        size = units.state_bytes
    budget = value // size
    if family.total(budget) == inf:
        least = family.fewest() * size
        unit = "pebbles" if name == "pebbles" else "bytes"
        raise BudgetError(
            "P002",
            f"a schedule of {_about(family)} needs at least {least:,.0f} {unit}, "
            f"and the budget is {value:,.0f}",
            values={"budget": value, "least": least, "unit": unit},
            hint=f"{name}={least:.0f} is the least that suffices",
        )
    return budget


def _about(family: Family) -> str:
    return f"{family.n:,} steps (goal `{family.goal}`, strategy `{family.name}`)"


def cheapest(family: Family, bound: float, units: Units | None = None) -> float:
    """The least budget whose schedule costs no more than `bound` moves in all."""
    if family.name == "online":
        raise wrong("what `online` costs does not fall steadily with its pebbles", "pebbles=")
    least = family.floor()
    if least > bound:
        joules = "" if units is None else f", {least * (units.step_energy or 0):.4g} J"
        raise BudgetError(
            "P002",
            f"a schedule of {_about(family)} costs at least {least:,.6g} moves{joules} with any "
            f"number of pebbles, and the budget is {bound:,.6g} moves",
            values={"budget": bound, "least": least, "unit": "moves"},
            hint="give more of it, or erase states at a lower price",
        )
    # What a budget costs falls as it grows: double it until it does, then bisect.
    low = int(family.fewest())
    high, step = low, 1
    while family.total(high) > bound:
        low, high, step = high + 1, int(min(high + step, family.most())), 2 * step
    while low < high:
        middle = (low + high) // 2
        if family.total(middle) <= bound:
            high = middle
        else:
            low = middle + 1
    return high


# ---------------------------------------------------------------- frontiers


TABLES_LENGTH, TABLES_PEBBLES = 1000, 64
"""On longer chains, curves of strategies with tables end at this number of pebbles."""


@dataclass(frozen=True, slots=True)
class Point:
    """The cost of one strategy with one number of pebbles."""

    strategy: str
    pebbles: int
    moves: float
    erased: float
    total: float


@dataclass(frozen=True, slots=True)
class Frontier:
    """Memory against time: points of several strategies, by their pebbles."""

    n: int
    goal: str
    points: tuple[Point, ...]

    def of(self, strategy: str) -> tuple[Point, ...]:
        """The points of one strategy, by rising pebbles."""
        return tuple(p for p in self.points if p.strategy == strategy)

    def curves(self) -> list[tuple[str, list[tuple[float, float]]]]:
        """For each strategy, its pebbles and their costs, prices included."""
        names = dict.fromkeys(p.strategy for p in self.points)
        return [(name, [(p.pebbles, p.total) for p in self.of(name)]) for name in names]

    @property
    def unit(self) -> str:
        """The unit of costs."""
        priced = any(p.total != p.moves for p in self.points)
        return "moves and prices" if priced else "moves"

    def plot(self, width: int | None = None, height: int | None = None) -> str:
        """The curves as text on logarithmic axes, by default in the size of a terminal."""
        from rvm.pebble.drawing.pictures import plot

        return plot(self.curves(), "pebbles", self.unit, width, height)

    def svg(self) -> str:
        """The curves as SVG text on logarithmic axes; at the right, in units of the chain's own."""
        from rvm.pebble.drawing.diagrams import chart

        title = f"{self.goal} of {self.n:,} steps: memory against time"
        return chart(title, self.curves(), "pebbles", self.unit, self.n)

    def table(self) -> str:
        """The moves of each strategy in a column; erased states after a slash."""
        names = list(dict.fromkeys(p.strategy for p in self.points))
        found = {(p.strategy, p.pebbles): p for p in self.points}
        rows = [["pebbles", *names]]
        for s in sorted({p.pebbles for p in self.points}):
            row = [f"{s:,}"]
            for name in names:
                p = found.get((name, s))
                erased = f" / {p.erased:,.0f}" if p and p.erased else ""
                row.append(f"{p.moves:,.0f}{erased}" if p else "-")
            rows.append(row)
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        return "\n".join(
            "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows
        )


def frontier(
    n: int,
    *,
    goal: str = "persist",
    strategies: Iterable[str] | None = None,
    pebbles: Iterable[int] | None = None,
    price: float | None = None,
    disk: float | None = None,
    write: float | None = None,
    read: float | None = None,
) -> Frontier:
    """The cost of a chain of n steps over a range of pebbles, by several strategies.

    Without `strategies`: Bennett's and the optimum; of a gradient, Revolve as well, and the hybrid
    if erasing has a price.  Without `pebbles`: from the fewest of the reversible game in steps of
    about a half, up to one for each node; strategies that need large tables for prices (`priced`,
    `hybrid`) go to 64 pebbles then, on chains of more than a thousand steps.  A budget that a
    strategy cannot do with has no point.
    """
    if strategies is None:
        strategies = ["bennett", "knill"]
        if goal == "gradient":
            hybrid = price is not None and 0 < price < inf
            strategies = ["bennett", "reversible", *(["hybrid"] if hybrid else []), "revolve"]
    points: dict[tuple[str, int], Point] = {}
    budgets = None if pebbles is None else sorted(set(pebbles))
    for strategy in strategies:
        takes = STRATEGIES[strategy][1] if strategy in STRATEGIES else ("price", "disk")
        terms = Terms(
            price=price if "price" in takes else None,
            disk=disk if "disk" in takes else None,
            write=write if "write" in takes else None,
            read=read if "read" in takes else None,
        )
        family = chosen(n, goal, strategy, terms)
        if budgets is None:
            low = chosen(n, goal, "reversible" if goal == "gradient" else "knill", Terms()).fewest()
            budgets = list(_growing(int(low), n))
        tables = family.name in ("priced", "hybrid") and n > TABLES_LENGTH
        for s in budgets:
            if pebbles is None and tables and s > TABLES_PEBBLES:
                break
            total = family.total(s)
            if total < inf:
                moves, erased = total, 0.0
                if family.erasures or family.disk:
                    tally = family.schedule(s).tally()
                    moves, erased = tally.moves, tally.erased
                points[family.name, s] = Point(family.name, s, moves, erased, total)
    return Frontier(n, goal, tuple(points.values()))


def _growing(low: int, high: int) -> Iterable[int]:
    s = max(low, 1)
    while s < high:
        yield s
        s += max(1, s // 2)
    yield high
