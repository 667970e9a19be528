"""Functions of programs as functions of PyTorch tensors, with all derivatives.

    length = function(program.length, inputs=["x"], outputs=["r"])
    r = length(torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True))
    r.backward()

PyTorch keeps the input and output tensors, and nothing of the run: the pullback runs back from the
results.  Higher derivatives are pullbacks of tangents, which need nothing more either.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from rvm.interop import library
from rvm.interop.operators import registered
from rvm.interop.port import Port, handle_of, port
from rvm.interop.rules import Ported, by_input, curve, describe, parts, smooth
from rvm.interop.tensors import Tensors, backward, check, empty, forward
from rvm.library.handle import FunctionHandle
from rvm.library.reversible import Adding


def function(
    f: FunctionHandle | Adding,
    /,
    inputs: str | Sequence[str],
    outputs: str | Sequence[str],
    **fixed: Any,
) -> Ported:
    """A callable on tensors: the parameters `inputs` in order to `outputs`, by copies.

    It gives a tensor, a tuple for several outputs.  Tensors are on the CPU, of the parameters' own
    types (f64: float64, c128: complex128, …; a scalar has no dimensions); they are read where they
    are.  Other parameters are fixed at the values in `fixed`, or start from zeros.  Derivatives
    are there in both modes and to any order; `torch.func` works on it.

    UsageError U007 without PyTorch, U008 for a function or names that do not fit.
    """
    library("torch")
    f = handle_of(f)
    ported = port(f, inputs, outputs, fixed)
    run, _ = _functions()

    def call(*tensors: Any) -> Any:
        check(ported, f.name, tensors, ("cpu",))
        found = run.apply(ported, *tensors)[: len(ported.outputs)]
        return found[0] if len(found) == 1 else found

    describe(call, ported, f.name, "tensors")
    return call


def register(
    name: str,
    f: FunctionHandle | Adding,
    /,
    inputs: str | Sequence[str],
    outputs: str | Sequence[str],
    *,
    order: int = 2,
    **fixed: Any,
) -> Ported:
    """The callable of `function`, made of operators that `torch.compile` and `torch.export` keep.

    `name` is a namespace and a name, `"mylib::length"`; the operator is `torch.ops.mylib.length`.
    There are derivatives backwards up to `order`, by operators `length_gradient` and so on.
    The operator returns all that the function changes, outputs first; the callable, the outputs.

    Operators stay for the life of the process: UsageError U008 for a name that another has.
    """
    torch = library("torch")
    f = handle_of(f)
    ported = port(f, inputs, outputs, fixed)
    op = registered(ported, name, order)

    def call(*tensors: Any) -> Any:
        # In a graph that is compiled the operator checks its tensors itself.
        if not torch.compiler.is_compiling():
            check(ported, f.name, tensors)
        found = op(*tensors)[: len(ported.outputs)]
        return found[0] if len(found) == 1 else found

    describe(call, ported, f.name, "tensors")
    return call


@cache
def _functions() -> tuple[Any, Any]:
    """The `torch.autograd.Function`s of all ports: `forward` and `backward`."""
    torch = library("torch")
    base: Any = torch.autograd.Function

    def stacked(apply: Ported, info: Any, in_dims: Tensors, args: Tensors) -> tuple[Tensors, Any]:
        """One run for each element of a batch."""
        ported, *tensors = args
        if not info.batch_size:
            ones = [
                t if d is None else t.new_empty((*t.shape[:d], *t.shape[d + 1 :]))
                for t, d in zip(tensors, in_dims[1:], strict=True)
            ]
            slots = ported.finals if apply == Run.apply else ported.smooth_inputs
            none = empty(tuple(ones[: len(ported.inputs)]), ported, slots, (0,))
            return tuple(none), (0,) * len(none)
        runs = []
        for i in range(info.batch_size):
            one = [
                t if d is None else t.select(d, i)
                for t, d in zip(tensors, in_dims[1:], strict=True)
            ]
            runs.append(apply(ported, *one))
        found = tuple(map(torch.stack, zip(*runs, strict=True)))
        return found, (0,) * len(found)

    def filled(given: Sequence[Any], like: Sequence[Any]) -> list[Any]:
        return [torch.zeros_like(x) if t is None else t for t, x in zip(given, like, strict=True)]

    class Run(base):
        @staticmethod
        def forward(ported: Port, *tensors: Any) -> Tensors:
            return forward(ported, *tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: Tensors, output: Tensors) -> None:
            ctx.port = ported = inputs[0]
            rest = [
                t
                for k, t in zip(ported.finals, output, strict=True)
                if k not in ported.smooth_outputs
            ]
            ctx.mark_non_differentiable(*rest)
            ctx.save_for_backward(*inputs[1:], *output)
            ctx.save_for_forward(*inputs[1:], *output)

        @staticmethod
        def backward(ctx: Any, *adjoints: Any) -> Tensors:
            ported: Port = ctx.port
            n, m = len(ported.inputs), len(ported.outputs)
            seeds = smooth(ported, ported.outputs, adjoints[:m])
            saved = ctx.saved_tensors
            return (None, *by_input(ported, Back.apply(ported, *saved[:n], *seeds, *saved[n:])))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Tensors:
            ported: Port = ctx.port
            n, m = len(ported.inputs), len(ported.outputs)
            inputs = ctx.saved_tensors[:n]
            dots = smooth(ported, ported.inputs, filled(tangents[1:], inputs))
            found = Run.apply(ported.tangent, *inputs, *dots)[m:]
            known = dict(zip(ported.smooth_outputs, found, strict=False))
            return tuple(known.get(k) for k in ported.finals)

        @staticmethod
        def vmap(info: Any, in_dims: Tensors, *args: Any) -> tuple[Tensors, Any]:
            return stacked(Run.apply, info, in_dims, args)

    class Back(base):
        @staticmethod
        def forward(ported: Port, *tensors: Any) -> Tensors:
            return backward(ported, *tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: Tensors, output: Tensors) -> None:
            ctx.port = inputs[0]
            ctx.save_for_backward(*inputs[1:])
            ctx.save_for_forward(*inputs[1:])

        @staticmethod
        def backward(ctx: Any, *adjoints: Any) -> Tensors:
            ported: Port = ctx.port
            _, seeds, finals = parts(ported, ctx.saved_tensors)
            zeros = map(torch.zeros_like, seeds)
            found, dots = curve(ported, Run.apply, Back.apply, ctx.saved_tensors, adjoints, zeros)
            # Whatever the finals were made from, they are made from the inputs.
            return (None, *by_input(ported, found), *dots, *[None] * len(finals))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Tensors:
            ported: Port = ctx.port
            given = filled(tangents[1:], ctx.saved_tensors)
            inputs, seed_dots, _ = parts(ported, given)
            dots = smooth(ported, ported.inputs, inputs)
            return curve(ported, Run.apply, Back.apply, ctx.saved_tensors, dots, seed_dots)[0]

        @staticmethod
        def vmap(info: Any, in_dims: Tensors, *args: Any) -> tuple[Tensors, Any]:
            return stacked(Back.apply, info, in_dims, args)

    return Run, Back
