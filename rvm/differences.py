"""Gradients held against central differences: where they part, and by how much."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rvm.faults import DefinitionError, RvmError
from rvm.gradients import dressed, nested
from rvm.program import Function, Layout, Program
from rvm.transform.duals import reachable
from rvm.types import Scalar, elem_of

if TYPE_CHECKING:
    from rvm.calling import FunctionHandle

MOST = 200
"""Places that are looked at in each array: all, or as many spread evenly over it."""
FINEST = 1e-6
"""The tolerance for numbers of double precision."""
SLACK = 40
"""How many times the error to be expected of a quotient of coarser numbers is tolerated."""
NOISE = 4
"""Units of rounding that a loss is granted."""


@dataclass(frozen=True, slots=True)
class GradRow:
    """One real number among the inputs: the loss's derivative by it, in two ways."""

    place: str
    gradient: float
    quotient: float
    noise: float = 0.0
    """What rounding of the loss alone can do to the quotient."""
    note: str = ""
    """Why there is no quotient, if the function fails beside the point."""

    @property
    def size(self) -> float:
        """What errors are measured by: the greater of the two, or one if that is more."""
        return max(1.0, abs(self.gradient), abs(self.quotient))

    @property
    def error(self) -> float:
        """How far they part, as a part of their size."""
        return abs(self.gradient - self.quotient) / self.size

    def agrees(self, tolerance: float) -> bool:
        """Whether they part by no more than the tolerance and the noise (NaN never agrees)."""
        return self.error <= tolerance + self.noise / self.size


@dataclass(frozen=True, slots=True)
class GradCheck:
    """A gradient beside central differences, a row for each number looked at."""

    loss: str
    rows: tuple[GradRow, ...]
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether no two part by more than the tolerance (NaN is never near)."""
        return all(r.agrees(self.tolerance) for r in self.rows)

    @property
    def worst(self) -> GradRow | None:
        """The row with the greatest error, those that do not agree before all others."""

        def key(row: GradRow) -> tuple[bool, float]:
            error = math.inf if math.isnan(row.error) else row.error
            return not row.agrees(self.tolerance), error

        return max(self.rows, key=key, default=None)

    def raise_if_bad(self) -> GradCheck:
        """The check itself; DefinitionError D013 if they part."""
        if not self.ok:
            worst = self.worst
            assert worst is not None
            bad = sum(not r.agrees(self.tolerance) for r in self.rows)
            raise DefinitionError(
                "D013",
                f"the gradient of `{self.loss}` by `{worst.place}` is not what differences say",
                values={
                    "gradient": worst.gradient,
                    "difference quotient": worst.quotient,
                    "error": float(f"{worst.error:.2g}"),
                },
                notes=(
                    f"beyond the tolerance of {self.tolerance:g}: {bad} of {len(self.rows)} "
                    "numbers looked at, this one furthest",
                    *filter(None, [worst.note]),
                ),
                hint="at a kink or a pole neither is right; elsewhere look at partials of your own",
            )
        return self

    def __str__(self) -> str:
        width = max((len(r.place) for r in self.rows), default=5)
        lines = [f"{'place':<{width}}  {'gradient':>24}  {'difference quotient':>24}  error"]
        for r in self.rows:
            mark = "" if r.agrees(self.tolerance) else "  <--"
            note = f"  {r.note}" if r.note else ""
            lines.append(
                f"{r.place:<{width}}  {r.gradient:>24.15g}  {r.quotient:>24.15g}  "
                f"{r.error:.1e}{mark}{note}"
            )
        return "\n".join(lines)


def check_grad(
    f: FunctionHandle,
    given: Mapping[str, Any] | None = None,
    /,
    *,
    loss: str,
    wrt: Collection[str] | None = None,
    step: float | None = None,
    tolerance: float | None = None,
    most: int = MOST,
    **inputs: Any,
) -> GradCheck:
    """Compare `f.grad` with central differences of the loss.

    Inputs go by name, or in the mapping `given`, for names that are taken here.  Every real number
    among them is moved: both parts of a complex one, the logarithm of a `log64`, elements of stacks
    and of arrays (`most` of each, spread evenly).  `step` is taken as a part of a number's size, or
    as it is below 1; without it, it is the cube root of the unit to which the function's coarsest
    numbers round, where truncation and rounding balance, and `tolerance` goes by that unit too.
    Nothing is raised for a difference: see `GradCheck`.  Where the function fails beside the point,
    the quotient is NaN and the row's note says why.
    """
    unit = _unit(f.program, f.name)
    if step is None:
        step = float(f"{unit ** (1 / 3):.0e}")
    if tolerance is None:
        tolerance = max(FINEST, 10.0 ** math.ceil(math.log10(SLACK * unit ** (2 / 3))))
    pull = f.pullback(**{**(given or {}), **inputs})
    pull.seed(loss)
    rows: list[GradRow] = []
    for name, slot, adjoint in _leaves(f.function, pull(wrt)):
        t = elem_of(f.function.registers[slot].type)
        for move in _moves(name, t, pull.start[slot], adjoint, step, most):
            try:
                up = _loss(f, pull.start, slot, move.up, loss)
                down = _loss(f, pull.start, slot, move.down, loss)
            except RvmError as error:
                note = f"{error.code}: {error.message}"
                rows.append(GradRow(move.place, move.gradient, math.nan, note=note))
                continue
            noise = NOISE * unit * (abs(up) + abs(down)) / move.width
            rows.append(GradRow(move.place, move.gradient, (up - down) / move.width, noise))
    return GradCheck(loss, tuple(rows), tolerance)


def _unit(program: Program, name: str) -> float:
    """The relative (of `fixed`: absolute) unit of the coarsest numbers in a function's reach."""
    functions = map(program.function, reachable(program, name))
    types = {elem_of(r.type) for f in functions for r in f.registers}
    return max(map(_precision, types), default=2.0**-52)


def _precision(t: Scalar) -> float:
    if t.is_fixed:
        return float(2.0**-t.frac)
    return 2.0**-23 if t.is_float and t.bits == 32 else 2.0**-52


def _leaves(function: Function, adjoints: Mapping[str, Any]) -> Iterator[tuple[str, int, Any]]:
    """Each parameter's, or field's, name, register and adjoint."""

    def inside(name: str, layout: Layout, adjoint: Any) -> Iterator[tuple[str, int, Any]]:
        if isinstance(layout, int):
            yield name, layout, adjoint
            return
        for field, inner in layout.fields:
            if field in adjoint:
                yield from inside(f"{name}.{field}", inner, adjoint[field])

    for p in function.params:
        if p.name in adjoints:
            yield from inside(p.name, p.layout, adjoints[p.name])


def _loss(f: FunctionHandle, start: list[Any], slot: int, moved: Any, loss: str) -> float:
    """The loss with another raw value in one register."""
    raws = [*start[:slot], moved, *start[slot + 1 :]]
    inputs = {p.name: nested(p.layout, raws) for p in f.function.params}
    return f.pullback(**dressed(f.function, inputs)).value(loss)


@dataclass(frozen=True, slots=True)
class _Move:
    """A register's raw value with one number moved up, and down, and how far apart these are."""

    place: str
    gradient: float
    up: Any
    down: Any
    width: float


def _moves(name: str, t: Scalar, raw: Any, adjoint: Any, step: float, most: int) -> Iterator[_Move]:
    shape = np.shape(raw)
    count = math.prod(shape)
    for flat in range(count) if count <= most else np.linspace(0, count - 1, most).astype(int):
        index = tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else ()
        place = f"{name}[{', '.join(map(str, index))}]" if index else name
        x, g = _at(raw, index), _at(adjoint, index)
        if t.is_fixed:
            n = max(1, round(step * max(2**t.frac, abs(x))))
            up, down = _put(raw, index, x + n), _put(raw, index, x - n)
            yield _Move(place, float(g), up, down, 2 * n / 2**t.frac)
            continue
        h = step * max(1.0, abs(x))
        for part, way in ((".re", 1), (".im", 1j)) if t.is_complex else (("", 1),):
            # The quotient is taken between the numbers that there are.
            high, low = _rounded(t, x + h * way), _rounded(t, x - h * way)
            slope = float(g.imag if way == 1j else g.real)
            up, down = _put(raw, index, high), _put(raw, index, low)
            yield _Move(place + part, slope, up, down, abs(high - low))


def _rounded(t: Scalar, x: Any) -> Any:
    return float(np.float32(x)) if t.is_float and t.bits == 32 else x


def _at(held: Any, index: tuple[int, ...]) -> Any:
    """A number in a register's raw value."""
    if not index:
        return held
    return held[index[0]] if isinstance(held, list) else held[index].item()


def _put(held: Any, index: tuple[int, ...], x: Any) -> Any:
    """A register's raw value with another number in it."""
    if not index:
        return x
    if isinstance(held, list):
        return [*held[: index[0]], x, *held[index[0] + 1 :]]
    out = held.copy()
    out[index] = x
    return out
