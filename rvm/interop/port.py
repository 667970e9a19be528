"""A program's function in the form of other frameworks: arrays in, arrays out, and a pullback.

Those frameworks keep values of the run forwards that a pullback needs.  Here these are the results
themselves: the run back from them restores everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rvm.codes.words import count, described, with_article
from rvm.derive.estimate import check_returned
from rvm.derive.evidence import Evidence
from rvm.derive.gate import later
from rvm.expr import Apply, Const, Place
from rvm.faults import InputError, UsageError
from rvm.image import image_of
from rvm.library.handle import FunctionHandle
from rvm.library.reversible import Adding
from rvm.numbers import system
from rvm.numbers.residue import Residue
from rvm.program import Function, Layout, Program, type_text
from rvm.run.binding import held, other_length, parts, plain_view, stored_as, unknown
from rvm.run.machine import Machine
from rvm.state import Options
from rvm.transform.duals import bar_slots
from rvm.transform.gradient import adjoint_names
from rvm.transform.programs import gradient_program, tangent_program
from rvm.types import Array, Scalar, Stack, elem_of, rank_of

Shape = tuple[int, ...]


class Port:
    """A function with some parameters as its inputs and some as its outputs.

    Every other parameter starts from a fixed value, or from zeros, and so does an output that is
    not an input.  A parameter may be both.  A record's field is named with dots: `p.mass`.

    `finals` are the values after a run of all that it changed: the outputs and then the rest.
    The run back needs no more than these and the unchanged inputs.
    """

    def __init__(
        self,
        program: Program,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        start: Mapping[int, Any],
        options: Options,
    ) -> None:
        self.program = program
        self.function: Function = program.function(name)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.options = options
        self._start = dict(start)
        self._inout = image_of(program).inout[name]
        self.finals = (*self.outputs, *sorted(self._inout - set(self.outputs)))
        self._path = dict(enumerate(paths(self.function)))

    # ------------------------------------------------------------ what it is

    def name(self, slot: int) -> str:
        """A parameter's name, with dots where it is a record's field."""
        return self._path[slot]

    def dtype(self, slot: int) -> np.dtype[Any]:
        """The type of a parameter's numbers as NumPy stores them."""
        return system(elem_of(self.function.registers[slot].type)).dtype

    def rank(self, slot: int) -> int:
        """The number of dimensions of a parameter."""
        return rank_of(self.function.registers[slot].type)

    def type_text(self, slot: int) -> str:
        """A parameter's type as the assembly language writes it."""
        return type_text(self.function, slot)

    @property
    def same(self) -> tuple[Any, ...]:
        """What the function is made of: ports in which these are equal compute the same."""
        start = [(k, np.asarray(v).tobytes()) for k, v in sorted(self._start.items())]
        shapes = [np.shape(v) for _, v in sorted(self._start.items())]
        of = self.program, self.function.name, self.inputs, self.outputs, self.options
        return (*of, start, shapes)

    @cached_property
    def bars(self) -> dict[int, int]:
        """For each parameter with derivatives its dual: the register of its adjoint or tangent."""
        return bar_slots(self.function)

    @cached_property
    def smooth_inputs(self) -> tuple[int, ...]:
        """The inputs that carry an adjoint, in order."""
        return tuple(k for k in self.inputs if k in self.bars)

    @cached_property
    def smooth_outputs(self) -> tuple[int, ...]:
        """The outputs that carry an adjoint, in order."""
        return tuple(k for k in self.outputs if k in self.bars)

    @cached_property
    def tangent(self) -> Port:
        """The function on values and tangents: those of smooth inputs to those of outputs."""
        made = tangent_program(self.program, self.function.name)
        return Port(
            made,
            made.entry,
            (*self.inputs, *(self.bars[k] for k in self.smooth_inputs)),
            (*self.outputs, *(self.bars[k] for k in self.smooth_outputs)),
            self._start,
            self.options,
        )

    def shapes(self, shapes: Sequence[Shape], slots: Sequence[int]) -> list[Shape]:
        """The shapes of parameters from those of the inputs.

        UsageError U008 if these leave one open; InputError I004 for an input of another rank, or
        of another length than its type and the inputs before it say.
        """
        known = self._lengths(shapes)
        return [self._shape(slot, known) for slot in slots]

    def _lengths(self, shapes: Sequence[Shape]) -> dict[tuple[int, int], int]:
        """The lengths that inputs and start values decide, by the axis that is free."""
        known: dict[tuple[int, int], int] = {}
        given = {k: np.shape(v) for k, v in self._start.items()}
        for slot, shape in (*zip(self.inputs, shapes, strict=True), *given.items()):
            if len(shape) != self.rank(slot):
                raise InputError(
                    "I004",
                    f"`{self.name(slot)}` is {with_article(self.type_text(slot))}: it must have "
                    f"{count(self.rank(slot), 'dimension')}, not {len(shape)}",
                    values={"shape": list(shape)},
                )
            for axis, length in enumerate(shape):
                free = self._free(slot, axis)
                want = free if isinstance(free, int) else known.setdefault(free, length)
                if length != want:
                    raise other_length(self.function, self.name(slot), slot, axis, want, shape)
        return known

    def _free(self, slot: int, axis: int) -> tuple[int, int] | int:
        """The axis of a register whose length any axis takes over, or a fixed length."""
        match self.function.registers[slot].dims[axis]:
            case Const(n):
                return int(n)
            case Apply("dim", (Place(other), Const(a))):
                return self._free(other, int(a))
        return slot, axis

    def _shape(self, slot: int, known: Mapping[tuple[int, int], int]) -> Shape:
        out = []
        for axis in range(self.rank(slot)):
            free = self._free(slot, axis)
            length = free if isinstance(free, int) else known.get(free)
            if length is None:
                raise UsageError(
                    "U008",
                    f"nothing says how long axis {axis} of `{self.name(slot)}` "
                    f"({self.type_text(slot)}) is: no input has the same length",
                    hint=f"give it a start value: {self.name(slot)}=np.zeros(…)",
                )
            out.append(length)
        return tuple(out)

    # ------------------------------------------------------------ running

    def forward(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Run forwards: the finals.  The inputs are left as they were."""
        values = self._values(inputs)
        machine = self._run(self.program, self.function.name, values)
        return self._collect(machine.state.frames[0].regs)

    def backward(
        self,
        inputs: Sequence[NDArray[Any]],
        finals: Sequence[NDArray[Any]],
        adjoints: Sequence[NDArray[Any]],
    ) -> list[NDArray[Any]]:
        """Run back from the finals with adjoints of `smooth_outputs`: those of `smooth_inputs`.

        An adjoint of a complex number is dL/dRe + i dL/dIm.  InvertibilityError R017 where the
        values do not come back and the adjoints are not right; see `rvm.derive.estimate`.
        """
        program = gradient_program(self.program, self.function.name)
        adjoint = program.function(adjoint_names(self.program)[self.function.name])
        start = self._values(inputs)
        ended = {k: self._raw(k, v) for k, v in zip(self.finals, finals, strict=True)}
        log = None
        if self.options.strict:
            # The run forwards once more, for its log.
            log = self._run(self.program, self.function.name, start).state.residue
        given = dict(zip(self.smooth_outputs, adjoints, strict=True))
        seeds = {}
        for k, bar in self.bars.items():
            dtype = system(elem_of(adjoint.registers[bar].type)).dtype
            seeds[k] = self._raw(k, given.get(k, np.zeros(np.shape(start[k]), dtype)))
        values = start | ended | {self.bars[k]: v for k, v in seeds.items()}
        machine = self._run(program, adjoint.name, values, log)
        regs, drift = machine.state.frames[0].regs, machine.state.account.drift

        def evidence() -> Evidence:
            found = {k: regs[bar] for k, bar in self.bars.items()}
            name = self.function.name
            return Evidence(self.program, name, False, self.options, begun, seeds, found)

        begun = [start[k] for k in range(self.function.n_args)]
        of = self.program, self.function.name
        check_returned(*of, begun, regs, self.options, evidence, ended, drift)
        return [np.asarray(regs[self.bars[k]], self.dtype(k)) for k in self.smooth_inputs]

    def _values(self, inputs: Sequence[NDArray[Any]]) -> dict[int, Any]:
        """The raw values of all parameters before a run."""
        values = {k: self._raw(k, v) for k, v in zip(self.inputs, inputs, strict=True)}
        values |= {k: self._raw(k, v) for k, v in self._start.items()}
        missing = [k for k in self._path if k not in values]
        shapes = self.shapes([np.shape(v) for v in inputs], missing)
        for k, shape in zip(missing, shapes, strict=True):
            values[k] = self._raw(k, np.zeros(shape, self.dtype(k)))
        return values

    def _raw(self, slot: int, value: Any) -> Any:
        if isinstance(self.function.registers[slot].type, Array):
            return value
        return value.item() if isinstance(value, (np.ndarray, np.generic)) else value

    def _run(
        self, program: Program, name: str, values: Mapping[int, Any], log: Residue | None = None
    ) -> Machine:
        """Run a function on raw values by register; arrays that it changes are copied first.

        The machine at its end; an adjoint goes back by the `log` that is given.
        """
        function, inout = program.function(name), image_of(program).inout[name]
        inputs: dict[str, Any] = {}

        def value(layout: Layout) -> Any:
            if not isinstance(layout, int):
                return {field: value(inner) for field, inner in layout.fields}
            t, raw = function.registers[layout].type, values[layout]
            if isinstance(t, Array):
                return np.array(raw, order="C") if layout in inout else np.ascontiguousarray(raw)
            return system(cast(Scalar, t)).to_python(raw)

        for p in function.params:
            inputs[p.name] = value(p.layout)
        machine = Machine.start(program, name, inputs, later(self.options))
        if log is not None:
            machine.state.take_back(log, marked=True)
        machine.run()
        return machine

    def _collect(self, regs: list[Any]) -> list[NDArray[Any]]:
        """The finals as arrays of their own, scalars as those of no dimensions."""
        return [
            np.asarray(regs[k], self.dtype(k)) if k in self._inout else np.array(regs[k])
            for k in self.finals
        ]


def handle_of(f: Any) -> FunctionHandle:
    """The function of a program that is ported; UsageError U008 if there is none."""
    if isinstance(f, Adding):
        return f.reversible
    if not isinstance(f, FunctionHandle):
        raise UsageError(
            "U008",
            f"what is ported is a function of a program, not {described(f)}",
            hint="`program.length`, or a function under `@rvm.reversible` or `@rvm.pure`",
        )
    return f


def port(
    f: FunctionHandle | Adding,
    inputs: str | Sequence[str],
    outputs: str | Sequence[str],
    start: Mapping[str, Any],
) -> Port:
    """The port of a function, with inputs and outputs by name.

    UsageError U008 if there is none: unknown names, types that other frameworks do not have,
    stacks, no function of a program.  InputError I001 to I005 for start values that do not fit.
    """
    f = handle_of(f).upright()
    function = f.function
    slots = {path: k for k, path in enumerate(paths(function))}
    for p in function.params:
        if isinstance(p.layout, int) and isinstance(function.registers[p.layout].type, Stack):
            raise UsageError(
                "U008",
                f"`{p.name}` of `{f.name}` is a stack, whose length only a run can tell",
                hint="call it from a function that makes the stack for itself, with `alloc`",
            )
    chosen = []
    for names, what in ((inputs, "input"), (outputs, "output")):
        if not isinstance(names, (str, list, tuple)):
            raise UsageError(
                "U008",
                f"the {what}s of `{f.name}` are named in order, in a list, not by "
                f"{described(names)}",
            )
        listed = [names] if isinstance(names, str) else names
        chosen.append([_numeric(f, slots, name, what) for name in listed])
    if any(not c or len(set(c)) < len(c) for c in chosen):
        raise UsageError("U008", f"`{f.name}` needs inputs and outputs, each name once")
    values = dict(_flat(function, start))
    for name in values:
        if slots[name] in chosen[0]:
            raise UsageError(
                "U008", f"`{name}` is an input of `{f.name}` and has a fixed value as well"
            )
    fixed = {slots[n]: checked(function, slots[n], n, v) for n, v in values.items()}
    return Port(f.program, f.name, chosen[0], chosen[1], fixed, f.options)


def paths(function: Function) -> Iterator[str]:
    """The names of all parameter registers, in order."""

    def within(name: str, layout: Layout) -> Iterator[str]:
        if isinstance(layout, int):
            yield name
        else:
            for field, inner in layout.fields:
                yield from within(f"{name}.{field}", inner)

    for p in function.params:
        yield from within(p.name, p.layout)


def _numeric(f: FunctionHandle, slots: Mapping[str, int], name: str, what: str) -> int:
    """The register of a parameter that other frameworks can hold."""
    known = ", ".join(slots)
    if name not in slots:
        raise UsageError("U008", f"`{f.name}` has no parameter `{name}`", hint=f"it has: {known}")
    t = elem_of(f.function.registers[slots[name]].type)
    if t.is_fixed or t.is_log:
        raise UsageError(
            "U008",
            f"`{name}` is {with_article(t)}, a kind of number that other frameworks do not have: "
            f"it cannot be {what}",
            hint="convert in the program, `f64(…)`; a fixed value may be of any type",
        )
    return slots[name]


def checked(function: Function, slot: int, name: str, value: Any) -> Any:
    """A start value as a raw value, an array as a copy."""
    t, wanted = function.registers[slot].type, with_article(type_text(function, slot))
    sys = system(elem_of(t))
    if isinstance(t, Array):
        if not isinstance(value, np.ndarray) or value.dtype != sys.dtype:
            given = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
            raise InputError(
                "I003",
                f"`{name}` is {wanted}: a fixed value must be a NumPy array of "
                f"{sys.dtype.name}, not {given}",
                notes=stored_as(sys),
                hint="a parameter that a gradient should reach must be an input",
            )
        return plain_view(wanted, name, value).copy()
    return held(t, name, value)


def _flat(function: Function, start: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Start values by the names of the parameters' registers."""
    layouts = {p.name: p.layout for p in function.params}

    def flat(name: str, layout: Layout, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(layout, int):
            yield name, value
            return
        for part in parts(name, layout, value):
            yield from flat(*part)

    for name, value in start.items():
        if name not in layouts:
            raise unknown(function, name)
        yield from flat(name, layouts[name], value)
