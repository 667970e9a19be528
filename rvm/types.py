"""Types of values and registers: scalars, arrays of scalars, stacks, records.

A type says what a value *means*; how it is stored and what can be undone on it
is the business of its number system in `rvm.numbers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

SIGNED = {"i32": 32, "i64": 64}
UNSIGNED = {"u8": 8, "u32": 32, "u64": 64}
INTEGERS = {**SIGNED, **UNSIGNED}
FLOATS = ("f32", "f64")
_NAMES = frozenset({"bool", *INTEGERS, *FLOATS, "c128", "fixed", "log64"})
DEFAULT_FRAC = 43
"""Fraction bits of `fixed` where none are named: Q20.43, sign included in the 20."""


class _Interned:
    """Equal values are one object, so that comparing and hashing them costs nothing."""

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

    ValueError if there is no such type: what is computed on is known from here on.
    """

    name: str
    frac: int = 0

    def __new__(cls, name: str, frac: int = 0) -> Scalar:
        if name not in _NAMES:
            raise ValueError(f"there is no type {name!r}")
        if name == "fixed" and not 0 <= frac <= 62:
            raise ValueError(f"a fixed-point number has 0 to 62 fraction bits, not {frac}")
        if name != "fixed" and frac:
            raise ValueError(f"the type {name} has no fraction bits")
        return cast(Scalar, cls._one(name, frac))

    def __reduce__(self) -> tuple[Any, ...]:
        return Scalar, (self.name, self.frac)

    @property
    def is_bool(self) -> bool:
        return self.name == "bool"

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGERS

    @property
    def is_float(self) -> bool:
        return self.name in FLOATS

    @property
    def is_complex(self) -> bool:
        return self.name == "c128"

    @property
    def is_fixed(self) -> bool:
        return self.name == "fixed"

    @property
    def is_log(self) -> bool:
        return self.name == "log64"

    @property
    def is_exact(self) -> bool:
        """Whether `add` then `sub` of the same number restores every bit."""
        return self.is_bool or self.is_integer or self.is_fixed

    @property
    def bits(self) -> int:
        if self.is_bool:
            return 1
        if self.is_integer:
            return INTEGERS[self.name]
        return {"f32": 32, "c128": 128}.get(self.name, 64)

    def __str__(self) -> str:
        if self.is_fixed and self.frac != DEFAULT_FRAC:
            return f"fixed({self.frac})"
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Array(_Interned):
    """An array of `rank` dimensions; the lengths belong to the register, not to the type."""

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
    """A stack of scalars, which `push` moves values to and `pop` takes them from."""

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

SCALARS: dict[str, Scalar] = {
    t.name: t for t in (BOOL, I32, I64, U8, U32, U64, F32, F64, C128, FIXED, LOG64)
}

ValueType = Scalar | Array
"""What an expression can evaluate to."""
RegisterType = Scalar | Array | Stack
"""What a register can hold."""


def fixed(frac: int) -> Scalar:
    """The fixed-point type with `frac` fraction bits, 0 <= frac <= 62; else ValueError."""
    return Scalar("fixed", frac)


def elem_of(t: RegisterType) -> Scalar:
    """The scalar type of one element (of the value itself where it is a scalar)."""
    return t if isinstance(t, Scalar) else t.elem


def rank_of(t: RegisterType) -> int:
    """The number of array dimensions; 0 for a scalar."""
    return t.rank if isinstance(t, Array) else 0


def with_rank(elem: Scalar, rank: int) -> ValueType:
    """`elem` itself for rank 0, otherwise an array of it."""
    return Array(elem, rank) if rank else elem
