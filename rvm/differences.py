"""Gradients held against central differences: where they part, and by how much."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rvm.binding import Result
from rvm.faults import DefinitionError
from rvm.numbers import Fixed, LogNumber
from rvm.places import find_place
from rvm.types import elem_of

if TYPE_CHECKING:
    from rvm.calling import FunctionHandle

MOST = 200
"""Places that are looked at in each parameter: all, or as many spread evenly over it."""
STEP = 6e-6
"""The cube root of the rounding unit of f64: where the difference quotient's errors balance."""
TOLERANCE = 1e-6
NOISE = 2.0**-50
"""Rounding that a loss is granted, as a part of its size."""


@dataclass(frozen=True, slots=True)
class GradRow:
    """One real number among the inputs: the loss's derivative by it, in two ways."""

    place: str
    gradient: float
    quotient: float
    noise: float = 0.0
    """What rounding of the loss alone can do to the quotient."""

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
        """The row with the greatest error, a NaN before all others."""
        return max(self.rows, key=lambda r: np.inf if np.isnan(r.error) else r.error, default=None)

    def raise_if_bad(self) -> GradCheck:
        """The check itself; DefinitionError D013 if they part."""
        if not self.ok:
            worst = self.worst
            assert worst is not None
            raise DefinitionError(
                "D013",
                f"the gradient of `{self.loss}` by `{worst.place}` is not what differences say",
                values={"gradient": worst.gradient, "difference quotient": worst.quotient},
                notes=(f"the tolerance is {self.tolerance:g}",),
                hint="at a kink or a pole neither is right; elsewhere look at partials of your own",
            )
        return self

    def __str__(self) -> str:
        width = max((len(r.place) for r in self.rows), default=5)
        lines = [f"{'place':<{width}}  {'gradient':>24}  {'difference quotient':>24}  error"]
        for r in self.rows:
            mark = "" if r.agrees(self.tolerance) else "  <--"
            lines.append(
                f"{r.place:<{width}}  {r.gradient:>24.15g}  {r.quotient:>24.15g}  "
                f"{r.error:.1e}{mark}"
            )
        return "\n".join(lines)


def check_grad(
    f: FunctionHandle,
    *,
    loss: str,
    wrt: Collection[str] | None = None,
    step: float = STEP,
    tolerance: float = TOLERANCE,
    **inputs: Any,
) -> GradCheck:
    """Compare `f.grad` with central differences of the loss.

    `step` is taken as a part of each number's size, or as it is below 1; a `fixed` and an `f32`
    need a larger one and a wider tolerance.  Numbers inside records are looked at too, stacks are
    not; of a `log64` the logarithm is moved.  Nothing is raised for a difference: see `GradCheck`.
    """
    gradient = f.grad(loss=loss, wrt=wrt, **inputs)
    names = set(gradient)
    rows: list[GradRow] = []

    def value(changed: Mapping[str, Any]) -> float:
        return f.pullback(**changed).value(loss)

    for name, given in inputs.items():
        if name in names:
            for place, g, (up, down, width) in _places(f, name, given, gradient[name], step):
                above, below = value({**inputs, name: up()}), value({**inputs, name: down()})
                noise = NOISE * (abs(above) + abs(below)) / width
                rows.append(GradRow(place, g, (above - below) / width, noise))
    return GradCheck(loss, tuple(rows), tolerance)


Move = tuple[Any, Any, float]
"""What makes a parameter with one number moved up, and down, and by how much they differ."""


def _places(
    f: FunctionHandle, name: str, given: Any, adjoint: Any, step: float
) -> list[tuple[str, float, Move]]:
    if isinstance(adjoint, (Result, Mapping)):
        out = []
        for field in adjoint:
            inner = given[field] if isinstance(given, Mapping) else getattr(given, field)
            for place, g, (up, down, width) in _places(
                f, f"{name}.{field}", inner, adjoint[field], step
            ):
                out.append(
                    (place, g, (_within(given, field, up), _within(given, field, down), width))
                )
        return out
    if isinstance(adjoint, list):
        return []
    if isinstance(adjoint, np.ndarray):
        return _elements(f, name, given, adjoint, step)
    return [
        (name + part, _along(adjoint, way), _scalar(given, way, step))
        for part, way in _ways(adjoint)
    ]


def _within(given: Any, field: str, change: Any) -> Any:
    def make() -> Any:
        fields = dict(given) if isinstance(given, Mapping) else dict(vars(given))
        return {**fields, field: change()}

    return make


def _ways(adjoint: Any) -> tuple[tuple[str, Any], ...]:
    """The directions in which a number can move: a complex one has two."""
    return ((".re", 1.0), (".im", 1j)) if np.iscomplexobj(adjoint) else (("", 1.0),)


def _along(adjoint: Any, way: Any) -> float:
    """The derivative along a direction, from an adjoint dL/dRe + i dL/dIm."""
    return float(adjoint.imag if way == 1j else adjoint.real)


def _scalar(given: Any, way: Any, step: float) -> Move:
    if isinstance(given, LogNumber):
        h = step * max(1.0, abs(given.log))
        return (lambda: LogNumber(given.log + h)), (lambda: LogNumber(given.log - h)), 2 * h
    if isinstance(given, Fixed):
        n = max(1, round(step * 2**given.frac))
        return (
            lambda: Fixed(given.raw + n, given.frac),
            lambda: Fixed(given.raw - n, given.frac),
            2 * n / 2**given.frac,
        )
    h = step * max(1.0, abs(given))
    up, down = given + h * way, given - h * way
    return (lambda: up), (lambda: down), abs(up - down)


def _elements(
    f: FunctionHandle, name: str, given: Any, adjoint: Any, step: float
) -> list[tuple[str, float, Move]]:
    count = adjoint.size
    chosen = range(count) if count <= MOST else np.linspace(0, count - 1, MOST).astype(int)
    raw = np.issubdtype(given.dtype, np.integer)
    out: list[tuple[str, float, Move]] = []
    for flat in chosen:
        index = tuple(int(i) for i in np.unravel_index(int(flat), adjoint.shape))
        place = f"{name}[{', '.join(map(str, index))}]"
        for part, way in _ways(adjoint):
            h = step * max(1.0, float(abs(given[index])))
            width = 2 * h
            if raw:
                # The raw integers of a fixed-point array move by whole units.
                one = 1 << _frac(f, place)
                h = max(1, round(step * one))
                width = 2 * h / one
            up, down = _moved(given, index, h * way), _moved(given, index, -h * way)
            out.append((place + part, _along(adjoint[index], way), (up, down, width)))
    return out


def _frac(f: FunctionHandle, place: str) -> int:
    """The fraction bits of the fixed-point number at a place."""
    register = f.function.registers[find_place(f.function, place).slot]
    return elem_of(register.type).frac


def _moved(given: Any, index: tuple[int, ...], by: Any) -> Any:
    def make() -> Any:
        copy = given.copy()
        copy[index] += int(by) if np.issubdtype(given.dtype, np.integer) else by
        return copy

    return make
