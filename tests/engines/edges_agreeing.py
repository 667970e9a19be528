"""A program on every engine, there and back and crosswise, against the reference engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from engines.edges_random import Edges

import rvm
from rvm.engines import LAW, engine, executing, having
from rvm.numbers import system
from rvm.program import Program
from rvm.run.lanes import run_lanes
from rvm.run.machine import Machine
from rvm.state import Options
from rvm.types import Array, elem_of

ENGINES = (LAW, "auto", *(n for n in executing() if n != LAW))
ALL_PAIRS = tuple(product(ENGINES, ENGINES))
RING = tuple(zip(ENGINES, (*ENGINES[1:], ENGINES[0]), strict=True))
"""Pairs in which each engine goes there once, and once back."""
LANES = 3


def registers(program: Program, inputs: dict[str, Any]) -> list[Any]:
    """Copies of inputs, which are raw already, in the order of the parameters."""
    function = program.function("main")
    given = [inputs[r.name] for r in function.registers[: function.n_args]]
    return [v.copy() if isinstance(v, np.ndarray) else v for v in given]


def held(m: Machine) -> list[Any]:
    """What the parameters hold, bit for bit, but for the payloads of NaN."""
    frame = m.state.frames[0]
    return [bits(v) for v in frame.regs[: frame.code.function.n_args]]


def bits(v: Any) -> Any:
    """A raw value or an array of them as what is equal if the bits are, NaNs being one."""
    if not isinstance(v, np.ndarray):
        return type(v), repr(v)
    parts = v.view(v.real.dtype) if v.dtype.kind == "c" else v
    if v.dtype.kind in "fc":
        parts = np.where(parts != parts, np.nan, parts).astype(parts.dtype)
    return v.dtype.str, v.shape, parts.tobytes()


def trip(m: Machine, there: str, back: str) -> list[Any]:
    """All that can be seen of a run on one engine and of the way back on another."""
    seen: list[Any] = []
    for name, go in ((there, m.run), (back, m.run_back)):
        m.use(engine(name))
        try:
            go()
            seen.append((held(m), m.time, m.erased_bits, m.state.account.live_bytes))
        except rvm.RvmError as error:
            seen.append((str(error), held(m), m.time, m.erased_bits))
    return seen


def everywhere(seed: int, pairs: Sequence[tuple[str, str]] = ALL_PAIRS) -> str:
    """Compare a program on pairs of engines (there, back), and in lanes; how it ended."""
    edges = Edges(seed)
    try:
        program = rvm.assemble(edges.text, f"edges{seed}").program
    except rvm.RvmError as error:
        return f"refused {error.code}"
    inputs = edges.inputs()
    ended = ""
    for strict in (False, True) if seed % 4 == 0 else (False,):
        options = Options(strict=strict, max_memory=1 << 24, tolerance=(0.0, 1e-8)[seed % 3 > 0])
        want: list[Any] | None = None
        for there, back in ((LAW, LAW), *pairs):
            m = Machine.entered(program, "main", registers(program, inputs), options, False)
            seen = trip(m, there, back)
            want = want or seen
            assert seen == want, (seed, there, back, strict, edges.text)
        assert want is not None
        ended = "error" if isinstance(want[0][0], str) else "end"
    in_all_lanes(edges, program, options)
    return ended


def in_all_lanes(edges: Edges, program: Program, options: Options) -> None:
    """Compare a program in lanes of different inputs with single runs, there and back."""
    function = program.function("main")
    singles = [registers(program, edges.inputs(other)) for other in range(LANES)]
    for undo in (False, True):
        starts = singles
        wanted: list[list[Any]] = []
        errors: dict[int, str] = {}
        machines = []
        for lane, regs in enumerate(starts):
            mine = [v.copy() if isinstance(v, np.ndarray) else v for v in regs]
            m = Machine.entered(program, "main", mine, replace(options, engine="reference"), undo)
            try:
                m.run()
            except rvm.RvmError as error:
                errors[lane] = str(error)
            machines.append(m)
            done = m.state.frames[0].regs[: function.n_args] if lane not in errors else regs
            wanted.append([bits(v) for v in done])
        varying = {
            k: np.array([regs[k] for regs in starts], system(elem_of(r.type)).dtype)
            for k, r in enumerate(function.registers[: function.n_args])
        }
        for name in having("lanes"):
            run = run_lanes(
                program, "main", starts[0], varying, replace(options, engine=name), undo
            )
            at = (edges.seed, name, undo, edges.text)
            assert {k: str(e) for k, e in run.errors.items()} == errors, at
            for lane, want in enumerate(wanted):
                for k, r in enumerate(function.registers[: function.n_args]):
                    v = run.regs[k]
                    by_lane = np.ndim(v) > (r.type.rank if isinstance(r.type, Array) else 0)
                    mine = v[lane] if by_lane else v
                    mine = mine if isinstance(r.type, Array) else np.asarray(mine).item()
                    assert bits(mine) == want[k], (at, lane, r.name, mine, want[k])
                if lane not in errors:
                    m = machines[lane]
                    assert (run.ticks[lane], run.erased[lane]) == (m.time, m.erased_bits), at
        if errors:
            return
        singles = [list(m.state.frames[0].regs[: function.n_args]) for m in machines]
