"""The contents of the panes as rows of text: code, registers, frames, elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rvm.image import Code
from rvm.types import Array, Stack
from rvm_tools.debug.console import Answer, Console, OutputLine
from rvm_tools.debug.lines import line_of, source_name
from rvm_tools.debug.session import Session
from rvm_tools.debug.stops import Breakpoint
from rvm_tools.debug.texts import differs, raw_text
from rvm_tools.debug.tui.past import Before
from rvm_tools.debug.views import (
    array_rows,
    bar_name,
    frame_text,
    named_registers,
    position,
    texts_of,
)
from rvm_tools.show import seen, type_name

_Size = tuple[int, int]
"""Width and height, in cells."""
VIEWS = ("source", "bytecode", "inverse")
"""The contents available in the code pane."""
FRAMES = 40
"""Frames that are shown, the innermost ones."""
_TALL = 4
"""Rows that one value takes at most."""
BESIDE = 8
"""The least width of a value with its adjoint beside it."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Code as rows, with the machine's position (-1: in none of them) and the breakpoints.

    `places` are the arguments of the command `b` for each row.
    """

    title: str
    rows: Sequence[str]
    places: Sequence[str]
    here: int
    focus: int
    """The row to be seen: `here`, or the last of the function at its end."""
    breaks: frozenset[int]


@dataclass(frozen=True, slots=True)
class ValueRows:
    """The rows of the registers' pane, and the names of the registers that have elements."""

    title: str
    rows: Sequence[OutputLine]
    arrays: Sequence[str] = ()
    shown: tuple[int, int, int] = (0, 0, 0)
    """For an array: the first element shown, the one after the last, and the number of elements."""


class _Page(Console):
    """A console that collects the output of views, without touching the session's output."""

    def __init__(self, session: Session, width: int) -> None:
        self.session = session
        self.width = width
        self.answer = Answer("")
        self.show = lambda line: None


# ---------------------------------------------------------------- code


def code_of(session: Session, view: str, width: int) -> Listing:
    """The selected frame's code for a pane of this width.

    Without a source, bytecode is shown, and the title says so.
    """
    frame = session.frame
    code = frame.code
    pc = position(frame, session.depth == len(session.frames) - 1)
    where = line_of(code, min(pc, len(code) - 1)) if len(code) else (-1, 0)
    if view == "source" and 0 <= where[0] < len(session.program.sources):
        return _source(session, code, pc, where)
    return _bytecode(session, code, pc, view, width)


def _source(session: Session, code: Code, pc: int, where: tuple[int, int]) -> Listing:
    number, line = where
    text = session.program.sources[number].text.rstrip("\n").split("\n")
    own = next((s.source for s in code.function.spans if s.line), number)
    name = session.program.sources[number].name
    prefix = "" if own == number else f"{name}:"
    breaks = set()
    for b in _enabled(session):
        if b.target.line:
            if b.target.source == number:
                breaks.add(b.target.line - 1)
            continue
        at = [line_of(code, p) for p in b.target.positions(code)]
        breaks |= {row - 1 for source, row in at if source == number}
    return Listing(
        f"source {source_name(session.program, number)}",
        [row.expandtabs(4) for row in text],
        [f"{prefix}{k + 1}" for k in range(len(text))],
        line - 1 if pc < len(code) else -1,
        line - 1,
        frozenset(breaks),
    )


def _bytecode(session: Session, code: Code, pc: int, view: str, width: int) -> Listing:
    rows = list(texts_of(code))
    title = f"bytecode {code.name}"
    if view == "inverse":
        title = f"bytecode {code.name} | what undoes it"
        undos = texts_of(code.image.code(code.name, not code.undo))
        column = min(max(map(len, rows), default=0), max(12, (width - 10) // 2))
        rows = [
            f"{row if len(row) <= column else row[: column - 1] + '…':<{column}} | {undo}"
            for row, undo in zip(rows, reversed(undos), strict=True)
        ]
    elif view == "source":
        title += " (no source here)"
    if code.undo:
        title += " (being undone)"
    breaks = {p for b in _enabled(session) for p in b.target.positions(code)}
    return Listing(
        title,
        [*rows, "(the end)"],
        [f"{code.name}@{code.forward_pc(p)}" for p in range(len(rows))],
        pc,
        pc,
        frozenset(breaks),
    )


def _enabled(session: Session) -> list[Breakpoint]:
    return [b for b in session.breaks if b.enabled]


# ---------------------------------------------------------------- values


def values_of(session: Session, before: Before, width: int) -> ValueRows:
    """The selected frame's registers, with a star at changed ones, and adjoints beside values."""
    frame = session.frame
    function, regs = frame.code.function, frame.regs
    old = before.registers(frame)
    named = named_registers(function)
    index = {name: k for k, (name, _) in named.items()}
    bars = {k: index[bar_name(name)] for name, k in index.items() if bar_name(name) in index}
    column = min(max((len(n) for n, _ in named.values()), default=0), max(8, width // 3))
    rows: list[OutputLine] = []
    arrays = []
    for k, (name, register) in named.items():
        if regs[k] is not None and isinstance(register.type, (Array, Stack)):
            arrays.append(name)
        if k in bars.values() or (k >= function.n_args and regs[k] is None and not _was(old, k)):
            continue
        room = width - column - 4
        value = _cut(raw_text(*seen(register, regs[k]), room))
        bar = ""
        if k in bars:
            slot = bars[k]
            bar = f"adj {_cut(raw_text(*seen(named[slot][1], regs[slot]), room - 4))}"
            changed = old is not None and differs(old[slot], regs[slot])
            bar = f"*{bar}" if changed else f" {bar}"
        marked = old is not None and differs(old[k], regs[k])
        style = "changed" if marked or bar.startswith("*") else ""
        if bar and "\n" not in value + bar and max(len(value), BESIDE) + len(bar) + 1 <= room:
            value, bar = f"{value:<{BESIDE}} {bar}", ""
        head = f"{'*' if marked else ' '} {name:<{column}}  "
        for n, text in enumerate(value.split("\n")):
            rows.append(OutputLine((head if n == 0 else " " * len(head)) + text, style))
        if bar:
            rows += [OutputLine(" " * (len(head) - 1) + text, style) for text in bar.split("\n")]
    if not rows:
        rows.append(OutputLine("  (no registers)", "dim"))
    return ValueRows(f"registers of {frame.code.name}", rows, arrays)


def _cut(text: str) -> str:
    """The first lines of a long value; arrays have pages for the others."""
    lines = text.split("\n")
    return text if len(lines) <= _TALL else "\n".join([*lines[: _TALL - 1], "…"])


def _was(old: list[Any] | None, k: int) -> bool:
    """Whether a register that is not live was so at the last stop: its end is a change."""
    return old is not None and old[k] is not None


def elements_of(session: Session, before: Before, name: str, start: int, size: _Size) -> ValueRows:
    """A page of an array's elements from `start`, as many as a pane of a size holds.

    Changed ones have a star.
    """
    frame = session.frame
    found = [
        (k, r)
        for k, (n, r) in named_registers(frame.code.function).items()
        if n == name and frame.regs[k] is not None
    ]
    if not found or not isinstance(found[0][1].type, (Array, Stack)):
        return ValueRows(name, [OutputLine(f"{name} is not live in this frame", "dim")])
    slot, register = found[0]
    t, raw = seen(register, frame.regs[slot])
    assert isinstance(t, (Array, Stack))
    kept = before.registers(frame)
    old = seen(register, kept[slot])[1] if kept is not None else None
    width, height = size
    page = _Page(session, width)
    stop = min(len(raw), start + _most(t, width, height))
    array_rows(page, name, t, raw, old, start, stop)
    rows = page.answer.lines
    if len(rows) > height > 0:
        count, lines = stop - start, len(rows)
        # Elements that share lines, else lines that elements take.
        fits = -(-count // lines) * height if lines <= count else count * height // lines
        stop = start + max(1, fits)
        rows = rows[: max(1, height)]
    rows = [OutputLine(k.text, "changed") if "*" in k.text else k for k in rows]
    title = f"{name}: {type_name(t, raw)}, {start} to {stop} of {len(raw)}"
    return ValueRows(
        title, rows or [OutputLine("  (no elements)", "dim")], (name,), (start, stop, len(raw))
    )


def _most(t: Array | Stack, width: int, height: int) -> int:
    """More elements of the first axis than a pane can show."""
    return max(1, height) * (1 if isinstance(t, Array) and t.rank > 1 else max(1, width // 2))


def frames_of(session: Session, before: Before) -> list[OutputLine]:
    """The frames, innermost first: `>` is selected, `*` is new or has moved."""
    frames = session.frames
    last = len(frames) - 1
    rows = []
    for depth in range(last, max(-1, last - FRAMES), -1):
        frame = frames[depth]
        marked = before.moved(frame)
        mark = f"{'>' if depth == session.depth else ' '}{'*' if marked else ' '}"
        text = f"{mark} #{depth} {frame_text(frame, depth == last)}"
        rows.append(OutputLine(text, "changed" if marked else ""))
    if last >= FRAMES:
        rows.append(OutputLine(f"   … {last + 1 - FRAMES} more frames", "dim"))
    return rows
