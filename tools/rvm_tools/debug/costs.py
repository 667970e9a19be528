"""What a session's run has cost: counters at a time, and the profile of any window of time.

A profile is not recorded, it is recomputed: the machine goes to the window's beginning, runs
through it counting, and comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from rvm.counting import Counts
from rvm.engines.counted import counting
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
    here, stop = session.time, session.stop
    with session._travel.silent():
        try:
            session.goto(begin, note=False)
            begin = session.time
            lines, ops = _counted(session, end)
            end = session.time
        finally:
            session.goto(here, note=False)
            session.stop = stop
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
    """Run to a time, or to where the program fails, on an engine that counts.

    The tick of a return counts for the line of its call.
    """
    machine, counts = session.machine, Counts()
    engine = machine._engine
    name = "reference" if session.options.engine == "reference" else "python"
    machine.use(counting(name, counts))
    try:
        session._travel.seek(end)
    finally:
        machine.use(engine)
    lines: Counter[tuple[str, int, int]] = Counter()
    ops: Counter[str] = Counter()
    for node in counts.nodes():
        code = node.code
        for pc, instr in enumerate(code.instrs):
            done = node.done[pc] + node.jumps[pc]
            if done or node.returns[pc]:
                source, line = line_of(code, pc)
                key = (code.name, source, line if source >= 0 else 0)
                lines[key] += done + node.returns[pc]
                ops[instr.op] += done
                ops["return"] += node.returns[pc]
    return lines, +ops
