"""Tensors of PyTorch in and out of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from rvm.codes.words import with_article
from rvm.faults import InputError, UsageError
from rvm.interop import library
from rvm.interop.port import Port
from rvm.interop.rules import parts

Tensors = tuple[Any, ...]


def check(
    ported: Port, name: str, tensors: Tensors, devices: Sequence[str] = ("cpu", "meta")
) -> None:
    """UsageError U005 for their number; InputError I003 or I004 for a tensor that does not fit.

    Tensors on the device `meta` have no numbers: where only shapes are asked for, they do.
    """
    torch = library("torch")
    if len(tensors) != len(ported.inputs):
        names = ", ".join(map(ported.name, ported.inputs))
        raise UsageError(
            "U005", f"`{name}` takes {len(ported.inputs)} tensors ({names}), not {len(tensors)}"
        )
    for k, tensor in zip(ported.inputs, tensors, strict=True):
        said = f"`{ported.name(k)}` is {with_article(ported.type_text(k))}: it takes a tensor"
        if not isinstance(tensor, torch.Tensor):
            raise InputError("I003", f"{said}, not {type(tensor).__name__}")
        if tensor.layout is not torch.strided:
            raise InputError(
                "I003",
                f"{said} that holds all its numbers, not one of the layout {tensor.layout}",
                hint=f"{ported.name(k)}.to_dense()",
            )
        if tensor.device.type not in devices:
            raise InputError(
                "I003", f"{said} on the CPU, not on {tensor.device}", hint=f"{ported.name(k)}.cpu()"
            )
        want = dtype_of(ported, k)
        if tensor.dtype != want:
            raise InputError(
                "I003",
                f"{said} of {want}, not of {tensor.dtype}",
                hint=f"{ported.name(k)}.to({want}): gradients pass through the conversion",
            )
    ported.shapes([tuple(t.shape) for t in tensors], ())


def dtype_of(ported: Port, slot: int) -> Any:
    """The type of a tensor that holds a parameter."""
    return getattr(library("torch"), ported.dtype(slot).name)


def array(tensor: Any) -> NDArray[Any]:
    """A tensor's own memory as an array (a copy where its values are conjugated lazily)."""
    found: NDArray[Any] = tensor.detach().resolve_conj().resolve_neg().numpy()
    return found


def empty(inputs: Tensors, ported: Port, slots: Sequence[int], batch: Tensors = ()) -> list[Any]:
    """Tensors without values in the shapes of parameters, which follow from those of the inputs."""
    shapes = ported.shapes([tuple(t.shape) for t in inputs], slots)
    return [
        inputs[0].new_empty((*batch, *shape), dtype=dtype_of(ported, k))
        for k, shape in zip(slots, shapes, strict=True)
    ]


def tensor(value: NDArray[Any]) -> Any:
    """An array's memory as a tensor."""
    return library("torch").from_numpy(value)


def forward(ported: Port, *tensors: Any) -> Tensors:
    """The finals from the inputs."""
    return tuple(map(tensor, ported.forward([array(t) for t in tensors])))


def backward(ported: Port, *tensors: Any) -> Tensors:
    """The adjoints of `smooth_inputs` from inputs, adjoints of `smooth_outputs`, and finals."""
    inputs, seeds, finals = parts(ported, [array(t) for t in tensors])
    return tuple(map(tensor, ported.backward(inputs, finals, seeds)))
