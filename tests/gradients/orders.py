"""Derivatives to the third order by every route of programs, and mpmath's of the same formula."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import mpmath
import numpy as np

import rvm
from rvm.types import Array

Found = tuple[str, tuple[int, ...], float]
Wanted = Callable[[tuple[int, ...]], Any]
"""The derivative by the arguments that are listed, one after the other."""
NAMES = ("a", "b")
HESSIANS = ("taylor", "forward-over-reverse")


class Routes:
    """A function y += call(a, b), and the programs that differentiate it, each made once.

    `v` in a call is the vector of a and b in their place, `k` one of indices.
    """

    def __init__(self, call: str, arity: int, engine: str = "python") -> None:
        self.names = NAMES[:arity]
        self.vector = bool(re.search(r"\bv\b", call))
        given = ["v: f64[n]"] if self.vector else [f"{n}: f64" for n in self.names]
        self.more: dict[str, Any] = {}
        if re.search(r"\bk\b", call):
            given.append("k: i64[m]")
            self.more = {"k": np.array([1, 0])}
        f = rvm.assemble(f"func f(y: f64, {', '.join(given)})\n    add y, {call}\n").f
        handles = [f.with_options(engine=engine)]
        for _ in range(3):
            program = handles[-1].gradient_program
            handles.append(program[program.program.entry].with_options(engine=engine))
        self.f, *self.gradients = handles

    def inputs(self, suffix: str, values: Sequence[float]) -> dict[str, Any]:
        """The arguments a and b, or with a suffix their adjoints."""
        if self.vector:
            return {f"v{suffix}": np.array(values, float)}
        return {f"{n}{suffix}": v for n, v in zip(self.names, values, strict=True)}

    def unit(self, k: int, suffix: str = "") -> dict[str, Any]:
        return self.inputs(suffix, [float(j == k) for j in range(len(self.names))])

    def of(self, found: Any, k: int, suffix: str = "") -> Any:
        """What belongs to the argument of a number."""
        return found[f"v{suffix}"][k] if self.vector else found[f"{self.names[k]}{suffix}"]

    def _second(self, f: Any, method: str, loss: str, at: Mapping[str, Any]) -> Iterator[Any]:
        wrt = ["v"] if self.vector else list(self.names)
        h = f.hessian(loss=loss, wrt=wrt, method=method, y=0.0, **at, **self.more)
        for j in range(len(self.names)):
            for k in range(len(self.names)):
                both = h.v.v[j, k] if self.vector else h[self.names[j]][self.names[k]]
                yield (j, k), both

    def first(self, at: dict[str, Any]) -> Iterator[Found]:
        found = self.f.grad(loss="y", y=0.0, **at, **self.more)
        for i in range(len(self.names)):
            yield "gradient", (i,), self.of(found, i)
            dots = {n: d for n, d in self.unit(i).items() if self.vector or d}
            yield "tangent", (i,), self.f.jvp(dots, y=0.0, **at, **self.more)[1]["y"]

    def second(self, at: dict[str, Any]) -> Iterator[Found]:
        for method in HESSIANS:
            for by, got in self._second(self.f, method, "y", at):
                yield method, by, got
        for i in range(len(self.names)):
            found = self._called(2, at, self.unit(i, "_bar_bar"))
            for j in range(len(self.names)):
                yield "gradient twice", (i, j), self.of(found, j, "_bar_")

    def third(self, at: dict[str, Any]) -> Iterator[Found]:
        count = len(self.names)
        with_bars = {"y_bar": 1.0, **at, **self.inputs("_bar", [0.0] * count)}
        for method in HESSIANS:
            for i in range(count):
                loss = f"v_bar[{i}]" if self.vector else f"{self.names[i]}_bar"
                for by, got in self._second(self.gradients[0], method, loss, with_bars):
                    yield f"{method} of the gradient", (i, *by), got
        for i in range(count):
            for j in range(count):
                seeds = {**self.unit(i, "_bar_bar"), **self.unit(j, "_bar__bar")}
                found = self._called(3, at, seeds)
                for k in range(count):
                    yield "gradient thrice", (i, j, k), self.of(found, k, "_bar__")

    def _called(self, times: int, at: Mapping[str, Any], seeds: Mapping[str, Any]) -> Any:
        """A gradient's gradient, called by hand, with `seeds` for what is differentiated."""
        f = self.gradients[times - 1]
        function = f.program.function(f.name)
        inputs: dict[str, Any] = {
            r.name: np.zeros(2) if isinstance(r.type, Array) else 0.0
            for r in function.registers[: function.n_args]
        }
        return f(**{**inputs, "y_bar": 1.0, **at, **self.more, **seeds})


def tried(
    routes: Routes, at: Sequence[float], orders: Sequence[int], wanted: Wanted, most: float
) -> Iterator[tuple[int, str, tuple[int, ...], float, Any]]:
    """The order, route, arguments, value found and value wanted; none beyond `most`."""
    point = routes.inputs("", at)
    for order in orders:
        by = list(combinations_with_replacement(range(len(routes.names)), order))
        want = {which: wanted(which) for which in by}
        if any(mpmath.isnan(w) or abs(w) > most for w in want.values()):
            return
        for route, which, got in (routes.first, routes.second, routes.third)[order - 1](point):
            yield order, route, which, got, want[tuple(sorted(which))]
