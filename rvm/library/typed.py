"""The types used by generated stubs of programs (`rvm stubs`), for type checkers only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from rvm.derive.gradients import Pullback
from rvm.library.generic import GenericFunction
from rvm.library.handle import FunctionHandle, Inputs
from rvm.library.lane_map import LaneMap, LaneResult
from rvm.numbers import Fixed, LogNumber
from rvm.run.machine import Machine
from rvm.run.results import Result

Bool: TypeAlias = bool | np.bool_
"""The types accepted for a `bool`."""
Int: TypeAlias = int | np.integer[Any]
"""The types accepted for an integer."""
Real: TypeAlias = float | np.floating[Any] | np.integer[Any]
"""The types accepted for a real number."""
Complex: TypeAlias = complex | np.number[Any]
"""The types accepted for a complex number."""
FixedLike: TypeAlias = Real | Fixed
"""The types accepted for a fixed-point number."""
LogLike: TypeAlias = Real | LogNumber
"""The types accepted for a `log64`."""
Bytes: TypeAlias = NDArray[np.uint8] | bytes | bytearray | memoryview
"""The types accepted for an array of `u8`."""
Matrix: TypeAlias = Result
"""The blocks of a matrix, by parameter and parameter."""
Losses: TypeAlias = NDArray[np.float64]
"""The loss of each lane."""
Argument: TypeAlias = (
    Complex | Bool | FixedLike | LogLike | NDArray[Any] | Bytes | list[Any] | Mapping[str, Any]
)
"""The types accepted for a parameter of a generic function."""


class _Options(TypedDict, total=False):
    engine: Literal["auto", "reference", "python", "vector", "native"]
    tolerance: float | None
    strict: bool
    checks: bool
    bits: Literal["stated", "machine"]
    max_steps: int | None
    max_memory: int | None
    output: Callable[[str], Any] | TextIO | None
    callbacks: Mapping[str, Callable[..., Any]]
    judged_later: bool
    error: bool


class RunOptions(_Options, total=False):
    """The options of a run, `rvm.Options`, as keywords of a call."""

    on_error: Literal["back", "stop"]


class MapOptions(_Options, total=False):
    """The options of a map, as keywords of a call."""

    on_error: Literal["raise", "return"]
    block: int | None


class Values(Result):
    """A result with known names; there are no other attributes."""

    if TYPE_CHECKING:
        __getattr__: None  # type: ignore[assignment,misc]


__all__ = [
    "Argument",
    "Bool",
    "Bytes",
    "Collection",
    "Complex",
    "Fixed",
    "FixedLike",
    "FunctionHandle",
    "GenericFunction",
    "Inputs",
    "Int",
    "LaneMap",
    "LaneResult",
    "LogLike",
    "LogNumber",
    "Losses",
    "Machine",
    "MapOptions",
    "Matrix",
    "Pullback",
    "Real",
    "RunOptions",
    "Unpack",
    "Values",
]
