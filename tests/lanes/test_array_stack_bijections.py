"""Bijections of the array on top of a stack in lanes, against calls one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from asm.test_array_stack_bijections import LINES, text_of
from lanes.singles import agree, in_lanes
from sizes import sample, thin

import rvm
from rvm.engines import ENGINES, having

LANES = 5
WAYS = [e for e in having("lanes") if not ENGINES[e].missing()]


def lanes_of(where: str, empty: int = -1) -> list[dict[str, Any]]:
    """Inputs for some lanes, with stacks of several heights; one of them may be empty."""
    rng = np.random.default_rng(3)
    out = []
    for lane in range(LANES):
        below = [rng.normal(size=3) for _ in range(0 if lane == empty else lane % 3 + 1)]
        s: Any = below
        if where == "a field":
            s = {"m": [float(k) for k in range(len(below))], "v": below}
        out.append({"s": s, "x": rng.normal(size=3), "k": lane % 2 + 1})
    return out


def copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: copied(v) for k, v in value.items()}
    if isinstance(value, list):
        return [copied(v) for v in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def by_name(lanes: list[dict[str, Any]]) -> dict[str, Any]:
    """The lanes' inputs as the arguments of one map."""
    first = lanes[0]
    if isinstance(first["s"], Mapping):
        s: Any = {k: [lane["s"][k] for lane in lanes] for k in first["s"]}
    else:
        s = [lane["s"] for lane in lanes]
    return {
        "s": s,
        "x": np.array([lane["x"] for lane in lanes]),
        "k": np.array([lane["k"] for lane in lanes]),
    }


def plain(value: Any) -> Any:
    """Numbers in lists, for comparison."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, np.ndarray)) else value


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["a top", "a field"])
@pytest.mark.parametrize("what", LINES)
@sample
@thin
def test_a_map_is_what_calls_are(what: str, where: str, way: str) -> None:
    f = rvm.assemble(text_of(what, where)).f
    lanes = lanes_of(where)
    one = f.with_options(engine="reference")
    want = [dict(one(**copied(lane))) for lane in lanes]
    made = f.with_options(engine=way)
    found = made.map(**copied(by_name(lanes)))
    assert plain(dict(found)) == plain(by_name(want))
    back = (~made).map(**copied(dict(found)))
    again = [dict((~one)(**copied(lane))) for lane in want]
    assert plain(dict(back)) == plain(by_name(again))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("where", ["a top", "a field"])
@pytest.mark.parametrize("what", LINES)
@sample
@thin
def test_lanes_with_an_empty_stack_fail_alone(what: str, where: str, undo: bool, way: str) -> None:
    program = rvm.assemble(text_of(what, where)).program
    lanes = lanes_of(where, empty=2)
    run = in_lanes(program, "f", copied(lanes), engine=way, undo=undo)
    agree(program, "f", lanes, run, undo=undo)
    assert 2 in run.errors
