"""The page on the use from Python names all there is, and nothing else."""

from __future__ import annotations

import re
import tomllib

from docs.pages import ROOT

import rvm
from rvm.derive.gradients import Pullback
from rvm.library.lane_map import LaneMap

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def first_cells(title: str) -> set[str]:
    """The names in backquotes in the first column of a section's tables."""
    cells = re.findall(r"^\| ([^|]*) \|", section(title), re.M)
    return {name for cell in cells for name in re.findall(r"`(\w+)(?:\(\w*\))?`", cell)}


def test_the_options_are_those_of_runs_with_their_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", section("Options"), re.M)
    assert [(n, eval(v)) for n, v in rows] == [
        (n, getattr(rvm.Options(), n)) for n in rvm.Options.__dataclass_fields__
    ]


def test_all_public_names_are_there() -> None:
    assert set(re.findall(r"`(\w+)`", section("All names"))) >= set(rvm.__all__)
    assert first_cells("All names") <= set(rvm.__all__)


def test_what_it_says_of_classes_is_there() -> None:
    text = section("Functions")
    for found, kind in (
        (re.findall(r"`f\.(\w+)", text), rvm.FunctionHandle),
        (re.findall(r"`f\.map\.(\w+)", text), LaneMap),
        (re.findall(r"`lib\.(\w+)", text), rvm.Library),
        (re.findall(r"`p\.(\w+)", text), Pullback),
        (first_cells("Machines") - {"m"}, rvm.Machine),
    ):
        assert found and {name for name in found if not hasattr(kind, name)} == set()


def test_the_extras_are_those_of_the_package() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert first_cells("Extras") == set(extras)
