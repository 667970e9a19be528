"""Registers over lanes that are created and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rvm.emit.numpy.known import Value
from rvm.emit.numpy.places import integer
from rvm.expr import Apply, Const, Expr, Place
from rvm.ir.typed import type_of
from rvm.numbers import system
from rvm.program import Register
from rvm.stmt import Drop, Free
from rvm.types import Array, Scalar, Stack, elem_of

if TYPE_CHECKING:
    from rvm.emit.numpy.values import LaneValues


def zero(place: Place) -> Const:
    """The zero of a place's numbers."""
    t = elem_of(type_of(place))
    return Const(system(t).zero, t)


def make(p: LaneValues, reg: Place, value: Expr | None) -> None:
    """A register with a value in every lane, zero if none is given; a stack begins empty."""
    register, name = p.function.registers[reg.reg], p.regs[reg.reg]
    dtype = p.bind(system(elem_of(register.type)).dtype)
    if isinstance(register.type, Stack):
        p.lines.append(f"{name} = LaneStack({dtype}, _W)")
        p.known.changed(reg.reg)
        return
    value = zero(reg) if value is None else value
    if isinstance(register.type, Array):
        held = p.lanes(value)
        p.lines.append(f"{name} = array_of({_shape(p, register)}, {held.text}, {dtype}, _W)")
        p.known.changed(reg.reg)
        return
    number, is_new = p.known.number(value), p.is_new(value)
    held = p.apply(cast(Apply, value)) if is_new else p.lanes(value)
    made = held.text if held.text in p.results else f"own({held.text}, _W)"
    p.lines.append(f"{name} = {made if is_new else f'vector({held.text}, {dtype}, _W)'}")
    p.known.changed(reg.reg, number)
    if not isinstance(value, Const) and number not in p.known.have:
        p.known.remember(number, Value(name, reg.reg))


def _shape(p: LaneValues, register: Register) -> str:
    """The lengths of an array register, which must be the same in all lanes that are together."""
    return f"({''.join(f'{integer(p, d)}, ' for d in register.dims if d is not None)})"


def give_up(p: LaneValues, stmt: Free | Drop) -> None:
    """A register checked against its value, or forgotten."""
    reg = stmt.reg
    register, name = p.function.registers[reg.reg], p.regs[reg.reg]
    if isinstance(register.type, Stack):
        p.lines.append(f"{name}.empty()")
    elif isinstance(stmt, Drop):
        p.lines.append(f"erased(_ctx, {elem_of(register.type).bits}, {name}, _W)")
    else:
        _check(p, stmt, register, name)
    p.lines.append(f"{name} = None")
    p.known.changed(reg.reg)


def _check(p: LaneValues, stmt: Free, register: Register, name: str) -> None:
    assert stmt.value is not None
    sizes = "".join(f", {p.lanes(size).text}" for size in stmt.judged or ())
    sizes += ", returns=True" * stmt.returns
    t = p.bind(system(elem_of(register.type)))
    if isinstance(register.type, Scalar):
        # The same calls on the same values have given the same bits.
        if p.known.number(stmt.value) == p.known.number(stmt.reg):
            return
        held = p.lanes(stmt.value)
        p.lines.append(f"residues(_ctx, {t}, {name}, {held.text}, _W{sizes})")
    else:
        held = p.lanes(stmt.value)
        shape = _shape(p, register)
        p.lines.append(f"drop_lanes(_ctx, {t}, {name}, {shape}, {held.text}, _W{sizes})")
