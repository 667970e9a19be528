"""Rules of differentiation that are the same in every framework.

A port has three functions: `forward`, its pullback `backward`, and the same of its
tangent.  These are closed under differentiation: see `curve`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rvm.interop.port import Port

Values = tuple[Any, ...]
Ported = Callable[..., Any]


def parts(ported: Port, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The arguments of `backward`, taken apart."""
    n = len(ported.inputs)
    m = n + len(ported.smooth_outputs)
    return list(values[:n]), list(values[n:m]), list(values[m:])


def smooth(ported: Port, slots: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Those of the values of parameters that belong to parameters with derivatives."""
    return [v for k, v in zip(slots, values, strict=True) if k in ported.bars]


def by_input(ported: Port, found: Sequence[Any]) -> list[Any]:
    """The results for the smooth inputs, with None in between for the others."""
    known = dict(zip(ported.smooth_inputs, found, strict=True))
    return [known.get(k) for k in ported.inputs]


def curve(
    ported: Port,
    run: Ported,
    back: Ported,
    values: Sequence[Any],
    dots: Sequence[Any],
    seed_dots: Iterable[Any],
) -> tuple[Values, Values]:
    """The derivatives of `backward` and of the outputs along tangents of inputs and seeds.

    The adjoint of x is the gradient of L = seeds · outputs.  Its change along (dots, seed_dots) is
    the gradient of L's tangent, seed_dots · outputs + seeds · (tangents of outputs).  And as second
    derivatives are symmetric, its change along dots is also its pullback with them as adjoints.
    """
    inputs, seeds, _ = parts(ported, values)
    tangent = ported.tangent
    both = [*inputs, *dots]
    finals = run(tangent, *both)
    found = back(tangent, *both, *seed_dots, *seeds, *finals)
    n = len(ported.outputs)
    return found[: len(dots)], finals[n : n + len(seeds)]


def describe(call: Any, ported: Port, name: str, arrays: str) -> None:
    """Give a callable on arrays of some kind its name and signature."""
    given, made = (
        ", ".join(f"{ported.name(k)}: {ported.type_text(k)}" for k in slots)
        for slots in (ported.inputs, ported.outputs)
    )
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"({given}) -> ({made}), on {arrays}."
