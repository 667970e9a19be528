"""Random functions: the machine does what plain Python does, and the way back restores."""

from __future__ import annotations

import math

import numpy as np
from python.writer import written
from sizes import part, sized, wide

import rvm
from rvm import Array, f64, i64
from rvm.codec import encode

RATE, SHAPE = 0.75, (3, 2)


@rvm.reversible
def helper(a: f64, b: f64, by: f64 = 2.0):
    a += b * by
    b -= a / 4


def plain_helper(a, b, by=2.0):
    a += b * by
    b -= a / 4
    return a, b


def plain_helper_back(a, b, by=2.0):
    b += a / 4
    a -= b * by
    return a, b


NAMES = {
    "rvm": rvm, "np": np, "math": math, "RATE": RATE, "SHAPE": SHAPE, "helper": helper,
    "plain_helper": plain_helper, "plain_helper_back": plain_helper_back,
    "f64": f64, "i64": i64, "Array": Array,
}  # fmt: skip


def inputs(seed: int) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    x, y, z = map(float, rng.normal(size=3))
    k, m = map(int, rng.integers(-4, 8, size=2))
    return {
        "x": x,
        "y": y,
        "z": z,
        "k": k,
        "m": m,
        "v": rng.normal(size=4),
        "w": rng.normal(size=4),
    }


def close(found: object, want: object, by: float, what: str) -> None:
    np.testing.assert_allclose(found, want, rtol=by, atol=by, err_msg=what)


@wide
@sized
def test_random_functions() -> None:
    for seed in range(part(2000)):
        check(seed)


def check(seed: int) -> None:
    text, plain = written(seed)
    f = rvm.reversible.source(text, NAMES)
    names = dict(NAMES)
    exec(plain, names)
    start = inputs(seed)
    expected = names["plain_f"](**{n: np.copy(v) if n in "vw" else v for n, v in start.items()})
    given = {n: np.copy(v) if n in "vw" else v for n, v in start.items()}
    out = f(**given)
    for name, want in zip(start, expected, strict=True):
        close(out[name], want, 1e-9, f"{seed} {name}\n{text}")
    back = (~f)(**out)
    for name, want in start.items():
        np.testing.assert_allclose(
            back[name], want, rtol=1e-6, atol=1e-6, err_msg=f"{name}\n{text}"
        )
    handle = f.of(**start)
    again = rvm.assemble(f.origin.source(handle.program, handle.name))
    assert encode(again) == encode(handle.program), text
