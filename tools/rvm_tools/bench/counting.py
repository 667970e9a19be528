"""What counting costs: a counted run on the python engine beside an ordinary one.

`python -m rvm_tools.bench.counting` prints for each workload the median times, and their ratio
with its spread over turns.
"""

from __future__ import annotations

import sys
from statistics import median, quantiles
from time import perf_counter

from rvm.machine import Machine
from rvm.state import Options
from rvm_tools.bench.workloads import WORKLOADS, Workload


def compare(workload: Workload, scale: float, turns: int) -> tuple[int, list[float], list[float]]:
    """Ticks, and the seconds of ordinary and of counted runs; the first of each warms up."""
    times: tuple[list[float], list[float]] = [], []
    steps = 0
    for _ in range(turns + 1):
        for counted in (False, True):
            inputs = workload.arrays(scale)
            machine = Machine.start(workload.program(), "main", inputs, Options(engine="python"))
            if counted:
                machine.count()
            began = perf_counter()
            machine.run()
            times[counted].append(perf_counter() - began)
            steps = machine.time
    return steps, times[0][1:], times[1][1:]


def main(scale: float = 5.0, turns: int = 9) -> None:
    """Print the table."""
    print("workload       steps  ordinary   counted  ratio")
    for name, workload in WORKLOADS.items():
        steps, plain, counted = compare(workload, scale, turns)
        ratios = [c / p for p, c in zip(plain, counted, strict=True)]
        low, _, high = quantiles(ratios, n=4)
        print(
            f"{name:<10}{steps:>10,} {median(plain):>8.3f}s {median(counted):>8.3f}s "
            f"{median(ratios):>6.2f} ({low:.2f} … {high:.2f})"
        )


if __name__ == "__main__":
    main(*(float(a) for a in sys.argv[1:2]))
