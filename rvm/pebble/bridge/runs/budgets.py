"""From a budget for a run to a plan, when the size of a state is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rvm.faults import BudgetError, UsageError
from rvm.pebble.planner import plan
from rvm.pebble.plans import Plan
from rvm.pebble.terms import FORWARD, STRATEGIES, wrong

NAMED = ("pebbles", "memory", "max_moves", "max_energy")
TERMS = (
    *NAMED,
    *("strategy", "price", "erasures", "overwrite", "radix", "disk", "write", "read", "keep_input"),
    *("reversible_steps", "costs", "step_energy", "temperature", "blocks"),
)
"""The terms of `rvm.pebble.plan` that a run takes; the size of a state is measured."""
ONLY_BACK = ("disk", "write", "read", "keep_input")
UNITS = {"": 1, "b": 1}
UNITS |= {f"{p}b": 1000**k for k, p in enumerate("kmgt", 1)}
UNITS |= {f"{p}ib": 1024**k for k, p in enumerate("kmgt", 1)}


def byte_count(text: str) -> float:
    """Bytes as people write them: `2 GB`, `64 MiB`, `1e6`."""
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", text.lower())
    try:
        if found:
            return float(found[1]) * UNITS[found[2]]
    except (ValueError, KeyError):
        pass
    raise wrong(f"`{text}` is not a number of bytes", 'memory="2 GB", "64 MiB", or a number')


class Budget:
    """The budget of a run: a ready plan, or terms to make one with."""

    def __init__(self, budget: int | str | Plan | None, terms: Mapping[str, Any]) -> None:
        self.terms = {name: value for name, value in terms.items() if value is not None}
        unknown = sorted(self.terms.keys() - set(TERMS))
        if unknown:
            raise wrong(f"a run takes no `{unknown[0]}`", f"it takes: {', '.join(TERMS)}")
        self.plan = budget if isinstance(budget, Plan) else None
        self._made: dict[tuple[int, str, int, int], Plan] = {}
        if self.plan is not None and self.terms:
            raise wrong("a ready plan takes no further terms", given=", ".join(self.terms))
        named = [name for name in NAMED if name in self.terms]
        if len(named) + (budget is not None) > 1:
            raise wrong("only one budget may be given", given=", ".join(named))
        if isinstance(budget, (str, int, float)):
            self.terms["memory" if isinstance(budget, str) else "pebbles"] = budget
        elif budget is not None and self.plan is None:
            raise wrong(
                f"a budget is not a {type(budget).__name__}",
                'a number of pebbles, bytes as "2 GB", or a plan',
            )
        if isinstance(self.terms.get("memory"), str):
            self.terms["memory"] = byte_count(self.terms["memory"])

    def __str__(self) -> str:
        if self.plan is not None:
            return f"by a plan of {self.plan.rules.pebbles:g} pebbles"
        return ", ".join(f"{name}={value!r}" for name, value in self.terms.items()) or "no budget"

    def made(self, n: int, goal: str, state: int, extra: int, forgetful: bool) -> Plan:
        """The plan for a goal; BudgetError P002 names the least that would do.

        `state`: the bytes of one.  `extra`: how many states are in memory besides the pebbles.
        `forgetful`: erasing states costs nothing, unless a price is given.
        """
        if self.plan is not None:
            return self._ready(n, goal)
        key = (n, goal, state, extra)
        if key not in self._made:
            self._made[key] = self._new(n, goal, state, extra, forgetful)
        return self._made[key]

    def _new(self, n: int, goal: str, state: int, extra: int, forgetful: bool) -> Plan:
        terms = self._terms(goal, forgetful)
        terms.update(goal=goal, state_bytes=max(state, 1))
        memory = terms.pop("memory", None)
        if memory is not None:
            terms["pebbles"] = max(int(memory // max(state, 1)) - extra, 0)
        if goal != "gradient" and terms.get("price") == 0 and terms.get("overwrite") is not False:
            # Forwards, where erasing is free, one pebble is as good as many.
            if not any(name in terms for name in NAMED):
                terms["pebbles"] = 1
            elif "pebbles" in terms:
                terms["pebbles"] = min(terms["pebbles"], 1)
        try:
            return plan(n, **terms)
        except BudgetError as error:
            if memory is None:
                raise
            least = (int(error.values["least"]) + extra) * max(state, 1)
            raise BudgetError(
                "P002",
                f"{goal} of {n:,} steps needs {least:,} bytes, and the budget is {memory:,.0f}",
                values={"budget": memory, "least": least, "unit": "bytes", "state": state},
                hint=f"memory={least} is the least that suffices: {error.values['least']:.0f} of "
                f"{state:,} bytes in pebbles, and {extra} besides them",
            ) from None

    def pebbles(self, state: int, extra: int) -> int:
        """The number of pebbles for a run of unknown length."""
        other = sorted(self.terms.keys() - {"pebbles", "memory", "price", "strategy"})
        if self.plan is not None or other or self.terms.get("strategy", "online") != "online":
            raise wrong(
                "a run of unknown length takes a number of pebbles or bytes, and nothing else",
                given=", ".join(other) or "a plan",
            )
        memory = self.terms.get("memory")
        found = self.terms.get("pebbles") if memory is None else memory // max(state, 1) - extra
        if found is None:
            raise wrong("a run of unknown length needs a budget", "pebbles= or memory=")
        if found < 1:
            name, least = ("pebbles", 1) if memory is None else ("memory", (1 + extra) * state)
            raise BudgetError(
                "P002",
                f"a run of unknown length needs a pebble, {(1 + extra) * state:,} bytes in all",
                values={"budget": self.terms[name], "least": least},
                hint=f"{name}={least} is the least that suffices",
            )
        return int(found)

    def _ready(self, n: int, goal: str) -> Plan:
        found = self.plan
        assert found is not None
        fitting = ("gradient",) if goal == "gradient" else FORWARD
        if found.n != n or found.goal not in fitting:
            raise wrong(
                f"the plan is for `{found.goal}` of {found.n:,} steps",
                f"this run wants {' or '.join(fitting)} of {n:,}",
            )
        if found.rules.weights.sizes is not None:
            raise wrong("the plan has states of unequal size, and those of a run have one size")
        return found

    def _terms(self, goal: str, forgetful: bool) -> dict[str, Any]:
        """The terms that matter for a goal, with what goes without saying."""
        terms = dict(self.terms)
        strategy = terms.get("strategy", "optimal")
        if goal != "gradient":
            for name in ONLY_BACK:
                terms.pop(name, None)
            if "persist" not in STRATEGIES.get(strategy, (FORWARD,))[0]:
                # A strategy of gradients: for the way there, what goes with it is enough.
                del terms["strategy"]
                forgetful = forgetful or strategy not in ("reversible", "hybrid")
                if strategy == "reversible":
                    return terms
        said = ("price", "erasures", "step_energy", "costs", "reversible_steps")
        if terms.get("disk"):
            # The caller has the input in memory all the time.
            terms.setdefault("keep_input", True)
        if forgetful and "strategy" not in terms and not any(name in terms for name in said):
            terms["price"] = 0
        return terms


def free_of_charge(terms: Mapping[str, Any]) -> bool:
    """Whether the terms say that erasing costs nothing."""
    return terms.get("price") == 0 or terms.get("strategy") == "online"


def refuse_reversible(name: str) -> UsageError:
    """UsageError P001: a run of unknown length erases states, but the terms do not allow it."""
    return wrong(
        f"a run of unknown length erases states, and `{name}` can be undone",
        "say price=0: erasing costs nothing",
    )
