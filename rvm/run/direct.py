"""Calls that go straight to machine code: for short functions, where binding would cost most.

A direct call checks what binding checks, by cheaper questions; whenever an answer is not the
ordinary one the call is made the ordinary way, which finds the words for what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ctypes import addressof, c_char
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rvm.engines import ENGINES
from rvm.engines.auto import choice_of, is_warm
from rvm.expr import Apply, Const, Place
from rvm.host.signals import Listening, interrupted, is_ctrl_c
from rvm.image import Code, image_of
from rvm.numbers import system
from rvm.program import Function, Program
from rvm.run.binding import Saved, before, check_lengths
from rvm.run.kept import Kept, seal
from rvm.run.machine import Machine
from rvm.run.results import Info, Result, Told
from rvm.run.transaction import AS_BEFORE, transact
from rvm.state import SCALAR_BYTES, Options
from rvm.transform.programs import differentiated
from rvm.types import Array, Scalar

if TYPE_CHECKING:
    from rvm.engines.native.flight import Flight, Launch
    from rvm.engines.native.gaps import Gaps


class Direct:
    """A function in one direction, ready to be called with plain arguments.

    `logging` is what it does with a strict log, see `Code.logging`.
    """

    def __init__(self, program: Program, code: Code, checks: bool, logging: int) -> None:
        from rvm.engines.native.flight import Launch
        from rvm.engines.native.gaps import lent

        function = code.function
        self.program = program
        self.code = code
        self.logging = logging
        self.lent = lent
        self.launch = Launch(code, checks, logging)
        layout = self.launch.layout
        registers = function.registers
        self.names = tuple(p.name for p in function.params)
        self.scalars = [
            (name, layout.places[k], _quick(t), system(t), t.parts)
            for k, name in enumerate(self.names)
            if isinstance(t := registers[k].type, Scalar)
        ]
        self.bytes = sum(SCALAR_BYTES * parts for *_, parts in self.scalars)
        changed = code.image.inout[code.name]
        self.arrays = [
            (name, k, layout.places[k], system(t.elem).dtype, t.rank, k in changed)
            for k, name in enumerate(self.names)
            if isinstance(t := registers[k].type, Array)
        ]
        self.lengths = _lengths(function)
        self.blank = [0] * layout.count

    def call(
        self, values: Mapping[str, Any], options: Options, kept: Kept | None = None
    ) -> Result | None:
        """The results, if need be by a log; None where it does not apply."""
        if len(values) != len(self.names):
            return None
        flat: list[Any] = self.blank.copy()
        live = self.bytes
        arrays: dict[int, Any] = {}
        changing: list[Any] = []
        try:
            for name, at, quick, sys, parts in self.scalars:
                v = values[name]
                if type(v) is not quick:
                    v = sys.from_python(v)
                if parts > 1:
                    flat[at], flat[at + 1] = v.real, v.imag
                else:
                    flat[at] = v
            if self.arrays:
                live += self._take_arrays(values, flat, arrays, changing)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        gaps: Gaps | None = None
        if self.logging:
            if kept is not None and not self._is_of(kept, flat, arrays):
                return None
            gaps = self.lent(None if kept is None else kept.log)
            live += gaps.log.bytes
        saved = [(v, before(v)) for v in changing]
        back = True
        # Twice, as another Ctrl-C may come while the first is seen to.
        try:
            try:
                flight = self.launch.run(flat, live, options, gaps)
                if flight.done:
                    if gaps is not None:
                        return self._logged(flight, arrays, gaps, saved)
                    return self._result(flight, arrays, flight)
                back = options.on_error == "back"
                # Callbacks may change an array's shape, and not that of a view.
                saved = [(v.view(), copy) for v, copy in saved]
                return self._go_on(flight, gaps, values, saved, options)
            except BaseException:
                if back:
                    Saved(saved).restore()
                raise
        except BaseException as error:
            if back:
                Saved(saved).restore()
            if is_ctrl_c(error):
                raise interrupted(AS_BEFORE) from None
            raise

    def _go_on(
        self,
        flight: Flight,
        gaps: Gaps | None,
        values: Mapping[str, Any],
        saved: Iterable[tuple[Any, Any]],
        options: Options,
    ) -> Result:
        """The results of a run that machine code has begun."""
        with Listening():
            undo = self.code.undo
            machine = Machine.start(self.program, self.code.name, values, options, undo=undo)
            if gaps is not None:
                if self.logging < 0:
                    machine.state.take_back(gaps.log, marked=False)
                else:
                    machine.state.residue = gaps.log
            flight.land(machine.state)
            return transact(machine, values, Saved(saved))

    # ------------------------------------------------------------ strict calls

    def _is_of(self, kept: Kept, flat: list[Any], arrays: Mapping[int, Any]) -> bool:
        """Whether a log is that of these values."""
        regs = self._regs(self.launch.layout.struct.pack(*flat), arrays)
        return kept.is_taken_back_by(self.program, self.code) and seal(regs) == kept.seal

    def _logged(
        self,
        flight: Flight,
        arrays: Mapping[int, Any],
        gaps: Gaps,
        saved: Iterable[tuple[Any, Any]],
    ) -> Result | None:
        """The results of a strict run; None, with everything as before, if its log is not empty."""
        left, program, code = len(gaps.log), self.program, self.code
        log = gaps.released()
        if self.logging < 0:
            if left:
                Saved(saved).restore()
                return None
            return self._result(flight, arrays, flight)

        def sealed() -> bytes:
            return seal(self._regs(flight.slots, arrays))

        # Arrays may change before the log is asked for.
        now = sealed() if arrays else b""

        def info() -> Info:
            kept = Kept(program, code.name, code.undo, log, now or sealed())
            return replace(Info.of(flight), log=kept)

        return self._result(flight, arrays, info)

    def _regs(self, slots: bytes | bytearray, arrays: Mapping[int, Any]) -> list[Any]:
        """The raw values of the parameters' registers."""
        regs = [arrays.get(k) for k in range(len(self.names))]
        self.launch.layout.unpack(slots, self.launch.parameters, regs, {})
        return regs

    # ------------------------------------------------------------ in and out

    def _take_arrays(
        self,
        values: Mapping[str, Any],
        flat: list[Any],
        arrays: dict[int, Any],
        changing: list[Any],
    ) -> int:
        """Enter arrays, and note those that change; their bytes.  TypeError if one is odd."""
        spans: list[tuple[int, int]] = []
        total = 0
        for name, k, at, dtype, rank, changed in self.arrays:
            v = values[name]
            if type(v) is not np.ndarray or v.dtype is not dtype or v.ndim != rank:
                raise TypeError
            flags, size = v.flags, v.nbytes
            if not flags.c_contiguous or (changed and not flags.writeable):
                raise TypeError
            start = flat[at] = _address(v, size)
            flat[at + 2 : at + 2 + 2 * rank] = v.shape + v.strides
            spans.append((start, start + size))
            total += size
            arrays[k] = v
            if changed:
                changing.append(v)
        if self.lengths is None:
            check_lengths(self.code.function, [arrays.get(k) for k in range(len(self.names))])
        else:
            for k, axis, other, length in self.lengths:
                want = length if other is None else arrays[other].shape[length]
                if arrays[k].shape[axis] != want:
                    raise TypeError
        spans.sort()
        behind = 0
        for start, end in spans:
            if start < behind:
                raise TypeError
            behind = end
        return total

    def _result(self, flight: Flight, arrays: Mapping[int, Any], told: Told) -> Result:
        raw = self.launch.layout.struct.unpack(flight.slots)
        out: dict[str, Any] = dict.fromkeys(self.names)
        for name, at, quick, sys, parts in self.scalars:
            v = complex(raw[at], raw[at + 1]) if parts > 1 else raw[at]
            out[name] = v if quick is not None else sys.to_python(v)
        for k, v in arrays.items():
            out[self.names[k]] = v
        return Result(out, told)


def _quick(t: Scalar) -> type | None:
    """The Python type whose values are raw values as they are; None if none is."""
    if t.name == "f64":
        return float
    return complex if t.is_complex else None


Length = tuple[int, int, int | None, int]
"""A register, an axis, and the register and axis whose length it has; or None and the length."""


def _lengths(function: Function) -> list[Length] | None:
    """The lengths that parameters must have; None if they have to be evaluated."""
    found: list[Length] = []
    for k, register in enumerate(function.registers[: function.n_args]):
        for axis, dim in enumerate(register.dims):
            match dim:
                case None:
                    pass
                case Const(int(length)):
                    found.append((k, axis, None, length))
                case Apply("dim", (Place(other, ()), Const(int(other_axis)))):
                    found.append((k, axis, other, other_axis))
                case _:
                    return None
    return found


def _address(v: np.ndarray, size: int) -> int:
    """Where the elements of an array begin."""
    if size and v.flags.writeable:
        # A third of the time that asking the array takes.
        return addressof(c_char.from_buffer(cast("Any", v)))
    start: int = v.__array_interface__["data"][0]
    return start


def is_direct(code: Code, options: Options) -> bool:
    """Whether runs of a code may go straight to machine code: where a run is one of many ticks."""
    row = ENGINES.get(options.engine)
    if row is None or not row.compiles or options.max_steps is not None:
        return False
    if options.bits != "stated":
        # Machines say in their accounts which bits they have.
        return False
    return not row.chooses or is_warm(code, choice_of(code, options))


def launch_of(code: Code, options: Options, logging: int = 0) -> Launch | None:
    """What runs a code on registers, made at first use; None where options ask for more.

    `logging` is what runs do with a strict log, see `Code.logging`.
    """
    if not is_direct(code, options):
        return None
    from rvm.engines.native.flight import Launch

    key = (Launch, options.checks, logging)
    found = code.compiled.get(key)
    if not isinstance(found, Launch):
        found = code.compiled[key] = Launch(code, options.checks, logging)
    return found


def direct_of(
    program: Program, name: str, undo: bool, options: Options, kept: Kept | None = None
) -> Direct | None:
    """The direct call of a function, if need be by a log; None where more is asked for."""
    code = image_of(program).code(name, undo)
    if not is_direct(code, options):
        return None
    logging = int(options.strict) if kept is None else -1
    key = (Direct, options.checks, logging)
    found = code.compiled.get(key)
    if found is None:
        # What a gradient's values have come back to is judged after the run.
        able = (undo or differentiated(program, name) is None) and all(
            isinstance(p.layout, int)
            and isinstance(code.function.registers[p.layout].type, (Scalar, Array))
            for p in code.function.params
        )
        found = code.compiled[key] = (
            Direct(program, code, options.checks, logging) if able else False
        )
    return found if isinstance(found, Direct) else None
