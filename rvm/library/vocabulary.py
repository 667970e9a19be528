"""The vocabulary of reversible Python: types for annotations, and words for function bodies.

`@rvm.reversible` reads a function's source and never runs it, so these words have a meaning there;
run as Python they raise U045.  `rvm.f64`, `rvm.rot` and others are made when first used, from the
types, opcodes and functions of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any, NoReturn, TypeVar, dataclass_transform

from rvm.faults import UsageError
from rvm.isa import FUNCTIONS, OPCODES
from rvm.isa.define import when as when_in_opcode
from rvm.isa.functions.conversions import conversion_target
from rvm.types import SCALARS

T = TypeVar("T")


def outside(word: str) -> NoReturn:
    """Raise UsageError U045: a word of reversible functions was run as Python."""
    raise UsageError(
        "U045",
        f"`rvm.{word}` belongs in a function under `@rvm.reversible`, which is read, not run",
        hint="put the decorator on the function that contains it, and call that function",
    )


@dataclass(frozen=True, slots=True)
class Word:
    """An opcode, function or statement of the machine, by its name."""

    name: str

    def __call__(self, *args: Any, **named: Any) -> NoReturn:
        outside(self.name)

    def __repr__(self) -> str:
        return f"rvm.{self.name}"


@dataclass(frozen=True, slots=True)
class TypeWord:
    """A number type: an annotation, and a conversion when called in a function body."""

    name: str

    def __getitem__(self, lengths: Any) -> ArrayWord:
        return ArrayWord(self, lengths if isinstance(lengths, tuple) else (lengths,))

    def __call__(self, bits: Any = None) -> TypeWord:
        if self.name == "fixed" and type(bits) is int:
            name = f"fixed({bits})"
            if conversion_target(name) is None:
                raise UsageError("U045", f"there is no type `{name}`", hint="0 to 62 bits")
            return TypeWord(name)
        outside(self.name)

    def __repr__(self) -> str:
        return f"rvm.{self.name}"


@dataclass(frozen=True, slots=True)
class ArrayWord:
    """The type of an array: the element type, and lengths, each a number, a name or `:`."""

    elem: Any
    lengths: tuple[Any, ...]

    def __repr__(self) -> str:
        inside = ", ".join(map(repr, self.lengths))
        return f"rvm.Array[{self.elem!r}, {inside}]"

    def __call__(self) -> NoReturn:  # what `typing` takes for a type can be called
        outside("Array")


@dataclass(frozen=True, slots=True)
class StackWord:
    """The type of a stack, for which callers pass a list of numbers."""

    elem: Any

    def __repr__(self) -> str:
        return f"rvm.Stack[{self.elem!r}]"

    def __call__(self) -> NoReturn:
        outside("Stack")


class Array:
    """`Array[f64, "n"]`, `Array[f64, "m", 3]`: an array and the lengths of its axes.

    A name is bound to the length at its first occurrence, and must equal it at all others. A length
    may also be a formula of such names, `"2 * n"`.  `":"` is any length.
    """

    def __class_getitem__(cls, parts: Any) -> ArrayWord:
        elem, *lengths = parts if isinstance(parts, tuple) else (parts,)
        return ArrayWord(elem, tuple(lengths) or (":",))


class Stack:
    """`Stack[f64]`: a stack, which `rvm.push` and `rvm.pop` change."""

    def __class_getitem__(cls, elem: Any) -> StackWord:
        return StackWord(elem)


def when(cond: Any, *after: Any) -> Any:
    """`if rvm.when(p, q):` gives the conditions before and after a branch that is taken.

    With one argument it guards statements in an opcode's body: `with when(c):`.
    """
    if after:
        outside("when")
    return when_in_opcode(cond)


ancilla = Word("ancilla")
compute = Word("compute")
loop = Word("loop")
iterate = Word("iterate")
push = Word("push")
pop = Word("pop")
top = Word("top")
empty = Word("empty")
map_ = Word("map")
gradient_of = Word("gradient_of")
adjoint_of = Word("adjoint_of")
tangent_of = Word("tangent_of")
DERIVED = {gradient_of: ("'",), adjoint_of: ("~'",), tangent_of: (".",)}
"""The words that derive one function from another, with their marks in the assembly language."""
_STATEMENTS = {
    w.name: w for w in (ancilla, compute, loop, iterate, push, pop, top, empty, map_, *DERIVED)
}


def words() -> Iterator[str]:
    """The names of all words of reversible functions."""
    for name in (*_STATEMENTS, *SCALARS, *FUNCTIONS, *OPCODES):
        if name.isidentifier() and word(name) is not None:
            yield name


def word(name: str) -> Any:
    """The object `rvm.NAME` if it is a word of reversible functions, else None."""
    if name in SCALARS:
        return TypeWord(name)
    if name in _STATEMENTS:
        return _STATEMENTS[name]
    if name in FUNCTIONS or (name in OPCODES and OPCODES[name].is_data):
        return Word(name)
    return None


@dataclass_transform()
def record(cls: type[T]) -> type[T]:
    """Make a class a record of reversible functions; its annotated fields are the record's.

    It becomes a dataclass if it is not one.  Arrays in it are changed in place, as all arrays are.
    """
    made = cls if is_dataclass(cls) else dataclass(cls)
    made.__rvm_record__ = True  # type: ignore[attr-defined]
    return made


__all__ = [
    "DERIVED",
    "Array",
    "ArrayWord",
    "Stack",
    "StackWord",
    "TypeWord",
    "Word",
    "adjoint_of",
    "ancilla",
    "compute",
    "empty",
    "gradient_of",
    "iterate",
    "loop",
    "map_",
    "pop",
    "push",
    "record",
    "tangent_of",
    "top",
    "when",
    "word",
]
