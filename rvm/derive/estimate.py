"""The error of a gradient, estimated from runs with perturbed rounding and from tangents.

There are two estimates.  The first is the distance of the gradient from those that perturbed
rounding gives, in the run forwards and in the run back (`rvm.image.nudged`).  It misses the effect
of a branch that both take wrongly.  The second is its distance, along random directions, from the
derivative by tangents, which only run forwards.  It does not include the rounding of the run
forwards.  The larger of the two counts.  In strict mode, in which no other run can go back, and
where there are only tangents, these are those of perturbed rounding too.

The estimates are computed from the inputs, as they are when the error is requested: if they have
changed since, the same gradient is not obtained again, and that is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.faults import RvmError
from rvm.image.nudged import nudged
from rvm.numbers import system
from rvm.numbers.rounding import (
    CLEAR,
    DIRECTIONS,
    NEGLIGIBLE,
    SPREAD,
    STEPS,
    ULPS,
    magnitude,
)
from rvm.program import Function, Program
from rvm.run.backup import copied
from rvm.run.raw import Run
from rvm.state import Options
from rvm.transform.duals import bar_slots, bar_type
from rvm.transform.gradient import adjoint_names
from rvm.transform.programs import gradient_program, tangent_program
from rvm.types import Array, RegisterType, elem_of

SEEDS = tuple(range(1, SPREAD + 1))
SHORTEST = 2.0**-1020
"""The least length of an adjoint."""
Duals = Mapping[int, Any]
"""Adjoints by parameter register, as raw values."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A gradient and the data from which it was computed, as needed to estimate its error.

    `start` are the raw values of the parameters' registers, which must not change.
    """

    program: Program
    name: str
    undo: bool
    options: Options
    start: Sequence[Any]
    seeds: Duals
    """The adjoints of the results."""
    found: Duals
    """The adjoints of the inputs, all or some."""
    forwards: bool = False
    """They were found by tangents, without a run back."""
    owned: bool = False
    """The values are copies, which do not change."""

    @property
    def goes_back(self) -> bool:
        """Whether the adjoints come from values that a run back has recomputed.

        In strict mode it takes them from the log.
        """
        return not (self.forwards or self.options.strict)

    def again(self, seed: int | None = None) -> Mapping[int, Any]:
        """The gradient once more, by parameter register; with a seed with perturbed rounding."""
        return again(self, seed)

    @property
    def function(self) -> Function:
        """The function that was differentiated."""
        return self.program.function(self.name)

    @property
    def begun(self) -> list[Any]:
        """Copies of the parameters' raw values, from which to run again."""
        return [copied(v) for v in self.start[: self.function.n_args]]


class Estimate:
    """The error of a gradient, in absolute terms: `errors` by parameter register."""

    def __init__(self, known: Evidence, held: Mapping[int, float] | None = None) -> None:
        """`held` are the largest magnitudes of the parameters on the way, see `rvm.derive.held`."""
        self.known = known
        self.held = held

    @cached_property
    def errors(self) -> dict[int, NDArray[np.float64]]:
        """The possible error of each number in the adjoints; infinite if it cannot be estimated."""
        known = self.known
        found = {k: np.asarray(g) for k, g in known.found.items()}
        if not any(g.size for g in found.values()):
            return {k: np.zeros(g.shape) for k, g in found.items()}
        try:
            off, _ = self._off
            others = [known.again(seed) for seed in SEEDS] if known.goes_back else [found]
        except RvmError:
            return {k: np.full(g.shape, np.inf) for k, g in found.items()}
        out = {}
        with np.errstate(all="ignore"):
            for k, g in found.items():
                spread = np.max([np.abs(np.asarray(other[k]) - g) for other in others], axis=0)
                along = off[k] / max(1, g.size) ** 0.5
                unit = system(elem_of(_bar(known.function, k))).unit
                worst = np.maximum(spread, along) + ULPS * unit * np.abs(g)
                out[k] = np.where(np.isnan(worst), np.inf, worst).astype(np.float64)
        return out

    @cached_property
    def part(self) -> float:
        """The error in parts of the gradient, of the parameter where that is the largest.

        A gradient of a parameter counts as no less than `NEGLIGIBLE` of all.
        """
        try:
            lengths = self._off[1]
        except RvmError:
            return np.inf
        worst = 0.0
        for k, error in self.errors.items():
            if norm := _norm(error):
                worst = max(worst, norm / lengths[k] if lengths[k] else np.inf)
        return worst

    def returns_within(self, limit: float) -> bool:
        """Whether the error due to running back is within a part of the gradient, as in `part`.

        Tangents run forwards only, and use the values as the forward run rounded them.  So where
        adjoints differ from them, the cause is that values did not come back.  A random direction
        shows less than a `CLEAR`th of an error in fewer than one of a hundred cases: where it shows
        less than that part of the limit, one direction is enough.
        """
        try:
            if self._first.is_enough and self._first.off * CLEAR <= limit:
                return True
            off, lengths = self._off
        except RvmError:
            return False
        worst = 0.0
        for k, error in off.items():
            if error != 0:
                worst = _larger(worst, error / lengths[k] if lengths[k] else np.inf)
        return worst <= limit

    @cached_property
    def _first(self) -> _First:
        """The first random direction, of length 1 / |g| in each parameter, g being the gradient.

        So units do not matter.  An adjoint counts as at least `NEGLIGIBLE` of all adjoints, each
        weighted by the size x of its parameter, as |g| x; sizes are those held on the way where
        they are known, and otherwise those at the start or the end.
        """
        known = self.known
        norms = {k: _norm(g) for k, g in known.found.items()}
        rng = np.random.default_rng(0)
        own = {k: _length(norm, 0.0, 0.0) for k, norm in norms.items()}
        along = {k: _random(rng, known.found[k], own[k]) for k in norms if own[k]}
        change, ended = self._change(along)
        function, start = known.function, known.start
        held = self.held or {k: raw_size(function, k, ended[k]) for k in norms}
        units = {k: elem_of(function.registers[k].type).unit for k in norms}
        sizes = {k: (raw_size(function, k, start[k]) or held[k]) * units[k] for k in norms}
        least = NEGLIGIBLE * sum(norms[k] * sizes[k] for k in norms)
        lengths = {k: _length(norm, least, sizes[k]) for k, norm in norms.items()}
        off = abs(change - self._want(along))
        return _First(rng, off, lengths, is_enough=own == lengths and len(along) == len(norms))

    @cached_property
    def _off(self) -> tuple[dict[int, float], dict[int, float]]:
        """The distance of each adjoint from tangents, and the length assumed for it.

        Along a direction v the loss changes by g · v, where g is the gradient; the tangent program
        gives the actual change.  Adjoints that count as larger than they are get directions of
        their own, since the rounding errors of the others would be large beside them.  An adjoint
        of zero whose parameter has no size either requires a tangent of zero; its distance is then
        the largest tangent under perturbed rounding.
        """
        known, first = self.known, self._first
        seeds = (None,) if known.goes_back else (None, *SEEDS)
        norms = {k: _norm(g) for k, g in known.found.items()}
        lengths = first.lengths
        small = [k for k, norm in norms.items() if norm < lengths[k]]
        flat = [k for k in norms if not lengths[k]]
        rest = [k for k in norms if k not in (*small, *flat)]
        off = dict[int, float]()
        for group in (rest, *([k] for k in small)):
            # The first direction was run without perturbed rounding only.
            made = first.is_enough and seeds == (None,)
            worst = first.off if made else 0.0
            for _ in range(DIRECTIONS - made if group else 0):
                along = {k: _random(first.rng, known.found[k], lengths[k]) for k in group}
                for seed in seeds:
                    change, _ended = self._change(along, seed)
                    worst = _larger(worst, abs(change - self._want(along)))
            off |= {k: worst * lengths[k] for k in group}
        if flat:
            along = {k: _random(first.rng, known.found[k], 1.0) for k in flat}
            changes = [abs(self._change(along, seed)[0]) for seed in seeds]
            worst = np.inf if changes[0] != 0 else reduce(_larger, changes)
            off |= dict.fromkeys(flat, worst)
        return off, lengths

    def _want(self, along: Duals) -> float:
        """The derivative of the loss along a direction, by the adjoints."""
        return sum(_dot(self.known.found[k], v) for k, v in along.items())

    def _change(self, along: Duals, seed: int | None = None) -> tuple[float, list[Any]]:
        """The derivative of the seeded loss along a direction, by the tangent program.

        With a seed it is that of perturbed rounding.  The registers at the end come with it.
        """
        known = self.known
        function = known.function
        program = tangent_program(known.program, known.name)
        options = replace(muted(known.options), strict=False)
        if seed is not None:
            program, options = otherwise(program, options, seed)
        slots = bar_slots(function)
        regs = known.begun
        for k in slots:
            t = _bar(function, k)
            v = np.zeros(np.shape(known.start[k]), system(elem_of(t)).dtype)
            v[...] = along.get(k, 0.0)
            regs.append(v if isinstance(t, Array) else v.tolist())
        # If the function is itself a gradient, its tangents depend on values that came back.
        from rvm.derive.gate import gradient_check

        check = gradient_check(known.program, known.name, known.undo, known.start, known.options)
        run = Run(program, program.entry, regs, options, undo=known.undo)
        if check is not None:
            check(run.regs, run.rounding.drift)
        return sum(_dot(seed, run.regs[slots[k]]) for k, seed in known.seeds.items()), run.regs


@dataclass(frozen=True, slots=True)
class _First:
    """The error of the adjoints along the first direction, and the length assumed for each.

    `is_enough` if each length is that of the adjoint itself, so that the direction counts as one of
    those of all parameters.
    """

    rng: np.random.Generator
    off: float
    lengths: dict[int, float]
    is_enough: bool


def held_at_end(known: Evidence) -> dict[int, float]:
    """The largest magnitude of the numbers in each parameter's register after the run forwards."""
    options = replace(muted(known.options), strict=False)
    regs = Run(known.program, known.name, known.begun, options, undo=known.undo).regs
    return {k: raw_size(known.function, k, regs[k]) for k in range(known.function.n_args)}


def again(known: Evidence, seed: int | None = None) -> dict[int, Any]:
    """The gradient once more, by parameter register; with a seed with perturbed rounding."""
    back = there_and_back(known, seed)
    return {k: back.regs[slot] for k, slot in bar_slots(known.function).items()}


def there_and_back(known: Evidence, seed: int | None = None) -> Run:
    """The run back with the adjoints, once more."""
    program, options = known.program, muted(known.options)
    adjoint, derived = adjoint_names(program)[known.name], gradient_program(program, known.name)
    if seed is not None:
        program, _ = otherwise(program, options, seed)
        derived, options = otherwise(derived, options, seed)
    slots = bar_slots(known.function)
    there = Run(program, known.name, known.begun, options, undo=known.undo)
    regs = [*there.regs, *(copied(known.seeds[k]) for k in slots)]
    log = there.machine.state.residue if options.strict else None
    return Run(derived, adjoint, regs, options, undo=known.undo, log=log)


def otherwise(program: Program, options: Options, seed: int) -> tuple[Program, Options]:
    """A program that runs with perturbed rounding, and the options that it then needs."""
    return nudged(program, seed, STEPS), replace(options, tolerance=np.inf, bits="stated")


def same(a: Duals, b: Duals) -> bool:
    """Whether all of `b` is in `a`, to the bit, ignoring signs of zeros and kinds of NaN."""
    return all(np.array_equal(a[k], b[k], equal_nan=True) for k in b)


def _bar(function: Function, k: int) -> RegisterType:
    t = bar_type(function.registers[k].type)
    assert t is not None
    return t


def raw_size(function: Function, k: int, raw: Any) -> float:
    """The largest magnitude of a parameter's raw numbers."""
    return magnitude(elem_of(function.registers[k].type), raw)


def muted(options: Options) -> Options:
    """Options for an unobserved repetition of a run."""
    return replace(options.unseen(), judged_later=True, max_steps=None, error=False)


def _random(rng: np.random.Generator, like: Any, size: float) -> NDArray[Any]:
    """A random direction for adjoints of a norm: numbers of either sign and like size."""
    a = np.asarray(like)
    out = rng.choice([-1.0, 1.0], a.shape) * rng.uniform(0.5, 1.5, a.shape)
    if a.dtype.kind == "c":
        out = out * np.exp(1j * rng.uniform(0, 7, a.shape))
    return np.asarray(out / size).astype(a.dtype)


def _length(norm: float, least: float, size: float) -> float:
    """The assumed length of an adjoint: 1 / length is finite, and is the length of directions."""
    length = max(norm, least / size if size else 0.0)
    return max(length, SHORTEST) if length else 0.0


def _norm(g: Any) -> float:
    a = np.abs(np.asarray(g)).astype(np.float64)
    top = float(np.max(a, initial=0.0))
    return top * float(np.linalg.norm(a / top)) if 0 < top < np.inf else top


def _dot(a: Any, b: Any) -> float:
    """The real inner product of two raw values."""
    wide: Any = np.complex128 if np.iscomplexobj(a) or np.iscomplexobj(b) else np.float64
    with np.errstate(all="ignore"):
        return float(np.vdot(np.asarray(a).astype(wide), np.asarray(b).astype(wide)).real)


def _larger(a: float, b: float) -> float:
    """The larger of two numbers; NaN if either is NaN."""
    return a if b <= a or a != a else b
