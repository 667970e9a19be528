"""Measurements that need a fresh process: peaks of memory, and the time of first calls.

`python -m rvm_bench.probes WHAT …` prints one JSON object; `memory` and `growth` start such
processes, `first_call` those of `rvm_bench.first`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from rvm_bench.contest import GRADIENT, WORK, Peer, Workload
from rvm_bench.engines import NATIVE, PREFIX

_KIB = 1024
_FIRST_CALLS = 7
"""Processes of each kind whose first calls are timed."""


def memory(peers: Sequence[tuple[str, Sequence[int]]]) -> list[dict[str, Any]]:
    """The growth of the peak of resident memory from a run of ten steps to one of each size.

    For the gradient of `leapfrog`, with a separate process for each contestant and size.  Machine
    code comes from the cache, so that compiling is not counted.
    """
    found = []
    with TemporaryDirectory(prefix="rvm-bench-") as folder:
        environment = {"RVM_CACHE_DIR": folder}
        for name, sizes in peers:
            for n in sizes:
                for _ in range(2 if name.startswith(PREFIX) else 1):
                    grown = _probe("memory", name, str(n), environment=environment)["bytes"]
                found.append({"peer": name, "size": n, "bytes": grown})
    return found


def first_call() -> dict[str, Any]:
    """Seconds until the first gradient of `leapfrog`, without and with kept machine code.

    Medians of processes that take turns.  Python's own files of compiled modules are there, as they
    are where rvm is installed.
    """
    with TemporaryDirectory(prefix="rvm-bench-") as folder:
        own = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/modules"}
        kept = own | {"RVM_CACHE_DIR": f"{folder}/code"}
        environments = {"compiled": own | {"RVM_CACHE_DIR": ""}, "cached": kept}
        found: dict[str, list[dict[str, float]]] = {name: [] for name in environments}
        _first(kept)
        for _ in range(_FIRST_CALLS):
            for name, environment in environments.items():
                found[name].append(_first(environment))
    return {
        name: {part: median(t[part] for t in times) for part in times[0]}
        for name, times in found.items()
    }


def _first(environment: Mapping[str, str]) -> dict[str, float]:
    return answer(["-m", "rvm_bench.first", str(WORK / "leapfrog.rasm")], environment)


def growth(peers: Sequence[tuple[str, Sequence[int]]]) -> list[dict[str, Any]]:
    """The time per step and the peak of memory of the gradient of `leapfrog`, by number of steps.

    Machine code comes from the cache, as in `memory`.
    """
    with TemporaryDirectory(prefix="rvm-bench-") as folder:
        environment = {"RVM_CACHE_DIR": folder}
        found = []
        for name, sizes in peers:
            for n in sizes:
                for _ in range(2 if name.startswith(PREFIX) else 1):
                    data = _probe("growth", str(n), name, environment=environment)
                found.append({"peer": name} | data)
        return found


def _probe(*arguments: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    return answer(["-m", "rvm_bench.probes", *arguments], environment or {})


def answer(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """The JSON object that another Python prints, with some variables in its environment."""
    done = subprocess.run(
        [sys.executable, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


# ---------------------------------------------------------------- within the process


def _peak() -> int:
    """The peak resident memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # What `getrusage` says there is at least the peak of the process that started this one.
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIB
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * _KIB


def _contestant(workload: Workload, name: str) -> Peer:
    from rvm.engines import executing
    from rvm_bench.engines import engine_peers

    peers = (*engine_peers(workload, executing()), *workload.peers)
    return next(p for p in peers if p.name == name and p.task == GRADIENT)


def _memory(name: str, size: str) -> dict[str, Any]:
    from rvm_bench.workloads import WORKLOADS

    workload = WORKLOADS["leapfrog"]
    peer = _contestant(workload, name)
    peer.make(workload.inputs(10))()[0]()
    before = _peak()
    fresh = peer.make(workload.inputs(int(size)))
    fresh()[0]()
    return {"bytes": _peak() - before}


def _growth(size: str, name: str = NATIVE) -> dict[str, Any]:
    from rvm_bench.measure import timed
    from rvm_bench.workloads import WORKLOADS

    workload = WORKLOADS["leapfrog"]
    fresh = _contestant(workload, name).make
    fresh(workload.inputs(10))()[0]()
    before = _peak()
    n = int(size)
    ready = fresh(workload.inputs(n))
    ready()[0]()
    seconds = min(timed(ready()[0]) for _ in range(3 if n < 10**7 else 1))
    return {"size": n, "seconds": seconds, "step_ns": 1e9 * seconds / n, "bytes": _peak() - before}


def _main(what: str, *arguments: str) -> None:
    probe = {"memory": _memory, "growth": _growth}[what]
    print(json.dumps(probe(*arguments)))  # type: ignore[operator]


if __name__ == "__main__":
    _main(*sys.argv[1:])
