"""Losses for `scipy.optimize.minimize`, with gradient and Hessian.

    goal = objective(program.loss, "y", "x", x=start)
    found = minimize(goal.fun, goal.x0, jac=True, hess=goal.hess, method="trust-exact")
    best = goal.unpack(found.x)["x"]

SciPy itself is not needed to make one: it calls these functions with NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rvm.codes.words import with_article
from rvm.derive.places import Named, find_place
from rvm.faults import InputError, UsageError
from rvm.interop.port import Port, checked, handle_of, paths, port
from rvm.library.handle import FunctionHandle
from rvm.library.reversible import Adding
from rvm.run.binding import held
from rvm.types import F64, Array, elem_of

Vector = NDArray[np.float64]


def objective(
    f: FunctionHandle | Adding, loss: str, wrt: str | Sequence[str], /, **inputs: Any
) -> Objective:
    """A function's result `loss` as a function of the parameters `wrt`, joined in one vector.

    `loss` is a real scalar place: `y`, `r[2]`, `z.re`.  `wrt` are f64 or c128 parameters (a complex
    number is two elements of the vector).  `inputs` has their start values, which tell their
    shapes and make `x0`; a single parameter of one dimension may go without.  Other parameters
    are fixed at the values in `inputs`, or start from zeros.

    UsageError U008 for names and types that do not fit, InputError for values that do not.
    """
    f = handle_of(f)
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    place = find_place(f.function, loss)
    output = list(paths(f.function))[place.slot]
    ported = port(f, names, [output], {k: v for k, v in inputs.items() if k not in names})
    t = elem_of(ported.function.registers[place.slot].type)
    if not (t.is_float or (t.is_complex and place.part)):
        raise InputError(
            "I008",
            f"`{loss}` is not a real number: it is {with_article(t)}",
            hint=f"`{loss}.re` or `{loss}.im`" if t.is_complex else "",
        )
    return Objective(ported, place, {k: inputs[k] for k in names if k in inputs})


class Objective:
    """A loss as SciPy takes it: `fun` (with `jac=True`), `hess` or `hessp`, and a start `x0`.

    The run at the last vector is kept, so that a gradient after its value repeats nothing.
    """

    def __init__(self, ported: Port, loss: Named, start: Mapping[str, Any]) -> None:
        self._port = ported
        self._loss = loss
        self._shapes: list[tuple[int, ...]] | None = None
        self._start: list[NDArray[Any]] = []
        self._last: tuple[bytes, list[NDArray[Any]], list[NDArray[Any]]] | None = None
        for k in ported.inputs:
            name, dtype = ported.name(k), ported.dtype(k)
            if dtype not in (np.float64, np.complex128):
                raise UsageError(
                    "U008",
                    f"`{name}` is {with_article(ported.type_text(k))}: "
                    "SciPy varies f64 (and pairs, c128)",
                    hint="fix it at a value",
                )
            if name in start:
                value = checked(ported.function, k, name, start[name])
                self._start.append(np.asarray(value, dtype))
            elif len(ported.inputs) > 1 or ported.rank(k) != 1:
                raise UsageError(
                    "U008",
                    f"`{name}` is {with_article(ported.type_text(k))}, "
                    "and a vector does not tell its shape",
                    hint=f"give it a start value: {name}=…",
                )
        if self._start:
            self._shapes = [v.shape for v in self._start]
            ported.shapes(self._shapes, ())

    @property
    def x0(self) -> Vector:
        """The start values as one vector; UsageError U008 if there are none."""
        if not self._start:
            name = self._port.name(self._port.inputs[0])
            raise UsageError(
                "U008", f"no start value was given for `{name}`", hint=f"objective(…, {name}=…)"
            )
        return self._join(self._start)

    def pack(self, **values: Any) -> Vector:
        """Values of the varied parameters as one vector."""
        port, arrays = self._port, []
        for k in port.inputs:
            name = port.name(k)
            if name not in values:
                raise InputError("I001", f"a value for `{name}` is needed")
            t = Array(elem_of(port.function.registers[k].type), port.rank(k))
            arrays.append(held(t, name, values.pop(name), with_article(port.type_text(k))))
        for name in values:
            raise InputError("I002", f"`{name}` is not varied")
        port.shapes([v.shape for v in arrays], ())
        for k, value, shape in zip(port.inputs, arrays, self._shapes or (), strict=False):
            if value.shape != shape:
                raise InputError(
                    "I004",
                    f"`{port.name(k)}` has the shape {list(shape)} of its start value, "
                    f"not {list(value.shape)}",
                )
        return self._join(arrays)

    def unpack(self, x: ArrayLike) -> dict[str, Any]:
        """The varied parameters by name, in their shapes, from one vector."""
        parts = self._split(x)
        return {
            self._port.name(k): v if v.ndim else v.item()
            for k, v in zip(self._port.inputs, parts, strict=True)
        }

    def _join(self, arrays: Sequence[NDArray[Any]]) -> Vector:
        parts = (
            np.ascontiguousarray(v, self._port.dtype(k)).reshape(-1).view(np.float64)
            for k, v in zip(self._port.inputs, arrays, strict=True)
        )
        return np.concatenate(list(parts))

    def _split(self, x: ArrayLike) -> list[NDArray[Any]]:
        # A copy: optimizers go on with their vector in place, and the last run is kept.
        vector = held(Array(F64, 1), "x", x, "a vector of f64").flatten()
        dtypes = [self._port.dtype(k) for k in self._port.inputs]
        # Without start values there is one parameter, of one dimension and any length.
        shapes = self._shapes or [(len(vector) // (dtypes[0].itemsize // 8),)]
        sizes = [prod(s) * (t.itemsize // 8) for s, t in zip(shapes, dtypes, strict=True)]
        if sum(sizes) != len(vector):
            raise InputError(
                "I004", f"the vector must have {sum(sizes)} elements, not {len(vector)}"
            )
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        return [v.view(t).reshape(s) for v, t, s in zip(parts, dtypes, shapes, strict=True)]

    # ------------------------------------------------------------ what SciPy calls

    def value(self, x: ArrayLike) -> float:
        """The loss."""
        _, finals = self._run(x)
        found = finals[0][self._loss.index]
        return float(found.imag if self._loss.part == "im" else found.real)

    def grad(self, x: ArrayLike) -> Vector:
        """The gradient."""
        inputs, finals = self._run(x)
        found = self._port.backward(inputs, finals, [self._seed(finals[0])])
        return self._join(found)

    def fun(self, x: ArrayLike) -> tuple[float, Vector]:
        """The loss and its gradient, for `minimize(…, jac=True)`."""
        return self.value(x), self.grad(x)

    def hessp(self, x: ArrayLike, p: ArrayLike) -> Vector:
        """The Hessian times a direction: the gradient of the loss's tangent along it."""
        inputs, finals = self._run(x)
        seed, tangent = self._seed(finals[0]), self._port.tangent
        both = [*inputs, *self._split(p)]
        found = tangent.backward(both, tangent.forward(both), [np.zeros_like(seed), seed])
        return self._join(found[: len(inputs)])

    def hess(self, x: ArrayLike) -> NDArray[np.float64]:
        """The Hessian: a run for each direction, made symmetric."""
        n = np.size(np.asarray(x))
        full = np.array([self.hessp(x, e) for e in np.eye(n)]).reshape(n, n)
        symmetric: NDArray[np.float64] = (full + full.T) / 2
        return symmetric

    def _run(self, x: ArrayLike) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        inputs = self._split(x)
        key = b"".join(v.tobytes() for v in inputs)
        # Read once: another thread may replace it at any time.
        last = self._last
        if last is None or last[0] != key:
            finals = self._port.forward(inputs)
            shape = finals[0].shape
            if any(i >= n for i, n in zip(self._loss.index, shape, strict=True)):
                at = ", ".join(map(str, self._loss.index))
                name = self._port.name(self._loss.slot)
                raise InputError(
                    "I008", f"`{name}[{at}]` is outside the array", values={"shape": list(shape)}
                )
            self._last = last = (key, inputs, finals)
        return last[1], last[2]

    def _seed(self, final: NDArray[Any]) -> NDArray[Any]:
        """The adjoint of the loss: one at its place."""
        seed = np.zeros_like(final)
        seed[self._loss.index] = 1j if self._loss.part == "im" else 1.0
        return seed
