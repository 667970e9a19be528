"""A debugging session: a debugger without a screen.

Methods travel, set probes and inspect; each journey ends in a `Stop`.  Going back runs the inverse
code if that leads to the original states, and otherwise repeats the run from a keyframe: a session
stores only keyframes, whatever the time.  Between commands the machine faces forwards, and is
before the next instruction.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rvm.engines.evaluate import find
from rvm.faults import UsageError
from rvm.image import image_of
from rvm.program import AnyProgram, program_of
from rvm.run.machine import Machine
from rvm.state import Frame, Options
from rvm_tools.debug.edits import check_filled, edited, filled
from rvm_tools.debug.expressions import Language, fixed_place
from rvm_tools.debug.journeys import Arrival, Journey, Onlooker, Visited
from rvm_tools.debug.keyframes import BUDGET, Edit, Keyframe, Keyframes, loses_nothing
from rvm_tools.debug.lines import find_target, line_of
from rvm_tools.debug.stops import Breakpoint, Stop, StopEvent, Watchpoint
from rvm_tools.debug.texts import kept, place_text
from rvm_tools.debug.traps import asked_in_code
from rvm_tools.debug.travel import Traveller

_Say = Callable[[str], object]


class Session:
    """A machine under a debugger.

    `say` receives the lines that tracepoints and the program itself print, as they come.
    """

    def __init__(
        self,
        program: AnyProgram,
        function: str,
        inputs: Mapping[str, Any],
        options: Options | None = None,
        *,
        undo: bool = False,
        say: _Say = print,
        keyframes: int = BUDGET,
    ) -> None:
        self.program = program = program_of(program)
        self.function = function
        self.undo = undo
        self.say = say
        self.options = replace(options or Options(), output=self._output)
        self.inputs = copy.deepcopy(dict(inputs))
        self.keyframes = keyframes
        """Bytes that states of the past may take; see `rvm_tools.debug.keyframes`."""
        self.language = Language(program)
        self.marks: dict[str, int] = {}
        self.displays: list[str] = []
        self.diverged: int | None = None
        """The time of the first edit: before it, the past is another one."""
        self.selected = -1
        """The frame that is looked at, by depth; -1 is the innermost."""
        self._number = 0
        self._visited = Visited()
        self._travel = self._traveller()
        self.before: tuple[Frame | None, list[Any]] = (None, [])
        """The innermost frame and its registers when the last command began."""
        self.stop = self._stopped(Arrival("start"), 1)

    def _machine(self) -> Machine:
        given = copy.deepcopy(self.inputs)
        return Machine.start(self.program, self.function, given, self.options, undo=self.undo)

    def _traveller(self) -> Traveller:
        image = image_of(self.program)
        exact = loses_nothing(image, self.function)
        past = Keyframes(lambda: self._machine().state, exact, self.keyframes)
        made = Traveller(self._machine(), self.say, past)
        made.filled = self._filled  # type: ignore[method-assign]
        return made

    def _output(self, line: str) -> None:
        if not self._travel.muted:
            self.say(line)

    # ------------------------------------------------------------ looking

    @property
    def machine(self) -> Machine:
        return self._travel.machine

    def watched_by(self, onlooker: Onlooker) -> None:
        """Let somebody look on at all journeys."""
        self._travel.onlooker = onlooker

    @property
    def time(self) -> int:
        """Ticks since the start: a step back takes one away."""
        return self.machine.time

    @property
    def work(self) -> int:
        """Ticks executed, in whichever direction."""
        return self._travel.work

    @property
    def length(self) -> int | None:
        """The time at the end, once that is known."""
        return self._travel.length

    @property
    def erased(self) -> int:
        """Bits erased from the start to here."""
        return self.machine.erased_bits

    @property
    def frames(self) -> list[Frame]:
        """The frames, outermost first."""
        return self.machine.state.frames

    @property
    def depth(self) -> int:
        """The selected frame's index."""
        return self.selected if self.selected >= 0 else len(self.frames) - 1

    @property
    def frame(self) -> Frame:
        """The selected frame."""
        return self.frames[self.depth]

    def select(self, depth: int) -> None:
        """Select another frame; UsageError U032 if there is none."""
        if not 0 <= depth < len(self.frames):
            raise UsageError("U032", f"there is no frame {depth}: there are {len(self.frames)}")
        self.selected = depth if depth < len(self.frames) - 1 else -1

    def evaluate(self, text: str) -> tuple[Any, Any]:
        """The type and raw value of an expression in the selected frame."""
        return self.language.value(text, self.frame.code.function, self.frame.regs)

    def _filled(self, message: str) -> str:
        return filled(self.language, self.frames[-1], message)

    # ------------------------------------------------------------ travelling

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A context for a look at another time: no stops, output or records."""
        kept = self.stop, self._visited
        try:
            with self._travel.aside():
                yield
        finally:
            self.stop, self._visited = kept

    def _go(self, journey: Journey) -> Stop:
        self._remember()
        return self._finish(self._travel.travel(journey), journey.direction)

    def _finish(self, arrival: Arrival, direction: int) -> Stop:
        self.selected = -1
        self.stop = self._stopped(arrival, direction)
        self._visited = self._visited.arrived(self.time)
        return self.stop

    def _remember(self) -> None:
        """Keep the innermost registers, to mark changes."""
        self.before = self.frames[-1], kept(self.frames[-1].regs)

    def _stopped(self, arrival: Arrival, direction: int) -> Stop:
        top = self.frames[-1]
        code = top.code
        pc = top.pc if top.pc < len(code) else -1
        line = line_of(code, pc)[1] if pc >= 0 else 0
        return Stop(
            arrival.reason,
            self.time,
            self.work,
            direction,
            code.name,
            max(line, 0),
            code.forward_pc(pc) if pc >= 0 else -1,
            tuple(arrival.events),
            arrival.error,
        )

    def _repeat(self, journey: Journey, count: int) -> Stop:
        """The same journey a number of times; ends early if there is another reason to stop."""
        self._remember()
        arrival = Arrival("step")
        for _ in range(max(count, 1)):
            arrival = self._travel.travel(journey)
            if arrival.reason != "step":
                break
        return self._finish(arrival, journey.direction)

    def interrupt(self, asked: bool = True) -> None:
        """Request the end of the active journey, as Ctrl-C does, or withdraw this.

        Any thread may.
        """
        self._travel.interrupt(asked)

    def step(self, count: int = 1, direction: int = 1) -> Stop:
        """Go to the beginning of the next line, into calls."""
        return self._repeat(Journey(direction, lines=True), count)

    def next(self, count: int = 1, direction: int = 1) -> Stop:
        """Go to where the next line of this function begins, over calls."""
        return self._repeat(Journey(direction, over=True), count)

    def finish(self, direction: int = 1) -> Stop:
        """Continue until the innermost function returns; backwards: to before its call."""
        return self._go(Journey(direction, out=True))

    def instruction(self, count: int = 1, direction: int = 1) -> Stop:
        """Execute instructions; going back, undo them."""
        return self._go(Journey(direction, ticks=max(count, 1)))

    def resume(self, direction: int = 1) -> Stop:
        """Continue to a breakpoint, a watched change, or the end."""
        return self._go(Journey(direction))

    def goto(self, time: int) -> Stop:
        """Go to a time, at the speed of the fastest engine; stops at either end."""
        direction = 1 if time >= self.time else -1
        self._remember()
        return self._finish(self._travel.seek(max(time, 0)), direction)

    def find_end(self) -> int:
        """The time at the end; goes there if it is not known yet."""
        if self.length is None:
            here = self.time
            arrival = self._travel.travel(Journey(1, quiet=True))
            if self.length is None:
                self._finish(arrival, 1)
                raise UsageError("U033", "the program does not reach an end from here")
            self._travel.seek(here)
        assert self.length is not None
        return self.length

    def revisit(self, places: int) -> Stop:
        """Go to a time that was visited before (negative: earlier ones), as a browser does."""
        visited = self._visited.moved(places)
        stop = self.goto(visited.times[visited.place])
        if stop.time == visited.times[visited.place]:
            self._visited = visited
        return stop

    def restart(self) -> Stop:
        """Begin again with the inputs as they were given; edits are gone, probes stay."""
        old = self._travel
        made = self._traveller()
        made.restarted(old, self.diverged)
        self._travel, self.diverged = made, None
        self._visited = Visited()
        return self._finish(Arrival("start"), 1)

    # ------------------------------------------------------------ probes

    @property
    def breaks(self) -> list[Breakpoint]:
        return self._travel.breaks

    @property
    def watches(self) -> list[Watchpoint]:
        return self._travel.watches

    @property
    def probes(self) -> list[Breakpoint | Watchpoint]:
        """All breakpoints, tracepoints and watchpoints, by number."""
        both: list[Breakpoint | Watchpoint] = [*self.breaks, *self.watches]
        return sorted(both, key=lambda p: p.number)

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def break_at(
        self,
        where: str,
        condition: str = "",
        *,
        temporary: bool = False,
        message: str | None = None,
    ) -> Breakpoint:
        """A breakpoint at a line, function, label or instruction; with a message, a tracepoint."""
        image = image_of(self.program)
        target = find_target(image, where, self.frame.code)
        guards = {}
        if condition:
            for name in self.program:
                code = image.code(name, False)
                if target.positions(code):
                    regs = self.frame.regs if self.frame.code.name == name else None
                    guards[name] = self.language.condition(condition, code.function, regs)
        if message is not None:
            for name in self.program:
                if target.positions(image.code(name, False)):
                    check_filled(self.language, image.code(name, False).function, message)
        made = Breakpoint(self._next_number(), target, condition, guards, temporary)
        made.message = message
        self.breaks.append(made)
        self._travel.version += 1
        return made

    def watch(self, text: str, condition: str = "", *, reads: bool = False) -> Watchpoint:
        """Watch a place of the selected frame for changes, or for being read."""
        made = self._watch(self._number + 1, text, condition, reads)
        self._next_number()
        self.watches.append(made)
        self._travel.version += 1
        return made

    def _watch(
        self, number: int, text: str, condition: str = "", reads: bool = False
    ) -> Watchpoint:
        frame = self.frame
        function = frame.code.function
        place = self.language.place(text, function, frame.regs)
        place = fixed_place(place, function, frame.regs)
        if frame.regs[place.reg] is not None:
            find(place, frame.regs)
        guard = self.language.condition(condition, function, frame.regs) if condition else None
        shown = place_text(place, function)
        made = Watchpoint(number, shown, place, self.depth, function.name, reads, condition, guard)
        made.in_code = guard is not None and asked_in_code(guard, place, frame.code)
        return made

    def probe(self, number: int) -> Breakpoint | Watchpoint:
        """The breakpoint or watchpoint with a number; UsageError U034 if there is none."""
        for p in self.probes:
            if p.number == number:
                return p
        raise UsageError("U034", f"there is no breakpoint or watchpoint {number}")

    def delete(self, number: int) -> None:
        """Remove a breakpoint or watchpoint."""
        gone = self.probe(number)
        if isinstance(gone, Breakpoint):
            self.breaks.remove(gone)
        else:
            self.watches.remove(gone)
        self._travel.version += 1

    def enable(self, number: int, on: bool = True) -> None:
        """Let a breakpoint or watchpoint stop again, or not."""
        self.probe(number).enabled = on
        self._travel.version += 1

    def ignore(self, number: int, count: int) -> None:
        """Pass a breakpoint or watchpoint a number of times, in either direction."""
        self.probe(number).ignore = count

    # ------------------------------------------------------------ writes

    def seek_write(self, text: str, direction: int) -> tuple[Stop, StopEvent | None]:
        """Go to the last (or next) instruction that changed a place; None if there is none.

        Going back, the machine then is before that instruction, otherwise after it.
        """
        watch = self._watch(0, text)
        self._remember()
        found = self._travel.travel(Journey(direction, watch=watch))
        event = found.events[0] if found.reason == "watchpoint" else None
        stop = self._finish(found, direction)
        if watch.depth < len(self.frames) - 1:
            # Inside a call that the place was passed to: look at the frame that it is of.
            self.select(watch.depth)
        return stop, event

    # ------------------------------------------------------------ edits

    @property
    def edits(self) -> list[Edit]:
        """The edits of the run that the session is in, by time."""
        return self._travel.past.edits

    @property
    def mark(self) -> str:
        """What the state is: "computed" by the inverse code, or led to by a state that was;
        "edited" if the run has edits, at any time; or nothing."""
        if any(e.commands is None and e.time <= self.time for e in self.edits):
            return "computed"
        return "edited" if self.edits else ""

    def compute_back(self, ticks: int | None = None) -> Stop:
        """Execute the inverse code from the present values; it may lead to states that never were.

        From there it is another run, as after an edit.
        """
        self._remember()
        stop = self._finish(self._travel.compute_back(ticks), -1)
        self._edited()
        return stop

    def set(self, text: str, value: str) -> tuple[str, str]:
        """Change a place of the selected frame; the old and the new value as text."""
        before, up = Keyframe(self.machine.state), len(self.frames) - 1 - self.depth
        changed = edited(self.language, self.machine.state, self.depth, text, value)
        commands = (*([f"up {up}"] if up else []), f"set {text} = {value}")
        self._travel.edited(before, (*commands, *([f"down {up}"] if up else [])))
        self._edited()
        return changed

    def _edited(self) -> None:
        """Record that this is another run from here on."""
        self.diverged = self._travel.past.edits[0].time
        self._travel.length = None
