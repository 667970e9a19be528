"""Expressions, and at the editor's console all text commands of the debugger.

Console input that is an expression over live variables is evaluated; anything else is a command,
such as `seek 120`, `last x[3]` or `origin x`.
"""

from __future__ import annotations

import re

from rvm_tools.debug.completions import completions, live_names
from rvm_tools.debug.console import SEEK, find
from rvm_tools.debug.session import Session

from rvm.faults import RvmError, UsageError
from rvm_dap.adapter import Adapter, Body, answers
from rvm_dap.navigation import ended, stopped
from rvm_dap.protocol import Arguments
from rvm_dap.stop_events import tell_probes
from rvm_dap.values import Child, record_value, value_of_type
from rvm_dap.variables import changed, frame_of, looking, shape

_COMMAND = re.compile(r"[A-Za-z?!][\w-]*(?=\s|$)")


@answers("evaluate")
def evaluate(adapter: Adapter, args: Arguments) -> Body:
    """The value of an expression in a frame; at the console, also the output of a command."""
    text = args.text("expression").strip()
    depth = frame_of(adapter, args)
    hexadecimal = args.inner("format").flag("hex")
    at_console = args.text("context", "") == "repl"
    if at_console and (not text or SEEK.match(text)):
        return _command(adapter, text, depth)
    try:
        child = _value_in(adapter.session, depth, text, hexadecimal)
    except RvmError:
        if at_console and _is_command(text):
            return _command(adapter, text, depth)
        raise
    return {"result": child.value, **shape(adapter, child)}


def _value_in(session: Session, depth: int, text: str, hexadecimal: bool = False) -> Child:
    """The value of an expression (or of a whole record) in a frame."""
    frame = session.frames[depth]
    function = frame.code.function
    for p in function.params:
        if p.name == text and not isinstance(p.layout, int):
            return record_value(depth, text, text, function, p.layout, frame.regs)
    with looking(session, depth):
        t, raw = session.evaluate(text)
    try:
        place = session.language.place(text, function, frame.regs)
    except RvmError:
        return value_of_type(depth, text, "", t, raw, hexadecimal)
    if function.registers[place.reg].shape:
        return value_of_type(depth, text, "", t, raw, hexadecimal)
    return value_of_type(depth, text, text, t, raw, hexadecimal)


def _is_command(text: str) -> bool:
    """Whether a text begins with a command's name (or with all that is needed of one)."""
    found = _COMMAND.match(text)
    if found is None:
        return False
    try:
        find(_spelled(text))
    except UsageError:
        return False
    return True


def _spelled(text: str) -> str:
    """A command in the session's form: `seek T` is `goto T`."""
    word, _, rest = text.partition(" ")
    return f"goto {rest.strip()}" if word == "seek" else text


def _command(adapter: Adapter, text: str, depth: int) -> Body:
    """Run a command; the client is notified of changes after the answer."""
    debuggee = adapter.launched
    session, console = debuggee.session, debuggee.console
    time, edits, frames = session.time, session.diverged, len(session.frames)
    session.select(depth)
    with adapter.journey(text):
        answer = console.execute(_spelled(text))
    moved = answer.stop is not None or (session.time, len(session.frames)) != (time, frames)
    if moved and answer.stop is None:
        # It was interrupted.
        answer.stop = session.goto(session.time)
    session.selected = -1
    tell_probes(adapter)
    if answer.error is not None:
        if moved:
            adapter.channel.output(answer.text, "stderr")
            adapter.later(lambda: stopped(adapter, session.stop))
            return {"result": "", "variablesReference": 0}
        raise answer.error
    if console.finished:
        adapter.later(lambda: ended(adapter))
    elif moved:
        adapter.later(lambda: stopped(adapter, session.stop))
    elif session.diverged != edits or text.startswith("set"):
        adapter.later(lambda: changed(adapter))
    return {"result": answer.text, "variablesReference": 0}


@answers("completions")
def complete(adapter: Adapter, args: Arguments) -> Body:
    """Completions of the word before the cursor: commands, and names of the frame."""
    line = args.text("text")
    column = args.integer("column") - adapter.client.first_column
    head = line[: max(column, 0)]
    console = adapter.launched.console
    with looking(console.session, frame_of(adapter, args)):
        start, names = completions(console, head)
        if not head[:start].strip():
            # A line may be an expression too.
            word = head[start:]
            names = sorted({*names, *(n for n in live_names(console) if n.startswith(word))})
    at = start + adapter.client.first_column
    return {"targets": [{"label": n, "start": at, "length": len(head) - start} for n in names]}
