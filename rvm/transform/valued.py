"""A gradient program that also tells the loss: run, read it, run back with adjoints."""

from __future__ import annotations

from rvm.expr import Expr, Place
from rvm.faults import UsageError
from rvm.program import Function, Instr, Param, Program, Register
from rvm.transform.duals import unique
from rvm.types import F32, F64, Scalar


def valued(gradient: Program, loss: Place) -> Program:
    """A gradient program with an entry whose last parameter gains the value of a place.

    `gradient` is one without a loss, `loss` a place of its function's parameters of type f64 or
    f32.  The parameters of the entry are single registers: those of the gradient program's entry
    in order, and the one for the value.
    """
    entry = gradient.function(gradient.entry)
    t = loss.type
    if t not in (F64, F32):
        raise UsageError("U001", f"a loss of type {t} cannot be read on the way")
    assert isinstance(t, Scalar)
    forwards, backwards = entry.code
    n = entry.n_args
    taken = {r.name for r in entry.registers}
    args: tuple[Expr, ...] = (Place(n, (), t), loss)
    made = Function(
        unique(entry.name + "_value", set(gradient)),
        tuple(Param(f"{k}", k) for k in range(n + 1)),
        (*entry.registers, Register(unique("value", taken), t)),
        (forwards, Instr("add", args), backwards),
        (),
        entry.dims,
    )
    return Program((made, *gradient.functions), made.name, gradient.sources)
