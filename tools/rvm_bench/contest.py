"""Workloads and contestants: the timed code, its preparation, and the expected results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from rvm.library.handle import FunctionHandle

WORK = Path(__file__).parent / "work"
"""The folder of the programs, `name.rasm` and `name.c`."""
FORWARD, BACK, GRADIENT, HESSIAN = TASKS = ("forward", "back", "gradient", "hessian")
_COMPILERS = ("cc", "gcc", "clang")

Values = Mapping[str, Any]
Go = Callable[[], Any]
"""The code that is timed."""
Read = Callable[[Any], Values]
"""A function from the result of the timed code to numbers by name."""
Fresh = Callable[[], tuple[Go, Read]]
"""Makes all ready for one run on fresh data."""
Make = Callable[[Values], Fresh]
"""A function that takes inputs, and compiles and converts everything that is needed only once."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One who does a task of a workload.

    `needs`: a module, or "cc" for a C compiler, without which it is left out.  `slow`: only in
    full runs, since it compiles for long.
    """

    name: str
    task: str
    make: Make
    needs: str = ""
    slow: bool = False

    @property
    def there(self) -> bool:
        """Whether its requirements are installed."""
        return _there(self.needs)


@cache
def _there(needs: str) -> bool:
    if needs == "cc":
        return compiler() is not None
    return not needs or find_spec(needs) is not None


def compiler() -> str | None:
    """The system's C compiler."""
    return next((path for name in _COMPILERS if (path := which(name))), None)


@dataclass(frozen=True, slots=True)
class Workload:
    """Something to compute: a program `name.rasm` with the function `main`, and peers.

    `sizes` ascend; every peer is checked at the first and timed at the largest that it does within
    the limit.  `work(n)` counts a size's units, each a `unit`.  `gives` names the results that
    are compared; `seeds` gives adjoints of results, and `wrt` the inputs whose adjoints are
    compared.  `hessian` names a loss whose second derivatives by `wrt[0]` are a task too.
    """

    name: str
    doc: str
    unit: str
    sizes: tuple[int, ...]
    inputs: Callable[[int], Values]
    gives: tuple[str, ...]
    peers: tuple[Peer, ...] = ()
    seeds: Callable[[Values], Values] | None = None
    wrt: tuple[str, ...] = ()
    hessian: str = ""
    work: Callable[[int], int] = field(default=int)
    core: bool = True
    """Whether it is measured by default."""
    program: str = ""
    """The file of the program and its function, "fronts.rasm:dot", if not `name.rasm:main`."""
    engines: tuple[str, ...] | None = None
    """The engines that run the program; all if None."""
    has_back: bool = True
    """Whether running back is a task."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables with which it is measured, in a process of its own."""

    def main(self) -> FunctionHandle:
        """The program's function."""
        return _function(self.program or f"{self.name}.rasm:main")

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it has."""
        return (
            FORWARD,
            *((BACK,) if self.has_back else ()),
            *((GRADIENT,) if self.seeds else ()),
            *((HESSIAN,) if self.hessian else ()),
        )


@cache
def _function(program: str) -> FunctionHandle:
    from rvm import load

    file, name = program.split(":")
    return load(WORK / file)[name]


def copied(values: Values) -> dict[str, Any]:
    """The same values, arrays as copies."""
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def picked(names: tuple[str, ...]) -> Callable[[Any], dict[str, Any]]:
    """A reader of results by name."""
    return lambda result: {name: result[name] for name in names}
