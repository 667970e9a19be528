"""Gradients of random smooth programs: engines agree, tangents agree, inputs stay as they were."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attack.cases import Broken, InputKind
from attack.kinds.programs import read, written
from attack.reduction import LINES
from attack.runs import INTERPRETED, bits
from rvm.library.handle import FunctionHandle
from rvm.verify import findings

LOSSES = ("x2", "q0", "g0", "p.m", "w")
_NEAR = 1e-6
"""How far an inner product of a gradient may be from the tangent, relative to their size."""
_STEADY = 1e-12
"""How far a run may come back from its start, if its derivatives are to be compared."""


def _make(rng: random.Random) -> bytes:
    """A program that can be differentiated; on a tenth of them machine code as well."""
    flags = [f"loss{rng.randrange(len(LOSSES))}"] + ["native"] * (rng.random() < 0.1)
    return written("smooth", rng.randrange(10**9), *flags)


def _attack(data: bytes, folder: Path) -> bool:
    """Differentiate a program on several engines, and along a direction."""
    found = read(data)
    loss = next(LOSSES[int(k[4:])] for k in found.flags if k.startswith("loss"))
    f, inputs = FunctionHandle(found.program, "main"), found.inputs()
    derived = f.target.gradient_program
    if findings(derived):
        raise Broken("the gradient of a sound program is not sound")
    before = bits(inputs)
    engines = list(INTERPRETED)
    if "native" in found.flags:
        engines.append("native")
    wanted: Any = None
    gradient: Any = None
    for engine in engines:
        value, gradient = f.with_options(engine=engine).value_and_grad(loss=loss, **inputs)
        seen = (repr(value), bits(gradient))
        wanted = wanted or seen
        if seen != wanted:
            raise Broken(f"the gradient on {engine} is not that on {engines[0]}", repr(gradient))
        if bits(inputs) != before:
            raise Broken(f"a gradient on {engine} changes its inputs")
    if _steady(f, inputs):
        _along(f, inputs, loss, gradient, np.random.default_rng(found.seed))
    return True


def _steady(f: FunctionHandle, inputs: Mapping[str, Any]) -> bool:
    """Whether a run comes back almost to where it began, so that rounding does not grow on it."""
    pull = f.pullback(**inputs)
    pull(check=False)
    for begun, ended in zip(pull.start, pull.machine.state.frames[0].regs, strict=False):
        if isinstance(begun, (float, complex, np.ndarray)):
            off = np.abs(np.subtract(ended, begun)) / np.maximum(np.abs(begun), 1.0)
            if not np.all(off <= _STEADY):
                return False
    return True


def _along(
    f: FunctionHandle,
    inputs: Mapping[str, Any],
    loss: str,
    gradient: Mapping[str, Any],
    rng: np.random.Generator,
) -> None:
    """Raise Broken unless a gradient times a direction is the loss's tangent along it."""
    way = _drawn(gradient, rng)
    _, tangents = f.jvp(way, dict(inputs))
    found: Any = tangents
    for name in loss.split("."):
        found = found[name]
    wanted = _dot(gradient, way)
    size = (_dot(gradient, gradient) * _dot(way, way)) ** 0.5
    if not np.isfinite(size) or size > 1e12:
        return
    if not abs(found - wanted) <= _NEAR * max(1.0, size):
        raise Broken("a tangent is not the gradient times its direction", f"{found}, {wanted}")


def _drawn(like: Any, rng: np.random.Generator) -> Any:
    """Random derivatives in the shape of others."""
    if isinstance(like, Mapping):
        return {k: _drawn(v, rng) for k, v in like.items()}
    if isinstance(like, list):
        return [_drawn(v, rng) for v in like]
    x = rng.normal(size=np.shape(like))
    if np.iscomplexobj(like):
        x = x + 1j * rng.normal(size=np.shape(like))
    return x if isinstance(like, np.ndarray) else x.item() if np.ndim(x) == 0 else x


def _dot(one: Any, two: Any) -> float:
    """The inner product: the sum of Re(conj(a) b) over all numbers."""
    if isinstance(one, Mapping):
        return float(sum(_dot(one[k], two[k]) for k in one))
    if isinstance(one, list):
        return float(sum(map(_dot, one, two)))
    return float(np.sum(np.real(np.conj(one) * two)))


KIND = InputKind(
    "gradients", "gradients of random programs", ".rasm", _make, _attack, (LINES,), share=0.5
)
