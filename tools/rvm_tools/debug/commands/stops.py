"""The commands for breakpoints, tracepoints and watchpoints."""

from __future__ import annotations

import re

from rvm.codes.words import count
from rvm.faults import UsageError
from rvm_tools.debug.console import Console, command, count_of
from rvm_tools.debug.stops import Breakpoint, Watchpoint

GROUP = "stopping"
_IF = re.compile(r"(?:^|\s)if(?:\s+(?P<condition>.*))?$")
_TRACE = re.compile(r'(?P<where>\S+)\s+"(?P<text>.*)"\s*(?:if\s+(?P<condition>.+))?$')


def split_condition(text: str) -> tuple[str, str]:
    """`PLACE if EXPR` as its two parts."""
    found = _IF.search(text)
    if found is None:
        return text.strip(), ""
    condition = (found["condition"] or "").strip()
    if not condition:
        raise UsageError("U036", "there is no condition after `if`", hint="b 12 if n > 3")
    return text[: found.start()].strip(), condition


def _made(console: Console, probe: Breakpoint | Watchpoint) -> None:
    console.out(described(probe))
    console.answer.data["number"] = probe.number


def _break(console: Console, rest: str, temporary: bool) -> None:
    where, condition = split_condition(rest)
    session = console.session
    if not where:
        line = session.stop.line
        if not line:
            raise UsageError("U036", "where?", hint="b 12, b norm, b top, b norm@3, b 12 if n > 3")
        where = str(line)
    _made(console, session.break_at(where, condition, temporary=temporary))


@command(
    "b LINE|FUNC|LABEL|FUNC@N [if EXPR]", "stop there, in both directions", "break", takes="where"
)
def break_at(console: Console, rest: str) -> None:
    _break(console, rest, False)


@command("tb WHERE [if EXPR]", "stop there once", "tbreak", takes="where")
def break_once(console: Console, rest: str) -> None:
    _break(console, rest, True)


@command(
    'tp WHERE "text {expr}" [if EXPR]',
    "print there, tagged > or < by direction",
    "tracepoint",
    takes="where",
)
def tracepoint(console: Console, rest: str) -> None:
    found = _TRACE.match(rest)
    if found is None:
        raise UsageError("U036", "a tracepoint has a text", hint='tp 12 "x is {x}"')
    made = console.session.break_at(
        found["where"], (found["condition"] or "").strip(), message=found["text"]
    )
    _made(console, made)


def _watch(console: Console, rest: str, reads: bool) -> None:
    place, condition = split_condition(rest)
    if not place:
        raise UsageError("U036", "which place?", hint="watch x[3] if x[3] > 10")
    _made(console, console.session.watch(place, condition, reads=reads))


@command("watch PLACE [if EXPR]", "stop when it has changed", takes="place")
def watch(console: Console, rest: str) -> None:
    _watch(console, rest, False)


@command("rwatch PLACE [if EXPR]", "stop before it is read", takes="place")
def watch_reads(console: Console, rest: str) -> None:
    _watch(console, rest, True)


@command("ignore NUMBER COUNT", "ignore a stop N times", takes="number")
def ignore(console: Console, rest: str) -> None:
    parts = rest.split()
    if len(parts) != 2:
        raise UsageError("U036", "the number of a stop, and how often?", hint="ignore 1 10")
    number, times = (count_of(p, "ignore NUMBER COUNT", least=0) for p in parts)
    console.session.ignore(number, times)
    kind = console.session.probe(number).kind
    console.out(f"{kind} {number} is ignored {count(times, 'more time')}")


def _numbers(console: Console, rest: str, usage: str) -> list[int]:
    if not rest:
        raise UsageError("U036", "which number?", hint=f"usage: {usage}; `info b` lists them")
    return [count_of(p, usage) for p in rest.split()]


@command("del NUMBER … | all", "remove stops", "delete", takes="number")
def delete(console: Console, rest: str) -> None:
    session = console.session
    if rest == "all":
        for probe in session.probes:
            session.delete(probe.number)
        return
    for number in _numbers(console, rest, "del NUMBER"):
        session.delete(number)


@command("enable NUMBER …", "enable stops again", takes="number")
def enable(console: Console, rest: str) -> None:
    for number in _numbers(console, rest, "enable NUMBER"):
        console.session.enable(number)


@command("disable NUMBER …", "disable stops, but keep them", takes="number")
def disable(console: Console, rest: str) -> None:
    for number in _numbers(console, rest, "disable NUMBER"):
        console.session.enable(number, False)


def described(probe: Breakpoint | Watchpoint) -> str:
    """A breakpoint or watchpoint in a line."""
    condition = f" if {probe.condition}" if probe.condition else ""
    if isinstance(probe, Watchpoint):
        text = f"{probe.kind} {probe.number}: {probe.text} of {probe.function}{condition}"
        if not probe.awake:
            text += " (asleep: its function's call is not active)"
    else:
        kind = "temporary breakpoint" if probe.temporary else probe.kind
        target = probe.target
        at = f"line {target.line}" if target.line else target.text
        text = f"{kind} {probe.number}: {at}{condition}"
        if target.line and target.text.isdigit() and int(target.text) != target.line:
            text += f" (nothing begins at line {target.text})"
        if probe.message is not None:
            text += f' "{probe.message}"'
    if probe.ignore:
        text += f", passed {count(probe.ignore, 'more time')}"
    if not probe.enabled:
        text += ", disabled"
    return text
