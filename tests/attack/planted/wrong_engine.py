"""Random programs on a python engine that does one operation wrongly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from attack.kinds.programs import KIND as PROGRAMS
from rvm.engines.python import Python

right = Python.advance


def wrong(self: Python, state: Any, ticks: int) -> int:
    """As the engine does it; but a program that exchanges anything gets another first number."""
    did = right(self, state, ticks)
    frame = state.frames[0]
    if did and any(i.op == "swap" for i in frame.code.instrs):
        frame.regs[0] ^= 1
    return did


def attack(data: bytes, folder: Path) -> bool:
    """What is done with a program, while the engine is wrong."""
    Python.advance = wrong  # type: ignore[method-assign]
    try:
        return PROGRAMS.attack(data, folder)
    finally:
        Python.advance = right  # type: ignore[method-assign]


KIND = replace(PROGRAMS, name="attack.planted.wrong_engine", attack=attack)
