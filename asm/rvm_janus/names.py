"""The meanings of the names in a Janus procedure."""

from __future__ import annotations

from dataclasses import dataclass, field

from rvm_asm.names import RESERVED
from rvm_asm.nodes import Declared, Node, TypeRef, Word


@dataclass(slots=True)
class Variable:
    """A variable: the type of its numbers, its rank, and its declaration.

    `rank` is -1 for a stack.  `lengths` are those of an array where they are known.  A parameter
    `a[]` takes arrays of any number of dimensions: its rank, which `is_open`, is that with which it
    is used.
    """

    word: Word
    type: str
    rank: int = 0
    lengths: tuple[int | None, ...] = ()
    constant: bool = False
    is_open: bool = False

    @property
    def is_stack(self) -> bool:
        return self.rank < 0


class Elements:
    """The element types of stacks, which Janus does not declare: inferred from pushes.

    Stacks that are one at run time, as argument and parameter or by a swap, are one class.
    """

    def __init__(self) -> None:
        self.up: dict[int, int] = {}
        self.types: dict[int, str] = {}
        self.refs: dict[int, list[TypeRef]] = {}

    def find(self, v: Variable) -> int:
        """The class that a stack is in."""
        k = self.up.setdefault(id(v), id(v))
        while self.up[k] != k:
            k = self.up[k]
        return k

    def join(self, a: Variable, b: Variable) -> None:
        """The two are of one type."""
        one, two = self.find(a), self.find(b)
        if one != two:
            self.up[two] = one
            self.refs.setdefault(one, []).extend(self.refs.pop(two, []))
            if two in self.types:
                self.types.setdefault(one, self.types.pop(two))

    def holds(self, stack: Variable, t: str) -> None:
        """Numbers of a type are pushed on the stack."""
        self.types.setdefault(self.find(stack), t)

    def written(self, stack: Variable, ref: TypeRef) -> None:
        """A type with the element type of the stack, to be filled in when everything is read."""
        self.refs.setdefault(self.find(stack), []).append(ref)

    def settle(self, word: str) -> None:
        """Fill in all of them; stacks without pushes hold `int`."""
        for k, refs in self.refs.items():
            for ref in refs:
                ref.name = self.types.get(k, word)


@dataclass(slots=True)
class Procedure:
    """A procedure while it is read: its parameters, its names, and the procedures that it calls."""

    word: Word
    params: list[Declared] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    """The variables of the parameters, in order."""
    names: dict[str, Variable] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    """All names of variables that its body has."""


@dataclass(slots=True)
class Call:
    """A call while it is read: the callee, and the stacks and arrays among the arguments."""

    callee: Word
    whole: dict[int, Variable]
    """By position."""
    args: list[Node]


def plain_name(text: str) -> str:
    """A Janus name as the assembly language writes it."""
    return text if text.isidentifier() and text not in RESERVED else f"`{text}`"
