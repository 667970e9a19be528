"""Errors for a register with a wrong value when it is freed, in terms of its source text.

The expected value in a forward run is the one given when the register is freed; in a backward run,
its initial value. Some registers are internal to the assembler: messages name their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rvm.engines.disagreement import changes, of_carried
from rvm.expr import Const, Expr, Place
from rvm.faults import InvertibilityError
from rvm.program import Function, Instr
from rvm.state import Frame
from rvm.transform.duals import BAR, DOT
from rvm.types import BOOL
from rvm.verify.text import show


def misheld(frame: Frame, reg: int, value: Expr, error: InvertibilityError) -> InvertibilityError:
    """The error for a register freed with a wrong value, in terms of its source text."""
    register = frame.code.function.registers[reg]
    if register.is_own and register.type == BOOL:
        return of_carried(frame)
    if error.code == "R001" and not (_is_passed(frame, value, error) or _is_bound(frame, error)):
        wanted, changed = _notes(frame, reg, value)
        if changed:
            error.hint = "undo that change before the free, or make it after the free"
        error.notes += (*wanted, *changed)
    return error


def not_returned(
    callee: Function, param: str, passed: str, values: Mapping[str, Any]
) -> InvertibilityError:
    """The error R012 for a function that leaves a parameter with another value than was passed."""
    hint = "pass a place or a bijection of one, or let the function restore the value"
    if param.endswith((BAR, DOT)):
        hint = "pass a place that holds the value: afterwards it has the result"
    return InvertibilityError(
        "R012",
        f"`{callee.name}` returns with another value in `{param}`, which was passed `{passed}`",
        values=dict(zip((param, "expression"), values.values(), strict=True)),
        hint=hint,
    )


def _is_passed(frame: Frame, value: Expr, error: InvertibilityError) -> bool:
    """Whether the register is the assembler's, for a value that a derivative is passed: R012."""
    callee, _, param = next(iter(error.values)).rpartition(".")
    program = frame.code.image.program
    if callee not in program:
        return False
    function = program.function(callee)
    if all(r.name != param for r in function.registers[: function.n_args]):
        return False
    found = not_returned(function, param, show(value, frame.code.function), error.values)
    error.code, error.message = found.code, found.message
    error.values, error.hint = found.values, found.hint
    return True


def _is_bound(frame: Frame, error: InvertibilityError) -> bool:
    """Whether the register is the assembler's, for a bound of a `for`."""
    variable, _, role = next(iter(error.values)).rpartition(".")
    what, value = _BOUNDS.get(role, ("", ""))
    if not what or all(r.name != variable for r in frame.code.function.registers):
        return False
    back = "running back, " * frame.code.undo
    error.message = f"{back}the {what} of the loop over `{variable}` has changed"
    error.values = dict(zip((value, "expected"), error.values.values(), strict=True))
    error.hint = "leave the loop's bounds alone, or loop over a copy of them"
    return True


_BOUNDS = {
    "lo": ("first value", "first value"),
    "step": ("step", "step"),
    "end": ("last value", "value after the last"),
}
"""The assembler's registers for a loop, by the suffixes of their names: what follows from each,
and what it holds."""


def _notes(frame: Frame, reg: int, value: Expr) -> tuple[list[str], list[str]]:
    """The value that a register must hold, as written, and the lines that change it."""
    if isinstance(value, Const) or frame.code.undo:
        return [], []
    code, at = frame.code.function.code, frame.pc
    name = frame.code.function.registers[reg].name
    wanted = show(value, frame.code.function)
    made = (k for k in range(at - 1, -1, -1) if code[k].op == "alloc" and _of(code[k]) == reg)
    changed = [*changes(frame, value, range(next(made, at - 1) + 1, at))]
    # A value that is passed is known by its own text.
    return [f"`{name}` must hold `{wanted}` here"] if wanted != name else [], changed


def _of(instr: Instr) -> int:
    place = instr.args[0]
    return place.reg if isinstance(place, Place) else -1
