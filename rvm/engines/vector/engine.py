"""The vector engine: the python engine's source, with loops as NumPy operations on slices."""

from __future__ import annotations

from rvm.engines.python import Compiled, Python, compiled_of
from rvm.engines.vector.source import VectorSource
from rvm.image import Code
from rvm.state import State

FIRST_TICKS = 500_000


class Vector(Python):
    """Generated source, whose loops do many iterations at once where they are independent."""

    name = "vector"
    source_type = VectorSource

    def first_chunk(self, state: State) -> int:
        """The ticks of ordinary code in a twentieth of a second; loops should not be cut."""
        return FIRST_TICKS


def vector_of(code: Code, strict: int = 0) -> Compiled[VectorSource]:
    """The compiled source of a code, made at first use."""
    return compiled_of(code, strict, VectorSource)
