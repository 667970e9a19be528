"""The file of a plan for a graph: a NumPy `.npz` archive with the graph and its schedule.

| array | holds |
|---|---|
| header | JSON text: version, "graph", strategy, budget, bound, optimal, notes, names |
| preds, ends | int64: predecessors of all nodes in a row, and where those of each node end |
| outputs, sizes, costs | int64: the outputs; sizes and costs, by node, if there are any |
| schedule | int64: v puts a pebble on node v, ~v takes it off |

What is read makes a graph or is refused, and the schedule is played by the rules.  Only what the
file says of the bound is believed, as far as the cost does not prove it wrong.
"""

from __future__ import annotations

import json
from itertools import pairwise
from math import inf
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.faults import ScheduleError
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.game import check_dag
from rvm.pebble.graphs.plan import DagPlan
from rvm.writing import writing

VERSION = 1
KIND = "graph"


def save_dag(plan: DagPlan, path: str | PathLike[str]) -> None:
    """Write a plan to a file."""
    dag = plan.dag
    header = {
        "version": VERSION,
        "kind": KIND,
        "strategy": plan.strategy,
        "budget": None if plan.budget == inf else plan.budget,
        "bound": plan.bound,
        "optimal": plan.optimal,
        "notes": plan.notes,
        "names": dag.names,
    }
    arrays = {
        "header": np.array(json.dumps(header)),
        "preds": np.array([u for preds in dag.preds for u in preds], np.int64),
        "ends": np.cumsum([len(preds) for preds in dag.preds], dtype=np.int64),
        "outputs": np.array(dag.outputs, np.int64),
        "schedule": np.array(plan.schedule, np.int64),
    }
    for field, values in (("sizes", dag.sizes), ("costs", dag.costs)):
        if values is not None:
            arrays[field] = np.array(values, np.int64)
    with writing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def unpacked(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> DagPlan:
    """The plan in the arrays of a file.

    ScheduleError P003, P004: its schedule breaks the rules; P005: it is damaged otherwise.
    UsageError P008: its graph is none.  KeyError, TypeError, ValueError: it is damaged.
    """
    if header["version"] != VERSION:
        raise _unsound(f"its version is {header['version']}, not {VERSION}")
    for name in ("preds", "ends", "outputs", "schedule", "sizes", "costs"):
        values = arrays.get(name)
        if values is not None and not (values.ndim == 1 and values.dtype == np.int64):
            raise _unsound(f"`{name}` is no list of whole numbers")
    preds, ends = arrays["preds"].tolist(), [0, *arrays["ends"].tolist()]
    if ends[-1] != len(preds) or any(a > b for a, b in pairwise(ends)):
        raise _unsound("its nodes and predecessors do not fit together")
    names = header["names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _unsound("its names are no texts")
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
    return ScheduleError("P005", f"the file is no plan: {why}")
