"""Stacks of arrays: the elements of each are on a stack of numbers, with the first one lowest.

`push x, s` pushes the elements of x in order, `pop x, s` pops them in the opposite order.  The
array on top is held in an ancilla while a statement reads or changes it: its elements are popped
before the statement, and pushed again after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import prod

from rvm.expr import Const, Expr, Index, Place, places
from rvm.isa import check_operands
from rvm.isa import place as typed_place
from rvm.isa.shapes import Lengths
from rvm.program import Instr, stack_text
from rvm.types import I64, Array, Scalar, Stack, elem_of, rank_of, with_rank
from rvm_asm.emitter import CodeEmitter
from rvm_asm.nodes import Lit, Node, Word
from rvm_asm.scope import Slot
from rvm_asm.stats import For, Stat
from rvm_asm.text_bytes import length_of

WRITTEN_OUT = 8
"""The largest number of elements with an instruction for each; for more there are loops."""


@dataclass(frozen=True, slots=True)
class HeldTop:
    """A stack's top in an ancilla, and where the code begins that may use it."""

    stack: Slot
    ancilla: Slot
    begins: int

    def put_back(self, e: CodeEmitter, stat: Stat) -> None:
        """Push the array again; Rejected if the stack was otherwise used."""
        for instr in e.code[self.begins :]:
            if any(p.reg == self.stack.reg for a in instr.args for p in places(a)):
                e.complain(
                    "A016",
                    f"the top of `{e.registers.list[self.stack.reg].name}` is used together with "
                    "the stack itself",
                    stat,
                    "an array on top is held elsewhere while a statement uses it: make two of them",
                )
        t = e.registers.list[self.ancilla.reg].type
        assert isinstance(t, (Scalar, Array))
        place = Place(self.ancilla.reg, (), t)
        move(e, "push", place, Lit(0, stat.start, stat.end), self.stack, stat)
        e.put(Instr("free", check_operands("free", (place,), e.registers.list)), stat)


class Lowered(Stat):
    """A statement made by the assembler, and the function that lowers it."""

    __slots__ = ("lower",)

    def __init__(self, lower: Callable[[], None], start: int, end: int) -> None:
        super().__init__(start, end)
        self.lower = lower


def text_of(stack: Slot) -> str:
    """The type of a stack as texts write it."""
    assert isinstance(stack.type, Stack)
    return stack_text(stack.type.elem, stack.shape)


def move(e: CodeEmitter, op: str, x: Expr, at: Node, stack: Slot, stat: Stat) -> None:
    """`push` or `pop` of an array, element by element; Rejected unless it has the lengths."""
    assert isinstance(stack.type, Stack)
    want = with_rank(stack.type.elem, len(stack.shape))
    if not isinstance(x, Place) or x.type != want:
        given = x.type if isinstance(x, Place) and x.type is not None else "none"
        what = f"what is moved is of type {given}, and the stack a {text_of(stack)}"
        e.reject("A040", what, at)
    have = _lengths(e, x)
    if have != stack.shape:
        known = ", ".join("?" if n is None else str(n) for n in have)
        e.reject(
            "A040",
            f"an array of {elem_of(want)}[{known}] does not fit a {text_of(stack)}",
            at,
            "its lengths must be known here: declare it with them" if None in have else "",
        )
    onto = Place(stack.reg, ())

    def element(items: tuple[Expr, ...]) -> None:
        part = typed_place(x.reg, e.registers.list[x.reg].type, (*x.path, Index(items)))
        e.put(Instr(op, check_operands(op, (part, onto), e.registers.list)), stat)

    if prod(stack.shape) <= WRITTEN_OUT:
        ranges = [range(n) for n in stack.shape]
        found = [tuple(Const(i, I64) for i in items) for items in product(*ranges)]
        for items in found if op == "push" else reversed(found):
            element(items)
        return
    _loops(e, op == "pop", stack.shape, (), element, stat)


def _loops(
    e: CodeEmitter,
    down: bool,
    shape: tuple[int, ...],
    items: tuple[Expr, ...],
    element: Callable[[tuple[Expr, ...]], None],
    stat: Stat,
) -> None:
    """A loop over each axis, and in the innermost one the move of an element."""
    if not shape:
        element(items)
        return
    name = f".at{len(items)}"
    start, end = stat.start, stat.end

    def inner() -> None:
        variable = e.scope.names[name]
        assert isinstance(variable, Slot)
        index = Place(variable.reg, (), I64)
        _loops(e, down, shape[1:], (*items, index), element, stat)

    first, last = Lit(0, start, end), Lit(shape[0] - 1, start, end)
    if down:
        first, last = last, first
    body: list[Stat] = [Lowered(inner, start, end)]
    e.statements([For(Word(name, start, end), first, last, None, down, body, start, end)])


def _lengths(e: CodeEmitter, x: Place) -> tuple[int | None, ...]:
    """The lengths of an array, as far as they are known before a run."""
    assert isinstance(x.type, Array)
    if rank_of(x.type) == 1:
        return (length_of(e, x),)
    found = Lengths(e.registers.list).of_place(x)
    return tuple(d.value if isinstance(d, Const) else None for d in found)


def held_in(e: CodeEmitter, stack: Slot) -> Slot:
    """The ancilla that the array on top of a stack is held in."""
    assert isinstance(stack.type, Stack)
    t = with_rank(stack.type.elem, len(stack.shape))
    lengths = tuple(Const(n, I64) for n in stack.shape)
    name = f".top of {e.registers.list[stack.reg].name}"
    return e.registers.local(name, t, e.scope.owner, lengths)


def hold(e: CodeEmitter, stack: Slot, at: Node, stat: Stat) -> HeldTop:
    """Pop the array on top of a stack into an ancilla."""
    ancilla = held_in(e, stack)
    place = Place(ancilla.reg, (), ancilla.value_type)
    e.put(Instr("alloc", check_operands("alloc", (place,), e.registers.list)), stat)
    move(e, "pop", place, at, stack, stat)
    return HeldTop(stack, ancilla, len(e.code))
