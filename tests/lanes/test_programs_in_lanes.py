"""Every example and every program of the tests, in lanes: each lane is what a single run is.

The first lane has the inputs of the `;! run` line, the others have their floats moved a little,
so that checks fail in some of them, and paths part.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lanes.singles import (
    agree,
    by_lane,
    in_lanes,
    is_by_lane,
    perturbed,
    raw,
    single,
)
from programs.both_ways import Case, cases, refusals
from sizes import some, thin, wide

import rvm
from rvm.run.binding import outside
from rvm.run.lanes import run_lanes

ROOT = Path(__file__).parents[2]
FILES = [
    f
    for folder in ("examples", "tests/programs")
    for f in sorted((ROOT / folder).glob("*.rasm"))
    if not refusals(f)
]
CASES = [c for f in FILES for c in cases(f)]
LANES = 3
QUIET: dict[str, Any] = {"callbacks": {"visit": lambda *_: None, "see": lambda *_: None}}
QUIET |= {"output": str}
VECTOR = QUIET | {"engine": "vector"}


def inputs(case: Case) -> list[dict[str, Any]]:
    rng = np.random.default_rng(7)
    moved = [{k: perturbed(v, rng) for k, v in case.inputs().items()} for _ in range(LANES - 1)]
    return [case.inputs(), *moved]


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES, ids=str)
def test_forwards_and_back(case: Case) -> None:
    program, name = case.program, case.function.name
    function, lanes = case.function, inputs(case)
    run = in_lanes(program.program, name, lanes, **QUIET)
    agree(program.program, name, lanes, run, **QUIET)
    ended = [k for k in range(LANES) if k not in run.errors]
    if not ended:
        return
    # Back from results, which are the same for the lanes and for the single runs.
    varying = {
        k: by_lane(function, k, [held[lane] for lane in ended])
        for k in range(function.n_args)
        if is_by_lane(function, k, held := run.regs[k])
    }
    back = run_lanes(program.program, name, run.regs, varying, rvm.Options(**VECTOR), undo=True)
    results = []
    for at in range(len(ended)):
        regs = [varying[k][at] if k in varying else v for k, v in enumerate(run.regs)]
        regs = [v.item() if isinstance(v, np.generic) else v for v in regs]
        results.append({p.name: outside(function, p.layout, regs) for p in function.params})
    agree(program.program, name, results, back, undo=True, **QUIET)


def moved(value: Any, rng: np.random.Generator) -> Any:
    """An input with its whole numbers moved, or exchanged among each other."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size:
        other = rng.permutation(value.ravel()).reshape(value.shape)
        return other if rng.random() < 0.5 else np.roll(value, 1)
    if type(value) is int and 0 <= value < 1000:
        return max(0, value + int(rng.integers(-2, 3)))
    return perturbed(value, rng)


@thin
@pytest.mark.parametrize("case", CASES, ids=str)
@some
def test_other_whole_numbers(case: Case) -> None:
    """Loops of other lengths, other elements, checks that fail: within a limit of steps."""
    program, name = case.program, case.function.name
    _, time, _, _ = single(program.program, name, case.inputs(), **QUIET)
    if time > 4000:
        pytest.skip("too long for the reference engine")
    rng = np.random.default_rng(8)
    lanes = [{k: moved(v, rng) for k, v in case.inputs().items()} for _ in range(3)]
    lanes = [lane for lane in [case.inputs(), *lanes] if accepted(case, lane)]
    options = QUIET | {"max_steps": 2 * time + 100}
    run = in_lanes(program.program, name, lanes, **options)
    agree(program.program, name, lanes, run, **options)


def accepted(case: Case, lane: dict[str, Any]) -> bool:
    """Whether the moved numbers are inputs at all."""
    try:
        raw(case.program.program, case.function.name, lane)
    except rvm.InputError:
        return False
    return True


@wide
def test_no_program_is_left_to_single_runs() -> None:
    """What ends well runs in lanes, but for what prints or calls back."""
    alone = set()
    for case in CASES:
        lanes = [case.inputs(), case.inputs()]
        run = in_lanes(case.program.program, case.function.name, lanes, **QUIET)
        if set(run.alone) - set(run.errors):
            alone.add(str(case))
    assert {name.split(":")[0] for name in alone} <= {"for_step"}, alone
