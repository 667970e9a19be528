"""What holds of every gradient, whatever the program: each a function that asserts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gradients.agreeing import ENGINES, bits, engines_agree
from sizes import first_and_another

import rvm
from rvm.derive.gradients import Pullback
from rvm.derive.named import dressed, named_duals, nested
from rvm.library.handle import FunctionHandle
from rvm.types import elem_of


def copied(value: Any) -> Any:
    """A deep copy of inputs or results, as inputs."""
    if isinstance(value, Mapping):
        return {k: copied(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return value.copy()
    return list(value) if isinstance(value, list) else value


def drawn(like: Any, rng: np.random.Generator) -> Any:
    """Random derivatives in the shape of others."""
    if isinstance(like, Mapping):
        return {k: drawn(v, rng) for k, v in like.items()}
    if isinstance(like, np.ndarray):
        x = rng.normal(size=like.shape)
        if np.iscomplexobj(like):
            x = x + 1j * rng.normal(size=like.shape)
        return x.astype(like.dtype)
    if isinstance(like, list):
        return [drawn(v, rng) for v in like]
    return complex(*rng.normal(size=2)) if isinstance(like, complex) else float(rng.normal())


def dot(one: Any, two: Any) -> float:
    """The inner product: the sum of Re(conj(a) b) over all numbers."""
    if isinstance(one, Mapping):
        return sum(dot(one[k], two[k]) for k in one)
    if isinstance(one, list):
        return sum(map(dot, one, two))
    return float(np.sum(np.real(np.conj(one) * two)))


def distance(one: Any, two: Any) -> float:
    """How far two derivatives are apart, as a part of their size where that is above one."""
    gap = {k: difference(one[k], two[k]) for k in one}
    size = max(1.0, dot(one, one) ** 0.5, dot(two, two) ** 0.5)
    return float(dot(gap, gap)) ** 0.5 / size


def difference(one: Any, two: Any) -> Any:
    if isinstance(one, Mapping):
        return {k: difference(one[k], two[k]) for k in one}
    if isinstance(one, list):
        assert len(one) == len(two)
        return list(map(difference, one, two))
    return one - two


def moved(f: FunctionHandle, inputs: Mapping[str, Any], way: Mapping[str, Any], h: float) -> Any:
    """Inputs moved along a direction, by `h` times it."""
    pull = f.pullback(**inputs)
    raws = [v.copy() if isinstance(v, np.ndarray) else v for v in pull.start]

    def move(layout: Any, by: Any) -> None:
        if isinstance(by, Mapping):
            for name, inner in layout.fields:
                if name in by:
                    move(inner, by[name])
        elif isinstance(by, list):
            raws[layout] = [x + h * d for x, d in zip(raws[layout], by, strict=True)]
        elif elem_of(f.function.registers[layout].type).is_fixed:
            one = 2.0 ** elem_of(f.function.registers[layout].type).frac
            step = np.rint(h * np.asarray(by) * one).astype(np.int64)
            raws[layout] = raws[layout] + (step if step.ndim else int(step))
        else:
            raws[layout] = raws[layout] + h * by

    for p in f.function.params:
        if p.name in way:
            move(p.layout, way[p.name])
    return dressed(f.function, {p.name: nested(p.layout, raws) for p in f.function.params})


def seeds(f: FunctionHandle, inputs: Mapping[str, Any], rng: np.random.Generator) -> Any:
    """Random adjoints of the results."""
    pull = f.pullback(**inputs)
    return drawn(named_duals(pull.function, pull.bars, pull.result.info), rng)


def along(f: FunctionHandle, inputs: Mapping[str, Any], rng: np.random.Generator) -> Any:
    """A random direction of the inputs."""
    return drawn(f.vjp(seeds(f, inputs, rng), **inputs), rng)


# ---------------------------------------------------------------- the properties


def steady(f: FunctionHandle, inputs: Mapping[str, Any], most: float = 1e-12) -> bool:
    """Whether a run comes back almost to where it began.

    If not, rounding grows on the way, and derivatives are taken at another point than was asked.
    """
    pull = f.pullback(**inputs)
    pull(check=False)
    for begun, ended in zip(pull.start, pull.machine.state.frames[0].regs, strict=False):
        if isinstance(begun, (float, complex, np.ndarray)):
            off = np.abs(np.subtract(ended, begun)) / np.maximum(np.abs(begun), 1.0)
            if np.any(off > most):
                return False
    return True


def adjoints_transpose_tangents(
    f: FunctionHandle, inputs: Mapping[str, Any], rng: np.random.Generator, near: float
) -> None:
    """<ȳ, J ẋ> = <Jᵀ ȳ, ẋ>, with nothing but rounding between them."""
    bars, dots = seeds(f, inputs, rng), along(f, inputs, rng)
    out = f.jvp(dots, **inputs)[1]
    back = f.vjp(bars, **inputs)
    one, two = dot(bars, out), dot(back, dots)
    size = max(1.0, dot(bars, bars) * dot(out, out), dot(back, back) * dot(dots, dots)) ** 0.5
    assert abs(one - two) <= near * size, (one, two)


def differences_agree(
    f: FunctionHandle,
    inputs: Mapping[str, Any],
    rng: np.random.Generator,
    near: float,
    h: float = 1e-4,
) -> None:
    """The derivative along a direction is that of the results, seeded, by differences.

    Of two steps, so that the error is of the fourth order (Richardson); of smaller steps where the
    quotients still change a lot with them.
    """
    bars, dots = seeds(f, inputs, rng), along(f, inputs, rng)
    slope = dot(f.vjp(bars, **inputs), dots)

    def quotient(h: float) -> float:
        up, down = (f.pullback(**moved(f, inputs, dots, s * h)) for s in (1, -1))
        return dot(bars, difference(_raw(f, up, bars), _raw(f, down, bars))) / (2 * h)

    size = max(1.0, abs(slope), dot(bars, bars) ** 0.5)
    wide, narrow = quotient(h), quotient(h / 2)
    while abs(wide - narrow) > 100 * near * size and h > 1e-6:
        h /= 4
        wide, narrow = quotient(h), quotient(h / 2)
    want = (4 * narrow - wide) / 3
    assert abs(slope - want) <= near * size, (slope, want)


def _raw(f: FunctionHandle, pull: Pullback, like: Mapping[str, Any]) -> Any:
    """Results in the numbers that derivatives are by: a log64 as its logarithm."""

    def raw(layout: Any, by: Any) -> Any:
        if isinstance(by, Mapping):
            return {n: raw(inner, by[n]) for n, inner in layout.fields if n in by}
        t, held = elem_of(f.function.registers[layout].type), pull.regs[layout]
        if t.is_fixed:
            return np.asarray(held) / 2.0**t.frac
        return held

    return {p.name: raw(p.layout, like[p.name]) for p in f.function.params if p.name in like}


def inverses_undo(
    f: FunctionHandle, inputs: Mapping[str, Any], rng: np.random.Generator, near: float
) -> None:
    """The gradient of the inverse is the inverse of the gradient."""
    bars = seeds(f, inputs, rng)
    there = f.vjp(bars, **inputs)
    out = copied(f(**copied(inputs)))
    back = (~f).vjp(there, **out)
    assert distance(back, bars) <= near, (back, bars)


def gradients_run_back(
    f: FunctionHandle, inputs: Mapping[str, Any], rng: np.random.Generator
) -> None:
    """The gradient program, undone in strict mode, restores values and adjoints bit for bit."""
    pull = f.pullback(**inputs)
    bars = drawn(named_duals(pull.function, pull.bars, pull.result.info), rng)
    pull.seed_all(bars)
    program = f.gradient_program
    regs = [*pull.start[: f.function.n_args], *pull.bars.values()]
    entry = program.program.function(program.program.entry)
    values = dressed(entry, {p.name: nested(p.layout, regs) for p in entry.params})
    ends, times = {}, set()
    for engine in first_and_another(ENGINES, f.function.code):
        m = rvm.Machine(program, engine=engine, strict=True, **copied(values))
        start = bits(m.result)
        m.run()
        ends[engine] = copied(m.result)
        times.add(m.time)
        m.run_back()
        assert m.time == 0
        assert bits(m.result) == start
    engines_agree(ends)
    assert len(times) == 1


def hessians_are_symmetric(
    f: FunctionHandle,
    inputs: Mapping[str, Any],
    loss: str,
    rng: np.random.Generator,
    near: float,
    rough: float,
) -> None:
    """uᵀH v = vᵀH u; H v is what the gradient changes along v; running back twice gives it too."""
    u, v = along(f, inputs, rng), along(f, inputs, rng)
    hu, hv = (f.hvp(w, loss=loss, **inputs) for w in (u, v))
    size = max(1.0, abs(dot(u, hv)), (dot(hu, hu) * dot(v, v)) ** 0.5)
    assert abs(dot(u, hv) - dot(hu, v)) <= near * size, (dot(u, hv), dot(hu, v))
    h = 1e-5
    up, down = (f.grad(loss=loss, **moved(f, inputs, v, s * h)) for s in (1, -1))
    change = difference(up, down)
    assert abs(dot(u, change) / (2 * h) - dot(u, hv)) <= rough * size
    twice = twice_back(f, inputs, loss, u)
    assert abs(dot(twice, v) - dot(hu, v)) <= near * size, (dot(twice, v), dot(hu, v))


def twice_back(f: FunctionHandle, inputs: Mapping[str, Any], loss: str, u: Any) -> Any:
    """The gradient of <u, gradient>: H u, by running the gradient program back."""
    pull = f.pullback(**inputs)
    pull.seed(loss)
    program = f.gradient_program
    entry = program.program.function(program.program.entry)
    regs = [*pull.start[: f.function.n_args], *pull.bars.values()]
    values = dressed(entry, {p.name: nested(p.layout, regs) for p in entry.params})
    bar_of = dict(zip(u, [p.name for p in entry.params[len(f.parameters) :]], strict=True))
    found = program[program.program.entry].vjp({bar_of[k]: w for k, w in u.items()}, **values)
    return {k: found[k] for k in u}
