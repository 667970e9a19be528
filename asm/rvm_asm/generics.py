"""The values of type parameters: types of registers, and functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rvm.isa.rules import CLASSES
from rvm.types import F64, I64, SCALARS, RegisterType, Scalar, Stack, elem_of, fixed, rank_of
from rvm_asm.names import plain
from rvm_asm.nodes import Application, Declared, Lit, Node, Ref, Sub, TypeParam, TypeRef

NUMBERS, STACK, RECORD, FUNCTION = "numbers", "stack", "record", "function"
IDLE = "`a function"
"""The prefix of functions that do nothing, which replace those that are passed."""
A_RECORD = "`a record`"
"""The name of the record that generic functions are tried with."""
OTHER_FIXED = fixed(20)
"""A `fixed` of other fraction bits than those that it has where none are named."""
MAX_SHOWN = 6
"""The largest number of types of a class listed in a message."""


@dataclass(frozen=True, slots=True)
class TypeValue:
    """The value of a type parameter.

    Numbers and stacks have the type `elem`; records and functions a `name`, as texts write it, and
    generic records types `args`.  `rank` is the number of dimensions in front.
    """

    kind: str
    elem: Scalar = F64
    name: str = ""
    rank: int = 0
    args: tuple[TypeValue, ...] = ()

    def __str__(self) -> str:
        text = str(self.elem) if self.kind == NUMBERS else plain(self.name)
        if self.kind == STACK:
            text = f"stack[{self.elem}]"
        if self.args:
            text += f"[{', '.join(map(str, self.args))}]"
        return f"{text}[{', '.join(':' * self.rank)}]" if self.rank else text

    def written(self, name: str, written: TypeRef) -> TypeRef:
        """The type as it could be written in place of `written`, where `name` stands for it.

        The lengths of an array are called after the parameter.
        """
        start, end = written.start, written.end
        more: list[Node | None] = [
            Ref(length_name(name, k), (), start, end) for k in range(self.rank)
        ]
        dims = [*(written.dims or ()), *more] or None
        if self.kind == STACK:
            inner = TypeValue(NUMBERS, self.elem).written(name, TypeRef("", None, None, None, 0, 0))
            return TypeRef("stack", None, [Declared("", inner, start, end)], dims, start, end)
        if self.kind == NUMBERS:
            frac = self.elem.frac if self.elem.is_fixed else None
            return TypeRef(self.elem.name, frac, None, dims, start, end)
        args = [a.node(start, end) for a in self.args]
        if args and dims is None:
            return TypeRef(self.name, None, None, list(args), start, end)
        return TypeRef(self.name, None, None, dims, start, end, list(args) or None)

    def node(self, start: int, end: int) -> Node:
        """A type of numbers as a record's name has it in brackets."""
        if self.elem.is_fixed:
            return Application("fixed", [Lit(self.elem.frac, start, end)], start, end)
        return Ref(self.elem.name, (), start, end)


Types = Mapping[str, TypeValue]
"""The values of type parameters, and of parameters that are functions."""


def length_name(parameter: str, axis: int) -> str:
    """The name for a length of a type parameter's type, which no word can be."""
    return f"`{plain(parameter)}.{axis}`"


def numbers(t: RegisterType, dims: int = 0) -> TypeValue | None:
    """A register's type as a value, without so many leading dimensions; None if it has fewer."""
    if isinstance(t, Stack):
        return None if dims else TypeValue(STACK, t.elem)
    rank = rank_of(t) - dims
    return None if rank < 0 else TypeValue(NUMBERS, elem_of(t), rank=rank)


def type_node(node: Node | None) -> TypeRef | None:
    """An expression in brackets read as a type of numbers; None if it is none."""
    if isinstance(node, Ref) and not node.steps:
        return TypeRef(node.name, None, None, None, node.start, node.end)
    if isinstance(node, Application) and node.name == "fixed" and len(node.args) == 1:
        bits = node.args[0]
        if isinstance(bits, Lit) and type(bits.value) is int:
            return TypeRef("fixed", bits.value, None, None, node.start, node.end)
    return None


def named_function(node: Node) -> TypeRef | None:
    """An argument read as the name of a function, with types perhaps; None if it is none."""
    if not isinstance(node, Ref):
        return None
    args: list[Node | None] | None = None
    if node.steps:
        step = node.steps[0]
        if len(node.steps) > 1 or not isinstance(step, Sub):
            return None
        args = [i if isinstance(i, (Ref, Application)) else None for i in step.items]
    return TypeRef(node.name, None, None, args, node.start, node.end)


def instance_text(types: Types) -> str:
    """The values of type parameters, for a message: `T = f64, f = plus`."""
    return ", ".join(f"{plain(n)} = {v}" for n, v in types.items() if not v.name.startswith(IDLE))


# ---------------------------------------------------------------- classes


def members(classes: Sequence[str]) -> list[Scalar]:
    """The types of numbers that are of one of the classes, or are named; all without classes."""
    return [t for t in SCALARS.values() if is_member(t, classes)]


def is_member(t: Scalar, classes: Sequence[str]) -> bool:
    return not classes or any(t.name == c or (c in CLASSES and CLASSES[c](t)) for c in classes)


def class_text(p: TypeParam) -> str:
    """The parameter as it is written: `T: real`."""
    classes = " | ".join(c.text for c in p.classes)
    return f"{plain(p.name)}: {classes}{'[…]' * p.shaped}" if classes else plain(p.name)


def may_be(p: TypeParam, value: TypeValue) -> bool:
    """Whether a type parameter may have a type as its value."""
    if value.kind == FUNCTION:
        return False
    if not p.classes:
        return True
    if value.kind != NUMBERS or (value.rank and not p.shaped):
        return False
    return is_member(value.elem, [c.text for c in p.classes])


def listed(p: TypeParam) -> str:
    """The types that a parameter may have, for a message."""
    found = [str(t) for t in members([c.text for c in p.classes])]
    more = ", …" if len(found) > MAX_SHOWN else ""
    arrays = ", and arrays of these" if p.shaped else ""
    return f"{', '.join(found[:MAX_SHOWN])}{more}{arrays}"


def usual(p: TypeParam) -> TypeValue:
    """The default type: f64 if allowed, else i64 if allowed, else the first allowed type."""
    found = members([c.text for c in p.classes])
    for t in (F64, I64):
        if t in found:
            return TypeValue(NUMBERS, t)
    return TypeValue(NUMBERS, found[0])


def tried(p: TypeParam) -> Iterator[TypeValue]:
    """The types that a generic function is checked for: the usual one, then all of the class.

    Of what may be an array some arrays, of what may be anything a record.  No instruction takes a
    stack of whatever it holds, so a function is made for that only where one is passed on.
    """
    found = members([c.text for c in p.classes])
    if not found:
        return
    first = usual(p)
    yield first
    for t in found:
        if t != first.elem:
            yield TypeValue(NUMBERS, t)
        if t.is_fixed:
            yield TypeValue(NUMBERS, OTHER_FIXED)
    if p.shaped or not p.classes:
        yield replace(first, rank=1)
        yield replace(first, rank=2)
    if not p.classes:
        yield TypeValue(RECORD, name=A_RECORD)
