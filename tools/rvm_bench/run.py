"""A whole benchmark: contests and further measurements, as one JSON object."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rvm_bench import lanes, probes
from rvm_bench.ccode import FLAGS
from rvm_bench.contest import TASKS, Peer, Workload, compiler
from rvm_bench.engines import NATIVE, PREFIX, engine_peers
from rvm_bench.measure import Contest, ContestEntry, Spread, measure
from rvm_bench.workloads import EVERY, FRONTS, WORKLOADS

_LIBRARIES = ("numpy", "llvmlite", "scipy", "jax", "torch", "numba", "autograd")
_BASES = ("C", NATIVE, "Python")
"""Contestants to which ratios refer: the first of these that took part."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """A plan of measurements: workloads, engines, turns, seconds that a run may take, extras."""

    workloads: tuple[str, ...]
    engines: tuple[str, ...]
    tasks: tuple[str, ...] = TASKS
    turns: int = 5
    limit: float = 0.02
    scale: float = 1.0
    peers: bool = True
    slow: bool = False
    extras: bool = False

    def contests(self) -> list[tuple[Workload, str, list[Peer]]]:
        """Each workload and task with its contestants."""
        found = []
        for name in self.workloads:
            workload = EVERY[name]
            own = [e for e in self.engines if workload.engines is None or e in workload.engines]
            everyone = [*engine_peers(workload, tuple(own))]
            everyone += workload.peers if self.peers else ()
            for task in (t for t in workload.tasks if t in self.tasks):
                some = [p for p in everyone if p.task == task and (self.slow or not p.slow)]
                if some:
                    found.append((workload, task, some))
        return found


def run(plan: BenchPlan, progress: Callable[[str], object] = lambda _: None) -> dict[str, Any]:
    """Measure a plan.  InternalError C007 if contestants differ in a number.

    Machine code goes to a folder of its own, so that runs do not depend on those before.
    """
    data: dict[str, Any] = {"date": date.today().isoformat(), "machine": machine()}
    kept = os.environ.get("RVM_CACHE_DIR")
    with TemporaryDirectory(prefix="rvm-bench-") as folder:
        os.environ["RVM_CACHE_DIR"] = folder
        try:
            data["contests"] = [
                _measured(plan, workload, task, peers, progress)
                for workload, task, peers in plan.contests()
            ]
        finally:
            if kept is None:
                del os.environ["RVM_CACHE_DIR"]
            else:
                os.environ["RVM_CACHE_DIR"] = kept
    if plan.extras:
        data.update(extras(progress))
    return data


def _measured(
    plan: BenchPlan,
    workload: Workload,
    task: str,
    peers: Sequence[Peer],
    progress: Callable[[str], object],
) -> dict[str, Any]:
    """The data of one contest, measured in a process of its own if the workload asks for one."""
    title = f"{workload.name} {task}"
    if not workload.environment.items() <= os.environ.items():
        progress(title)
        own = replace(plan, workloads=(workload.name,), tasks=(task,), extras=False)
        return probes.answer(["-m", "rvm_bench.run", json.dumps(asdict(own))], workload.environment)
    contest = measure(
        workload,
        task,
        peers,
        turns=plan.turns,
        limit=plan.limit,
        scale=plan.scale,
        after_each=lambda who: progress(f"{title}: {who}"),
    )
    return _contest_data(contest, workload.doc)


def extras(progress: Callable[[str], object]) -> dict[str, Any]:
    """Measurements outside contests: first calls, memory, growth and lanes."""
    progress("first calls")
    found: dict[str, Any] = {"first_call": probes.first_call()}
    progress("memory")
    names = (NATIVE, "C", "JAX jit", "JAX jit, checkpoints", "PyTorch")
    there = {p.name for p in WORKLOADS["leapfrog"].peers if p.there} | {NATIVE}
    sizes = {"PyTorch": (1_000, 10_000)}
    found["memory"] = probes.memory(
        [(n, sizes.get(n, (1_000, 1_000_000))) for n in names if n in there]
    )
    progress("growth")
    largest = {NATIVE: 8, "C": 8, "JAX jit": 7, "JAX jit, checkpoints": 7}
    found["growth"] = probes.growth(
        [(n, [10**k for k in range(3, top + 1)]) for n, top in largest.items() if n in there]
    )
    progress("lanes")
    found["lanes"] = lanes.lanes((100, 1_000, 10_000), 9)
    return found


def _contest_data(contest: Contest, doc: str) -> dict[str, Any]:
    """A contest as JSON data: times in seconds, ratios with their quartiles."""
    base = next((b for b in _BASES if contest.entry(b) is not None), contest.entries[0].name)
    return {
        "workload": contest.workload,
        "doc": doc,
        "task": contest.task,
        "unit": contest.unit,
        "base": base,
        "entries": [_entry(e, contest.ratio(e.name, base)) for e in contest.entries],
        "left_out": dict(contest.left_out),
    }


def _entry(e: ContestEntry, ratio: Spread | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": e.name,
        "size": e.size,
        "work": e.work,
        "seconds": _short(e.times.middle),
        "unit_ns": _short(e.unit_ns),
    }
    if ratio is not None:
        data["ratio"] = [_short(r) for r in (ratio.middle, ratio.low, ratio.high)]
    if e.name.startswith(PREFIX) and e.ticks:
        data["instructions_per_second"] = _short(e.ticks / e.times.middle)
    return data


def _short(value: float) -> float:
    """Four digits, which is more than is known."""
    return float(f"{value:.4g}")


def machine() -> dict[str, Any]:
    """The processor and the versions of all that takes part."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "compiler": _compiler(),
        "versions": {n: v for n in ("rvm", *_LIBRARIES) if (v := _version(n)) is not None},
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _compiler() -> str | None:
    path = compiler()
    if path is None:
        return None
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return f"{done.stdout.splitlines()[0]} {' '.join(FLAGS)}" if done.stdout else path


def default(names: Sequence[str], full: bool) -> tuple[str, ...]:
    """The workloads of a run: those named, `fronts` for those of the front ends, else the core.

    Of a full run without names all but those of the front ends.
    """
    named = [n for name in names for n in (FRONTS if name == "fronts" else (name,))]
    return tuple(named) or tuple(w.name for w in WORKLOADS.values() if full or w.core)


if __name__ == "__main__":
    (_found,) = run(BenchPlan(**json.loads(sys.argv[1])))["contests"]
    print(json.dumps(_found))
