"""Gradients by direct calls of machine code: one run forwards and back for value and adjoints.

If no value is requested and the run back reads nothing that the forward run would have changed, the
run back alone is enough.  Unusual cases are left to `rvm.derive.gradients`, as `rvm.run.direct`
leaves them to binding. The program is only made if its machine code is not in the cache of another
process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rvm.derive.estimate import check_returned
from rvm.derive.evidence import Evidence, marks
from rvm.derive.gate import are_finite, later
from rvm.derive.gradients import Judge, loss_place, seed_place
from rvm.derive.left_out import able, left_out, slots_named
from rvm.derive.named import add_seeds, named_duals, zero_dual
from rvm.derive.places import Named, wanted
from rvm.derive.target import Target
from rvm.expr import Place
from rvm.faults import RvmError
from rvm.host.once import making
from rvm.image import Code, image_of
from rvm.ir.fills import fills
from rvm.isa import invert_instr
from rvm.isa import place as typed_place
from rvm.numbers import system
from rvm.program import Function, Program
from rvm.run.backup import copied
from rvm.run.binding import bind
from rvm.run.bits import code_of, with_bits
from rvm.run.direct import is_direct
from rvm.run.intake import ODD, Intake, address_of, takes
from rvm.run.machine import Machine
from rvm.run.results import Info, Result, Rounding
from rvm.run.rooms import empty, zeros
from rvm.state import SCALAR_BYTES, Options, byte_size
from rvm.transform.duals import bar_slots, bar_type
from rvm.transform.forth import forwards
from rvm.transform.programs import gradient_program
from rvm.transform.unread import only_addition, unread
from rvm.transform.valued import valued
from rvm.types import C128, F32, F64, Array, Scalar, Stack, elem_of

if TYPE_CHECKING:
    from rvm.engines.native.frames import Layout

Made = TypeVar("Made")
"""Parts that are made only once: runs of a gradient program, for one loss or for all."""
Bars = dict[int, Any]
"""Adjoints by parameter register."""
Found = tuple[float, Result]
"""The value of the loss, if there is a place for it or it is told, and the inputs' adjoints."""


class ThereAndBack:
    """A function's gradient program, run as machine code in one call.

    In between, further registers receive the values of parameters that are single floats, and the
    last one that of the loss, if there is a place for it.  Parameters `without` adjoints are only
    read.  With `back` there is only the run back, which does not change these parameters: they are
    those that the function changes.  One of them may be `told`: it gets the value that it has after
    the run forwards.
    """

    def __init__(
        self,
        target: Target,
        loss: Place | None,
        without: frozenset[int] = frozenset(),
        back: frozenset[int] | None = None,
        told: int | None = None,
    ) -> None:
        from rvm.engines.native.flight import Launch
        from rvm.engines.native.roots import Derived

        self._target, self._loss, self._without = target, loss, without
        self.program, self.name = program, name = target.program, target.name
        self.function = function = target.function
        inout = image_of(program).inout[name]
        self.back, self.told = back or frozenset(), told
        self.changed, self.inout = inout, inout - self.back
        self.slots = bar_slots(function, without)
        self.floats = [k for k in sorted(self.inout) if function.registers[k].type in (F64, F32)]
        places = [typed_place(k, function.registers[k].type) for k in self.floats]
        places += [] if loss is None or back is not None else [loss]
        self.given = len(places)
        self.names = _names(function, self.slots)
        self.able = able(function)
        self._known: dict[Collection[str] | None, list[tuple[str, int]]] = {}

        def make() -> Code:
            made = gradient_program(program, name, without)
            made = valued(made, places) if back is None else _only_back(made, told)
            return code_of(made, made.entry, False, target.options)

        way = "gradient" if back is None else f"adjoint {told}"
        what = (way, name, repr(loss), repr(sorted(without)))
        checks = target.options.checks
        alone = back is not None
        self.gaining = [slot for k, slot in self.slots.items() if k not in self.back]
        """Where the adjoints are that the run back changes."""
        self.launch = Launch(
            Derived(with_bits(program, target.options), what, make),
            checks,
            unread=self.back - {told},
            blank=alone,
            # Whether results come back from what is no number is seen there and back.
            finite=frozenset(self.gaining if alone else ()),
        )
        sketch = self.launch.root.sketch
        self.blank = {k for k, s in self.slots.items() if alone and s in sketch.fills}
        """The parameters whose adjoints the run fills."""
        layout = self.launch.layout
        self.intake = Intake(function, layout, inout) if takes(function) else None
        types = [layout.types[slot] for slot in self.slots.values()]
        self.arrays = [
            (
                k,
                layout.places[slot],
                system(t.elem).dtype,
                empty if k in self.blank else zeros,
                *_shapes(layout, k, slot),
            )
            for (k, slot), t in zip(self.slots.items(), types, strict=True)
            if isinstance(t, Array)
        ]
        """The parameters whose adjoints are arrays, where these are in slots, their type, how they
        are made, the slots of their shape and strides, and those of the parameter's if equal."""
        self.lendable = [(k, dtype) for k, _, dtype, *_ in self.arrays if k in self.back]
        """The parameters whose adjoints are arrays that the run only reads, and their type."""
        self.scalars = [
            (k, layout.places[slot])
            for (k, slot), t in zip(self.slots.items(), types, strict=True)
            if isinstance(t, Scalar)
        ]
        """The parameters whose adjoints are numbers, and where these are in slots."""
        self.zeros: Bars = {
            k: system(t).zero if isinstance(t, Scalar) else None
            for k, t in zip(self.slots, types, strict=True)
        }
        """The adjoints at the start of a run that nothing seeds, without arrays."""

    def run(
        self,
        inputs: Mapping[str, Any],
        seeds: Named | Mapping[str, Any],
        seeded: Collection[int],
        wrt: Collection[str] | None,
        options: Options,
    ) -> Found | None:
        """The result of adjoints of the results, or one of a place; None where it does not apply.

        `seeded` are the registers of these.
        """
        function, launch = self.function, self.launch
        if self.blank and not self.blank.isdisjoint(seeded):
            return self._whole.run(inputs, seeds, seeded, wrt, options)
        start, flat, held = self._taken(inputs)
        marked = marks(start)
        lent = self._lent(seeds, start, wrt) if self.lendable else {}
        bars = self.zeros.copy()
        for k, at, dtype, make, own, given in self.arrays:
            bars[k] = bar = lent[k] if k in lent else make(start[k].shape, dtype)
            flat[at] = address_of(bar)
            flat[own] = bar.shape + bar.strides if given is None else flat[given]
            held += bar.nbytes
        try:
            self._seed(bars, seeds, lent)
        except IndexError:
            return None
        regs = start.copy()
        for k in self.inout:
            v = start[k]
            if isinstance(v, np.ndarray):
                regs[k] = changing = v.copy()
                _enter(flat, launch.layout.places[k], changing)
        for k, at in self.scalars:
            bar = bars[k]
            if type(bar) is complex:
                flat[at], flat[at + 1] = bar.real, bar.imag
                held += 2 * SCALAR_BYTES
            else:
                flat[at] = bar
                held += SCALAR_BYTES
        # Minus zero: to that a zero of either sign is added as it is.
        regs += bars.values()
        if self.given:
            regs += [-0.0] * self.given
            for k in range(len(regs) - self.given, len(regs)):
                flat[launch.layout.places[k]] = -0.0
        flight = launch.run(flat, held + SCALAR_BYTES * self.given, options)
        rounding: Rounding = flight
        if flight.done:
            launch.results(flight, regs)
        elif self.blank and not flight.has_filled(fills(launch.code).values()):
            return self._whole.run(inputs, seeds, seeded, wrt, options)
        else:
            program: Program = launch.code.image.program
            for k in self.back:
                # Who goes on there changes them.
                regs[k] = copied(regs[k])
                if k in lent:
                    regs[self.slots[k]] = lent[k].copy()
            machine = Machine.entered(program, launch.code.name, regs, later(options), False)
            flight.land(machine.state)
            try:
                state = machine.run().state
                regs, rounding = state.frames[0].regs[: len(regs)], state.account
            except RvmError:
                return None
            if self.back and not are_finite(regs[slot] for slot in self.gaining):
                return self._whole.run(inputs, seeds, seeded, wrt, options)
        value = regs[-1] if self.told is None else regs[self.told]
        for k in self.back:
            regs[k] = start[k]

        def evidence() -> Evidence:
            found = {k: regs[slot] for k, slot in self.slots.items()}
            bars = {k: zero_dual(function, k, start[k]) for k in bar_slots(function)}
            self._seed(bars, seeds, {})
            known = self.program, self.name, False, options, start, bars, found
            return Evidence(*known, marks=marked)

        if self.inout or options.tolerance is not None or rounding.drift > 1:
            finals = dict(zip(self.floats, regs[len(regs) - self.given :], strict=False))
            of = self.program, self.name
            check_returned(*of, start, regs, options, evidence, finals, rounding.drift)

        def info() -> Info:
            return Info.of(rounding, judge=Judge(evidence, wrt))

        if self.names is not None:
            return value, Result({n: regs[k] for n, k in self._named(wrt)}, info)
        duals = {k: regs[slot] for k, slot in self.slots.items()}
        return value, named_duals(function, duals, info, wrt)

    def _seed(self, bars: Bars, seeds: Named | Mapping[str, Any], lent: Collection[int]) -> None:
        """Enter adjoints of the results, without those that are there already."""
        if isinstance(seeds, Named):
            seed_place(bars, seeds)
        elif lent:
            names = {self.function.params[k].name for k in lent}
            add_seeds(self.function, bars, {n: v for n, v in seeds.items() if n not in names})
        else:
            add_seeds(self.function, bars, seeds)

    def _lent(
        self, seeds: Named | Mapping[str, Any], start: list[Any], wrt: Collection[str] | None
    ) -> Bars:
        """Arrays of adjoints that are used as they are: they neither change nor are asked for."""
        found: Bars = {}
        if self.names is None or type(seeds) is not dict:
            return found
        for k, dtype in self.lendable:
            name = self.function.params[k].name
            v = seeds.get(name)
            if (
                type(v) is np.ndarray
                and v.dtype is dtype
                and v.shape == start[k].shape
                and v.flags.c_contiguous
                and v.flags.aligned
                and all(name != other for other, _ in self._named(wrt))
            ):
                found[k] = v
        return found

    def _named(self, wrt: Collection[str] | None) -> Iterable[tuple[str, int]]:
        """The names of the adjoints that are wanted, and their registers."""
        try:
            return self._known[wrt]
        except (KeyError, TypeError):
            assert self.names is not None
            chosen = wanted(self.function, self.able, wrt)
            found = [(n, k) for n, k in self.names.items() if n in chosen]
            if wrt is None or type(wrt) is tuple:
                self._known[wrt] = found
            return found

    @cached_property
    def _whole(self) -> ThereAndBack:
        """The same with the run forwards."""
        loss = None if self.told is None else self._loss
        return ThereAndBack(self._target, loss, self._without)

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
        start = bind(self.function, inputs, self.changed)[: self.function.n_args]
        start = [np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for v in start]
        return start, self.launch.layout.flat(start), sum(map(byte_size, start))


def _shapes(layout: Layout, k: int, slot: int) -> tuple[slice, slice | None]:
    """The slots of an adjoint's shape and strides, and its parameter's, if these are the same."""
    t = layout.types[k]
    assert isinstance(t, Array)
    own, given = (
        slice(at + 2, at + 2 + 2 * t.rank) for at in (layout.places[slot], layout.places[k])
    )
    return own, given if layout.dtypes[k].itemsize == layout.dtypes[slot].itemsize else None


def _enter(flat: list[Any], at: int, v: NDArray[Any]) -> None:
    """Put an array that one owns in slots."""
    flat[at] = address_of(v)
    shape = v.shape + v.strides
    flat[at + 2 : at + 2 + len(shape)] = shape


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
        """The loss, if it is asked for, and the inputs' adjoints; None where not."""
        return self._run.run(inputs, self.loss, (self.loss.slot,), wrt, options)


def direct_vjp(
    target: Target, seeds: Mapping[str, Any], inputs: Mapping[str, Any], wrt: Collection[str] | None
) -> Result | None:
    """The inputs' adjoints from those of the results; None where it does not apply."""

    def make() -> tuple[ThereAndBack, frozenset[int]] | None:
        seeded = slots_named(target.function, seeds) if isinstance(seeds, Mapping) else frozenset()
        without = left_out(target, wrt) - seeded
        run = _made(target, "", without, lambda: ThereAndBack(target, None, without, _back(target)))
        return None if run is None else (run, seeded)

    made = _prepared(target, tuple(seeds), wrt, True, make) if type(seeds) is dict else make()
    if made is None:
        return None
    run, seeded = made
    found = run.run(inputs, seeds, seeded, wrt, target.options)
    return None if found is None else found[1]


def _only_back(gradient: Program, told: int | None) -> Program:
    """The program of a gradient that begins with the run back, and goes that way only.

    What it would undo of a parameter that is `told` it does.
    """
    name = gradient.function(gradient.entry).code[-1].symbol
    rest = (f for f in gradient.functions if f.name != name)
    back = forwards(gradient.function(name))
    if told is not None:
        at = only_addition(back, told)
        assert at is not None
        code = (*back.code[:at], invert_instr(back.code[at]), *back.code[at + 1 :])
        back = replace(back, code=code)
    return Program((back, *rest), name, gradient.sources)


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

    def make() -> DirectGradient | None:
        without = left_out(target, wrt)
        return _made(target, loss, without, lambda: _of_loss(target, loss, without, valued), valued)

    return _prepared(target, loss, wrt, valued, make)


def _prepared(
    target: Target,
    what: str | tuple[str, ...],
    wrt: Collection[str] | None,
    valued: bool,
    make: Callable[[], Made | None],
) -> Made | None:
    """What `make` gives, which is kept under everything on which it depends."""
    o = target.options
    asked = target.name, target.undo, what, wrt, valued
    how = o.engine, o.bits, o.strict, o.checks, o.tolerance == 0, o.max_steps is None
    key, cache = (_prepared, *asked, *how), target.program.cache
    try:
        found: Made | None = cache.get(key)  # type: ignore[assignment]
    except TypeError:
        return make()
    if found is None:
        # Machine code may be there only later.
        found = make()
        if found is not None:
            cache[key] = found
    return found


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
    options = target.options
    code = code_of(target.program, target.name, False, options)
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
    told = named.slot if valued else None
    told_so = told is None or (not place.path and only_addition(function, told) is not None)
    back = _back(target) if told_so else None
    told = None if back is None else told
    return DirectGradient(ThereAndBack(target, place, without, back, told), named)
