"""Navigation: continue, steps, pause and goto, and the events that report where these led."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rvm_tools.debug.lines import find_target
from rvm_tools.debug.stops import Stop

from rvm.faults import UsageError
from rvm_dap.adapter import Adapter, Body, answers
from rvm_dap.inbox import ENDING, SERVED
from rvm_dap.protocol import Arguments
from rvm_dap.stop_events import tell_probes

_THREAD = 1
"""The one thread that a machine is."""


# ---------------------------------------------------------------- arriving


def stopped(adapter: Adapter, stop: Stop, reason: str = "") -> None:
    """Tell the client where the machine stopped, and why."""
    adapter.handles.clear()
    debuggee = adapter.launched
    tell_probes(adapter)
    if stop.reason == "end" and not debuggee.stop_at_end:
        ended(adapter)
        return
    said, text = _why(adapter, stop)
    body: dict[str, Any] = {
        "reason": reason or said,
        "description": text,
        "threadId": _THREAD,
        "allThreadsStopped": True,
    }
    numbers = [e.number for e in stop.events if e.number]
    if numbers:
        body["hitBreakpointIds"] = numbers
    # The place whose last write is searched for is not watched, and has the number 0.
    events = [e for e in stop.events if e.number or not e.data]
    told = "\n".join(e.text for e in events)
    if stop.error is not None and said == "exception":
        told = f"{stop.error.code}: {stop.error.message}"
    if told:
        body["text"] = told
    for event in events:
        if event.kind == "watchpoint":
            adapter.channel.output(event.text, "console")
    if said == "exception":
        adapter.channel.output(str(stop.error), "stderr")
    adapter.channel.event("stopped", body)


def _why(adapter: Adapter, stop: Stop) -> tuple[str, str]:
    """The protocol's reason for a stop, and its description."""
    way = "backwards" if stop.direction < 0 else "forwards"
    at = f"at time {stop.time}"
    if stop.reason in ("error", "limit"):
        return "exception", f"stopped {at}, running {way}"
    if stop.reason == "breakpoint":
        hit = next(e.number for e in stop.events if e.kind == "breakpoint")
        return adapter.launched.breaks.reason(hit), f"stopped {at}, running {way}"
    if stop.reason == "watchpoint" and all(e.data and not e.number for e in stop.events):
        return "goto", at
    known = {
        "watchpoint": ("data breakpoint", f"stopped {at}, running {way}"),
        "start": ("entry", "at the start of the program: there is nothing to undo"),
        "end": ("end", f"at the end of the program, {at}: step back to go on"),
        "interrupted": ("pause", f"paused {at}, running {way}"),
        "goto": ("goto", at),
    }
    return known.get(stop.reason, ("step", at))


def ended(adapter: Adapter) -> None:
    """Tell the client that the program has ended, with the exit code of `rvm run`."""
    error = adapter.session.stop.error if adapter.debuggee is not None else None
    adapter.channel.event("exited", {"exitCode": error.exit_code if error is not None else 0})
    adapter.channel.event("terminated")


# ---------------------------------------------------------------- going


def run(adapter: Adapter, direction: int) -> None:
    """Run to a stop; requests about breakpoints that arrive meanwhile are served on the way."""
    session, inbox = adapter.session, adapter.inbox
    adapter.handles.clear()
    title = "continue" if direction > 0 else "reverse"
    while True:
        with adapter.journey(title, resumable=True):
            stop = session.resume(direction)
        if stop.reason != "interrupted" or inbox.pending(ENDING) or not inbox.pending(SERVED):
            break
        for request in inbox.take_served():
            adapter.answer(request)
    stopped(adapter, stop)


def _travel(adapter: Adapter, title: str, journey: Callable[[], Stop]) -> None:
    """Make one journey and report where it led."""
    adapter.handles.clear()
    with adapter.journey(title):
        stop = journey()
    stopped(adapter, stop)


@answers("continue")
def resume(adapter: Adapter, args: Arguments) -> Body:
    """Continue to a stop, or the end."""
    adapter.later(lambda: run(adapter, 1))
    return {"allThreadsContinued": True}


@answers("reverseContinue")
def resume_back(adapter: Adapter, args: Arguments) -> Body:
    """Go back to a stop, or the start."""
    adapter.later(lambda: run(adapter, -1))
    return {"allThreadsContinued": True}


def _steps(command: str, line: str, direction: int) -> None:
    """A step by lines in one direction, or by one instruction if the client wants that."""

    @answers(command)
    def step(adapter: Adapter, args: Arguments) -> None:
        session = adapter.session
        how = "instruction" if args.text("granularity", "line") == "instruction" else line
        journey = getattr(session, how)
        adapter.later(lambda: _travel(adapter, command, lambda: journey(1, direction)))


_steps("next", "next", 1)
_steps("stepIn", "step", 1)
_steps("stepBack", "next", -1)


@answers("stepOut")
def step_out(adapter: Adapter, args: Arguments) -> None:
    """Continue until the innermost function returns."""
    session = adapter.session
    adapter.later(lambda: _travel(adapter, "stepOut", session.finish))


@answers("pause")
def pause(adapter: Adapter, args: Arguments) -> None:
    """Answered when the program stops; the interrupted run, if any, has reported where."""
    stop = adapter.session.stop
    if stop.reason != "interrupted":
        adapter.later(lambda: stopped(adapter, stop, "pause"))


@answers("threads")
def threads(adapter: Adapter, args: Arguments) -> Body:
    """There is one."""
    return {"threads": [{"id": _THREAD, "name": adapter.session.function}]}


# ---------------------------------------------------------------- goto


@answers("gotoTargets")
def goto_targets(adapter: Adapter, args: Arguments) -> Body:
    """The ways to run to a line: on to its next execution, or back to the last."""
    debuggee = adapter.launched
    source = args.inner("source")
    found = debuggee.sources.find(source.text("path", ""), source.integer("sourceReference", 0))
    line = args.integer("line") + 1 - adapter.client.first_line
    where = debuggee.sources.where(found, line)
    session = debuggee.session
    target = find_target(session.frame.code.image, where, session.frame.code)
    shown = target.line or target.pc + 1
    out = []
    for direction, label in ((1, "on to its next execution"), (-1, "back to its last execution")):
        out.append(
            {
                "id": adapter.reference((where, direction)),
                "label": f"line {shown}: {label}",
                "line": shown - 1 + adapter.client.first_line,
            }
        )
    return {"targets": out}


@answers("goto")
def goto(adapter: Adapter, args: Arguments) -> None:
    """Run to a line, in the target's direction; if it is not reached, the machine stays here."""
    number = args.integer("targetId")
    if not 0 < number <= len(adapter.handles) or not isinstance(adapter.handles[number - 1], tuple):
        raise UsageError("U041", f"there is no goto target {number} any more")
    where, direction = adapter.handles[number - 1]
    session = adapter.session
    here = session.time
    probe = session.break_at(where, temporary=True)
    try:
        with adapter.journey(f"to {where}"):
            stop = session.resume(direction)
            if stop.reason in ("start", "end"):
                session.goto(here)
    finally:
        if probe in session.probes:
            session.delete(probe.number)
    if stop.reason in ("start", "end"):
        way = "comes again" if direction > 0 else "has come before"
        raise UsageError("U033", f"`{where}` is not a place that {way}")
    reached = any(e.number == probe.number for e in stop.events)
    adapter.later(lambda: stopped(adapter, stop, "goto" if reached else ""))
