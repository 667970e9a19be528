"""The function of a step, as emitted schedules call it.

    func step(y: T, x: T, ...)          ; y += the state after x; y is zero before

The first parameter receives the next state, the second is the current state: numbers, arrays or
records of the same types.  One parameter of type i64 may be named as the *number*: it is 0 for the
step from s_0, 1 for that from s_1, and so on.  The others are *constants*, which are the same for
every step.

    func turn(x: T, ...)                ; the state in place, by the same step

is the same step done in place, with the same number and constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from rvm.faults import InputError
from rvm.program import Function, Program, slots_of
from rvm.types import I64, Stack, rank_of
from rvm.verify import where_of
from rvm.verify.nodes import MAX_RANK


@dataclass(frozen=True, slots=True)
class Step:
    """A step: its function, and the registers of its parameters by role."""

    function: Function
    y: tuple[int, ...]
    """Leaves of the state after, and as many of the state before."""
    x: tuple[int, ...]
    number: int | None
    in_place: Function | None = None
    by: int = 1
    """The increment of the number from step to step: 1 or -1."""


def step_of(
    program: Program, name: str, number: str | None = None, in_place: str | None = None, by: int = 1
) -> Step:
    """The step defined by a function of a program.

    InputError P020 if it has other parameters than a step, or there is no such function.
    """
    function = _named(program, name)
    if len(function.params) < 2:
        _refuse(program, function, "has less than two parameters")
    y, x = (tuple(slots_of(p.layout)) for p in function.params[:2])
    registers = function.registers
    if [registers[k].type for k in y] != [registers[k].type for k in x]:
        first, second = (p.name for p in function.params[:2])
        _refuse(program, function, f"has `{first}` and `{second}` of different types")
    if not y:
        _refuse(program, function, f"has a state `{function.params[0].name}` without a register")
    for k in (*y, *x):
        t = registers[k].type
        if isinstance(t, Stack) or rank_of(t) >= MAX_RANK:
            _refuse(program, function, f"has a state `{registers[k].name}` that no array can hold")
    found: int | None = None
    if number is not None:
        slots = {p.name: p.layout for p in function.params[2:] if isinstance(p.layout, int)}
        found = slots.get(number)
        if found is None or registers[found].type != I64:
            _refuse(program, function, f"has no parameter `{number}: i64` after its states")
    step = Step(function, y, x, found, by=by)
    if in_place is None:
        return step
    turn = _named(program, in_place)
    wanted = [registers[k].type for k in range(function.n_args) if k not in y]
    if [r.type for r in turn.registers[: turn.n_args]] != wanted:
        _refuse(
            program,
            turn,
            f"does not take what `{name}` does without its first parameter",
            f"`{in_place}` turns the state x of `{name}` into the next one where it is",
        )
    return Step(function, y, x, found, turn, by)


def _named(program: Program, name: str) -> Function:
    if name not in program:
        raise InputError(
            "P020", f"the program has no function `{name}`", values={"functions": list(program)}
        )
    return program.function(name)


def _refuse(
    program: Program,
    function: Function,
    what: str,
    hint: str = "a step is `func step(y: T, x: T, ...)`, which adds to y the state after x",
) -> NoReturn:
    raise InputError(
        "P020",
        f"`{function.name}` is not a step: it {what}",
        where=where_of(program, function, 0),
        hint=hint,
    )
