"""Peers by library: JAX, PyTorch, autograd and Numba as their users call them.

A workload gives the function, from inputs by name to results by name, and the name of the real
scalar that is differentiated or seeds of several results.  Integers and arrays of them are static:
compiled code knows them.  Compiling happens at the first call and is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rvm_bench.contest import FORWARD, GRADIENT, HESSIAN, Fresh, Go, Peer, Read, Values, copied

Model = Callable[[Any, dict[str, Any]], Values]
"""A function of a library that has NumPy's functions, and inputs."""
_Seeds = Callable[[Values], Values]


def _weighted(results: Values, seeds: Values, total: Callable[[Any], Any]) -> Any:
    """Σ seed · result: the scalar whose gradient is the pullback of the seeds."""
    return sum(total(results[k] * seed) for k, seed in seeds.items())


def _arrays(values: Values) -> tuple[dict[str, Any], dict[str, Any]]:
    """The numbers with a fraction and arrays of them, and the static values."""
    real = {
        k: v
        for k, v in values.items()
        if isinstance(v, float) or (isinstance(v, np.ndarray) and v.dtype.kind in "fc")
    }
    return real, {k: v for k, v in values.items() if k not in real}


def python(function: Callable[..., Any], names: tuple[str, ...]) -> Peer:
    """Plain Python on numbers and lists; a tuple of the results in `names` is returned."""

    def make(values: Values) -> Fresh:
        def fresh() -> tuple[Go, Read]:
            given = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}
            return lambda: function(**given), lambda r: dict(zip(names, r, strict=True))

        return fresh

    return Peer("Python", FORWARD, make)


def numpy(function: Callable[..., Values], task: str = FORWARD) -> Peer:
    """NumPy on whole arrays, in place where a user would."""

    def make(values: Values) -> Fresh:
        def fresh() -> tuple[Go, Read]:
            given = copied(values)
            return lambda: function(**given), lambda r: r

        return fresh

    return Peer("NumPy", task, make)


def numba(function: Callable[..., Any], names: tuple[str, ...]) -> Peer:
    """Loops compiled by Numba; a tuple of the results in `names` is returned."""

    def make(values: Values) -> Fresh:
        from numba import njit

        compiled = njit(function)

        def fresh() -> tuple[Go, Read]:
            given = list(copied(values).values())
            return lambda: compiled(*given), lambda r: dict(zip(names, r, strict=True))

        return fresh

    return Peer("Numba", FORWARD, make, "numba")


def loops(function: Callable[..., Any], names: tuple[str, ...]) -> tuple[Peer, Peer]:
    """The same loops in plain Python, and compiled by Numba."""
    return python(function, names), numba(function, names)


def jax(
    model: Model,
    seeds: _Seeds | None = None,
    wrt: tuple[str, ...] = (),
    *,
    name: str = "JAX jit",
    hessian: str = "",
) -> tuple[Peer, ...]:
    """Compiled by XLA, forwards and (with seeds) as a gradient."""

    def setup(values: Values) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
        import jax as lib
        import jax.numpy as jnp

        lib.config.update("jax_enable_x64", True)
        real, static = _arrays(values)
        return lib, jnp, {k: jnp.asarray(v) for k, v in real.items()}, static

    def runs(lib: Any, compiled: Any, given: Any) -> Fresh:
        def fresh() -> tuple[Go, Read]:
            return lambda: lib.block_until_ready(compiled(*given)), lambda r: r

        return fresh

    def forward(values: Values) -> Fresh:
        lib, jnp, real, static = setup(values)
        return runs(lib, lib.jit(lambda given: model(jnp, {**given, **static})), (real,))

    def gradient(values: Values) -> Fresh:
        assert seeds is not None
        lib, jnp, real, static = setup(values)
        seed = {k: jnp.asarray(v) for k, v in seeds(values).items()}
        inner = {k: real.pop(k) for k in wrt}

        def loss(inner: Any, others: Any, seed: Any) -> Any:
            results = model(jnp, {**others, **inner, **static})
            return _weighted(results, seed, jnp.sum), results

        compiled = lib.jit(lib.grad(loss, has_aux=True))
        fresh = runs(lib, compiled, (inner, real, seed))
        return lambda: (fresh()[0], lambda r: r[0])

    def second(values: Values) -> Fresh:
        lib, jnp, real, static = setup(values)
        (first,) = wrt
        point = real.pop(first)

        def loss(x: Any) -> Any:
            return model(jnp, {**real, first: x, **static})[hessian]

        fresh = runs(lib, lib.jit(lib.hessian(loss)), (point,))
        return lambda: (fresh()[0], lambda r: {"hessian": r})

    peers = [Peer(name, FORWARD, forward, "jax")]
    if seeds is not None:
        peers.append(Peer(name, GRADIENT, gradient, "jax"))
    if hessian:
        peers.append(Peer(name, HESSIAN, second, "jax"))
    return tuple(peers)


def torch(
    model: Model, seeds: _Seeds | None = None, wrt: tuple[str, ...] = (), *, compile: bool = False
) -> tuple[Peer, ...]:
    """PyTorch, eager or compiled, forwards and as a gradient."""

    def setup(values: Values) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
        import torch as lib

        lib.set_num_threads(1)
        real, static = _arrays(values)
        tensors = {
            k: lib.tensor(v, dtype=lib.float64) if isinstance(v, float) else lib.from_numpy(v)
            for k, v in copied(real).items()
        }

        def run(given: dict[str, Any]) -> Values:
            return model(lib, given)

        if not compile:
            return lib, run, tensors, static
        lib._dynamo.reset()  # else shapes and modes that came before count against it
        return lib, lib.compile(run, dynamic=False), tensors, static

    def forward(values: Values) -> Fresh:
        lib, run, real, static = setup(values)

        def go() -> Any:
            with lib.no_grad():
                return run({**real, **static})

        return lambda: (go, lambda r: {k: v.numpy() for k, v in r.items()})

    def gradient(values: Values) -> Fresh:
        assert seeds is not None
        lib, run, real, static = setup(values)
        seed = {
            k: lib.tensor(v, dtype=lib.float64) if isinstance(v, float) else lib.from_numpy(v)
            for k, v in seeds(values).items()
        }

        def fresh() -> tuple[Go, Read]:
            inner = {k: real[k].clone().requires_grad_() for k in wrt}

            def go() -> Any:
                results = run({**real, **inner, **static})
                _weighted(results, seed, lib.sum).backward()
                return inner

            return go, lambda r: {k: v.grad.numpy() for k, v in r.items()}

        return fresh

    name = "torch.compile" if compile else "PyTorch"
    peers = [Peer(name, FORWARD, forward, "torch", compile)]
    if seeds is not None:
        peers.append(Peer(name, GRADIENT, gradient, "torch", compile))
    return tuple(peers)


def autograd(model: Model, seeds: _Seeds, wrt: tuple[str, ...]) -> Peer:
    """The gradient of code for NumPy by the library autograd."""

    def make(values: Values) -> Fresh:
        from autograd import grad
        from autograd import numpy as anp

        seed = seeds(values)
        inner = {k: values[k] for k in wrt}

        def loss(inner: Any) -> Any:
            return _weighted(model(anp, {**values, **inner}), seed, anp.sum)

        gradient = grad(loss)
        return lambda: (lambda: gradient(inner), lambda r: r)

    return Peer("autograd", GRADIENT, make, "autograd")
