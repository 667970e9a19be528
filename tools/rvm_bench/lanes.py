"""The cost of an instruction per lane, by the number of lanes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from rvm.faults import InternalError
from rvm_bench.measure import timed
from rvm_bench.workloads import WORKLOADS

_STEPS = 30


def lanes(sizes: Sequence[int], turns: int) -> list[dict[str, Any]]:
    """Nanoseconds an instruction and lane of `f.map` on `leapfrog`, and of one call a lane."""
    workload = WORKLOADS["leapfrog"]
    main = workload.main()
    values = dict(workload.inputs(_STEPS))
    ticks = main.pullback(**values).ticks
    found = []
    for count in sizes:
        given = {**values, "v": np.linspace(0.9, 1.1, count)}
        result = main.map(**given)
        one = main(**{**values, "v": float(given["v"][-1])})
        if not np.allclose(result.x[-1], one.x, rtol=1e-12):
            raise InternalError("C007", "a lane differs from a single run")
        main.map.grad(loss="x", **given)
        forward, gradient = [], []
        for _ in range(turns):
            forward.append(timed(lambda g=given: main.map(**g)))  # type: ignore[misc]
            gradient.append(timed(lambda g=given: main.map.grad(loss="x", **g)))  # type: ignore[misc]
        work = ticks * count
        found.append(
            {
                "lanes": count,
                "instructions": ticks,
                "forward_ns": 1e9 * median(forward) / work,
                "gradient_step_ns": 1e9 * median(gradient) / (_STEPS * count),
            }
        )
    return found
