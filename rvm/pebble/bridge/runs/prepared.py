"""A function of a program made ready to be called very often, on raw registers.

What binding does for each call (names, types, shapes, overlaps) is done once, by whoever prepares
the call: the registers have to be what binding would make of them.  Calls go straight to machine
code where the engine is that, and through a machine otherwise.  Arrays have no gaps, and of each
parameter the same shape in all calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rvm.derive.gradients import dressed, nested
from rvm.engines.auto import WARM, choice_of, is_warm, native_is_there
from rvm.image import image_of
from rvm.program import Program
from rvm.run.machine import Machine
from rvm.state import Options, byte_size
from rvm.types import Array, Scalar

if TYPE_CHECKING:
    from rvm.engines.native.flight import Launch


class Prepared:
    """A function in one direction, for about a given number of calls."""

    def __init__(
        self, program: Program, name: str, undo: bool, options: Options, calls: float
    ) -> None:
        self.program = program
        self.code = image_of(program).code(name, undo)
        self.function = self.code.function
        self.options = options
        self.long = calls * len(self.code) >= WARM
        self._launch: Launch | None = None
        registers = self.function.registers[: self.function.n_args]
        self._plain = all(isinstance(r.type, (Scalar, Array)) for r in registers)
        self._scalars: list[tuple[int, int, bool]] = []
        """Registers of numbers, where their slots are, whether there are two of them."""
        self._arrays: list[tuple[int, int]] = []
        self._slots: list[Any] = []
        """What the slots of a call are, but for numbers and addresses."""
        self._live = 0

    def __call__(self, regs: list[Any]) -> list[Any]:
        """Run on the parameters' raw values; those of the end, arrays the same objects."""
        launch = self._launch
        if launch is None and not self._is_direct():
            machine = self._machine(regs)
            machine.run()
            return machine.state.frames[0].regs[: self.function.n_args]
        launch = self._launch
        assert launch is not None
        if not self._slots:
            self._measure(launch, regs)
        values = self._slots.copy()
        for k, at, pair in self._scalars:
            if pair:
                values[at], values[at + 1] = regs[k].real, regs[k].imag
            else:
                values[at] = regs[k]
        for k, at in self._arrays:
            values[at] = regs[k].__array_interface__["data"][0]
        flight = launch.run(values, self._live, self.options)
        if not flight.done:
            machine = self._machine(regs)
            flight.land(machine.state)
            machine.run()
            return machine.state.frames[0].regs[: self.function.n_args]
        raw = launch.layout.struct.unpack(flight.slots)
        for k, at, pair in self._scalars:
            regs[k] = complex(raw[at], raw[at + 1]) if pair else raw[at]
        return regs

    def _machine(self, regs: list[Any]) -> Machine:
        values = {p.name: nested(p.layout, regs) for p in self.function.params}
        return Machine.start(
            self.program,
            self.function.name,
            dressed(self.function, values),
            self.options,
            undo=self.code.undo,
        )

    def _is_direct(self) -> bool:
        """Whether machine code goes next; makes it if so."""
        options, code = self.options, self.code
        if not self._plain or options.strict or options.max_steps is not None:
            return False
        if options.engine == "auto":
            # A chain is a loop even if its step has none.
            if not (is_warm(code, choice_of(code, options)) or (self.long and native_is_there())):
                return False
        elif options.engine != "native":
            return False
        from rvm.engines.native.flight import Launch

        self._launch = Launch(code, options.checks)
        return True

    def _measure(self, launch: Launch, regs: list[Any]) -> None:
        """Find what is the same in all calls."""
        layout = launch.layout
        self._slots = layout.flat(regs)
        self._live = sum(map(byte_size, regs))
        for k, r in enumerate(self.function.registers[: self.function.n_args]):
            if isinstance(r.type, Scalar):
                self._scalars.append((k, layout.places[k], r.type.parts > 1))
            else:
                self._arrays.append((k, layout.places[k]))
