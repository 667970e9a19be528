"""From the words of a caller to a family of schedules: which strategy takes which terms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from math import inf
from typing import Any

from rvm.faults import UsageError
from rvm.pebble.chains.bennett import Bennett
from rvm.pebble.chains.disk import WORK, Disk
from rvm.pebble.chains.family import Family
from rvm.pebble.chains.limited import Limited
from rvm.pebble.chains.multistage import Multistage
from rvm.pebble.chains.online import OnlineFamily
from rvm.pebble.chains.priced import Priced
from rvm.pebble.chains.reversible import GOALS, Reversible
from rvm.pebble.chains.revolve import Revolve
from rvm.pebble.chains.uneven import Uneven, ends_of

FORWARD = ("persist", "visit", "erase")
STRATEGIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "knill": (FORWARD, ("reversible_steps",)),
    "bennett": (GOALS, ("radix",)),
    "limited": (("persist", "visit"), ("erasures",)),
    "priced": (("persist", "visit"), ("price", "overwrite", "blocks")),
    "uneven": (GOALS, ("costs", "sizes", "reversible_steps")),
    "reversible": (("gradient",), ("reversible_steps",)),
    "revolve": (("gradient",), ("price",)),
    "hybrid": (("gradient",), ("price", "overwrite", "blocks")),
    "online": (("gradient",), ()),
    "disk": (("gradient",), ("disk", "write", "read", "keep_input")),
    "multistage": (("gradient",), ("disk", "write", "read", "keep_input")),
}
"""For each strategy its goals, and the terms that it takes."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a chain and its game; None for terms that are not given."""

    price: float | None = None
    """The price of an erased state, in moves."""
    erasures: int | None = None
    overwrite: bool | None = None
    """Whether a step may overwrite its state, at the price of an erased one."""
    radix: int | None = None
    disk: float | None = None
    write: float | None = None
    read: float | None = None
    reversible_steps: Collection[int] | None = None
    """The steps that can be done and undone in place."""
    costs: Sequence[float] | None = None
    sizes: Sequence[int] | None = None
    blocks: int | None = None
    keep_input: bool | None = None
    """Whether the input stays in memory, even if it is on disk."""

    def said(self) -> list[str]:
        """The names of the terms that were given."""
        return [f.name for f in fields(self) if getattr(self, f.name) is not None]


def wrong(message: str, hint: str = "", **values: Any) -> UsageError:
    """P001: an argument that cannot be."""
    return UsageError("P001", message, values=values, hint=hint)


def checked(n: int, goal: str, strategy: str, terms: Terms) -> None:
    """Refuse terms that no strategy can use."""
    if not 1 <= n <= 1 << 40:
        raise wrong(f"a chain has from 1 to 2^40 steps, not {n}", n=n)
    if goal not in GOALS:
        raise wrong(f"there is no goal `{goal}`", f"goals: {', '.join(GOALS)}")
    if strategy != "optimal" and strategy not in STRATEGIES:
        names = ", ".join(["optimal", *STRATEGIES])
        raise wrong(f"there is no strategy `{strategy}`", f"strategies: {names}")
    if terms.price is not None and not terms.price >= 0:
        raise wrong("the price of an erased state is 0 or more", price=terms.price)
    for name, least in (
        ("erasures", 0),
        ("disk", 0),
        ("write", 0),
        ("read", 0),
        ("radix", 2),
        ("blocks", 16),
    ):
        value = getattr(terms, name)
        if value is not None and not value >= least:
            raise wrong(f"`{name}` is {least} or more", **{name: value})
    for name in ("costs", "sizes"):
        values = getattr(terms, name)
        if values is None:
            continue
        if len(values) != n:
            raise wrong(f"`{name}` has a number for each of the {n} steps", given=len(values))
        if not all(v > 0 for v in values):
            raise wrong(f"`{name}` are positive", given=min(values))
    if terms.sizes is not None and any(v != int(v) for v in terms.sizes):
        raise wrong("`sizes` are whole numbers of bytes")
    steps = terms.reversible_steps
    if steps is not None and not all(1 <= step <= n for step in steps):
        raise wrong(f"steps have the numbers 1 to {n}", steps=sorted(steps)[:5])
    if steps and terms.sizes is not None:
        raise wrong("states of unequal size together with steps in place are not planned")


def resolved(goal: str, strategy: str, n: int, terms: Terms) -> str:
    """The strategy chosen by `optimal`, or the named one."""
    if strategy != "optimal":
        return strategy
    if terms.costs is not None or terms.sizes is not None:
        return "uneven"
    if terms.reversible_steps and _unit(n, terms.reversible_steps) is None:
        return "uneven"
    if goal != "gradient":
        if terms.erasures is not None:
            return "limited"
        return "knill" if terms.price is None or terms.price == inf else "priced"
    if terms.disk:
        rows = 1 if terms.disk >= n else terms.disk + 1
        return "disk" if n * n * rows <= WORK else "multistage"
    if terms.price is None or terms.price == inf:
        return "reversible"
    return "revolve" if terms.price == 0 and terms.overwrite is not False else "hybrid"


def _unit(n: int, in_place: Collection[int]) -> int | None:
    """The length of pieces if all but the last have the same, else None."""
    if not in_place:
        return 1
    ends = ends_of(n, frozenset(in_place))
    *others, last = (j - i for i, j in pairwise(ends))
    lengths = set(others)
    if len(lengths) > 1:
        return None
    unit = lengths.pop() if lengths else n
    return unit if last <= unit else None


def chosen(n: int, goal: str, strategy: str, terms: Terms) -> Family:
    """The family of schedules that the words mean; UsageError P001 if they do not go together."""
    checked(n, goal, strategy, terms)
    name = resolved(goal, strategy, n, terms)
    goals, takes = STRATEGIES[name]
    if goal not in goals:
        raise wrong(f"`{name}` has no goal `{goal}`", f"its goals: {', '.join(goals)}")
    for term in terms.said():
        harmless = term in ("price", "disk") and getattr(terms, term) in (0, inf)
        if term not in takes and not (strategy == "optimal" and (harmless or term == "overwrite")):
            raise wrong(
                f"`{name}` takes no `{term}`",
                f"it takes: {', '.join(takes) or 'nothing but a budget'}",
            )
    price = inf if terms.price is None else terms.price
    steps = frozenset(terms.reversible_steps or ())
    match name:
        case "knill" | "reversible":
            unit = _unit(n, steps)
            if unit is None:
                raise wrong(
                    f"`{name}` takes steps in place only in pieces of equal length",
                    'say strategy="uneven"',
                )
            return Reversible(n, goal, unit, steps)
        case "bennett":
            return Bennett(n, goal, terms.radix)
        case "limited":
            return Limited(n, goal, int(terms.erasures or 0))
        case "priced" | "hybrid":
            if terms.price is None:
                raise wrong(
                    f"`{name}` needs the price of an erased state",
                    "price= in moves, or step_energy= in joules with state_bytes=",
                )
            overwrite = terms.overwrite is not False
            return Priced(n, goal, price, overwrite, terms.blocks or 1000)
        case "uneven":
            return Uneven(n, goal, terms.costs, terms.sizes, steps)
        case "revolve":
            if price == inf:
                price = 0
            return Revolve(n, price)
        case "online":
            return OnlineFamily(n)
        case _:
            family = Disk if name == "disk" else Multistage
            places = inf if terms.disk is None else terms.disk
            write = 1.0 if terms.write is None else terms.write
            read = 1.0 if terms.read is None else terms.read
            return family(n, places, write, read, bool(terms.keep_input))
