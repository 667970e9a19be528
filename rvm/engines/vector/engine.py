"""The vector engine: the python engine's source, with loops as NumPy operations on slices."""

from __future__ import annotations

from rvm.engines.python import Compiled, Python
from rvm.engines.vector.source import VectorSource
from rvm.host.once import once
from rvm.image import Code
from rvm.state import State

FIRST_TICKS = 500_000


class VectorCompiled(Compiled):
    """A code's generated source, with vectorised loops, compiled."""

    source_type = VectorSource
    source: VectorSource


class Vector(Python):
    """Generated source, whose loops do many iterations at once where they are independent."""

    name = "vector"

    def first_chunk(self, state: State) -> int:
        """Ordinary code does so many in a twentieth of a second; loops do not want to be cut."""
        return FIRST_TICKS

    @staticmethod
    def find(code: Code, strict: int) -> Compiled:
        return vector_of(code, strict)


def vector_of(code: Code, strict: int = 0) -> VectorCompiled:
    """The compiled source of a code, made at first use."""
    key = ("vector", strict)
    return once(code.compiled, key, VectorCompiled, lambda: VectorCompiled(code, strict))
