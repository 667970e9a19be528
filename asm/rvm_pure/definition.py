"""Definitions, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from rvm_asm.nodes import Word

from rvm_pure.terms import Term
from rvm_pure.types import Type


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a definition."""

    name: str
    type: Type
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Definition:
    """`def name(params) = term`."""

    name: Word
    params: tuple[Param, ...]
    body: Term
    block: bool = False
    """Whether the body is written as lines, each of which names a value."""
    continuation: tuple[str, ...] = ()
    """A continuation's name, and the variables whose adjoints it takes: `Y(x, A)`."""
