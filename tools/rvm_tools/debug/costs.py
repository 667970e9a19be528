"""What a session's run has cost: counters at a time, and the profile of any window of time.

A profile is not recorded, it is recomputed: the machine goes to the window's beginning, runs
through it counting, and comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from rvm.engines.reference import step
from rvm_tools.debug.lines import line_of
from rvm_tools.debug.session import Session
from rvm_tools.debug.views import source_name
from rvm_tools.words import count

BOLTZMANN = 1.380649e-23
"""J/K, exact in the SI."""
TEMPERATURE = 300.0
"""Kelvin."""
LANDAUER = BOLTZMANN * TEMPERATURE * float(np.log(2.0))
"""The least energy that erasing a bit takes, in J: k T ln 2.

R. Landauer, "Irreversibility and heat generation in the computing process" (1961).
"""
TOP = 12
"""Lines of a profile that are shown."""
LONGEST = 100
"""The longest line of a profile."""


def energy_lines(session: Session) -> Iterator[str]:
    """The counters here, as lines."""
    account = session.machine.state.account
    yield f"time    {session.time:,}" + (f" of {session.length:,}" if session.length else "")
    yield f"work    {count(session.work, 'instruction')} executed in this session, both ways"
    yield f"memory  {account.live_bytes:,} bytes live, {account.peak_bytes:,} at most"
    bits = account.erased_bits
    yield f"erased  {count(bits, 'bit')}: at least {bits * LANDAUER:.3g} J at {TEMPERATURE:.0f} K"
    residue = session.machine.residue_bytes
    if residue:
        yield f"kept    {residue:,} bytes of rounding in the strict log"


def profile(session: Session, begin: int, end: int) -> Iterator[str]:
    """Instructions by line between two times; the machine is then where it was."""
    here = session.time
    travel = session._travel
    lines: Counter[tuple[str, int, int]] = Counter()
    ops: Counter[str] = Counter()
    with travel.silent():
        session.goto(begin, note=False)
        begin = session.time
        lines, ops = _counted(session, end)
        end = session.time
        session.goto(here, note=False)
    total = sum(lines.values())
    yield f"from t={begin} to t={end}: {count(total, 'instruction')}"
    shown = lines.most_common(TOP)
    width = max((len(function) for (function, _, _), _ in shown), default=0)
    for (function, source, line), n in shown:
        at = f"{source_name(session.program, source)}:{line}" if source >= 0 else ""
        text = session.program.sources[source].line(line) if source >= 0 else ""
        share = 100 * n / max(total, 1)
        row = f"  {n:>10,}  {share:5.1f}%  {function:<{width}}  {at:<16}  {(text or '').strip()}"
        yield row[:LONGEST].rstrip()
    if len(lines) > TOP:
        yield f"  and {count(len(lines) - TOP, 'more line')}"
    yield "by opcode: " + ", ".join(f"{op} {n:,}" for op, n in ops.most_common(8))


def _counted(session: Session, end: int) -> tuple[Counter[tuple[str, int, int]], Counter[str]]:
    """Step to a time, counting; calls' returns count as their instruction."""
    lines: Counter[tuple[str, int, int]] = Counter()
    ops: Counter[str] = Counter()
    state = session.machine.state
    with np.errstate(all="ignore"):
        while state.time < end and not state.at_end:
            frame = state.frames[-1]
            code, pc = frame.code, frame.pc
            if pc >= len(code):
                frame = state.frames[-2]
                code, pc = frame.code, frame.pc
                op = "return"
            else:
                op = code.instrs[pc].op
            source, line = line_of(code, pc)
            lines[code.name, source, line if source >= 0 else 0] += 1
            ops[op] += 1
            step(state)
            session._travel.work += 1
            session._travel.check()
    return lines, ops
