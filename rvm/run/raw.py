"""Runs of functions on raw register values, from which derivatives are made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from rvm.numbers.residue import Residue, Snapshot
from rvm.program import Program
from rvm.run.bits import code_of
from rvm.run.direct import launch_of
from rvm.run.machine import Machine
from rvm.run.results import Info, Rounding
from rvm.state import Options, byte_size

if TYPE_CHECKING:
    from rvm.engines.native.flight import Flight
    from rvm.engines.native.gaps import Gaps


class Run:
    """A function run to its end on raw values of its parameters' registers, which may change.

    It runs as machine code where that is ready, and on a machine otherwise, or if the run takes
    longer; errors are those of a machine.  `regs` are the parameters' registers afterwards, `ticks`
    the number of ticks.  `watch` is a context around the machine's run; with it a machine is always
    used.  `log` is the strict log of the run of which this is the adjoint's.
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
        self._log, self._back = log, log is not None
        self._left: Snapshot | None = None
        """The rest of the log that machine code has left."""
        self._entered = program, name, options, undo
        self._flight: Flight | None = None
        self.regs = regs
        code = code_of(program, name, undo, options)
        # The adjoint's functions are marked.
        logging = int(options.strict) if log is None else -2
        launch = launch_of(code, options, logging) if watch is None else None
        if launch is not None:
            gaps = self._gaps() if logging else None
            live = sum(map(byte_size, regs)) + (0 if log is None else log.bytes)
            flight = launch.run_registers(regs, live, options, gaps)
            if flight.done:
                launch.results(flight, regs)
                self._flight, self.ticks = flight, flight.spent
                if gaps is not None:
                    left = len(gaps.log)
                    self._left = gaps.released()
                    if self._back and left:
                        self.machine.look_emptied()
                return
            if gaps is not None:
                self._log = gaps.log
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
        """The state without the log left by machine code, which the machine holds completely."""
        return self.__dict__ | {"_made": self.machine, "_flight": None}

    @property
    def rounding(self) -> Rounding:
        """The counter of roundings."""
        return self._flight or self.machine.state.account

    @property
    def info(self) -> Info:
        """The rounding in the run."""
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

    def _gaps(self) -> Gaps:
        from rvm.engines.native.gaps import lent

        return lent(None if self._log is None else self._log.snapshot())

    def _machine(self) -> Machine:
        program, name, options, undo = self._entered
        made = Machine.entered(program, name, self.regs, options, undo)
        log = self._log if self._left is None else Residue().hold(self._left)
        if log is not None:
            if self._back:
                made.state.take_back(log, marked=True)
            else:
                made.state.residue = log
        return made
