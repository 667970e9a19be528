"""The meanings of names, and their lookup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rvm.expr import Apply, Const, Place
from rvm.types import I64, RegisterType, Stack
from rvm_asm.generics import TypeValue
from rvm_asm.names import plain
from rvm_asm.nodes import Node, Word


class Slot:
    """A name of a register; a stack of arrays has their lengths as its `shape`."""

    __slots__ = ("reg", "shape", "type", "value_type")

    def __init__(self, reg: int, type: RegisterType, shape: tuple[int, ...] = ()) -> None:
        self.reg = reg
        self.shape = shape
        self.type = type
        self.value_type = None if isinstance(type, Stack) else type


class NameGroup:
    """A name of a record: its fields, and over how many leading dimensions it is an array.

    `args` are the types in brackets after a generic record's name.  A stack of records is
    `stacked`: it has a stack for each field.
    """

    __slots__ = ("args", "fields", "rank", "record", "stacked")

    def __init__(
        self,
        record: str,
        fields: dict[str, Slot | NameGroup],
        rank: int,
        args: tuple[TypeValue, ...] = (),
        stacked: bool = False,
    ) -> None:
        self.stacked = stacked
        self.record = record
        self.fields = fields
        self.rank = rank
        self.args = args

    def __str__(self) -> str:
        """The record as texts write it, without dimensions."""
        text = plain(self.record)
        if self.args:
            text += f"[{', '.join(map(str, self.args))}]"
        return f"stack[{text}]" if self.stacked else text

    def leaves(self) -> Iterator[Slot]:
        """The registers of all leaves, in order."""
        for f in self.fields.values():
            if isinstance(f, Slot):
                yield f
            else:
                yield from f.leaves()

    def paths(self) -> Iterator[str]:
        """The path to each leaf, in order: `vel.x`."""
        for name, f in self.fields.items():
            if isinstance(f, Slot):
                yield plain(name)
            else:
                yield from (f"{plain(name)}.{inner}" for inner in f.paths())


class Length:
    """A dimension variable: the length of an axis of a parameter."""

    __slots__ = ("axis", "slot")

    def __init__(self, slot: Slot, axis: int) -> None:
        self.slot = slot
        self.axis = axis

    def expr(self) -> Apply:
        """`dim(register, axis)`, typed."""
        place = Place(self.slot.reg, (), self.slot.value_type)
        return Apply("dim", (place, Const(self.axis, I64)), I64)


class Alias:
    """A formal of a macro or pure function: its operand, in the scope of the use."""

    __slots__ = ("node", "scope")

    def __init__(self, node: Node, scope: Scope) -> None:
        self.node = node
        self.scope = scope


Binding = Slot | NameGroup | Length | Alias


def leaves_of(binding: object) -> Iterator[Slot]:
    """The registers of a name; none if it is not a name of registers."""
    if isinstance(binding, Slot):
        yield binding
    elif isinstance(binding, NameGroup):
        yield from binding.leaves()


class ScopeBlock:
    """A routine: the instructions `start` to `stop` of the code."""

    __slots__ = ("is_undone", "start", "stop", "word")

    def __init__(self, word: Word, start: int) -> None:
        self.word = word
        self.start = start
        self.stop = -1
        self.is_undone = False


class Scope:
    """Names, labels and routines of a function's body or of one expansion.

    An expansion sees its own names and the program's constants, never the names around its use:
    that is what makes macros hygienic.
    """

    __slots__ = ("depth", "labels", "names", "owner", "routines", "types")

    def __init__(
        self, owner: str = "", types: Mapping[str, TypeValue] | None = None, depth: int = 0
    ) -> None:
        self.owner = owner
        self.depth = depth
        """The number of enclosing expansions, including its own."""
        self.types = types or {}
        self.names: dict[str, Binding] = {}
        self.labels: dict[str, tuple[int, Word]] = {}
        self.routines: dict[str, ScopeBlock] = {}
