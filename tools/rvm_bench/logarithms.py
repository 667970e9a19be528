"""A workload of complex numbers, and its counterparts in libraries."""

from __future__ import annotations

from cmath import log
from typing import Any

import numpy as np

from rvm_bench import libraries
from rvm_bench.ccode import c_peers, packed
from rvm_bench.contest import FORWARD, GRADIENT, Fresh, Go, Peer, Read, Values, Workload

# ---------------------------------------------------------------- complex logarithms


def _complex(n: int) -> Values:
    rng = np.random.default_rng(7)
    return {"y": np.zeros(n, complex), "x": rng.normal(size=n) + 1j * rng.normal(size=n)}


def _complex_seed(n: int) -> Any:
    return np.exp(1j * np.arange(n))


def _of_log(v: Values) -> Values:
    return {"y": _complex_seed(len(v["y"]))}


def _log_python(y: list[complex], x: list[complex]) -> Any:
    return ([a + log(b) for a, b in zip(y, x, strict=True)],)


def _log_numpy(y: Any, x: Any) -> Values:
    y += np.log(x)
    return {"y": y}


def _log_numpy_back(y: Any, x: Any) -> Values:
    seed = _complex_seed(len(y))
    y += np.log(x)
    return {"x": seed / np.conj(x)}


def _log_jax(task: str) -> Peer:
    """JAX's adjoints are the conjugates of ours."""

    def make(values: Values) -> Fresh:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        y, x = jnp.asarray(values["y"]), jnp.asarray(values["x"])
        seed = jnp.asarray(np.conj(_complex_seed(len(values["y"]))))

        def run(y: Any, x: Any) -> Any:
            return y + jnp.log(x)

        @jax.jit  # type: ignore[untyped-decorator]
        def gradient(y: Any, x: Any, seed: Any) -> Any:
            result, back = jax.vjp(lambda x: run(y, x), x)
            return result, back(seed)[0]

        compiled = jax.jit(run)

        def fresh() -> tuple[Go, Read]:
            if task == FORWARD:
                return lambda: jax.block_until_ready(compiled(y, x)), lambda r: {"y": r}
            return (
                lambda: jax.block_until_ready(gradient(y, x, seed)),
                lambda r: {"x": np.conj(r[1])},
            )

        return fresh

    return Peer("JAX jit", task, make, "jax")


CLOG = Workload(
    "clog",
    "logarithms of complex numbers",
    "number",
    (10, 100, 1_000, 10_000, 100_000, 1_000_000),
    _complex,
    ("y",),
    (
        *c_peers("clog", packed("y x #y", "y"), ("x",), _of_log),
        libraries.python(_log_python, ("y",)),
        libraries.numpy(_log_numpy),
        libraries.numpy(_log_numpy_back, GRADIENT),
        _log_jax(FORWARD),
        _log_jax(GRADIENT),
    ),
    _of_log,
    ("x",),
    core=False,
)
