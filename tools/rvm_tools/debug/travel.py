"""Running a machine in either direction until something is worth stopping for.

The engine runs freely from trap to trap; conditions that a trap's guard cannot test are tested
here: how often to ignore it, whether a watched place has changed in this tick, whether its frame
still exists.  Between journeys the machine always faces forwards and no code is armed, so a seek
runs the same code as without a debugger.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile, zip_longest
from typing import Any

from rvm.engines.reference import Reference
from rvm.engines.trapping import condition, due
from rvm.faults import Interrupted, LimitError, RvmError
from rvm.host.signals import Listening, deferred, left_whole, listen
from rvm.image.traps import same
from rvm.numbers.residue import Residue
from rvm.probes import Trap, disarm
from rvm.run.machine import NO_LIMIT, Machine
from rvm.state import State
from rvm_tools.debug.armer import Armer, Extras
from rvm_tools.debug.journeys import Arrival, Journey, Onlooker
from rvm_tools.debug.keyframes import Keyframe, Keyframes
from rvm_tools.debug.passing import settle
from rvm_tools.debug.reruns import Reruns
from rvm_tools.debug.stops import Breakpoint, StopEvent, Watchpoint, passed
from rvm_tools.debug.traps import ENTERS, LINES
from rvm_tools.debug.warmup import run_warm
from rvm_tools.debug.watches import changed, fits, is_read, ticks_asleep, watched_value, woken

_FAR = 1 << 60
"""More ticks than any run has: the same as no goal."""


class _Flag:
    """Set from any thread and from handlers of signals: a `threading.Event` has a lock inside,
    on which a handler would wait for ever if it came while that is held."""

    __slots__ = ("up",)

    def __init__(self) -> None:
        self.up = False

    def set(self) -> None:
        self.up = True

    def clear(self) -> None:
        self.up = False


class Traveller:
    """A machine with its probes, and the two counters of a session."""

    def __init__(self, machine: Machine, say: Callable[[str], object], past: Keyframes) -> None:
        self.machine = machine
        self.past = past
        self.say = say
        self.work = 0
        """Ticks executed, in both directions."""
        self.length: int | None = None
        """The time at the program's end, once it has been there."""
        self.breaks: list[Breakpoint] = []
        self.watches: list[Watchpoint] = []
        self.version = 0
        """Incremented when probes change: code armed before is armed again."""
        self._armer = Armer(machine)
        self._armed = -1
        """The version of the probes that the frames are armed with; -1 if they are not."""
        self._goals: Extras = []
        self.asked = _Flag()
        """Set to request the end of the active journey."""
        self.onlooker = Onlooker()
        machine.on_progress = self.check
        self.muted = False
        self.counting = False
        """Whether the machine's own engine must do every tick."""
        self._bound: int | None = None
        """The time at which the active journey ends if nothing stops it."""
        self._floor: int | None = None
        """On the way back: the earliest time to which the inverse code leads to the recorded
        past."""
        self._kept: tuple[int, int, Residue] | None = None
        """The log of the last way back: the time of its end, the earliest time it covers, and the
        log."""
        self._reruns = Reruns(machine, past, self._onward, self._sets_out, self.check)
        self._scout, self._scouted = Armer(machine), 0

    # ------------------------------------------------------------ going

    def travel(self, journey: Journey) -> Arrival:
        """Go until something is worth stopping for; the machine faces forwards afterwards."""
        with self.listening():
            return self._travel(journey)

    @deferred
    def _travel(self, journey: Journey) -> Arrival:
        machine, began = self.machine, self.machine.time
        fast, self._floor = machine._engine, None
        if machine.state.direction != journey.direction:
            machine.state.turn()
        muted, self.muted = self.muted, self.muted or journey.quiet
        self._bound = self._goal(journey)
        self._sets_out(machine, self._bound)
        try:
            return _outcome(lambda: self._go(journey))
        finally:
            disarm(machine.state)
            machine.use(fast)
            self._goals = []
            self.muted = muted
            self.work += abs(machine.time - began)
            if machine.state.at_end and machine.direction > 0:
                self.length = machine.time
            if machine.direction < 0:
                machine.state.turn()
                if not self.past.exact:
                    self._arrived(machine.state)
            settle(machine.state)

    def _arrived(self, state: State) -> None:
        """At the end of a way back: the state equals the past one in each of its parts."""
        if state.residue is not None and self._floor is not None:
            self._kept = state.time, self._floor, state.residue
        state.residue = None
        # Not to be interrupted: between here and there, no state is one that was.
        self._stand(self._reruns.at(state.time, self.onlooker.moves).state)

    def compute_back(self, ticks: int | None) -> Arrival:
        """Execute the inverse code from the present values, wherever that leads: another run."""
        with self.listening():
            return self._computed(ticks)

    @deferred
    def _computed(self, ticks: int | None) -> Arrival:
        machine, began, frames = self.machine, self.machine.work, [*self.machine.state.frames]
        self._sets_out(machine, 0 if ticks is None else max(0, machine.time - ticks))

        def go() -> Arrival:
            self.check()
            run_warm(machine, _FAR if ticks is None else ticks, False)
            return Arrival(self._edge(-1) if machine.state.at_end else "step")

        machine.state.turn()
        try:
            with self.silent():
                return _outcome(go)
        finally:
            self.work += machine.work - began
            machine.state.turn()
            settle(machine.state)
            left = zip_longest(frames, machine.state.frames)
            kept = [*takewhile(lambda pair: pair[0] is pair[1], left)]
            for w in self.watches:
                if w.awake and w.depth >= len(kept):
                    w.sleep(-1, machine.time)
            self._looked_again()
            true = self._reruns.at(machine.time, self.onlooker.moves)
            self.edited(Keyframe(true.state), None)

    def _sets_out(self, machine: Machine, goal: int | None) -> None:
        self.onlooker.sets_out(machine, goal)

    def _goal(self, journey: Journey) -> int | None:
        """The time at which a journey ends if nothing stops it."""
        edge = self.length if journey.direction > 0 else 0
        if journey.ticks is None:
            return edge
        there = self.machine.time + journey.ticks * journey.direction
        if edge is None:
            return None if journey.ticks >= _FAR else there
        return min(there, edge) if journey.direction > 0 else max(there, edge)

    def accompany(self, other: Traveller) -> None:
        """Share the interruption and onlookers of another traveller."""
        self.asked, self.onlooker = other.asked, other.onlooker

    def seek(self, time: int) -> Arrival:
        """Go to a time at full speed; stops at either end."""
        here = self.machine.time
        direction = 1 if time >= here else -1
        if time == here:
            return Arrival("goto")
        if direction < 0 and not self.past.exact:
            return self._return(time)
        found = self.travel(Journey(direction, abs(time - here), quiet=True))
        return Arrival("goto") if found.reason == "step" else found

    def _go(self, journey: Journey) -> Arrival:
        if self.machine.state.at_end:
            return Arrival(self._edge(journey.direction))
        goal = NO_LIMIT if journey.ticks is None else journey.ticks
        began, first = self.machine.time, True
        self._goals, self._armed = self._armer.goals(journey), -1
        events: list[StopEvent] = []
        for w in self._active(journey):
            w.cell[0] = watched_value(self.machine.state, w)
        while True:
            self.check()
            if abs(self.machine.time - began) >= goal:
                return Arrival("step", events)
            undone, met = [], ""
            if journey.direction < 0:
                undone = self._descend(journey, events)
                if self.machine.state.at_end:
                    return Arrival("start", events)
                if self.machine.time == self._floor:
                    # It has gone back at once to where another way back begins.
                    continue
            state = self.machine.state
            self._arm(journey)
            asleep = ticks_asleep(self.watches, journey.direction, state.time)
            if state.armed or undone or events or asleep == 0:
                # Away from where it stands, whatever traps there are.
                if any(_is_entry(t) for t in due(state)):
                    self._armed = -1
                self.machine.tick()
                self.version += len(woken(self.watches, journey.direction, state))
                for w, old in undone:
                    if w.depth < len(self.machine.state.frames):
                        self._report(w, old, journey, events, edit=True)
                met = self._met(journey, events)
                state = self.machine.state
                self._arm(journey)
            rest = goal - abs(state.time - began)
            asleep = ticks_asleep(self.watches, journey.direction, state.time)
            for least in (asleep, self._ahead(journey)):
                if least is not None:
                    rest = min(rest, least)
            if rest and not (met or events or due(state)):
                if self.counting:
                    self.machine.go(rest)
                else:
                    run_warm(self.machine, rest, first and journey.ticks is None)
                met = self._met(journey, events)
                state = self.machine.state
                self._arm(journey)
            first = False
            reason = self._judge(due(state), journey, events)
            if met or reason:
                return Arrival(met or reason, events)
            if state.at_end:
                return Arrival(self._edge(journey.direction), events)

    # ------------------------------------------------------------ the past

    def _ahead(self, journey: Journey) -> int | None:
        """Ticks to where the past has something to keep or to say; None if that is nowhere."""
        time = self.machine.time
        if journey.direction > 0:
            return self.past.ahead(time)
        return None if self._floor is None else time - self._floor

    def _met(self, journey: Journey, events: list[StopEvent]) -> str:
        """Keep the state if that is due, or make an edit again; a reason to stop there, if any."""
        if journey.direction < 0:
            return ""
        edit = self.past.edit_at(self.machine.time)
        if edit is None:
            self.past.pass_by(self.machine.state)
            return ""
        # What the last tick has changed or ended is seen before that.
        fired = [t for t in due(self.machine.state) if _is_change(t) or isinstance(t.key, tuple)]
        reason = self._judge(fired, journey, events)
        for w, old in self._stood(journey, edit.after.state(), events):
            self._report(w, old, journey, events, edit=True)
        return reason or self._judge([], journey, events)

    def _stood(
        self, journey: Journey, state: State, events: list[StopEvent]
    ) -> list[tuple[Watchpoint, Any]]:
        """Stand in the other state at the time of an edit: the watchpoints whose places have other
        values there, with the values before."""
        seen = [(w, watched_value(self.machine.state, w)) for w in self._active(journey)]
        self._stand(state, journey.direction)
        now = self.machine.state
        for w in self._guarded(journey):
            # The inverse code may have led to a state in other calls.
            if len(now.frames) <= w.depth or now.frames[w.depth].code.name != w.function:
                self._ended(w, journey, events)
        met = [(w, v) for w, v in seen if w.awake and not w.reads]
        return [(w, v) for w, v in met if not same(v, watched_value(now, w))]

    def _descend(self, journey: Journey, events: list[StopEvent]) -> list[tuple[Watchpoint, Any]]:
        """Before going back: make sure that the inverse code leads to the past, for some ticks.

        Where it stands at an edit, that is undone; see `_stood`.
        """
        past, machine, time = self.past, self.machine, self.machine.time
        if not time or (self._floor is not None and time > self._floor):
            return []
        if past.exact:
            self._floor = max((e.time for e in past.edits if e.time < time), default=0)
            edit = past.edit_at(time)
            return [] if edit is None else self._stood(journey, edit.before.state(), events)
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == time and kept[1] < time:
            _, self._floor, machine.state.residue = kept
            machine.use(Reference())
            return []

        def skipped(begin: int, make: Callable[[], State]) -> bool:
            return self._nothing(journey, begin, make)

        made, undone = self._reruns.logged(time, skipped), []
        if made is not None:
            self._floor = made[0]
            machine.use(Reference())
            undone = self._stood(journey, made[1], events)
        self._sets_out(machine, self._bound)
        return undone

    def _nothing(self, journey: Journey, begin: int, make: Callable[[], State]) -> bool:
        """Go to an earlier time at once, if nothing on the way requires a stop.

        This is found by running forwards from there, which is fast.
        """
        simple = journey.ticks is None and not (journey.lines or journey.over or journey.out)
        active = self._active(journey)
        if not simple or not all(w.awake and not w.depth and not w.reads for w in self.watches):
            return False
        if journey.watch is not None and (journey.watch.depth or journey.watch.reads):
            return False
        time, scratch = self.machine.time, self._reruns.on(make())
        cells = [w.cell[0] for w in active]
        try:
            for w in active:
                w.cell[0] = watched_value(scratch.state, w)
            self._scout.machine = scratch
            onward = replace(journey, direction=1)
            while True:
                self._scouted += 1
                self._scout.arm(onward, [], self.breaks, active, [], self._scouted)
                while scratch.time < time and not due(scratch.state):
                    self._onward(scratch, time - scratch.time)
                if not all(map(_is_entry, due(scratch.state))):
                    return False
                if scratch.time == time:
                    break
                self.work += scratch.tick()
            # The machine may stand after an edit, and the other one before it.
            if not all(
                same(*(watched_value(m.state, w) for m in (scratch, self.machine))) for w in active
            ):
                return False
        finally:
            for w, held in zip(active, cells, strict=True):
                w.cell[0] = held
        self._stand(make(), -1)
        self._floor = begin
        return True

    def _return(self, time: int) -> Arrival:
        """Stand where the run was at an earlier time."""
        with self.listening():
            return self._returned(time)

    @deferred
    def _returned(self, time: int) -> Arrival:
        def go() -> Arrival:
            there = self._reruns.at(time).state
            self._jump_to(time)
            self._stand(there)
            settle(self.machine.state)
            return Arrival("goto" if time else self._edge(-1))

        return _outcome(go)

    def _jump_to(self, time: int) -> None:
        """Let watchpoints sleep or wake that a jump to an earlier time puts out of their calls, or
        into them."""
        now, found = self.machine.time, []
        for w in self.watches:
            within = now if w.awake else w.within
            if w.depth and (w.awake or (w.ended is not None and w.ended <= now)):
                found.append((w, self._reruns.born(w.depth, within) - 1, within))
        # Not before all are known: this may be interrupted.
        for w, born, within in found:
            w.born, w.awake = born, born < time <= within
        self.version += bool(found)

    def edited(self, before: Keyframe, commands: tuple[str, ...] | None) -> None:
        """The state was changed manually: calls that begin later may not come in the new run."""
        self.past.edited(before, self.machine.state, commands)
        self._kept, time = None, self.machine.time
        for w in self.watches:
            if w.ended is not None and w.ended > time:
                w.ended = None
        self._forget([w for w in self.watches if not w.awake and w.ended is None])

    def restarted(self, old: Traveller, edited: int | None) -> None:
        """Take over what another traveller stops for and counts, to begin the run again; `edited`
        is the time of its first edit."""
        with old.listening():
            old._jump_to(0)
        self.breaks, self.watches, self.work = old.breaks, old.watches, old.work
        self.asked, self.onlooker = old.asked, old.onlooker
        self.length = None if edited is not None else old.length
        self.version = old.version + 1
        if edited is not None:
            for w in self.watches:
                w.ended = None
            self._forget([w for w in self.watches if w.depth and (w.born or 0) >= edited])

    def _forget(self, lost: list[Watchpoint]) -> None:
        """Remove watchpoints of calls of another run."""
        self.watches[:] = [w for w in self.watches if w not in lost]
        self.version += 1
        for w in lost:
            self.say(
                f"watchpoint {w.number} is removed: the call of `{w.function}` that `{w.text}` "
                f"belongs to may not come in this run"
            )

    def _onward(self, scratch: Machine, ticks: int) -> None:
        """Run a machine forwards through ticks that were executed before, without output."""
        with self.silent():
            began = scratch.time
            if ticks:
                run_warm(scratch, ticks, False)
            self.work += scratch.time - began

    def _stand(self, state: State, direction: int = 1) -> None:
        """Put the machine into another state; identical frames remain the same objects."""
        machine, old = self.machine, self.machine.state
        if state.direction != direction:
            state.turn()
        if old.direction != direction:
            old.turn()
        for depth, (mine, new) in enumerate(zip(old.frames, state.frames, strict=False)):
            if (mine.code.name, mine.code.undo) != (new.code.name, new.code.undo):
                break
            same = mine.pc == new.pc
            mine.code, mine.pc, mine.regs = new.code, new.pc, new.regs
            state.frames[depth] = mine
            if not same:
                break
        machine.state, machine._own = state, None
        self._armed = -1
        self._looked_again()

    def _looked_again(self) -> None:
        """Watched places have other values, and arrays are perhaps in other memory."""
        self.version += bool(self.watches)
        for w in self.watches:
            if w.awake:
                w.cell[0] = watched_value(self.machine.state, w)

    def listening(self) -> Listening:
        """A context in which Ctrl-C only requests a stop, at the next instruction boundary."""
        mine = threading.current_thread() is threading.main_thread()
        if mine and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.asked.clear()
        return Listening(self.asked.set)

    def interrupt(self, asked: bool = True) -> None:
        """Ask a journey to end at the next instruction boundary, from any thread."""
        if asked:
            self.asked.set()
        else:
            self.asked.clear()

    def check(self, machine: Machine | None = None) -> None:
        """Raise Interrupted if that was requested; engines call this between chunks.

        A due stop is taken first, so that it is not missed when the run continues.
        """
        if machine is not None:
            self.onlooker.moves(machine)
        else:
            listen()
        if self.asked.up and (machine is None or not due(machine.state)):
            self.asked.clear()
            state = self.machine.state
            raise Interrupted("R016", "interrupted", where=state.where(), time=state.time)

    @staticmethod
    def _edge(direction: int) -> str:
        return "end" if direction > 0 else "start"

    # ------------------------------------------------------------ arming

    def _active(self, journey: Journey) -> list[Watchpoint]:
        if journey.watch is not None:
            return [journey.watch]
        return [] if journey.quiet else [w for w in self.watches if w.enabled and w.awake]

    def _guarded(self, journey: Journey) -> list[Watchpoint]:
        """Watchpoints whose frames' ends must be noticed, whatever the journey's goal."""
        inner = [w for w in self.watches if w.awake and w.depth]
        if journey.watch is not None and journey.watch.depth:
            inner.append(journey.watch)
        return inner

    def _arm(self, journey: Journey) -> None:
        """Arm the frames, if probes have changed since that was done."""
        if self._armed == self.version:
            return
        self._armer.arm(
            journey,
            self._goals,
            self.breaks,
            self._active(journey),
            self._guarded(journey),
            self.version,
        )
        self._armed = self.version

    # ------------------------------------------------------------ judging

    def _judge(self, fired: list[Trap], journey: Journey, events: list[StopEvent]) -> str:
        """The reason to stop here, if any; reports are added to `events`."""
        reasons = ["watchpoint"] if events else []
        for trap in fired:
            key = trap.key
            if key == LINES or key == "out":
                reasons.append("step")
            elif isinstance(key, Breakpoint):
                reasons += self._at_break(key, trap, events, journey.direction)
            elif isinstance(key, Watchpoint):
                reasons += self._at_watch(key, journey, events)
            elif isinstance(key, tuple) and not _is_entry(trap):
                reasons += self._ended(key[1], journey, events)
        order = ("watchpoint", "breakpoint", "gone", "step")
        return next((r for r in order if r in reasons), "")

    def _ended(self, w: Watchpoint, journey: Journey, events: list[StopEvent]) -> list[str]:
        """Let a watchpoint sleep whose call is not active; the reason to stop here, if any."""
        if not w.awake:
            return []
        w.sleep(journey.direction, self.machine.time)
        self.version += 1
        if w is journey.watch:
            return ["gone"]
        if journey.quiet or journey.watch is not None:
            return []
        events.append(StopEvent("watchpoint", w.gone(journey.direction)))
        return ["watchpoint"]

    def _at_break(
        self, b: Breakpoint, trap: Trap, events: list[StopEvent], direction: int
    ) -> Iterator[str]:
        regs = self.machine.state.top.regs
        note = ""
        if trap.guard is not None:
            try:
                condition(trap.guard, regs)  # type: ignore[arg-type]
            except Exception as error:
                note = f"; its condition `{b.condition}` has no value here: {_reason(error)}"
        if passed(b):
            return
        if b.message is not None:
            self.say(f"{'>' if direction > 0 else '<'} {self.filled(b.message)}")
            return
        if b.temporary:
            self.breaks.remove(b)
            self.version += 1
        title = "temporary breakpoint" if b.temporary else "breakpoint"
        events.append(StopEvent("breakpoint", f"{title} {b.number}{note}", b.number))
        yield "breakpoint"

    def filled(self, message: str) -> str:
        """A tracepoint's text with its expressions' values; set by the session."""
        return message

    def _at_watch(self, w: Watchpoint, journey: Journey, events: list[StopEvent]) -> Iterator[str]:
        if not w.awake or any(e.number == w.number for e in events):
            return
        state, way = self.machine.state, journey.direction
        if w.reads:
            if is_read(state, w, way) and fits(state, w) and not passed(w):
                held = watched_value(state, w)
                events.append(changed(state.frames, w, held, held, way))
                yield "watchpoint"
        elif self._report(w, self._before(journey, w) if w.in_code else w.cell[0], journey, events):
            yield "watchpoint"

    def _report(
        self, w: Watchpoint, old: Any, journey: Journey, events: list[StopEvent], edit: bool = False
    ) -> bool:
        """Report a watched place's value if it is not the old one; whether that is to be done."""
        state = self.machine.state
        w.cell[0] = new = watched_value(state, w)
        if same(old, new) or not fits(state, w) or passed(w):
            return False
        events.append(changed(state.frames, w, old, new, journey.direction, edit))
        return True

    def _before(self, journey: Journey, w: Watchpoint) -> Any:
        """The value of a watched place a tick ago: the machine goes there, and comes back."""
        if journey.direction > 0 and not self.past.exact:
            old = watched_value(self._reruns.at(self.machine.time - 1).state, w)
            self._sets_out(self.machine, self._bound)
            return old
        state = self.machine.state
        erased = state.account.erased_bits
        with self.silent():
            state.turn()
            self.machine.tick()
            old = watched_value(self.machine.state, w)
            state.turn()
            self.machine.tick()
        # What looking has erased, the run has not.
        state.account.erased_bits = erased
        self._armed = -1
        self._arm(journey)
        return old

    @contextmanager
    def silent(self) -> Iterator[None]:
        """A context in which the program's output is not shown again."""
        muted, self.muted = self.muted, True
        try:
            yield
        finally:
            self.muted = muted

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A context for a look at another time: silent, without stops, returning to this time."""
        probes, self.breaks, self.watches = (self.breaks, self.watches), [], []
        self.version += 1
        try:
            with self.silent():
                yield
        finally:
            self.breaks, self.watches = probes
            self.version += 1


def _outcome(go: Callable[[], Arrival]) -> Arrival:
    """The end of a journey, which may be an error of the run."""
    try:
        return go()
    except Interrupted as error:
        return Arrival("interrupted", error=error)
    except LimitError as error:
        return Arrival("limit", error=error)
    except RvmError as error:
        if left_whole(error):
            raise
        return Arrival("error", error=error)


def _is_entry(trap: Trap) -> bool:
    """Whether a trap is before a call that an element of a watched place is passed to."""
    return isinstance(trap.key, tuple) and trap.key[0] == ENTERS


def _is_change(trap: Trap) -> bool:
    """Whether a trap is after an instruction that may change a watched place."""
    return isinstance(trap.key, Watchpoint) and not trap.key.reads


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, RvmError) else str(error)
