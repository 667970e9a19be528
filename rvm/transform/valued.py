"""A gradient program that also returns results: run, read them, run back with adjoints."""

from __future__ import annotations

from collections.abc import Sequence

from rvm.expr import Expr, Place
from rvm.faults import UsageError
from rvm.program import Function, Instr, Param, Program, Register
from rvm.transform.duals import unique
from rvm.types import F32, F64, Scalar


def valued(gradient: Program, places: Sequence[Place]) -> Program:
    """A gradient program with an entry whose last parameters gain the values of places.

    `gradient` is one without a loss, `places` are of its function's parameters, of type f64 or f32.
    The parameters of the entry are single registers: those of the gradient program's entry in
    order, and one for each value.
    """
    entry = gradient.function(gradient.entry)
    forwards, backwards = entry.code
    n = entry.n_args
    taken = {r.name for r in entry.registers}
    registers, code = list(entry.registers), [forwards]
    for k, place in enumerate(places):
        t = place.type
        if t not in (F64, F32):
            raise UsageError("U001", f"a value of type {t} cannot be read on the way")
        assert isinstance(t, Scalar)
        args: tuple[Expr, ...] = (Place(n + k, (), t), place)
        code.append(Instr("add", args))
        name = unique("value", taken)
        taken.add(name)
        registers.append(Register(name, t))
    made = Function(
        unique(entry.name + "_value", set(gradient)),
        tuple(Param(f"{k}", k) for k in range(len(registers))),
        tuple(registers),
        (*code, backwards),
        (),
        entry.dims,
    )
    return Program((made, *gradient.functions), made.name, gradient.sources)
