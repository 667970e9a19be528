"""The machine: a program in execution, which steps, runs, turns round and seeks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from operator import index
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rvm.codes.words import described
from rvm.engines import ENGINES, counting, having
from rvm.engines import engine as engine_of
from rvm.engines.protocol import Engine
from rvm.faults import (
    InputError,
    Interrupted,
    InvertibilityError,
    LimitError,
    MachineError,
    RvmError,
    UsageError,
    Where,
)
from rvm.host.signals import Listening, at_once, deferred, left_whole, listen
from rvm.image import Code, image_of
from rvm.numbers.residue import not_its_own
from rvm.program import AnyProgram, Program, program_of, unknown_function
from rvm.run.backup import copied
from rvm.run.binding import Own, bind, held_in, outside, result
from rvm.run.bits import with_bits
from rvm.run.results import Info, Result
from rvm.state import Frame, Options, State
from rvm.types import Array, Stack

if TYPE_CHECKING:
    from rvm.accounts.counts import Counts

CHUNK_SECONDS = 0.05
"""The approximate time that engines run between two checks for Ctrl-C and progress."""

OPTION_NAMES = tuple(f for f in Options.__dataclass_fields__)
NO_LIMIT = 1 << 62


def _whole(n: Any, what: str) -> int:
    try:
        return index(n)
    except TypeError:
        raise InputError("I009", f"{what} a whole number, not {described(n)}") from None


class Machine:
    """A function of a program on its inputs, initially stopped before the first instruction.

    Keywords that are not parameters of the function are options (see `rvm.state.Options`). A failed
    check leaves the machine at the failing instruction; an exception from a callback, `output=` or
    a signal handler leaves it between two instructions.  If a machine was nevertheless stopped
    within an instruction, further use raises R018; while it is running, R020.
    """

    def __init__(self, program: AnyProgram, function: str | None = None, /, **inputs: Any) -> None:
        program = program_of(program)
        found = program.having(function or "", inputs)
        if found is None:
            raise unknown_function(function or program.entry, program)
        program, name = found
        options, values = split_options(program, name, inputs)
        self._start(program, name, False, options, values)

    @classmethod
    def start(
        cls,
        program: AnyProgram,
        function: str,
        inputs: Mapping[str, Any],
        options: Options | None = None,
        *,
        undo: bool = False,
    ) -> Machine:
        """A machine with inputs and options given separately;

        `undo` starts at the function's end.
        """
        made = cls.__new__(cls)
        made._start(program_of(program), function, undo, options or Options(), inputs)
        return made

    @classmethod
    def entered(
        cls, program: Program, function: str, regs: Sequence[Any], options: Options, undo: bool
    ) -> Machine:
        """A machine on raw values of the parameters' registers, used without conversion."""
        made = cls.__new__(cls)
        program = with_bits(program, options)
        code = image_of(program).code(function, undo)
        gap = len(code.function.registers) - len(regs)
        made._enter(program, code, [*regs, *[None] * gap], options)
        return made

    def _start(
        self, program: Program, name: str, undo: bool, options: Options, inputs: Mapping[str, Any]
    ) -> None:
        if options.error:
            raise UsageError(
                "U004",
                "a machine keeps no inputs, by which to estimate how far its values are off",
                hint="`error=True` is an option of calls and maps: "
                f"rvm.load(…)[{name!r}](…, error=True)",
            )
        program = with_bits(program, options)
        image = image_of(program)
        code = image.code(name, undo)
        own: Own = {}
        regs = bind(code.function, inputs, image.inout[name], own)
        self._enter(program, code, regs, options, own)

    def _enter(
        self,
        program: Program,
        code: Code,
        regs: list[Any],
        options: Options,
        own: Own | None = None,
    ) -> None:
        self.program = program
        self.options = options
        self._own = own
        self._engine: Engine = engine_of(options.engine)
        self._counts: Counts | None = None
        self.state = State(Frame(code, regs), options)
        live, limit = self.state.account.live_bytes, options.max_memory
        if limit is not None and live > limit:
            raise LimitError(
                "R011",
                "the inputs are larger than the memory limit",
                values={"live bytes": live, "limit": limit},
                hint="raise it with max_memory= or --max-memory",
            )
        self.work = 0
        """The number of ticks executed so far, in both directions."""
        changed = image_of(program).inout[code.name] if self._forgets else ()
        self._begun = {k: copied(regs[k]) for k in changed}
        """What the function changes as it was at the beginning, where the way back forgets."""
        self._astray = False
        """Whether the machine is on such a way back, between the times of the way there."""
        self.on_progress: Callable[[Machine], object] | None = None
        """A callback called about every twentieth of a second while the machine runs."""

    # ------------------------------------------------------------ copies

    def __getstate__(self) -> dict[str, Any]:
        """The state without compiled code and the caller's arrays; built-in engines by name."""
        name = self._engine.name
        engine = name if name in ENGINES else self._engine
        return self.__dict__ | {"_engine": engine, "_own": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(state["_engine"], str):
            self._engine = self._made(state["_engine"])

    def __copy__(self) -> Machine:
        # Two machines on the same arrays would undo each other's steps.
        return deepcopy(self)

    # ------------------------------------------------------------ looking

    def __repr__(self) -> str:
        way = "forwards" if self.direction > 0 else "backwards"
        return f"<Machine in {self.state.top.code.name} at time {self.time}, {way}>"

    @property
    def time(self) -> int:
        """The number of ticks from the start to here; each step back subtracts one."""
        return self.state.time

    @property
    def direction(self) -> int:
        """1 if the machine last went forwards, -1 if backwards."""
        return self.state.direction

    @property
    def facing(self) -> int:
        """1 if the innermost function's code runs as written, -1 if it is being undone."""
        return -1 if self.state.top.code.undo else 1

    @property
    def engine(self) -> str:
        """The name of the engine that runs it."""
        return self._engine.name

    @property
    def finished(self) -> bool:
        """Whether the function has been executed to its end (in the forward direction)."""
        top = self.state.top
        end = len(top.code) if self.direction > 0 else 0
        return len(self.state.frames) == 1 and top.pc == end

    @property
    def where(self) -> Where:
        """The source position of the next instruction in the present direction."""
        return self.state.where()

    @property
    def erased_bits(self) -> int:
        """Bits lost so far: residues of freed ancillas that were within the tolerance."""
        return self.state.account.erased_bits

    @property
    def info(self) -> Info:
        """The rounding so far."""
        return Info.of(self.state.account)

    @property
    def residue_bytes(self) -> int:
        """The size of strict mode's log; 0 outside it."""
        return 0 if self.state.residue is None else self.state.residue.bytes

    @property
    def result(self) -> Result:
        """The current values of the outermost function's parameters."""
        self._whole()
        frame = self.state.frames[0]
        return result(frame.code.function, frame.regs, self.info, self._own)

    def registers(self) -> dict[str, Any]:
        """The innermost frame's parameters and live locals, by name."""
        self._whole()
        frame = self.state.top
        function = frame.code.function
        out = {p.name: outside(function, p.layout, frame.regs) for p in function.params}
        for k in range(function.n_args, len(function.registers)):
            if frame.regs[k] is not None and not function.registers[k].is_own:
                out[function.registers[k].name] = outside(function, k, frame.regs)
        return out

    def __getitem__(self, name: str) -> Any:
        values = self.registers()
        if name not in values:
            raise KeyError(f"no live `{name}` in `{self.state.top.code.name}`")
        return values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Change a scalar or an array's contents; going back then leads to another start."""
        self._whole()
        frame = self.state.top
        for k, register in enumerate(frame.code.function.registers):
            if register.name == name and frame.regs[k] is not None:
                raw = held_in(register, name, value)
                with self.state.edit():
                    if isinstance(register.type, Array):
                        frame.regs[k][...] = raw
                    elif isinstance(register.type, Stack):
                        frame.regs[k][:] = raw
                    else:
                        frame.regs[k] = raw
                return
        raise KeyError(f"no live `{name}` in `{frame.code.name}`")

    # ------------------------------------------------------------ going

    def use(self, engine: Engine | str) -> Machine:
        """Continue with another engine, or the one of that name, in the same state.

        UsageError U002 if there is none of that name.
        """
        if isinstance(engine, str):
            engine = engine_of(engine)
        self._engine, self._counts = engine, None
        return self

    def count(self, counts: Counts | None = None) -> Counts:
        """Count from now on what is executed, with a counting engine; see `rvm.accounts.counts`.

        UsageError U016 if the engine that was chosen by name cannot count.
        """
        from rvm.accounts.counts import Counts

        self._counts = Counts() if counts is None else counts
        self._engine = self._made(self.options.engine)
        return self._counts

    def _made(self, name: str) -> Engine:
        """The engine called `name`, or its counting variant if the machine counts."""
        if self._counts is None:
            return engine_of(name)
        return counting(name, self._counts)

    def step(self, n: int = 1) -> int:
        """Execute `n` ticks (backwards if negative), or fewer at either end; return how many."""
        n = _whole(n, "ticks are")
        here = self.time
        if self._forgets and (n < 0 or self._astray):
            return abs(self._return(max(here + n, 0)) - here)
        return self._advance(n, 1) if n >= 0 else self._undo(-n)

    def run(self) -> Machine:
        """Run forwards to the end."""
        if self._astray:
            self._return(self.time)
        self._advance(None, 1)
        return self

    def run_back(self) -> Machine:
        """Run backwards to the beginning."""
        self._undo(None)
        return self

    def go(self, ticks: int | None = None) -> int:
        """Run in the present direction, for `ticks` or to the end, or up to an active trap.

        Traps are those with which `rvm.probes` armed the state.  Return the number of ticks
        executed.
        """
        return self._advance(ticks, 1) if self.direction > 0 else self._undo(ticks)

    def seek(self, time: int) -> int:
        """Go to a time, in either direction, or as far as possible; return the time reached."""
        time = _whole(time, "a time is")
        if time != self.time:
            self.step(time - self.time)
        return self.time

    @property
    def _forgets(self) -> bool:
        """Whether the way back may lead past other states than the way there."""
        state = self.state
        code = state.frames[0].code
        return state.residue is None and code.image.forgets(code.name)

    def _undo(self, ticks: int | None) -> int:
        """Execute the inverse code; the beginning is at the time 0, however many ticks lead there.

        They are others than on the way there if values were dropped, or changed from outside.
        """
        self._whole()
        self._idle()
        from rvm.run.retreat import come_out

        state, before = self.state, self.work
        strays = self._forgets and not state.armed

        def left() -> int | None:
            return None if ticks is None else ticks - (self.work - before)

        def out() -> bool:
            self._advance(left(), -1)
            return left() != 0

        self._astray |= strays
        try:
            if strays:
                come_out(state, self.program, out)
            self._advance(left(), -1)
        except RvmError as error:
            error.time = error.time and max(error.time, 0)
            raise
        finally:
            if state.direction < 0:
                state.time = 0 if state.at_end else max(state.time, 1)
                self._astray &= not state.at_end
        return self.work - before

    def _return(self, time: int) -> int:
        """Go to a time by way of the beginning, facing back if it is earlier; return it."""
        self._whole()
        self._idle()
        here, seen = self.time, self.state.options
        self.state.options = seen.unseen()
        try:
            if self.state.edited:
                self.run_back()
            else:
                with Listening():
                    self._begin_again()
            self._advance(time, 1)
        finally:
            self.state.options = seen
        if time < here:
            self.state.turn()
        return self.time

    @deferred
    def _begin_again(self) -> None:
        """Put the machine where it began."""
        old = self.state
        old.torn = True
        frame, image = old.frames[0], image_of(self.program)
        code = image.code(frame.code.name, frame.code.undo == (old.direction > 0))
        inside = len(frame.regs) - code.function.n_args
        regs = [*frame.regs[: code.function.n_args], *[None] * inside]
        for k, value in self._begun.items():
            if isinstance(value, (np.ndarray, list)):
                regs[k][:] = value
            else:
                regs[k] = value
        self.state = State(Frame(code, regs), old.options)
        self._astray = False

    def _whole(self) -> None:
        """Raise MachineError R018 if an instruction was left half done."""
        if self.state.torn:
            raise MachineError(
                "R018",
                "the machine was stopped in the middle of an instruction",
                where=self.state.where(),
                time=self.time,
                direction=self.facing,
                hint="its state is inconsistent: start again with a new machine",
            )

    def _advance(self, ticks: int | None, direction: int) -> int:
        """Run the engine; signals are handled between instructions.

        MachineError R020 if it is running already: its instructions are not to be mixed.
        """
        self._whole()
        mine = [get_ident()]
        if self.__dict__.setdefault("_runner", mine) is not mine:
            self._idle()
            self._runner = mine
        try:
            with Listening():
                return self._chunks(ticks, direction)
        finally:
            self.__dict__.pop("_runner", None)

    def _idle(self) -> None:
        """Raise MachineError R020 if a thread is in a run of this machine."""
        thread = self.__dict__.get("_runner", [0])[0]
        here, run = sys._getframe(1), Machine._advance.__code__
        frame = here if thread == get_ident() else sys._current_frames().get(thread)
        while frame is not None:
            if frame.f_code is run and frame is not here and frame.f_locals["self"] is self:
                raise MachineError(
                    "R020",
                    "the machine is running",
                    hint="a callback or another thread can run a copy of it: copy.copy(machine)",
                )
            frame = frame.f_back

    @deferred
    def _chunks(self, ticks: int | None, direction: int) -> int:
        """Run the engine in chunks, with checks for signals and progress in between."""
        from rvm.engines.extent import LEAST, first_chunk
        from rvm.engines.reference import Reference
        from rvm.engines.trapping import due, trapped

        if self.state.direction != direction:
            self.state.turn()
        if direction < 0 and self._forgets:
            self.state.retreat()
        fast = self._engine
        if self.state.armed and fast.name not in having("traps"):
            fast = engine_of("auto")
        state, budget = self.state, NO_LIMIT if ticks is None else ticks
        limit = NO_LIMIT if self.options.max_steps is None else self.options.max_steps
        done, chunk, slow = 0, 0, Reference()
        first = 0
        try:
            while done < budget and not state.at_end:
                # The limit is on the distance from the start, so running back is always allowed.
                room = limit - state.time if direction > 0 else NO_LIMIT
                if room <= 0:
                    raise self._limit(limit)
                if (now := first_chunk(fast, state)) > first:
                    # An engine that has become another one, such as `auto`, begins anew.
                    chunk, first = max(chunk, now), now
                ask = min(chunk, budget - done, room)
                began = perf_counter()
                did = self._engaged(fast.advance, ask)
                if not did and state.armed and trapped(state):
                    if due(state):
                        break
                    # The engine could not tell: this tick is the reference engine's.
                    did = self.tick()
                elif not did:
                    # An engine that works by blocks has come to the last ticks before a stop.
                    did = self._engaged(slow.advance, min(ask, 64))
                done += did
                self.work += did
                spent = perf_counter() - began
                # Engines that work by blocks do a little less than they are asked for.
                if spent < CHUNK_SECONDS / 2 and did * 2 > ask:
                    chunk *= 2
                elif spent > CHUNK_SECONDS * 2:
                    chunk = max(LEAST, chunk // 2)
                if not state.armed or not due(state):
                    # A stop that is due comes first, so that a later run does not pass it.
                    listen()
                if self.on_progress is not None:
                    self._tell(self.on_progress)
        except Interrupted as error:
            self._placed(error)
            raise
        if state.at_end and state.logging < 0:
            self.look_emptied()
        return done

    def look_emptied(self) -> None:
        """Raise R019 if the log holds more than the run back has used."""
        state = self.state
        if state.residue and not state.edited:
            error = not_its_own(f"it holds {len(state.residue):,} more at the end")
            error.where, error.time, error.direction = state.where(), self.time, self.facing
            raise error

    @deferred
    def tick(self) -> int:
        """Execute one tick with the reference engine, ignoring traps; there must be one left."""
        from rvm.engines.reference import step

        def once(state: State, ticks: int) -> int:
            step(state)
            return ticks

        with np.errstate(all="ignore"):
            # Again, if it was refused and is rounding after all.
            while not (did := self._engaged(once, 1)):
                pass
            return did

    def _engaged(self, advance: Callable[[State, int], int], ask: int) -> int:
        """Run a chunk with an engine; the machine is torn if an instruction is left half done."""
        before = self.state.time
        try:
            return advance(self.state, ask)
        except InvertibilityError as error:
            # What is rounding after all is passed by the next chunk.
            if not 0 < error.excess < float("inf") or not self._explained(error):
                raise
            return abs(self.state.time - before)
        except RvmError:
            raise
        except BaseException as error:
            # Torn it is until the contrary is known: another exception may come here.
            self.state.torn = True
            self.state.torn = not left_whole(error)
            raise

    def _explained(self, error: InvertibilityError) -> bool:
        """Whether a residue is due to rounding although it exceeds the allowed one."""
        from rvm.engines.perturbed import is_new, is_rounding
        from rvm.run.unedited import before

        state = self.state
        edited = state.edited_at
        doubted = edited is not None and state.pardons.get(state.proved) != edited
        found = (doubted and is_new(state)) or is_rounding(
            state, error.doubtful, before(state, self._on) if error.doubtful == "residue" else None
        )
        if found and doubted:
            state.pardons[state.proved] = cast("int", edited)
        elif found:
            at = state.top.code, state.top.pc, error.doubtful
            state.pardons[at] = 4 * error.excess * state.pardons.get(at, 1.0)
        elif found is None:
            error.notes += ("whether it is rounding all the same could not be tried",)
        else:
            error.notes += ("runs with perturbed rounding do not move it",)
        return bool(found)

    def _on(self, state: State) -> Machine:
        """A machine on a copy of a state, which tells nobody."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._engine, made._counts = engine_of("python"), None
        made._own = made.on_progress = None
        made.state = deepcopy(state)
        made.state.options = replace(state.options.unseen(), strict=False, max_steps=None)
        return made

    @at_once
    def _tell(self, progress: Callable[[Machine], object]) -> None:
        progress(self)

    def _placed(self, error: Interrupted) -> None:
        """Add to an interruption where and when it occurred, unless known."""
        if error.time is None:
            error.where, error.time = self.state.where(), self.time
            error.calls, error.direction = self.state.calls(), self.facing
            error.hint = (
                "the machine is between two instructions; it can continue in either direction"
            )

    def _limit(self, limit: int) -> LimitError:
        error = LimitError(
            "R010",
            f"the limit of {limit} steps is reached",
            where=self.state.where(),
            time=self.time,
            direction=self.facing,
            hint="raise it with max_steps= or --max-steps; the machine can still run back",
        )
        error.calls = self.state.calls()
        return error


def split_options(
    program: Program, function: str, keywords: Mapping[str, Any]
) -> tuple[Options, dict[str, Any]]:
    """Separate options from inputs: a keyword that is a parameter's name is an input."""
    names = {p.name for p in program.function(function).params}
    given = {k: v for k, v in keywords.items() if k in OPTION_NAMES and k not in names}
    return replace(Options(), **given), {k: v for k, v in keywords.items() if k not in given}
