"""The examples of runs within budgets: gradients, counts and links by other means."""

from __future__ import annotations

import importlib
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sizes import thin

from rvm.faults import BudgetError

EXAMPLES = Path(__file__).parents[2] / "examples"
HERE = EXAMPLES / "pebble"
SCRIPTS = sorted(p.stem for p in HERE.glob("*.py") if p.stem != "measuring")


def script(name: str) -> ModuleType:
    """A script as a module; scripts find each other as they do when they are run."""
    if str(HERE) not in sys.path:
        sys.path.append(str(HERE))
    return importlib.import_module(name)


def test_the_table_of_examples_names_every_script() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in SCRIPTS:
        assert f"[`{name}.py`](pebble/{name}.py)" in text


@thin
@pytest.mark.parametrize(
    ("name", "options"),
    (
        ("waves", ("--steps", "300", "--points", "60")),
        ("ring", ("--steps", "30")),
        ("hashing", ("--links", "500")),
        ("adding", ("--bits", "5")),
    ),
)
def test_scripts_run_as_one_would(name: str, options: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" and len(done.stdout.splitlines()) > 8


# ------------------------------------------------------------------ wave


def test_the_gradient_of_a_wave_is_that_of_complex_steps() -> None:
    waves = script("waves")
    s = waves.survey(60, 40)
    h = 1e-30

    def misfit(r: np.ndarray, start: np.ndarray) -> Any:
        """The leapfrog with the Laplacian as a matrix, for complex numbers, too."""
        n = len(r)
        inner = np.zeros((n, n))
        for k in range(1, n - 1):
            inner[k, k - 1 : k + 2] = 1, -2, 1
        held = np.diag((np.arange(n) > 0) & (np.arange(n) < n - 1)).astype(float)
        old, u = start
        total = 0
        for i in range(s.steps + 1):
            off = u[s.at] - s.record[i]
            total = total + off @ off / 2
            old, u = u, held @ (2 * u - old) + r * (inner @ u)
        return total

    by_r = [misfit(s.guess + 1j * h * e, s.start).imag / h for e in np.eye(40)]
    by_u = [misfit(s.guess, s.start + 1j * h * np.stack([0 * e, e])).imag / h for e in np.eye(40)]
    for budget in ({"pebbles": 3}, {"memory": 20 * s.start.nbytes}, {"pebbles": 2, "disk": 3}):
        g = waves.gradient(s, progress=False, **budget)
        assert g.constants["r"] == pytest.approx(np.array(by_r), rel=1e-10, abs=1e-14)
        assert g.state[1] == pytest.approx(np.array(by_u), rel=1e-10, abs=1e-14)
        assert g.value == pytest.approx(misfit(s.guess, s.start), rel=1e-12)
    assert max(waves.check(60, 120)) < 1e-6


def test_steps_downhill_find_the_string() -> None:
    waves = script("waves")
    s = waves.survey(150, 60)
    found, seen = waves.find(s, 25)
    assert seen[-1] < seen[0] / 5
    assert np.linalg.norm(found.guess - s.truth) < 0.8 * np.linalg.norm(s.guess - s.truth)


# ------------------------------------------------------------------ ring


def test_the_ring_has_the_numbers_of_its_source() -> None:
    ring = script("ring")
    found = ring.iteration(strategy="bennett", radix=4).reach(ring.start(), constants={"c": ring.C})
    assert found.state[50] == pytest.approx(0.04421357216, abs=5e-12)
    assert found.state.sum() == pytest.approx(1, abs=1e-14)
    by_start, by_c = ring.formula()
    for _, budget in ring.BUDGETS:
        g = ring.gradient(**budget)
        assert g.state == pytest.approx(by_start, rel=1e-12)
        assert g.constants["c"] == pytest.approx(by_c, rel=1e-12)


def test_bennetts_counts_are_those_of_the_papers() -> None:
    ring = script("ring")
    found = ring.iteration(256, strategy="bennett", radix=4).reach(
        ring.start(), constants={"c": ring.C}
    )
    # 7^4 calls with 4 (4 - 1) + 1 pebbles; NiLang's log counts the input, too.
    assert (found.played.moves, found.played.peak, found.played.erased) == (2401, 13, 0)


# ------------------------------------------------------------------ hashing


def test_links_are_given_out_backwards() -> None:
    hashing = script("hashing")
    chain = [hashing.SECRET]
    for _ in range(300):
        chain.append(sha256(chain[-1]).digest())
    walk = hashing.passwords(300, pebbles=6)
    assert list(walk) == list(zip(range(300, -1, -1), chain[::-1], strict=True))
    assert hashing.checked(hashing.passwords(300, pebbles=4)) == 300
    assert hashing.preimage(chain[124], 300, pebbles=5) == (123, chain[123])
    with pytest.raises(ValueError, match="no such link"):
        hashing.preimage(b"0" * 32, 30, pebbles=5)
    wrong = iter([(3, chain[3]), (2, chain[1])])
    with pytest.raises(ValueError, match="link 2"):
        hashing.checked(wrong)
    with pytest.raises(BudgetError):
        hashing.passwords(300, pebbles=0)


# ------------------------------------------------------------------ adder


def test_adders_add_under_every_budget() -> None:
    adding = script("adding")
    adder = adding.circuit(4)
    assert len(adder.dag) == 20
    a, b = [k % 16 for k in range(64)], [k // 4 for k in range(64)]
    seen = set()
    for plan in adding.plans(adder, None):
        program = adding.emit_circuit(plan, adder, of=adding.U64)
        assert adding.added(program, a, b, 4) == [x + y for x, y in zip(a, b, strict=True)]
        seen.add(plan.cost.nodes)
    assert max(seen) == 20 and min(seen) <= 10
