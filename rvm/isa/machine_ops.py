"""Opcodes for memory, control and effects, which are not just data statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from rvm.expr import Place
from rvm.isa.rows import Operand, OpRow, add_opcode
from rvm.program import Instr
from rvm.stmt import Alloc, Branch, Call, Drop, Effect, Free, Fresh, Land, Pop, Push, Stmt

MAKES = ("alloc", "fresh")
"""Opcodes that begin a register's life, or end it in the other direction."""
ENDS = ("free", "drop")
"""Opcodes that end a register's life, or begin it in the other direction."""
VARIADIC = ("call", "uncall", "print", "assert", "callback")
SHOWS = ("print", "callback")
"""Effects that also accept a whole stack."""
"""Opcodes whose operands are as many as the callee or the text takes."""


def _enter(head: str, inverse: str, doc: str, build: Callable[[Instr], Stmt]) -> None:
    """Enter an opcode: its name and operands, each with its mode and its type."""
    name, *operands = head.split()
    formals = tuple(Operand(*o.split(":")) for o in operands)
    add_opcode(OpRow(name, formals, "any", (), inverse or name, doc, "MOVES", build))


def _place(i: Instr, k: int) -> Place:
    return cast(Place, i.args[k])


def _effect(i: Instr) -> Stmt:
    return Effect(i.op, i.symbol, i.args, i.aux)


_enter(
    "alloc x:reg:T v:use:T",
    "free",
    "Create an ancilla x that holds v (an array in every element; a stack is empty).",
    lambda i: Alloc(_place(i, 0), i.args[1] if len(i.args) > 1 else None),
)
_enter(
    "free x:reg:T v:use:T",
    "alloc",
    "Check that x holds v (a stack: that it is empty), then remove it.",
    lambda i: Free(_place(i, 0), i.args[1] if len(i.args) > 1 else None),
)
_enter(
    "fresh x:reg:T",
    "drop",
    "Create an ancilla x that holds zero; its inverse removes x, whatever it holds.",
    lambda i: Fresh(_place(i, 0)),
)
_enter(
    "drop x:reg:T",
    "fresh",
    "Remove x, whatever it holds; its inverse creates it with zero.  Bits are erased.",
    lambda i: Drop(_place(i, 0)),
)
_enter(
    "push x:mut:T s:stack:T",
    "pop",
    "Move x to the top of the stack s and leave zero in x.",
    lambda i: Push(_place(i, 0), _place(i, 1)),
)
_enter(
    "pop x:mut:T s:stack:T",
    "push",
    "Move the top of the stack s to x, which must be zero.",
    lambda i: Pop(_place(i, 0), _place(i, 1)),
)
_enter(
    "br c:use:bool",
    "cf",
    "If c, go to the come-from that this branch is paired with; its condition must then hold.",
    lambda i: Branch(i.args[0], i.aux),
)
_enter(
    "cf c:use:bool",
    "br",
    "The end of a branch: c must hold if its branch jumps to it, and must not hold otherwise.",
    lambda i: Land(i.args[0], i.aux),
)
_enter(
    "call",
    "uncall",
    "Run a function on places (by reference) and values (which it must leave as they are).",
    lambda i: Call(i.symbol, i.args, False),
)
_enter(
    "uncall", "call", "Undo a function: run it backwards.", lambda i: Call(i.symbol, i.args, True)
)
_enter("print", "", "Print a text, in the directions that its block names.", _effect)
_enter("assert c:use:bool", "", "End the run with an error unless c holds.", _effect)
_enter("callback", "", "Call a Python function with values; it changes no place.", _effect)
