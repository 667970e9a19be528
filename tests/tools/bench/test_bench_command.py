"""`rvm bench`: what is chosen, the data that comes out, the tables, and the page made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rvm_bench import fronts, fronts_page
from rvm_bench.notes import NOTES
from rvm_bench.page import page
from rvm_bench.report import seconds, size, tables, times
from rvm_bench.run import BenchPlan, default
from rvm_bench.targets import reached
from rvm_bench.workloads import FRONTS, WORKLOADS
from sizes import thin, wide
from tools.running import GOLDEN, rvm_json

from rvm.engines import executing

DOCS = Path(__file__).parents[3] / "docs"


def entry(name: str, unit_ns: float, *, size: int = 1_000, ratio: Any = None, **more: Any) -> Any:
    data = {"name": name, "size": size, "work": size, "unit_ns": unit_ns, **more}
    data["seconds"] = unit_ns * size / 1e9
    return data | ({} if ratio is None else {"ratio": ratio})


DATA: dict[str, Any] = {
    "date": "2026-01-02",
    "machine": {
        "cpu": "A Processor",
        "cores": 2,
        "system": "Linux x86_64",
        "python": "3.11.7",
        "compiler": "cc 12 -O3",
        "versions": {"rvm": "0.1.0", "numpy": "2.0.0"},
    },
    "contests": [
        {
            "workload": "leapfrog",
            "doc": "a planet's orbit",
            "task": "forward",
            "unit": "step",
            "base": "C",
            "entries": [
                entry("rvm native", 16.5, ratio=[1.1, 1.0, 1.2], instructions_per_second=6.654e8),
                entry("rvm native, unchecked", 15.0, ratio=[1.0, 0.99, 1.01]),
                entry("rvm reference", 1.5e6, size=10, ratio=[1e5, 9e4, 1.1e5]),
                entry("C", 15.0, ratio=[1.0, 1.0, 1.0]),
            ],
            "left_out": {"Numba": "numba is not installed"},
        },
        {
            "workload": "leapfrog",
            "doc": "a planet's orbit",
            "task": "gradient",
            "unit": "step",
            "base": "C",
            "entries": [
                entry("rvm native", 40.0, ratio=[1.33, 1.3, 1.35]),
                entry("rvm native, in place", 36.0, ratio=[1.2, 1.2, 1.2]),
                entry("C", 30.0, ratio=[1.0, 1.0, 1.0]),
                entry("JAX jit", 160.0, ratio=[5.33, 5.0, 5.5]),
            ],
            "left_out": {},
        },
    ],
    "first_call": {
        "compiled": {"load": 0.2, "first": 0.12, "second": 0.0002},
        "cached": {"load": 0.2, "first": 0.0123, "second": 0.0002},
    },
    "memory": [
        {"peer": "rvm native", "size": 1_000_000, "bytes": 4096},
        {"peer": "JAX jit", "size": 1_000_000, "bytes": 56_000_000},
    ],
    "growth": [
        {"peer": "rvm native", "size": 1_000_000, "seconds": 5e-2, "step_ns": 50.0, "bytes": 0},
        {"peer": "rvm native", "size": 10**8, "seconds": 5.0, "step_ns": 50.0, "bytes": 4096},
        {
            "peer": "JAX jit",
            "size": 1_000_000,
            "seconds": 0.2,
            "step_ns": 200.0,
            "bytes": 56_000_000,
        },
    ],
    "lanes": [
        {"lanes": 100, "instructions": 369, "forward_ns": 12.0, "gradient_step_ns": 650.0},
        {"lanes": 1_000, "instructions": 369, "forward_ns": 3.3, "gradient_step_ns": 99.0},
    ],
}


@pytest.mark.deep
def test_json_of_a_run() -> None:
    found = rvm_json("bench", "loop", "fib", "--engine=python", "--repeat=2", "--scale=0")
    assert set(found) == {"date", "machine", "contests"}
    assert {"cpu", "cores", "python", "compiler", "versions"} <= set(found["machine"])
    assert [(c["workload"], c["task"]) for c in found["contests"]] == [
        ("loop", "forward"),
        ("loop", "back"),
        ("loop", "gradient"),
        ("fib", "forward"),
        ("fib", "back"),
    ]
    for contest in found["contests"]:
        assert contest["base"] in [e["name"] for e in contest["entries"]]
        for e in contest["entries"]:
            assert e["unit_ns"] == pytest.approx(1e9 * e["seconds"] / e["work"], rel=1e-3)
            middle, low, high = e["ratio"]
            assert 0 < low <= middle <= high
            assert (e["ratio"] == [1, 1, 1]) or e["name"] != contest["base"]


@wide
def test_tasks_and_peers_are_chosen() -> None:
    args = ("bench", "loop", "--task=gradient", "--no-peers", "--engine=python", "--scale=0")
    (contest,) = rvm_json(*args)["contests"]
    assert contest["task"] == "gradient"
    assert [e["name"] for e in contest["entries"]] == ["rvm python"]


@wide
def test_the_front_ends_have_workloads_of_their_own() -> None:
    names = default(("fronts", "loop"), full=False)
    assert set(names) == {*FRONTS, "loop"} and not set(FRONTS) & set(default((), full=True))
    plan = BenchPlan(tuple(FRONTS), executing(loops=False)[1:], peers=False)
    assert {p.name.split(",")[0] for *_, peers in plan.contests() for p in peers} == {"rvm native"}
    args = ("bench", "door", "compiling", "--repeat=1")
    found = {c["workload"]: {e["name"] for e in c["entries"]} for c in rvm_json(*args)["contests"]}
    assert {"rvm native", "rvm.reversible"} <= found["door"]
    kept = "rvm.reversible, kept"
    assert found["compiling"] == {"rvm.reversible", kept, "its text, assembled"}


@thin
@pytest.mark.parametrize("name", fronts.TRACED)
def test_what_is_traced_is_what_numpy_computes(name: str) -> None:
    inputs = dict(fronts.inputs(name)(9))
    given = {k: v for k, v in inputs.items() if k != "out"}
    want = fronts.plain(name)(**inputs)["out"]
    np.testing.assert_allclose(fronts.pure_function(name)(**given), want, rtol=1e-12)
    by_hand = fronts.FRONTS[f"{name}-1000"].main().with_options(engine="python")
    np.testing.assert_allclose(by_hand(**inputs)["out"], want, rtol=1e-12)


def test_the_page_of_the_front_ends_is_made_of_their_data() -> None:
    data = json.loads((DOCS / "fronts.json").read_text(encoding="utf-8"))
    assert fronts_page.page(data) == (DOCS / "fronts.md").read_text(encoding="utf-8")
    assert {c["workload"] for c in data["contests"]} == set(FRONTS)


def test_plans() -> None:
    assert set(default((), full=True)) == set(WORKLOADS)
    assert set(default((), full=False)) == {w.name for w in WORKLOADS.values() if w.core}
    assert default(("xtea",), full=False) == ("xtea",)
    plan = BenchPlan(("gmm",), ("native",))
    names = {task: [p.name for p in peers] for _, task, peers in plan.contests()}
    assert list(names) == ["forward", "back", "gradient"]
    assert "torch.compile" not in names["gradient"]
    slow = BenchPlan(("gmm",), ("native",), slow=True).contests()
    assert "torch.compile" in [p.name for p in slow[2][2]]


def test_tables() -> None:
    assert tables(DATA) + "\n" == (GOLDEN / "bench.txt").read_text(encoding="utf-8")


def test_targets_say_what_is_met() -> None:
    found = {(r.key, r.found): r.met for r in reached(DATA)}
    assert found == {
        ("leapfrog forward", "×1.10"): True,
        ("leapfrog gradient", "×1.20"): False,
        ("checks forward", "×1.10"): True,
        ("jax", "×4.00"): True,
        ("memory", "4.0 KiB"): True,
        ("compiled", "120 ms"): True,
        ("cached", "12.3 ms"): False,
        ("lanes", "12.00 ns"): True,
        ("lanes", "3.30 ns"): False,
    }


def test_a_page() -> None:
    text = page(DATA)
    assert text == (GOLDEN / "bench_page.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.5, "2.50 s"),
        (0.0123, "12.3 ms"),
        (4.56e-6, "4.56 µs"),
        (3e-10, "0.30 ns"),
        (0.9999, "1.00 s"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


def test_ratios_and_sizes() -> None:
    assert [times(r) for r in (1234.5, 12.34, 1.234, 0.0284)] == [
        "×1,234",
        "×12.3",
        "×1.23",
        "×0.028",
    ]
    assert [size(n) for n in (12, 2048, 3 << 20)] == ["12 B", "2.0 KiB", "3.0 MiB"]


def test_the_page_is_made_from_its_data() -> None:
    data = json.loads((DOCS / "performance.json").read_text(encoding="utf-8"))
    assert (DOCS / "performance.md").read_text(encoding="utf-8") == page(data), (
        "python -m rvm_bench.page docs/performance.json > docs/performance.md"
    )


def test_every_missed_target_has_a_note() -> None:
    data = json.loads((DOCS / "performance.json").read_text(encoding="utf-8"))
    assert {r.key for r in reached(data) if not r.met} <= set(NOTES)
