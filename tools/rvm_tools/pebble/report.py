"""Plans side by side: rows of a table, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Any

from rvm.faults import RvmError
from rvm.pebble import DagPlan, Plan
from rvm_tools.tables import aligned


@dataclass(frozen=True, slots=True)
class Rival:
    """A strategy with its plan, or the reason for having none, and its time, if known."""

    label: str
    plan: Plan | DagPlan | None
    seconds: float | None
    error: RvmError | None = None
    own: bool = False
    """Whether this is the requested plan."""


# ---------------------------------------------------------------- numbers


def number(value: float) -> str:
    """A count with commas, or a number with six digits."""
    if not isfinite(value):
        return "any"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.6g}"


def seconds(value: float | None) -> str:
    """A time in a unit that suits it."""
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 0.995 else f"{1000 * value:.1f} ms"


def finite(value: Any) -> Any:
    """A value for JSON, which has no infinity: None represents it."""
    if isinstance(value, float):
        return (int(value) if value == int(value) else value) if isfinite(value) else None
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    return [finite(v) for v in value] if isinstance(value, (list, tuple)) else value


# ---------------------------------------------------------------- tables


def chain_table(rows: Sequence[Rival]) -> list[str]:
    """Plans of a chain, a line each; columns that no strategy has are left out."""
    plans = [row.plan for row in rows if isinstance(row.plan, Plan)]
    sized = any(p.cost.peak_bytes is not None for p in plans)
    own = next((row.plan for row in rows if row.own and isinstance(row.plan, Plan)), plans[0])
    price = own.units.price
    priced = price > 0 or own.cost.total != own.cost.moves
    energy = any(p.cost.energy is not None for p in plans)
    disk = any(p.cost.writes for p in plans)
    head = ["", "strategy", "moves", "times", "peak", "erased"]
    head += ["total"] * priced + ["disk"] * disk + ["bytes"] * sized + ["energy"] * energy
    head.append("planned in")
    lines = [head]
    for row in rows:
        mark = "▸" if row.own else ""
        if not isinstance(row.plan, Plan):
            why = _refusal(row.error)
            lines.append([mark, row.label, "-", why, *[""] * (len(head) - 4)])
            continue
        c, p = row.plan.cost, row.plan
        cells = [mark, row.label, number(c.moves), f"{c.moves / _own(p):.3g}", number(c.peak)]
        cells.append(number(c.erased))
        # Some strategies take no price; the total counts it for all.
        total = c.total + (price - p.units.price) * c.erased if c.erased else c.total
        cells += [number(total)] * priced + [number(c.disk_peak)] * disk
        cells += ["-" if c.peak_bytes is None else number(c.peak_bytes)] * sized
        cells += ["-" if c.energy is None else f"{c.energy:.4g} J"] * energy
        lines.append([*cells, seconds(row.seconds)])
    return _with_refusals(lines)


def dag_table(rows: Sequence[Rival]) -> list[str]:
    """Plans of a graph, a line each."""
    plans = [row.plan for row in rows if isinstance(row.plan, DagPlan)]
    sized = any(p.dag.sizes is not None for p in plans)
    priced = any(p.dag.costs is not None for p in plans)
    head = ["", "strategy", "moves", *["cost"] * priced, "times", "pebbles", *["held"] * sized]
    head += ["gap", "planned in"]
    lines = [head]
    for row in rows:
        mark = "▸" if row.own else ""
        if not isinstance(row.plan, DagPlan):
            lines.append([mark, row.label, "-", _refusal(row.error), *[""] * (len(head) - 4)])
            continue
        p, c = row.plan, row.plan.cost
        cells = [mark, row.label, number(c.moves), *[number(c.cost)] * priced]
        cells += [f"{c.cost / p.dag.floor():.3g}", number(c.nodes), *[number(c.peak)] * sized]
        lines.append([*cells, _gap(p), seconds(row.seconds)])
    return _with_refusals(lines)


def _gap(plan: DagPlan) -> str:
    """The possible distance of a plan from the least cost in its budget; nothing without one."""
    if plan.budget == inf:
        return "-"
    return "optimal" if plan.optimal else f"≤ {plan.gap:.1%}"


def _with_refusals(lines: list[list[str]]) -> list[str]:
    """The table; why a strategy has no plan goes over the columns that it has no numbers for."""
    why = [row[3] if row[2] == "-" else None for row in lines]
    rows = [
        [*row[:3], "" if text else row[3], *row[4:]] for row, text in zip(lines, why, strict=True)
    ]
    out = aligned(rows, left=2)
    return [f"{line}  {text}" if text else line for line, text in zip(out, why, strict=True)]


def _refusal(error: RvmError | None) -> str:
    if error is None:
        return ""
    least = error.values.get("least")
    if error.code == "P002" and isinstance(least, (int, float)):
        return f"needs {number(least)} {error.values.get('unit', 'pebbles')}"
    return error.message


def _own(plan: Plan) -> float:
    """The cost of the chain's own steps."""
    return plan.rules.weights.steps(0, plan.n)


# ---------------------------------------------------------------- JSON


def chain_json(plan: Plan) -> dict[str, Any]:
    """A plan of a chain as an object."""
    found: dict[str, Any] = finite(
        {
            "kind": "chain",
            "steps": plan.n,
            "goal": plan.goal,
            "strategy": plan.strategy,
            "budget": plan.rules.pebbles,
            "cost": asdict(plan.cost),
            "overhead": plan.cost.moves / _own(plan),
            "proof": plan.proof,
            "notes": list(plan.notes),
        }
    )
    return found


def dag_json(plan: DagPlan) -> dict[str, Any]:
    """A plan of a graph as an object."""
    found: dict[str, Any] = finite(
        {
            "kind": "graph",
            "nodes": len(plan.dag),
            "outputs": [plan.dag.name(v) for v in plan.dag.outputs],
            "strategy": plan.strategy,
            "budget": plan.budget,
            "cost": asdict(plan.cost),
            "overhead": plan.cost.cost / plan.dag.floor(),
            "bound": plan.bound,
            "optimal": plan.optimal,
            "gap": plan.gap,
            "notes": list(plan.notes),
        }
    )
    return found


def rows_json(rows: Sequence[Rival]) -> list[dict[str, Any]]:
    """A comparison as a list of objects; a strategy without a plan has a message."""
    return list(_rows_json(rows))


def _rows_json(rows: Sequence[Rival]) -> Iterator[dict[str, Any]]:
    for row in rows:
        head = {"label": row.label, "chosen": row.own, "seconds": row.seconds}
        if isinstance(row.plan, Plan):
            c = row.plan.cost
            found: dict[str, Any] = {
                "strategy": row.plan.strategy,
                "moves": c.moves,
                "overhead": c.moves / _own(row.plan),
                "peak": c.peak,
                "peak_bytes": c.peak_bytes,
                "erased": c.erased,
                "total": c.total,
                "energy": c.energy,
            }
        elif isinstance(row.plan, DagPlan):
            p = row.plan
            found = {"strategy": p.strategy, **asdict(p.cost), "gap": p.gap, "optimal": p.optimal}
        else:
            least = None if row.error is None else row.error.values.get("least", inf)
            found = {"error": _refusal(row.error), "least": least}
        yield finite({**head, **found})
