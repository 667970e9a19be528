"""The page on the use from Python names all there is, and nothing else."""

from __future__ import annotations

import re
import tomllib

from docs.pages import ROOT
from packaging.requirements import Requirement

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


def test_the_extras_are_those_of_the_project() -> None:
    """What each extra installs, word for word; all of them, and no others."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    told = dict(re.findall(r"^\| `(\w+)` \| ([^|`]+) \|", PAGE.split("## Extras")[1], re.M))
    known = {
        name: ", ".join(re.split(r"[<>=;]", need)[0] for need in needs)
        for name, needs in project["optional-dependencies"].items()
    }
    assert told == known


def test_machine_code_is_installed_where_the_page_says_so() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (need,) = (Requirement(n) for n in project["dependencies"] if n.startswith("llvmlite"))
    rows = [line.split(" | ") for line in PAGE.split("## Platforms")[1].splitlines() if "|" in line]
    told = {
        (system.strip("| "), processor): (python, answer.strip(" |") == "yes")
        for system, processors, python, answer in rows[2:]
        for processor in processors.split(", ")
    }
    machines = {"x86-64": "x86_64", "AArch64": "aarch64", "any": "riscv64"}
    systems = {"Linux": "linux", "macOS": "darwin", "any other": "win32"}
    assert len(told) == 5
    for (system, processor), (python, able) in told.items():
        machine = machines[processor]
        if system == "macOS" and machine == "aarch64":
            machine = "arm64"
        for version in ("3.11", "3.14", "3.15"):
            around = {
                "sys_platform": systems[system],
                "platform_machine": machine,
                "python_version": version,
                "platform_python_implementation": "CPython",
            }
            assert need.marker is not None
            expected = able and version != "3.15"
            assert need.marker.evaluate(around) is expected, (system, processor, version)
        assert not able or python == "CPython 3.11 to 3.14"
    assert project["requires-python"] == ">=3.11"
