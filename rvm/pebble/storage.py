"""The file of a plan: a NumPy `.npz` archive with the grammar of its schedule.

| array | holds |
|---|---|
| header | JSON text: version, strategy, goal, n, budget, proof, notes, units |
| rules | int64[r + 1]: where the items of each name begin; the last name is the root |
| items | int64[4, m]: name or -1, kind (or 1 if undone), start (or shift), stop |
| in_place, costs, sizes | the steps in place; costs and sizes, by node, if there are any |

The file of a plan for a graph contains the graph and its moves:

| array | holds |
|---|---|
| header | JSON text: version, "graph", strategy, budget, bound, optimal, notes, names |
| preds, ends | int64: predecessors of all nodes in a row, and where those of each node end |
| outputs, sizes, costs | int64: the outputs; sizes and costs, by node, if there are any |
| schedule | int64: v puts a pebble on node v, ~v takes it off |

The items of a name refer only to earlier names.  A schedule of tens of millions of actions takes
some tens of kilobytes.  Everything that is read is checked, and nothing in it is executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from math import inf
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.faults import ScheduleError
from rvm.host.archives import read_arrays
from rvm.pebble.actions import Kind
from rvm.pebble.chains.reversible import GOALS
from rvm.pebble.game import Rules
from rvm.pebble.grammar import Schedule
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.game import check_dag
from rvm.pebble.graphs.plan import GRAPH, DagPlan
from rvm.pebble.plans import VERSION, Plan, Units, cost_of
from rvm.pebble.tally import Weights

MOST_BYTES = 256 << 20
"""The largest total size in bytes of a plan's arrays."""
MOST = 1e300
"""The largest cost, size or unit that is read."""


def load(path: str | PathLike[str]) -> Plan | DagPlan:
    """Read a plan, of a chain or of a graph.  ScheduleError P005 for a file that is not a plan.

    The schedule of a graph is played as it is read: P003 or P004 if it breaks the rules.
    """
    try:
        arrays = read_arrays(path, MOST_BYTES)
        header = json.loads(str(arrays["header"]))
        if header["version"] != VERSION:
            raise _unsound(f"its version is {header['version']}, not {VERSION}")
        if header.get("kind") == GRAPH:
            return _graph_plan(header, arrays)
        n = _number(header["n"], whole=True, least=1, infinite=False)
        weights = Weights(*(_weights(arrays.get(field), n) for field in ("costs", "sizes")))
        rules = Rules(
            n,
            str(header["goal"]),
            _number(header["pebbles"]),
            _number(header["erasures"]),
            _number(header["disk"]),
            _steps(arrays["in_place"], n),
            weights,
        )
        if rules.goal not in GOALS:
            raise _unsound(f"it has the goal `{rules.goal}`")
        schedule = _grammar(arrays["rules"], arrays["items"], weights)
        units = _units(header["units"])
        cost = cost_of(schedule.tally(), units, weights.sizes is not None)
        notes = tuple(str(note) for note in header["notes"])
        strategy, proof = str(header["strategy"]), str(header["proof"])
    except (
        ValueError,
        LookupError,
        ArithmeticError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise _unsound(str(error)) from error
    _on_chain(arrays["rules"], arrays["items"], rules.n)
    return Plan(strategy, rules, schedule, cost, proof, units, notes)


def _number(value: Any, *, whole: bool = False, least: float = 0, infinite: bool = True) -> Any:
    """A number that JSON holds; ValueError for anything else, or out of its range."""
    kinds = (int,) if whole else (int, float)
    wrong = isinstance(value, bool) or not isinstance(value, kinds)
    if wrong or not least <= value <= (inf if infinite else MOST):
        raise ValueError(f"{value!r} is not a {'whole ' * whole}number of at least {least}")
    return value


def _units(given: Mapping[str, Any]) -> Units:
    for name, value in given.items():
        if value is not None or name not in ("state_bytes", "step_energy"):
            _number(value, whole=name == "state_bytes", infinite=False)
    return Units(**given)


def _weights(values: NDArray[Any] | None, n: int) -> tuple[float, ...] | None:
    if values is None:
        return None
    # Number 0 is that of no step.
    sound = values.dtype.kind in "iuf" and values.shape == (n + 1,)
    if not sound or not ((values[1:] > 0) & (values[1:] <= MOST)).all():
        raise ValueError("costs and sizes are positive numbers, one for each node")
    return tuple(values.tolist())


def _steps(values: NDArray[Any], n: int) -> frozenset[int]:
    sound = values.dtype == np.int64 and values.ndim == 1
    if not sound or ((values < 1) | (values > n)).any():
        raise ValueError(f"the steps in place are not numbers from 1 to {n}")
    return frozenset(values.tolist())


def _grammar(starts: NDArray[Any], items: NDArray[Any], weights: Weights) -> Schedule:
    count = len(starts) - 1
    whole = starts.dtype == items.dtype == np.int64 and starts.ndim == 1 and count > 0
    # Compared, as differences of what is in a damaged file may wrap.
    if not whole or starts[0] or (starts[1:] < starts[:-1]).any():
        raise _unsound("its rules do not lie one after the other")
    if items.shape != (4, int(starts[-1])):
        raise _unsound("its rules and items do not fit together")
    owner = np.repeat(np.arange(count), np.diff(starts))
    names, kinds, first, last = items
    actions = names == -1
    if (names < -1).any() or (names >= owner).any():
        raise _unsound("a name's items mention a later one")
    if (kinds < 0).any() or (kinds > np.where(actions, max(Kind), 1)).any():
        raise _unsound("there is an unknown kind of action")
    if (last < 0).any() or (first < 0).any():
        raise _unsound("a node is negative")
    return Schedule.listed(starts, items, weights)


def _on_chain(starts: NDArray[Any], items: NDArray[Any], n: int) -> None:
    """P005 if a schedule whose grammar is sound leaves its chain of n steps."""
    highest: list[int] = []
    begin, rows = starts.tolist(), items.T.tolist()
    for k in range(len(begin) - 1):
        mine = rows[begin[k] : begin[k + 1]]
        reached = [max(i, j) if name < 0 else i + highest[name] for name, _, i, j in mine]
        highest.append(max(reached, default=0))
    if highest[-1] > n:
        raise _unsound(f"it has a node {highest[-1]}, and the chain ends with {n}")


def _graph_plan(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> DagPlan:
    """The plan in the arrays of a file.

    ScheduleError P003, P004: its schedule breaks the rules; P005: it is damaged otherwise.
    UsageError P008: its graph is not one.  KeyError, TypeError, ValueError: it is damaged.
    """
    for name in ("preds", "ends", "outputs", "schedule", "sizes", "costs"):
        values = arrays.get(name)
        if values is not None and not (values.ndim == 1 and values.dtype == np.int64):
            raise _unsound(f"`{name}` is not a list of whole numbers")
    preds, ends = arrays["preds"].tolist(), [0, *arrays["ends"].tolist()]
    if ends[-1] != len(preds) or any(a > b for a, b in pairwise(ends)):
        raise _unsound("its nodes and predecessors do not fit together")
    names = header["names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _unsound("its names are not strings")
    dag = Dag(
        tuple(tuple(preds[a:b]) for a, b in pairwise(ends)),
        _numbers(arrays["outputs"]),
        tuple(names),
        _numbers(arrays["sizes"]) if "sizes" in arrays else None,
        _numbers(arrays["costs"]) if "costs" in arrays else None,
    )
    budget = inf if header["budget"] is None else float(header["budget"])
    if not budget >= 0:
        raise _unsound(f"its budget is {budget}")
    schedule = _numbers(arrays["schedule"])
    cost = check_dag(dag, schedule, budget)
    bound, optimal = int(header["bound"]), header["optimal"] is True
    reached = cost.cost if budget < inf else cost.peak
    if not 0 < bound <= reached:
        raise _unsound(f"its bound is {bound}, and its schedule reaches {reached}")
    notes = tuple(str(note) for note in header["notes"])
    return DagPlan(str(header["strategy"]), dag, schedule, cost, budget, bound, optimal, notes)


def _numbers(values: NDArray[Any]) -> tuple[int, ...]:
    return tuple(values.tolist())


def _unsound(why: str) -> ScheduleError:
    return ScheduleError("P005", f"the file is not a plan: {why}")
