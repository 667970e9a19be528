"""Functions of programs as functions of JAX arrays: `jit`, `vmap`, `grad`, and orders beyond.

    length = function(program.length, inputs=["x"], outputs=["r"])
    jax.jit(jax.grad(length))(jnp.array([3.0, 4.0]))

JAX calls the machine back on the host.  What it keeps for the pullback are the
inputs and the results; the run back from these makes everything else again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.calling import FunctionHandle
from rvm.faults import InputError, UsageError
from rvm.interop import library
from rvm.interop.port import Port, port

Arrays = tuple[Any, ...]
Ported = Callable[..., Any]
MODES = ("mixed", "reverse", "forward")


def function(
    f: FunctionHandle,
    /,
    inputs: str | Sequence[str],
    outputs: str | Sequence[str],
    *,
    mode: str = "mixed",
    **fixed: Any,
) -> Ported:
    """A callable on JAX arrays: the parameters `inputs` in order to `outputs`.

    It gives an array, a tuple for several outputs.  Arrays are of the parameters' own types (f64:
    float64, c128: complex128, …), so JAX's 64-bit mode must be on.  Other parameters are fixed at
    the values in `fixed`, or start from zeros.

    `mode` says which derivatives JAX can take: "mixed" is reverse first and then forward
    (`grad`, `vjp`, `hessian`, directions of gradients), "reverse" is reverse always (`grad` of
    `grad`), "forward" is forward always (`jvp`, `jacfwd`); each to any order.

    UsageError U007 without JAX, U008 for a function or names that do not fit, U009 at a call
    without 64-bit mode.
    """
    library("jax")
    if mode not in MODES:
        raise UsageError("U008", f"`mode` is one of {', '.join(MODES)}, not {mode!r}")
    ported = port(f, inputs, outputs, fixed)
    run = _forward(ported, None) if mode == "forward" else _reverse(ported, None, mode)

    def call(*arrays: Any) -> Any:
        found = run(*_checked(ported, f.name, arrays))[: len(ported.outputs)]
        return found[0] if len(found) == 1 else tuple(found)

    given, made = (
        ", ".join(f"{ported.name(k)}: {ported.type_text(k)}" for k in slots)
        for slots in (ported.inputs, ported.outputs)
    )
    call.__name__ = call.__qualname__ = f.name
    call.__doc__ = f"({given}) -> ({made}), on JAX arrays."
    return call


def _checked(ported: Port, name: str, arrays: Arrays) -> list[Any]:
    """The arguments as JAX arrays; errors U005, U009, I003, I004 for what does not fit."""
    jax = library("jax")
    wide = [k for k in (*ported.inputs, *ported.finals) if ported.dtype(k).name.endswith("64")]
    wide += [k for k in (*ported.inputs, *ported.finals) if ported.dtype(k) == np.complex128]
    if wide and not jax.config.jax_enable_x64:
        raise UsageError(
            "U009",
            f"`{ported.name(wide[0])}` of `{name}` is a {ported.type_text(wide[0])}, "
            "and JAX has its 64-bit mode off",
            hint='jax.config.update("jax_enable_x64", True), before the first array is made',
        )
    if len(arrays) != len(ported.inputs):
        names = ", ".join(map(ported.name, ported.inputs))
        raise UsageError(
            "U005", f"`{name}` takes {len(ported.inputs)} arrays ({names}), not {len(arrays)}"
        )
    out = []
    for k, value in zip(ported.inputs, arrays, strict=True):
        want = ported.dtype(k)
        if isinstance(value, (bool, int, float, complex)):
            # Python's own numbers have no width, in JAX as in the machine.
            value = np.asarray(value).astype(want, casting="same_kind")
        made = library("jax", "jax.numpy").asarray(value)
        if made.dtype != want:
            raise InputError(
                "I003",
                f"`{ported.name(k)}` is a {ported.type_text(k)}: it takes an array of {want}, "
                f"not of {made.dtype}",
                hint=f"{ported.name(k)}.astype(jnp.{want}): a gradient goes back through it",
            )
        out.append(made)
    ported.shapes([v.shape for v in out], ())
    return out


def _host(ported: Port, back: Port | None) -> Callable[..., list[Any]]:
    """The finals of a port by a call of the machine; JAX cannot differentiate this.

    With `back`, of whose gradient it is the port, by a run back: then after the inputs (those
    of `back`, and adjoints) stand the finals of `back`.
    """
    jax = library("jax")
    n = len(ported.inputs)
    slots = (*ported.inputs, *(back.finals if back else ()))
    ranks = [(ported if i < n else back or ported).rank(k) for i, k in enumerate(slots)]

    def once(arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        if back is None:
            return ported.forward(arrays)
        m = len(back.inputs)
        return back.backward(arrays[:m], arrays[n:], arrays[m:n])

    def many(*arguments: Any) -> list[NDArray[Any]]:
        arrays = [np.asarray(a) for a in arguments]
        over = [a.ndim - rank for a, rank in zip(arrays, ranks, strict=True)]
        batch = np.broadcast_shapes(*(a.shape[:k] for a, k in zip(arrays, over, strict=True)))
        if not batch:
            return once(arrays)
        full = [np.broadcast_to(a, batch + a.shape[k:]) for a, k in zip(arrays, over, strict=True)]
        shapes = ported.shapes([a.shape[len(batch) :] for a in full[:n]], ported.finals)
        out = [
            np.empty(batch + s, ported.dtype(k)) for k, s in zip(ported.finals, shapes, strict=True)
        ]
        for index in np.ndindex(*batch):
            for held, value in zip(out, once([a[index] for a in full]), strict=True):
                held[index] = value
        return out

    def call(*arrays: Any) -> list[Any]:
        shapes = ported.shapes([a.shape for a in arrays[:n]], ported.finals)
        made = [
            jax.ShapeDtypeStruct(s, ported.dtype(k))
            for k, s in zip(ported.finals, shapes, strict=True)
        ]
        found: list[Any] = jax.pure_callback(many, made, *arrays, vmap_method="expand_dims")
        return found

    return call


def _forward(ported: Port, back: Port | None) -> Ported:
    """`_host` with derivatives by forward mode, to any order."""
    jax = library("jax")
    n = len(ported.inputs)
    run = jax.custom_jvp(_host(ported, back))

    def jvp(arrays: Arrays, tangents: Arrays) -> tuple[list[Any], list[Any]]:
        dots = [
            t for k, t in zip(ported.inputs, tangents, strict=False) if k in ported.smooth_inputs
        ]
        found = _forward(ported.tangent, None)(*arrays[:n], *dots)
        finals = run(*arrays)
        by_slot = dict(zip(ported.smooth_outputs, found[len(ported.outputs) :], strict=False))
        # Finals that are no outputs go nowhere but into runs back, which count by the inputs.
        out = [
            by_slot[k] if k in by_slot else _no_tangent(v)
            for k, v in zip(ported.finals, finals, strict=True)
        ]
        return finals, out

    run.defjvp(jvp)
    return run  # type: ignore[no-any-return]


def _no_tangent(v: Any) -> Any:
    jax = library("jax")
    if v.dtype.kind in "fc":
        return library("jax", "jax.numpy").zeros_like(v)
    return np.zeros(v.shape, jax.dtypes.float0)


def _reverse(ported: Port, back: Port | None, mode: str) -> Ported:
    """`_host` with a pullback: the run back, itself with derivatives of the kind `mode` tells."""
    jax = library("jax")
    n = len(ported.inputs)
    run = jax.custom_vjp(_host(ported, back))
    again = run if mode == "reverse" else _forward(ported, back)

    def keep(*arrays: Any) -> tuple[list[Any], Any]:
        finals = again(*arrays)
        return finals, (arrays, finals)

    def pull(kept: Any, adjoints: Sequence[Any]) -> Arrays:
        arrays, finals = kept
        gradient = (
            _reverse(ported.gradient, ported, mode)
            if mode == "reverse"
            else _forward(ported.gradient, ported)
        )
        # JAX's adjoints are dL/dRe - i dL/dIm, the machine's are dL/dRe + i dL/dIm.
        seeds = [
            g.conj()
            for k, g in zip(ported.finals, adjoints, strict=True)
            if k in ported.smooth_outputs
        ]
        found = gradient(*arrays[:n], *seeds, *finals)
        by_slot = {k: g.conj() for k, g in zip(ported.smooth_inputs, found, strict=False)}
        # Whatever the finals were made from, they are made from the inputs.
        return tuple(by_slot.get(k) for k in ported.inputs) + (None,) * (len(arrays) - n)

    run.defvjp(keep, pull)
    return run  # type: ignore[no-any-return]
