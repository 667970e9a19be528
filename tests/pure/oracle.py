"""Gradients of terms by other means: a walk over the term, on numbers that know derivatives.

On Python's complex numbers it is the complex step, on those of JAX its reverse mode, on those of
mpmath, sixty digits long, reverse mode on a tape, whose every number may be rounded as floats are.
"""

from __future__ import annotations

import cmath
import random
from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np
from rvm_pure.terms import (
    Each,
    Fold,
    If,
    Index,
    Let,
    Loop,
    Num,
    Op,
    Prim,
    Proj,
    Term,
    Tup,
    Update,
    Var,
)

Given = Mapping[str, Any]
STEP = 1e-30
UNIT = mpmath.mpf(2) ** -53
LARGEST = mpmath.mpf(2) ** 1024
NAMES = ("sin", "cos", "tanh", "exp", "log")


class Walk:
    """The values of terms; arrays are lists, of tuples too."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self.functions = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "/": lambda a, b: a / b,
            "neg": lambda a: -a,
            "<": lambda a, b: a < b,
            "==": lambda a, b: a == b,
            "f64": lambda a: a,
            "len": len,
            "sum": lambda a: sum(a, 0.0),
            **functions,
        }

    def run(self, e: Term, env: Given) -> Any:
        """The value of a term."""
        match e:
            case Num(v):
                return v
            case Var(name):
                return env[name]
            case Let(p, a, b):
                return self.run(b, bound(p, self.run(a, env), env))
            case Tup(items):
                return tuple(self.run(x, env) for x in items)
            case Proj(k, of):
                return self.run(of, env)[k]
            case Op(fn, args):
                return self.functions[fn](*(self.run(a, env) for a in args))
            case If(c, a, b):
                return self.run(a if self.run(c, env) else b, env)
            case Each(fn, arrays):
                rows = zip(*(self.run(a, env) for a in arrays), strict=True)
                return [self.call(fn, row, env) for row in rows]
            case Fold(kind, fn, init, array):
                states = [self.run(init, env)]
                elems = self.run(array, env)
                for x in elems[::-1] if kind == "scanr" else elems:
                    states.append(self.call(fn, (states[-1], x), env))
                return states[-1] if "scan" not in kind else states[:: -1 if kind == "scanr" else 1]
            case Prim("iota", (n,)):
                return list(range(self.run(n, env)))
            case Prim("replicate", (n, a)):
                return [self.run(a, env)] * self.run(n, env)
            case Prim("shift1L", (a,)):
                return self.run(a, env)[1:]
            case Prim("shift1R", (a,)):
                return self.run(a, env)[:-1]
            case Index(of, (i,)):
                return self.run(of, env)[self.run(i, env)]
            case Update(of, (i,), v):
                out = list(self.run(of, env))
                out[self.run(i, env)] = self.run(v, env)
                return out
            case Loop(p, init, var, n, body, down):
                state, k = self.run(init, env), self.run(n, env)
                for i in range(k - 1, -1, -1) if down else range(k):
                    state = self.run(body, {**bound(p, state, env), var: i})
                return state
        raise TypeError(type(e).__name__)

    def call(self, fn: Any, args: Any, env: Given) -> Any:
        for p, v in zip(fn.params, args, strict=True):
            env = bound(p, v, env)
        return self.run(fn.body, env)


def bound(p: Any, v: Any, env: Given) -> Given:
    if isinstance(p, str):
        return {**env, p: v}
    for q, w in zip(p, v, strict=True):
        env = bound(q, w, env)
    return env


def numbers(given: Given, names: tuple[str, ...], made: Callable[[float], Any]) -> dict[str, Any]:
    """What is given, with the numbers of some of it made into others; arrays are lists."""
    out = {k: list(v) if np.ndim(v) else v for k, v in given.items()}
    for name in names:
        v = given[name]
        out[name] = [made(float(c)) for c in v] if np.ndim(v) else made(float(v))
    return out


# The complex step.

_COMPLEX = Walk(
    {
        "<": lambda a, b: complex(a).real < complex(b).real,
        "==": lambda a, b: complex(a).real == complex(b).real,
        **{name: getattr(cmath, name) for name in NAMES},
    }
)


def gradient(e: Term, given: Given, names: tuple[str, ...]) -> list[np.ndarray]:
    """The derivatives of a number by some variables, which are numbers or arrays."""
    plain = numbers(given, (), complex)
    out = []
    for name in names:
        v = np.asarray(given[name])
        found = []
        for i in range(v.size):
            moved = v.astype(complex).ravel()
            moved[i] += 1j * STEP
            new = complex(moved[0]) if v.ndim == 0 else [complex(c) for c in moved]
            found.append(complex(_COMPLEX.run(e, {**plain, name: new})).imag / STEP)
        out.append(np.reshape(found, v.shape))
    return out


# JAX.


def by_jax(e: Term, given: Given, names: tuple[str, ...]) -> list[np.ndarray]:
    """The same by JAX, which decides on `if` as it goes."""
    import jax

    jax.config.update("jax_enable_x64", True)
    walk = Walk({name: getattr(jax.numpy, name) for name in NAMES})

    def value(active: dict[str, Any]) -> Any:
        plain = {k: list(v) if np.ndim(v) else v for k, v in active.items()}
        return walk.run(e, {**given, **plain}) * 1.0

    found = jax.grad(value)({k: jax.numpy.asarray(given[k]) for k in names})
    return [np.asarray(found[k]) for k in names]


# Sixty digits.


class Tape:
    """Numbers of sixty digits in the order in which they were made.

    With a seed each is off by a unit in the last place of a float, up or down, as are derivatives
    and the sums of these: one of the results that rounding may lead to.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.made: list[Number] = []
        self.chance = None if seed is None else random.Random(seed)

    def rounded(self, v: mpmath.mpf) -> mpmath.mpf:
        if self.chance is None:
            return v
        return v * (1 + UNIT if self.chance.random() < 0.5 else 1 - UNIT)

    def number(self, v: Any, *by: tuple[Number, mpmath.mpf]) -> Number:
        """A number, and the derivatives of it by those that it was made of; infinite as floats."""
        if abs(v) > LARGEST:
            v = mpmath.inf if v > 0 else -mpmath.inf
        out = Number(self, self.rounded(v), tuple((x, self.rounded(d)) for x, d in by))
        self.made.append(out)
        return out

    def gradient(self, e: Term, given: Given, names: tuple[str, ...]) -> list[np.ndarray]:
        walk = Walk({name: _function(name) for name in NAMES})
        with mpmath.workdps(60):
            env = numbers(given, names, lambda c: self.number(mpmath.mpf(c)))
            result = walk.run(e, env)
            if isinstance(result, Number):
                result.adjoint = mpmath.mpf(1)
            for x in reversed(self.made):
                for of, d in x.by:
                    of.adjoint = self.rounded(of.adjoint + x.adjoint * d)
            return [
                np.array([float(x.adjoint) for x in v])
                if isinstance(v, list)
                else np.array(float(v.adjoint))
                for v in (env[name] for name in names)
            ]


class Number:
    """A number of a tape."""

    def __init__(self, tape: Tape, v: Any, by: tuple[tuple[Number, Any], ...]) -> None:
        self.tape, self.v, self.by = tape, v, by
        self.adjoint = mpmath.mpf(0)

    def __add__(self, other: Any) -> Number:
        if isinstance(other, Number):
            return self.tape.number(self.v + other.v, (self, 1), (other, 1))
        return self.tape.number(self.v + other, (self, 1))

    def __neg__(self) -> Number:
        return self.tape.number(-self.v, (self, -1))

    def __sub__(self, other: Any) -> Number:
        return self + -other

    def __rsub__(self, other: Any) -> Number:
        return -self + other

    def __mul__(self, other: Any) -> Number:
        if isinstance(other, Number):
            return self.tape.number(self.v * other.v, (self, other.v), (other, self.v))
        return self.tape.number(self.v * other, (self, mpmath.mpf(other)))

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other: Any) -> bool:
        return bool(self.v < (other.v if isinstance(other, Number) else other))

    def __eq__(self, other: object) -> bool:
        return bool(self.v == (other.v if isinstance(other, Number) else other))

    __hash__ = None  # type: ignore[assignment]


def _exp(v: Any) -> Any:
    """The exponential; mpmath has all digits of what is beyond any float."""
    return mpmath.exp(v) if abs(v) < 2000 else mpmath.inf if v > 0 else mpmath.mpf(0)


_EXACT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sin": (mpmath.sin, mpmath.cos),
    "cos": (mpmath.cos, lambda v: -mpmath.sin(v)),
    "tanh": (mpmath.tanh, lambda v: 4 / (_exp(v) + _exp(-v)) ** 2),
    "exp": (_exp, _exp),
    "log": (mpmath.log, lambda v: 1 / v),
}


def _function(name: str) -> Callable[[Any], Any]:
    f, d = _EXACT[name]
    return lambda x: x.tape.number(f(x.v), (x, d(x.v))) if isinstance(x, Number) else f(x)


def exact_gradient(e: Term, given: Given, names: tuple[str, ...]) -> list[np.ndarray]:
    """The derivatives that floats would give if they had sixty digits."""
    return Tape().gradient(e, given, names)


def rounding(e: Term, given: Given, names: tuple[str, ...], tries: int = 8) -> float:
    """How far rounding carries derivatives from the exact ones, in parts of the largest."""
    exact = exact_gradient(e, given, names)
    return max(apart(Tape(k).gradient(e, given, names), exact) for k in range(tries))


def apart(have: Any, want: Any) -> float:
    """How far adjoints are from others, in parts of the largest of these."""
    top = max(float(np.max(np.abs(w), initial=1e-300)) for w in want)
    return max(
        float(np.max(np.abs(np.asarray(h) - w), initial=0)) / top
        for h, w in zip(have, want, strict=True)
    )
