"""The prompt on a terminal: bars for what takes long, Ctrl-C in both directions, completion."""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sizes import wide
from tools.debug.consoles import LOOP

pty = pytest.importorskip("pty", reason="terminals as files")
pytest.importorskip("prompt_toolkit", reason="the extra `debug`")

WALKS = (
    LOOP
    + """
func stroll(x: i64)
    inc x
"""
)
PATIENCE = 60
"""Seconds until a test gives up; none is expected to take more than a few."""
CODES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[=>]|\r")


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._asked = 0
        self.seen = ""
        """All that it has sent and was not waited for yet."""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, pattern: str) -> str:
        """Wait for something to be shown; all up to its end."""
        end = time.monotonic() + PATIENCE
        while True:
            # What comes may be cut anywhere, inside codes and characters too.
            shown = CODES.sub("", self.seen)
            found = re.search(pattern, shown)
            if found is not None:
                self.seen, self._asked = shown[found.end() :], 0
                return shown[: found.end()]
            assert time.monotonic() < end, f"no {pattern!r} in {shown!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                self.seen += self._decoder.decode(os.read(self._master, 65536))
                asked = self.seen.count("\x1b[6n")
                for _ in range(asked - self._asked):
                    self.type("\x1b[1;1R")  # where the cursor is, which the prompt asks for
                self._asked = asked


@contextmanager
def debugging(tmp_path: Path, *values: str, **environment: str) -> Iterator[Terminal]:
    (tmp_path / "walk.rasm").write_text(WALKS, encoding="utf-8")
    command = [str(Path(sys.executable).parent / "rvm"), "debug", "walk.rasm", *values]
    given = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30", **environment}
    given["XDG_STATE_HOME"] = str(tmp_path)
    process, master = pty.fork()
    if not process:
        os.chdir(tmp_path)
        os.execve(command[0], command, given)
    try:
        yield Terminal(master)
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(master)


@wide
def test_a_long_run_shows_how_far_it_is_and_stops_in_either_direction(tmp_path: Path) -> None:
    with debugging(tmp_path, "x=0", "y=1", "n=1e15") as terminal:

        def interrupted(command: str) -> int:
            terminal.until(r"J >\]")
            terminal.type(f"{command}\r")
            shown = terminal.until(r"\(Ctrl-C stops\)[^\n]*M/s")
            assert command in shown
            terminal.type("\x03")
            terminal.until("interrupted")
            return int(terminal.until(r"t=\d+ ").split("=")[-1])

        there = interrupted("c")
        assert 0 < there < 10**15
        # On the way back each passing of a breakpoint is counted, so that on any machine it would
        # take some thousand times as long as the way there.
        for command, answer in (("b 3", "breakpoint 1"), ("ignore 1 1e15", "more times")):
            terminal.until(r"J >\]")
            terminal.type(f"{command}\r")
            terminal.until(answer)
        assert 0 < interrupted("rc") < there
        terminal.until(r"J >\]")
        terminal.type("q\r")


def test_ctrl_c_at_the_prompt_clears_the_line_and_ctrl_d_leaves(tmp_path: Path) -> None:
    with debugging(tmp_path, "x=0", "y=1", "n=3") as terminal:
        terminal.until(r"J >\]")
        terminal.type("si 5\x03")
        terminal.until(r"J >\]")
        terminal.type("si\r")
        terminal.until(r"t=1 ")
        terminal.until(r"J >\]")
        terminal.type("\x04")
        with pytest.raises(OSError, match="error"):
            terminal.until("there is nothing more to come")


def test_tab_completes_commands_and_names(tmp_path: Path) -> None:
    with debugging(tmp_path, "x=0", "y=1", "n=3") as terminal:
        terminal.until(r"J >\]")
        # Only what is new is drawn.
        terminal.type("dire\t")
        terminal.until("ction")
        terminal.type(" reve\t")
        terminal.until("rse")
        terminal.type("\r")
        terminal.until("s, n, si, fin and c go backwards")
        terminal.until(r"J <\]")
        terminal.type("b stro\t")
        terminal.until("ll")
        terminal.type("\r")
        terminal.until("breakpoint 1: stroll")


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_terminals_without_colour(tmp_path: Path, setting: dict[str, str]) -> None:
    with debugging(tmp_path, "x=0", "y=1", "n=3", **setting) as terminal:
        terminal.until(r"J >\]")
        terminal.type("si\r")
        terminal.until(r"t=1 ")
