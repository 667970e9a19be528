"""Calls between functions for several lanes: vectors by value, or by reference where changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rvm.emit.llvm import context
from rvm.emit.llvm.calls import check_lengths, is_contiguous
from rvm.emit.llvm.values import Location, View, variable_types
from rvm.emit.llvm.wide_text import vector
from rvm.emit.llvm.writer import COLD, operands
from rvm.emit.values import Unprintable
from rvm.expr import Place, reads
from rvm.state import FRAME_BYTES
from rvm.stmt import Call
from rvm.types import Array, Stack

if TYPE_CHECKING:
    from rvm.emit.llvm.wide import WideFunctionPrinter


def print_wide_call(p: WideFunctionPrinter, pc: int, done: int) -> None:
    """A call, from its entry to its return; two ticks.  Where it stops its caller stops."""
    call = cast(Call, p.code.stmts(pc)[0])
    callee = p.code.callee(pc)
    changed = p.code.image.inout[call.callee]
    params = frozenset(
        k for k, arg in enumerate(call.args) if any(place.reg in p.varying for place in reads(arg))
    )
    arguments: list[str] = []
    returned: list[tuple[Location, Location]] = []
    shapes: dict[int, View] = {}
    scattered: set[int] = set()
    for k, arg in enumerate(call.args):
        t = callee.function.registers[k].type
        if isinstance(t, Array):
            view = p.viewed(cast(Place, arg))
            if view.pointer in p.wide or not p.wide.isdisjoint(view.dims):
                # Another part of the array in every lane.
                raise Unprintable
            if (view.pointer in p.vectors) != (k in params):
                raise Unprintable
            shapes[k] = view
            arguments += [f"ptr {view.pointer}", *(f"i64 {d}" for d in view.dims)]
            if not is_contiguous(p, cast(Place, arg)):
                scattered.add(k)
                arguments += [f"i64 {s}" for s in view.strides]
        elif isinstance(t, Stack):
            raise Unprintable
        elif k in changed:
            place = p.located(cast(Place, arg))
            make = p.vector_variable if k in params else p.variable
            parts = tuple(make(v, "arg") for v in variable_types(t))
            passed = Location(parts, t, variable=True)
            p.write(passed, p.read(place))
            returned.append((place, passed))
            arguments += [f"ptr {v}" for v in parts]
        else:
            for kind, v in operands(t, p.value(arg)):
                if k in params:
                    arguments.append(f"{vector(kind)} {p.splat(kind, v)}")
                else:
                    arguments.append(f"{kind} {v}")
    check_lengths(p, callee, shapes)
    total = p.room(str(FRAME_BYTES))
    p.trouble(p.too_deep())
    p.grow(total)
    left = p.op(f"sub i64 {p.load('i64', p.ticks)}, {done + 1}")
    p.store("i64", left, p.field(context.TICKS))
    symbol = p.module.wide(callee, frozenset(scattered), params)
    how = p.plain(f"call i32 @{symbol}({', '.join([*arguments, 'ptr %ctx'])})")
    left = p.load("i64", p.field(context.TICKS))
    stopped, back = p.fresh("stopped"), p.fresh("back")
    p.store("i64", left, p.ticks)
    p.fork(p.compare("ne", "i32", how, str(context.DONE)), stopped, back, COLD)
    p.label(stopped)
    p.store("i32", how, p.how)
    p.jump("stop")
    p.label(back)
    for place, passed in returned:
        p.write(place, p.read(passed))
    p.shrink(str(FRAME_BYTES))
    p.store("i64", p.op(f"sub i64 {left}, 1"), p.ticks)
