"""`rvm pebble --steps N`: a chain planned, compared with other strategies, over all budgets."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from time import perf_counter
from typing import Any

from rvm.faults import RvmError, UsageError
from rvm.pebble import STRATEGIES, Frontier, Plan, frontier, plan
from rvm.pebble.chains.knill import fewest_to_persist, fewest_to_visit
from rvm.pebble.planner import TABLES_LENGTH, TABLES_PEBBLES
from rvm_tools.pebble.report import Rival
from rvm_tools.pebble.request import BUDGETS, PebbleRequest

_UNITS = ("state_bytes", "step_energy", "temperature")
_SHORT = 400
"""The most steps for which an exact table for a few erasures takes no time to speak of."""
_ONLINE = 100_000
"""The most steps for which the schedule for an unknown length is compared."""
_POINTS = 60
"""About how many budgets a curve has."""


def planned(request: PebbleRequest) -> Plan:
    """The requested plan."""
    assert request.steps is not None
    return plan(request.steps, **request.terms)


def compared(request: PebbleRequest, own: Plan, took: float | None) -> list[Rival]:
    """The plan among those of other strategies for the same chain, goal and budget."""
    rows = []
    shown = False
    for label, strategy, terms in _rivals(request, own):
        if strategy == own.strategy:
            shown = True
            rows.append(Rival(label, own, took, own=True))
            continue
        begin = perf_counter()
        try:
            found = plan(own.n, goal=own.goal, strategy=strategy, **terms)
        except RvmError as error:
            rows.append(Rival(label, None, perf_counter() - begin, error))
        else:
            rows.append(Rival(label, found, perf_counter() - begin))
    return rows if shown else [Rival(own.strategy, own, took, own=True), *rows]


def _rivals(request: PebbleRequest, own: Plan) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Strategies that are worth a line: label, name and terms."""
    given = request.terms
    common = request.chosen(*BUDGETS, *_UNITS)
    if own.rules.weights.costs or own.rules.weights.sizes or own.rules.in_place:
        return
    price = own.units.price or given.get("price") or 1.0
    own_price = {} if price == inf else {"price": price}
    for name in STRATEGIES:
        goals, takes = STRATEGIES[name]
        terms = {**common, **request.chosen(*takes)}
        label = name
        match name:
            case _ if own.goal not in goals or name == "uneven":
                continue
            case "bennett" if given.get("radix"):
                label = f"bennett, radix {given['radix']}"
            case "limited":
                allowed = given.get("erasures") or 1
                if own.n > _SHORT and name != own.strategy:
                    continue
                terms["erasures"] = allowed
                label = f"limited, {allowed} erasure{'' if allowed == 1 else 's'}"
            case "priced" | "hybrid":
                terms |= own_price
                label = f"{name}, price {price:.4g}"
            case "revolve":
                terms |= own_price if "price" in given else {}
            case "online" if own.n > _ONLINE or "max_moves" in common or "max_energy" in common:
                continue
            case "disk" | "multistage" if not given.get("disk") or name != own.strategy:
                continue
        yield label, name, terms


def curve(request: PebbleRequest, own: Plan) -> Frontier:
    """The cost of the chain over the whole range of budgets. UsageError P001: it is not uniform."""
    if own.rules.weights.costs or own.rules.weights.sizes or own.rules.in_place:
        raise UsageError("P001", "curves are drawn for chains of equal steps into fresh memory")
    fewest = fewest_to_persist if own.goal == "persist" else fewest_to_visit
    low = max(1, fewest(own.n - (own.goal == "gradient")))
    factor = max((own.n / low) ** (1 / _POINTS), 1.0)
    budgets = sorted({min(own.n, round(low * factor**k)) for k in range(_POINTS + 1)})
    terms: dict[str, Any] = request.chosen("price", "disk", "write", "read")
    if own.units.price:
        terms["price"] = own.units.price
    priced = 0 < terms.get("price", inf) < inf
    forward = "priced" if own.goal in STRATEGIES["priced"][0] else None
    tables = "hybrid" if own.goal == "gradient" else forward
    names = ["bennett", "reversible" if own.goal == "gradient" else "knill"]
    found = frontier(own.n, goal=own.goal, strategies=names, pebbles=budgets, **terms).points
    if priced and tables:
        few = [s for s in budgets if own.n <= TABLES_LENGTH or s <= TABLES_PEBBLES]
        found += frontier(own.n, goal=own.goal, strategies=[tables], pebbles=few, **terms).points
    last = ["revolve"] if own.goal == "gradient" else []
    if own.strategy in ("disk", "multistage"):
        last.append(own.strategy)
    found += frontier(own.n, goal=own.goal, strategies=last, pebbles=budgets, **terms).points
    return Frontier(own.n, own.goal, found)
