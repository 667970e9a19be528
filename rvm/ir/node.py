"""Nodes of the intermediate representation: what an instruction does, for any target.

A node is an operation on nodes (`rvm.leaf.trace.Node`): a pure leaf operation, or one of those
below, which read and change variables and memory.  Values live within one instruction; between
instructions there are variables.  Array elements are accessed by indices, one for each axis of the
register; the target determines how an element is found in memory, and how a bool is stored.

    get, get(i)          a variable's value, or one of many              aux: the variable
    set(v), set(v, i)    changes it
    load(i, ...)         an element                    store(v, i, ...)   aux: (register, part)
    dim, stride          of an array register          aux: (register, axis)
    address(i, ...)      an element's address          aux: (register, part)
    peek(p)              the value at a pointer        poke(v, p)
    slot(p), field, cell, element   pointers to a slot of a row, a field of the context, a guard's
    argument, constant, table, written (a function over leaf operations), pure, helper (functions)
    trouble(c), bound(i, n)         go to aux, a label, if c holds, or i is not below n
    if(c)                aux: (items, items, unlikely) loop(n)            aux: (variable, items)
    begin, perform, done, edge(n)   marks: an instruction begins and ends (aux: its position), an
                         edge is passed n times (aux: the edge)
    jump, fork(c), switch(n), return(v)                ends of blocks

For Python there are also: template(...), lazy(...) and line(...), which are values and statements
as texts to be filled in; text, the lines of a whole instruction; way, the exit of a run if the
following lines raise; between, after which lines belong to no instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rvm.leaf.ops import BIT as BIT
from rvm.leaf.ops import F64 as F64
from rvm.leaf.ops import I64 as I64
from rvm.leaf.ops import number as number
from rvm.leaf.trace import Node as Node

I8, I32, F32, PTR, NONE = "i8", "i32", "f32", "ptr", ""
"""Kinds of values besides those of leaf operations; NONE: an operation without a value."""
FLOATS = (F64, F32)


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A variable: of one kind, or `many` of them, or `size` bytes of separate memory.

    `pace` is the best form of the loop that it counts: see `rvm.ir.builder.Builder.nest`.
    """

    kind: str
    name: str
    size: int = 0
    many: int = 0
    pace: str = ""


@dataclass(slots=True, eq=False)
class Block:
    """Operations in order, entered only at the beginning; the last one gives the successors."""

    label: str
    items: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a function.

    `is_length` says that it is never negative, `is_alone` that it is a pointer to separate memory;
    `reg` is the scalar register that it holds.
    """

    name: str
    kind: str
    is_length: bool = False
    is_alone: bool = False
    reg: int | None = None


def constant(value: object, kind: str) -> Node:
    """A constant of a kind."""
    return Node("constant", kind, (), value)


def walk(items: list[Node]) -> Iterator[Node]:
    """All operations of a list, followed by those nested in them."""
    for node in items:
        yield node
        if node.op == "if":
            yield from walk(node.aux[0])
            yield from walk(node.aux[1])
        elif node.op == "loop":
            yield from walk(node.aux[1])
