"""Whether a gradient's values came back: one judgement for every way to a gradient.

The adjoints are computed from values that the run back makes again.  Where each number came back
to where it began, within `rounding.RETURN` of itself, the adjoints are right as far as rounding
goes.  Where one did not, the gradient is held against tangents, which only run forwards, before it
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.expr import Place
from rvm.faults import InvertibilityError, RvmError
from rvm.numbers import system
from rvm.numbers.rounding import (
    AGREEMENT,
    RETURN,
    agreement_limit,
    magnitude,
    return_limit,
    returned,
)
from rvm.program import Function, Program, slots_of
from rvm.run.direct import Run
from rvm.state import Options
from rvm.transform.duals import bar_slots, bar_type
from rvm.transform.programs import differentiated, tangent_program
from rvm.types import F64, Array, Scalar, Stack, elem_of

QUICK = (float, int)
"""Python's types of raw values that compare at once."""
DIRECTIONS = 2
"""So many tangents a gradient is held against."""
NEGLIGIBLE = RETURN / AGREEMENT
"""An adjoint below this part of all may be off by `RETURN` of all."""
INFINITY = float("inf")
Duals = Mapping[int, Any]
"""Adjoints by parameter register, as raw values."""
Finals = Mapping[int, Any]
"""What parameters' registers held after the run forwards, as far as it is known."""
NONE: Finals = {}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run there and back knows besides its values: asked for when they are not back."""

    program: Program
    name: str
    undo: bool
    seeds: Duals
    """The adjoints of the results."""
    found: Duals
    """The adjoints of the inputs."""


def check_returned(
    function: Function,
    start: Sequence[Any],
    ended: Sequence[Any],
    options: Options,
    evidence: Callable[[], Evidence],
    finals: Finals = NONE,
) -> None:
    """InvertibilityError R017 where values are not back and the adjoints are wrong, or may be.

    `start` and `ended` are the raw values of the parameters' registers, `finals` what is known of
    those after the run forwards; what is missing is made again if it is needed.  With a tolerance
    in the options that is the measure, and nothing is held against tangents.
    """
    off = strays(function, start, ended, options, evidence, finals)
    if not off:
        return
    part = disagreement(function, start, options, evidence()) if options.tolerance is None else None
    if part is None or not part <= agreement_limit(_is_coarse(function)):
        raise refusal(function, start, ended, options, off[0], part)


def gradient_check(
    program: Program, name: str, undo: bool, regs: Sequence[Any], options: Options
) -> Callable[[Sequence[Any]], None] | None:
    """What judges a run of a function that is a gradient, by the registers at its end.

    `regs` are the registers before the run.  None for other functions, and for inverses.
    """
    source = None if undo else differentiated(program, name)
    if source is None:
        return None
    function, entry = program.function(source), program.function(name)
    start = [copied(v) for v in regs[: entry.n_args]]
    slots = bar_slots(function)

    def check(ended: Sequence[Any]) -> None:
        def evidence() -> Evidence:
            seeds = {k: start[slot] for k, slot in slots.items()}
            for instr in entry.code[1:-1]:
                seeded = instr.args[0]
                assert isinstance(seeded, Place)
                k = next(k for k, slot in slots.items() if slot == seeded.reg)
                seeds[k] = seeds[k] + 1
            return Evidence(program, source, False, seeds, {k: ended[v] for k, v in slots.items()})

        check_returned(function, start, ended, options, evidence)

    return check


def strays(
    function: Function,
    start: Sequence[Any],
    ended: Sequence[Any],
    options: Options,
    evidence: Callable[[], Evidence],
    finals: Finals = NONE,
) -> list[int]:
    """The parameters' registers whose numbers are not back where they began."""
    tolerance = options.tolerance
    quick = () if tolerance == 0 else QUICK
    limit = RETURN if tolerance is None else tolerance
    off = []
    for k in range(function.n_args):
        begun, back = start[k], ended[k]
        if begun is back:
            continue
        kind = type(begun)
        if kind in quick:
            if begun == back:
                continue
            if kind is float and function.registers[k].type is F64:
                size = abs(begun) or abs(finals.get(k, 0.0))
                if abs(back - begun) <= limit * size < INFINITY:
                    continue
        elif quick and kind is np.ndarray and (begun == back).all():
            continue
        if not np.all(_near(function, k, begun, back, tolerance)):
            off.append(k)
    return _not_held(function, start, ended, options, evidence, finals, off) if off else off


def limit_of(t: Scalar, tolerance: float | None) -> float:
    """How far a number of type `t` may be from where it began, in parts of itself."""
    return return_limit(t) if tolerance is None else tolerance


def _near(
    function: Function,
    k: int,
    begun: Any,
    back: Any,
    tolerance: float | None,
    held: float = 0.0,
) -> NDArray[np.bool_]:
    t = function.registers[k].type
    elem = elem_of(t)
    if isinstance(t, Stack) and len(begun) != len(back):
        return np.zeros(1, bool)
    return returned(elem, begun, back, limit_of(elem, tolerance), held)


def _not_held(
    function: Function,
    start: Sequence[Any],
    ended: Sequence[Any],
    options: Options,
    evidence: Callable[[], Evidence],
    finals: Finals,
    off: list[int],
) -> list[int]:
    """Those that are off even by the measure of what they held, as numbers that began as zero."""
    out = []
    for k in off:
        begun, back = start[k], ended[k]
        near = _near(function, k, begun, back, options.tolerance)
        if near.shape != np.shape(begun) or not np.all(near | (np.asarray(begun) == 0)):
            out.append(k)
            continue
        if k not in finals:
            finals = dict(enumerate(_forwards(function, start, options, evidence())))
        held = magnitude(elem_of(function.registers[k].type), finals[k])
        if not np.all(_near(function, k, begun, back, options.tolerance, held)):
            out.append(k)
    return out


def _forwards(
    function: Function, start: Sequence[Any], options: Options, known: Evidence
) -> list[Any]:
    """The parameters' registers after another run forwards, which nobody sees."""
    regs = [copied(v) for v in start[: function.n_args]]
    return Run(known.program, known.name, regs, _muted(options), undo=known.undo).regs


def disagreement(
    function: Function, start: Sequence[Any], options: Options, known: Evidence
) -> float | None:
    """How far the adjoints are from tangents, in parts of themselves; None if there are none.

    Along a direction v the loss changes by g · v, g being the gradient; the tangent program says by
    how much it does.  Directions are random, in each parameter as long as 1 / |g|, so that units do
    not matter; but an adjoint counts as no less than `NEGLIGIBLE` of all: with a size x of each
    parameter, |g| x is what it has to do with the loss.  Where there is nothing to measure an
    adjoint of zero by, the tangent must be zero.
    """
    rng = np.random.default_rng(0)
    worst = 0.0
    try:
        finals = _forwards(function, start, options, known)
        norms = {k: _norm(g) for k, g in known.found.items()}
        sizes = {k: _size(function, k, start[k]) or _size(function, k, finals[k]) for k in norms}
        least = NEGLIGIBLE * sum(norms[k] * sizes[k] for k in norms)
        lengths = {k: max(norm, least / sizes[k] if sizes[k] else 0.0) for k, norm in norms.items()}
        for _ in range(DIRECTIONS):
            along = {k: _random(rng, g, lengths[k]) for k, g in known.found.items() if lengths[k]}
            want = sum(_dot(known.found[k], v) for k, v in along.items())
            change = _change(function, start, options, known, along) if along else 0.0
            worst = _larger(worst, abs(change - want))
        flat = {k: _random(rng, g, 1.0) for k, g in known.found.items() if not lengths[k]}
        if flat and _change(function, start, options, known, flat) != 0:
            return np.inf
    except RvmError:
        return None
    return worst


def _size(function: Function, k: int, raw: Any) -> float:
    t = elem_of(function.registers[k].type)
    return magnitude(t, raw) * (2.0**-t.frac if t.is_fixed else 1.0)


def _change(
    function: Function, start: Sequence[Any], options: Options, known: Evidence, along: Duals
) -> float:
    """The derivative of the seeded loss along a direction, by the tangent program."""
    program = tangent_program(known.program, known.name)
    slots = bar_slots(function)
    regs = [copied(v) for v in start[: function.n_args]]
    for k in slots:
        t = bar_type(function.registers[k].type)
        assert t is not None
        v = np.zeros(np.shape(known.found[k]), system(elem_of(t)).dtype)
        v[...] = along.get(k, 0.0)
        regs.append(v if isinstance(t, Array) else v.tolist())
    # Where the function is a gradient itself, tangents go by what came back in it.
    check = gradient_check(known.program, known.name, known.undo, start, options)
    regs = Run(program, program.entry, regs, _muted(options), undo=known.undo).regs
    if check is not None:
        check(regs)
    return sum(_dot(seed, regs[slots[k]]) for k, seed in known.seeds.items())


def _muted(options: Options) -> Options:
    """Options of a run that nobody sees, of what has been run before."""
    return replace(
        options,
        output=lambda line: None,
        callbacks={name: lambda *values: None for name in options.callbacks},
        max_steps=None,
    )


def _random(rng: np.random.Generator, like: Any, size: float) -> NDArray[Any]:
    """A random direction for adjoints of a norm: numbers of either sign and like size."""
    a = np.asarray(like)
    out = rng.choice([-1.0, 1.0], a.shape) * rng.uniform(0.5, 1.5, a.shape)
    if a.dtype.kind == "c":
        out = out * np.exp(1j * rng.uniform(0, 7, a.shape))
    return np.asarray(out / size).astype(a.dtype)


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
    """The larger of two, and NaN of NaN."""
    return b if not b <= a else a


def _is_coarse(function: Function) -> bool:
    types = [elem_of(function.registers[k].type) for k in bar_slots(function)]
    return any(t.is_float and t.bits < 64 for t in types)


def refusal(
    function: Function,
    start: Sequence[Any],
    ended: Sequence[Any],
    options: Options,
    k: int,
    part: float | None = None,
) -> InvertibilityError:
    """The error R017 for a register that is off, and how far the gradient is from tangents."""
    name = next(p.name for p in function.params if k in slots_of(p.layout))
    begun, back = start[k], ended[k]
    t = function.registers[k].type
    sys = system(elem_of(t))
    bad = ~_near(function, k, begun, back, options.tolerance)
    if isinstance(t, (Array, Stack)) and np.shape(begun) == np.shape(back):
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        name += f"[{', '.join(map(str, at))}]"
        begun, back = np.asarray(begun)[at].item(), np.asarray(back)[at].item()
    if isinstance(t, Scalar) or np.shape(start[k]) == np.shape(ended[k]):
        begun, back = sys.to_python(begun), sys.to_python(back)
    told = f"tangents, which only run forwards, differ from it by {part or 0:.1g} times itself"
    tolerance = options.tolerance
    wider = 1e-6 if tolerance is None else max(1e-6, 100 * tolerance)
    return InvertibilityError(
        "R017",
        f"run back with the adjoints, `{name}` is not where it began: "
        "the gradient cannot be trusted",
        values={"began as": begun, "came back as": back},
        notes=() if part is None else (told,),
        hint="a run that contracts forgets its start by rounding: take the gradient in strict "
        "mode, push what is lost, or compute with fixed-point numbers; "
        f"`tolerance={wider:g}` would take what is off by that part of itself",
    )


def copied(value: Any) -> Any:
    """A raw value that a run may change."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return list(value) if isinstance(value, list) else value
