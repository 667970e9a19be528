"""The page on the speed of the front ends, generated from the data of `rvm bench fronts`.

`rvm bench fronts --json > docs/fronts.json`, then
`python -m rvm_bench.fronts_page docs/fronts.json > docs/fronts.md`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rvm.codes.words import with_article
from rvm_bench.contest import FORWARD
from rvm_bench.engines import NATIVE
from rvm_bench.fronts import ALONE, HERE, PURE, STAGE
from rvm_bench.page import measured
from rvm_bench.report import seconds, times

_Data = Mapping[str, Any]
_MOST = 1.3
"""The largest accepted ratio of a pure function's time to the hand-written one's."""
_HEAD = """\
# Speed of the front ends

This page is generated from the data of a run of `rvm bench fronts`, [fronts.json](fronts.json), by
`python -m rvm_bench.fronts_page docs/fronts.json > docs/fronts.md`. A test checks that the page
matches the data. The method is that of [speed](performance.md#how-it-was-measured): contestants
take turns, times are medians, and rvm runs machine code. Ratios are medians over the turns. The
machine was shared with other work, so times of different rows should not be compared.
"""
_PURE = f"""\
## Pure functions

NumPy functions under `rvm.pure`, compared with the same function written by hand in the assembly
language, with NumPy, and with JAX, which may use all processors. The aim is at most ×{_MOST} of the
hand-written function's time, and for gradients at most JAX's time.
"""
_WHY = f"""\
Notes on missed aims and other differences:

- **dot, prod, total** become the same code as the hand-written functions, so their ratios only show
  how much two runs differ.
- **stencil**: neighbours are looked up by computed indices, and each case of a point's position has
  its own loop. A state is stored by an exchange, which also works for infinities. What was there
  before is compared with zero in front of each loop, all at once; when the exchange is undone,
  there is nothing to compute or to check. The hand-written function uses an addition, which is
  undone by a subtraction. In the stage `gradient`, the adjoint
  of an element that is looked up is a whole array, so reverse mode is the better choice there.
- **Gradients compared with JAX**: `exp` and `tanh` have specified bits, the same on every machine,
  and sums are added in a specified order. No value is requested with these gradients, so the
  functions only run back, and compute their values there. The states of loops are
  computed and undone; those of the stencil are too large for their memory to be kept. JAX computes
  on all processors.
- **gmm**: what the components of the mixture have in common for all points, such as the
  exponentials of the scales, is computed once, as in JAX. The way back first computes the values of
  each point, and then their adjoints.
- **Matrix products** have a specified order of additions; JAX and NumPy call BLAS.
- **mlp-{ALONE}** is the same task in a process of its own, in which NumPy and JAX too compute in
  one thread. In these rows the bits may be those of this machine.
- **bits of this machine** is `rvm.pure` with `bits="machine"`, which leaves large products of two
  matrices to BLAS. These rows have none, so their times differ as those of two runs do.
"""


def page(data: _Data) -> str:
    """The whole page, as Markdown."""
    return (
        "\n".join((_HEAD, f"{measured(data)}.\n", *_pures(data), _WHY, *_others(data))).rstrip()
        + "\n"
    )


def _pures(data: _Data) -> Iterator[str]:
    yield _PURE
    yield (
        "| | task | by hand | `rvm.pure` | ÷ by hand | stage `gradient` | bits of this machine "
        "| NumPy | JAX | |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---|"
    for contest in data["contests"]:
        found = {e["name"]: e for e in contest["entries"]}
        if PURE not in found:
            continue
        ours = [PURE, STAGE] + [f"{PURE}{HERE}"] * (ALONE in contest["workload"])
        best = min(found[n]["seconds"] for n in ours if n in found)
        missed = []
        if found[PURE]["ratio"][0] > _MOST:
            missed.append("slower than by hand")
        if contest["task"] != FORWARD and "JAX jit" in found and best > found["JAX jit"]["seconds"]:
            missed.append("slower than JAX")
        names = (NATIVE, PURE, "", STAGE, f"{PURE}{HERE}", "NumPy", "JAX jit")
        cells = [seconds(found[n]["seconds"]) if n in found else "" for n in names]
        cells[2] = times(found[PURE]["ratio"][0])
        name = contest["workload"].rpartition("-")[0]
        yield (
            f"| {name}, {found[PURE]['size']:,} | {contest['task']} | {' | '.join(cells)} | "
            f"{'**' + ', '.join(missed) + '**' if missed else 'met'} |"
        )
    yield ""


def _others(data: _Data) -> Iterator[str]:
    for contest in data["contests"]:
        if any(e["name"] == PURE for e in contest["entries"]):
            continue
        yield f"## {contest['workload'].capitalize()}\n"
        yield f"{contest['doc']}; for {with_article(contest['unit'])}\n"
        yield f"| | time | ÷ {contest['base']} |\n|---|---:|---:|"
        for e in contest["entries"]:
            yield f"| {e['name']} | {seconds(e['unit_ns'] / 1e9)} | {times(e['ratio'][0])} |"
        yield ""


if __name__ == "__main__":
    sys.stdout.buffer.write(page(json.loads(Path(sys.argv[1]).read_bytes())).encode())
