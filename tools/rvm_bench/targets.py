"""The performance targets of the machine, compared with a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rvm_bench.contest import FORWARD, GRADIENT
from rvm_bench.engines import IN_PLACE, NATIVE, UNCHECKED
from rvm_bench.report import seconds, size

_Data = Mapping[str, Any]
_HELD = ("loop", "leapfrog", "bodies", "matmul", "matvec", "sparse_dot", "gmm", "bundle")
"""The workloads that are held against C."""
_MIB = 1 << 20
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class _TargetResult:
    """A target, a share of it (1 is just met, more is missed), and the same in words."""

    key: str
    what: str
    aim: str
    found: str
    share: float

    @property
    def met(self) -> bool:
        """Whether it is met, to the digit that is shown."""
        return round(self.share, 2) <= 1


def reached(data: _Data) -> list[_TargetResult]:
    """All targets for which a run has data."""
    return [*_beside_c(data), *_checks(data), *_others(data), *_lanes(data)]


def _entry(data: _Data, workload: str, task: str, name: str) -> _Data | None:
    """The entry of a contestant; None if it did not take part."""
    for contest in data["contests"]:
        if (contest["workload"], contest["task"]) == (workload, task):
            return next((e for e in contest["entries"] if e["name"] == name), None)
    return None


def _ratio(data: _Data, workload: str, task: str, name: str, to: str) -> float | None:
    """The ratio of a contestant's time for a unit of work to that of `to`."""
    one, two = (_entry(data, workload, task, n) for n in (name, to))
    if one is None or two is None:
        return None
    return float(one["unit_ns"] / two["unit_ns"])


def _beside_c(data: _Data) -> Iterator[_TargetResult]:
    for task, name, aim in ((FORWARD, NATIVE, 1.1), (GRADIENT, IN_PLACE, 1.15)):
        for workload in _HELD:
            found = _ratio(data, workload, task, name, "C")
            if found is not None:
                what = (
                    f"{workload}, {'function' if task == FORWARD else 'gradient'} compared with C"
                )
                yield _times(f"{workload} {task}", what, aim, found)


def _checks(data: _Data) -> Iterator[_TargetResult]:
    for task, name in ((FORWARD, NATIVE), (GRADIENT, IN_PLACE)):
        found = {w: r for w in _HELD if (r := _ratio(data, w, task, name, UNCHECKED)) is not None}
        if found:
            worst = max(found, key=lambda w: found[w])
            what = f"checks, {'functions' if task == FORWARD else 'gradients'} (worst: {worst})"
            yield _times(f"checks {task}", what, 1.2, found[worst])


def _others(data: _Data) -> Iterator[_TargetResult]:
    steps = {(g["peer"], g["size"]): g["step_ns"] for g in data.get("growth", ())}
    if steps.get(("JAX jit", _MILLION)):
        jax = steps["JAX jit", _MILLION] / steps[NATIVE, _MILLION]
        what = "gradient of 10⁶ steps of leapfrog: JAX jit's time by ours"
        yield _TargetResult("jax", what, "≥ ×3", f"×{jax:.2f}", 3 / jax)
    # Shorter runs are over before they need code that goes on in the middle.
    long = {g["size"]: g["bytes"] for g in data.get("growth", ()) if g["peer"] == NATIVE}
    if _MILLION in long:
        most = max(long)
        what = f"memory of a gradient, from 1,000,000 to {most:,} steps"
        grown = max(0, long[most] - long[_MILLION])
        yield _TargetResult("memory", what, "does not grow", size(grown), grown / _MIB)
    call = _entry(data, "call", FORWARD, NATIVE)
    if call is not None:
        yield _time("call", "a call from Python", 1e-5, call["seconds"])
    if first := data.get("first_call"):
        what = "first call of the gradient of leapfrog"
        yield _time("compiled", f"{what}, compiled", 0.15, first["compiled"]["first"])
        yield _time("cached", f"{what}, from the cache", 0.01, first["cached"]["first"])
    ratios = [_ratio(data, "jacobian", FORWARD, NATIVE, to) for to in ("C", "C, fused")]
    if any(ratios):
        what = "jacobian, by gradients in a program compared with the fastest formulas in C"
        yield _times("jacobian", what, 2.0, max(filter(None, ratios)))
    vector = _ratio(data, "string", FORWARD, "rvm vector", "NumPy")
    if vector is not None:
        yield _times("vector", "string, engine `vector` compared with NumPy", 2.0, vector)


def _lanes(data: _Data) -> Iterator[_TargetResult]:
    for found in data.get("lanes", ()):
        aim = 15.0 if found["lanes"] < 1_000 else 3.0
        what = f"an instruction in each of {found['lanes']:,} lanes, for a lane"
        ns = found["forward_ns"]
        yield _TargetResult("lanes", what, f"≤ {aim:g} ns", f"{ns:.2f} ns", ns / aim)


def _times(key: str, what: str, aim: float, found: float) -> _TargetResult:
    return _TargetResult(key, what, f"≤ ×{aim:g}", f"×{found:.2f}", found / aim)


def _time(key: str, what: str, aim: float, found: float) -> _TargetResult:
    return _TargetResult(key, what, f"≤ {seconds(aim)}", seconds(found), found / aim)
