"""Derivatives of functions as Python sees them: `f.grad`, `f.vjp` and their kin.

All of them run a transformed program on copies of the inputs; the inputs are
left as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from rvm.codes.words import with_article
from rvm.derive.decisions import decides
from rvm.derive.estimate import Estimate, Verdict, check_returned, gradient_check
from rvm.derive.evidence import Evidence, marks, muted, same
from rvm.derive.gate import is_demanding, later, strays
from rvm.derive.left_out import left_out, slots_named
from rvm.derive.named import add_seeds, by_parameter, named_duals, named_errors, zero_dual
from rvm.derive.places import Named, find_place
from rvm.derive.target import Target
from rvm.faults import InputError, UsageError
from rvm.image import image_of
from rvm.numbers import system
from rvm.numbers.residue import Residue
from rvm.program import Function, Program
from rvm.run.backup import copied
from rvm.run.binding import bind, result
from rvm.run.doors import door
from rvm.run.machine import Machine
from rvm.run.raw import Run
from rvm.run.results import Info, Result
from rvm.transform.duals import bar_slots
from rvm.transform.gradient import adjoint_names
from rvm.transform.programs import gradient_program
from rvm.types import elem_of

Watch = Callable[[Machine, str], AbstractContextManager[object]]
"""A context around the run of a machine in a named direction, for progress bars."""


def unwatched(machine: Machine, way: str) -> AbstractContextManager[object]:
    """Nothing."""
    return nullcontext()


class Pullback:
    """A function run forwards on copies of its inputs, ready to pass adjoints back.

    `result` holds the function's results.  Calling it with adjoints of these consumes the run.
    `watch` surrounds the runs.
    """

    def __init__(self, target: Target, inputs: Mapping[str, Any], watch: Watch = unwatched) -> None:
        self.watch = watch
        self.target = target
        self.options = target.options
        inout = image_of(target.program).inout[target.name]
        self.start = raw_inputs(target, inputs)
        """The raw inputs, for further runs."""
        regs = [copied(v) if k in inout else v for k, v in enumerate(self.start)]
        self._there = self._run(target.program, target.name, regs, "forwards")
        self.ticks = self._there.ticks
        """Ticks of the run forwards, and of that back."""
        self.regs = self._there.regs
        self.result: Result = result(self.function, self.regs, self._there.info)
        self._heights = {k: len(v) for k, v in enumerate(self.regs) if isinstance(v, list)}
        self._consumed = False
        """Whether it has gone back, which its adjoints do in place."""
        self._entered: list[Callable[[dict[int, Any]], None]] = []
        """Functions that entered the adjoints of the results, which the run back consumes."""
        self._seeded: frozenset[int] = frozenset()
        """The registers in whose adjoints something was entered."""
        self.verdict: Verdict | None = None
        """The judge of other derivatives, if values did not come back but the adjoints are
        right."""
        self.bars = {k: zero_dual(self.function, k, self.regs[k]) for k in bar_slots(self.function)}
        of = target.program, target.name, target.undo
        check = gradient_check(*of, self.start, self.options, derivatives=True)
        if check is not None:
            check(self.regs, self._there.rounding.drift)

    @property
    def function(self) -> Function:
        """The function that was run."""
        return self.target.function

    called = "pullback"
    """The name of the function in messages about calls of its methods."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the function's parameters."""
        return tuple(p.name for p in self.function.params)

    @property
    def program(self) -> Program:
        """The gradient program."""
        return gradient_program(self.target.program, self.target.name)

    @property
    def adjoint(self) -> Function:
        """The function that runs back with adjoints."""
        return self.program.function(adjoint_names(self.target.program)[self.target.name])

    @door
    def value(self, loss: str) -> float:
        """The value of a scalar place of the results, for which `seed` starts the adjoints.

        For a log64 it is the logarithm.
        """
        place = self.loss(loss)
        raw = self.regs[place.slot]
        if place.index:
            raw = raw[place.index].item()
        if place.part:
            return float(raw.real if place.part == "re" else raw.imag)
        t = elem_of(self.function.registers[place.slot].type)
        return float(raw if t.is_log else system(t).to_python(raw))

    @door
    def loss(self, loss: str) -> Named:
        """The real scalar place of the results that `loss` names, or InputError I008."""
        return loss_place(self.function, loss)

    @door
    def seed(self, loss: str) -> None:
        """Set the adjoint of a scalar place of the results to one."""
        place = self.loss(loss)
        try:
            self.seed_at(place)
        except IndexError:
            raise InputError(
                "I008",
                f"`{loss}` is outside the array",
                values={"shape": list(self.bars[place.slot].shape)},
            ) from None

    def seed_at(self, place: Named) -> None:
        """Add one to the adjoint of a scalar place; IndexError outside its array."""
        self._enter(lambda bars: seed_place(bars, place))
        self._seeded |= {place.slot}

    @door
    def seed_all(self, seeds: Mapping[str, Any]) -> None:
        """Add adjoints given by parameter (records as mappings, stacks as lists)."""
        function = self.function  # The function entered must not keep this object alive.
        self._enter(lambda bars: add_seeds(function, bars, seeds))
        self._seeded |= slots_named(function, seeds)

    def _enter(self, seed: Callable[[dict[int, Any]], None]) -> None:
        seed(self.bars)
        self._entered.append(seed)

    @door
    def __call__(self, wrt: Collection[str] | None = None, *, check: bool = True) -> Result:
        """Run back with the adjoints, and return those of the inputs, by parameter.

        InvertibilityError R017 if the values do not come back to their start and the adjoints are
        not right either; `check=False` leaves this to the caller.  UsageError U005 on a second
        call.
        """
        by_parameter(self.function, self.bars, lambda layout: None, wrt=wrt)
        if self._consumed:
            raise UsageError(
                "U005",
                "this pullback has gone back already",
                hint="make another one; `seed_all` takes adjoints of several results at once",
            )
        self._consumed = True
        values = [*self.regs, *self.bars.values()]
        log = self.there.state.residue if self.options.strict else None
        way = "back with the adjoints"
        self._back = self._run(self.program, self.adjoint.name, values, way, log)
        self.ticks += self._back.ticks
        found = self.found
        without = left_out(self.target, wrt) - self._seeded
        judged = {k: v for k, v in found.items() if k not in without}
        if check:
            self.check_returned(self._back.regs, judged, self._back.rounding.drift)
        judge = Judge(self._witness(judged), wrt)
        return named_duals(self.function, found, replace(self.info, judge=judge), wrt)

    @property
    def found(self) -> dict[int, Any]:
        """The adjoints of the inputs by parameter register, after the run back."""
        regs = self._back.regs
        return {k: regs[slot] for k, slot in bar_slots(self.function).items()}

    def _run(
        self, program: Program, name: str, regs: list[Any], way: str, log: Residue | None = None
    ) -> Run:
        watch = None if self.watch is unwatched else lambda machine: self.watch(machine, way)
        undo, options = self.target.undo, self.options
        if name != self.target.name:
            options = later(options)
        return Run(program, name, regs, options, undo=undo, watch=watch, log=log)

    @property
    def info(self) -> Info:
        """The rounding in the forward run and in the run back."""
        return Info.of(self._there.rounding, self._back.rounding)

    @property
    def there(self) -> Machine:
        """A machine at the end of the run, until that is consumed."""
        return self._there.machine

    @property
    def machine(self) -> Machine:
        """A machine at the end of the run with the adjoints."""
        return self._back.machine

    def check_returned(
        self, regs: Sequence[Any], found: Mapping[int, Any], drift: float = 0.0
    ) -> None:
        """R017 unless the values are back or the adjoints found right; see `rvm.derive.estimate`.

        `drift` is that of the run back.
        """
        target, witness, finals = self.target, self._witness(found), self._finals()
        known = self.start, regs, self.options, witness, finals, drift, target.undo
        self.verdict = check_returned(target.program, target.name, *known)

    def is_back(self, regs: Sequence[Any]) -> bool:
        """Whether the values are where they began, which confirms the adjoints."""
        of = self.target.program, self.target.name, self.target.undo
        # Matrices are made without a log, in strict mode too.
        if decides(*of) or is_demanding(*of, self.options):
            return False
        known = self._finals()
        return not strays(self.function, self.start, regs, self.options, self._witness({}), known)

    def _finals(self) -> dict[int, Any]:
        """The results that are numbers; the run back has consumed the others."""
        return {k: v for k, v in enumerate(self.regs) if not isinstance(v, (np.ndarray, list))}

    def evidence(self, found: Mapping[int, Any]) -> Evidence:
        """The evidence from the runs, with the adjoints that were found."""
        return self._witness(found)()

    def _witness(self, found: Mapping[int, Any]) -> Callable[[], Evidence]:
        """A function that returns the evidence; it keeps nothing else alive."""
        known = self.target, self.start, self._heights, self._entered
        return partial(_evidence, *known, found)


def _evidence(
    target: Target,
    start: list[Any],
    heights: Mapping[int, int],
    entered: Sequence[Callable[[dict[int, Any]], None]],
    found: Mapping[int, Any],
) -> Evidence:
    """The evidence from a run forwards and back;

    `heights` are those of stacks, which it consumes.
    """
    f = target.function
    slots = bar_slots(f) if found else ()
    shapes = {k: [0] * heights[k] if k in heights else start[k] for k in slots}
    seeds = {k: zero_dual(f, k, shape) for k, shape in shapes.items()}
    for enter in entered if found else ():
        enter(seeds)
    return Evidence(target.program, target.name, target.undo, target.options, start, seeds, found)


def raw_inputs(target: Target, inputs: Mapping[str, Any]) -> list[Any]:
    """Copies of inputs as raw values of the parameters' registers; InputError if they are none."""
    function, inout = target.function, image_of(target.program).inout[target.name]
    loose = {name: _loose(value) for name, value in inputs.items()}
    return [copied(v) for v in bind(function, loose, inout)[: function.n_args]]


def check_same(known: Evidence) -> None:
    """Raise UsageError U018 if the inputs have changed or a gradient is not reproduced exactly."""
    if known.owned:
        return
    changed = known.marks and known.marks != marks(known.start)
    if changed or not same(known.again(), known.found):
        raise changed_since()


def changed_since() -> UsageError:
    """The error U018."""
    return UsageError(
        "U018",
        "the inputs or the gradient have changed since it was computed: "
        "its error can no longer be estimated",
        hint="ask for it at once, with `error=True`, or pass copies",
    )


class Judge:
    """The estimate of a gradient's error, made when `error` is first read.

    It holds the data from which the gradient was computed.
    """

    def __init__(self, witness: Callable[[], Evidence], wrt: Collection[str] | None = None) -> None:
        self._witness: Callable[[], Evidence] | None = witness
        self._wrt = wrt

    def __getstate__(self) -> dict[str, Any]:
        """The function that makes the evidence cannot be pickled."""
        known = replace(self.known, options=muted(self.known.options))
        return self.__dict__ | {"_witness": None, "known": known}

    @cached_property
    def known(self) -> Evidence:
        """The evidence for the estimate."""
        assert self._witness is not None
        return self._witness()

    @cached_property
    def error(self) -> Result:
        """The possible error of each number, in absolute terms; infinite if it is not known.

        UsageError U018 if the inputs, or the gradient, have changed since.
        """
        check_same(self.known)
        self.now()
        return self.error

    def now(self) -> None:
        """Compute it while nothing has changed."""
        errors = Estimate(self.known).errors
        self.error = named_errors(self.known.function, errors, self._wrt)


def loss_place(function: Function, loss: str) -> Named:
    """The real scalar place of a function's results that `loss` names; InputError I008 if none."""
    place = find_place(function, loss)
    t = elem_of(function.registers[place.slot].type)
    if place.slot not in bar_slots(function):
        able = [function.registers[k].name for k in bar_slots(function)]
        raise InputError(
            "I008",
            f"`{loss}` is {with_article(t)}, which has no adjoint",
            hint=f"what does: {', '.join(able)}" if able else "",
        )
    if t.is_complex and not place.part:
        raise InputError(
            "I008", f"`{loss}` is complex; a loss is real", hint=f"`{loss}.re` or `{loss}.im`"
        )
    return place


def seed_place(bars: dict[int, Any], loss: Named) -> None:
    """Add one to the adjoint of a scalar place; IndexError outside its array."""
    one: Any = 1j if loss.part == "im" else 1.0
    if loss.index:
        bars[loss.slot][loss.index] += one
    else:
        bars[loss.slot] += one


def _loose(value: Any) -> Any:
    """An input with copies of its lists, in which binding puts raw values."""
    if isinstance(value, list):
        return list(value)
    if isinstance(value, Mapping):
        return {k: _loose(v) for k, v in value.items()}
    return value
