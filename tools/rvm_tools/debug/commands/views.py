"""Commands that show: values, frames, code, and the costs of the run."""

from __future__ import annotations

import re

import numpy as np

from rvm.codes.words import count
from rvm.expr import Place
from rvm.faults import UsageError
from rvm.stmt import Branch, Land
from rvm.types import Array, Stack
from rvm_tools.debug import views
from rvm_tools.debug.commands.moves import time_of
from rvm_tools.debug.commands.stops import described
from rvm_tools.debug.console import COMMANDS, Command, Console, command, count_of
from rvm_tools.debug.costs import FLOOR, energy_lines, floor, profile, taken, tally_lines
from rvm_tools.debug.expressions import record_leaves, value_of
from rvm_tools.debug.lines import line_of, line_starts
from rvm_tools.debug.texts import PAGE
from rvm_tools.show import seen, type_name
from rvm_tools.trace.energy_models import model

GROUP = "looking"
_SLICE = re.compile(r"(?P<place>.+?)\s*\[\s*(?P<lo>\d*)\s*:\s*(?P<hi>\d*)\s*\]$")


@command("p EXPR", "show a value", "print", takes="expression")
def show_value(console: Console, rest: str) -> None:
    if not rest:
        raise UsageError("U036", "which expression?", hint="p x[i] * 2")
    session = console.session
    frame = session.frame
    fields = record_leaves(frame.code.function, rest)
    if fields is not None:
        for name, slot in fields:
            t = frame.code.function.registers[slot].type
            views.value(console, name, t, frame.regs[slot])
        return
    t, value = session.evaluate(rest)
    console.answer.data["value"] = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(value, complex):
        console.answer.data["value"] = str(value)
    views.value(console, rest, t, value)


@command("disp [EXPR]", "show a value at every stop", "display", takes="expression")
def display(console: Console, rest: str) -> None:
    session = console.session
    if not rest:
        for text in session.displays:
            console.out(f"  {text}")
        if not session.displays:
            console.out("nothing is displayed")
        return
    fields = record_leaves(session.frame.code.function, rest)
    if fields is None:
        session.evaluate(rest)
    if rest not in session.displays:
        session.displays.append(rest)
    show_value(console, rest)


@command("undisp EXPR | all", "no longer", "undisplay", takes="display")
def undisplay(console: Console, rest: str) -> None:
    displays = console.session.displays
    if rest == "all":
        displays.clear()
    elif rest in displays:
        displays.remove(rest)
    else:
        raise UsageError("U036", f"`{rest}` is not displayed")


@command("x ARRAY[a:b]", "elements, a page at a time", takes="place", repeats=True)
def elements(console: Console, rest: str) -> None:
    session = console.session
    if not rest:
        raise UsageError("U036", "which array?", hint="x data[100:200]")
    lo, hi, text = 0, None, rest
    sliced = _SLICE.match(rest)
    if sliced is not None and "," not in rest[sliced.end("place") :]:
        text = sliced["place"]
        lo = int(sliced["lo"] or 0)
        hi = int(sliced["hi"]) if sliced["hi"] else None
    function, regs = session.frame.code.function, session.frame.regs
    place = session.language.place(text, function, regs)
    t = function.registers[place.reg].type if not place.path else place.type
    if not isinstance(t, (Array, Stack)):
        raise UsageError("U032", f"`{text}` is {t}, which has no elements", hint=f"p {text}")
    raw, old = value_of(place, function, regs), _old(console, place)
    if not place.path:
        register = function.registers[place.reg]
        t, raw = seen(register, raw)
        old = seen(register, old)[1]
    assert isinstance(t, (Array, Stack))
    hi = len(raw) if hi is None else min(hi, len(raw))
    lo = min(lo, hi)
    stop = min(hi, lo + _page(t))
    console.out(f"{text}: {type_name(t, raw)}, {lo} to {stop} of {len(raw)}", "head")
    views.array_rows(console, text, t, raw, old, lo, stop)
    console.last = ""
    if stop < hi:
        console.out(f"Enter: the next of {count(hi - stop, 'more element')}", "dim")
        console.last = f"x {text}[{stop}:{hi}]"


def _page(t: Array | Stack) -> int:
    return PAGE if isinstance(t, Array) and t.rank > 1 else 5 * PAGE


def _old(console: Console, place: Place) -> object:
    """A whole array as it was when the last journey began."""
    frame, old = console.session.before
    if place.path or frame is not console.session.frame:
        return None
    return old[place.reg]


@command("bt [N]", "the frames, innermost first; N of them", "backtrace", "where")
def backtrace(console: Console, rest: str) -> None:
    views.backtrace(console, count_of(rest, "bt [N]", 0))


@command("up [N]", "look at the caller")
def up(console: Console, rest: str) -> None:
    session = console.session
    session.select(max(0, session.depth - count_of(rest, "up [N]")))
    views.backtrace(console) if len(session.frames) < 8 else console.out(f"frame {session.depth}")


@command("down [N]", "look at the function called")
def down(console: Console, rest: str) -> None:
    session = console.session
    session.select(min(len(session.frames) - 1, session.depth + count_of(rest, "down [N]")))
    views.backtrace(console) if len(session.frames) < 8 else console.out(f"frame {session.depth}")


@command("frame N", "look at frame N (0 is the outermost)")
def frame(console: Console, rest: str) -> None:
    session = console.session
    session.select(count_of(rest, "frame N", session.depth, 0))
    console.out(f"frame {session.depth}")


@command("l [LINE]", "the source here", "list", repeats=True)
def listing(console: Console, rest: str) -> None:
    if views.listing(console, count_of(rest, "l [LINE]") if rest else None):
        console.last = f"l {console.page['l']}"


@command(
    "dis [FUNC]", "bytecode, with the inverse of each instruction", "disassemble", takes="function"
)
def disassemble(console: Console, rest: str) -> None:
    if rest and rest not in console.session.program:
        raise UsageError("U031", f"there is no function `{rest}`")
    views.disassembly(console, rest)


@command("inverse", "what undoing would change here")
def inverse(console: Console, rest: str) -> None:
    session = console.session
    frame = session.frames[-1]
    code, pc = frame.code, frame.pc
    if pc < len(code):
        here = line_of(code, pc)
        first = max((p for p in line_starts(code) if p <= pc), default=pc)
        pcs = [p for p in range(first, len(code)) if line_of(code, p) == here]
        run = [p for k, p in enumerate(pcs) if p == first + k]
        console.out("the next instructions, and their inverses:", "head")
        for row, style in views.instruction_rows(code, run, pc, console.width):
            console.out(row, style)
    _what_undoing_changes(console)


def _what_undoing_changes(console: Console) -> None:
    """Step back, look, and return; nothing of it is printed or recorded."""
    session = console.session
    if session.time == 0:
        console.out("this is the start: there is nothing to undo", "head")
        return
    time = session.time
    top = session.frames[-1]
    with session.aside():
        session._remember()
        old = session.before[1]
        back = session.next(1, -1)
        frame = session.frames[-1]
        at = views.frame_text(frame, True)
        changed: list[str] = []
        if frame is top:
            changed = list(
                views.differences(frame.code.function, old, frame.regs, console.width - 6)
            )
        session.goto(time)
    console.out(f"going back (rn) leads to {at}, t={back.time}, and changes:", "head")
    for text in changed:
        console.out(f"  {text}", "changed")
    if not changed:
        here = frame is top
        console.out(f"  {'no register' if here else 'the frame: that is another'}", "dim")


@command(
    "info regs|frames|energy|pairs|b|marks",
    "a part of the machine, or the stops set",
    takes="regs|frames|energy|pairs|breakpoints|marks",
)
def info(console: Console, rest: str) -> None:
    topics = {
        "regs": lambda: views.registers(console),
        "frames": lambda: views.backtrace(console),
        "energy": lambda: energy(console, ""),
        "pairs": lambda: _pairs(console),
        "breakpoints": lambda: _probes(console),
        "marks": lambda: _marks(console),
    }
    found = [name for name in topics if rest and name.startswith(rest)]
    if len(found) != 1:
        raise UsageError("U036", "about what?", hint=f"info {'|'.join(topics)}")
    topics[found[0]]()


def _probes(console: Console) -> None:
    session = console.session
    probes = session.probes
    for probe in probes:
        hits = f", hit {count(probe.hits, 'time')}" if probe.hits else ""
        console.out(f"{described(probe)}{hits}")
    if not probes:
        console.out("no breakpoints, tracepoints or watchpoints")


def _marks(console: Console) -> None:
    for name, time in sorted(console.session.marks.items(), key=lambda m: m[1]):
        console.out(f"@{name}  t={time}")
    if not console.session.marks:
        console.out("no marks")


def _pairs(console: Console) -> None:
    """The function's jumps: branches and come-froms, with the present values of the conditions."""
    session = console.session
    frame = session.frame
    code = frame.code
    texts = views.texts_of(code)
    shown = 0
    for pc in range(len(code)):
        branch = code.stmts(pc)[0]
        if not isinstance(branch, Branch):
            continue
        landing = code.stmts(branch.partner)[0]
        assert isinstance(landing, Land)
        out = [_truth(console, branch.cond), _truth(console, landing.cond)]
        console.out(f"  {pc:>4}  {texts[pc]}   now {out[0]}", "source")
        console.out(f"  {branch.partner:>4}  {texts[branch.partner]}   now {out[1]}", "source")
        shown += 1
    if not shown:
        console.out(f"`{code.name}` has no jumps")


def _truth(console: Console, cond: object) -> str:
    frame = console.session.frame
    try:
        found = value_of(cond, frame.code.function, frame.regs)  # type: ignore[arg-type]
    except Exception:
        return "without a value"
    return "true" if found else "false"


@command("energy [MODEL]", "counters here; joules by cmos, adiabatic, …", takes="energy")
def energy(console: Console, rest: str) -> None:
    if rest:
        console.model = model(rest)
    session = console.session
    for line in energy_lines(session):
        console.out(line)
    found: dict[str, object] = {"bits": session.erased, "least": floor(session)}
    if console.model != FLOOR:
        tally = taken(session)
        for line in tally_lines(tally, console.model):
            console.out(line)
        found |= {"model": console.model.name, "joules": console.model.energy(tally)}
    console.answer.data["energy"] = found


@command("prof A B", "the instructions run between two times, by line", "profile", takes="time")
def prof(console: Console, rest: str) -> None:
    parts = rest.split()
    if len(parts) != 2:
        raise UsageError("U036", "from when to when?", hint="prof start end, prof 0 1000")
    a, b = (time_of(console, p) for p in parts)
    for line in profile(console.session, min(a, b), max(a, b)):
        console.out(line)


@command("help [COMMAND]", "these commands", "h", "?", group="other", takes="command")
def help_(console: Console, rest: str) -> None:
    if rest:
        from rvm_tools.debug.console import find

        found, _ = find(rest)
        console.out(f"{found.usage}\n  {found.help}")
        more = [n for n in found.names if n != found.usage.split()[0]]
        if more:
            console.out(f"  also: {', '.join(more)}")
        return
    groups: dict[str, list[Command]] = {}
    for c in dict.fromkeys(COMMANDS.values()):
        groups.setdefault(c.group, []).append(c)
    for group in ("going", "stopping", "looking", "keeping", "other"):
        console.out(f"{group}", "head")
        for c in groups.get(group, []):
            if len(c.usage) > 26:
                console.out(f"  {c.usage}")
            console.out(f"  {c.usage if len(c.usage) <= 26 else '':<27} {c.help}")
    console.out("commands may be abbreviated; Enter repeats; Ctrl-C stops a run, either way", "dim")
