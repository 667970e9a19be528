"""The state of a machine: memory, frames, position, direction and time.  Plain data.

The state has no history. Turning round replaces each frame's code by its inverse and counts
positions from the other end; continuing then means going back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Real
from typing import Any, TextIO

import numpy as np

from rvm.codes.words import described, instead, plainly
from rvm.faults import InputError, UsageError, Where
from rvm.host.blocks import View, packed, unpacked
from rvm.host.signals import at_once
from rvm.image import Code
from rvm.numbers.residue import Residue
from rvm.numbers.rounding import TURNED
from rvm.program import Source, Span
from rvm.registry import ENGINES, executing, having
from rvm.types import elem_of

SCALAR_BYTES = 8
FRAME_BYTES = 512
"""The number of bytes that a frame counts against the memory limit."""
NESTED = 1 << 20
"""The depth of calls that is allowed if no limit on memory is given."""

CHANGES = 8
"""The number of changes from outside of which the states before them are kept."""
PROVED = "proved at depth "
"""The beginning of the third part of keys of `State.pardons` that are `State.proved`."""
NEAR = 3
"""The number of calls leading to an error that are named, besides the outermost."""


@dataclass(slots=True)
class Options:
    """The options of a run.  `None` means no limit.

    `tolerance`: how far rounding may have carried a freed ancilla from its expected value, relative
    to the largest magnitude that it has had, and the values of a gradient from their start,
    relative to themselves. 0 demands equality of bits; None uses the rules in
    `rvm.numbers.rounding`.

    `strict`: keep every rounding residue, so that floats too run back bit for bit.

    `checks`: check that each step can be undone (come-froms, freed values, factors). Only the
    native engine can omit these checks; indices are always checked.

    `bits`: "stated" keeps the bits that the table specifies, on every engine and machine; "machine"
    computes elementary functions, sums and products by this machine's libm, NumPy and BLAS.

    `judged_later`: values that an adjoint restores are not judged where they are freed, but by the
    caller, from a drift beyond 1.

    `error`: estimate the error of results or derivatives (`info.error`); an option of calls and
    maps, not of machines.

    `on_error`: "back" makes a library call a transaction; "stop" keeps the failing state.
    """

    engine: str = "auto"
    tolerance: float | None = None
    strict: bool = False
    checks: bool = True
    bits: str = "stated"
    on_error: str = "back"
    max_steps: int | None = None
    max_memory: int | None = None
    output: Callable[[str], Any] | TextIO | None = None
    callbacks: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    judged_later: bool = False
    error: bool = False

    def live_limit(self, live: int, frames: int) -> int:
        """The live bytes at which machine code stops that begins with so many bytes and frames.

        Without a limit on memory, calls may then be nested too deep; the reference engine decides.
        """
        if self.max_memory is not None:
            return self.max_memory
        return live + (NESTED - frames) * FRAME_BYTES

    def __post_init__(self) -> None:
        self._check_kinds()
        for name, known in (("on_error", ("back", "stop")), ("bits", ("stated", "machine"))):
            found = getattr(self, name)
            if not isinstance(found, str) or found not in known:
                what = f'{name} is "{known[0]}" or "{known[1]}", not {plainly(found)}'
                raise InputError("I009", what, hint=instead(found, known, ""))
        if not self.checks and self.engine not in having("unchecked"):
            able = [n for n in having("unchecked") if n in executing()]
            raise InputError(
                "I009",
                f"the engine `{self.engine}` cannot leave out the run-time checks",
                hint="engines that can: " + ", ".join(able),
            )
        if self.tolerance is not None and not self.tolerance >= 0:
            raise InputError("I009", f"the tolerance is {self.tolerance}; it must be 0 or more")
        for name in ("max_steps", "max_memory"):
            limit = getattr(self, name)
            if limit is not None and limit < 0:
                raise InputError("I009", f"{name} is {limit}; it must be 0 or more")

    def _check_kinds(self) -> None:
        """Raise InputError I009, for an engine UsageError U002, if an option has the wrong type."""
        if not isinstance(self.engine, str):
            what = f"an engine is given by its name, not as {described(self.engine)}"
            raise UsageError("U002", what, hint=f"engines: {', '.join(ENGINES)}")
        for name in ("strict", "checks", "judged_later", "error"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise _refused(name, getattr(self, name), "True or False")
        if self.tolerance is not None and not is_real(self.tolerance):
            raise _refused("tolerance", self.tolerance, "a real number, or None for the rules")
        for name in ("max_steps", "max_memory"):
            limit = getattr(self, name)
            if limit is None:
                continue
            if not is_real(limit) or limit != limit or limit % 1:
                raise _refused(name, limit, "a whole number, or None for no limit")
            setattr(self, name, int(limit))
        out = self.output
        if not (out is None or callable(out) or hasattr(out, "write")):
            what = 'a function of a line, an open file such as open("out.txt", "w"), or None'
            raise _refused("output", out, what)
        by = self.callbacks
        if not isinstance(by, Mapping) or not all(map(callable, by.values())):
            raise _refused("callbacks", by, "a mapping from names to functions")

    def __deepcopy__(self, memo: Any) -> Options:
        # `output` and the callbacks belong to the world outside, which has no second copy.
        return replace(self)

    def unseen(self) -> Options:
        """The same for a repeated part of a run, which has no effects the second time."""
        return replace(self, output=_silent, callbacks=Silence())

    @at_once
    def write(self, line: str) -> None:
        """Write a line of an extern `print`."""
        if callable(self.output):
            self.output(line)
        else:
            print(line, file=self.output or sys.stdout)


def _silent(*values: Any) -> None:
    """In the place of what a run tells others."""


class Silence(dict[str, Callable[..., None]]):
    """Callbacks by any name, which do nothing."""

    def get(self, name: str, default: Any = None) -> Any:
        return _silent


def is_real(value: object) -> bool:
    """Whether a value is a real number, Python's or NumPy's."""
    return isinstance(value, (Real, np.integer, np.floating)) and not isinstance(value, bool)


def _refused(name: str, value: object, what: str) -> InputError:
    return InputError("I009", f"the option `{name}` is {what}, not {described(value)}")


@dataclass(slots=True)
class Account:
    """The memory and the erased bits of a run; it goes back with the machine where possible."""

    live_bytes: int = 0
    peak_bytes: int = 0
    erased_bits: int = 0
    drift: float = 0.0
    """The largest residue of an ancilla, relative to the allowed residue."""
    bits: str = "stated"
    """The option `bits`: which functions of floats are used."""

    def grow(self, n: int) -> None:
        self.live_bytes += n
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)


def byte_size(value: Any) -> int:
    """The number of bytes counted for the value of a register."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, list):
        return SCALAR_BYTES * len(value)
    return 0 if value is None else SCALAR_BYTES * (2 if isinstance(value, complex) else 1)


class Frame:
    """An active function call.

    `pc` is the index of the next instruction in the innermost frame (the code's length at its end),
    and of the active call in the others. `regs` holds raw values: numbers, NumPy arrays, lists for
    stacks, None for registers that are not live.
    """

    __slots__ = ("code", "pc", "regs")

    def __init__(self, code: Code, regs: list[Any], pc: int = 0) -> None:
        self.code = code
        self.regs = regs
        self.pc = pc

    def __repr__(self) -> str:
        return f"<Frame {self.code!r} at {self.pc}>"


class Changed:
    """The states before and after values were changed from outside, which remain as they are."""

    __slots__ = ("after", "before")

    def __init__(self, before: State, after: State) -> None:
        self.before, self.after = before, after

    def __deepcopy__(self, memo: Any) -> Changed:
        return self


class State:
    """The complete state of a machine at one moment."""

    __slots__ = (
        "account",
        "armed",
        "changed",
        "direction",
        "edited_at",
        "frames",
        "options",
        "pardons",
        "residue",
        "time",
        "torn",
    )

    def __init__(self, frame: Frame, options: Options) -> None:
        self.frames = [frame]
        self.options = options
        self.time = 0
        self.direction = 1
        self.armed = False
        """Whether frames have code with traps; see `rvm.probes`."""
        self.torn = False
        """Whether an exception left an instruction half done."""
        self.edited_at: int | None = None
        """The time at which values were changed from outside; after a way back beyond it, that of
        the turn.  What is proved of freed values does not hold for those that were live then."""
        self.changed: Changed | None = None
        """The states before and after that, if a value was live whose rounding is judged."""
        self.pardons: dict[tuple[Code, int, str], float] = {}
        """Frees, by position, whose residue was found to be rounding though it exceeds the allowed
        one, with a factor for the allowance: of the "residue" itself, or of the "expected" value.
        See `rvm.engines.perturbed`."""
        self.account = Account(bits=options.bits)
        self.residue: Residue | None = Residue() if options.strict else None
        self.account.grow(sum(map(byte_size, frame.regs)))

    def __getstate__(self) -> dict[str, Any]:
        """All fields as plain data, except traps, which belong to the code that armed the state."""
        regs = [v for frame in self.frames for v in frame.regs]
        blocks, views = packed([v for v in regs if isinstance(v, np.ndarray)])
        views.reverse()
        held = [
            (f.code, f.pc, [views.pop() if isinstance(v, np.ndarray) else v for v in f.regs])
            for f in self.frames
        ]
        slots = {name: getattr(self, name) for name in self.__slots__}
        return slots | {"armed": False, "frames": held, "blocks": blocks}

    def __setstate__(self, state: dict[str, Any]) -> None:
        blocks = state.pop("blocks")
        for name, value in state.items():
            setattr(self, name, value)
        self.frames = [
            Frame(code, [unpacked(blocks, v) if isinstance(v, View) else v for v in regs], pc)
            for code, pc, regs in state["frames"]
        ]

    @property
    def edited(self) -> bool:
        """Whether values were changed from outside."""
        return self.edited_at is not None

    @contextmanager
    def edit(self) -> Iterator[None]:
        """A context in which values are changed from outside."""
        if self.changed is not None and self.edited_at == self.time:
            before: State | None = self.changed.before
        else:
            before = self._still() if self._rounds() else None
        try:
            yield
        finally:
            self.edited_at = self.time
            self.pardons = {at: k for at, k in self.pardons.items() if not at[2].startswith(PROVED)}
            self.changed = None if before is None else Changed(before, self._still())
            self._forget_changes()

    def _forget_changes(self) -> None:
        """Let go of the states of changes that are followed by `CHANGES` others."""
        state: State | None = self
        for _ in range(CHANGES):
            changed = state.changed if state is not None else None
            state = changed.before if changed is not None else None
        if state is not None:
            state.changed = None

    def _rounds(self) -> bool:
        """Whether a value is live that must be freed, and that rounding may change."""
        return any(
            held is not None and not register.is_own and not elem_of(register.type).is_exact
            for frame in self.frames
            for register, held in islice(
                zip(frame.code.function.registers, frame.regs, strict=True),
                frame.code.function.n_args,
                None,
            )
        )

    def _still(self) -> State:
        """A copy without the log, which is to remain as it is."""
        log, self.residue = self.residue, None
        try:
            return deepcopy(self)
        finally:
            self.residue = log

    @property
    def proved(self) -> tuple[Code, int, str]:
        """The key of `pardons` for the present free, by its depth: with the time of an edit, what
        is proved of its value holds from there on."""
        return self.top.code, self.top.pc, f"{PROVED}{len(self.frames)}"

    @property
    def top(self) -> Frame:
        return self.frames[-1]

    @property
    def at_end(self) -> bool:
        """Whether no instruction is left in the present direction."""
        return len(self.frames) == 1 and self.top.pc == len(self.top.code)

    def take_back(self, log: Residue, *, marked: bool) -> None:
        """Adopt the log of another run, to go back on it in the present direction.

        `marked`: only where functions are marked, as adjoints are.
        """
        log.way, log.marked = -self.direction, marked
        self.residue = log
        self.account.grow(log.bytes)

    @property
    def logging(self) -> int:
        """How ticks in the present direction use the strict log; see `Code.logging`."""
        log = self.residue
        if log is None:
            return 0
        return self.direction * log.way * (2 if log.marked else 1)

    def turn(self) -> None:
        """Reverse the direction, without changing anything else."""
        codes = [f.code.image.code(f.code.name, not f.code.undo) for f in self.frames]
        self.torn = True
        self.direction = -self.direction
        for frame, code in zip(self.frames, codes, strict=True):
            last = len(code) - (1 if frame is not self.frames[-1] else 0)
            frame.code = code
            frame.pc = last - frame.pc
        self._mark_live()
        if self.edited_at is not None and self.direction > 0 and self.time < self.edited_at:
            self.edited_at, self.changed = self.time, None
        self.torn = False

    def _mark_live(self) -> None:
        """Mark the records of live ancillas, or take the mark of an earlier turn away.

        Where their making is undone, rounding alone is left of them.
        """
        for frame in self.frames:
            for _, updates in frame.code.sizes.values():
                many = frame.regs[updates.reg]
                if many is not None:
                    frame.regs[updates.reg] = many + (TURNED if many < TURNED else -TURNED)

    def retreat(self) -> tuple[int, int] | None:
        """Set the registers that distinguish directions to false, for a run back without a log.

        The run back then executes code that the run forwards skipped, which makes up for what was
        dropped.  A frame inside code that is executed only forwards must first leave it: returned
        are the depth of the innermost of these, and the position at which it has left.
        """
        found = None
        for depth, frame in reversed([*enumerate(self.frames)]):
            reg = frame.code.telling
            if reg is None or not frame.regs[reg]:
                continue
            out = frame.code.behind(frame.pc)
            if out is None:
                frame.regs[reg] = False
            elif found is None:
                found = depth, out
        return found

    def calls(self, depth: int | None = None) -> tuple[Where | int, ...]:
        """The calls that led to the frame at a depth, by default the innermost: see `Diagnostic`.

        If there are many: the nearest ones, the number of those omitted, and the outermost.
        """
        n = len(self.frames) - 1 if depth is None else depth
        near = n if n <= NEAR + 1 else NEAR
        found: list[Where | int] = [self.where(self.frames[n - k]) for k in range(1, near + 1)]
        if near < n:
            found += [n - near - 1, self.where(self.frames[0])]
        return tuple(found)

    def where(self, frame: Frame | None = None) -> Where:
        """The source position of a frame's instruction (by default the innermost frame's)."""
        frame = frame or self.top
        code = frame.code
        pc = min(frame.pc, len(code) - 1) if len(code) else 0
        return where(code, pc)


def where(code: Code, pc: int) -> Where:
    """The source position of an instruction."""
    span, source = _source(code, pc)
    at = code.forward_pc(pc) if len(code) else 0
    if source is None:
        return Where(function=code.name, pc=at)
    return Where(
        source.name, span.line, span.column, span.end, source.line(span.line), code.name, at
    )


def words(code: Code, pc: int) -> Callable[[str], str] | None:
    """The words that the language of an instruction's source has for messages."""
    source = _source(code, pc)[1]
    return None if source is None else source.words


def _source(code: Code, pc: int) -> tuple[Span, Source | None]:
    """The span of an instruction, and the text that it is in."""
    span = code.span(pc) if len(code) else code.function.span(0)
    sources = code.image.program.sources
    return span, sources[span.source] if 0 <= span.source < len(sources) else None
