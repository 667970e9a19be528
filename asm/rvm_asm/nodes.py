"""Syntax nodes of expressions, places and types: plain slotted classes, made by the million.

Positions are those of `rvm_asm.source`, ends exclusive.
"""

from __future__ import annotations

from typing import Any


class Lit:
    """A literal; `type` is the written type of a typed one (`3'u8`), whose value is raw."""

    __slots__ = ("end", "start", "type", "value")

    def __init__(self, value: Any, start: int, end: int, type: TypeRef | None = None) -> None:
        self.value = value
        self.start = start
        self.end = end
        self.type = type


class FieldStep:
    """A step `.name`: a record's field, `.re`, `.im` or `.T`."""

    __slots__ = ("end", "name", "start")

    def __init__(self, name: str, start: int, end: int) -> None:
        self.name = name
        self.start = start
        self.end = end


class ShapeStep:
    """A step `.reshape(m, n)`."""

    __slots__ = ("dims", "end", "start")

    def __init__(self, dims: list[Node], start: int, end: int) -> None:
        self.dims = dims
        self.start = start
        self.end = end


class Range:
    """`lo:hi` or `lo:hi:by` inside an index; any of them may be missing."""

    __slots__ = ("by", "hi", "lo")

    def __init__(self, lo: Node | None, hi: Node | None, by: Node | None = None) -> None:
        self.lo = lo
        self.hi = hi
        self.by = by

    @property
    def ends(self) -> tuple[Node | None, ...]:
        """Its three ends, in order."""
        return self.lo, self.hi, self.by


class Sub:
    """A step `[i, a:b]`."""

    __slots__ = ("end", "items", "start")

    def __init__(self, items: list[Node | Range], start: int, end: int) -> None:
        self.items = items
        self.start = start
        self.end = end


RefStep = FieldStep | ShapeStep | Sub
"""A step of a name's."""


class Ref:
    """A name with steps: `x`, `x[i].re`, `p.vel`."""

    __slots__ = ("end", "name", "start", "steps")

    def __init__(self, name: str, steps: tuple[RefStep, ...], start: int, end: int) -> None:
        self.name = name
        self.steps = steps
        self.start = start
        self.end = end


class Application:
    """A function's value: `f(a, b)`; operators too, under the function's name in the table."""

    __slots__ = ("args", "end", "name", "start")

    def __init__(self, name: str, args: list[Node], start: int, end: int) -> None:
        self.name = name
        self.args = args
        self.start = start
        self.end = end


class Operator(Application):
    """A `Call` that was written with a sign."""

    __slots__ = ()


Node = Lit | Ref | Application


class TypeRef:
    """A type as written: a name, fraction bits, an inline record's fields, dimensions.

    `args` are the types in brackets after a generic record's name, where dimensions follow them;
    alone they are written, and read, as dimensions.  The type `func(…)` has its parameters' types
    as fields.
    """

    __slots__ = ("args", "dims", "end", "fields", "frac", "name", "start")

    def __init__(
        self,
        name: str,
        frac: int | None,
        fields: list[Declared] | None,
        dims: list[Node | None] | None,
        start: int,
        end: int,
        args: list[Node | None] | None = None,
    ) -> None:
        self.name = name
        self.frac = frac
        self.fields = fields
        self.dims = dims
        self.start = start
        self.end = end
        self.args = args

    @property
    def is_function(self) -> bool:
        return self.name == "func" and self.fields is not None


class LikeRef(TypeRef):
    """The type of a place, for a register that is held."""

    __slots__ = ("place",)

    def __init__(self, place: Ref) -> None:
        super().__init__("", None, None, None, place.start, place.end)
        self.place = place


class Declared:
    """`name: type`, as a parameter, a field or a local.

    `register` is the name of the register, where it is not that of the parameter or field;
    `zero` says that a parameter begins as zero where a caller names no value.
    """

    __slots__ = ("end", "name", "register", "start", "type", "zero")

    def __init__(
        self,
        name: str,
        type: TypeRef | None,
        start: int,
        end: int,
        register: str = "",
        zero: bool = False,
    ) -> None:
        self.name = name
        self.type = type
        self.start = start
        self.end = end
        self.register = register
        self.zero = zero

    @property
    def is_function(self) -> bool:
        """Whether it is a parameter that is a function."""
        return self.type is not None and self.type.is_function


class Word:
    """A name with its position: a label, a callee, a formal."""

    __slots__ = ("end", "start", "text")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.start = start
        self.end = end


class TypeParam:
    """A type parameter, `T: real | i64`: the classes and types that it may be of; none: any.

    `shaped` is one that may be an array, too: `T: real[…]`.
    """

    __slots__ = ("classes", "end", "name", "shaped", "start")

    def __init__(self, name: Word, classes: list[Word], shaped: bool, end: int) -> None:
        self.name = name.text
        self.classes = classes
        self.shaped = shaped
        self.start = name.start
        self.end = end
