"""Messages to people: errors on standard error, in one of three formats."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import rich_click as click
from click.exceptions import Exit

from rvm.faults import AssemblyWarning, Diagnostic, Fault
from rvm_tools.streams import json_text

_HEAD = re.compile(r"^(error|warning|note)(\[\w+\])?(.*)$", re.S)
_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


def show_error(error: Fault, style: str = "human") -> None:
    """Put an error's messages out to standard error."""
    if style == "json":
        click.echo(json_text(errors_as_json(error)), err=True)
    elif style == "short":
        click.echo(error.shown(Diagnostic.short), err=True)
    else:
        # click drops colours where no terminal reads them
        click.echo(error.shown(_coloured, "\n\n"), err=True)


def show(message: Diagnostic, style: str = "human") -> None:
    """Put one message out to standard error."""
    if style == "json":
        text = json_text({"warnings": [message.as_json()]})
    else:
        text = message.short() if style == "short" else _coloured(message)
    click.echo(text, err=True)


@contextmanager
def warnings_to(take: Callable[[Diagnostic], object]) -> Iterator[None]:
    """A context in which warnings about source texts go to `take`, whatever the filters."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def shown(message: Warning | str, *args: Any, **named: Any) -> None:
            if isinstance(message, AssemblyWarning):
                take(message.diagnostic)
            else:
                others(message, *args, **named)

        warnings.simplefilter("always", AssemblyWarning)
        warnings.showwarning = shown
        yield


def errors_as_json(error: Fault) -> dict[str, object]:
    """An error as an object: its messages, and when it happened, if there was a run."""
    out: dict[str, object] = {"errors": [d.as_json() for d in error.diagnostics]}
    if error.time is not None:
        out["time"] = error.time
        out["direction"] = _direction_name(error.direction)
    return out


def _coloured(d: Diagnostic) -> str:
    text = d.human()
    if os.environ.get("NO_COLOR"):
        return text
    first, *rest = text.split("\n")
    head = _HEAD.match(first)
    if head is None:
        return text
    colour = _COLOURS[head[1]]
    first = click.style(head[1] + (head[2] or ""), fg=colour, bold=True) + click.style(
        head[3], bold=True
    )
    return "\n".join([first, *(_coloured_line(line, colour) for line in rest)])


def _coloured_line(line: str, colour: str) -> str:
    """A caret line in the message's colour; `= note:` and the like in cyan."""
    _, bar, after = line.partition(" | ")
    if bar and after.strip() and not line.split("|")[0].strip() and after.lstrip()[0] in "^-":
        return line[: len(line) - len(after)] + click.style(after, fg=colour, bold=True)
    return re.sub(r"^( *= )(\w+:)", lambda m: m[1] + click.style(m[2], fg="cyan"), line)


def end(code: int) -> NoReturn:
    """End the command with an exit code."""
    raise Exit(code)


def _direction_name(direction: int) -> str:
    """The word for a direction."""
    return "forwards" if direction > 0 else "backwards"
