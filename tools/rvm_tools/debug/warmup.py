"""When compiling pays: the reference engine goes first, the machine's own where a run is long.

Compiling takes time for every instruction, and armed code is compiled anew for each set of stops.
The reference engine does hundreds of ticks in the time that one instruction takes to compile.
"""

from __future__ import annotations

from rvm.engines.reference import Reference
from rvm.engines.trapping import due
from rvm.image import Code
from rvm.run.machine import Machine

WARM = 300
"""Ticks that the reference engine does first."""
_SHORT = 3
"""It does `WARM` ticks more for each this many instructions to compile."""
RUN, SIZE = "run", "size"
"""Notes on a code: that a fast engine has run it, and its length."""


def run_warm(machine: Machine, ticks: int, begins: bool) -> None:
    """Let a machine run for at most `ticks` ticks, or to a due trap.

    `begins`: the start of a journey of unknown length, which may well be short.
    """
    state, fast = machine.state, machine._engine
    code = state.top.code
    fresh = RUN not in code.compiled
    if fresh or (state.armed and (begins or ticks < WARM)):
        most = WARM * max(1, _size(code) // _SHORT) if fresh else WARM
        machine.use(Reference())
        try:
            ticks -= machine.go(min(most, ticks))
        finally:
            machine.use(fast)
    if ticks and not state.at_end and not due(state):
        code.compiled[RUN] = True
        machine.go(ticks)


def _size(code: Code) -> int:
    """The instructions of a code and of all that it may call."""
    found = code.compiled.get(SIZE)
    if not isinstance(found, int):
        program = code.image.program
        found = sum(len(program.function(f).code) for f in code.image.reachable(code.name))
        code.compiled[SIZE] = found
    return found
