"""The costs of a session's run: counters at a time, and the profile of any window of time.

A profile is not recorded but recomputed: the machine goes to the window's beginning, runs through
it counting, and comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rvm.accounts.counts import Counts
from rvm.codes.words import count
from rvm.engines import ENGINES, counting
from rvm.faults import UsageError
from rvm_tools.debug.lines import line_of, source_name
from rvm_tools.debug.session import Session
from rvm_tools.trace.account import CostAccount, Tally
from rvm_tools.trace.energy import Model, landauer
from rvm_tools.trace.table import joules

FLOOR = landauer()
"""The cost known at every time without counting: k T ln 2 for each erased bit."""
TOP = 12
"""Lines of a profile that are shown."""
_LONGEST = 100
"""The longest line of a profile."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The ticks that ran between two times: by (function, source, line), and by opcode."""

    begin: int
    end: int
    lines: Counter[tuple[str, int, int]]
    ops: Counter[str]


def energy_lines(session: Session) -> Iterator[str]:
    """The counters here, as lines."""
    account = session.machine.state.account
    yield f"time    {session.time:,}" + (f" of {session.length:,}" if session.length else "")
    yield f"work    {count(session.work, 'instruction')} executed in this session, both ways"
    yield f"memory  {account.live_bytes:,} bytes live, {account.peak_bytes:,} at most"
    yield f"erased  {count(session.erased, 'bit')} on the way here: {floor_text(session)}"
    residue = session.machine.residue_bytes
    if residue:
        yield f"kept    {residue:,} bytes of rounding in the strict log"


def floor(session: Session) -> float:
    """The minimum energy in joules of the bits erased from the start to here."""
    return FLOOR.energy(Tally(erased=Counter(here=session.erased)))


def floor_text(session: Session) -> str:
    """The same in words."""
    return f"at least {joules(floor(session))} at {FLOOR.temperature:g} K"


def again(session: Session) -> Session:
    """A second session on the same run, at its start, without output or stops.

    The session itself stays where it is: a run that erases bits could not be taken back and forth.
    Ctrl-C and `Session.interrupt` of the session end the other's journeys too. UsageError U037 if
    the session is edited.
    """
    if session.diverged is not None:
        raise UsageError(
            "U037",
            "an edited run can't be run again from its inputs",
            hint="`restart` begins again without the edit",
        )
    made = Session(
        session.program,
        session.function,
        session.inputs,
        session.options,
        undo=session.undo,
        say=lambda line: None,
        keyframes=session.keyframes,
    )
    made._travel.accompany(session._travel)
    return made


def tallies(fresh: Session, times: Iterable[int]) -> Iterator[tuple[int, Tally]]:
    """The costs of a run from its start to each of some ascending times, with those times.

    `fresh` is at its start.  Ends early if a time cannot be reached.
    """
    with _counting(fresh) as counts:
        for time in times:
            fresh.goto(time)
            if fresh.time != time:
                return
            yield time, CostAccount(fresh.program, counts).all


@contextmanager
def _counting(session: Session) -> Iterator[Counts]:
    """A context in which the session's machine uses the fastest counting engine."""
    machine, counts = session.machine, Counts()
    engine, asked = machine._engine, session.options.engine
    machine.use(
        counting("auto" if ENGINES[asked].compiles or ENGINES[asked].loops else asked, counts)
    )
    session._travel.counting = True
    try:
        yield counts
    finally:
        session._travel.counting = False
        machine.use(engine)


def taken(session: Session) -> Tally:
    """The costs of the run from its start to here, found by running again and counting."""
    fresh = again(session)
    found = dict(tallies(fresh, [session.time]))
    if session.time in found:
        return found[session.time]
    error = fresh.stop.error
    raise error or UsageError("U033", "the run could not be counted up to here")


def tally_lines(tally: Tally, model: Model) -> Iterator[str]:
    """Lines with the counts, and their cost according to a model."""
    classes = ", ".join(f"{cls} {n:,}" for cls, n in tally.classes().items())
    yield f"counted {count(tally.executed, 'instruction')} from the start to here: {classes}"
    title = f": {model.title}" if model.title else ""
    yield f"energy  {joules(model.energy(tally))} by `{model.name}`{title}"


def profile(session: Session, begin: int, end: int) -> Iterator[str]:
    """Instructions by line between two times; the machine is then where it was."""
    here = session.time
    with session.aside():
        try:
            found = _counted(session, begin, end)
        finally:
            session.goto(here)
    total = sum(found.lines.values())
    yield f"from t={found.begin} to t={found.end}: {count(total, 'instruction')}"
    shown = found.lines.most_common(TOP)
    width = max((len(function) for (function, _, _), _ in shown), default=0)
    for (function, source, line), n in shown:
        at = f"{source_name(session.program, source)}:{line}" if source >= 0 else ""
        text = session.program.sources[source].line(line) if source >= 0 else ""
        share = 100 * n / max(total, 1)
        row = f"  {n:>10,}  {share:5.1f}%  {function:<{width}}  {at:<16}  {(text or '').strip()}"
        yield row[:_LONGEST].rstrip()
    if len(found.lines) > TOP:
        yield f"  and {count(len(found.lines) - TOP, 'more line')}"
    yield "by opcode: " + ", ".join(f"{op} {n:,}" for op, n in found.ops.most_common(8))


def _counted(session: Session, begin: int, end: int) -> _Window:
    """Go to a time, and run counting to another, or to where the program fails.

    The tick of a return is attributed to the line of its call.
    """
    session.goto(begin)
    begin = session.time
    with _counting(session) as counts:
        session.goto(end)
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
    return _Window(begin, session.time, lines, +ops)
