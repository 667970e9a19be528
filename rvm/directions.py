"""Derivatives along directions, Jacobians and Hessians, as Python sees them.

Tangents go forwards beside values; of the gradient program that gives
Hessian-vector products (forward over reverse).  The inputs are left as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rvm.binding import Result, outside
from rvm.faults import InputError
from rvm.gradients import Pullback, add_seeds, bar_layout, dressed, nested
from rvm.machine import Machine
from rvm.numbers import system
from rvm.program import Function, Program
from rvm.state import Options
from rvm.transform.duals import bar_slots
from rvm.transform.tangent import tangent
from rvm.types import Array, Stack, elem_of

if TYPE_CHECKING:
    from rvm.calling import FunctionHandle

Seeds = Mapping[str, Any]


def tangent_program(program: Program, name: str) -> Program:
    """The program that `tangent` makes of a function, made once."""
    key = (tangent, name)
    found = program.cache.get(key)
    if not isinstance(found, Program):
        found = program.cache[key] = tangent(program, name)
    return found


class Pushforward:
    """A function with its tangent program, on fixed inputs; call it with directions."""

    def __init__(
        self, program: Program, name: str, regs: list[Any], options: Options, undo: bool = False
    ) -> None:
        self.program = tangent_program(program, name)
        self.function: Function = self.program.function(self.program.entry)
        self.source = program.function(name)
        self.slots = bar_slots(self.source)
        self.regs = regs
        self.options = options
        self.undo = undo

    def zeros(self) -> dict[int, Any]:
        """Tangents of zero, by parameter register."""
        out: dict[int, Any] = {}
        for k, slot in self.slots.items():
            t, held = self.function.registers[slot].type, self.regs[k]
            sys = system(elem_of(t))
            if isinstance(t, Array):
                out[k] = np.zeros(held.shape, sys.dtype)
            else:
                out[k] = [sys.zero] * len(held) if isinstance(t, Stack) else sys.zero
        return out

    def run(self, dots: Mapping[int, Any]) -> list[Any]:
        """The registers after a run with these tangents: results, then their tangents."""
        n = self.source.n_args
        values = [_fresh(v) for v in self.regs[:n]] + [_fresh(dots[k]) for k in self.slots]
        inputs = {p.name: nested(p.layout, values) for p in self.function.params}
        machine = Machine.start(
            self.program,
            self.function.name,
            dressed(self.function, inputs),
            self.options,
            undo=self.undo,
        )
        return machine.run().state.frames[0].regs

    def tangents(self, regs: list[Any]) -> Result:
        """The tangents among a run's registers, by parameter."""
        out = {}
        for p in self.source.params:
            layout = bar_layout(p.layout, self.slots)
            if layout is not None:
                out[p.name] = outside(self.function, layout, regs)
        return Result(out)


def _fresh(v: Any) -> Any:
    return v.copy() if isinstance(v, np.ndarray) else list(v) if isinstance(v, list) else v


def jvp(
    handle: FunctionHandle, tangents: Seeds, inputs: Seeds, options: Options
) -> tuple[Result, Result]:
    """The results, and their tangents for given tangents of the inputs (others: zero)."""
    pull = Pullback(handle, inputs, options)
    push = Pushforward(handle.program, handle.name, pull.start, options, handle.undo)
    dots = push.zeros()
    add_seeds(push.source, dots, tangents)
    regs = push.run(dots)
    return pull.result, push.tangents(regs)


class Curvature:
    """The gradient of a loss as a function whose own derivatives are taken."""

    def __init__(self, handle: FunctionHandle, loss: str, inputs: Seeds, options: Options) -> None:
        handle = handle.upright()
        self.pull = Pullback(handle, inputs, options)
        self.pull.seed(loss)
        self.slots = bar_slots(handle.function)
        program = handle.gradient_program
        regs = [*self.pull.start[: handle.function.n_args], *self.pull.bars.values()]
        self.push = Pushforward(program, program.entry, regs, options)

    def along(self, dots: Mapping[int, Any]) -> dict[int, Any]:
        """The derivatives of the gradient along a direction, by parameter register."""
        all_dots = self.push.zeros() | dict(dots)
        regs = self.push.run(all_dots)
        return {k: regs[self.push.slots[slot]] for k, slot in self.slots.items()}


def hvp(
    handle: FunctionHandle, loss: str, tangents: Seeds, inputs: Seeds, options: Options
) -> Result:
    """The Hessian of the loss times a direction, by parameter; zero where none is given."""
    curvature = Curvature(handle, loss, inputs, options)
    zeros = curvature.push.zeros()
    dots = {k: zeros[k] for k in curvature.slots}
    add_seeds(handle.function, dots, tangents)
    return curvature.pull.named(curvature.along(dots))


def hessian(
    handle: FunctionHandle,
    loss: str,
    wrt: Collection[str] | None,
    inputs: Seeds,
    options: Options,
) -> Result:
    """Second derivatives: `h[a][b]` has the shape of `a` followed by that of `b`."""
    curvature = Curvature(handle, loss, inputs, options)
    function = handle.function
    chosen = _chosen(function, wrt)
    zeros = {k: curvature.push.zeros()[k] for k in chosen.values()}
    out: dict[str, dict[str, Any]] = {a: {} for a in chosen}
    for b, k in chosen.items():
        rows: dict[str, list[Any]] = {a: [] for a in chosen}
        for dot in _units(zeros[k]):
            found = curvature.along({k: dot})
            for a, j in chosen.items():
                rows[a].append(np.array(found[j]))
        for a, j in chosen.items():
            out[a][b] = _last(np.array(rows[a]), np.shape(zeros[j]), np.shape(zeros[k]))
    return Result({a: Result(row) for a, row in out.items()})


def jacobian(
    handle: FunctionHandle,
    of: Collection[str] | None,
    wrt: Collection[str] | None,
    inputs: Seeds,
    options: Options,
) -> Result:
    """First derivatives: `j[y][x]` has the shape of the result `y` followed by that of `x`.

    By rows, with adjoints, or by columns, with tangents: whichever are fewer.
    """
    pull = Pullback(handle, inputs, options)
    function = handle.function
    outs, ins = _chosen(function, of), _chosen(function, wrt)
    sizes = {k: int(np.size(v)) for k, v in pull.bars.items()}
    push = Pushforward(handle.program, handle.name, pull.start, options, handle.undo)
    zeros = push.zeros()
    out: dict[str, dict[str, Any]] = {y: {} for y in outs}
    if sum(sizes[k] for k in outs.values()) <= sum(sizes[k] for k in ins.values()):
        for y, k in outs.items():
            rows: dict[str, list[Any]] = {x: [] for x in ins}
            for seed in _units(zeros[k]):
                again = Pullback(handle, inputs, options)
                again.bars[k] = seed
                found = again()
                for x in ins:
                    rows[x].append(np.array(found[x]))
            for x, j in ins.items():
                shape = (*np.shape(zeros[k]), *np.shape(zeros[j]))
                out[y][x] = _plain(np.array(rows[x]).reshape(shape))
        return Result({y: Result(row) for y, row in out.items()})
    for x, j in ins.items():
        columns: dict[str, list[Any]] = {y: [] for y in outs}
        for dot in _units(zeros[j]):
            tangents = push.tangents(push.run(zeros | {j: dot}))
            for y in outs:
                columns[y].append(np.array(tangents[y]))
        for y, k in outs.items():
            out[y][x] = _last(np.array(columns[y]), np.shape(zeros[k]), np.shape(zeros[j]))
    return Result({y: Result(row) for y, row in out.items()})


def _chosen(function: Function, names: Collection[str] | None) -> dict[str, int]:
    """Parameters of real numbers, arrays of them, by name: those that a matrix is made for."""
    slots = bar_slots(function)
    able = {
        p.name: p.layout
        for p in function.params
        if isinstance(p.layout, int)
        and p.layout in slots
        and not isinstance(function.registers[p.layout].type, Stack)
        and not elem_of(function.registers[p.layout].type).is_complex
    }
    if names is None:
        return able
    for name in names:
        if name not in able:
            raise InputError(
                "I008",
                f"`{name}` is no parameter of `{function.name}` that holds real numbers",
                hint=f"those are: {', '.join(able)}; for others there are vjp, jvp and hvp",
            )
    return {name: able[name] for name in names}


def _units(zero: Any) -> Iterator[Any]:
    """Unit tangents of a scalar or an array, one for each element."""
    if not isinstance(zero, np.ndarray):
        yield 1.0
        return
    for index in np.ndindex(zero.shape):
        unit = zero.copy()
        unit[index] = 1
        yield unit


def _last(stacked: NDArray[Any], shape: tuple[int, ...], last: tuple[int, ...]) -> Any:
    """Derivatives stacked by direction, with the directions' axes moved to the end."""
    moved = np.moveaxis(stacked.reshape((stacked.shape[0], *shape)), 0, -1)
    return _plain(moved.reshape((*shape, *last)))


def _plain(array: NDArray[Any]) -> Any:
    return array.item() if array.ndim == 0 else array
