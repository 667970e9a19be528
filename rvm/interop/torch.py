"""Functions of programs as functions of PyTorch tensors, with all derivatives.

    length = function(program.length, inputs=["x"], outputs=["r"])
    r = length(torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True))
    r.backward()

PyTorch keeps the tensors that go in and come out, and nothing of the run: the
pullback runs back from the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from rvm.calling import FunctionHandle
from rvm.faults import InputError, UsageError
from rvm.interop import library
from rvm.interop.port import Port, port

Tensors = tuple[Any, ...]
Ported = Callable[..., Any]


def function(
    f: FunctionHandle, /, inputs: str | Sequence[str], outputs: str | Sequence[str], **fixed: Any
) -> Ported:
    """A callable on tensors: the parameters `inputs` in order to `outputs`, by copies.

    It gives a tensor, a tuple for several outputs.  Tensors are on the CPU, of the parameters' own
    types (f64: float64, c128: complex128, …; a scalar has no dimensions); they are read where they
    are.  Other parameters are fixed at the values in `fixed`, or start from zeros.  Derivatives
    are there in both modes and to any order; `torch.func` works on it.

    UsageError U007 without PyTorch, U008 for a function or names that do not fit.
    """
    return _callable(port(f, inputs, outputs, fixed), _run_class(), f.name)


def _callable(ported: Port, run: Any, name: str) -> Ported:
    def call(*tensors: Any) -> Any:
        check(ported, name, tensors)
        found = run.apply(ported, None, *tensors)[: len(ported.outputs)]
        return found[0] if len(found) == 1 else found

    call.__name__ = call.__qualname__ = name
    given = ", ".join(f"{ported.name(k)}: {ported.type_text(k)}" for k in ported.inputs)
    made = ", ".join(f"{ported.name(k)}: {ported.type_text(k)}" for k in ported.outputs)
    call.__doc__ = f"({given}) -> ({made}), on tensors."
    return call


def check(ported: Port, name: str, tensors: Tensors) -> None:
    """UsageError U005 for their number; InputError I003 or I004 for a tensor that does not fit."""
    torch = library("torch")
    if len(tensors) != len(ported.inputs):
        names = ", ".join(map(ported.name, ported.inputs))
        raise UsageError(
            "U005",
            f"`{name}` takes {len(ported.inputs)} tensors ({names}), not {len(tensors)}",
        )
    for k, tensor in zip(ported.inputs, tensors, strict=True):
        said = f"`{ported.name(k)}` is a {ported.type_text(k)}: it takes a tensor"
        if not isinstance(tensor, torch.Tensor):
            raise InputError("I003", f"{said}, not {type(tensor).__name__}")
        if tensor.device.type not in ("cpu", "meta"):
            raise InputError(
                "I003", f"{said} on the CPU, not on {tensor.device}", hint=f"{ported.name(k)}.cpu()"
            )
        want = dtype_of(ported, k)
        if tensor.dtype != want:
            raise InputError(
                "I003",
                f"{said} of {want}, not of {tensor.dtype}",
                hint=f"{ported.name(k)}.to({want}): a gradient goes back through it",
            )
    ported.shapes([tuple(t.shape) for t in tensors], ())


def dtype_of(ported: Port, slot: int) -> Any:
    """The type of a tensor that holds a parameter."""
    return getattr(library("torch"), ported.dtype(slot).name)


def array(tensor: Any) -> np.ndarray[Any, Any]:
    """A tensor's own memory as an array (a copy where its values are conjugated lazily)."""
    found: np.ndarray[Any, Any] = tensor.detach().resolve_conj().resolve_neg().numpy()
    return found


def tensor(value: np.ndarray[Any, Any]) -> Any:
    """An array's memory as a tensor."""
    return library("torch").from_numpy(value)


def compute(ported: Port, back: Port | None, arrays: Sequence[Any]) -> list[Any]:
    """The finals of `ported`; with `back`, of whose gradient it is the port, by a run back.

    Then after the inputs (those of `back`, and adjoints) stand the finals of `back`.
    """
    if back is None:
        return ported.forward(arrays)
    n, m = len(back.inputs), len(ported.inputs)
    return back.backward(arrays[:n], arrays[m:], arrays[n:m])


@cache
def _run_class() -> Any:
    """The `torch.autograd.Function` of all ports, made when torch is first needed."""
    torch = library("torch")

    class Run(torch.autograd.Function):
        """A run: forwards, or (with `back`) back from the finals that follow the inputs."""

        @staticmethod
        def forward(ported: Port, back: Port | None, *tensors: Any) -> Tensors:
            return tuple(map(tensor, compute(ported, back, [array(t) for t in tensors])))

        @staticmethod
        def setup_context(ctx: Any, inputs: Tensors, output: Tensors) -> None:
            ported, back, *tensors = inputs
            given = tuple(tensors[: len(ported.inputs)])
            ctx.port, ctx.more = ported, len(tensors) - len(given)
            rest = [
                t for k, t in zip(ported.finals, output, strict=True)
                if k not in ported.smooth_outputs
            ]
            ctx.mark_non_differentiable(*rest)
            ctx.save_for_backward(*given, *output)
            ctx.save_for_forward(*given, *output)

        @staticmethod
        def backward(ctx: Any, *adjoints: Any) -> Tensors:
            ported: Port = ctx.port
            n = len(ported.inputs)
            given, finals = ctx.saved_tensors[:n], ctx.saved_tensors[n:]
            seeds = [
                g for k, g in zip(ported.finals, adjoints, strict=True)
                if k in ported.smooth_outputs
            ]
            found = Run.apply(ported.gradient, ported, *given, *seeds, *finals)
            by_slot = dict(zip(ported.smooth_inputs, found, strict=False))
            # Whatever the finals were made from, they are made from the inputs.
            return (None, None, *map(by_slot.get, ported.inputs), *[None] * ctx.more)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Tensors:
            ported: Port = ctx.port
            n = len(ported.inputs)
            given, finals = ctx.saved_tensors[:n], ctx.saved_tensors[n:]
            dots = [
                torch.zeros_like(x) if t is None else t
                for k, x, t in zip(ported.inputs, given, tangents[2 : 2 + n], strict=True)
                if k in ported.smooth_inputs
            ]
            found = Run.apply(ported.tangent, None, *given, *dots)
            by_slot = dict(zip(ported.smooth_outputs, found[len(ported.outputs) :], strict=False))
            return tuple(by_slot.get(k) for k, _ in zip(ported.finals, finals, strict=True))

        @staticmethod
        def vmap(info: Any, in_dims: Tensors, *inputs: Any) -> tuple[Tensors, Any]:
            ported, back, *tensors = inputs
            runs = [
                Run.apply(
                    ported,
                    back,
                    *(
                        t if d is None else t.select(d, i)
                        for t, d in zip(tensors, in_dims[2:], strict=True)
                    ),
                )
                for i in range(info.batch_size)
            ]
            return tuple(map(torch.stack, zip(*runs, strict=True))), (0,) * len(ported.finals)

    return Run
