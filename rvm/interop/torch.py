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

from numpy.typing import NDArray

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


def register(
    name: str,
    f: FunctionHandle,
    /,
    inputs: str | Sequence[str],
    outputs: str | Sequence[str],
    *,
    order: int = 2,
    **fixed: Any,
) -> Ported:
    """The callable of `function`, made of operators that `torch.compile` and `torch.export` keep.

    `name` is a namespace and a name, `"mylib::length"`; the operator is `torch.ops.mylib.length`.
    There are derivatives backwards up to `order`, as the operators `length_gradient` and so on.
    The operators return all that the function changes, after its outputs; the callable
    returns the outputs.
    """
    ported = port(f, inputs, outputs, fixed)
    op = _operator(ported, None, name, order)

    def call(*tensors: Any) -> Any:
        found = op(*tensors)
        if not isinstance(found, tuple):
            return found
        return found[0] if len(ported.outputs) == 1 else found[: len(ported.outputs)]

    _describe(call, ported, f.name)
    return call


def _callable(ported: Port, run: Any, name: str) -> Ported:
    def call(*tensors: Any) -> Any:
        check(ported, name, tensors)
        found = run.apply(ported, None, *tensors)[: len(ported.outputs)]
        return found[0] if len(found) == 1 else found

    _describe(call, ported, name)
    return call


def _describe(call: Any, ported: Port, name: str) -> None:
    """Give a callable its name and signature."""
    given, made = (
        ", ".join(f"{ported.name(k)}: {ported.type_text(k)}" for k in slots)
        for slots in (ported.inputs, ported.outputs)
    )
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"({given}) -> ({made}), on tensors."


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


def array(tensor: Any) -> NDArray[Any]:
    """A tensor's own memory as an array (a copy where its values are conjugated lazily)."""
    found: NDArray[Any] = tensor.detach().resolve_conj().resolve_neg().numpy()
    return found


def tensor(value: NDArray[Any]) -> Any:
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
    base: Any = torch.autograd.Function

    class Run(base):
        """A run: forwards, or (with `back`) back from the finals that follow the inputs."""

        @staticmethod
        def forward(ported: Port, back: Port | None, *tensors: Any) -> Tensors:
            return tuple(map(tensor, compute(ported, back, [array(t) for t in tensors])))

        @staticmethod
        def setup_context(ctx: Any, inputs: Tensors, output: Tensors) -> None:
            ported, _, *tensors = inputs
            given = tuple(tensors[: len(ported.inputs)])
            ctx.port, ctx.more = ported, len(tensors) - len(given)
            rest = [
                t
                for k, t in zip(ported.finals, output, strict=True)
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
                g
                for k, g in zip(ported.finals, adjoints, strict=True)
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


def _operator(ported: Port, back: Port | None, name: str, order: int) -> Any:
    """A custom operator that computes the finals of a port: see `compute`."""
    torch = library("torch")
    n = len(ported.inputs)
    given = ", ".join(f"Tensor t{i}" for i in range(n + (len(back.finals) if back else 0)))
    made = ", ".join(["Tensor"] * len(ported.finals))
    short = name.partition("::")[2]

    def result(tensors: list[Any]) -> Any:
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    def run(*tensors: Any) -> Any:
        check(ported, short, tensors[:n])
        found = compute(ported, back, [array(t) for t in tensors])
        return result([tensor(v) for v in found])

    def fake(*tensors: Any) -> Any:
        check(ported, short, tensors[:n])
        shapes = ported.shapes([tuple(t.shape) for t in tensors[:n]], ported.finals)
        return result(
            [
                tensors[0].new_empty(shape, dtype=dtype_of(ported, k))
                for k, shape in zip(ported.finals, shapes, strict=True)
            ]
        )

    schema = f"({given}) -> " + (made if len(ported.finals) == 1 else f"({made})")
    op = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
    op.register_fake(fake)
    if order < 1:
        return op
    gradient = _operator(ported.gradient, ported, name + "_gradient", order - 1)

    def keep(ctx: Any, inputs: Tensors, output: Any) -> None:
        ctx.n = len(inputs)
        ctx.save_for_backward(*inputs[:n], *(output if isinstance(output, tuple) else (output,)))

    def backward(ctx: Any, *adjoints: Any) -> Tensors:
        given, finals = ctx.saved_tensors[:n], ctx.saved_tensors[n:]
        seeds = [
            torch.zeros_like(x) if g is None else g
            for k, x, g in zip(ported.finals, finals, adjoints, strict=True)
            if k in ported.smooth_outputs
        ]
        found = gradient(*given, *seeds, *finals)
        found = found if isinstance(found, tuple) else (found,)
        by_slot = dict(zip(ported.smooth_inputs, found, strict=False))
        return (*map(by_slot.get, ported.inputs), *[None] * (ctx.n - n))

    op.register_autograd(backward, setup_context=keep)
    return op
