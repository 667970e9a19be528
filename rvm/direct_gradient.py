"""Gradients that go straight to machine code: one run there and back for value and adjoints.

What is out of the ordinary is left to `rvm.gradients`, as `rvm.direct` leaves it to binding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from rvm.binding import Result, bind
from rvm.engines.auto import choice_of, is_warm
from rvm.expr import Const, Index, Part, Place, Step
from rvm.faults import Interrupted, RvmError
from rvm.gradients import (
    check_came_back,
    dressed,
    gradient_program,
    loss_place,
    named_duals,
    zero_dual,
)
from rvm.image import image_of
from rvm.isa import place as typed_place
from rvm.machine import Machine
from rvm.state import Options, byte_size
from rvm.transform.duals import bar_slots
from rvm.transform.gradient import adjoint_names
from rvm.transform.valued import valued
from rvm.types import F32, F64, I64, Stack

if TYPE_CHECKING:
    from rvm.calling import FunctionHandle
    from rvm.places import Named


class DirectGradient:
    """The value and the gradient of one place of a function's results."""

    def __init__(self, handle: FunctionHandle, loss: Named, place: Place, checks: bool) -> None:
        from rvm.engines.native.flight import Launch

        self.function = handle.function
        self.inout = image_of(handle.program).inout[handle.name]
        self.loss = loss
        gradient = gradient_program(handle.program, handle.name)
        self.adjoint = gradient.function(adjoint_names(handle.program)[handle.name])
        self.slots = bar_slots(self.function)
        self.reals = {k for k in self.slots if self.function.registers[k].type is F64}
        self.program = valued(gradient, place)
        self.entry = self.program.function(self.program.entry)
        code = image_of(self.program).code(self.entry.name, False)
        self.launch = Launch(code, checks)

    def run(
        self, inputs: Mapping[str, Any], wrt: Collection[str] | None, options: Options
    ) -> tuple[float, Result] | None:
        """The loss and the adjoints of the inputs; None if this run is not for here."""
        n = self.function.n_args
        start = bind(self.function, inputs, frozenset())[:n]
        regs = [
            v.copy() if k in self.inout and hasattr(v, "copy") else v for k, v in enumerate(start)
        ]
        bars = {
            k: 0.0 if k in self.reals else zero_dual(self.function, k, regs[k]) for k in self.slots
        }
        try:
            self._seed(bars)
        except IndexError:
            return None
        regs += [*bars.values(), 0.0]
        try:
            flight = self.launch.run_registers(regs, sum(map(byte_size, regs)), options)
        except KeyboardInterrupt:
            raise Interrupted(
                "R016", "interrupted", hint="the inputs are as they were before the call"
            ) from None
        if flight.done:
            self.launch.results(flight, regs)
        else:
            machine = self._machine(regs, options)
            flight.land(machine.state)
            try:
                regs = machine.run().state.frames[0].regs
            except Interrupted:
                raise
            except RvmError:
                return None
        check_came_back(self.function, start, regs, options)
        duals = {k: regs[slot] for k, slot in self.slots.items()}
        return regs[self.entry.n_args - 1], named_duals(
            self.function, self.adjoint, self.slots, duals, wrt
        )

    def _machine(self, regs: list[Any], options: Options) -> Machine:
        """A machine on these registers, for a run that takes longer."""
        inputs = {p.name: regs[k] for k, p in enumerate(self.entry.params)}
        return Machine.start(self.program, self.entry.name, dressed(self.entry, inputs), options)

    def _seed(self, bars: dict[int, Any]) -> None:
        one: Any = 1j if self.loss.part == "im" else 1.0
        if self.loss.index:
            bars[self.loss.slot][self.loss.index] += one
        else:
            bars[self.loss.slot] += one


def direct_gradient(handle: FunctionHandle, loss: str, options: Options) -> DirectGradient | None:
    """The direct gradient of a loss; None where options, parameters or the loss ask for more."""
    if handle.undo or options.engine not in ("auto", "native"):
        return None
    if options.strict or options.max_steps is not None:
        return None
    code = image_of(handle.program).code(handle.name, False)
    if options.engine == "auto" and not is_warm(code, choice_of(code, options)):
        return None
    key = (DirectGradient, loss, options.checks)
    found = code.compiled.get(key)
    if found is None:
        found = code.compiled[key] = _made(handle, loss, options) or False
    return found if isinstance(found, DirectGradient) else None


def _made(handle: FunctionHandle, loss: str, options: Options) -> DirectGradient | None:
    function = handle.function
    named = loss_place(function, loss)
    steps: list[Step] = []
    if named.index:
        steps.append(Index(tuple(Const(i, I64) for i in named.index)))
    if named.part:
        steps.append(Part(named.part))
    if any(isinstance(r.type, Stack) for r in function.registers[: function.n_args]):
        return None
    t = function.registers[named.slot].type
    place = typed_place(named.slot, t, tuple(steps))
    if place.type not in (F64, F32):
        return None
    return DirectGradient(handle, named, place, options.checks)
