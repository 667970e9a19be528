"""Gradients by direct calls of machine code: one run forwards and back for value and adjoints.

If no value is requested and the run back reads nothing that the forward run would have changed, the
run back alone is enough.  Unusual cases are left to `rvm.derive.gradients`, as `rvm.run.direct`
leaves them to binding. The program is only made if its machine code is not in the cache of another
process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rvm.derive.estimate import Evidence
from rvm.derive.gate import are_finite, check_returned, later
from rvm.derive.gradients import Judge, loss_place, seed_place
from rvm.derive.left_out import able, left_out, slots_named
from rvm.derive.named import add_seeds, named_duals, zero_dual
from rvm.derive.places import wanted
from rvm.derive.target import Target
from rvm.expr import Place
from rvm.faults import RvmError
from rvm.host.once import making
from rvm.image import Code, image_of
from rvm.ir.fills import fills
from rvm.isa import place as typed_place
from rvm.numbers import system
from rvm.program import Function, Program
from rvm.run.backup import copied
from rvm.run.binding import bind
from rvm.run.direct import is_direct
from rvm.run.intake import ODD, Intake, address_of, takes
from rvm.run.machine import Machine
from rvm.run.results import Info, Result, Rounding
from rvm.state import SCALAR_BYTES, Options, byte_size
from rvm.transform.duals import bar_slots, bar_type
from rvm.transform.forth import forwards
from rvm.transform.programs import gradient_program
from rvm.transform.unread import unread
from rvm.transform.valued import valued
from rvm.types import C128, F32, F64, Array, Scalar, Stack, elem_of

if TYPE_CHECKING:
    from rvm.derive.places import Named

Made = TypeVar("Made")
"""Parts that are made only once: runs of a gradient program, for one loss or for all."""
Bars = dict[int, Any]
"""Adjoints by parameter register."""
Found = tuple[list[Any], Result]
"""The registers after a run, and the adjoints of the inputs by parameter."""


class ThereAndBack:
    """A function's gradient program, run as machine code in one call.

    In between, further registers receive the values of parameters that are single floats, and the
    last one that of the loss, if there is a place for it.  Parameters `without` adjoints are only
    read.  With `back` there is only the run back, which does not change these parameters: they are
    those that the function changes.
    """

    def __init__(
        self,
        target: Target,
        loss: Place | None,
        without: frozenset[int] = frozenset(),
        back: frozenset[int] | None = None,
    ) -> None:
        from rvm.engines.native.flight import Launch
        from rvm.engines.native.roots import Derived

        self._target, self._without = target, without
        self.program, self.name = program, name = target.program, target.name
        self.function = function = target.function
        inout = image_of(program).inout[name]
        self.back = back or frozenset()
        self.inout = inout - self.back
        self.slots = bar_slots(function, without)
        self.gaining = [slot for k, slot in self.slots.items() if k not in self.back]
        """Where the adjoints are that the run back changes."""
        self.floats = [k for k in sorted(self.inout) if function.registers[k].type in (F64, F32)]
        places = [typed_place(k, function.registers[k].type) for k in self.floats]
        places += [] if loss is None or back is not None else [loss]
        self.given = len(places)
        self.names = _names(function, self.slots)
        self.able = able(function)

        def make() -> Code:
            made = gradient_program(program, name, without)
            made = valued(made, places) if back is None else _only_back(made)
            return image_of(made).code(made.entry, False)

        what = ("gradient" if back is None else "adjoint", name, repr(loss), repr(sorted(without)))
        checks = target.options.checks
        alone = back is not None
        self.launch = Launch(Derived(program, what, make), checks, unread=self.back, blank=alone)
        sketch = self.launch.root.sketch
        self.blank = {k for k, s in self.slots.items() if alone and s in sketch.fills}
        """The parameters whose adjoints the run fills."""
        layout = self.launch.layout
        self.intake = Intake(function, layout, inout) if takes(function) else None
        types = [layout.types[slot] for slot in self.slots.values()]
        self.bars = [
            (k, layout.places[slot], system(elem_of(t)), isinstance(t, Array))
            for (k, slot), t in zip(self.slots.items(), types, strict=True)
            if isinstance(t, (Scalar, Array))
        ]
        """The parameters that have adjoints, where these are in slots, of which numbers they are,
        and whether they are arrays."""

    def run(
        self,
        inputs: Mapping[str, Any],
        seed: Callable[[Bars], None],
        seeded: Collection[int],
        wrt: Collection[str] | None,
        options: Options,
    ) -> Found | None:
        """The result of adjoints of the results, which `seed` enters; None where it does not apply.

        That is for the registers `seeded`.  An IndexError of `seed` means that, too.
        """
        function, launch = self.function, self.launch
        if not self.blank.isdisjoint(seeded):
            return self._whole.run(inputs, seed, seeded, wrt, options)
        start, flat, held = self._taken(inputs)
        bars: Bars = {
            k: (np.empty if k in self.blank else np.zeros)(start[k].shape, sys.dtype)
            if many
            else sys.zero
            for k, _, sys, many in self.bars
        }
        try:
            seed(bars)
        except IndexError:
            return None
        regs = start.copy()
        for k in self.inout:
            v = start[k]
            if isinstance(v, np.ndarray):
                regs[k] = changing = v.copy()
                _enter(flat, launch.layout.places[k], changing)
        for k, at, _, many in self.bars:
            bar = bars[k]
            if many:
                _enter(flat, at, bar)
                held += bar.nbytes
            elif type(bar) is complex:
                flat[at], flat[at + 1] = bar.real, bar.imag
                held += 2 * SCALAR_BYTES
            else:
                flat[at] = bar
                held += SCALAR_BYTES
        # Minus zero: to that a zero of either sign is added as it is.
        regs += [*bars.values(), *[-0.0] * self.given]
        for k in range(len(regs) - self.given, len(regs)):
            flat[launch.layout.places[k]] = -0.0
        flight = launch.run(flat, held + SCALAR_BYTES * self.given, options)
        rounding: Rounding = flight
        if flight.done:
            launch.results(flight, regs)
        elif self.blank and not flight.has_filled(fills(launch.code).values()):
            return self._whole.run(inputs, seed, seeded, wrt, options)
        else:
            program: Program = launch.code.image.program
            for k in self.back:
                # Who goes on there changes them.
                regs[k] = copied(regs[k])
            machine = Machine.entered(program, launch.code.name, regs, later(options), False)
            flight.land(machine.state)
            try:
                state = machine.run().state
                regs, rounding = state.frames[0].regs[: len(regs)], state.account
            except RvmError:
                return None
            for k in self.back:
                regs[k] = start[k]
        if self.back and not are_finite(regs[slot] for slot in self.gaining):
            # Whether results come back from what is no number is seen there and back.
            return self._whole.run(inputs, seed, seeded, wrt, options)

        def evidence() -> Evidence:
            found = {k: regs[slot] for k, slot in self.slots.items()}
            seeds = {k: zero_dual(function, k, start[k]) for k in bar_slots(function)}
            seed(seeds)
            return Evidence(self.program, self.name, False, options, start, seeds, found)

        at = len(regs) - self.given
        finals = dict(zip(self.floats, regs[at:], strict=False))
        check_returned(function, start, regs, options, evidence, finals, rounding.drift)

        def info() -> Info:
            return Info.of(rounding, judge=Judge(evidence, wrt))

        if self.names is not None:
            wanted_names = self.names if wrt is None else wanted(function, self.able, wrt)
            by_name = self.names.items()
            return regs, Result({n: regs[k] for n, k in by_name if n in wanted_names}, info)
        duals = {k: regs[slot] for k, slot in self.slots.items()}
        return regs, named_duals(function, duals, info, wrt)

    @cached_property
    def _whole(self) -> ThereAndBack:
        """The same with the run forwards."""
        return ThereAndBack(self._target, None, self._without)

    def _taken(self, inputs: Mapping[str, Any]) -> tuple[list[Any], list[Any], int]:
        """The inputs' raw values by register, the values to pack into slots, and the bytes counted.

        Arrays are the caller's own, or contiguous copies.
        """
        if self.intake is not None:
            try:
                taken = self.intake.take(inputs)
            except ODD:
                pass
            else:
                return self.intake.raw(taken), taken.flat, taken.live
        start = bind(self.function, inputs, self.inout)[: self.function.n_args]
        start = [np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for v in start]
        return start, self.launch.layout.flat(start), sum(map(byte_size, start))


def _enter(flat: list[Any], at: int, v: NDArray[Any]) -> None:
    """Put an array that one owns in slots."""
    flat[at] = address_of(v, v.nbytes)
    flat[at + 2 : at + 2 + 2 * v.ndim] = v.shape + v.strides


def _names(function: Function, slots: Mapping[int, int]) -> dict[str, int] | None:
    """The adjoints' registers by parameter where their raw values are Python's; None elsewhere."""
    found = {}
    for p in function.params:
        if not isinstance(p.layout, int):
            return None
        if p.layout in slots:
            t = bar_type(function.registers[p.layout].type)
            if t is None or elem_of(t) not in (F64, C128):
                return None
            found[p.name] = slots[p.layout]
    return found


class DirectGradient:
    """The gradient of one place of a function's results, and its value where that is asked for."""

    def __init__(self, run: ThereAndBack, loss: Named) -> None:
        self._run = run
        self.loss = loss

    def run(
        self, inputs: Mapping[str, Any], wrt: Collection[str] | None, options: Options
    ) -> tuple[float, Result] | None:
        """The loss (0 if it is not asked for) and the inputs' adjoints; None where not."""
        found = self._run.run(inputs, self._seed, (self.loss.slot,), wrt, options)
        if found is None:
            return None
        return (found[0][-1] if self._run.given else 0.0), found[1]

    def _seed(self, bars: Bars) -> None:
        seed_place(bars, self.loss)


def direct_vjp(
    target: Target,
    seeds: Mapping[str, Any],
    inputs: Mapping[str, Any],
    wrt: Collection[str] | None,
) -> Result | None:
    """The inputs' adjoints from those of the results; None where it does not apply."""
    options = target.options
    function, without = target.function, left_out(target, wrt)
    seeded = slots_named(function, seeds) if isinstance(seeds, Mapping) else frozenset[int]()
    without -= seeded
    run = _made(target, "", without, lambda: ThereAndBack(target, None, without, _back(target)))
    if run is None:
        return None
    found = run.run(inputs, lambda bars: add_seeds(function, bars, seeds), seeded, wrt, options)
    return None if found is None else found[1]


def _only_back(gradient: Program) -> Program:
    """The program of a gradient that begins with the run back, and goes that way only."""
    name = gradient.function(gradient.entry).code[-1].symbol
    rest = (f for f in gradient.functions if f.name != name)
    return Program((forwards(gradient.function(name)), *rest), name, gradient.sources)


def _back(target: Target) -> frozenset[int] | None:
    """What a function changes, if running back is enough; None elsewhere.

    Without any tolerance results must come back, too.
    """
    return None if target.options.tolerance == 0 else unread(target.program, target.name)


def direct_gradient(
    target: Target, loss: str, wrt: Collection[str] | None = None, valued: bool = True
) -> DirectGradient | None:
    """The direct gradient of a loss; None where options, parameters or the loss ask for more.

    `valued`: the loss is asked for, too.
    """
    without = left_out(target, wrt)
    return _made(target, loss, without, lambda: _of_loss(target, loss, without, valued), valued)


def _made(
    target: Target,
    loss: str,
    without: frozenset[int],
    make: Callable[[], Made | None],
    valued: bool = True,
) -> Made | None:
    """The runner of a gradient, made at first use."""
    if target.undo:
        return None
    code, options = image_of(target.program).code(target.name, False), target.options
    if options.strict or not is_direct(code, options):
        return None
    key = (ThereAndBack, loss, options.checks, options.tolerance == 0, without, valued)
    if key not in code.compiled:
        f = target.function
        stacks = any(isinstance(r.type, Stack) for r in f.registers[: f.n_args])
        with making():
            if key not in code.compiled:
                # What a stack holds at the end is known after the run only.
                code.compiled[key] = None if stacks else make()
    found: Made | None = code.compiled[key]  # type: ignore[assignment]
    return found


def _of_loss(
    target: Target, loss: str, without: frozenset[int], valued: bool
) -> DirectGradient | None:
    function = target.function
    named = loss_place(function, loss)
    place = typed_place(named.slot, function.registers[named.slot].type, named.path)
    if place.type not in (F64, F32):
        return None
    without -= {named.slot}
    back = None if valued else _back(target)
    return DirectGradient(ThereAndBack(target, place, without, back), named)
