"""Programs of all shapes that compute, do something, and undo: what lives on is what it was.

A shape is a container of numbers, a type, a way to compute and to undo, and what stands between.
What must come out is told by formulas in 50 digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.engines import executing

STEPS = 60
WORK = """
func shrink(x: T)
    for i = 1 to 60
        mul x, 0.5
        add x, 0.3
    end
func half(x: T)
    mul x, 0.5
    add x, 0.3
func nested(y: T, x: T)
    call shrink(x)
    add y, x ** 2
    uncall shrink(x)
func scoped(y: T, x: T)
    routine r
        call shrink(x)
    result
        add y, x ** 2
    end
func shifted(y: T, x: T)
    add x, 1.0
    add y, x
    sub x, 1.0
func turned(y: T, x: T, k: i64)
    if k > 0
        neg x
    end
    add y, x
    if k > 0
        neg x
    end
func deep(y: T, x: T, n: i64)
    if n == 0
        add y, x ** 2
    else
        call half(x)
        call deep(y, x, n - 1)
        uncall half(x)
    end
func even(y: T, x: T, n: i64)
    if n > 0
        routine r
            mul x, 0.5
            add x, 0.3
        end
        call odd(y, x, n - 1)
        undo r
    else
        add y, x
    end
func odd(y: T, x: T, n: i64)
    mul x, 0.5
    add x, 0.3
    call even(y, x, n - 1)
    sub x, 0.3
    div x, 0.5
"""


def shrunk(x: Any, steps: int = STEPS) -> Any:
    """What some steps leave of a number."""
    for _ in range(steps):
        x = x / 2 + mpmath.mpf("0.3")
    return x


class Middle(NamedTuple):
    """Code between compute and undo, and what y gains by it: X is the place that was computed."""

    text: str
    gain: Callable[[Any], Any]


MIDDLES = {
    "read": Middle("add y, R ** 2", lambda s: s**2),
    "inline": Middle(
        """
        call shrink(X)
        add y, R ** 2
        uncall shrink(X)""",
        lambda s: shrunk(s) ** 2,
    ),
    "nested": Middle("call nested(y, X)", lambda s: shrunk(s) ** 2),
    "scoped": Middle("call scoped(y, X)", lambda s: shrunk(s) ** 2),
    "shifted": Middle("call shifted(y, X)", lambda s: s + 1),
    "turned": Middle("call turned(y, X, k)", lambda s: -s),
    "deep": Middle("call deep(y, X, 7)", lambda s: shrunk(s, 7) ** 2),
    "mutual": Middle("call even(y, X, 20)", lambda s: shrunk(s, 20)),
    "in a loop": Middle(
        """
        for j = 1 to 2
            call shrink(X)
            add y, R
            uncall shrink(X)
        end""",
        lambda s: 2 * shrunk(s),
    ),
    "calls in a loop": Middle(
        """
        for j = 1 to 2
            call nested(y, X)
            if j == 2
                call shifted(y, X)
            else
                call turned(y, X, k)
            end
        end""",
        lambda s: 2 * shrunk(s) ** 2 + 1,
    ),
    "in a choice": Middle(
        """
        if k > 0
            call shrink(X)
            add y, R
            uncall shrink(X)
        else
            call nested(y, X)
        end""",
        lambda s: shrunk(s),
    ),
    "turned twice": Middle(
        """
        neg X
        add y, R
        neg X""",
        lambda s: -s,
    ),
    "turned in choices": Middle(
        """
        if k > 0
            neg X
        end
        add y, R
        if k > 0
            neg X
        end""",
        lambda s: -s,
    ),
    "exchanged": Middle(
        """
        swap X, z
        add y, z
        swap X, z""",
        lambda s: s,
    ),
    "added": Middle(
        """
        add z, 1.0
        add X, z
        add y, R
        sub X, z
        sub z, 1.0""",
        lambda s: s + mpmath.mpf("1.25"),
    ),
}


class Way(NamedTuple):
    """How something is computed and undone."""

    compute: str
    undo: str


WAYS = {
    "call": Way("call shrink(X)", "uncall shrink(X)"),
    "routine": Way(
        """
        routine r
            for i = 1 to 60
                mul X, 0.5
                add X, 0.3
            end
        end""",
        "undo r",
    ),
    "choice": Way(
        """
        if k > 0
            call shrink(X)
        end""",
        """
        if k > 0
            uncall shrink(X)
        end""",
    ),
}


class Container(NamedTuple):
    """Parameters, the place that is computed, how it is read, and the values of the arguments."""

    parameters: str
    place: str
    read: str
    argument: str
    values: Callable[[Any, Any], Any]
    held: Callable[[Any], Any]


CONTAINERS = {
    "number": Container("x: T", "x", "x", "x", lambda x, t: x, lambda a: a),
    "element": Container(
        "v: T[n]", "v[k]", "v[k]", "v", lambda x, t: np.array([5, x], t), lambda a: a[1]
    ),
    "field": Container("p: P", "p.a", "p.a", "p", lambda x, t: {"a": x, "b": x}, lambda a: a.a),
}
TYPES = {"f64": (np.float64, 1e-14), "f32": (np.float32, 1e-5), "c128": (np.complex128, 1e-14)}


def source(container: Container, way: Way, middle: Middle, t: str) -> str:
    """The program of a shape."""
    lines = f"{way.compute}\n{middle.text}\n{way.undo}\nadd y, R ** 3"
    body = lines.replace("X", container.place).replace("R", container.read)
    return f"""entry f
record P
    a: T
    b: T
end
func f(y: T, {container.parameters}, z: T, k: i64)
{body}
{WORK}""".replace("T", t)


def shapes() -> list[tuple[str, str, str, str]]:
    """Each middle with each way, container and type."""
    return list(itertools.product(CONTAINERS, WAYS, MIDDLES, TYPES))


def sample(every: int) -> list[tuple[str, str, str, str]]:
    """Some shapes, among them all pairs of a way and a middle."""
    return [s for k, s in enumerate(shapes()) if k % every == 0]


def tried(shape: tuple[str, str, str, str], engines: tuple[str, ...], slopes: bool) -> None:
    """Run a shape in both modes, compare with the formula, and take its derivative strictly."""
    container, way, middle = CONTAINERS[shape[0]], WAYS[shape[1]], MIDDLES[shape[2]]
    f = rvm.assemble(source(container, way, middle, shape[3])).f
    dtype, near = TYPES[shape[3]]
    x = float(dtype(1.1).real)
    arguments = {"y": 0.0, container.argument: container.values(x, dtype), "z": 0.25, "k": 1}

    def value(x: Any) -> Any:
        return middle.gain(shrunk(x)) + x**3

    with mpmath.workdps(50):
        want = complex(value(mpmath.mpf(x)))
        slope = float(mpmath.diff(value, mpmath.mpf(x)))
    for engine, strict in itertools.product(engines, (False, True)):
        out = f(**arguments, engine=engine, strict=strict)
        assert container.held(out[container.argument]) == x, (engine, strict)
        assert out.z == 0.25
        assert abs(out.y - want) <= near * abs(want), (engine, strict)
    if slopes:
        found = f.grad(loss="y", strict=True, **arguments)[container.argument]
        assert container.held(found) == pytest.approx(slope, rel=1e-9)


ENGINES = tuple(executing(loops=False))


@thin
@pytest.mark.parametrize("shape", sample(13), ids="-".join)
def test_what_is_undone_and_lives_on_is_what_it_was(shape: tuple[str, str, str, str]) -> None:
    tried(shape, ENGINES[:1], shape[3] == "f64")


@thin
@pytest.mark.parametrize("shape", sample(97), ids="-".join)
def test_on_every_engine(shape: tuple[str, str, str, str]) -> None:
    tried(shape, ENGINES, False)


@pytest.mark.deep
@pytest.mark.parametrize("shape", shapes(), ids="-".join)
def test_every_shape_on_every_engine(shape: tuple[str, str, str, str]) -> None:
    tried(shape, ENGINES, shape[3] == "f64")
