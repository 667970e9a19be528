"""What the examples here share: programs by name, gradients with their costs, tables of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import rvm
from rvm.library.handle import FunctionHandle
from rvm.run.binding import Result

HERE = Path(__file__).parent
EXAMPLES = HERE.parent
PICTURES = EXAMPLES.parent / "docs" / "pictures"


@cache
def program(name: str) -> rvm.Library:
    """The program `name.rasm`, from here or from the folder of all examples."""
    here = HERE / f"{name}.rasm"
    return rvm.load(here if here.exists() else EXAMPLES / f"{name}.rasm")


@dataclass(frozen=True, slots=True)
class Gradient:
    """A loss, its gradient, and what they cost."""

    loss: float
    grad: Result
    """The adjoints of the parameters, by name."""
    result: Result
    """The parameters after the function, before it was undone."""
    function_ticks: int
    ticks: int
    """Those of the function, and of the run back with adjoints."""
    bytes: int
    """The most that was alive at once on the way back."""

    @property
    def ratio(self) -> float:
        """Ticks of function and gradient over those of the function alone."""
        return self.ticks / self.function_ticks


def differentiate(f: FunctionHandle, loss: str | Mapping[str, Any], **inputs: Any) -> Gradient:
    """A gradient with its costs: `f.value_and_grad`, or `f.vjp`.

    `loss` is a scalar place of the results, or adjoints of them, which make a weighted sum.
    """
    pull = f.pullback(**inputs)
    function_ticks, result = pull.ticks, frozen(pull.result)
    if isinstance(loss, str):
        value = pull.value(loss)
        pull.seed(loss)
    else:
        value = float(sum(np.sum(np.multiply(g, result[k])) for k, g in loss.items()))
        pull.seed_all(loss)
    grad = pull()
    peak = pull.machine.state.account.peak_bytes
    return Gradient(value, grad, result, function_ticks, pull.ticks, peak)


def frozen(values: Any) -> Any:
    """A copy, which later runs do not change."""
    if isinstance(values, Result):
        return Result({k: frozen(v) for k, v in values.items()})
    if isinstance(values, dict):
        return {k: frozen(v) for k, v in values.items()}
    return values.copy() if isinstance(values, np.ndarray) else values


def hessian(f: FunctionHandle, loss: str, wrt: str, **inputs: Any) -> np.ndarray:
    """The second derivatives of a loss by one parameter, as a square matrix."""
    size = int(np.prod(np.shape(inputs[wrt])))
    return np.reshape(f.hessian(loss=loss, wrt=[wrt], **inputs)[wrt][wrt], (size, size))


def error(got: Any, expected: Any) -> float:
    """The greatest difference, over the greatest expected number."""
    got, expected = np.asarray(got), np.asarray(expected)
    return float(np.max(np.abs(got - expected)) / (np.max(np.abs(expected)) or 1.0))


def central(f: Any, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences of a scalar function of an array."""
    out = np.empty(x.shape)
    for k in np.ndindex(x.shape):
        d = np.zeros(x.shape)
        d[k] = step
        out[k] = (f(x + d) - f(x - d)) / (2 * step)
    return out


def complex_step(f: Any, x: np.ndarray, step: float = 1e-30) -> np.ndarray:
    """The gradient of an analytic function written in NumPy, exact but for rounding.

    It is Im f(x + i h) / h, without a difference that could cancel.
    Source: W. Squire and G. Trapp, "Using Complex Variables to Estimate Derivatives of Real
    Functions", SIAM Review 40 (1998).
    """
    out = np.empty(x.shape)
    for k in np.ndindex(x.shape):
        z = x.astype(complex)
        z[k] += step * 1j
        out[k] = f(z).imag / step
    return out


def adam(
    values: Mapping[str, np.ndarray],
    grads: Mapping[str, np.ndarray],
    moments: dict[str, Any],
    step: int,
    rate: float,
) -> dict[str, np.ndarray]:
    """Parameters after one step (from 1) downhill; `moments`, empty at first, is kept up to date.

    Source: D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization" (2014).
    """
    out = {}
    for name, g in grads.items():
        m, v = moments.get(name, (0.0, 0.0))
        m, v = moments[name] = (0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g)
        scale = np.sqrt(v / (1 - 0.999**step)) + 1e-8
        out[name] = values[name] - rate * m / (1 - 0.9**step) / scale
    return out


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as lines with aligned columns: texts to the left, numbers to the right."""
    rows = [list(row) for row in rows]
    cells = [list(header), *[[show(v) for v in row] for row in rows]]
    widths = [max(len(line[k]) for line in cells) for k in range(len(header))]
    left = [all(isinstance(row[k], str) for row in rows) for k in range(len(header))]
    lines = (
        "  ".join(v.ljust(w) if a else v.rjust(w)
                  for v, w, a in zip(line, widths, left, strict=True))
        for line in cells
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in lines)


def show(value: Any) -> str:
    """A number in as many digits as its kind wants."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (complex, np.complexfloating)):
        return f"{value.real:.10g}{value.imag:+.10g}j"
    return f"{value:.10g}" if abs(value) > 1e-7 else f"{value:.1e}" if value else "0"


def costs(g: Gradient) -> str:
    """A line on the costs of a gradient."""
    return (
        f"ticks: function {g.function_ticks:,}, with gradient {g.ticks:,} "
        f"({g.ratio:.2f} times), at most {g.bytes:,} bytes alive"
    )
