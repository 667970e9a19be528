"""The text commands of a session: finding them, running them, collecting their output.

A command may be abbreviated while it is unambiguous, an empty line repeats the last one, and errors
become messages.  Prompts, scripts and tests all use a `Console`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from typing import Any

from rvm.codes.words import meant
from rvm.faults import Interrupted, RvmError, UsageError
from rvm.host.signals import at_once
from rvm_tools.debug.costs import FLOOR, floor
from rvm_tools.debug.session import Session
from rvm_tools.debug.stops import Stop
from rvm_tools.trace.energy import Model
from rvm_tools.trace.table import joules

_Run = Callable[["Console", str], None]
SEEK = re.compile(r"[+-]\d|\d+(?:\.\d+)?%$|@\w|start$|end$")
"""Input that goes to a time without the word `goto`."""
_MODULES = ("moves", "stops", "views", "files")


@dataclass(frozen=True, slots=True)
class Command:
    """A text command: its names (the first is the full one), its usage, its function."""

    names: tuple[str, ...]
    usage: str
    help: str
    run: _Run
    group: str
    repeats: bool = False
    """Whether an empty line repeats it."""
    takes: str = ""
    """The kind of its arguments: one that `completions` knows, or words separated by `|`."""

    @property
    def takes_more(self) -> bool:
        """Whether it takes arguments."""
        return " " in self.usage


COMMANDS: dict[str, Command] = {}
"""All commands by each of their names."""


def command(
    usage: str, help: str, *more: str, group: str = "", repeats: bool = False, takes: str = ""
) -> Callable[[_Run], _Run]:
    """Register a function as a command: by the first word of its usage, and by `more` names.

    Without a group it is in the `GROUP` of its module.
    """

    def enter(run: _Run) -> _Run:
        names = (usage.split()[0], *more)
        where = group or run.__globals__["GROUP"]
        COMMANDS.update(
            dict.fromkeys(names, Command(names, usage, help, run, where, repeats, takes))
        )
        return run

    return enter


def load_commands() -> dict[str, Command]:
    """All commands; their modules are imported at first use."""
    for name in _MODULES:
        import_module(f"rvm_tools.debug.commands.{name}")
    return COMMANDS


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line of output and how to paint it: "", "head", "source", "current", "changed", …"""

    text: str
    style: str = ""


@dataclass(slots=True)
class Answer:
    """The output of a command, and where it led."""

    command: str
    lines: list[OutputLine] = field(default_factory=list)
    stop: Stop | None = None
    data: dict[str, Any] = field(default_factory=dict)
    error: RvmError | None = None

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    def as_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        out: dict[str, Any] = {"command": self.command, "output": [k.text for k in self.lines]}
        if self.stop is not None:
            out["stop"] = self.stop.as_json()
        if self.error is not None:
            out["error"] = self.error.diagnostics[0].as_json()
        return out | self.data


class Console:
    """A session and its text commands.

    `show` is called with every line as soon as it is ready; width is that of the page.
    """

    def __init__(
        self,
        session: Session,
        show: Callable[[OutputLine], object] = lambda line: None,
        width: int = 80,
        model: Model = FLOOR,
    ) -> None:
        self.session = session
        self.show = show
        self.width = width
        self.reverse = False
        """Whether plain steps go backwards."""
        self.finished = False
        self.model = model
        """The model of the run's energy."""
        self.last = ""
        """The command that an empty line repeats."""
        self.page: dict[str, Any] = {}
        """The start of the next page of `x` and `l`."""
        self.answer = Answer("")
        self._nested = 0
        session.say = lambda text: self.out(text, "printed")
        session._travel.say = session.say

    @property
    def direction(self) -> int:
        return -1 if self.reverse else 1

    def out(self, text: str = "", style: str = "") -> None:
        """Print one or several lines."""
        if style != "printed":
            self.session._travel.onlooker.says()
        for part in text.split("\n"):
            line = OutputLine(part, style)
            self.answer.lines.append(line)
            self.show(line)

    @at_once
    def execute(self, text: str) -> Answer:
        """Run a command; errors are in the answer, never raised."""
        text = text.strip()
        if not text:
            text = self.last
        elif text.startswith("#"):
            return Answer(text)
        self.answer = answer = Answer(text)
        if not text:
            return answer
        try:
            found, rest = find(text)
            if rest and not found.takes_more:
                raise UsageError("U036", f"`{found.usage}` takes nothing more", hint=found.help)
            self.last = ""
            with self._nesting(text), self.session._travel.listening():
                found.run(self, rest)
            if found.repeats and not self.last:
                self.last = text
        except Interrupted:
            self.out("interrupted", "error")
        except RvmError as error:
            self.answer.error = error
            self.out(error.diagnostics[0].human() if error.where.line else _short(error), "error")
        return answer

    @contextmanager
    def _nesting(self, text: str) -> Iterator[None]:
        if self._nested > 20:
            raise UsageError("U036", "scripts are nested too deeply")
        onlooker = self.session._travel.onlooker
        self._nested += 1
        onlooker.begins(text)
        try:
            yield
        finally:
            self._nested -= 1
            onlooker.ends()

    def prompt(self) -> str:
        """`[t=120 2.9% 0 J >]`: the time, its share of the run, energy, direction of plain steps.

        The energy is what erasing bits must have taken on the way from the start to here.
        """
        session = self.session
        parts = [f"t={session.time}"]
        if session.length:
            parts.append(share_text(session.time, session.length))
        if session.mark:
            parts.append(session.mark)
        parts.append(joules(floor(session)))
        parts.append("<" if self.reverse else ">")
        return f"[{' '.join(parts)}] "


def share_text(time: int, length: int) -> str:
    """A share of a run in per cent; 100% is the end and nothing else."""
    share = f"{100 * time / length:.3g}"
    return f"{share if share != '100' or time == length else '99.9'}%"


def _short(error: RvmError) -> str:
    hint = f"\n  help: {error.hint}" if error.hint else ""
    notes = "".join(f"\n  {n}" for n in error.notes)
    return f"error[{error.code}]: {error.message}{notes}{hint}"


def find(text: str) -> tuple[Command, str]:
    """The command that a line names, and the rest of the line; UsageError U036 if there is none."""
    table = load_commands()
    if SEEK.match(text):
        return table["goto"], text
    found = re.match(r"[A-Za-z?!][\w-]*", text)
    if found is None:
        raise UsageError("U036", f"`{text}` is not a command", hint="`help` lists them")
    word, rest = found[0], text[found.end() :].strip()
    if word in table:
        return table[word], rest
    near = {id(c): c for name, c in table.items() if name.startswith(word)}
    if len(near) == 1:
        return next(iter(near.values())), rest
    if near:
        names = ", ".join(sorted(c.names[0] for c in near.values()))
        raise UsageError("U036", f"`{word}` could be {names}")
    nearest = meant(word, table)
    first = f"did you mean `{nearest}`?  " if nearest else ""
    raise UsageError("U036", f"there is no command `{word}`", hint=f"{first}`help` lists them")


def count_of(rest: str, usage: str, default: int = 1, least: int = 1) -> int:
    """A command's count, `least` or more."""
    if not rest:
        return default
    number = whole(rest)
    if number is None or number < least:
        raise UsageError("U036", f"`{rest}` is not a count", hint=f"usage: {usage}")
    return number


def whole(text: str) -> int | None:
    """A whole number as people write it: `1000000`, `1_000_000`, `1,000,000`, `1e6`."""
    digits = text.strip().replace("_", "").replace(",", "")
    if not re.fullmatch(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE]\+?[0-9]{1,2})?", digits):
        return None
    number = Decimal(digits)
    return int(number) if number == number.to_integral_value() else None
