"""The page on other frameworks says what is true."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.pages import ROOT, run_page


def test_the_page_on_other_frameworks_runs(tmp_path: Path) -> None:
    for library in ("scipy", "torch", "jax"):
        pytest.importorskip(library)
    import jax

    (tmp_path / "examples").symlink_to(ROOT / "examples")
    before = jax.config.jax_enable_x64
    try:
        counted = run_page(ROOT / "docs" / "interop.md", tmp_path)
    finally:
        jax.config.update("jax_enable_x64", before)
    assert counted["python"] == 6
