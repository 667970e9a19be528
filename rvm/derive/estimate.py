"""The verdict on a gradient, and its error, estimated from perturbed runs and from tangents.

Adjoints are right up to rounding where the values of the run back returned to their start
(`rvm.derive.gate`).  Where one did not, tangents show the effect on the gradient; with a tolerance,
its error is estimated before it is refused.

There are two estimates.  The first is the distance of the gradient from those that perturbed
rounding gives, in the run forwards and in the run back (`rvm.image.nudged`).  It misses the effect
of a branch that both take wrongly.  The second is its distance, along random directions, from the
derivative by tangents, which only run forwards.  It does not include the rounding of the run
forwards.  The larger of the two counts.  In strict mode, in which no other run can go back, and
where there are only tangents, these are those of perturbed rounding too.

The estimates are computed from the inputs when the error is requested: if these have changed since,
or the same gradient is not obtained again, that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.derive.evidence import SEEDS, Duals, Evidence, held_at_end, muted, otherwise, raw_size
from rvm.derive.gate import (
    NONE,
    Finals,
    Witness,
    is_coarse,
    is_demanding,
    not_held,
    refusal,
    strays,
    unconfirmed,
)
from rvm.derive.held import largest_held
from rvm.expr import Place
from rvm.faults import RvmError
from rvm.numbers import system
from rvm.numbers.rounding import CLEAR, DIRECTIONS, INFINITY, NEGLIGIBLE, ULPS, agreement_limit
from rvm.program import Function, Program
from rvm.run.raw import Run
from rvm.run.transaction import Check
from rvm.state import Options
from rvm.transform.duals import bar_slots, bar_type
from rvm.transform.programs import differentiated, steps_of, tangent_program
from rvm.types import Array, RegisterType, elem_of

SHORTEST = 2.0**-1020
"""The least length of an adjoint."""

Verdict = Callable[[float], None]
"""A function that refuses derivatives whose relative error exceeds the limit."""


def check_returned(
    program: Program,
    name: str,
    start: Sequence[Any],
    ended: Sequence[Any],
    options: Options,
    evidence: Witness,
    finals: Finals = NONE,
    drift: float = 0.0,
    undo: bool = False,
) -> Verdict | None:
    """Raise InvertibilityError R017 if the adjoints are wrong, or may be.

    `start` and `ended` are the raw values of the parameters' registers; `finals` are the known ones
    after the forward run, and missing ones are recomputed if needed. `drift` is that of the run
    back, with options `later`. The adjoints are those of the inverse if `undo`. Values that came
    back confirm the adjoints, unless more is demanded than that guarantees. If they did not come
    back, the returned verdict judges other derivatives by the same limit.
    """
    tolerance, function = options.tolerance, program.function(name)
    if tolerance == INFINITY:
        return None
    held: dict[int, float] = {}
    off = strays(function, start, ended, options, evidence, finals, held)
    is_back, demanding = not off and drift <= 1, is_demanding(program, name, undo, options)
    if is_back and not demanding:
        return None
    limit = tolerance or agreement_limit(is_coarse(function))

    def verdict(part: float | None) -> None:
        if part is None or not part <= limit:
            k = off[0] if off else None
            raise refusal(function, start, ended, options, k, part, is_back)

    if tolerance == 0 and not is_back:
        verdict(None)
    known = evidence()
    estimate = Estimate(known, held)
    if not _within(estimate, tolerance, limit):
        held = largest_held(known)
        off = not_held(function, start, ended, known, off, held)
        if not off and drift <= 1 and not demanding:
            return None
        estimate = Estimate(known, held)
    if not _within(estimate, tolerance, limit):
        # A refusal states the whole error, so that a tolerance of that size accepts it.
        verdict(estimate.part())
    return verdict


def _within(estimate: Estimate, tolerance: float | None, limit: float) -> bool:
    """Whether the part of a gradient to which a limit applies is within it."""
    return estimate.part() <= limit if tolerance else estimate.returns_within(limit)


def gradient_check(
    program: Program,
    name: str,
    undo: bool,
    start: Sequence[Any],
    options: Options,
    derivatives: bool = False,
) -> Check | None:
    """A check of runs of a gradient function, by the registers at the end, and the drift.

    `start` are the registers before the run, whose contents stay as they are.  Where the adjoints
    are accepted, values are put back that rounding has moved.  For `derivatives` of the adjoints
    the values must come back: that the adjoints are right all the same tells nothing of them.  None
    for other functions, and for inverses.
    """
    source = None if undo else differentiated(program, name)
    if source is None:
        return None
    function, entry = program.function(source), program.function(name)
    slots = bar_slots(function)

    def confirmed(ended: list[Any], drift: float, known: Evidence) -> bool:
        """Whether the values are where they began, in parts of the largest that they held."""
        off = strays(function, start, ended, options, lambda: known)
        back = not off or not not_held(function, start, ended, known, off, largest_held(known))
        return back and drift <= 1

    def check(ended: list[Any], drift: float) -> None:
        def evidence() -> Evidence:
            seeds = {k: start[slot] for k, slot in slots.items()}
            for instr in steps_of(entry)[1:-1]:
                seeded = instr.args[0]
                assert isinstance(seeded, Place)
                k = next(k for k, slot in slots.items() if slot == seeded.reg)
                seeds[k] = seeds[k] + 1
            found = {k: ended[v] for k, v in slots.items()}
            return Evidence(program, source, False, options, start, seeds, found)

        verdict = check_returned(program, source, start, ended, options, evidence, drift=drift)
        if derivatives and verdict is not None and not confirmed(ended, drift, evidence()):
            raise unconfirmed(source)
        if not (options.strict or derivatives):
            # The log of a strict run undoes it from the values that it has.
            _put_back(start[: function.n_args], ended)

    return check


def _put_back(start: Sequence[Any], ended: list[Any]) -> None:
    """Let registers hold what they held at the start, in the same arrays and lists."""
    for k, begun in enumerate(start):
        if ended[k] is begun:
            continue
        if isinstance(begun, np.ndarray):
            np.copyto(ended[k], begun)
        elif isinstance(begun, list):
            ended[k][:] = begun
        else:
            ended[k] = begun


class Estimate:
    """The error of a gradient, in absolute terms: `errors` by parameter register."""

    def __init__(self, known: Evidence, held: Mapping[int, float] = NONE) -> None:
        """`held` are the largest magnitudes that parameters are known to have had."""
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

    def part(self, least: float = 0.0) -> float:
        """The error in parts of the gradient, of the parameter where that is the largest.

        A gradient of a parameter counts as no less than `NEGLIGIBLE` of all, and in a matrix as no
        less than `least`, weighted by the size of the parameter.
        """
        try:
            lengths = self._off[1]
        except RvmError:
            return np.inf
        worst = 0.0
        for k, error in self.errors.items():
            if norm := _norm(error):
                length = max(lengths[k], _length(0.0, least, self.sizes[k]))
                worst = max(worst, norm / length if length else np.inf)
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
        weighted by the size x of its parameter, as |g| x.
        """
        known = self.known
        norms = {k: _norm(g) for k, g in known.found.items()}
        rng = np.random.default_rng(0)
        own = {k: _length(norm, 0.0, 0.0) for k, norm in norms.items()}
        along = {k: _random(rng, known.found[k], own[k]) for k in norms if own[k]}
        off = abs(self._change(along) - self._want(along))
        least = NEGLIGIBLE * self.weight
        lengths = {k: _length(norm, least, self.sizes[k]) for k, norm in norms.items()}
        return _First(rng, off, lengths, is_enough=own == lengths and len(along) == len(norms))

    @cached_property
    def sizes(self) -> dict[int, float]:
        """The sizes of the parameters that have adjoints.

        They are those at the start, or where these are zero those held on the way, if they are
        known, or at the end.
        """
        known, f = self.known, self.known.function
        found = {k: raw_size(f, k, known.start[k]) for k in known.found}
        zeros = {k for k, size in found.items() if not size}
        held = self.held if zeros <= self.held.keys() else held_at_end(known) | {**self.held}
        found |= {k: held[k] for k in zeros}
        return {k: size * elem_of(f.registers[k].type).unit for k, size in found.items()}

    @property
    def weight(self) -> float:
        """The sum of all adjoints, each weighted by the size of its parameter."""
        return sum(_norm(g) * self.sizes[k] for k, g in self.known.found.items())

    def across(self) -> dict[int, Any]:
        """A random direction, in each parameter of its size, as raw values."""
        rng = np.random.default_rng(0)
        sizes, found = self.sizes, self.known.found
        return {
            k: self._raw(k, _random(rng, g, 1 / sizes[k]) if sizes[k] else 0.0)
            for k, g in found.items()
        }

    def length(self, direction: Duals) -> float:
        """The largest part of a direction, in sizes of the parameters."""
        norms = {k: _norm(v) for k, v in direction.items() if k in self.known.found}
        return max((norms[k] / self.sizes[k] for k in norms if self.sizes[k]), default=0.0)

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
                    worst = _larger(worst, abs(self._change(along, seed) - self._want(along)))
            off |= {k: worst * lengths[k] for k in group}
        if flat:
            along = {k: _random(first.rng, known.found[k], 1.0) for k in flat}
            changes = [abs(self._change(along, seed)) for seed in seeds]
            worst = np.inf if changes[0] != 0 else reduce(_larger, changes)
            off |= dict.fromkeys(flat, worst)
        return off, lengths

    def _raw(self, k: int, dual: Any) -> Any:
        """A dual of a parameter's register as a raw value."""
        t = _bar(self.known.function, k)
        v = np.zeros(np.shape(self.known.start[k]), system(elem_of(t)).dtype)
        v[...] = dual
        return v if isinstance(t, Array) else v.tolist()

    def _want(self, along: Duals) -> float:
        """The derivative of the loss along a direction, by the adjoints."""
        return sum(_dot(self.known.found[k], v) for k, v in along.items())

    def _change(self, along: Duals, seed: int | None = None) -> float:
        """The derivative of the seeded loss along a direction, by the tangent program.

        With a seed it is that of perturbed rounding.
        """
        known = self.known
        function = known.function
        program = tangent_program(known.program, known.name)
        options = replace(muted(known.options), strict=False)
        if seed is not None:
            program, options = otherwise(program, options, seed)
        slots = bar_slots(function)
        regs = known.begun
        regs += [self._raw(k, along.get(k, 0.0)) for k in slots]
        # If the function is itself a gradient, its tangents depend on values that came back.
        check = gradient_check(known.program, known.name, known.undo, known.start, known.options)
        run = Run(program, program.entry, regs, options, undo=known.undo)
        if check is not None:
            check(run.regs, run.rounding.drift)
        return sum(_dot(seed, run.regs[slots[k]]) for k, seed in known.seeds.items())


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


def _bar(function: Function, k: int) -> RegisterType:
    t = bar_type(function.registers[k].type)
    assert t is not None
    return t


def _random(rng: np.random.Generator, like: Any, size: float) -> NDArray[Any]:
    """A random direction for adjoints of a norm: numbers of either sign and like size."""
    a = np.asarray(like)
    out = rng.choice([-1.0, 1.0], a.shape) * rng.uniform(0.5, 1.5, a.shape)
    if a.dtype.kind == "c":
        out = out * np.exp(1j * rng.uniform(0, 7, a.shape))
    with np.errstate(all="ignore"):
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
