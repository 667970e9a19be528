"""Random sessions on random programs show the states that were, as recorded by stepping alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from rvm_tools.debug import Session
from sizes import part
from tools.debug.walker import KINDS, Case, walk

import rvm


@pytest.fixture(autouse=True)
def close_keyframes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs have many of them too."""
    monkeypatch.setattr("rvm_tools.debug.keyframes.FIRST", 64)
    monkeypatch.setattr("rvm_tools.debug.reruns.FINE", 30)
    monkeypatch.setattr("rvm_tools.debug.reruns.FINEST", 7)


def test_some_sessions(tmp_path: Path) -> None:
    for kind in KINDS:
        assert walk(kind, 1, 8, tmp_path)


@pytest.mark.parametrize("kind", ["names", "parts"])
def test_sessions_with_watches(kind: str, tmp_path: Path) -> None:
    """Watches stop at each change of their places, in both directions and over edits, under
    whatever name a place is changed: elements and parts are passed as scalars, slices to recursive
    calls, and all are exchanged."""
    made = sum(walk(kind, 5000 + k, 14, tmp_path, watches=2) for k in range(4))
    assert made >= 4 * 14


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_many_sessions_with_watches(kind: str, part: int, tmp_path: Path) -> None:
    seeds = range(6000 + 20 * part, 6020 + 20 * part)
    assert sum(walk(kind, seed, 25, tmp_path, watches=3) for seed in seeds) > 200


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_many_sessions(kind: str, part: int, tmp_path: Path) -> None:
    assert sum(walk(kind, 10 + 30 * part + k, 30, tmp_path) for k in range(30)) > 300


def test_edits_are_not_blamed_for_the_rounding_of_before(tmp_path: Path) -> None:
    """Numbers are set to others of their size: what a run then refuses is off by far more than
    rounding, with adjoints, undone routines and ancillas in between."""
    done = 0
    for seed in range(part(160)):
        rng = random.Random(seed)
        session = Case("adjoints", rng, tmp_path).session()
        last = session.goto(1 << 60)
        if last.reason != "end":
            continue
        session.goto(rng.randrange(last.time))
        live = [name for name in ("x[1]", "v[2]", "y", "e", "t") if _is_live(session, name)]
        if not live:
            continue
        session.set(rng.choice(live), rng.choice(["0.25", "-1.5", "1000.0", "3.0"]))
        error = session.goto(1 << 60).error
        done += 1
        if error is not None and error.code in ("R001", "R017"):
            held, expected = error.diagnostics[0].values.values()
            assert abs(held - expected) > 1e-6, (seed, error)
    assert done >= part(160) // 4


def _is_live(session: Session, name: str) -> bool:
    try:
        session.evaluate(name)
    except rvm.RvmError:
        return False
    return True
