"""`rvm grad` as a process: progress on a terminal, and Ctrl-C in either direction."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sizes import wide
from tools.running import interrupted
from tools.test_process import on_terminal

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and terminals of POSIX")

KICKS = """func kicks(q: f64, p: f64, n: i64)
    extern both
        print "under way"
    end
    for i = 1 to n
        sub p, 0.001 * sin(q)
        add q, 0.001 * p
    end
    extern both
        print "under way"
    end
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kicks.rasm").write_text(KICKS)
    return tmp_path


@pytest.mark.parametrize("way", [(), ("--back",)])
def test_ctrl_c_stops_between_two_instructions(folder: Path, way: tuple[str, ...]) -> None:
    words = ["q=1", "p=0", "n=1_000_000_000", "--loss", "q", "--engine", "reference", *way]
    code, out, err = interrupted("grad", "kicks.rasm", *words, cwd=folder)
    assert (code, out) == (130, "")
    assert "error[R016]: interrupted" in err


@wide
def test_both_ways_show_how_far_they_are(folder: Path) -> None:
    words = ["q=1", "p=0", "n=200_000", "--loss", "q", "--engine", "reference"]
    code, out = on_terminal(["grad", "kicks.rasm", *words], folder)
    assert code == 0
    assert b"back with the adjoints" in out and b" M/s" in out
    assert b"2.50 times the function" in out
