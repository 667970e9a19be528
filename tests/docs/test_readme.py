"""The README says what is true: its outputs, its links, its picture."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from docs.pages import ROOT, run_page

pytestmark = pytest.mark.smoke

PAGES = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
LINK = re.compile(r"\]\(([^)#]+)(#[^)]*)?\)")


def test_the_readme_runs(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    counted = run_page(ROOT / "README.md", tmp_path)
    assert counted == {"rasm": 1, "sh": 3, "text": 1, "python": 2}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: Path(p).name)
def test_links_lead_somewhere(page: str | Path) -> None:
    path = ROOT / page
    text = CODE.sub("", path.read_text(encoding="utf-8"))
    for target, _ in LINK.findall(text):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_picture_is_that_of_a_run() -> None:
    script = ROOT / "docs" / "pictures" / "both_ways.py"
    spec = importlib.util.spec_from_file_location("both_ways_picture", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    times, orders = module.history()
    assert orders == orders[::-1] and times == times[::-1]
    assert sorted(orders[times.index(max(times))]) == orders[0] == list(range(module.CARDS))
    assert (script.parent / "both_ways.svg").read_text(encoding="utf-8") == module.picture()
