"""The page on gradients runs, and what it says about costs is what is counted."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from docs.pages import ROOT, run_page
from rvm_bench.gradients import costs, counted, table
from sizes import some, thin, wide

import rvm
from rvm.expr import Place
from rvm.isa import FUNCTIONS, TypeFault, apply
from rvm.run.machine import Machine
from rvm.state import Options
from rvm.types import F64

PAGE = ROOT / "docs" / "gradients.md"
EXAMPLES = ROOT / "examples"
SLOW = ("leapfrog.rasm", "ring_diffusion.rasm", "wave.rasm")
"""Examples with so many operations that counting them takes long."""
FILES = sorted(p for p in EXAMPLES.glob("**/*.rasm") if p.parent.name in ("examples", "gradients"))


@wide
def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    counted = run_page(PAGE, tmp_path)
    assert counted["console"] >= 6 and counted["python"] >= 8 and counted["rasm"] >= 5


def shown() -> list[list[str]]:
    """The rows of the page's table of costs."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(r"^function +steps.*?\n(.*?)^```$", text, re.S | re.M)
    assert found is not None
    return [line.split() for line in found[1].splitlines()]


CASES = [pytest.param(p, marks=[pytest.mark.deep] if p.name in SLOW else []) for p in FILES]


@thin
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
@some
def test_costs_are_those_of_the_page(path: Path) -> None:
    have = [line.split() for line in table(list(costs([path]))).splitlines()[1:]]
    assert [row for row in shown() if row[0] == path.stem] == have, (
        "`python -m rvm_bench.gradients examples/*.rasm examples/gradients/*.rasm` prints "
        "the page's table"
    )


def test_the_ratios_are_what_the_page_says() -> None:
    rows = {" ".join(row[:-6]): [float(r.lstrip("×")) for r in row[-5::2]] for row in shown()}
    fused = {name: ratios[1] for name, ratios in rows.items()}
    assert len(fused) > 30 and max(fused.values()) < 7
    assert {name for name, ratio in fused.items() if ratio > 5} == {"fma", "nice flow"}
    assert max(ratios[2] for ratios in rows.values()) <= 5


def ratio(lines: str) -> Fraction:
    """Operations of the gradient over those of a function of numbers a and b."""
    program = rvm.assemble(f"func f(y: f64, a: f64, b: f64)\n{lines}\n")
    at = {"y": 0.0, "a": 0.5, "b": 0.25}
    both = program.f.gradient_program
    runs = (program, "f", at), (both, both.program.entry, at | {f"{k}_bar": 1.0 for k in at})
    own, gradient = (counted(Machine.start(*run, Options(engine="reference"))) for run in runs)
    return Fraction(gradient.operations, own.operations)


def functions() -> dict[str, str]:
    """Functions of one or two floats, by name, as formulas in `a` and `b`."""
    out: dict[str, str] = {}
    for name, row in FUNCTIONS.items():
        if row.arity not in (1, 2):
            continue
        try:
            value = apply(name, *(Place(k, (), F64) for k in range(row.arity)))
        except TypeFault:  # no function of floats
            continue
        if value.type == F64:
            arguments = "ab"[: row.arity]
            plain = f"{name}({', '.join(arguments)})"
            out[name] = plain if name.isidentifier() else f" {name} ".join(arguments)
    return out


@wide
def test_the_dearest_functions() -> None:
    found = functions()
    assert len(found) > 25
    updates = {n: ratio(f"    add y, {f}") for n, f in found.items()}
    order = sorted(updates.items(), key=lambda item: -item[1])
    assert order[:3] == [("versor", 10), ("**", 9), ("atan2", 7)]
    assert order[3:5] == [("erf", 6), ("erfc", 6)] and order[5] == ("acosh", Fraction(11, 2))
    assert order[6][1] == 5 and updates["*"] == 4
    free = {n for n, row in FUNCTIONS.items() if row.cost == "MOVES"}
    lines = "    alloc t: f64 = {0}\n    add y, t\n    free t = {0}"
    held = {n: ratio(lines.format(f)) for n, f in found.items() if n not in free}
    assert max(held, key=lambda name: held[name]) == "versor"
    assert held["**"] == Fraction(20, 3) and held["*"] == Fraction(11, 3)


@thin
@pytest.mark.parametrize("name", functions())
def test_long_expressions_cost_no_more_than_the_page_says(name: str) -> None:
    formula, bound = functions()[name], 7 if name == "*" else 18
    for length in (12, 24):
        nested = "a"
        for _ in range(length):
            nested = "(" + re.sub(r"\ba\b", nested, formula, count=1) + ")"
        assert ratio(f"    add y, {nested}") < bound
