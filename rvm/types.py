"""Types of values and registers: scalars, arrays of scalars, stacks, records.

A type says what a value *means*. Its storage, and which changes can be undone, belong to its number
system in `rvm.numbers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

DEFAULT_FRAC = 43
"""Fraction bits of `fixed` if none are given: Q20.43, sign included in the 20."""


@dataclass(frozen=True, slots=True)
class TypeRow:
    """Facts about a number type: its name, the kind of its numbers, and their storage.

    `kind` is the kind of its numbers ("integer", "float", … or a user-defined kind), which
    determines the number system.  `dtype` is NumPy's code for an array element, `llvm` the type of
    an operand in LLVM's assembly language, `letter` the code in `struct`; numbers with two parts
    have two of them.  `exact`: an update and its inverse restore every bit.  `derivative` names the
    type of derivatives with respect to a number, "" if there are none.
    """

    name: str
    kind: str
    bits: int
    dtype: str
    llvm: str
    letter: str
    exact: bool = True
    derivative: str = ""

    @property
    def bytes(self) -> int:
        """The size of an element of an array; it is aligned to the size of a part."""
        return int(self.dtype[1:])

    @property
    def parts(self) -> int:
        return 2 if self.dtype[0] == "c" else 1

    @property
    def signed(self) -> bool:
        """Whether raw numbers are integers with a sign."""
        return self.dtype[0] == "i"


def integer(name: str) -> TypeRow:
    """The row of an integer type by its name: `i32` or `u8`, of 8, 16, 32 or 64 bits."""
    bits = int(name[1:])
    letter = {8: "b", 16: "h", 32: "i", 64: "q"}[bits]
    return TypeRow(
        name,
        "integer",
        bits,
        f"{name[0]}{bits // 8}",
        f"i{bits}",
        letter.upper() if name[0] == "u" else letter,
    )


TYPES: dict[str, TypeRow] = {
    row.name: row
    for row in (
        TypeRow("bool", "bool", 1, "b1", "i1", "?"),
        *map(integer, ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")),
        TypeRow("f32", "float", 32, "f4", "float", "f", exact=False, derivative="f32"),
        TypeRow("f64", "float", 64, "f8", "double", "d", exact=False, derivative="f64"),
        TypeRow("c128", "complex", 128, "c16", "double", "d", exact=False, derivative="c128"),
        TypeRow("fixed", "fixed", 64, "i8", "i64", "q", derivative="f64"),
        TypeRow("log64", "log", 64, "f8", "double", "d", exact=False, derivative="f64"),
    )
}
"""The number types by name; `rvm.isa.number_type` adds user-defined ones."""


class _Interned:
    """A class whose equal values are one object, so comparing and hashing them costs nothing."""

    __slots__ = ()
    _known: ClassVar[dict[tuple[Any, ...], Any]] = {}

    @classmethod
    def _one(cls, *key: Any) -> Any:
        found = _Interned._known.get((cls, *key))
        if found is None:
            found = _Interned._known[(cls, *key)] = object.__new__(cls)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Scalar(_Interned):
    """A type of one number.  `frac` is the number of fraction bits of a `fixed`, else 0.

    ValueError if no such type is registered, so later code need not check.
    """

    name: str
    frac: int = 0

    def __new__(cls, name: str, frac: int = 0) -> Scalar:
        if name not in TYPES:
            raise ValueError(f"there is no type {name!r}")
        if name == "fixed" and not 0 <= frac <= 62:
            raise ValueError(f"a fixed-point number has 0 to 62 fraction bits, not {frac}")
        if name != "fixed" and frac:
            raise ValueError(f"the type {name} has no fraction bits")
        return cast(Scalar, cls._one(name, frac))

    def __reduce__(self) -> tuple[Any, ...]:
        return Scalar, (self.name, self.frac)

    @property
    def row(self) -> TypeRow:
        """The facts about the type."""
        return TYPES[self.name]

    @property
    def is_bool(self) -> bool:
        return TYPES[self.name].kind == "bool"

    @property
    def is_integer(self) -> bool:
        return TYPES[self.name].kind == "integer"

    @property
    def is_float(self) -> bool:
        return TYPES[self.name].kind == "float"

    @property
    def is_complex(self) -> bool:
        """Whether its numbers have two parts."""
        return TYPES[self.name].dtype[0] == "c"

    @property
    def is_fixed(self) -> bool:
        return TYPES[self.name].kind == "fixed"

    @property
    def is_log(self) -> bool:
        return TYPES[self.name].kind == "log"

    @property
    def is_exact(self) -> bool:
        """Whether an update and its inverse restore every bit."""
        return TYPES[self.name].exact

    @property
    def is_signed(self) -> bool:
        """Whether raw numbers are integers with a sign."""
        return TYPES[self.name].dtype[0] == "i"

    @property
    def bits(self) -> int:
        return TYPES[self.name].bits

    @property
    def parts(self) -> int:
        """The number of parts of a number: two if it is complex."""
        return TYPES[self.name].parts

    @property
    def unit(self) -> float:
        """The number whose raw value is 1: of `fixed` the last fraction bit."""
        return 2.0**-self.frac

    def __str__(self) -> str:
        if self.is_fixed and self.frac != DEFAULT_FRAC:
            return f"fixed({self.frac})"
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Array(_Interned):
    """An array of `rank` dimensions; its lengths belong to the register, not to the type."""

    elem: Scalar
    rank: int

    def __new__(cls, elem: Scalar, rank: int) -> Array:
        return cast(Array, cls._one(elem, rank))

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self.elem, self.rank)

    def __str__(self) -> str:
        return f"{self.elem}[{', '.join(':' * self.rank)}]"


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of scalars, to which `push` moves values, and from which `pop` takes them."""

    elem: Scalar

    def __str__(self) -> str:
        return f"stack[{self.elem}]"


BOOL = Scalar("bool")
I32 = Scalar("i32")
I64 = Scalar("i64")
U8 = Scalar("u8")
U32 = Scalar("u32")
U64 = Scalar("u64")
F32 = Scalar("f32")
F64 = Scalar("f64")
C128 = Scalar("c128")
FIXED = Scalar("fixed", DEFAULT_FRAC)
LOG64 = Scalar("log64")

SCALARS: dict[str, Scalar] = {name: FIXED if name == "fixed" else Scalar(name) for name in TYPES}
"""The scalar types by name; `fixed` with its default number of fraction bits."""

ValueType = Scalar | Array
"""The types of expressions."""
RegisterType = Scalar | Array | Stack
"""The types of registers."""


def fixed(frac: int) -> Scalar:
    """The fixed-point type with `frac` fraction bits, 0 <= frac <= 62; ValueError otherwise."""
    return Scalar("fixed", frac)


def elem_of(t: RegisterType) -> Scalar:
    """The scalar type of an element (for a scalar, its own type)."""
    return t if isinstance(t, Scalar) else t.elem


def rank_of(t: RegisterType) -> int:
    """The number of array dimensions; 0 for a scalar."""
    return t.rank if isinstance(t, Array) else 0


def with_rank(elem: Scalar, rank: int) -> ValueType:
    """`elem` itself for rank 0, otherwise an array of it."""
    return Array(elem, rank) if rank else elem
