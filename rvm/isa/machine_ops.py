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


def _enter(
    name: str,
    inverse: str,
    operands: str,
    doc: str,
    build: Callable[[Instr], Stmt],
    cost: str = "MOVES",
) -> None:
    parts = [p.split(":") for p in operands.split()]
    formals = tuple(Operand(n, mode, kind) for n, mode, kind in parts)
    add_opcode(OpRow(name, formals, "any", (), inverse or name, doc, cost, build))


def _place(i: Instr, k: int) -> Place:
    return cast(Place, i.args[k])


def _effect(i: Instr) -> Stmt:
    return Effect(i.op, i.symbol, i.args, i.aux)


_enter(
    "alloc",
    "free",
    "x:reg:T v:use:T",
    "Create an ancilla x that holds v (an array in every element; a stack is empty).",
    lambda i: Alloc(_place(i, 0), i.args[1] if len(i.args) > 1 else None),
)
_enter(
    "free",
    "alloc",
    "x:reg:T v:use:T",
    "Check that x holds v (a stack: that it is empty), then remove it.",
    lambda i: Free(_place(i, 0), i.args[1] if len(i.args) > 1 else None),
)
_enter(
    "fresh",
    "drop",
    "x:reg:T",
    "Create an ancilla x that holds zero; its inverse removes x, whatever it holds.",
    lambda i: Fresh(_place(i, 0)),
)
_enter(
    "drop",
    "fresh",
    "x:reg:T",
    "Remove x, whatever it holds; its inverse creates it with zero.  Bits are erased.",
    lambda i: Drop(_place(i, 0)),
)
_enter(
    "push",
    "pop",
    "x:mut:T s:stack:T",
    "Move x to the top of the stack s and leave zero in x.",
    lambda i: Push(_place(i, 0), _place(i, 1)),
)
_enter(
    "pop",
    "push",
    "x:mut:T s:stack:T",
    "Move the top of the stack s to x, which must be zero.",
    lambda i: Pop(_place(i, 0), _place(i, 1)),
)
_enter(
    "br",
    "cf",
    "c:use:bool",
    "If c, go to the come-from that this branch is paired with; its condition must then hold.",
    lambda i: Branch(i.args[0], i.aux),
)
_enter(
    "cf",
    "br",
    "c:use:bool",
    "The end of a branch: c must hold if its branch jumps to it, and must not hold otherwise.",
    lambda i: Land(i.args[0], i.aux),
)
_enter(
    "call",
    "uncall",
    "",
    "Run a function on places (by reference) and values (which it must leave as they are).",
    lambda i: Call(i.symbol, i.args, False),
)
_enter(
    "uncall",
    "call",
    "",
    "Undo a function: run it backwards.",
    lambda i: Call(i.symbol, i.args, True),
)
_enter("print", "", "", "Print a text, in the directions that its block names.", _effect)
_enter("assert", "", "c:use:bool", "End the run with an error unless c holds.", _effect)
_enter("callback", "", "", "Call a Python function with values; it changes no place.", _effect)
