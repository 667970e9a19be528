"""The tour, and every other page with code in it, run: see `docs.pages`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.pages import ROOT, run_page

from rvm.isa import FUNCTIONS, OPCODES
from rvm.isa.lower import linked_body
from rvm.isa.number_types import forget
from rvm.types import SCALARS

LEAST = {
    "../ARCHITECTURE.md": {"rasm": 1, "python": 4},
    "tour.md": {"rasm": 9, "console": 14, "python": 3},
    "adding-an-opcode.md": {"python": 7},
    "janus.md": {"janus": 1, "console": 1, "python": 2},
    "pure.md": {"pure": 2, "console": 10, "python": 4},
    "python.md": {"python": 10, "console": 1, "debug": 1},
    "machine.md": {"python": 4},
    "api.md": {"python": 3},
    "cookbook.md": {"python": 20},
    "coming-from-python.md": {"rasm": 5, "python": 1, "console": 1},
    "engines.md": {"python": 3},
    "pebbling.md": {"python": 27},
    "debugging.md": {"rasm": 2, "console": 2, "debug": 10},
}
"""The pages that run, and how many blocks of each kind they have at least."""
SLOW = ("pebbling.md", "pure.md")
"""Pages that run for seconds."""


@pytest.fixture(autouse=True)
def clean_tables() -> Iterator[None]:
    """What a page adds to the tables is gone after it."""
    opcodes, functions, types = dict(OPCODES), dict(FUNCTIONS), set(SCALARS)
    yield
    for name in set(SCALARS) - types:
        forget(name)
    for table, before in ((OPCODES, opcodes), (FUNCTIONS, functions)):
        for name in set(table) - set(before):
            del table[name]  # type: ignore[attr-defined]
    linked_body.cache_clear()


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.wide) if p in SLOW else p for p in LEAST]
)
def test_pages_show_what_is_printed(page: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    counted = run_page(ROOT / "docs" / page, tmp_path)
    for kind, least in LEAST[page].items():
        assert counted[kind] >= least, kind
