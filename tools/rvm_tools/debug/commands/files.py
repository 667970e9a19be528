"""Commands that record: marks, edits, scripts, tests."""

from __future__ import annotations

from pathlib import Path

from rvm.faults import UsageError
from rvm_tools.debug.console import Console, command
from rvm_tools.debug.export import script_of, test_of
from rvm_tools.debug.scripts import read_script
from rvm_tools.programs import written

GROUP = "keeping"

EDITED = """\
the session is edited: from here it is another run than that of the inputs.  Going on computes
with the new value.  Going back shows the original states before the edit, and going forwards
again repeats it.  `restart` begins again without it."""


@command("set PLACE = VALUE", "change a value", takes="place")
def set_value(console: Console, rest: str) -> None:
    place, equals, value = rest.partition("=")
    if not equals or not place.strip() or not value.strip():
        raise UsageError("U036", "what to what?", hint="set x[3] = 7")
    session = console.session
    first = session.diverged is None
    before, after = session.set(place.strip(), value.strip())
    console.out(f"{place.strip()}  {before} -> {after}", "changed")
    if first:
        console.out(EDITED, "head")


@command("mark NAME", "name this time, for goto @NAME")
def mark(console: Console, rest: str) -> None:
    name = rest.lstrip("@")
    if not name.isidentifier():
        raise UsageError("U036", "what is the mark called?", hint="mark before")
    console.session.marks[name] = console.session.time
    console.out(f"@{name} is t={console.session.time}")


@command("save FILE", "write this session as a script", takes="file")
def save(console: Console, rest: str) -> None:
    _write(console, rest, script_of(console.session), "save session.rdb")


@command("source FILE", "run a script of commands", takes="file")
def source(console: Console, rest: str) -> None:
    if not rest:
        raise UsageError("U036", "which file?", hint="source session.rdb")
    answer = console.answer
    for line in read_script(rest):
        if console.finished:
            break
        console.out(f"{console.prompt()}{line.strip()}", "dim")
        inner = console.execute(line)
        answer.lines += inner.lines
        answer.stop = inner.stop or answer.stop
        answer.error = answer.error or inner.error
    console.answer = answer
    console.last = ""


@command("export-test FILE", "write a pytest that replays this", takes="file")
def export_test(console: Console, rest: str) -> None:
    if console.session.diverged is not None:
        raise UsageError("U037", "an edited session can't be replayed from its inputs")
    if not rest.endswith(".py"):
        raise UsageError("U036", "a test is a Python file", hint="export-test test_bug.py")
    _write(console, rest, test_of(console.session, Path(rest)), "export-test test_bug.py")


def _write(console: Console, file: str, text: str, usage: str) -> None:
    if not file:
        raise UsageError("U036", "to which file?", hint=usage)
    with written(file) as out:
        out.write(text.encode())
    console.out(f"written: {file}")


@command("q", "leave", "quit", "exit", group="other")
def leave(console: Console, rest: str) -> None:
    console.finished = True
