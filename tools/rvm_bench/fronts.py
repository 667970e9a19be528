"""The front ends compared with alternatives: `rvm bench fronts`.

Functions under `rvm.pure` are compared with hand-written ones in the assembly language, NumPy and
JAX; calls and compiling of a function under `rvm.reversible` with those of its text; a Janus
program with plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from time import time_ns
from typing import Any

import numpy as np

import rvm
from rvm import Array, f64, i64
from rvm.library.handle import FunctionHandle
from rvm_bench import libraries
from rvm_bench.calls import CALL
from rvm_bench.contest import FORWARD, GRADIENT, Fresh, Go, Make, Peer, Read, Values, Workload
from rvm_bench.engines import calls

PURE = "rvm.pure"
STAGE = "rvm.pure, stage `gradient`"
_MACHINE = {"engine": "native", "bits": "machine"}
HERE = ", bits of this machine"
ALONE = "one-thread"
"""In the names of workloads in which each contestant has one thread."""
_ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
_STEPS = 20
"""Steps of heat, each of which goes over all points."""


# ---------------------------------------------------------------- functions without state


def _dot(a: Array[f64, "n"], b: Array[f64, "n"]) -> Any:
    return a @ b


def _prod(a: Array[f64, "n"]) -> Any:
    return np.prod(a)


def _total(a: Array[f64, "n"]) -> Any:
    return np.sum(a)


def _logsumexp(x: Array[f64, "n"]) -> Any:
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def _softmax(x: Array[f64, "n"]) -> Any:
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def _stencil(u: Array[f64, "n"], c: f64, steps: i64) -> Any:
    n = u.shape[0]
    where = rvm.pure.where

    def step(_: Any, u: Any) -> Any:
        def point(i: Any) -> Any:
            left = u[where(i > 0, lambda: i - 1, lambda: i)]
            right = u[where(i < n - 1, lambda: i + 1, lambda: i)]
            return u[i] + c * (left - 2.0 * u[i] + right)

        return rvm.pure.map(point, rvm.pure.iota(n))

    v = rvm.pure.loop(steps, step, u)
    return v @ v


def _mlp(
    W1: Array[f64, "h", "d"], W2: Array[f64, "k", "h"], W3: Array[f64, "o", "k"], x: Array[f64, "d"]
) -> Any:
    y = np.tanh(W3 @ np.tanh(W2 @ np.tanh(W1 @ x)))
    return y @ y


def _gmm(
    alphas: Array[f64, "k"],
    means: Array[f64, "k", "d"],
    logs: Array[f64, "k", "d"],
    lower: Array[f64, "k", "d", "d"],
    x: Array[f64, "n", "d"],
) -> Any:
    each = rvm.pure.map

    def log_sum(t: Any) -> Any:
        top = np.max(t)
        return top + np.log(np.sum(np.exp(t - top)))

    def point(row: Any) -> Any:
        def component(alpha: Any, mean: Any, log: Any, below: Any) -> Any:
            dx = row - mean
            z = np.exp(log) * dx + below @ dx
            return alpha + np.sum(log) - 0.5 * (z @ z)

        return log_sum(each(component, alphas, means, logs, lower))

    def prior(log: Any, below: Any) -> Any:
        return np.sum(np.exp(2.0 * log)) + np.sum(each(lambda row: row @ row, below))

    data = np.sum(each(point, x)) - x.shape[0] * log_sum(alphas)
    return data + 0.5 * np.sum(each(prior, logs, lower))


# ---------------------------------------------------------------- the same for NumPy and JAX


def _heat(lib: Any, u: Any, c: Any) -> Any:
    """A step on whole arrays."""
    padded = lib.concatenate([u[:1], u, u[-1:]])
    return u + c * (padded[:-2] - 2.0 * u + padded[2:])


def _stencil_numpy(out: float, u: Any, c: float, steps: int) -> Values:
    for _ in range(steps):
        u = _heat(np, u, c)
    return {"out": out + u @ u}


def _stencil_jax(jnp: Any, v: dict[str, Any]) -> Values:
    from jax import lax

    u = lax.fori_loop(0, v["steps"], lambda _, u: _heat(jnp, u, v["c"]), v["u"])
    return {"out": v["out"] + u @ u}


def plain(name: str) -> Callable[..., Values]:
    """A workload in NumPy, from inputs to the result by its name."""
    if name == "stencil":
        return _stencil_numpy
    return lambda **v: _model(name)(np, v)


def _model(name: str) -> libraries.Model:
    """A formula over NumPy's functions, which libraries have too."""
    formula = _FORMULAS[name]
    return lambda lib, v: {
        "out": v["out"] + formula(lib, **{k: x for k, x in v.items() if k != "out"})
    }


def _log_sum_of(lib: Any, x: Any) -> Any:
    return x.max() + lib.log(lib.exp(x - x.max()).sum())


def _softmax_of(lib: Any, x: Any) -> Any:
    e = lib.exp(x - x.max())
    return e / e.sum()


def _mlp_of(lib: Any, W1: Any, W2: Any, W3: Any, x: Any) -> Any:
    y = lib.tanh(W3 @ lib.tanh(W2 @ lib.tanh(W1 @ x)))
    return y @ y


def _gmm_of(lib: Any, alphas: Any, means: Any, logs: Any, lower: Any, x: Any) -> Any:
    dx = x[:, None] - means
    z = lib.exp(logs) * dx + lib.einsum("kab,nkb->nka", lower, dx)
    t = alphas + logs.sum(1) - 0.5 * (z * z).sum(2)
    top = t.max(1)
    y = (top + lib.log(lib.exp(t - top[:, None]).sum(1))).sum() - len(x) * _log_sum_of(lib, alphas)
    return y + 0.5 * (lib.exp(2.0 * logs).sum() + (lower * lower).sum())


_FORMULAS: dict[str, Callable[..., Any]] = {
    "dot": lambda lib, a, b: a @ b,
    "prod": lambda lib, a: lib.prod(a),
    "total": lambda lib, a: lib.sum(a),
    "logsumexp": _log_sum_of,
    "softmax": _softmax_of,
    "mlp": _mlp_of,
    "gmm": _gmm_of,
}
TRACED: dict[str, Callable[..., Any]] = {
    f.__name__[1:]: f for f in (_dot, _prod, _total, _logsumexp, _softmax, _stencil, _mlp, _gmm)
}


@cache
def pure_function(name: str) -> Any:
    """A function of `TRACED` under `rvm.pure`."""
    f = TRACED[name]
    f.__name__ = name  # what the program's function is called
    return rvm.pure(f)


def _handle(name: str) -> Callable[[], FunctionHandle]:
    return lambda: pure_function(name).program[name]


def _stage(name: str, wrt: tuple[str, ...]) -> Make:
    """The gradient as a separate pure function, by transformation of the source."""

    def make(values: Values) -> Fresh:
        found = pure_function(name).gradient(wrt).program[name].with_options(engine="native")
        given = {k: v for k, v in values.items() if k != "out"}
        one = len(wrt) == 1

        def fresh() -> tuple[Go, Read]:
            zeros = [np.zeros_like(given[k]) for k in wrt]
            out = zeros[0] if one else {f"p{k + 1}": z for k, z in enumerate(zeros)}
            return (
                lambda: found(out=out, **given),
                lambda r: {
                    k: r["out"] if one else r["out"][f"p{j + 1}"] for j, k in enumerate(wrt)
                },
            )

        return fresh

    return make


# ---------------------------------------------------------------- workloads


def _random(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {
        "a": 1.0 + rng.uniform(-1e-3, 1e-3, n),
        "b": rng.normal(size=n),
        "x": rng.normal(size=n),
    }


def _layers(n: int) -> Values:
    """Square layers, of n weights each or a few less."""
    rng = np.random.default_rng(6)
    k = round(n**0.5)
    weights = {name: rng.normal(size=(k, k)) / k**0.5 for name in ("W1", "W2", "W3")}
    return {"out": 0.0, **weights, "x": rng.normal(size=k)}


def _mixture(n: int) -> Values:
    rng = np.random.default_rng(7)
    k, d = 5, 10
    return {
        "out": 0.0,
        "alphas": rng.normal(size=k),
        "means": rng.normal(size=(k, d)),
        "logs": rng.normal(scale=0.3, size=(k, d)),
        "lower": np.tril(rng.normal(scale=0.3, size=(k, d, d)), -1),
        "x": rng.normal(scale=4, size=(n, d)),
    }


def inputs(name: str) -> Callable[[int], Values]:
    """The inputs of a workload, by their size."""
    parameters = {"dot": "ab", "prod": "a", "total": "a", "logsumexp": "x", "softmax": "x"}
    if name == "mlp":
        return _layers
    if name == "gmm":
        return _mixture
    if name == "stencil":
        return lambda n: {"out": 0.0, "u": _random(n)["x"], "c": 0.1, "steps": _STEPS}

    def made(n: int) -> Values:
        found = _random(n)
        out = np.zeros(n) if name == "softmax" else 0.0
        return {"out": out, **{k: found[k] for k in parameters[name]}}

    return made


def _seeds(name: str) -> Callable[[Values], Values]:
    if name == "softmax":
        return lambda v: {"out": np.cos(np.arange(len(v["x"])))}
    return lambda v: {"out": 1.0}


def _workload(name: str, doc: str, size: int, unit: str, wrt: tuple[str, ...]) -> Workload:
    seeds = _seeds(name)
    jax = _stencil_jax if name == "stencil" else _model(name)
    w = Workload(
        f"{name}-{size}",
        f"{doc}, of {size:,} {unit}s",
        unit,
        (size,),
        inputs(name),
        ("out",),
        seeds=seeds,
        wrt=wrt,
        work=lambda n: n * _STEPS if name == "stencil" else n,
        core=False,
        program=f"fronts.rasm:{name}",
        engines=("native",),
        has_back=False,
    )
    f = _handle(name)
    native = {"engine": "native"}
    peers = [
        Peer(PURE, FORWARD, calls(w, FORWARD, f, **native), "llvmlite"),
        Peer(f"{PURE}{HERE}", FORWARD, calls(w, FORWARD, f, **_MACHINE), "llvmlite"),
        Peer(PURE, GRADIENT, calls(w, GRADIENT, f, **native), "llvmlite"),
        Peer(f"{PURE}{HERE}", GRADIENT, calls(w, GRADIENT, f, **_MACHINE), "llvmlite"),
        *([] if name in _NO_STAGE else [Peer(STAGE, GRADIENT, _stage(name, wrt), "llvmlite")]),
        libraries.numpy(plain(name)),
        *libraries.jax(jax, seeds, wrt),
    ]
    return replace(w, peers=tuple(peers))


_NO_STAGE = ("softmax", "stencil", "gmm")
"""Softmax has no one number to differentiate.  The gradient by elements that a loop's body looks up
is a whole array each in that stage, a million numbers for a thousand."""
_KINDS = {
    "dot": ("an inner product", "number", ("a", "b")),
    "prod": ("a product", "number", ("a",)),
    "total": ("a sum", "number", ("a",)),
    "logsumexp": ("log of a sum of exponentials", "number", ("x",)),
    "softmax": ("softmax", "number", ("x",)),
    "stencil": (f"{_STEPS} steps of heat on a rod", "point", ("u",)),
    "mlp": ("three layers of a perceptron", "weight", ("W1", "W2", "W3")),
    "gmm": (
        "a mixture of 5 Gaussians in 10 dimensions",
        "point",
        ("alphas", "means", "logs", "lower"),
    ),
}
_PURES = [
    _workload(name, doc, size, unit, wrt)
    for name, (doc, unit, wrt) in _KINDS.items()
    for size in ((1_000,) if name == "gmm" else (1_000, 1_000_000))
]
_PURES += [
    replace(
        w,
        name=w.name.replace("mlp", f"mlp-{ALONE}"),
        doc=f"{w.doc}; each contestant in one thread",
        environment=_ONE_THREAD,
    )
    for w in _PURES
    if w.name.startswith("mlp")
]


# ---------------------------------------------------------------- functions in Python


@rvm.reversible
def _annotated(r: f64, x: f64, y: f64) -> None:
    r += x * y + np.sin(x) / (1.0 + y * y) - x * x


@rvm.reversible
def _bare(r, x, y):  # type: ignore[no-untyped-def]
    r += x * y + np.sin(x) / (1.0 + y * y) - x * x


def _called(f: Any) -> Make:
    native = f.with_options(engine="native")

    def make(values: Values) -> Fresh:
        return lambda: (lambda: native(**values), lambda r: {"r": r["r"]})

    return make


DOOR = replace(
    CALL,
    name="door",
    doc="a call of a function under `rvm.reversible`, and of one in a text",
    seeds=None,
    core=False,
    program="call.rasm:main",
    engines=("native",),
    has_back=False,
    peers=(
        Peer("rvm.reversible", FORWARD, _called(_annotated)),
        Peer("rvm.reversible, types by arguments", FORWARD, _called(_bare)),
    ),
)
TWENTY = """\
def twenty(q: Array[f64, "n"], p: Array[f64, "n"], e: f64, dt: f64, steps: i64):
    for k in range(steps):
        with rvm.ancilla(0.5 * dt) as h:
            p -= h * q
            if k < 10:
                q += dt * p
            else:
                q += dt * p + 1e-6 * np.sin(p)
            p -= h * q
        for i in range(len(q) - 1):
            with rvm.compute() as r:
                with rvm.ancilla(q[i] - q[i + 1]) as d:
                    e += d * d
            if i < 3 and k > 1:
                e += np.cos(q[i]) * dt
            r.undo()
        if k < 5:
            q[0], q[1] = q[1], q[0]
            p[0] = -p[0]
"""
"""Twenty lines, as one writes them."""


def _compiled(*, kept: bool) -> Make:
    """A function that no process has seen before, or one that is kept."""
    names = {"rvm": rvm, "np": np, "f64": f64, "i64": i64, "Array": Array}

    def make(values: Values) -> Fresh:
        def fresh() -> tuple[Go, Read]:
            text = TWENTY if kept else f"{TWENTY}# {time_ns()}\n"
            f = rvm.reversible.source(text, names)
            return lambda: f.program, lambda p: {"functions": len(p.functions)}

        return fresh

    return make


def _assembled() -> Make:
    names = {"rvm": rvm, "np": np, "f64": f64, "i64": i64, "Array": Array}

    def make(values: Values) -> Fresh:
        text = rvm.reversible.source(TWENTY, names).source
        return lambda: (
            lambda: rvm.assemble(text),
            lambda p: {"functions": len(p.program.functions)},
        )

    return make


COMPILING = Workload(
    "compiling",
    "a function of twenty lines becomes a program",
    "function",
    (1,),
    lambda n: {},
    ("functions",),
    (
        Peer("rvm.reversible", FORWARD, _compiled(kept=False)),
        Peer("rvm.reversible, kept", FORWARD, _compiled(kept=True)),
        Peer("its text, assembled", FORWARD, _assembled()),
    ),
    core=False,
    engines=(),
    has_back=False,
)

# ---------------------------------------------------------------- Janus

_ROUND = 6
"""Statements of a round, the test of the loop among them."""


def _mixing(n: int, x: int, seed: int, a: list[int]) -> Any:
    i = 0
    while True:
        k = i % 64
        a[k] = (a[k] + seed + 0x80000000 & 0xFFFFFFFF) - 0x80000000
        if a[k] % 2 == 0:
            x = (x + a[k] + 0x80000000 & 0xFFFFFFFF) - 0x80000000
        else:
            x ^= i
        seed = (seed + x + 0x80000000 & 0xFFFFFFFF) - 0x80000000
        i += 1
        if i == n:
            return (x,)


JANUS = Workload(
    "janus",
    "an array that is stirred by its own values, in Janus",
    "statement",
    (1_000, 10_000, 100_000, 1_000_000),
    lambda n: {"n": n, "x": 1, "seed": 7, "a": np.zeros(64, np.int32)},
    ("x",),
    (libraries.python(_mixing, ("x",)),),
    work=lambda n: _ROUND * n,
    core=False,
    program="mixing.ja:main",
    engines=("native",),
    has_back=False,
)

FRONTS = {w.name: w for w in (*_PURES, DOOR, COMPILING, JANUS)}
"""The workloads of `rvm bench fronts`, which uses only machine code."""
