"""Moves of chains whose step is a function of a program (see `rvm.pebble.bridge.emission.step`).

`func step(y: T, x: T, …)` adds the state after x to y, and leaves everything else unchanged: called
with y zero, it makes y the next state, and called backwards it makes y zero again.

States are lists of raw register values in buffers that are zero when they are free.  A state that
was uncomputed is zero to within the tolerance of the function's options (R001 if it is not), and
one that is erased is overwritten with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from rvm.engines.auto import WARM
from rvm.faults import InvertibilityError, UsageError
from rvm.image import image_of
from rvm.library.handle import FunctionHandle
from rvm.numbers import system
from rvm.numbers.rounding import is_passed
from rvm.pebble.bridge.emission.step import step_of
from rvm.pebble.bridge.runs.files import Files
from rvm.pebble.bridge.runs.leaves import protected
from rvm.pebble.bridge.runs.moves import Moves, told
from rvm.program import Function, Layout, Program, Record
from rvm.run.binding import bind, outside
from rvm.run.bits import code_of
from rvm.run.direct import launch_of
from rvm.run.machine import Machine
from rvm.run.raw import Run
from rvm.state import Options, byte_size
from rvm.types import Array, elem_of

Raw = list[Any]
"""The registers of a state."""
Callee = Callable[[list[Any]], list[Any]]
"""A prepared call."""


def prepared(
    program: Program,
    name: str,
    undo: bool,
    options: Options,
    calls: float,
    drifts: list[float] | None = None,
) -> Callee:
    """A function in one direction, called about so often on its parameters' raw registers.

    Each call appends its largest residue, in parts of the allowed one, to `drifts`.
    What binding does for each call (names, types, shapes, overlaps) is done once, by whoever calls:
    the registers have to be what binding would make of them, arrays without gaps, and of the same
    shapes in all calls.
    """
    code = code_of(program, name, undo, options)
    # A chain is a loop even if its step has none.
    if calls * len(code) >= WARM:
        code.image.heat[name] = max(WARM, code.image.heat[name])
    ready: list[Any] = []
    """Launches of calls, and the memory for their parameters."""
    noted: Callable[[float], None] = (lambda _: None) if drifts is None else drifts.append

    def call(regs: list[Any]) -> list[Any]:
        if not ready:
            launch = launch_of(code, options)
            if launch is None:
                run = Run(program, name, regs, options, undo=undo)
                noted(run.rounding.drift)
                return run.regs
            ready[:] = launch, sum(map(byte_size, regs))
        launch, live = ready
        flight = launch.run_registers(regs, live, options)
        if flight.done:
            launch.results(flight, regs)
            noted(flight.drift)
            return regs
        machine = Machine.entered(program, name, regs, options, undo)
        flight.land(machine.state)
        machine.run()
        noted(machine.state.account.drift)
        return machine.state.frames[0].regs[: len(regs)]

    return call


class FunctionSteps(Moves):
    """Moves by a function of a program."""

    def __init__(
        self,
        handle: FunctionHandle,
        number: str | None,
        in_place: str | None,
        x0: Any,
        constants: Mapping[str, Any],
        calls: float,
    ) -> None:
        """InputError I001 to I007 for an input or constants that the function does not take."""
        self.handle = handle = handle.upright()
        if handle.options.strict:
            raise UsageError(
                "P001",
                "strict mode keeps a log for each run; calls of their own cannot share one",
                hint="states of `fixed` numbers are exact without it",
            )
        self.function = handle.function
        self.step = own = step_of(handle.program, handle.name, number, in_place)
        self.after, self.before, *others = self.function.params
        self.constants = [p for p in others if p.layout != own.number]
        self.tolerance = handle.options.tolerance
        name, program = handle.name, handle.program
        made = partial(prepared, program, options=handle.options, calls=calls)
        self.forth: Callee = made(name, False)
        self.back: Callee = made(name, True)
        if in_place is not None:
            self.turn: tuple[Callee, Callee] = made(in_place, False), made(in_place, True)
        changed = image_of(program).inout[name]
        self.passing = sorted(changed - set(own.y))
        """Other registers than y that the function changes and must restore."""
        zero = zeros(self.function, self.after.layout, x0)
        values = {self.after.name: zero, self.before.name: x0, **constants}
        if own.number is not None:
            values[self.function.registers[own.number].name] = 0
        regs = bind(self.function, values, frozenset(own.y))
        # Machine code wants arrays without gaps; fields of structured arrays have some.
        self.template = [
            np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v
            for v in regs[: self.function.n_args]
        ]
        self.blank = [shadow(self.template[k]) for k in own.y]
        for k in own.y:
            self.template[k] = None
        self.x0 = [
            protected(v) if isinstance(v, np.ndarray) else v
            for v in (self.template[k] for k in own.x)
        ]
        self.nbytes = sum(map(byte_size, self.blank))
        self.spare: list[Raw] = []

    # ------------------------------------------------------------ calls

    def filled(self, y: Raw, x: Raw, k: int) -> list[Any]:
        """The parameters' registers for step k."""
        own = self.step
        regs = self.template.copy()
        for slot, value in zip(own.y, y, strict=True):
            regs[slot] = value
        for slot, value in zip(own.x, x, strict=True):
            regs[slot] = value
        if own.number is not None:
            regs[own.number] = k - 1
        return regs

    def call(self, run: Callee, y: Raw, x: Raw, k: int) -> Raw:
        """A call on two states; y after it, in the same buffers."""
        regs = self.filled(y, x, k)
        if self.passing:
            return self._careful(run, regs, k)
        regs = self._run(run, regs, k)
        return [regs[slot] for slot in self.step.y]

    def _run(self, run: Callee, regs: list[Any], k: int) -> list[Any]:
        try:
            return run(regs)
        except Exception as error:
            told(error, f"step {k}")
            raise

    def _careful(self, run: Callee, regs: list[Any], k: int) -> Raw:
        """A call on copies of what is changed in passing; R012 if it does not come back."""
        before = {slot: regs[slot] for slot in self.passing}
        for slot, value in before.items():
            if isinstance(value, np.ndarray):
                regs[slot] = value.copy()
        regs = self._run(run, regs, k)
        for slot, value in before.items():
            register = self.function.registers[slot]
            if not is_passed(elem_of(register.type), regs[slot], value, self.tolerance, False):
                raise InvertibilityError(
                    "R012",
                    f"`{register.name}` is not what it was after step {k}",
                    values={"before": value, "after": regs[slot]},
                    hint="a step changes its first parameter only",
                )
        return [regs[slot] for slot in self.step.y]

    # ------------------------------------------------------------ buffers

    def buffer(self) -> Raw:
        """A state of zeros."""
        if self.spare:
            return self.spare.pop()
        return [v.copy() if isinstance(v, np.ndarray) else v for v in self.blank]

    def free(self, x: Raw) -> None:
        """Erase a state, and take its buffer back."""
        for at, blank in enumerate(self.blank):
            if isinstance(blank, np.ndarray):
                np.copyto(x[at], blank)
            else:
                x[at] = blank
        self.spare.append(x)

    def vanished(self, y: Raw, k: int) -> None:
        """Take back the buffer of a state that was uncomputed; R001 if it is not zero."""
        for slot, value, blank in zip(self.step.y, y, self.blank, strict=True):
            register = self.function.registers[slot]
            # What made it is undone, so that what is left is rounding, if it is finite.
            t = elem_of(register.type)
            if not (_is(value, blank) or is_passed(t, value, blank, self.tolerance, True)):
                raise InvertibilityError(
                    "R001",
                    f"step {k}, undone, leaves something of `{register.name}`",
                    values={"left": value},
                    hint="a step adds to its first parameter, and its inverse takes the same away",
                )
        self.free(y)

    # ------------------------------------------------------------ moves

    def made(self, x: Raw, k: int) -> Raw:
        return self.call(self.forth, self.buffer(), x, k)

    def unadvance(self, x: Raw, y: Raw, j: int) -> None:
        """The step backwards, which leaves nothing."""
        self.vanished(self.call(self.back, y, x, j), j)

    def shift(self, x: Raw, i: int, j: int) -> Raw:
        """s_j where s_i was, by the step in place."""
        for k in range(i + 1, j + 1):
            x = self._turned(self.turn[0], x, k)
        return x

    def unmade(self, y: Raw, k: int) -> Raw:
        return self._turned(self.turn[1], y, k)

    def _turned(self, run: Callee, x: Raw, k: int) -> Raw:
        """A state after a step in place."""
        own = self.step
        regs = self.filled(x, x, k)
        kept = [v for slot, v in enumerate(regs) if slot not in own.y]
        return self._run(run, kept, k)[: len(x)]

    # ------------------------------------------------------------ for others

    def seen(self, x: Raw) -> Any:
        return self._value([protected(v) if isinstance(v, np.ndarray) else v for v in x])

    def _value(self, x: Raw) -> Any:
        """A state as Python values; its arrays are those of the run."""
        regs: list[Any] = [None] * len(self.function.registers)
        for slot, value in zip(self.step.y, x, strict=True):
            regs[slot] = value
        return outside(self.function, self.after.layout, regs)

    def given(self, x: Raw) -> Any:
        return self._value([v.copy() if isinstance(v, np.ndarray) else v for v in x])

    def result(self, x: Raw) -> Any:
        return self._value(x)

    def leaves(self, x: Raw) -> Sequence[Any]:
        return x

    def loaded(self, files: Files, node: int) -> Raw:
        return files.load(node, self.buffer())


def zeros(function: Function, layout: Layout, like: Any) -> Any:
    """A state of zeros as Python has it, with arrays shaped like those of another state."""
    if isinstance(layout, Record):
        found = {}
        for name, inner in layout.fields:
            try:
                part = like[name] if isinstance(like, (Mapping, np.ndarray, np.void)) else None
                found[name] = zeros(function, inner, getattr(like, name) if part is None else part)
            except (AttributeError, KeyError, ValueError):
                # Binding finds the words for what is missing.
                found[name] = zeros(function, inner, None)
        return found
    t = function.registers[layout].type
    numbers = system(elem_of(t))
    if isinstance(t, Array):
        shape = np.shape(like) if np.ndim(like) == t.rank else (0,) * t.rank
        return np.full(shape, numbers.zero, numbers.dtype)
    return numbers.to_python(numbers.zero)


def shadow(value: Any) -> Any:
    """An array like one that is the same everywhere, without its memory; numbers as they are."""
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    return np.broadcast_to(value.flat[0], value.shape)


def _is(value: Any, blank: Any) -> bool:
    """Whether a value is the zero of its type, tested without more memory if that is 0."""
    if not isinstance(value, np.ndarray):
        return bool(value == blank)
    if not value.size or blank.flat[0] == 0:
        return not value.any()
    return bool((value == blank).all())
