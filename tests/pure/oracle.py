"""Derivatives of terms by the complex step, on Python's complex numbers."""

from __future__ import annotations

import cmath
from collections.abc import Callable
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

STEP = 1e-30


def _function(name: str) -> Callable[[Any], Any]:
    """A function of Python's complex numbers, and of those with more digits."""
    plain, exact = getattr(cmath, name), getattr(mpmath, name)
    return lambda a: exact(a) if isinstance(a, (mpmath.mpf, mpmath.mpc)) else plain(a)


FUNCTIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "neg": lambda a: -a,
    "sin": _function("sin"),
    "cos": _function("cos"),
    "tanh": _function("tanh"),
    "exp": _function("exp"),
    "log": _function("log"),
    "f64": lambda a: a,
    "<": lambda a, b: complex(a).real < complex(b).real,
    "==": lambda a, b: complex(a).real == complex(b).real,
    "len": len,
    "sum": sum,
}


def run(e: Term, env: dict[str, Any]) -> Any:
    """The value of a term; arrays are lists, of tuples too."""
    match e:
        case Num(v):
            return v
        case Var(name):
            return env[name]
        case Let(p, a, b):
            return run(b, bound(p, run(a, env), env))
        case Tup(items):
            return tuple(run(x, env) for x in items)
        case Proj(k, of):
            return run(of, env)[k]
        case Op(fn, args):
            return FUNCTIONS[fn](*(run(a, env) for a in args))
        case If(c, a, b):
            return run(a if run(c, env) else b, env)
        case Each(fn, arrays):
            rows = zip(*(run(a, env) for a in arrays), strict=True)
            return [call(fn, row, env) for row in rows]
        case Fold(kind, fn, init, array):
            states = [run(init, env)]
            elems = run(array, env)
            for x in elems[::-1] if kind == "scanr" else elems:
                states.append(call(fn, (states[-1], x), env))
            return states[-1] if "scan" not in kind else states[:: -1 if kind == "scanr" else 1]
        case Prim("iota", (n,)):
            return list(range(run(n, env)))
        case Prim("replicate", (n, a)):
            return [run(a, env)] * run(n, env)
        case Prim("shift1L", (a,)):
            return run(a, env)[1:]
        case Prim("shift1R", (a,)):
            return run(a, env)[:-1]
        case Index(of, (i,)):
            return run(of, env)[run(i, env)]
        case Update(of, (i,), v):
            out = list(run(of, env))
            out[run(i, env)] = run(v, env)
            return out
        case Loop(p, init, var, n, body, down):
            state, k = run(init, env), run(n, env)
            for i in range(k - 1, -1, -1) if down else range(k):
                state = run(body, {**bound(p, state, env), var: i})
            return state
    raise TypeError(type(e).__name__)


def bound(p: Any, v: Any, env: dict[str, Any]) -> dict[str, Any]:
    if isinstance(p, str):
        return {**env, p: v}
    for q, w in zip(p, v, strict=True):
        env = bound(q, w, env)
    return env


def call(fn: Any, args: Any, env: dict[str, Any]) -> Any:
    for p, v in zip(fn.params, args, strict=True):
        env = bound(p, v, env)
    return run(fn.body, env)


def gradient(e: Term, given: dict[str, Any], names: tuple[str, ...]) -> list[np.ndarray]:
    """The derivatives of a number by some variables, which are numbers or arrays."""
    plain = {k: list(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    out = []
    for name in names:
        v = np.asarray(given[name])
        found = []
        for i in range(v.size):
            moved = v.astype(complex).ravel()
            moved[i] += 1j * STEP
            new = complex(moved[0]) if v.ndim == 0 else [complex(c) for c in moved]
            found.append(complex(run(e, {**plain, name: new})).imag / STEP)
        out.append(np.reshape(found, v.shape))
    return out


def exact_gradient(e: Term, given: dict[str, Any], names: tuple[str, ...]) -> list[np.ndarray]:
    """The same with sixty digits."""
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -40
        plain: dict[str, Any] = {
            k: [mpmath.mpf(float(c)) for c in v] if np.ndim(v) else v for k, v in given.items()
        }
        out = []
        for name in names:
            v = np.asarray(given[name])
            found = []
            for i in range(v.size):
                moved = [mpmath.mpc(float(c)) for c in v.ravel()]
                moved[i] += step * 1j
                value = run(e, {**plain, name: moved if v.ndim else moved[0]})
                found.append(float(mpmath.im(value) / step))
            out.append(np.reshape(found, v.shape))
    return out
