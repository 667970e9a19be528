"""The locations of values: variables, array elements, memory behind a pointer; array views."""

from __future__ import annotations

from dataclasses import dataclass

from rvm.ir.node import BIT, F32, F64, I8, I32, I64, PTR, Node, Var
from rvm.numbers import system
from rvm.types import Scalar

KINDS = {"i1": BIT, "float": F32, "double": F64, "ptr": PTR}
KINDS |= {k: k for k in (I8, "i16", I32, I64, "i128")}
"""Kinds by LLVM's types."""


LONGEST = 1 << 47
"""The most elements that an array has: more would not fit into the memory of a process."""


def kind_of(t: Scalar) -> str:
    """The kind of a value (of each part, for a complex number)."""
    return KINDS[t.row.llvm]


def kinds_of(t: Scalar) -> tuple[str, ...]:
    """The kinds of the variables that hold a scalar."""
    return (kind_of(t),) * t.parts


def item_size(t: Scalar) -> int:
    """The bytes of an element in memory."""
    return int(system(t).dtype.itemsize)


@dataclass(frozen=True, slots=True)
class Variables:
    """A scalar in variables: one, or one for each part of a complex number; or `part` of one."""

    parts: tuple[Var, ...]
    type: Scalar
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array register (or, with `part`, one part of it), by its indices."""

    reg: int
    at: tuple[Node, ...]
    type: Scalar
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Behind:
    """A scalar behind pointers: one, or one for each part of a complex number."""

    pointers: tuple[Node, ...]
    type: Scalar


Location = Variables | Element | Behind


@dataclass(frozen=True, slots=True)
class View:
    """An array register, or a part of it.

    `bases` are added to the indices of the register's axes (None: nothing), `axes` gives the
    register's axis for each axis of the view, with `steps` (None: 1); `dims` are the view's
    lengths.
    """

    reg: int
    elem: Scalar
    bases: tuple[Node | None, ...]
    axes: tuple[int, ...]
    steps: tuple[Node | None, ...]
    dims: tuple[Node, ...]
    part: int | None = None


@dataclass(frozen=True, slots=True)
class ArrayVariable:
    """The variables of an array register.

    `strides`, in bytes, is empty where the array is contiguous.  `owner` is 1 where its memory is
    to be freed by generated code, 0 where it is Python's; parameters have none.
    """

    pointer: Var
    dims: tuple[Var, ...]
    strides: tuple[Var, ...] = ()
    owner: Var | None = None
