"""The console's views: the machine's position, code, frames and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from rvm_asm.disassemble import instruction_texts

from rvm.codes.words import count
from rvm.faults import UsageError
from rvm.image import Code, image_of
from rvm.image.traps import same
from rvm.program import Function, Program, Register
from rvm.state import Frame
from rvm.types import Array, RegisterType, Stack, elem_of
from rvm_tools.debug.expressions import record_leaves
from rvm_tools.debug.lines import line_of, line_starts, source_name
from rvm_tools.debug.stops import Stop
from rvm_tools.debug.texts import MAX_MARKED, differs, elements_changed, raw_text
from rvm_tools.show import leaves, number_text, register_name, seen

if TYPE_CHECKING:
    from rvm_tools.debug.console import Console

_AROUND = 4
"""Lines of source shown before and after the present one."""
MAX_CHANGES = 8
_ERASED = """\
The inverse code was executed from the present values, and the run has erased bits, which cannot
be restored by undoing.  `restart` begins again."""


def position(frame: Frame, innermost: bool) -> int:
    """The index of a frame's present instruction in its code; its length at the end."""
    return frame.pc if innermost else min(frame.pc, max(len(frame.code) - 1, 0))


def _place_of(code: Code, pc: int) -> str:
    """`sort.rasm:12`, or the instruction if there is no source."""
    if pc >= len(code):
        return "at its end"
    source, line = line_of(code, pc)
    if source < 0:
        return f"@{code.forward_pc(pc)}"
    return f"{source_name(code.image.program, source)}:{line}"


def frame_text(frame: Frame, innermost: bool) -> str:
    """A frame in a line: its function and position."""
    undone = " (being undone)" if frame.code.undo else ""
    at = _place_of(frame.code, position(frame, innermost))
    return f"{frame.code.name}{undone} {at if at.startswith('at') else f'at {at}'}"


# ---------------------------------------------------------------- arriving


def arrive(console: Console, stop: Stop, *, events: bool = True) -> None:
    """Report where a journey has led: the reason, the line, and changes in this frame."""
    session = console.session
    for event in stop.events if events else ():
        console.out(event.text, "changed" if event.kind == "watchpoint" else "head")
    if stop.error is not None:
        failed = stop.reason == "error"
        console.out(str(stop.error) if failed else stop.error.message, "error")
        if failed and stop.direction < 0 and session.machine.erased_bits:
            console.out(_ERASED, "head")
    frame = session.frames[-1]
    undone = ", being undone" if frame.code.undo else ""
    at = _place_of(frame.code, frame.pc)
    edge = f"  ({stop.reason} of the program)" if stop.reason in ("start", "end") else ""
    console.out(f"t={stop.time}  {frame.code.name}{undone}  {at}{edge}", "head")
    text = _current_line(session.program, frame)
    if text is not None:
        console.out(text, "current")
    for change in _changes(console):
        console.out(f"  * {change}", "changed")
    for shown in session.displays:
        _display(console, shown)


def value(console: Console, name: str, t: RegisterType | None, raw: Any, margin: str = "") -> None:
    """`name = value`; a value of several lines is printed as a block."""
    head = f"{margin}{name} = "
    text = raw_text(t, raw, console.width - len(head))
    console.out(head + text.replace("\n", "\n" + " " * len(head)))


def _display(console: Console, text: str) -> None:
    frame = console.session.frame
    try:
        fields = record_leaves(frame.code.function, text)
        for name, slot in fields or ():
            value(console, name, frame.code.function.registers[slot].type, frame.regs[slot], "  ")
        if fields is None:
            value(console, text, *console.session.evaluate(text), "  ")
    except Exception as error:
        console.out(f"  {text} = <{getattr(error, 'message', error)}>", "dim")


def _current_line(program: Program, frame: Frame) -> str | None:
    """The source line of a frame's position; without a source, the instruction."""
    code, pc = frame.code, frame.pc
    if pc >= len(code):
        return None
    source, line = line_of(code, pc)
    if source < 0 or source >= len(program.sources):
        return f"> @{code.forward_pc(pc)}  {texts_of(code)[pc]}"
    text = (program.sources[source].line(line) or "").expandtabs(4)
    inside = pc not in line_starts(code)
    how = "inside" if inside else "undoing it" if code.undo else ""
    mid = f"   [{how}: {texts_of(code)[pc]}]" if how else ""
    return f"> {line:>4}  {text}{mid}"


def _changes(console: Console) -> list[str]:
    """The registers of the innermost frame that differ from when the command began."""
    session = console.session
    frame, old = session.before
    top = session.frames[-1]
    if frame is not top:
        return []
    out = list(differences(top.code.function, old, top.regs, console.width - 6))
    if len(out) > MAX_CHANGES:
        out = [*out[:MAX_CHANGES], f"and {len(out) - MAX_CHANGES} more"]
    return out


def differences(function: Function, old: list[Any], new: list[Any], width: int) -> Iterator[str]:
    """`name  old -> new` for each register that differs; of an array, the elements that do."""
    for slot, (name, register) in named_registers(function).items():
        a, b, t = old[slot], new[slot], elem_of(register.type)
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape:
            if not same(a, b):
                yield elements_changed(name, t, a, b, width)
        elif a is None and isinstance(b, np.ndarray) and b.size > MAX_MARKED:
            continue
        elif (a is None) != (b is None) or not same(a, b):
            one, two = (_on_a_line(raw_text(*seen(register, v), width)) for v in (a, b))
            yield f"{name}  {one} -> {two}"


def _on_a_line(text: str) -> str:
    return " ".join(text.split())


def named_registers(function: Function) -> dict[int, tuple[str, Register]]:
    """By index the registers that people see: a name (of a record's leaf its path), and itself."""
    named = {
        slot: name for p in function.params for name, slot in leaves(function, p.layout, p.name)
    }
    registers = enumerate(function.registers)
    return {k: (named.get(k, r.name), r) for k, r in registers if not r.is_own}


# ---------------------------------------------------------------- code


def texts_of(code: Code) -> list[str]:
    """A code's instructions as text, made once."""
    found = code.compiled.get("texts")
    if not isinstance(found, list):
        program = code.image.program
        functions = {f.name: f for f in program.functions}
        from dataclasses import replace

        function = replace(code.function, code=code.instrs)
        found = code.compiled["texts"] = instruction_texts(function, functions)
    return found


def listing(console: Console, line: int | None = None) -> bool:
    """The source around a line, with marks: `>` for the machine's position, `b` for breakpoints.

    Returns whether there are more lines after them.
    """
    session = console.session
    frame = session.frame
    innermost = session.depth == len(session.frames) - 1
    pc = position(frame, innermost)
    code = frame.code
    source, here = line_of(code, min(pc, max(len(code) - 1, 0))) if len(code) else (-1, 0)
    if source < 0 or source >= len(session.program.sources):
        disassembly(console)
        return False
    if pc >= len(code):
        here = -1
    text = session.program.sources[source].text.rstrip("\n").split("\n")
    if line is not None:
        middle = line
    elif here > 0:
        middle = here
    else:
        middle = max(line_of(code, p)[1] for p in range(len(code)))
    first = max(1, middle - _AROUND)
    if first > len(text):
        name = source_name(session.program, source)
        raise UsageError("U031", f"{name} has {count(len(text), 'line')}")
    breaks = {b.target.line for b in session.breaks if b.target.source == source}
    for number in range(first, min(len(text), first + 2 * _AROUND) + 1):
        mark = ">" if number == here else " "
        flag = "b" if number in breaks else " "
        row = f"{mark}{flag}{number:>4}  {text[number - 1].expandtabs(4)}"
        row = row if len(row) <= console.width else row[: console.width - 1] + "…"
        console.out(row, "current" if number == here else "source")
    console.page["l"] = first + 3 * _AROUND + 1
    return first + 2 * _AROUND < len(text)


def disassembly(console: Console, name: str = "", inverse: bool = True) -> None:
    """Bytecode around the machine's position, with the inverse beside each instruction."""
    session = console.session
    frame = session.frame
    code = frame.code
    innermost = session.depth == len(session.frames) - 1
    pc = position(frame, innermost)
    if name:
        code, pc = image_of(session.program).code(name, False), -1
        first, last = 0, len(code)
    else:
        first, last = max(0, pc - 2 * _AROUND), min(len(code), pc + 2 * _AROUND + 1)
    undone = " (being undone)" if code.undo else ""
    console.out(f"{code.name}{undone}, {len(code)} instructions", "head")
    for row, style in instruction_rows(code, range(first, last), pc, console.width):
        console.out(row, style)
    if pc == len(code):
        console.out(f"> {pc:>4}  the end", "current")


def instruction_rows(
    code: Code, pcs: range | list[int], here: int, width: int
) -> Iterator[tuple[str, str]]:
    """Lines of bytecode, each with its inverse."""
    other = code.image.code(code.name, not code.undo)
    texts, undos = texts_of(code), texts_of(other)
    last = len(code) - 1
    column = max((len(texts[p]) for p in pcs), default=0)
    column = min(column, max(20, (width - 12) // 2))
    for p in pcs:
        mark = ">" if p == here else " "
        text = texts[p] if len(texts[p]) <= column else texts[p][: column - 1] + "…"
        row = f"{mark} {p:>4}  {text:<{column}}   {undos[last - p]}"
        row = row if len(row) <= width else row[: width - 1] + "…"
        yield row, "current" if p == here else "source"


# ---------------------------------------------------------------- values


def registers(console: Console, *, adjoints: bool = True) -> None:
    """The selected frame's registers: parameters first, changed ones marked, adjoints beside."""
    session = console.session
    frame = session.frame
    function, regs = frame.code.function, frame.regs
    old = session.before[1] if session.before[0] is frame else None
    named = named_registers(function)
    index = {name: k for k, (name, _) in named.items()}
    bars = {k: index[bar_name(n)] for k, (n, _) in named.items() if bar_name(n) in index}
    beside = set(bars.values())
    rows = []
    for k, (name, register) in named.items():
        if (k >= function.n_args and regs[k] is None) or (adjoints and k in beside):
            continue
        marks = "*" if old is not None and differs(old[k], regs[k]) else " "
        value = raw_text(*seen(register, regs[k]), console.width - 30)
        bar = ""
        if adjoints and k in bars:
            slot = bars[k]
            bar = f"adjoint {raw_text(*seen(named[slot][1], regs[slot]), console.width - 30)}"
            if old is not None and differs(old[slot], regs[slot]):
                marks = "*"
        rows.append((marks, name, register_name(register, regs[k]), value, bar))
    if not rows:
        console.out("  (no registers)")
        return
    names = max(len(r[1]) for r in rows)
    types = max(len(r[2]) for r in rows)
    values = max((len(r[3]) for r in rows if r[4]), default=0)
    for marks, name, t, value, bar in rows:
        head = f"{marks} {name:<{names}}  {t:<{types}}  "
        style = "changed" if marks == "*" else ""
        if bar and len(head) + values + len(bar) + 3 <= console.width and "\n" not in value:
            console.out(f"{head}{value:<{values}}   {bar}", style)
            continue
        first, *more = value.split("\n")
        console.out(head + first, style)
        for line in more:
            console.out(" " * len(head) + line, style)
        if bar:
            for line in bar.split("\n"):
                console.out(" " * len(head) + line, style)


def bar_name(name: str) -> str:
    """The name of a register's adjoint: `x_bar`, and for a record's leaf `b_bar.x`."""
    head, dot, rest = name.partition(".")
    return f"{head}_bar{dot}{rest}"


def backtrace(console: Console, most: int = 0) -> None:
    """The frames, innermost first: `most` of them, or of many the first and the last."""
    session = console.session
    last = len(session.frames) - 1
    shown = list(range(last, -1, -1))
    if most:
        shown = shown[:most]
    for depth in shown if len(shown) <= 40 else [*shown[:20], -1, *shown[-10:]]:
        if depth < 0:
            console.out(f"      … {len(shown) - 30} more frames", "dim")
            continue
        mark = ">" if depth == session.depth else " "
        frame = session.frames[depth]
        console.out(f"{mark} #{depth:<3} {frame_text(frame, depth == last)}")


def array_rows(
    console: Console, text: str, t: Array | Stack, raw: Any, old: Any, start: int, stop: int
) -> None:
    """Elements `start` to `stop` (of the first axis), several a row, changed ones marked."""
    elem = elem_of(t)
    if isinstance(raw, np.ndarray) and raw.ndim > 1:
        label = len(f"{text}[{stop - 1}]")
        for i in range(start, stop):
            marked = old is not None and i < len(old) and not same(old[i], raw[i])
            shown = raw_text(Array(elem, raw.ndim - 1), raw[i], console.width - label - 4)
            mark = "*" if marked else " "
            cells = f"{mark} {f'{text}[{i}]':<{label}}  {shown}"
            cells = cells.replace("\n", "\n" + " " * (label + 4))
            console.out(cells, "changed" if marked else "")
        return
    texts = []
    for i in range(start, stop):
        changed = old is not None and i < len(old) and not same(old[i], raw[i])
        texts.append(number_text(elem, raw[i]) + ("*" if changed else ""))
    cell = max((len(x) for x in texts), default=1) + 2
    digits = len(str(stop))
    per = max(1, (console.width - digits - 4) // cell)
    per = next((k for k in (20, 16, 10, 8, 5, 4, 2, 1) if k <= per), 1)
    for row in range(0, len(texts), per):
        line = "".join(f"{x:>{cell}}" for x in texts[row : row + per])
        console.out(f"  {start + row:>{digits}}:{line}")
