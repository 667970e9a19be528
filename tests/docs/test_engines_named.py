"""Pages that say which engines there are name all of them."""

from __future__ import annotations

import re

import pytest
from docs.pages import ROOT

from rvm.engines import ENGINES

LISTS = {
    "docs/machine.md": r"^## Engines\n.*?(?=^#)",
    "docs/cli.md": r"^\| `--engine NAME` \|.*?$",
    "docs/engines.md": r"^# Engines\n.*?(?=^#)",
    "ARCHITECTURE.md": r"^\| `engines/` \|.*?$",
    "CHANGELOG.md": r"^- \*\*Engines\.\*\*.*?(?=^- )",
}
"""Where a page lists the engines."""


@pytest.mark.parametrize("page", LISTS)
def test_a_page_names_every_engine(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(LISTS[page], text, re.M | re.S)
    assert found, f"{page} has no list of engines"
    assert set(ENGINES) <= {name.rstrip("/") for name in re.findall(r"`([\w/]+)`", found[0])}
