"""Inversion: the program that undoes a program.

There is no backward interpreter. Running back means running this code forwards: the instructions in
reverse order, each replaced by its inverse, with jumps remapped from index i to n - 1 - i.
"""

from __future__ import annotations

from dataclasses import replace

from rvm.isa import invert_instr
from rvm.program import Function, Instr, Program


def invert_function(function: Function) -> Function:
    """The function with the same parameters that runs `function` backwards."""
    last = len(function.code) - 1
    code: list[Instr] = []
    for instr in reversed(function.code):
        undo = invert_instr(instr)
        if undo.op in ("br", "cf"):
            undo = replace(undo, aux=last - undo.aux)
        code.append(undo)
    marks = function.undoing
    return replace(
        function,
        code=tuple(code),
        spans=tuple(reversed(function.spans)),
        undoing=None if marks is None else frozenset(last - pc for pc in marks),
        origins=(),
    )


def invert(program: Program) -> Program:
    """The program in which every function is the inverse of the function of that name.

    Calls keep their names: the inverse of `call f` is `uncall f`, and uncalling the inverse of `f`
    is calling `f`; so in the inverse program the two are exchanged once more.
    """
    swap = {"call": "uncall", "uncall": "call"}
    functions = []
    for function in program.functions:
        inverse = invert_function(function)
        code = tuple(replace(i, op=swap[i.op]) if i.op in swap else i for i in inverse.code)
        functions.append(replace(inverse, code=code))
    return Program(tuple(functions), program.entry, program.sources)
