"""The page on energy runs, and the arithmetic in its text is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.pages import ROOT, run_page
from rvm_tools.trace.energy import BOLTZMANN, cmos, landauer
from rvm_tools.trace.run import TraceRequest, traced

PAGE = ROOT / "docs" / "energy.md"


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    counted = run_page(PAGE, tmp_path)
    assert counted["console"] >= 5 and counted["python"] >= 3 and counted["rasm"] == 2


def test_what_the_text_says_of_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """92 pJ for 17 instructions, 5e8 times the least for 64 bits; equal at a tau of 10 ms."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    source = text.split("```rasm gauss.rasm\n")[1].split("```")[0]
    Path("gauss.rasm").write_text(source, encoding="utf-8")
    values = ("y=0", "x=[1,0.5,0.25]")
    clean = traced(TraceRequest("gauss.rasm", values, "clean"))
    leaving = traced(TraceRequest("gauss.rasm", (*values, "s=[]"), "leaving"))
    assert clean.all.executed - leaving.all.executed == 17
    more = cmos().energy(clean.all) - cmos().working(leaving.all)
    assert more == pytest.approx(92e-12, rel=0.01)
    least = landauer().energy(leaving.all)
    assert more / least == pytest.approx(5e8, rel=0.01)
    assert 2 * 1e-11 * more / least == pytest.approx(10e-3, rel=0.01)
    assert pytest.approx(2.87e-21, rel=1e-3) == BOLTZMANN * 300 * 0.6931471805599453
