"""Types of terms: numbers, tuples, and arrays of either, with the known facts about lengths."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rvm.isa.derivatives import adjoint_type
from rvm.types import RegisterType, Scalar, ValueType, with_rank


@dataclass(frozen=True, slots=True)
class Size:
    """A length: a whole number, or a name plus or minus a whole number."""

    name: str = ""
    more: int = 0

    def __str__(self) -> str:
        if not self.name:
            return str(self.more)
        return (
            f"{self.name} {'+' if self.more > 0 else '-'} {abs(self.more)}" * bool(self.more)
            or self.name
        )

    def plus(self, k: int) -> Size:
        """This length and k more; none is less than nothing."""
        return Size(self.name, self.more + k if self.name else max(0, self.more + k))


Length = Size | None
"""A length; None is one that only the run knows."""


@dataclass(frozen=True, slots=True)
class Product:
    """The type of a tuple."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))})"


@dataclass(frozen=True, slots=True)
class Arr:
    """The type of an array, of numbers, of tuples, or of arrays of one length."""

    elem: Type
    length: Length = None

    def __str__(self) -> str:
        dims: list[str] = []
        t: Type = self
        while isinstance(t, Arr):
            dims.append("?" if t.length is None else str(t.length))
            t = t.elem
        return f"{t}[{', '.join(dims)}]"


Type = Scalar | Product | Arr


def leaves(t: Type) -> Iterator[Scalar]:
    """The number types of which a type consists, in order."""
    match t:
        case Scalar():
            yield t
        case Arr(elem):
            yield from leaves(elem)
        case Product(items):
            for item in items:
                yield from leaves(item)


def is_active(t: Type | None) -> bool:
    """Whether a value of the type carries a derivative."""
    return t is not None and any(adjoint_type(s) is not None for s in leaves(t))


def dims(t: Type) -> tuple[Length, ...]:
    """The lengths of an array of numbers; () of a number."""
    out: list[Length] = []
    while isinstance(t, Arr):
        out.append(t.length)
        t = t.elem
    return tuple(out)


def names_of(t: Type) -> Iterator[str]:
    """The names of lengths in a type."""
    match t:
        case Arr(elem, n):
            if n is not None and n.name:
                yield n.name
            yield from names_of(elem)
        case Product(items):
            for item in items:
                yield from names_of(item)


def elem_type(t: Type) -> Type:
    """The element type of an array of any rank; another type itself."""
    while isinstance(t, Arr):
        t = t.elem
    return t


def is_tuple(t: Type) -> bool:
    """Whether a value is a tuple, or an array of tuples."""
    return isinstance(elem_type(t), Product)


def parts(t: Type) -> tuple[Type, ...]:
    """The types of the parts of a tuple, and of an array of tuples, which is held as one."""
    if isinstance(t, Arr):
        return tuple(Arr(p, t.length) for p in parts(t.elem))
    return t.items if isinstance(t, Product) else ()


def flat(t: Type) -> tuple[Type, ...]:
    """The numbers and arrays of numbers that a value of the type consists of, in order."""
    return tuple(x for item in parts(t) for x in flat(item)) if is_tuple(t) else (t,)


def array_of(elem: Type, lengths: tuple[Length, ...]) -> Type:
    """An array of these lengths; of none the element itself."""
    for n in reversed(lengths):
        elem = Arr(elem, n)
    return elem


def machine_type(t: Type) -> ValueType | None:
    """The machine's type of a value; None where it holds tuples."""
    elem = elem_type(t)
    return with_rank(elem, len(dims(t))) if isinstance(elem, Scalar) else None


def from_machine(t: RegisterType, lengths: tuple[Length, ...]) -> Type:
    """The type of a value of the machine."""
    assert isinstance(t, Scalar) or hasattr(t, "elem")
    elem = t if isinstance(t, Scalar) else t.elem
    return array_of(elem, lengths)


def outside(t: Type, names: Collection[str], value: Length = None) -> Type:
    """A type where some names are not bound; the length `value` is what they stand for, if any."""
    if isinstance(t, Product):
        return Product(tuple(outside(item, names, value) for item in t.items))
    if not isinstance(t, Arr):
        return t
    n = t.length
    if n is not None and n.name in names:
        n = None if value is None else value.plus(n.more)
    return Arr(outside(t.elem, names, value), n)


def together(a: Length, b: Length) -> tuple[bool, Length]:
    """Whether two lengths may be equal, and their common value."""
    if a is None or b is None:
        return True, b if a is None else a
    return a == b, a
