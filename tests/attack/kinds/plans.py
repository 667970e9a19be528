"""Damaged files of plans: refused, or a plan that can be shown, saved and played."""

from __future__ import annotations

import io
import json
import random
import tempfile
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from attack.cases import Broken, InputKind
from attack.mutations import bent, flipped
from attack.reduction import BYTES
from rvm.faults import RvmError
from rvm.pebble import Dag, DagPlan, load, plan, plan_dag

_ACTIONS = 3_000
"""A schedule of no more is played to its end; of a longer one some are made."""


@cache
def bases() -> tuple[bytes, ...]:
    """Files of sound plans of chains and of a graph."""
    chains: list[dict[str, Any]] = [
        {"n": 20, "pebbles": 6},
        {"n": 1, "pebbles": 2},
        {"n": 30, "pebbles": 5, "goal": "gradient", "strategy": "revolve"},
        {"n": 16, "pebbles": 5, "goal": "gradient", "strategy": "reversible"},
        {"n": 12, "pebbles": 4, "goal": "gradient", "disk": 3.0},
        {"n": 10, "memory": 60, "sizes": [8] * 11, "costs": [1.0, 2.0] * 5},
        {"n": 14, "pebbles": 6, "reversible_steps": [2, 3, 7]},
        {"n": 12, "pebbles": 5, "state_bytes": 100, "step_energy": 1e-18},
    ]
    made: list[Any] = []
    for terms in chains:
        try:
            made.append(plan(**terms))
        except RvmError:  # a strategy that does not take these terms
            continue
    preds = ((), (0,), (0,), (1, 2), (), (3, 4))
    made.append(plan_dag(Dag(preds, (5,)), pebbles=6))
    made.append(plan_dag(Dag(preds, (3, 5), (), (2, 1, 1, 3, 1, 2)), pebbles=10))
    return tuple(_saved(p) for p in made)


def _saved(found: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.npz"
        found.save(path)
        return path.read_bytes()


def _make(rng: random.Random) -> bytes:
    """A file near a sound one; most are sound archives, with other numbers in them."""
    data = rng.choice(bases())
    if rng.random() < 0.15:
        return flipped(rng, data)
    with np.load(io.BytesIO(data)) as file:
        arrays = {k: file[k] for k in file.files}
    for _ in range(rng.choice((1, 1, 2, 3))):
        _damage(rng, arrays)
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    return out.getvalue()


def _damage(rng: random.Random, arrays: dict[str, Any]) -> None:
    name = rng.choice(list(arrays))
    array = arrays[name]
    roll = rng.random()
    if name == "header" and roll < 0.9:
        with suppress(ValueError):  # what was cut before is not JSON any more
            arrays[name] = np.array(json.dumps(bent(rng, json.loads(str(array)))))
    elif roll < 0.04:
        del arrays[name]
    elif roll < 0.08:
        arrays[rng.choice(list(arrays))] = array
    elif roll < 0.14:
        kinds = (np.float64, np.int32, np.uint64, np.bool_, "U3", "S2", np.complex128)
        arrays[name] = array.astype(rng.choice(kinds)) if array.dtype.kind != "U" else array
    elif roll < 0.2:
        arrays[name] = array.reshape(-1)[: rng.randrange(array.size + 1)]
    elif array.dtype.kind in "if" and array.size:
        array = array.copy()
        k = rng.randrange(array.size)
        old = array.flat[k].item()
        edges = (0, 1, -1, old + 1, old - 1, 2**62, -(2**63), 2**31, old * 2)
        with np.errstate(all="ignore"):
            array.flat[k] = np.array(float(rng.choice(edges))).astype(array.dtype)
        arrays[name] = array


def _attack(data: bytes, folder: Path) -> bool:
    """Read a plan, show it, write it and read it again, and play what is not too long."""
    path = folder / "plan.npz"
    path.write_bytes(data)
    found = load(path)
    text = found.describe()
    found.save(path)
    if load(path).describe() != text:
        raise Broken("a plan that was saved and read again is another one")
    if isinstance(found, DagPlan):
        found.check()
        return True
    list(islice(found.actions(), _ACTIONS))
    if found.cost.actions <= _ACTIONS:
        found.check()
    return True


KIND = InputKind("plans", "damaged files of plans", ".npz", _make, _attack, (BYTES,), share=0.6)
