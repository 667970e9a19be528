"""Calls between compiled functions: arrays and stacks by reference, scalars there and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rvm.emit.llvm import context
from rvm.emit.llvm.values import Location, View, variable_types
from rvm.emit.llvm.writer import COLD, operands
from rvm.expr import Apply, Const, Expr, Index, Place, Span
from rvm.image import Code
from rvm.state import FRAME_BYTES
from rvm.stmt import Call
from rvm.types import Array, Scalar

if TYPE_CHECKING:
    from rvm.emit.llvm.function import FunctionPrinter
from rvm.emit.values import Unprintable


def is_callable(code: Code, pc: int) -> bool:
    """Whether the instruction at `pc` is a call that compiled code can make."""
    call = code.stmts(pc)[0]
    if not isinstance(call, Call) or code.clashes(pc):
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


def print_call(p: FunctionPrinter, pc: int, done: int) -> None:
    """A call, from its entry to its return; two ticks."""
    call = cast(Call, p.code.stmts(pc)[0])
    callee = p.code.callee(pc)
    changed = p.code.image.inout[call.callee]
    arguments: list[str] = []
    returned: list[tuple[Location, Location]] = []
    shapes: dict[int, View] = {}
    scattered: set[int] = set()
    for k, arg in enumerate(call.args):
        t = callee.function.registers[k].type
        if isinstance(t, Array):
            view = p.viewed(cast(Place, arg))
            shapes[k] = view
            arguments += [f"ptr {view.pointer}", *(f"i64 {d}" for d in view.dims)]
            if not is_contiguous(p, cast(Place, arg)):
                scattered.add(k)
                arguments += [f"i64 {s}" for s in view.strides]
        elif not isinstance(t, Scalar):
            arguments.append(f"ptr {p.load('ptr', p.stacks[cast(Place, arg).reg])}")
        elif k in changed:
            place = p.located(cast(Place, arg))
            parts = tuple(p.variable(v, "arg") for v in variable_types(t))
            passed = Location(parts, t, variable=True)
            p.write(passed, p.read(place))
            returned.append((place, passed))
            arguments += [f"ptr {v}" for v in parts]
        else:
            arguments += [f"{kind} {v}" for kind, v in operands(t, p.value(arg))]
    check_lengths(p, callee, shapes)
    total = p.room(str(FRAME_BYTES))
    p.trouble(p.too_deep())
    arguments += p.entering(pc)
    p.grow(total)
    entered = p.op(f"sub i64 {p.load('i64', p.ticks)}, {done + 1}")
    p.store("i64", entered, p.field(context.TICKS))
    symbol = p.callees.inner(callee, frozenset(scattered))
    how = p.op(f"call i32 @{symbol}({', '.join([*arguments, 'ptr %ctx'])})")
    left = p.load("i64", p.field(context.TICKS))
    stopped, back = p.fresh("stopped"), p.fresh("back")
    p.store("i64", left, p.ticks)
    p.fork(p.compare("ne", "i32", how, str(context.DONE)), stopped, back, COLD)
    p.label(stopped)
    p.unreturned(pc, entered)
    p.store("i64", str(pc), p.position)
    p.store("i32", how, p.how)
    p.jump("stop")
    p.label(back)
    for place, passed in returned:
        p.write(place, p.read(passed))
    p.shrink(str(FRAME_BYTES))
    left = p.op(f"sub i64 {left}, 1")
    p.store("i64", left, p.ticks)
    p.returned(pc, entered, left)


def is_contiguous(p: FunctionPrinter, arg: Place) -> bool:
    """Whether a place is known to lie in C order without gaps: as `x`, `x[i]`, `x[i, a:b, :]`."""
    if p.arrays[arg.reg].strides or len(arg.path) > 1:
        return False
    if not arg.path:
        return True
    step = arg.path[0]
    if not isinstance(step, Index):
        return False
    spans = [k for k, item in enumerate(step.items) if isinstance(item, Span)]
    first = spans[0] if spans else len(step.items)
    return all(
        isinstance(item, Span) and item.lo is None and item.hi is None
        for item in step.items[first + 1 :]
    )


def check_lengths(p: FunctionPrinter, callee: Code, shapes: dict[int, View]) -> None:
    """Trouble unless the lengths are those that the callee's parameters ask for."""
    for k, view in shapes.items():
        for axis, dim in enumerate(callee.function.registers[k].dims):
            match dim:
                case None:
                    continue
                case Const(v):
                    want = str(v)
                case Apply("dim", (Place(reg, ()), Const(other))):
                    want = shapes[reg].dims[other]
                case _:
                    raise Unprintable
            if want != view.dims[axis]:
                p.trouble(p.compare("ne", "i64", view.dims[axis], want))
