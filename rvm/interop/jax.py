"""Functions of programs as functions of JAX arrays: `jit`, `vmap`, `grad`, and orders beyond.

    length = function(program.length, inputs=["x"], outputs=["r"])
    jax.jit(jax.grad(length))(jnp.array([3.0, 4.0]))

JAX calls the machine back on the host.  For the pullback it keeps only the inputs and the results;
the run back from these restores everything else.  Higher derivatives are pullbacks of tangents,
which need nothing more either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.codes.words import described, with_article
from rvm.faults import InputError, UsageError
from rvm.interop import library
from rvm.interop.port import Port, handle_of, port
from rvm.interop.rules import Ported, Values, by_input, curve, describe, parts, smooth
from rvm.library.handle import FunctionHandle
from rvm.library.reversible import Adding
from rvm.run.binding import held
from rvm.types import elem_of

MODES = ("mixed", "reverse", "forward")


def function(
    f: FunctionHandle | Adding,
    /,
    inputs: str | Sequence[str],
    outputs: str | Sequence[str],
    *,
    mode: str = "mixed",
    **fixed: Any,
) -> Ported:
    """A callable on JAX arrays: the parameters `inputs` in order to `outputs`.

    It gives an array, a tuple for several outputs.  Values are of the parameters' own types (f64:
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
    f = handle_of(f)
    ported = port(f, inputs, outputs, fixed)
    run, _ = _pushed(ported) if mode == "forward" else _pulled(ported, mode == "mixed")

    def call(*arrays: Any) -> Any:
        found = run(*_checked(ported, f.name, arrays))[: len(ported.outputs)]
        return found[0] if len(found) == 1 else tuple(found)

    describe(call, ported, f.name, "JAX arrays")
    return call


def _checked(ported: Port, name: str, arrays: Values) -> list[Any]:
    """The arguments as JAX arrays; errors U005, U009, I003, I004 for what does not fit."""
    jax = library("jax")
    wide = [k for k in (*ported.inputs, *ported.finals) if ported.dtype(k).name.endswith("64")]
    wide += [k for k in (*ported.inputs, *ported.finals) if ported.dtype(k) == np.complex128]
    if wide and not jax.config.jax_enable_x64:
        raise UsageError(
            "U009",
            f"`{ported.name(wide[0])}` of `{name}` is {with_article(ported.type_text(wide[0]))}, "
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
            t = elem_of(ported.function.registers[k].type)
            value = np.asarray(held(t, ported.name(k), value), want)
        try:
            made = library("jax", "jax.numpy").asarray(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                "I003",
                f"`{ported.name(k)}` is {with_article(ported.type_text(k))}: "
                f"it takes an array of {want}, not {described(value)}",
            ) from None
        if made.dtype != want:
            raise InputError(
                "I003",
                f"`{ported.name(k)}` is {with_article(ported.type_text(k))}: "
                f"it takes an array of {want}, "
                f"not of {made.dtype}",
                hint=f"{ported.name(k)}.astype(jnp.{want}): gradients pass through the conversion",
            )
        out.append(made)
    ported.shapes([v.shape for v in out], ())
    return out


def _host(
    once: Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]],
    ranks: Sequence[int],
    made: Callable[[Sequence[Any]], list[Any]],
) -> Ported:
    """A function of NumPy arrays as one of JAX, without derivatives.

    `ranks` are the dimensions of its arguments, beyond which there are batches; `made` gives the
    shapes and dtypes of the results from the arguments.
    """
    jax = library("jax")

    def many(*arguments: Any) -> list[NDArray[Any]]:
        arrays = [np.asarray(a) for a in arguments]
        over = [a.ndim - rank for a, rank in zip(arrays, ranks, strict=True)]
        batch = np.broadcast_shapes(*(a.shape[:k] for a, k in zip(arrays, over, strict=True)))
        if not batch:
            return once(arrays)
        full = [np.broadcast_to(a, batch + a.shape[k:]) for a, k in zip(arrays, over, strict=True)]
        element = [np.empty(a.shape[len(batch) :], a.dtype) for a in full]
        out = [np.empty(batch + m.shape, m.dtype) for m in made(element)]
        for index in np.ndindex(*batch):
            for whole, value in zip(out, once([a[index] for a in full]), strict=True):
                whole[index] = value
        return out

    def call(*arrays: Any) -> tuple[Any, ...]:
        return tuple(jax.pure_callback(many, made(arrays), *arrays, vmap_method="expand_dims"))

    return call


def _forward(ported: Port) -> Ported:
    """The finals from the inputs, by a call of the machine."""

    def made(arrays: Sequence[Any]) -> list[Any]:
        return _structs(ported, arrays, ported.finals)

    return _host(ported.forward, [ported.rank(k) for k in ported.inputs], made)


def _backward(ported: Port) -> Ported:
    """The adjoints of smooth inputs from inputs, seeds and finals, by a call of the machine."""

    def once(arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        inputs, seeds, finals = parts(ported, arrays)
        return ported.backward(inputs, finals, seeds)

    def made(arrays: Sequence[Any]) -> list[Any]:
        return _structs(ported, arrays[: len(ported.inputs)], ported.smooth_inputs)

    slots = (*ported.inputs, *ported.smooth_outputs, *ported.finals)
    return _host(once, [ported.rank(k) for k in slots], made)


def _structs(ported: Port, inputs: Sequence[Any], slots: Sequence[int]) -> list[Any]:
    jax = library("jax")
    shapes = ported.shapes([a.shape for a in inputs], slots)
    return [jax.ShapeDtypeStruct(s, ported.dtype(k)) for k, s in zip(slots, shapes, strict=True)]


def _pushed(ported: Port) -> tuple[Ported, Ported]:
    """`_forward` and `_backward` with derivatives by forward mode, to any order."""
    jax = library("jax")
    run, back = jax.custom_jvp(_forward(ported)), jax.custom_jvp(_backward(ported))

    def run_jvp(arrays: Values, dots: Values) -> tuple[Values, Values]:
        pushed, _ = _pushed(ported.tangent)
        found = pushed(*arrays, *smooth(ported, ported.inputs, dots))[len(ported.outputs) :]
        known = dict(zip(ported.smooth_outputs, found, strict=False))
        finals = run(*arrays)
        # Finals that are not outputs go nowhere but into `back`, which counts by the inputs.
        return finals, tuple(
            known[k] if k in known else _no_tangent(v)
            for k, v in zip(ported.finals, finals, strict=True)
        )

    def back_jvp(arrays: Values, dots: Values) -> tuple[Values, Values]:
        inputs, seeds, _ = parts(ported, dots)
        return back(*arrays), _curve(
            ported, _pushed, arrays, smooth(ported, ported.inputs, inputs), seeds
        )[0]

    run.defjvp(run_jvp)
    back.defjvp(back_jvp)
    return run, back


def _no_tangent(v: Any) -> Any:
    jax = library("jax")
    if v.dtype.kind in "fc":
        return library("jax", "jax.numpy").zeros_like(v)
    return np.zeros(v.shape, jax.dtypes.float0)


def _pulled(ported: Port, mixed: bool = False) -> tuple[Ported, Ported]:
    """`_forward` and `_backward` with derivatives by reverse mode, to any order.

    `mixed`: the first by reverse mode, those of it by forward mode.
    """
    jax = library("jax")
    zeros = library("jax", "jax.numpy").zeros_like
    run, back = jax.custom_vjp(_forward(ported)), jax.custom_vjp(_backward(ported))
    inner_run, inner_back = _pushed(ported) if mixed else (run, back)

    def keep_run(*arrays: Any) -> tuple[Values, Any]:
        finals = inner_run(*arrays)
        return finals, (arrays, finals)

    def pull_run(kept: Any, adjoints: Sequence[Any]) -> Values:
        arrays, finals = kept
        seeds = _turned(smooth(ported, ported.outputs, adjoints[: len(ported.outputs)]))
        return tuple(by_input(ported, _turned(inner_back(*arrays, *seeds, *finals))))

    def keep_back(*arrays: Any) -> tuple[Values, Any]:
        return back(*arrays), arrays

    def pull_back(arrays: Values, adjoints: Sequence[Any]) -> Values:
        _, seeds, finals = parts(ported, arrays)
        found, dots = _curve(ported, _pulled, arrays, _turned(adjoints), map(zeros, seeds))
        # Whatever the finals were made from, they are made from the inputs.
        return (*by_input(ported, _turned(found)), *_turned(dots), *[None] * len(finals))

    run.defvjp(keep_run, pull_run)
    back.defvjp(keep_back, pull_back)
    return run, back


def _turned(adjoints: Sequence[Any]) -> list[Any]:
    """JAX's adjoints are dL/dRe - i dL/dIm, the machine's are dL/dRe + i dL/dIm."""
    return [library("jax", "jax.numpy").conj(g) for g in adjoints]


def _curve(
    ported: Port,
    rules: Callable[[Port], tuple[Ported, Ported]],
    arrays: Sequence[Any],
    dots: Sequence[Any],
    seed_dots: Iterable[Any],
) -> tuple[Values, Values]:
    run, back = rules(ported.tangent)
    return curve(ported, lambda _, *a: run(*a), lambda _, *a: back(*a), arrays, dots, seed_dots)
