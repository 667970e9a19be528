"""Gradients compared with central differences: where they differ, and by how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rvm.derive.gradients import Pullback
from rvm.derive.named import dressed, nested
from rvm.derive.target import Target
from rvm.faults import DefinitionError, RvmError
from rvm.numbers import system
from rvm.numbers.rounding import UNIT, unit_of
from rvm.program import Function, Layout, Program
from rvm.transform.duals import reachable
from rvm.types import Scalar, elem_of

FINEST = 1e-6
"""The tolerance for numbers of double precision."""
SLACK = 40
"""The factor on the expected error of a quotient of coarser numbers that is tolerated."""
NOISE = 4
"""The assumed rounding error of a loss, in units of rounding."""
LARGEST = 2.0**-5
"""The first step, as a part of a number's size."""
GRAINS = 8
"""The least first step for `fixed` numbers, in units of them, so that it can be halved."""
HALVINGS = 30
"""The largest number of halvings of a step."""
FURTHER = 5
"""The number of halvings of the step that confirms a quotient."""
CLOSE = 1e-3
"""The largest accepted difference of the two, relative to the quotient."""
MOST = 200
"""The largest number of elements of an array that are checked."""
SURE = 3
"""The factor on a quotient's error estimate beyond which it counts as off."""
BESIDE = 3
"""The number of points above a number, and below it, at which the rounding of the loss is
measured."""
SMOOTH = 4
"""Differences of this order and above are of rounding alone."""
DEVIATIONS = 2
"""The number of standard deviations by which rounding may change a loss."""


@dataclass(frozen=True, slots=True)
class GradRow:
    """A real number among the inputs, with the loss's derivative by it, computed in two ways."""

    place: str
    gradient: float
    quotient: float
    uncertainty: float = 0.0
    """The estimated error of the quotient."""
    note: str = ""
    """The reason why there is no quotient, if the function fails near the point."""
    is_required: bool = False
    """Whether the function fails as soon as the number is moved, up or down: it must have this
    value, so there is nothing to compare the gradient with."""

    @property
    def size(self) -> float:
        """The size to which errors are relative: the larger of the two."""
        return max(abs(self.gradient), abs(self.quotient))

    @property
    def error(self) -> float:
        """Their difference, relative to their size."""
        gap = abs(self.gradient - self.quotient)
        return gap / self.size if gap and not math.isnan(gap) else gap

    def agrees(self, tolerance: float) -> bool:
        """Whether they differ by no more than the tolerance and the quotient's own uncertainty.

        NaN never agrees, unless there is nothing to compare.
        """
        return (
            self.is_required
            or abs(self.gradient - self.quotient) <= tolerance * self.size + self.uncertainty
        )

    @property
    def tells(self) -> bool:
        """Whether there is a quotient, and its own error is no larger than the two."""
        if self.is_required:
            return False
        return self.gradient == self.quotient or not self.uncertainty > self.size


@dataclass(frozen=True, slots=True)
class GradCheck:
    """A gradient compared with central differences, a row for each number."""

    loss: str
    rows: tuple[GradRow, ...]
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether no two differ by more than the tolerance (NaN always does).

        Rows that are not meaningful (`GradRow.tells`) do not count as differing.
        """
        return all(r.agrees(self.tolerance) for r in self.rows)

    @property
    def by_error(self) -> list[GradRow]:
        """The rows that disagree, then the others that are meaningful, then the rest; of each
        kind the greatest errors first."""

        def key(row: GradRow) -> tuple[bool, bool, float]:
            error = math.inf if math.isnan(row.error) else row.error
            return row.agrees(self.tolerance), not row.tells, -error

        return sorted(self.rows, key=key)

    @property
    def worst(self) -> GradRow | None:
        """The first row of `by_error`."""
        return next(iter(self.by_error), None)

    def raise_if_bad(self) -> GradCheck:
        """The check itself; DefinitionError D013 if they differ."""
        if not self.ok:
            worst = self.worst
            assert worst is not None
            bad = sum(not r.agrees(self.tolerance) for r in self.rows)
            raise DefinitionError(
                "D013",
                f"the gradient of `{self.loss}` by `{worst.place}` disagrees with differences",
                values={
                    "gradient": worst.gradient,
                    "difference quotient": worst.quotient,
                    "the quotient's own error": float(f"{worst.uncertainty:.2g}"),
                    "error": float(f"{worst.error:.2g}"),
                },
                notes=(
                    f"beyond the tolerance of {self.tolerance:g}: {bad} of {len(self.rows)} "
                    "numbers compared; this one differs most",
                    *filter(None, [worst.note]),
                ),
                hint="neither is reliable at a kink or a pole; otherwise check your own partials",
            )
        return self

    def __str__(self) -> str:
        width = max((len(r.place) for r in self.rows), default=5)
        lines = [
            f"{'place':<{width}}  {'gradient':>24}  {'difference quotient':>24}  {'±':>7}  error"
        ]
        for r in self.rows:
            mark = "  <--" if not r.agrees(self.tolerance) else "" if r.tells else "  ?"
            note = f"  {r.note}" if r.note else ""
            lines.append(
                f"{r.place:<{width}}  {r.gradient:>24.15g}  {r.quotient:>24.15g}  "
                f"{r.uncertainty:7.1e}  {r.error:.1e}{mark}{note}"
            )
        return "\n".join(lines)


def compared(
    target: Target,
    inputs: Mapping[str, Any],
    loss: str,
    wrt: Collection[str] | None,
    step: float | None = None,
    tolerance: float | None = None,
    most: int = MOST,
    watch: Callable[[str], None] = lambda place: None,
) -> GradCheck:
    """The gradient of a loss compared with finite differences, extrapolated to step zero.

    See `rvm.check_grad` for `step`, `tolerance` and `most`.  `watch` is called with the index of
    the next number. C. J. F. Ridders, Adv. Eng. Software 4, 1982.  Where steps relative to 1 are
    too long, steps relative to the number itself are tried.
    """
    unit, first = _unit(target.program, target.name), LARGEST if step is None else step
    if tolerance is None:
        tolerance = max(FINEST, 10.0 ** math.ceil(math.log10(SLACK * unit.gap ** (2 / 3))))
    pull = Pullback(target, inputs)
    pull.seed(loss)
    rows: list[GradRow] = []
    for name, slot, adjoint in _leaves(target.function, pull(wrt)):
        t = elem_of(target.function.registers[slot].type)
        for move in _moves(name, t, pull.start[slot], adjoint, most):
            watch(move.place)

            def value(moved: Any, slot: int = slot) -> float:
                return _loss(target, pull.start, slot, moved, loss)

            try:
                found, off = _quotient(move, value, unit, first)
            except RvmError as error:
                note, required = f"{error.code}: {error.message}", _is_required(move, value, first)
                rows.append(
                    GradRow(move.place, move.gradient, math.nan, note=note, is_required=required)
                )
                continue
            rows.append(GradRow(move.place, move.gradient, found, off))
    return GradCheck(loss, tuple(rows), tolerance)


def _quotient(
    move: _Move, loss: Callable[[Any], float], unit: _Unit, step: float
) -> tuple[float, float]:
    """The derivative along a move by finite differences, and its estimated error.

    Steps are relative to the number's size, but at least to 1; if the result is poor, to the number
    itself.  If the function fails at all steps, its error is raised.
    """
    best = math.nan, math.inf
    failed: RvmError | None = None
    for size in reversed(_sizes(move)):
        try:
            found, off = _extrapolated(move, loss, unit, max(step * size, move.least))
        except RvmError as error:
            failed = error
            continue
        # Losses that are all equal say nothing where longer steps change them.
        if off < best[1] and (off or math.isinf(best[1])):
            best = found, off
        if best[1] <= FINEST * abs(best[0]):
            break
    if failed is not None and math.isnan(best[0]):
        raise failed
    if best == (0.0, 0.0) and _is_absorbed(move, loss, step):
        return 0.0, math.inf
    return best[0], SURE * best[1]


def _is_absorbed(move: _Move, loss: Callable[[Any], float], step: float) -> bool:
    """Whether much longer steps change a loss that is equal at short ones, or fail."""
    here = loss(move.raw)
    for k in range(4, 64, 4):
        pair = move.both(step * max(1.0, move.size) * 2.0**k)
        if pair is None:
            break
        try:
            if any(loss(moved) != here for moved in pair[:2]):
                return True
        except RvmError:
            return True
    return False


def _sizes(move: _Move) -> list[float]:
    """What steps are relative to: the number's size, and 1 if that is larger."""
    return sorted({move.size, max(1.0, move.size)})


def _is_required(move: _Move, loss: Callable[[Any], float], step: float) -> bool:
    """Whether the function fails at the shortest step up, and at the shortest step down."""
    firsts = (max(step * s, move.least) for s in _sizes(move))
    steps = (first / 2**k for first in firsts for k in reversed(range(HALVINGS)))
    high, low, _ = next(at for step in steps if (at := move.both(step)) is not None)
    for moved in (high, low):
        try:
            loss(moved)
        except RvmError:
            continue
        return False
    return True


def _extrapolated(
    move: _Move, loss: Callable[[Any], float], unit: _Unit, step: float
) -> tuple[float, float]:
    """The best entry of Ridders' tables for the steps step / 2ⁱ, and its error.

    Steps at which the function fails are skipped.  Once the table stops improving, the rounding
    error of the loss is measured nearby, and the best entry is chosen again.
    """
    at: list[_Pair] = []
    best, least = math.nan, math.inf
    failed: RvmError | None = None
    for k in range(HALVINGS):
        try:
            pair = _pair(move, loss, step / 2**k)
        except RvmError as error:
            failed = error
            at.clear()
            continue
        if pair is None:
            break
        at.append(pair)
        best, least = _table(at, unit, 0.0)
        if least <= FINEST / 100 * abs(best) or pair.noise(unit) > least:
            near = _near(move, loss, step / 2 ** (k + FURTHER))
            if near is None:
                break
            noise = _measured(loss(move.raw), near)
            last = near[-1]
            gap = abs(last.quotient - best)
            if gap <= 2 * max(last.noise(unit), noise / last.width) + CLOSE * abs(best):
                best, least = _table(at, unit, noise)
                break
            # Longer steps crossed an edge that shorter ones do not reach.
            best, least = math.nan, math.inf
            at.clear()
    if math.isinf(least) and failed is not None:
        raise failed
    return best, least


@dataclass(frozen=True, slots=True)
class _Pair:
    """The loss with a number moved up, and down, and how far these are apart."""

    up: float
    down: float
    width: float

    @property
    def quotient(self) -> float:
        return (self.up - self.down) / self.width

    def noise(self, unit: _Unit) -> float:
        """The error of the quotient from the units of rounding granted to each loss."""
        sizes = (max(abs(x), unit.least) for x in (self.up, self.down))
        return NOISE * unit.gap * sum(sizes) / self.width


def _pair(move: _Move, loss: Callable[[Any], float], step: float) -> _Pair | None:
    at = move.both(step)
    if at is None:
        return None
    high, low, width = at
    return _Pair(loss(high), loss(low), width)


def _table(at: list[_Pair], unit: _Unit, noise: float) -> tuple[float, float]:
    """The best entry of Ridders' table, and its error.

    Row i has the quotient of the i-th pair, and its extrapolations.  The error of an entry is its
    distance from the two entries that it was made from, plus the effect of rounding in the losses,
    which may change a difference by `noise`.
    """
    best, least = math.nan, math.inf
    above: list[float] = []
    for pair in at:
        row = [pair.quotient]
        rounding = max(pair.noise(unit), noise / pair.width)
        for j, old in enumerate(above):
            factor = 4.0 ** (j + 1)
            new = row[j] + (row[j] - old) / (factor - 1)
            off = max(abs(new - row[j]), abs(new - old)) + rounding
            row.append(new)
            if off < least:
                best, least = new, off
        above = row
    return best, least


def _near(move: _Move, loss: Callable[[Any], float], step: float) -> list[_Pair] | None:
    """Losses at equally spaced points up to a step, on both sides; None if there are none."""
    try:
        pairs = [_pair(move, loss, step * k / BESIDE) for k in range(1, BESIDE + 1)]
    except RvmError:
        return None
    return None if None in pairs else [p for p in pairs if p is not None]


def _measured(centre: float, near: list[_Pair]) -> float:
    """The amount by which rounding may change the difference of two losses.

    High-order differences of losses at equal distances leave little except rounding.  J. J. Moré
    and S. M. Wild, SIAM J. Sci. Comput. 33, 2011.
    """
    row = np.array([*(p.down for p in reversed(near)), centre, *(p.up for p in near)])
    worst = 0.0
    with np.errstate(all="ignore"):
        for order in range(1, len(row)):
            row = np.diff(row)
            if order >= SMOOTH:
                worst = max(worst, float(np.mean(row**2)) / math.comb(2 * order, order))
    return DEVIATIONS * math.sqrt(2 * worst)


@dataclass(frozen=True, slots=True)
class _Unit:
    """The rounding of the coarsest numbers in a function's reach, relative to numbers."""

    gap: float
    least: float
    """A number counts as at least so large: 1 where there are `fixed` ones, whose gap is absolute.
    """


def _unit(program: Program, name: str) -> _Unit:
    functions = map(program.function, reachable(program, name))
    types = {elem_of(r.type) for f in functions for r in f.registers}
    return _Unit(max(map(unit_of, types), default=UNIT), float(any(system(t).grain for t in types)))


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


def _loss(target: Target, start: list[Any], slot: int, moved: Any, loss: str) -> float:
    """The loss with another raw value in one register."""
    raws = [*start[:slot], moved, *start[slot + 1 :]]
    inputs = {p.name: nested(p.layout, raws) for p in target.function.params}
    return Pullback(target, dressed(target.function, inputs)).value(loss)


@dataclass(frozen=True, slots=True)
class _Move:
    """A number in a register's raw value that can be moved."""

    place: str
    gradient: float
    type: Scalar
    raw: Any
    index: tuple[int, ...]
    way: complex
    """1, or 1j for the imaginary part."""

    @property
    def size(self) -> float:
        """The number's size; of a zero the largest in its array, or 1."""
        x = abs(_at(self.raw, self.index))
        scale = self.type.unit
        return x * scale or float(np.max(np.abs(self.raw), initial=0.0)) * scale or 1.0

    @property
    def least(self) -> float:
        """The length of the shortest first step: that of some units of `fixed` numbers."""
        return GRAINS * system(self.type).grain

    def both(self, step: float) -> tuple[Any, Any, float] | None:
        """The register's values with the number moved up and down, and the distance between these.

        The quotient is taken between numbers of the type; None if the step is too small to change
        one.
        """
        t, x = self.type, _at(self.raw, self.index)
        if t.is_fixed:
            n = round(step * 2.0**t.frac)
            high, low, width = x + n, x - n, 2 * n / 2.0**t.frac
        else:
            high, low = (_rounded(t, x + h * self.way) for h in (step, -step))
            width = abs(high - low)
        if not width:
            return None
        return _put(self.raw, self.index, high), _put(self.raw, self.index, low), width


def _moves(name: str, t: Scalar, raw: Any, adjoint: Any, most: int) -> Iterator[_Move]:
    shape = np.shape(raw)
    count = math.prod(shape)
    for flat in range(count) if count <= most else np.linspace(0, count - 1, most).astype(int):
        index = tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else ()
        place = f"{name}[{', '.join(map(str, index))}]" if index else name
        g = _at(adjoint, index)
        for part, way in ((".re", 1), (".im", 1j)) if t.is_complex else (("", 1),):
            slope = float(g.imag if way == 1j else g.real)
            yield _Move(place + part, slope, t, raw, index, way)


def _rounded(t: Scalar, x: Any) -> Any:
    return float(system(t).literal(x)) if t.is_float else x


def _at(held: Any, index: tuple[int, ...]) -> Any:
    """A number in a register's raw value."""
    if not index:
        return held
    return held[index[0]] if isinstance(held, list) else held[index].item()


def _put(held: Any, index: tuple[int, ...], x: Any) -> Any:
    """A register's raw value with one number replaced."""
    if not index:
        return x
    if isinstance(held, list):
        return [*held[: index[0]], x, *held[index[0] + 1 :]]
    out = held.copy()
    out[index] = x
    return out
