"""Commands that travel: steps, seeks, and searches for the last write to a place."""

from __future__ import annotations

from rvm.faults import UsageError
from rvm_tools.debug.console import Console, command, count_of, whole
from rvm_tools.debug.lineage import origin
from rvm_tools.debug.stops import Stop
from rvm_tools.debug.views import arrive

COMPUTED = """\
computed by the inverse code from the present values: it may differ from the original state.  From
here it is another run; going back shows the original states, and `restart` begins again."""
GROUP = "going"


def _said(console: Console, stop: Stop) -> None:
    console.answer.stop = stop
    arrive(console, stop)


def _steps(names: dict[str, str], how: str, what: str) -> None:
    """A step forwards (or where the direction points), and its opposite; both with long names."""
    for (name, long), fixed in zip(names.items(), (0, -1), strict=True):

        def run(console: Console, rest: str, fixed: int = fixed, name: str = name) -> None:
            n = count_of(rest, f"{name} [N]")
            _said(console, getattr(console.session, how)(n, fixed or console.direction))

        text = "the same, backwards" if fixed else what
        command(f"{name} [N]", text, *([long] if long else []), repeats=True)(run)


_steps({"s": "step", "rs": "reverse-step"}, "step", "to the beginning of the next line, into calls")
_steps({"n": "", "rn": "reverse-next"}, "next", "to the beginning of the next line, over calls")
_steps({"si": "stepi", "rsi": "reverse-stepi"}, "instruction", "one bytecode instruction")


@command("fin", "go on until this function returns", "finish")
def finish(console: Console, rest: str) -> None:
    _said(console, console.session.finish(console.direction))


@command("rfin", "go back to where it was called", "reverse-finish")
def reverse_finish(console: Console, rest: str) -> None:
    _said(console, console.session.finish(-1))


def _resume(console: Console, rest: str, direction: int) -> None:
    stop = console.session.stop
    for _ in range(count_of(rest, "c [N]")):
        stop = console.session.resume(direction)
        if stop.reason not in ("breakpoint", "watchpoint"):
            break
    _said(console, stop)


@command("c [N]", "go on to a stop, or the end", "continue", repeats=True)
def resume(console: Console, rest: str) -> None:
    _resume(console, rest, console.direction)


@command("rc [N]", "go back to a stop, or the start", "reverse-continue", repeats=True)
def reverse_resume(console: Console, rest: str) -> None:
    _resume(console, rest, -1)


@command(
    "direction [forward|reverse]", "the direction of s, n, si, fin and c", takes="forward|reverse"
)
def direction(console: Console, rest: str) -> None:
    if rest:
        if not ("forwards".startswith(rest) or "reverse".startswith(rest)):
            raise UsageError("U036", f"`{rest}` is not a direction", hint="forward or reverse")
        console.reverse = rest.startswith("r")
    console.out(f"s, n, si, fin and c go {'backwards' if console.reverse else 'forwards'}")


@command(
    "goto T | +N | -N | P% | start | end | @MARK",
    "go to a time; only T needs the word `goto`",
    takes="time",
)
def goto(console: Console, rest: str) -> None:
    session = console.session
    if not rest:
        raise UsageError("U036", "where to?", hint="goto 120, +10, -10, 50%, start, end, @mark")
    _said(console, session.goto(time_of(console, rest)))


def time_of(console: Console, text: str) -> int:
    """The time that a text means."""
    session = console.session
    text = text.strip()
    if text == "start":
        return 0
    if text == "end":
        return session.length if session.length is not None else 1 << 62
    if text.startswith("@"):
        name = text[1:]
        if name not in session.marks:
            known = ", ".join(f"@{m}" for m in session.marks) or "none yet"
            raise UsageError("U033", f"there is no mark `{text}`", hint=f"marks: {known}")
        return session.marks[name]
    if text.endswith("%"):
        try:
            part = float(text[:-1]) / 100
        except ValueError:
            part = -1.0
        if not 0 <= part <= 1:
            raise UsageError("U036", f"`{text}` is not a part of the run", hint="0% to 100%")
        return round(part * session.find_end())
    number = whole(text)
    if number is None:
        raise UsageError(
            "U036", f"`{text}` is not a time", hint="a number, +N, -N, 50%, start, end or @mark"
        )
    return max(0, session.time + number) if text[0] in "+-" else number


@command("back [N] | --inverse [N]", "go to the time visited before; or undo", repeats=True)
def back(console: Console, rest: str) -> None:
    if not rest.startswith("--inverse"):
        _said(console, console.session.revisit(-count_of(rest, "back [N]")))
        return
    count = rest.removeprefix("--inverse").strip()
    ticks = count_of(count, "back --inverse [N]") if count else None
    stop = console.session.compute_back(ticks)
    console.out(COMPUTED, "head")
    _said(console, stop)


@command("forward [N]", "return from a `back`", repeats=True)
def forward(console: Console, rest: str) -> None:
    _said(console, console.session.revisit(count_of(rest, "forward [N]")))


@command("last PLACE", "go back to the last change of a place", takes="place", repeats=True)
def last(console: Console, rest: str) -> None:
    _write(console, rest, -1)


@command("next PLACE", "go on to the next change of a place", takes="place", repeats=True)
def following(console: Console, rest: str) -> None:
    if not rest or rest.isdigit():
        _said(console, console.session.next(count_of(rest, "next [N]"), console.direction))
        return
    _write(console, rest, 1)


def _write(console: Console, place: str, direction: int) -> None:
    if not place:
        raise UsageError("U036", "which place?", hint="last x[3]")
    session = console.session
    stop, event = session.seek_write(place, direction)
    console.answer.stop = stop
    if event is None:
        console.out(_nobody(stop, place, direction), "head")
    else:
        old, new = str(event.data["old"]), str(event.data["new"])
        if direction < 0:
            old, new = new, old
        verb = "was written here:" if direction < 0 else "was written:"
        if "edit" in event.data:
            verb = f"was edited at t={stop.time + (direction < 0)}:"
        told = event.data.get("elements", f"{old} -> {new}")
        console.out(f"{event.data['place']} {verb} {told}", "changed")
        console.answer.data["write"] = {"place": event.data["place"], "old": old, "new": new}
    arrive(console, stop, events=False)
    if session.selected >= 0:
        console.out(f"looking at frame #{session.depth}, {session.frame.code.name}", "dim")


def _nobody(stop: Stop, place: str, direction: int) -> str:
    if stop.reason == "gone":
        way = "was called with this value" if direction < 0 else "has returned"
        return f"nothing in this function changes {place} " + (
            f"before: it {way}" if direction < 0 else f"any more: it {way}"
        )
    if stop.reason == "start":
        return f"nothing has changed {place} since the start"
    if stop.reason == "end":
        return f"nothing changes {place} up to the end"
    return f"the search for {place} ended: {stop.reason}"


@command("origin PLACE", "go back to where its value was created", takes="place")
def origin_of(console: Console, rest: str) -> None:
    if not rest:
        raise UsageError("U036", "of which place?", hint="origin x[3]")
    links = origin(console.session, rest)
    console.answer.stop = console.session.stop
    width = max(len(k.place) for k in links)
    for link in links:
        at = f"{link.function}:{link.line}" if link.line else link.function
        console.out(
            f"  t={link.time:<8} {link.place:<{width}} = {link.value:<12} {link.how}  ({at})"
        )
    console.answer.data["origin"] = [
        {"time": k.time, "place": k.place, "value": k.value, "how": k.how, "line": k.line}
        for k in links
    ]
    arrive(console, console.session.stop, events=False)


@command("restart", "begin again with the inputs as they were")
def restart(console: Console, rest: str) -> None:
    _said(console, console.session.restart())
