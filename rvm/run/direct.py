"""Calls that go straight to machine code: for short functions, where binding would cost most.

A direct call checks what binding checks, by cheaper questions; whenever an answer is not the
ordinary one the call is made the ordinary way, which finds the words for what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from ctypes import addressof, c_char
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rvm.engines import ENGINES
from rvm.engines.auto import choice_of, is_warm
from rvm.expr import Apply, Const, Place
from rvm.faults import Fault, Interrupted
from rvm.host.signals import Listening, deferred, followed, heard, interrupted, is_ctrl_c
from rvm.image import Code, image_of
from rvm.numbers import system
from rvm.numbers.residue import Residue
from rvm.program import Function, Program
from rvm.run.binding import Saved, as_python, check_lengths, stacks_of
from rvm.run.binding import saved as save
from rvm.run.kept import Kept
from rvm.run.machine import Machine
from rvm.run.results import Info, Result, Rounding
from rvm.state import SCALAR_BYTES, Options, byte_size
from rvm.transform.programs import differentiated
from rvm.types import Array, Scalar

if TYPE_CHECKING:
    from rvm.engines.native.flight import Flight, Launch

MOST = 1 << 20
"""Where arrays have more bytes than this a machine runs: instructions take long, and it listens."""
AS_BEFORE = "the arguments are as they were before the call"


class Direct:
    """A function in one direction, ready to be called with plain arguments."""

    def __init__(self, program: Program, code: Code, checks: bool) -> None:
        from rvm.engines.native.flight import Launch

        function = code.function
        self.program = program
        self.code = code
        self.launch = Launch(code, checks)
        layout = self.launch.layout
        registers = function.registers
        self.names = tuple(p.name for p in function.params)
        self.scalars = [
            (name, layout.places[k], _quick(t), system(t), t.is_complex)
            for k, name in enumerate(self.names)
            if isinstance(t := registers[k].type, Scalar)
        ]
        self.bytes = sum(SCALAR_BYTES * (2 if c else 1) for *_, c in self.scalars)
        changed = code.image.inout[code.name]
        self.arrays = [
            (name, k, layout.places[k], system(t.elem).dtype, t.rank, k in changed)
            for k, name in enumerate(self.names)
            if isinstance(t := registers[k].type, Array)
        ]
        self.lengths = _lengths(function)
        self.blank = [0] * layout.count

    def call(self, values: Mapping[str, Any], options: Options) -> Result | None:
        """The results; None where it does not apply."""
        if len(values) != len(self.names):
            return None
        flat: list[Any] = self.blank.copy()
        live = self.bytes
        arrays: dict[int, Any] = {}
        changing: list[Any] = []
        try:
            for name, at, quick, sys, pair in self.scalars:
                v = values[name]
                if type(v) is not quick:
                    v = sys.from_python(v)
                if pair:
                    flat[at], flat[at + 1] = v.real, v.imag
                else:
                    flat[at] = v
            if self.arrays:
                live += self._take_arrays(values, flat, arrays, changing)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        saved = [(v, v.copy()) for v in changing]
        back = True
        # Twice, as another Ctrl-C may come while the first is seen to.
        try:
            try:
                flight = self.launch.run(flat, live, options)
                if flight.done:
                    return self._result(flight, arrays)
                back = options.on_error == "back"
                # Callbacks may change an array's shape, and not that of a view.
                saved = [(v.view(), copy) for v, copy in saved]
                return self._go_on(flight, values, saved, options)
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
        values: Mapping[str, Any],
        saved: Iterable[tuple[Any, Any]],
        options: Options,
    ) -> Result:
        """The results of a run that machine code has begun."""
        with Listening():
            undo = self.code.undo
            machine = Machine.start(self.program, self.code.name, values, options, undo=undo)
            flight.land(machine.state)
            return transact(machine, values, Saved(saved))

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
            if not flags.c_contiguous or size > MOST or (changed and not flags.writeable):
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

    def _result(self, flight: Flight, arrays: Mapping[int, Any]) -> Result:
        raw = self.launch.layout.struct.unpack(flight.slots)
        out: dict[str, Any] = dict.fromkeys(self.names)
        for name, at, quick, sys, pair in self.scalars:
            v = complex(raw[at], raw[at + 1]) if pair else raw[at]
            out[name] = v if quick is not None else sys.to_python(v)
        for k, v in arrays.items():
            out[self.names[k]] = v
        return Result(out, flight)


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


class Run:
    """A function run to its end on raw values of its parameters' registers, which may change.

    In machine code at once where it is that's turn, and on a machine where it is not, or where the
    run takes longer; errors are a machine's.  `regs` are the parameters' registers afterwards,
    `ticks` what it took.  `watch` surrounds the machine's run, and is then always asked.  `log` is
    the strict log of a run of which this is the adjoint's.
    """

    def __init__(
        self,
        program: Program,
        name: str,
        regs: list[Any],
        options: Options,
        *,
        undo: bool = False,
        watch: Callable[[Machine], AbstractContextManager[object]] | None = None,
        log: Residue | None = None,
    ) -> None:
        self._made: Machine | None = None
        self._log = log
        self._entered = program, name, options, undo
        self._flight: Flight | None = None
        self.regs = regs
        code = image_of(program).code(name, undo)
        launch = launch_of(code, options) if watch is None else None
        if launch is not None:
            try:
                flight = launch.run_registers(regs, sum(map(byte_size, regs)), options)
            except KeyboardInterrupt as error:
                if is_ctrl_c(error):
                    raise interrupted("the inputs are as they were before the call") from None
                raise
            if flight.done:
                launch.results(flight, regs)
                self._flight, self.ticks = flight, flight.spent
                return
            machine = self._machine()
            flight.land(machine.state)
        else:
            machine = self._machine()
        with nullcontext() if watch is None else watch(machine):
            machine.run()
        self._made = machine
        self.ticks = machine.time
        self.regs = machine.state.frames[0].regs[: len(regs)]

    def __getstate__(self) -> dict[str, Any]:
        """What machine code left stays behind: a machine has all of it."""
        return self.__dict__ | {"_made": self.machine, "_flight": None}

    @property
    def rounding(self) -> Rounding:
        """What counted the roundings."""
        return self._flight or self.machine.state.account

    @property
    def info(self) -> Info:
        """What rounding did."""
        return Info.of(self.rounding)

    @property
    def machine(self) -> Machine:
        """A machine at the end of the run."""
        if self._made is None:
            assert self._flight is not None
            self._made = self._machine()
            state = self._made.state
            state.frames[0].pc = len(state.frames[0].code)
            self._flight.settle(state)
        return self._made

    def _machine(self) -> Machine:
        program, name, options, undo = self._entered
        made = Machine.entered(program, name, self.regs, options, undo)
        if self._log is not None:
            made.state.take_back(self._log, marked=True)
        return made


@deferred
def transact(
    machine: Machine,
    inputs: Mapping[str, Any],
    saved: Saved | None = None,
    check: Callable[[list[Any], float], None] | None = None,
) -> Result:
    """A machine's results; on any exception a caller's arrays and lists are as they were.

    `saved` has copies of the arrays, if the machine has begun; `on_error="stop"` needs none.
    `check` judges the registers at the end, and the drift.
    """
    code, regs = machine.state.frames[0].code, machine.state.frames[0].regs
    stacks = stacks_of(code.function, inputs)
    stops = machine.options.on_error == "stop"
    if saved is None:
        inout = frozenset() if stops else code.image.inout[code.name]
        saved = save(regs, inout, {} if stops else stacks)

    def give() -> None:
        for k, held in stacks.items():
            held[:] = as_python(code.function.registers[k].type, regs[k])

    # Twice, in case another exception comes while the first is seen to.
    try:
        try:
            machine.run()
            if check is not None:
                check(regs, machine.state.account.drift)
            heard()
            found = machine.result
            if machine.state.logging > 0:
                found = Result(dict(found), replace(found.info, log=Kept.of(machine)))
            give()
            return found
        except BaseException as error:
            if isinstance(error, Fault):
                _told(error, machine, saved)
            if stops:
                give()
            else:
                saved.restore()
            raise
    except BaseException as error:
        later = None if stops else saved.restore()
        if later is not None:
            followed(error, later)
        raise


def _told(error: Fault, machine: Machine, saved: Saved) -> None:
    """Have an error show values as they were at it, not as they are when data are put back."""
    if machine.options.on_error == "stop":
        error.values.setdefault("machine", machine)
        return
    for name, value in error.values.items():
        if isinstance(value, np.ndarray) and any(
            isinstance(v, np.ndarray) and np.may_share_memory(v, value) for v, _ in saved.pairs
        ):
            error.values[name] = value.copy()
    if isinstance(error, Interrupted):
        error.hint = AS_BEFORE


def is_direct(code: Code, options: Options) -> bool:
    """Whether runs of a code may go straight to machine code: where a run is one of many ticks."""
    row = ENGINES.get(options.engine)
    if row is None or not row.compiles or options.strict or options.max_steps is not None:
        return False
    if options.bits != "stated":
        # Machines say in their accounts which bits they have.
        return False
    return not row.chooses or is_warm(code, choice_of(code, options))


def launch_of(code: Code, options: Options) -> Launch | None:
    """What runs a code on registers, made at first use; None where options ask for more."""
    if not is_direct(code, options):
        return None
    from rvm.engines.native.flight import Launch

    found = code.compiled.get((Launch, options.checks))
    if not isinstance(found, Launch):
        found = code.compiled[Launch, options.checks] = Launch(code, options.checks)
    return found


def direct_of(program: Program, name: str, undo: bool, options: Options) -> Direct | None:
    """The direct call of a function; None where options or parameters ask for more."""
    code = image_of(program).code(name, undo)
    if not is_direct(code, options):
        return None
    key = (Direct, options.checks)
    found = code.compiled.get(key)
    if found is None:
        # What a gradient's values have come back to is judged after the run.
        able = (undo or differentiated(program, name) is None) and all(
            isinstance(p.layout, int)
            and isinstance(code.function.registers[p.layout].type, (Scalar, Array))
            for p in code.function.params
        )
        found = code.compiled[key] = Direct(program, code, options.checks) if able else False
    return found if isinstance(found, Direct) else None
