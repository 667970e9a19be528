"""What stubs of programs are made of, as `rvm stubs` writes them: for type checkers alone."""

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
"""What a `bool` may be given as."""
Int: TypeAlias = int | np.integer[Any]
"""What an integer may be given as."""
Real: TypeAlias = float | np.floating[Any] | np.integer[Any]
"""What a real number may be given as."""
Complex: TypeAlias = complex | np.number[Any]
"""What a complex number may be given as."""
FixedLike: TypeAlias = Real | Fixed
"""What a fixed-point number may be given as."""
LogLike: TypeAlias = Real | LogNumber
"""What a `log64` may be given as."""
Bytes: TypeAlias = NDArray[np.uint8] | bytes | bytearray | memoryview
"""What an array of `u8` may be given as."""
Matrix: TypeAlias = Result
"""Blocks of a matrix by parameters, and these by parameters."""
Losses: TypeAlias = NDArray[np.float64]
"""The loss of each lane."""
Argument: TypeAlias = (
    Complex | Bool | FixedLike | LogLike | NDArray[Any] | Bytes | list[Any] | Mapping[str, Any]
)
"""What a parameter of a generic function may be given as."""


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
    """A result whose names are known: no others are attributes."""

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
