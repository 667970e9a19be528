"""What an ordinary run takes of a test's cases, and what it leaves to longer runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import sizes
from sizes import wide

from rvm.engines import ENGINES
from rvm.types import SCALARS, Scalar

SHAPES = {
    "engines and programs": {"engine": ENGINES, "program": range(40)},
    "three of few": {"engine": ENGINES, "mode": ("tolerant", "strict"), "n": range(3)},
    "one of many": {"name": range(50)},
    "a single case": {"n": (1,)},
}


def cases(shape: dict[str, Any]) -> list[Any]:
    """A case for each combination of values."""
    every = [dict(zip(shape, values, strict=True)) for values in product(*shape.values())]
    return [SimpleNamespace(callspec=SimpleNamespace(params=params)) for params in every]


@pytest.mark.parametrize("name", SHAPES)
def test_a_sample_has_each_value_and_no_case_too_many(name: str) -> None:
    kept = sizes._each(cases(SHAPES[name]))
    shape = SHAPES[name]
    assert {v for case in kept for v in sizes._values(case)} == {
        (key, str(value)) for key in shape for value in shape[key]
    }
    assert len(kept) <= sum(map(len, shape.values()))


@pytest.mark.parametrize(
    ("n", "mark", "ordinary", "in_ci"),
    [
        (1, sizes.thin, 1, 0),
        (9, sizes.thin, 2, 2),
        (24, sizes.thin, 3, 3),
        (10, sizes.thin(16), 1, 1),
        (9, sizes.thin(2), 5, 4),
        (8, sizes.thin(2), 4, 4),
    ],
)
def test_a_thinned_test_has_a_share_of_its_cases_and_ci_another(
    n: int, mark: pytest.MarkDecorator, ordinary: int, in_ci: int
) -> None:
    items: list[Any] = [Mock(spec=pytest.Function, nodeid=f"test[{k}]") for k in range(n)]
    for k, item in enumerate(items):
        item.callspec = SimpleNamespace(params={"k": k})
        item.iter_markers = lambda: iter([mark.mark])
        item.get_closest_marker = {"thin": mark.mark, "deep": None, "sample": None}.get
    left = sizes.left_out(items)
    assert len(left["wide"]) == in_ci
    assert len(left["deep"]) == n - ordinary - in_ci


def test_of_every_test_some_cases_are_ordinary(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    left = sizes.left_out(items)
    assert not set(left["deep"]) & set(left["wide"])
    functions = {item.nodeid.partition("[")[0] for item in items}
    apart = {item for cases in left.values() for item in cases}
    assert functions == {item.nodeid.partition("[")[0] for item in items if item not in apart}


def test_an_ordinary_run_has_every_engine_and_every_type(request: pytest.FixtureRequest) -> None:
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    if len({item.path for item in items}) < 100:
        pytest.skip("only some files of tests are run")
    taken = [item.callspec.params for item in items if hasattr(item, "callspec")]
    named = (str, Scalar)
    names = {str(v) for params in taken for v in params.values() if isinstance(v, named)}
    assert {*ENGINES, *map(str, SCALARS.values())} <= names


@wide
@pytest.mark.parametrize("name", ["deep", "tests"])
def test_the_name_of_a_folder_leaves_no_test_out(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    for module in ("conftest.py", "sizes.py"):
        shutil.copy(Path(__file__).parent / module, folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    deep\n")
    (folder / "test_two.py").write_text(
        "import pytest\ndef test_one(): pass\n@pytest.mark.deep\ndef test_another(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert "1 passed, 1 deselected" in run.stdout, run.stdout
