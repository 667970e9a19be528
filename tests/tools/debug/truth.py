"""All states of a run, from machines of the reference engine that were only stepped forwards.

They are what a session of the debugger must show, whichever way it went.  Nothing of a session's
own past is used: after an edit the run is stepped and recorded again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from rvm_tools.debug.passing import settle

from rvm.engines.evaluate import evaluate, find
from rvm.engines.memory import store
from rvm.expr import Place, children
from rvm.faults import RvmError
from rvm.image import Code
from rvm.program import Program
from rvm.run.machine import Machine
from rvm.state import Frame, Options, State
from rvm.types import Scalar

LONGEST = 3000
"""Ticks of the longest run that is recorded."""


class TooLong(Exception):
    """A run has more ticks than are recorded."""


def bits(value: Any) -> Any:
    """A register's value, to be compared to the bit."""
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else repr(value)


@dataclass(slots=True)
class Held:
    """A frame of a recorded state; `call` numbers the calls of a run."""

    code: Code
    pc: int
    regs: list[Any]
    call: int = 0

    @classmethod
    def of(cls, frame: Frame) -> Held:
        regs = [v.copy() if isinstance(v, (np.ndarray, list)) else v for v in frame.regs]
        return cls(frame.code, frame.pc, regs)

    @property
    def name(self) -> str:
        return self.code.name

    @property
    def undo(self) -> bool:
        return self.code.undo

    def shown(self) -> Any:
        """To be compared to the bit, with what is known of the sizes of values."""
        return self.name, self.undo, self.pc, [bits(value) for value in self.regs]


@dataclass(slots=True)
class Moment:
    """A recorded state."""

    frames: list[Held]
    erased: int
    log: int | None
    """The bits of the strict log."""

    @classmethod
    def of(cls, state: State) -> Moment:
        log = None if state.residue is None else state.residue.bits
        return cls([Held.of(f) for f in state.frames], state.account.erased_bits, log)

    @property
    def top(self) -> Held:
        return self.frames[-1]

    def shown(self) -> Any:
        return (self.erased, self.log), [f.shown() for f in self.frames]


@dataclass(slots=True)
class Edit:
    """A state that was put in the place of another one: manually, or `computed`."""

    time: int
    state: State
    computed: bool


@dataclass(slots=True)
class Truth:
    """A function on inputs: the states of its run with the edits so far."""

    program: Program
    function: str
    inputs: dict[str, Any]
    options: Options
    undo: bool = False
    edits: list[Edit] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    before: dict[int, Moment] = field(default_factory=dict)
    """The states before the edits, by time."""
    error: RvmError | None = None
    """The error that the run ends with."""

    def __post_init__(self) -> None:
        self.record()

    @property
    def last(self) -> int:
        """The latest time."""
        return len(self.moments) - 1

    @property
    def computed(self) -> int | None:
        """The time of the first computed state."""
        return next((e.time for e in self.edits if e.computed), None)

    def _run(self) -> Iterator[Machine]:
        """A machine at each time, before and after an edit too."""
        options = replace(self.options, engine="reference", output=lambda line: None)
        m = Machine.start(
            self.program, self.function, deepcopy(self.inputs), options, undo=self.undo
        )
        edits = {e.time: e.state for e in self.edits}
        while True:
            yield m
            if m.time in edits:
                m.state = deepcopy(edits[m.time])
                yield m
            if m.state.at_end:
                return
            time = m.time
            while m.time == time:
                m.tick()

    def machine(self, time: int) -> Machine:
        """A machine at a time, after an edit there."""
        found = None
        edited = any(e.time == time for e in self.edits)
        for found in self._run():
            if found.time == time:
                if not edited:
                    break
                edited = False
        assert found is not None and found.time == time
        return found

    def record(self) -> None:
        """Step through the run, and keep every state."""
        self.moments, self.error = [], None
        self.before = {}
        calls: list[int] = []
        number = 0
        try:
            for m in self._run():
                if m.time > LONGEST:
                    raise TooLong
                made = Moment.of(_settled(m))
                del calls[len(made.frames) :]
                while len(calls) < len(made.frames):
                    number += 1
                    calls.append(number)
                for f, call in zip(made.frames, calls, strict=True):
                    f.call = call
                if m.time == self.last:
                    self.before[m.time] = self.moments.pop()
                self.moments.append(made)
        except RvmError as error:
            self.error = error

    # ------------------------------------------------------------ edits

    def edit(self, time: int, change: Callable[[State], bool]) -> bool:
        """Change the state at a time: later edits are gone.  Whether it can be changed so."""
        m = self.machine(time)
        settle(m.state)
        with m.state.edit():
            able = change(m.state)
        if able:
            self._put(Edit(time, deepcopy(m.state), False))
        return able

    def compute_back(self, time: int, ticks: int | None) -> None:
        """Execute the inverse code from the state at a time: another run from where it ends."""
        m = self.machine(time)
        m.state.turn()
        try:
            m.go(min(ticks or LONGEST, LONGEST))
        except RvmError as error:
            self.failed = error
        else:
            self.failed = None
            if ticks is None and not m.state.at_end:
                raise TooLong
        m.state.turn()
        settle(m.state)
        self._put(Edit(m.time, deepcopy(m.state), True))

    failed: RvmError | None = None

    def _put(self, edit: Edit) -> None:
        together = [e for e in self.edits if e.time == edit.time and e.computed]
        self.edits = [e for e in self.edits if e.time < edit.time]
        self.edits.append(replace(edit, computed=edit.computed or bool(together)))
        self.record()


def _settled(m: Machine) -> State:
    """A machine's state with the scalars of callers as they are; the machine's own stays."""
    settle(m.state)
    return m.state


def put(frames: list[Frame], depth: int, place: Place, raw: Any) -> bool:
    """Change a number, and all that is the same variable in other frames.

    Whether each active call would still be passed what it was passed.
    """
    passed = [_located(arg, f.regs) for f in frames[:-1] for arg in _args(f)]
    spots = [(depth, place)]
    store(place, frames[depth].regs, raw)
    for d, at in spots:
        cell = _memory(at, frames[d].regs)
        for outer in range(len(frames) - 1):
            for j, arg in enumerate(_args(frames[outer])):
                if not isinstance(arg, Place) or not isinstance(arg.type, Scalar):
                    continue
                regs, param = frames[outer].regs, frames[outer + 1].regs
                if (outer + 1, j) == (d, at.reg):
                    store(arg, regs, param[j])
                    met = (outer, arg)
                elif (
                    _is_same(cell, arg, regs)
                    if cell is not None
                    else (outer, arg.reg) == (d, at.reg)
                ):
                    param[j] = find(arg, regs).read()
                    met = (outer + 1, Place(j, (), arg.type))
                else:
                    continue
                spots += [met] * (met not in spots)
    for outer, inner in pairwise(frames):
        for j, arg in enumerate(_args(outer)):
            if _located(arg, outer.regs) != passed.pop(0):
                return False
            changed = j in outer.code.image.inout[outer.code.instrs[outer.pc].symbol]
            if changed or (isinstance(arg, Place) and not isinstance(arg.type, Scalar)):
                continue
            try:
                if bits(evaluate(arg, outer.regs)) != bits(inner.regs[j]):
                    return False
            except RvmError:
                return False
    return True


def _args(frame: Frame) -> tuple[Any, ...]:
    return frame.code.instrs[frame.pc].args


def _located(arg: Any, regs: list[Any]) -> Any:
    """The values of the indices of an argument that is a place; None if they have none."""
    if not isinstance(arg, Place):
        return None
    try:
        return [evaluate(node, regs) for node in children(arg)]
    except RvmError:
        return None


def _memory(place: Place, regs: list[Any]) -> Any:
    """The memory of an array's element; None for what is in a register."""
    return find(place, regs).bytes_view() if isinstance(regs[place.reg], np.ndarray) else None


def _is_same(cell: Any, arg: Place, regs: list[Any]) -> bool:
    view = _memory(arg, regs)
    return view is not None and np.shares_memory(view, cell)
