"""Files of plans for graphs: what is read is what was written, or is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pebble.graphs import adder
from pebble.test_dag import graphs

import rvm.pebble
from rvm.faults import RvmError
from rvm.pebble import Dag, parse_bench, plan_dag


@given(graphs(12, sized=True), st.booleans(), st.data())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_plans_come_back(tmp_path: Path, dag: Dag, limited: bool, data: st.DataObject) -> None:
    n = len(dag)
    costs = data.draw(st.none() | st.lists(st.integers(1, 9), min_size=n, max_size=n))
    dag = replace(dag, costs=None if costs is None else tuple(costs))
    budget = {"max_moves": dag.floor()} if limited else {"pebbles": 99}
    plan = plan_dag(dag, **budget)  # type: ignore[arg-type]
    plan.save(tmp_path / "plan.npz")
    assert rvm.pebble.load(tmp_path / "plan.npz") == plan


def test_files_are_small(tmp_path: Path) -> None:
    plan = plan_dag(parse_bench(adder(64)), max_moves=10**6, strategy="eager")
    plan.save(tmp_path / "plan.npz")
    assert len(plan.schedule) == 575 and (tmp_path / "plan.npz").stat().st_size < 8_000


@pytest.fixture
def arrays(tmp_path: Path) -> dict[str, Any]:
    plan_dag(parse_bench(adder(2)), pebbles=8).save(tmp_path / "plan.npz")
    with np.load(tmp_path / "plan.npz") as file:
        return {name: file[name] for name in file.files}


def changed(**header: Any) -> Any:
    def change(arrays: dict[str, Any]) -> None:
        arrays["header"] = np.array(json.dumps({**json.loads(str(arrays["header"])), **header}))

    return change


def put(name: str, at: int, value: int) -> Any:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name][at] = value

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (changed(version=7), "P005"),
        (changed(kind="tree"), "P005"),
        (changed(bound=10**6), "P005"),
        (changed(bound="many"), "P005"),
        (changed(bound=0), "P005"),
        (changed(budget=3), "P003"),
        (changed(budget=float("nan")), "P005"),
        (changed(names=["a"]), "P008"),
        (changed(names=[1]), "P005"),
        (changed(notes=3), "P005"),
        (put("schedule", 0, 1), "P003"),
        (put("schedule", 0, 1 << 60), "P003"),
        (put("schedule", 0, -(1 << 60)), "P003"),
        (put("preds", 0, 9), "P008"),
        (put("preds", 0, -1), "P008"),
        (put("ends", 0, 99), "P005"),
        (put("outputs", 0, 99), "P008"),
        (lambda a: a.pop("outputs"), "P005"),
        (lambda a: a.update(schedule=a["schedule"].astype(float)), "P005"),
        (lambda a: a.update(schedule=a["schedule"][:-1]), "P004"),
        (lambda a: a.update(sizes=a["outputs"] * 0), "P008"),
        (lambda a: a.update(header=np.array("[]")), "P005"),
    ],
)
def test_what_is_damaged_is_refused(
    arrays: dict[str, Any], tmp_path: Path, change: Any, code: str
) -> None:
    change(arrays)
    np.savez(tmp_path / "other.npz", **arrays)
    with pytest.raises(RvmError) as error:
        rvm.pebble.load(tmp_path / "other.npz")
    assert error.value.code == code


@given(st.integers(0, 10**6), st.integers(0, 255))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_byte_that_is_wrong(tmp_path: Path, at: int, value: int) -> None:
    plan = plan_dag(parse_bench(adder(1)), pebbles=5)
    plan.save(tmp_path / "plan.npz")
    data = bytearray((tmp_path / "plan.npz").read_bytes())
    data[at % len(data)] = value
    (tmp_path / "other.npz").write_bytes(bytes(data))
    try:
        found = rvm.pebble.load(tmp_path / "other.npz")
    except RvmError as error:
        assert error.code.startswith("P0")
    else:
        assert found == plan
