"""The page on speed, generated from the data of a full run.

`rvm bench --full --json > docs/performance.json`, then
`python -m rvm_bench.page docs/performance.json > docs/performance.md`.  The data may have
`remarks` on what has changed since the run.
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

This page is generated from the data of a full run of `rvm bench`,
[performance.json](performance.json), by
`python -m rvm_bench.page docs/performance.json > docs/performance.md`. A test checks that the page
matches the data.
"""
_METHOD = """\
## How it was measured

All contestants of a task are timed in one run, in turns, and medians are shown, so that a slow
minute affects all of them alike. A time is the wall-clock time or the processor time, whichever is
less, so that other work on the machine does not count. Other machines give other times; ratios
carry over better. Before the timing, the numbers of each contestant are compared with ours, to 1e-8
of the largest.

Contestants that would take too long are timed on a smaller size, given in brackets. Times are for a
unit of work: a step, a point, a call.

- **rvm native** is a call of a function from Python, `f(…)`, and for gradients `f.vjp(…)`, which
  does not change its inputs. *In place* is the gradient program, called on the caller's arrays, as
  the C code is. *Unchecked* is `checks=False` (in place). *Back* is `~f`, from results to inputs.
- **C** is hand-written for speed, with `restrict`, and compiled without fast-math: it does the
  arithmetic of the program, without checks. Its gradients are reversible like ours: they run
  forwards, then back, undo each step and propagate the adjoints, without a tape. *C, fused* may
  fuse products and sums (`-ffp-contract=fast`), so its bits differ between processors.
- **JAX** is jitted, with loops by `fori_loop` and `scan`, and with √n checkpoints where one would
  use them. **PyTorch** is eager; `torch.compile` is used for whole formulas. **Numba** compiles the
  loops of plain Python. **autograd** and **NumPy** work on whole arrays. These times do not include
  compiling. All run in one thread, as rvm does, except JAX, whose threads cannot be limited.
"""
_WHEN = """\
## Where a reversible gradient wins, and where it loses

A reversible gradient recomputes intermediate values; a tape stores them. So it wins where a small
state goes through many steps: in `loop`, `leapfrog` and `bodies` a tape is written to memory and
read back, while our state stays in registers, however long the run. It loses where the forward run
is expensive and has few results: in `gmm`, `bundle` and `petersen` intermediate values must be
uncomputed, which a tape avoids. And where a library has a routine for a whole operation (a matrix
product by BLAS, QR by LAPACK), it beats any loop.
"""


def page(data: _Data) -> str:
    """The whole page, as Markdown."""
    parts = [
        _HEAD,
        f"{measured(data)}; C by `{data['machine']['compiler']}`.\n",
        *(f"{remark}\n" for remark in data.get("remarks", ())),
        *_targets(data),
        _METHOD,
        *_contests(data),
        *_extras(data),
        _WHEN,
    ]
    return "\n".join(parts).rstrip() + "\n"


def measured(data: _Data) -> str:
    """The date, the machine and the versions."""
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
        yield "Reasons for the missed targets, according to machine code and profiles:\n"
        for text in dict.fromkeys(NOTES[r.key] for r in missed):
            keys = ", ".join(r.what for r in missed if NOTES[r.key] == text)
            yield f"- **{keys}**: {text}"
        yield ""


def _contests(data: _Data) -> Iterator[str]:
    yield "## Workloads\n"
    yield (
        "Each cell gives the time for a unit of work, and its ratio to the time of the contestant "
        "shown without a ratio. The spread, half the distance between the quartiles, is shown "
        "where it is above 5 %.\n"
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
        yield "The gradient of `leapfrog`, each time in a new process:\n"
        yield "| | steps | time | per step | memory growth |\n|---|---:|---:|---:|---:|"
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
        yield "## Memory\n\nGrowth of the peak memory of the process, compared with ten steps:\n"
        yield "| gradient of `leapfrog` | steps | memory | per step |\n|---|---:|---:|---:|"
        for m in found:
            step = f"{m['bytes'] / m['size']:,.1f} bytes"
            yield f"| {m['peer']} | {m['size']:,} | {size(m['bytes'])} | {step} |"
        yield ""
    if first := data.get("first_call"):
        yield (
            "## First calls\n\nThe gradient of `leapfrog` in a new process. Loading imports rvm "
            "and assembles the program. The first call does the rest: it imports what it needs, "
            "including LLVM, transforms, compiles and runs. If machine code is in the cache, "
            "nothing is transformed, and LLVM is not loaded.\n"
        )
        yield "| | loading | first call | second call |\n|---|---:|---:|---:|"
        for how, text in (("compiled", "compiled"), ("cached", "machine code from the cache")):
            times_of = (seconds(first[how][k]) for k in ("load", "first", "second"))
            yield f"| {text} | {' | '.join(times_of)} |"
        yield ""
    if found := data.get("lanes"):
        yield "## Lanes\n\n`f.map` of `leapfrog` (30 steps) over many starting points:\n"
        yield "| lanes | per instruction and lane | gradient: per step and lane |\n|---:|---:|---:|"
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
