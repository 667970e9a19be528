"""The machine's own engines as contestants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rvm.engines import ENGINES, executing
from rvm.library.handle import FunctionHandle
from rvm_bench.contest import (
    BACK,
    FORWARD,
    GRADIENT,
    HESSIAN,
    Fresh,
    Go,
    Make,
    Peer,
    Read,
    Values,
    Workload,
    copied,
    picked,
)

PREFIX = "rvm "
NATIVE = "rvm native"
UNCHECKED = "rvm native, unchecked"
IN_PLACE = "rvm native, in place"
"""The gradient program called on the caller's own arrays, as C is; `vjp` works on copies."""
_NEEDS = {"native": "llvmlite"}


def engine_names() -> tuple[str, ...]:
    """The engines that are compared, the fastest first; `auto` is a choice among them."""
    return tuple(reversed(executing()))


def engine_peers(workload: Workload, engines: tuple[str, ...]) -> Iterator[Peer]:
    """Each engine for each task; machine code without checks, and gradients in place."""
    main = workload.main
    for task in workload.tasks:
        for engine in engines:
            options = {"engine": engine}
            make = calls(workload, task, main, **options)
            yield Peer(PREFIX + engine, task, make, _NEEDS.get(engine, ""))
            if not ENGINES[engine].unchecked:
                continue
            unchecked = {**options, "checks": False}
            if task == FORWARD:
                yield Peer(UNCHECKED, task, calls(workload, task, main, **unchecked), "llvmlite")
            elif task == GRADIENT:
                yield Peer(IN_PLACE, task, in_place(workload, main, **options), "llvmlite")
                yield Peer(UNCHECKED, task, in_place(workload, main, **unchecked), "llvmlite")


def calls(
    workload: Workload, task: str, function: Callable[[], FunctionHandle], **options: Any
) -> Make:
    """A task done by calls of a function of the machine, which has the workload's parameters."""

    def make(values: Values) -> Fresh:
        f = function().with_options(**options)
        wrt = workload.wrt
        if task == FORWARD:

            def forward() -> tuple[Go, Read]:
                given = copied(values)
                return lambda: f(**given), picked(workload.gives)

            return forward
        if task == BACK:
            ends = dict(f(**copied(values)))
            inverse = ~f

            def back() -> tuple[Go, Read]:
                given = copied(ends)
                return lambda: inverse(**given), picked(tuple(values))

            return back
        if task == HESSIAN:
            (first,) = wrt

            def second() -> tuple[Go, Read]:
                return (
                    lambda: f.hessian(dict(values), loss=workload.hessian, wrt=wrt),
                    lambda h: {"hessian": h[first][first]},
                )

            return second
        assert task == GRADIENT and workload.seeds is not None
        seeds = workload.seeds(values)

        def gradient() -> tuple[Go, Read]:
            return lambda: f.vjp(seeds, dict(values), wrt=wrt), picked(wrt)

        return gradient

    return make


def in_place(workload: Workload, function: Callable[[], FunctionHandle], **options: Any) -> Make:
    """The gradient as a program: adjoints are arguments beside the values."""

    def make(values: Values) -> Fresh:
        assert workload.seeds is not None
        f, seeds = function(), workload.seeds(values)
        library = f.gradient_program
        entry = library[library.program.entry].with_options(**options)
        bars = {name: name.removesuffix("_bar") for name in entry.parameters[len(f.parameters) :]}

        def fresh() -> tuple[Go, Read]:
            given = copied(values)
            for name, of in bars.items():
                given[name] = _adjoint(values[of], seeds.get(of))
            return (
                lambda: entry(**given),
                lambda r: {of: r[name] for name, of in bars.items() if of in workload.wrt},
            )

        return fresh

    return make


def _adjoint(value: Any, seed: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.zeros_like(value) if seed is None else np.array(seed)
    zero = 0j if isinstance(value, complex) else 0.0
    return zero if seed is None else seed
