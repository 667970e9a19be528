"""The errors: a common base class, a stable code for each error, and their rendering.

Every error says what is wrong, where, with which values, and what to try. `exit_code` is the exit
status of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rvm.codes.words import plainly


@dataclass(frozen=True, slots=True)
class Label:
    """A range of a source line, with a text about it.

    Columns count from 1; `end` is exclusive.
    """

    line: int
    column: int
    end: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a source text or in bytecode.  Line 0 means that the source is unknown."""

    source: str = "<bytecode>"
    line: int = 0
    column: int = 0
    end: int = 0
    text: str | None = None
    """The text of the source line, if known."""
    function: str = ""
    pc: int = -1

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        if self.function and not self.line:
            place += f" in {self.function}"
            if self.pc >= 0:
                place += f", instruction {self.pc}"
        return place


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message: code, text, place, further labels on source lines, values, notes and help."""

    code: str
    message: str
    where: Where = field(default_factory=Where)
    labels: tuple[Label, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    hint: str = ""
    severity: str = "error"
    calls: tuple[Where | int, ...] = ()
    """Of an error in a run the calls that led there, the innermost first; a number stands for so
    many that are left out."""
    lines: Mapping[int, str] = field(default_factory=dict)
    """Texts of further source lines to which labels refer."""

    def short(self) -> str:
        """One line: `file:line:column: error[code]: message`."""
        place = f"{self.where}: " if self.where != Where() else ""
        return f"{place}{self.severity}[{self.code}]: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """A dict of plain values, for `--error-format=json`."""
        w = self.where
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "source": w.source,
            "line": w.line,
            "column": w.column,
            "end": w.end,
            "function": w.function,
            "instruction": w.pc,
            "labels": [
                {"line": b.line, "column": b.column, "end": b.end, "text": b.text}
                for b in self.labels
            ],
            "calls": [_caller(c) for c in self.calls],
            "values": {k: _plain(v) for k, v in self.values.items()},
            "notes": list(self.notes),
            "help": self.hint,
        }

    def human(self) -> str:
        """Several lines: the message, the source with carets, the values, notes and help."""
        out = [f"{self.severity}[{self.code}]: {_cut(self.message)}"]
        labels = list(self.labels)
        if self.where.line and not any(b.line == self.where.line for b in labels):
            labels.append(Label(self.where.line, self.where.column, self.where.end))
        texts = dict(self.lines)
        if self.where.text is not None:
            texts[self.where.line] = self.where.text
        numbers = sorted({b.line for b in labels if b.line in texts})
        width = len(str(numbers[-1])) + 1 if numbers else 1
        if self.where != Where():
            out.append(f"{' ' * width}--> {self.where}")
        if numbers:
            out.append(f"{' ' * width} |")
        previous = 0
        for number in numbers:
            if previous and number > previous + 1:
                out.append("...")
            previous = number
            raw, row = _near(texts[number], [b for b in labels if b.line == number])
            text, row = _window(raw.expandtabs(4).rstrip(), [_expanded(raw, b) for b in row])
            out.append(f"{number:>{width}} | {text}")
            out.extend(f"{' ' * width} | {mark}" for mark in _marks(row))
        if self.values:
            shown = ", ".join(f"{k} = {_short(v)}" for k, v in self.values.items())
            out.append(f"{' ' * width} = values: {shown}")
        notes = (*self.notes, *([self._called()] if self.calls else []))
        out.extend(f"{' ' * width} = note: {_cut(note)}" for note in notes)
        if self.hint:
            first, *rest = _cut(self.hint).splitlines()
            out.append(f"{' ' * width} = help: {first}")
            out.extend(f"{' ' * width}         {line}" for line in rest)
        return "\n".join(out)

    def _called(self) -> str:
        """The calls that led here, in a line."""
        texts = []
        for call in self.calls:
            if isinstance(call, int):
                texts.append(f"{call:,} more")
            elif call.line:
                file = f"{call.source}:" if call.source != self.where.source else "line "
                texts.append(f"{file}{call.line} in `{call.function}`")
            else:
                texts.append(f"instruction {call.pc} in `{call.function}`")
        return f"called from {', from '.join(texts)}"


def _caller(call: Where | int) -> dict[str, Any]:
    """A call that led to an error, as plain values."""
    if isinstance(call, int):
        return {"left_out": call}
    return {
        "source": call.source,
        "line": call.line,
        "column": call.column,
        "end": call.end,
        "function": call.function,
        "instruction": call.pc,
    }


MAX_SHOWN = 20
"""The number of messages about a text that are shown; most of the others follow from these."""
MAX_TEXT = 4000
"""The number of characters of a message that are shown."""


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


MAX_LINE = 160
"""The number of characters of a source line that are shown."""


def _near(text: str, labels: list[Label]) -> tuple[str, list[Label]]:
    """The part of a very long line around its first label, cut before any other processing."""
    room = 4 * MAX_LINE
    if len(text) <= room:
        return text, labels
    first = max(0, min(b.column for b in labels) - 1 - room // 2)
    near = [
        Label(b.line, b.column - first, min(b.end - first, room + 1), b.text)
        for b in labels
        if b.column - first <= room
    ]
    return text[first : first + room], near


def _expanded(text: str, label: Label) -> Label:
    """The label with its columns after tabs are expanded to spaces."""
    start = len(text[: label.column - 1].expandtabs(4)) + 1
    end = len(text[: max(label.end, label.column + 1) - 1].expandtabs(4)) + 1
    return Label(label.line, start, max(end, start + 1), label.text)


def _window(text: str, labels: list[Label]) -> tuple[str, list[Label]]:
    """A printable line: control characters are replaced, and a long line is cut to its labels."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    if len(text) <= MAX_LINE:
        return text, labels
    first = max(0, min(b.column for b in labels) - MAX_LINE // 3)
    cut = text[first : first + MAX_LINE]
    shown = ("…" if first else "") + cut + ("…" if first + MAX_LINE < len(text) else "")
    shift = first - (1 if first else 0)
    moved = []
    for b in labels:
        column = b.column - shift
        if column <= MAX_LINE + 2:
            end = min(b.end - shift, max(len(shown), column) + 1)
            moved.append(Label(b.line, column, end, b.text))
    return shown, moved


def _marks(labels: Sequence[Label]) -> list[str]:
    """Caret lines under one source line: all carets, then hanging texts from right to left.

    The rightmost text follows its caret on the caret line; the others hang below theirs.
    """
    ordered = sorted(labels, key=lambda b: b.column)
    line = [" "] * max(b.end - 1 for b in ordered)
    for k, b in enumerate(ordered):
        for c in range(b.column - 1, b.end - 1):
            line[c] = "^" if k == 0 else "-"
    rows = ["".join(line) + (f" {ordered[-1].text}" if ordered[-1].text else "")]
    for b in reversed(ordered[:-1]):
        if b.text:
            rows.append(" " * (b.column - 1) + b.text)
    return rows


def _short(value: Any) -> str:
    text = plainly(value)
    return text if len(text) <= 120 else text[:117] + "..."


def _plain(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > 10_000:
        return _short(value)
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else repr(value)
    return _short(value)


class Fault(BaseException):
    """The content of an error: a code, a message, a place, values, notes and a hint."""

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: Where | None = None,
        values: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        hint: str = "",
        time: int | None = None,
        direction: int = 1,
    ) -> None:
        self.code = code
        self.message = message
        self.where = where or Where()
        self.values: dict[str, Any] = dict(values or {})
        self.notes = tuple(notes)
        self.hint = hint
        self.time = time
        """The machine's time at the failing instruction, if there was a run."""
        self.direction = direction
        """1 if the function's code was run as written, -1 if backwards."""
        self.calls: tuple[Where | int, ...] = ()
        """The calls that led to where it happened; see `Diagnostic`."""
        super().__init__(message)

    def put(self, words: Callable[[str], str]) -> None:
        """Put it in other words, those of a front end."""
        self.message, self.hint = words(self.message), words(self.hint)
        self.notes = tuple(map(words, self.notes))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics to show: one, or all those of an assembly."""
        notes = self.notes
        if self.time is not None:
            way = "forwards" if self.direction > 0 else "backwards"
            at = f" in `{self.where.function}`" if self.where.function else ""
            notes = (f"at time {self.time}, running {way}{at}", *notes)
        return (
            Diagnostic(
                self.code,
                self.message,
                self.where,
                values=self.values,
                notes=notes,
                hint=self.hint,
                calls=self.calls,
            ),
        )

    def shown(self, show: Callable[[Diagnostic], str], between: str = "\n") -> str:
        """The first messages, formatted by `show`, and the number of those left out."""
        found = self.diagnostics
        texts = [show(d) for d in found[:MAX_SHOWN]]
        if len(found) > MAX_SHOWN:
            texts.append(f"and {len(found) - MAX_SHOWN} more")
        return between.join(texts)

    def __str__(self) -> str:
        return self.shown(Diagnostic.human, "\n\n")

    def __reduce__(self) -> tuple[Any, ...]:
        # By its parts, not by another call of __init__: subclasses have arguments of their own.
        state = self.__dict__ | {"values": {k: _portable(v) for k, v in self.values.items()}}
        return _revived, (type(self), self.args), state


def _revived(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """An error without its contents, which `pickle` and `copy` restore."""
    return kind.__new__(kind, *args)


def _portable(value: Any) -> Any:
    """A value that can be sent to another process: itself, or its text if it cannot be pickled.

    An error must arrive: if a worker sent something unreadable, its pool would wait forever.
    """
    if type(value) in (bool, int, float, complex, str, bytes, type(None)):
        return value
    import pickle

    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        return _short(value)
    return value


class RvmError(Fault, Exception):
    """Base of all errors of the machine and its tools."""


class CollectedError(RvmError):
    """Several errors found together: `diagnostics` has all of them, warnings included."""

    def __init__(self, found: Sequence[Diagnostic]) -> None:
        first = next(d for d in found if d.severity == "error")
        super().__init__(
            first.code,
            first.message,
            where=first.where,
            values=first.values,
            notes=first.notes,
            hint=first.hint,
        )
        self._found = tuple(found)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self._found


class AssemblyError(CollectedError):
    """A source text with errors."""


class AssemblyWarning(UserWarning):
    """A likely error in a source text that assembles; `diagnostic` has the details."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic

    def __str__(self) -> str:
        d = self.diagnostic
        return f"{d.message} [{d.code}]" + (f"; {d.hint}" if d.hint else "")


class BytecodeError(RvmError):
    """A file that is not a valid bytecode file."""


class VerifyError(CollectedError):
    """Bytecode that the verifier refuses before any run."""


class InputError(RvmError):
    """Arguments that a function does not accept."""


class UsageError(RvmError):
    """A wrong use of the interface: an unknown name, engine or option."""

    exit_code = 2


class BudgetError(UsageError):
    """No schedule fits a budget; `values` and the hint give the least budget that suffices."""


class ScheduleError(RvmError):
    """A schedule that breaks a rule of its game; `values` has the index of the action."""


class MachineError(RvmError):
    """An error at run time unrelated to reversibility: a bad index, a division by zero."""

    exit_code = 3


class LimitError(MachineError):
    """A run was ended by a limit on steps or memory; no data is lost."""


class AssertionFailed(MachineError):
    """An assertion that the program makes does not hold."""

    exit_code = 4


class InvertibilityError(RvmError):
    """A reversibility check failed: both values or conditions are in `values`."""

    exit_code = 4
    excess = 0.0
    """For a residue that may be due to rounding: its ratio to the allowed residue."""
    doubtful: Literal["residue", "expected"] = "residue"
    """The value in question: the residue, or the expected value."""


class Interrupted(Fault, KeyboardInterrupt):
    """A run was stopped by Ctrl-C.

    It is a KeyboardInterrupt, which `except Exception` does not catch.

    It replaces the exception of Python's own signal handler, never that of another handler.
    """

    exit_code = 130


class DefinitionError(RvmError):
    """An opcode or function with an invalid definition, refused when it is defined."""


class InternalError(RvmError):
    """A bug in rvm."""

    exit_code = 70
