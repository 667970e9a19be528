"""Functions that are typed at Python's prompt are read, from the history of its lines."""

from __future__ import annotations

import os
import select
import sys
import time

import pytest

pty = pytest.importorskip("pty", reason="there is a terminal on Unix only")
pytest.importorskip("readline")

SESSION = """import rvm
@rvm.reversible
def pair(a, b, n):
    if rvm.when(n == 0, a == b):
        a += 1
        b += 1
    else:
        n -= 1
        pair(a, b, n)
        a += b
        a, b = b, a

pair(0, 0, 10)
(~pair)(89, 144, 0)
@rvm.reversible
def twice(x: rvm.f64):
    x += 1
    x += 1

twice(1.0)
@rvm.reversible
def halved(x: rvm.i64):
    x //= 2

halved(4)
"""


def typed(lines: str) -> str:
    """What Python's prompt shows when these lines are typed."""
    child, terminal = pty.fork()
    if not child:
        os.environ.update(PYTHON_BASIC_REPL="1", TERM="dumb")
        os.execv(sys.executable, [sys.executable, "-q", "-i"])
    shown, deadline = "", time.monotonic() + 120
    for line in (None, *lines.splitlines(), "exit()"):
        if line is not None:
            os.write(terminal, line.encode() + b"\n")
        part = ""
        while not part.rstrip().endswith((">>>", "...")) and time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                got = os.read(terminal, 4096).decode()
            except OSError:
                break
            if not got:
                break
            part += got
        shown += part
    os.waitpid(child, 0)
    os.close(terminal)
    return shown


def test_what_is_typed_is_read() -> None:
    shown = typed(SESSION)
    assert "Result(a=89, b=144, n=0)" in shown and "Result(a=0, b=0, n=10)" in shown
    assert "`x //= …` forgets the remainder" in shown
    # Before 3.13 the history has no second line that repeats the one before.
    assert "Result(x=3.0)" in shown or "the source of `twice` can't be read" in shown
