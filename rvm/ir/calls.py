"""Calls between compiled functions: arrays and stacks by reference, scalars there and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from rvm.expr import Apply, Const, Expr, Index, Place, Span, reads
from rvm.image import Code
from rvm.ir import context, strict
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.items import parts_of
from rvm.ir.node import I32, PTR, Node, constant
from rvm.ir.places import Location, Variables, View, kinds_of
from rvm.ir.registers import too_deep
from rvm.ir.statements import apart, grow, room, shrink
from rvm.ir.typed import Unprintable
from rvm.ir.values import located, put, read, strides, value, viewed
from rvm.state import FRAME_BYTES
from rvm.stmt import Call
from rvm.types import Array, Scalar


def is_callable(code: Code, pc: int) -> bool:
    """Whether the instruction at `pc` is a call that compiled code can make."""
    call = code.stmts(pc)[0]
    if not isinstance(call, Call):
        return False
    if not all(place.path for x, y, _ in code.clashes(pc) for place in (x, y)):
        return False
    callee = code.image.program.function(call.callee)
    changed = code.image.inout[call.callee]
    for k, arg in enumerate(call.args):
        t = callee.registers[k].type
        if not isinstance(arg, Place) and (k in changed or not isinstance(t, Scalar)):
            # A value that is changed must be compared on return.
            return False
        if not all(dim is None or _plain(dim) for dim in callee.registers[k].dims):
            return False
    return True


def _plain(dim: Expr) -> bool:
    match dim:
        case Const() | Apply("dim", (Place(_, ()), Const())):
            return True
    return False


def call(b: FunctionBuilder, pc: int, done: int, way: Callable[[], str]) -> None:
    """A call, from its entry to its return; two ticks."""
    stmt = cast(Call, b.code.stmts(pc)[0])
    callee = b.code.callee(pc)
    changed = b.code.image.inout[stmt.callee]
    varying = None
    if b.varying is not None:
        varying = frozenset(
            k
            for k, arg in enumerate(stmt.args)
            if any(place.reg in b.varying for place in reads(arg))
        )
    apart(b, b.code.clashes(pc))
    arguments: list[Node] = []
    by_lane: set[int] = set()
    """The arguments that are numbers which differ by lane."""
    returned: list[tuple[Location, Variables]] = []
    shapes: dict[int, View] = {}
    scattered: set[int] = set()
    for k, arg in enumerate(stmt.args):
        t = callee.function.registers[k].type
        if isinstance(t, Array):
            place = cast(Place, arg)
            view = shapes[k] = viewed(b, place)
            zero = b.i64(0)
            bases = (zero if p is None else p for p in view.bases)
            arguments.append(b.op("address", *bases, kind=PTR, aux=(view.reg, view.part or 0)))
            arguments += view.dims
            if not _is_contiguous(b, place):
                scattered.add(k)
                arguments += strides(b, view)
        elif not isinstance(t, Scalar):
            arguments.append(b.get(b.stacks[cast(Place, arg).reg]))
        elif k in changed:
            there = located(b, cast(Place, arg))
            passed = Variables(tuple(b.variable(v, "arg") for v in kinds_of(t)), t)
            put(b, passed, read(b, there))
            returned.append((there, passed))
            parts = tuple(Node("variable", PTR, (), v) for v in passed.parts)
        else:
            parts = parts_of(value(b, arg))
        if isinstance(t, Scalar):
            if varying and k in varying:
                by_lane.update(range(len(arguments), len(arguments) + len(parts)))
            arguments += parts
    _check_lengths(b, callee, shapes)
    total = room(b, b.i64(FRAME_BYTES))
    b.trouble(too_deep(b))
    b.do("entering", aux=(pc, way))
    grow(b, total)
    entered = b.op("wsub", b.get(b.ticks), b.i64(done + 1))
    b.write_field(context.TICKS, entered)
    strict.settle(b)
    symbol = b.callees.inner(callee, frozenset(scattered), varying)
    how = b.op("call", *arguments, kind=I32, aux=(symbol, by_lane, pc))
    left = b.read_field(context.TICKS)
    b.set(b.ticks, left)
    strict.load(b)
    stopped, back = b.fresh("stopped"), b.fresh("back")
    b.fork(b.op("ne", how, constant(context.DONE, I32)), stopped, back, unlikely=True)
    b.block(stopped)
    b.do("unreturned", entered, aux=pc)
    b.set(b.position, b.i64(pc))
    b.set(b.how, how)
    b.jump("stop")
    b.block(back)
    for there, passed in returned:
        put(b, there, read(b, passed))
    shrink(b, b.i64(FRAME_BYTES))
    left = b.op("wsub", left, b.i64(1))
    b.set(b.ticks, left)
    b.do("returned", entered, left, aux=pc)


def _is_contiguous(b: FunctionBuilder, arg: Place) -> bool:
    """Whether a place is known to be contiguous in C order: such as `x`, `x[i]`, `x[i, a:b, :]`."""
    if b.arrays[arg.reg].strides or len(arg.path) > 1:
        return False
    if not arg.path:
        return True
    step = arg.path[0]
    if not isinstance(step, Index):
        return False
    spans = [k for k, item in enumerate(step.items) if isinstance(item, Span)]
    first = spans[0] if spans else len(step.items)
    return all(
        isinstance(item, Span) and (item.is_whole if k else item.by is None)
        for k, item in enumerate(step.items[first:])
    )


def _check_lengths(b: FunctionBuilder, callee: Code, shapes: dict[int, View]) -> None:
    """Trouble unless the lengths are those that the callee's parameters ask for."""
    for k, view in shapes.items():
        for axis, dim in enumerate(callee.function.registers[k].dims):
            match dim:
                case None:
                    continue
                case Const(v):
                    want = b.i64(v)
                case Apply("dim", (Place(reg, ()), Const(other))):
                    want = shapes[reg].dims[other]
                case _:
                    raise Unprintable
            if want is not view.dims[axis]:
                b.trouble(b.op("ne", view.dims[axis], want))
