"""Functions of programs as custom operators of PyTorch, which its compiler leaves whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rvm.codes.words import described
from rvm.faults import UsageError
from rvm.interop import library
from rvm.interop.port import Port
from rvm.interop.rules import Ported, by_input, curve, parts, smooth
from rvm.interop.tensors import Tensors, backward, check, empty, forward

_registered: dict[str, tuple[Any, Ported]] = {}
"""By an operator's name, what it was made of, and its callable."""


def registered(ported: Port, name: str, order: int) -> Ported:
    """The operator of a name; that which there is already if it was made of the same.

    PyTorch would replace another of the name, and earlier callables and graphs would compute the
    new function.  UsageError U008 for that, for no name, and for an order that is none.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[^\W\d]\w*::[^\W\d]\w*", name, re.A):
        raise UsageError(
            "U008",
            f"an operator is named by a namespace and a name, not by {described(name)}",
            hint='"mylib::length"',
        )
    if isinstance(order, bool) or not isinstance(order, int) or order < 0:
        raise UsageError("U008", f"`order` is a whole number, 0 or more, not {described(order)}")
    made_of = ported.same, order
    if name not in _registered or _registered[name][0] != made_of:
        _registered[name] = made_of, Operators().run(ported, name, order)
    return _registered[name][1]


class Operators:
    """The custom operators of one registered function, each made once."""

    def __init__(self) -> None:
        self.torch = library("torch")
        self.made: dict[str, Ported] = {}

    def run(self, ported: Port, name: str, order: int) -> Ported:
        """`forward` as an operator, with derivatives up to an order."""
        if name in self.made:
            return self.made[name]

        def fake(*tensors: Any) -> list[Any]:
            check(ported, name.partition("::")[2], tensors)
            return empty(tensors, ported, ported.finals)

        def real(*tensors: Any) -> Tensors:
            check(ported, name.partition("::")[2], tensors)
            return forward(ported, *tensors)

        op, call = self._define(name, len(ported.inputs), len(ported.finals), real, fake)
        if order:
            back = self.back(ported, name + "_gradient", order - 1)

            def keep(ctx: Any, inputs: Tensors, output: Any) -> None:
                ctx.save_for_backward(*inputs, *_tuple(output))

            def pull(ctx: Any, *adjoints: Any) -> Tensors:
                n, m = len(ported.inputs), len(ported.outputs)
                saved = ctx.saved_tensors
                seeds = smooth(ported, ported.outputs, adjoints[:m])
                return tuple(by_input(ported, back(*saved[:n], *seeds, *saved[n:])))

            op.register_autograd(pull, setup_context=keep)
        return call

    def back(self, ported: Port, name: str, order: int) -> Ported:
        """`backward` as an operator, with derivatives up to an order."""
        if name in self.made:
            return self.made[name]

        def fake(*tensors: Any) -> list[Any]:
            return empty(tensors[: len(ported.inputs)], ported, ported.smooth_inputs)

        def real(*tensors: Any) -> Tensors:
            return backward(ported, *tensors)

        size = len(ported.inputs) + len(ported.smooth_outputs) + len(ported.finals)
        op, call = self._define(name, size, len(ported.smooth_inputs), real, fake)
        if order:
            root = name.removesuffix("_gradient") + "_tangent"
            back = self.back(ported.tangent, root + "_gradient", order - 1)
            run = self.run(ported.tangent, root, order - 1)

            def keep(ctx: Any, inputs: Tensors, output: Any) -> None:
                ctx.save_for_backward(*inputs)

            def pull(ctx: Any, *adjoints: Any) -> Tensors:
                _, seeds, finals = parts(ported, ctx.saved_tensors)
                found, dots = curve(
                    ported,
                    lambda _, *t: run(*t),
                    lambda _, *t: back(*t),
                    ctx.saved_tensors,
                    adjoints,
                    map(self.torch.zeros_like, seeds),
                )
                return (*by_input(ported, found), *dots, *[None] * len(finals))

            op.register_autograd(pull, setup_context=keep)
        return call

    def _define(
        self, name: str, given: int, made: int, real: Ported, fake: Ported
    ) -> tuple[Any, Ported]:
        """An operator from tensors to tensors, and a callable that gives a tuple of them."""

        def shaped(found: Sequence[Any]) -> Any:
            return found[0] if made == 1 else tuple(found)

        inside = ", ".join(f"Tensor t{i}" for i in range(given))
        outside = "Tensor" if made == 1 else f"({', '.join(['Tensor'] * made)})"
        namespace, _, word = name.partition("::")
        if hasattr(getattr(self.torch.ops, namespace), word):
            raise UsageError(
                "U008",
                f"there is an operator `{name}` already",
                hint="operators stay for the life of the process: choose another name",
            )
        op = self.torch.library.custom_op(
            name, lambda *t: shaped(real(*t)), mutates_args=(), schema=f"({inside}) -> {outside}"
        )
        op.register_fake(lambda *t: shaped(fake(*t)))
        self.made[name] = lambda *t: _tuple(op(*t))
        return op, self.made[name]


def _tuple(found: Any) -> Tensors:
    return found if isinstance(found, tuple) else (found,)
