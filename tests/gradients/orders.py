"""Derivatives to the third order by every route of programs, and mpmath's of the same formula."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import mpmath

import rvm

Found = tuple[str, tuple[int, ...], float]
Wanted = Callable[[tuple[int, ...]], Any]
"""The derivative by the arguments that are listed, one after the other."""
NAMES = ("a", "b", "c")
ANCILLAS = {
    "v": "        alloc v: f64[2]\n        add v[0], a\n        add v[1], b\n",
    "k": "        alloc k: i64[2]\n        add k[0], 1\n",
}
ENDS = ("_bar", "_dot")
"""What is added to the names of adjoints and tangents."""
HESSIANS = ("taylor", "forward-over-reverse")


class Routes:
    """A function y += call(a, b), and the programs that differentiate it, each made once.

    `v` in a call is the vector of a and b, and `k` one of indices: ancillas. A `body` is given
    instead of a call where one instruction does not do.
    """

    def __init__(
        self, call: str, arity: int, engine: str = "python", body: str = "", **options: Any
    ) -> None:
        self.names = NAMES[:arity]
        given = ", ".join(f"{n}: f64" for n in self.names)
        ancillas = [text for name, text in ANCILLAS.items() if re.search(rf"\b{name}\b", call)]
        body = body or f"    add y, {call}\n"
        if ancillas:
            made = "".join(ancillas)
            body = f"    routine made\n{made}    end\n{body}    undo made\n"
        bars, dots = (", ".join(f"{n}{suffix}: f64" for n in ("y", *self.names)) for suffix in ENDS)
        plain = ", ".join(self.names)
        library = rvm.assemble(f"""
func f(y: f64, {given})
{body}
func backwards({given}, {bars})
    call f'(0.0, {plain}; {bars.replace(": f64", "")})

func forwards(y: f64, {given}, {dots})
    call f.(y, {plain}; {dots.replace(": f64", "")})
""")
        f = library.f
        self.backwards, self.forwards = (
            library[n].with_options(engine=engine, **options) for n in ("backwards", "forwards")
        )
        handles = [f.with_options(engine=engine, **options)]
        for _ in range(3):
            program = handles[-1].gradient_program
            handles.append(program[program.program.entry].with_options(engine=engine, **options))
        self.f, *self.gradients = handles

    def inputs(self, suffix: str, values: Sequence[float]) -> dict[str, Any]:
        """The arguments a and b, or with a suffix their adjoints."""
        return {f"{n}{suffix}": v for n, v in zip(self.names, values, strict=True)}

    def unit(self, k: int, suffix: str = "") -> dict[str, Any]:
        return self.inputs(suffix, [float(j == k) for j in range(len(self.names))])

    def _second(self, f: Any, method: str, loss: str, at: Mapping[str, Any]) -> Iterator[Any]:
        h = f.hessian(loss=loss, wrt=list(self.names), method=method, y=0.0, **at)
        for j, one in enumerate(self.names):
            for k, other in enumerate(self.names):
                yield (j, k), h[one][other]

    def first(self, at: dict[str, Any]) -> Iterator[Found]:
        found = self.f.grad(loss="y", y=0.0, **at)
        for i in range(len(self.names)):
            yield "gradient", (i,), found[self.names[i]]
            yield "tangent", (i,), self.f.jvp({self.names[i]: 1.0}, y=0.0, **at)[1]["y"]
            dots = {"y": 0.0, "y_dot": 0.0, **at, **self.unit(i, "_dot")}
            yield "call f.", (i,), self.forwards(**dots)["y_dot"]
        found = self.backwards(**self._barred(at))
        for i in range(len(self.names)):
            yield "call f'", (i,), found[f"{self.names[i]}_bar"]

    def second(self, at: dict[str, Any]) -> Iterator[Found]:
        for method in HESSIANS:
            for by, got in self._second(self.f, method, "y", at):
                yield method, by, got
        for i in range(len(self.names)):
            found = self._called(2, at, self.unit(i, "_bar_bar"))
            for j in range(len(self.names)):
                yield "gradient twice", (i, j), found[f"{self.names[j]}_bar_"]
        barred = self._barred(at)
        for i in range(len(self.names)):
            along = {self.names[i]: 1.0}
            found = self.gradients[0].jvp(along, {"y": 0.0, **barred})[1]
            for j in range(len(self.names)):
                yield "tangent of the gradient", (i, j), found[f"{self.names[j]}_bar"]
        for i in range(len(self.names)):
            found = self.backwards.jvp({self.names[i]: 1.0}, barred)[1]
            for j in range(len(self.names)):
                yield "tangent of call f'", (i, j), found[f"{self.names[j]}_bar"]
        for i in range(len(self.names)):
            for j in range(len(self.names)):
                dots = {"y": 0.0, "y_dot": 0.0, **at, **self.unit(j, "_dot")}
                found = self.forwards.jvp({self.names[i]: 1.0}, dots)[1]
                yield "tangent of call f.", (i, j), found["y_dot"]

    def third(self, at: dict[str, Any]) -> Iterator[Found]:
        count = len(self.names)
        with_bars = self._barred(at)
        for method in HESSIANS:
            for i in range(count):
                loss = f"{self.names[i]}_bar"
                for by, got in self._second(self.gradients[0], method, loss, with_bars):
                    yield f"{method} of the gradient", (i, *by), got
        for i in range(count):
            for j in range(count):
                seeds = {**self.unit(i, "_bar_bar"), **self.unit(j, "_bar__bar")}
                found = self._called(3, at, seeds)
                for k in range(count):
                    yield "gradient thrice", (i, j, k), found[f"{self.names[k]}_bar__"]

    def _barred(self, at: Mapping[str, Any]) -> dict[str, Any]:
        """Inputs with adjoints before a gradient."""
        return {"y_bar": 1.0, **at, **self.inputs("_bar", [0.0] * len(self.names))}

    def _called(self, times: int, at: Mapping[str, Any], seeds: Mapping[str, Any]) -> Any:
        """A gradient's gradient, called by hand, with `seeds` for what is differentiated."""
        f = self.gradients[times - 1]
        function = f.program.function(f.name)
        inputs = {r.name: 0.0 for r in function.registers[: function.n_args]}
        return f(**{**inputs, "y_bar": 1.0, **at, **seeds})


def tried(
    routes: Routes, at: Sequence[float], orders: Sequence[int], wanted: Wanted, most: float
) -> Iterator[tuple[int, str, tuple[int, ...], float, Any]]:
    """The order, route, arguments, value found and value wanted.

    None of an order where values are not back after infinite ones, which nothing takes away again:
    of derivatives beyond `most`.
    """
    point = routes.inputs("", at)
    beyond = False
    for order in orders:
        by = list(combinations_with_replacement(range(len(routes.names)), order))
        want = {which: wanted(which) for which in by}
        if any(mpmath.isnan(w) for w in want.values()):
            return
        beyond |= any(abs(w) > most for w in want.values())
        try:
            for route, which, got in (routes.first, routes.second, routes.third)[order - 1](point):
                yield order, route, which, got, want[tuple(sorted(which))]
        except rvm.InvertibilityError as error:
            if error.code not in ("R001", "R017") or not beyond:
                raise
