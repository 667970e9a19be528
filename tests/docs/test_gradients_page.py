"""The page on gradients runs, and what it says about costs is what is counted."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from docs.pages import ROOT, run_page
from rvm_tools.bench.gradients import costs, operations, table

from rvm.expr import Place
from rvm.isa import FUNCTIONS, apply
from rvm.transform.adjoint import contributions
from rvm.types import F64

PAGE = ROOT / "docs" / "gradients.md"
EXAMPLES = ROOT / "examples"
SLOW = ("leapfrog.rasm", "leapfrog_fixed.rasm")
"""Examples with so many operations that counting them takes long."""
FILES = sorted(p for p in EXAMPLES.glob("**/*.rasm") if p.parent.name in ("examples", "gradients"))


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    counted = run_page(PAGE, tmp_path)
    assert counted["console"] >= 6 and counted["python"] >= 8 and counted["rasm"] >= 5


def shown() -> list[list[str]]:
    """The rows of the page's table of costs."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(r"^function +steps.*?\n(.*?)^```$", text, re.S | re.M)
    assert found is not None
    return [line.split() for line in found[1].splitlines()]


@pytest.mark.parametrize("path", [p for p in FILES if p.name not in SLOW], ids=lambda p: p.stem)
def test_costs_are_those_of_the_page(path: Path) -> None:
    have = [line.split() for line in table(list(costs([path]))).splitlines()[1:]]
    assert [row for row in shown() if row[0] == path.stem] == have, (
        "`python -m rvm_tools.bench.gradients examples/*.rasm examples/gradients/*.rasm` prints "
        "the page's table"
    )


def test_every_ratio_in_strict_code_is_below_the_bound() -> None:
    ratios = [float(row[-1].lstrip("×")) for row in shown() if row[-1] != "-"]
    assert len(ratios) > 30 and max(ratios) < 15


def test_the_bound_is_that_of_the_dearest_function() -> None:
    places = [Place(k, (), F64) for k in range(3)]
    found: dict[str, tuple[int, int]] = {}
    for name, row in FUNCTIONS.items():
        if row.arity not in (1, 2):
            continue
        try:
            value = apply(name, *places[: row.arity])
        except Exception:  # no function of floats
            continue
        if value.type == F64:
            own = operations(value, [0.5, 0.25, 1.0])
            gains = [operations(g, [0.5, 0.25, 1.0]) for _, g in contributions(value, places[2])]
            found[name] = own, sum(gains) + len(gains)
    assert len(found) > 25
    update = {n: Fraction(2 * (own + 1) + gains, own + 1) for n, (own, gains) in found.items()}
    assert max(update.items(), key=lambda item: item[1]) == ("atan2", Fraction(17, 2))
    ancilla = max(Fraction(4 * own + 2 * gains, 2 * own) for own, gains in found.values() if own)
    assert ancilla == 15
    cheap = sum(ratio <= 5 for ratio in update.values())
    assert cheap > len(update) / 2
