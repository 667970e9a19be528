"""The page on speed, made from a full run's data.

`rvm bench --full --json > docs/performance.json`, then
`python -m rvm_bench.page docs/performance.json > docs/performance.md`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rvm.codes.words import with_article
from rvm_bench.contest import TASKS
from rvm_bench.notes import NOTES
from rvm_bench.report import seconds, size, times
from rvm_bench.targets import reached

_Data = Mapping[str, Any]

_HEAD = """\
# Speed

This page is made from the data of a full run of `rvm bench`, [performance.json](performance.json),
by `python -m rvm_bench.page docs/performance.json > docs/performance.md`; a test keeps it as
the data is.
"""
_METHOD = """\
## How it was measured

All contestants of a task are timed in one run, in turns, and medians are shown: a slow minute hits
all alike. A time is that of the clock or of the processors, whichever is less, so that what else
the machine was doing does not count. Times on another machine are others; ratios hold better.
Before it is timed, each contestant's numbers are compared with ours, to 1e-8 of the largest.

What would take long is timed on a smaller size, which stands in brackets. Times are for a unit of
work: a step, a point, a call.

- **rvm native** is a call from Python of a function, `f(…)`, and for gradients `f.vjp(…)`, which
  leaves its inputs as they were. *In place* is the gradient program called on the caller's arrays,
  as C is. *Unchecked* is `checks=False` (in place). *Back* is `~f`, from results to inputs.
- **C** is written by hand for speed, with `restrict`, and compiled without fast-math: it does the
  arithmetic of the program, without checks. Its gradients are reversible as ours are: forwards,
  then back, undoing each step and passing on the adjoints, without a tape. *C, fused* may fuse
  products and sums (`-ffp-contract=fast`), so that its bits differ by processor.
- **JAX** is jitted, with loops by `fori_loop` and `scan`, and with √n checkpoints where one would;
  **PyTorch** is eager, and `torch.compile` for whole formulas; **Numba** compiles the loops of
  plain Python; **autograd** and **NumPy** work on whole arrays. Compiling is not in these times.
  All run in one thread, as we do, but for JAX, whose threads cannot be kept from it.
"""
_WHEN = """\
## Where a reversible gradient wins, and where it loses

It computes the past again, where a tape remembers it. So it wins where there are many steps of a
small state: in `loop`, `leapfrog` and `bodies` a tape is written to memory and read back, ours
stays in registers, however long the run. It loses where the forward work is dear and its results
are few: in `gmm`, `bundle` and `petersen` what was computed is uncomputed, which a tape does not
do. And where a library has a formula for a whole operation (a matrix product by BLAS, QR by
LAPACK), it beats any loop.
"""


def page(data: _Data) -> str:
    """The whole page, as Markdown."""
    parts = [
        _HEAD,
        f"{measured(data)}; C by `{data['machine']['compiler']}`.\n",
        *_targets(data),
        _METHOD,
        *_contests(data),
        *_extras(data),
        _WHEN,
    ]
    return "\n".join(parts).rstrip() + "\n"


def measured(data: _Data) -> str:
    """When, on what machine and with which versions."""
    m = data["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in m["versions"].items())
    return (
        f"Measured on {data['date']}: {m['cpu']}, {m['cores']} cores, {m['system']}; "
        f"Python {m['python']}, {versions}"
    )


def _targets(data: _Data) -> Iterator[str]:
    found = reached(data)
    yield "## Targets\n"
    yield "| | aim | reached | |\n|---|---:|---:|---|"
    for r in found:
        yield f"| {r.what} | {r.aim} | {r.found} | {'met' if r.met else '**missed**'} |"
    yield ""
    missed = [r for r in found if not r.met and r.key in NOTES]
    if missed:
        yield "What the machine code and profiles show where a target is missed:\n"
        for text in dict.fromkeys(NOTES[r.key] for r in missed):
            keys = ", ".join(r.what for r in missed if NOTES[r.key] == text)
            yield f"- **{keys}**: {text}"
        yield ""


def _contests(data: _Data) -> Iterator[str]:
    yield "## Workloads\n"
    yield (
        "Time for a unit of work, and how many times that of the contestant without a factor. The "
        "spread is half the distance between the quartiles, and shown where it is above 5 %.\n"
    )
    workloads: dict[str, list[_Data]] = {}
    for contest in data["contests"]:
        workloads.setdefault(contest["workload"], []).append(contest)
    for name, contests in workloads.items():
        yield from _workload(name, contests)


def _workload(name: str, contests: Sequence[_Data]) -> Iterator[str]:
    tasks = [t for t in TASKS if any(c["task"] == t for c in contests)]
    cells: dict[str, dict[str, str]] = {}
    largest = max(e["size"] for c in contests for e in c["entries"])
    for contest in contests:
        for entry in contest["entries"]:
            cells.setdefault(entry["name"], {})[contest["task"]] = _cell(entry, largest)
    first = contests[0]
    at = f", size {largest:,}" if largest > 1 else ""
    when = f"; measured on {first['date']}" if "date" in first else ""
    yield f"### {name}\n\n{first['doc']}; for {with_article(first['unit'])}{at}{when}\n"
    yield f"| | {' | '.join(tasks)} |\n|---|{'---:|' * len(tasks)}"
    for who, by_task in cells.items():
        yield f"| {who} | {' | '.join(by_task.get(t, '') for t in tasks)} |"
    yield ""


def _cell(entry: _Data, largest: int) -> str:
    middle, low, high = entry.get("ratio", (1.0, 1.0, 1.0))
    text = seconds(entry["unit_ns"] / 1e9)
    if (middle, low, high) != (1.0, 1.0, 1.0):
        text += f" {times(middle)}"
        if (high - low) / 2 > 0.05 * middle:
            text += f" ±{(high - low) / 2 / middle:.0%}"
    return text if entry["size"] == largest else f"{text} [{entry['size']:,}]"


def _extras(data: _Data) -> Iterator[str]:
    if found := data.get("growth"):
        yield "## From 10³ steps to 10⁸\n"
        yield "The gradient of `leapfrog`, each in a new process:\n"
        yield "| | steps | time | a step | memory grows by |\n|---|---:|---:|---:|---:|"
        for g in found:
            cells = (
                g["peer"],
                f"{g['size']:,}",
                seconds(g["seconds"]),
                seconds(g["step_ns"] / 1e9),
            )
            yield f"| {' | '.join(cells)} | {size(g['bytes'])} |"
        yield ""
    if found := data.get("memory"):
        yield "## Memory\n\nBy how much the peak of the process grows over that of ten steps:\n"
        yield "| gradient of `leapfrog` | steps | memory | a step |\n|---|---:|---:|---:|"
        for m in found:
            step = f"{m['bytes'] / m['size']:,.1f} bytes"
            yield f"| {m['peer']} | {m['size']:,} | {size(m['bytes'])} | {step} |"
        yield ""
    if first := data.get("first_call"):
        yield (
            "## First calls\n\nThe gradient of `leapfrog` in a new process. Loading is importing "
            "rvm and assembling the program; the first call is all that comes then: importing "
            "what it needs, LLVM among it, transforming, compiling and running. Where machine "
            "code is kept, nothing is transformed, and LLVM is not loaded.\n"
        )
        yield "| | loading | first call | second call |\n|---|---:|---:|---:|"
        for how, text in (("compiled", "compiled"), ("cached", "machine code from the cache")):
            times_of = (seconds(first[how][k]) for k in ("load", "first", "second"))
            yield f"| {text} | {' | '.join(times_of)} |"
        yield ""
    if found := data.get("lanes"):
        yield "## Lanes\n\n`f.map` of `leapfrog` (30 steps) over many starting points:\n"
        yield "| lanes | an instruction, a lane | gradient: a step, a lane |\n|---:|---:|---:|"
        for n in found:
            row = (
                f"{n['lanes']:,}",
                f"{n['forward_ns']:.2f} ns",
                f"{n['gradient_step_ns']:.0f} ns",
            )
            yield f"| {' | '.join(row)} |"
        yield ""


if __name__ == "__main__":
    sys.stdout.buffer.write(page(json.loads(Path(sys.argv[1]).read_bytes())).encode())
