"""The page on the speed of the front ends, made from the data of `rvm bench fronts`.

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
from rvm_bench.fronts import HERE, PURE, STAGE
from rvm_bench.page import measured
from rvm_bench.report import seconds, times

_Data = Mapping[str, Any]
_MOST = 1.3
"""How many times the time of what is written by hand a pure function may take."""
_HEAD = """\
# Speed of the front ends

This page is made from the data of a run of `rvm bench fronts`, [fronts.json](fronts.json), by
`python -m rvm_bench.fronts_page docs/fronts.json > docs/fronts.md`; a test keeps it as the data
is. How it is measured stands in [speed](performance.md#how-it-was-measured): in turns, medians,
on machine code; ratios are medians over turns. The machine is one that others use as well, so
that times of different rows are not to be compared.
"""
_PURE = f"""\
## Pure functions

NumPy functions under `rvm.pure`, beside the same function written by hand in the assembly
language, NumPy, and JAX, which may use all processors. The aim is ≤ ×{_MOST} of what is written
by hand, and for gradients JAX's time or less.
"""
_WHY = """\
What is missed, and what differs:

- **dot, prod, total** become what one writes by hand, so that their ratios only show how far two
  runs differ.
- **stencil**: neighbours are looked up by computed indices, and each answer to the question
  where a point stands is a loop of its own. A state goes to its place by an exchange, which
  holds infinities, where the addition by hand does not; for a thousand points that takes twice
  as long. In the stage `gradient` an element that is looked up has a whole array for its
  adjoint, so gradient mode is the way there.
- **Gradients beside JAX**: `exp` and `tanh` have stated bits here, computed the same on every
  machine, and sums are added in a stated order. A gradient runs the function forwards and its
  adjoint back, which makes again what the run forwards has made; JAX makes it once and keeps it.
  States of loops are made four times so, in memory that is new at every call, as are the
  adjoints: of a million numbers most of the time may be the operating system's, which gives it.
  JAX's arrays are new as well, but fewer.
- **prod** of a thousand: for each element the product of all others is no machine code. A gradient
  leaves it there and comes back, which takes a tenth of a millisecond or more.
- **Products of matrices** have a stated order of additions; JAX and NumPy call BLAS.
- **bits of this machine** is `rvm.pure` with `bits="machine"`, which takes libm and BLAS. Calls
  cost more then; of these rows only the stencil of a million points gains by it, forwards.
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
        best = min(found[n]["seconds"] for n in (PURE, STAGE) if n in found)
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
