"""The table and the JSON object that `rvm bench` prints."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

from rvm_tools.bench.measure import Measured, Times


def table(found: Sequence[Measured], engines: Sequence[str]) -> str:
    """Million instructions a second of each engine both ways, and of plain Python's same work."""
    head = ["workload", "steps", "plain Python"]
    for engine in engines:
        head += [engine, "back", "time"]
    rows = [head]
    for m in found:
        row = [m.name, f"{m.steps:,}", _rate(m.steps, m.plain)]
        for engine in engines:
            row += [
                _rate(m.steps, m.forwards[engine]),
                _rate(m.steps, m.backwards[engine]),
                f"×{m.ratio(engine):.1f}",
            ]
        rows.append(row)
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w)
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(
        [
            "million instructions a second (median, ± half the quartiles' distance);",
            "plain Python: the same work, counted in the machine's instructions;",
            "time: how many times plain Python's time the engine takes",
            "",
            *lines,
        ]
    )


def _rate(steps: int, times: Times) -> str:
    return f"{steps / times.middle / 1e6:.2f} ±{100 * times.spread:.0f}%"


def as_json(found: Sequence[Measured], engines: Sequence[str]) -> dict[str, Any]:
    """All times in seconds, with the rates and ratios that follow from them."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "workloads": [
            {
                "name": m.name,
                "steps": m.steps,
                "plain": _times(m.steps, m.plain),
                "engines": {
                    engine: {
                        "forwards": _times(m.steps, m.forwards[engine]),
                        "backwards": _times(m.steps, m.backwards[engine]),
                        "ratio": m.ratio(engine),
                    }
                    for engine in engines
                },
            }
            for m in found
        ],
    }


def _times(steps: int, times: Times) -> dict[str, Any]:
    return {
        "seconds": list(times.seconds),
        "median": times.middle,
        "spread": times.spread,
        "instructions_per_second": steps / times.middle,
    }
