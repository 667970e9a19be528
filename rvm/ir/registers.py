"""Registers of a function that is being compiled: where they come from, and where they go.

A *root* is entered from Python, with its registers in a row of slots, and leaves them there.  An
*inner* function is called by compiled code, with its parameters as arguments; if it cannot
continue, it stores its registers in a frame, and so do its callers.

For several lanes, slots hold vectors.  Where lanes diverge, each continues by itself, and they are
together again at the end of the function.  If a run is to start again from its inputs, nothing of
it is kept, and only memory must be released.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from rvm.ir import context, strict
from rvm.ir.arrays import contiguous, release
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.context import FRAMED, MINE, WIDTH, slots
from rvm.ir.node import F64, I32, I64, PTR, Argument, Node, Var, constant
from rvm.ir.places import ArrayVariable, item_size, kinds_of
from rvm.types import Array, Scalar, elem_of

ROW = Argument("regs", PTR, is_alone=True)
"""The row of slots that a root is given."""
LANE = Argument("lane", I64)
"""The number of the lane that continues alone."""


def declare(b: FunctionBuilder) -> None:
    """Make the variables of all registers."""
    for k, register in enumerate(b.function.registers):
        t = register.type
        if isinstance(t, Scalar):
            b.scalars[k] = tuple(b.variable(v, f"r{k}_") for v in kinds_of(t))
        elif isinstance(t, Array):
            dims = tuple(b.variable(I64, f"d{k}_") for _ in range(t.rank))
            strides = tuple(b.variable(I64, f"s{k}_") for _ in range(t.rank))
            b.arrays[k] = ArrayVariable(
                b.variable(PTR, f"p{k}_"),
                dims,
                strides if k in b.kind.scattered else (),
                b.variable(I64, f"o{k}_") if k >= b.function.n_args else None,
            )
        else:
            b.stacks[k] = b.variable(PTR, f"k{k}_")


def slot(b: FunctionBuilder, base: Node, k: int) -> Node:
    """A pointer to a slot of a row."""
    return b.op("slot", base, kind=PTR, aux=k)


# ------------------------------------------------------------------------- coming in


def enter(b: FunctionBuilder) -> None:
    """Load the registers, and begin to count ticks and erased bits."""
    if b.kind.root:
        if b.left is None:
            _bound_stack(b)
        _from_slots(b)
    else:
        _from_arguments(b)
    for held in b.arrays.values():
        if held.owner is not None and (b.kind.anew or not b.kind.root):
            b.set(held.owner, b.i64(0))
    b.set(b.ticks, b.read_field(context.TICKS))
    b.set(b.erased, b.i64(0))
    strict.load(b)
    if b.lanes:
        b.set(b.drift, constant(0.0, F64))


def too_deep(b: FunctionBuilder) -> Node:
    """Whether the stack has grown as far as it may."""
    here = b.op("ptrtoint", b.op("frame", kind=PTR), kind=I64)
    return b.op("ult", here, b.read_field(context.DEEPEST))


def _bound_stack(b: FunctionBuilder) -> None:
    """Raise the floor by the size of one more call; leave at once if that is too high."""
    b.write_field(
        context.DEEPEST, b.op("wadd", b.read_field(context.DEEPEST), b.op("frames", kind=I64))
    )
    low, going = b.fresh("low"), b.fresh("go")
    b.fork(too_deep(b), low, going, unlikely=True)
    b.block(low)
    if not b.anywhere:
        b.write_field(context.PC, b.i64(b.kind.entry))
    b.do("return", constant(context.STOPPED, I32))
    b.block(going)


def _from_slots(b: FunctionBuilder) -> None:
    """Load a root's registers; those that are not live are loaded but never used."""
    row = b.argument(ROW)
    if b.left is not None:
        b.argument(LANE)
    starts, _ = slots(r.type for r in b.function.registers)

    def take(v: Var, at: int, reg: int | None = None, op: str = "fetch") -> None:
        b.set(v, b.op(op, row, kind=v.kind, aux=(at, reg)))

    for k, start in enumerate(starts):
        t = b.function.registers[k].type
        if b.lanes and k >= b.function.n_args:
            continue
        if isinstance(t, Scalar):
            for part, v in enumerate(b.scalars[k]):
                take(v, start + part, k)
        elif isinstance(t, Array):
            held = b.arrays[k]
            take(held.pointer, start)
            if held.owner is not None:
                take(held.owner, start + 1)
            for axis, v in enumerate(held.dims):
                take(v, start + 2 + axis, op="length")
            if b.left is None:
                for axis, v in enumerate(held.strides):
                    take(v, start + 2 + t.rank + axis)
            elif k in b.left.varying:
                size = item_size(t.elem)
                away = b.op("wmul", b.given(LANE), b.i64(size))
                moved = b.op("moved", b.get(held.pointer), away, kind=PTR)
                b.set(held.pointer, moved)
                contiguous(b, k, WIDTH * size)
        else:
            take(b.stacks[k], start)


def _from_arguments(b: FunctionBuilder) -> None:
    """Take an inner function's parameters from its arguments."""
    changed = b.code.image.inout[b.code.name]
    for k in range(b.function.n_args):
        t = b.function.registers[k].type
        if isinstance(t, Array):
            held = b.arrays[k]
            b.set(held.pointer, b.argument(Argument(f"a{k}", PTR)))
            for axis, v in enumerate(held.dims):
                b.set(v, b.argument(Argument(f"a{k}d{axis}", I64, is_length=True)))
            for axis, v in enumerate(held.strides):
                b.set(v, b.argument(Argument(f"a{k}s{axis}", I64)))
        elif isinstance(t, Scalar):
            for part, v in enumerate(b.scalars[k]):
                name = f"a{k}p{part}"
                if k in changed:
                    given = b.argument(Argument(name, PTR, is_alone=True, reg=k))
                    b.set(v, b.peek(v.kind, given))
                else:
                    b.set(v, b.argument(Argument(name, v.kind, reg=k)))
        else:
            b.set(b.stacks[k], b.argument(Argument(f"a{k}", PTR)))


# ------------------------------------------------------------------------- ways out


def settle(b: FunctionBuilder) -> None:
    """Store the counters in the context."""
    b.write_field(context.TICKS, b.get(b.ticks))
    strict.settle(b)
    field = b.op("total", kind=PTR, aux=context.ERASED)
    b.poke(b.op("wadd", b.peek(I64, field), b.get(b.erased)), field)
    if b.lanes:
        field = b.op("total", kind=PTR, aux=context.DRIFT)
        b.poke(b.larger(b.peek(F64, field), b.get(b.drift)), field)
    b.do("settle")


def finish(b: FunctionBuilder) -> None:
    """The end of the code."""
    if b.kind.root and not b.kind.anew:
        b.set(b.position, b.i64(len(b.code)))
        b.set(b.how, constant(context.DONE, I32))
        b.jump("stop")
        return
    for k, at, v in _results(b):
        if b.kind.root:
            b.do("leave", b.get(v), b.given(ROW), aux=(at, k))
        else:
            _give_back(b, k, at, b.get(v))
    settle(b)
    b.do("return", constant(context.DONE, I32))


def _results(b: FunctionBuilder) -> Iterator[tuple[int, int, Var]]:
    """The scalar parameters that the code changes, part by part: with slots and variables."""
    starts, _ = slots(r.type for r in b.function.registers)
    for k in sorted(b.code.image.inout[b.code.name]):
        for part, v in enumerate(b.scalars.get(k, ())):
            yield k, starts[k] + part, v


def _give_back(b: FunctionBuilder, reg: int, at: int, value: Node) -> None:
    """Return to a caller the value of a parameter that an inner function changes."""
    part = at - slots(r.type for r in b.function.registers)[0][reg]
    b.poke(value, b.given(Argument(f"a{reg}p{part}", PTR, is_alone=True, reg=reg)))


def stop(b: FunctionBuilder) -> None:
    """Leave with all registers in slots; if a run is to begin anew, with nothing."""
    if b.kind.anew:
        if b.partings:
            parted, left = b.fresh("parted"), b.fresh("left")
            b.fork(b.op("eq", b.get(b.how), constant(context.PARTED, I32)), parted, left)
            b.block(parted)
            _part(b)
            b.block(left)
        _release_all(b)
        settle(b)
        b.do("return", b.get(b.how))
        return
    starts, count = slots(r.type for r in b.function.registers)
    if b.kind.root:
        base, first = b.given(ROW), 0
        b.write_field(context.PC, b.get(b.position))
    else:
        base, first = (b.helper("malloc", PTR, b.i64(8 * (context.HEADER + count))), context.HEADER)
        lost, held_label = b.fresh("lost"), b.fresh("held")
        b.fork(b.op("eq", base, constant(None, PTR)), lost, held_label, unlikely=True)
        b.block(lost)
        settle(b)
        b.do("return", constant(context.LOST, I32))
        b.block(held_label)
        b.poke(b.read_field(context.FRAMES, PTR), slot(b, base, context.NEXT))
        b.poke(b.i64(b.callees.number(b.code)), slot(b, base, context.CODE))
        b.poke(b.get(b.position), slot(b, base, context.POSITION))
        b.write_field(context.FRAMES, base)
    for k, start in enumerate(starts):
        _save(b, k, base, first + start)
    settle(b)
    b.do("return", b.get(b.how))


def _release_all(b: FunctionBuilder) -> None:
    for reg, held in b.arrays.items():
        if held.owner is not None:
            release(b, reg)


def _part(b: FunctionBuilder) -> None:
    """Let each lane continue alone to the code's end, and then leave with all of them."""
    starts, count = slots(r.type for r in b.function.registers)
    row = b.given(ROW)
    if not b.kind.root:
        row = Node("room", PTR, (), b.variable(PTR, "row", 8 * WIDTH * count))
    for k, start in enumerate(starts):
        for part, v in enumerate(b.scalars.get(k, ())):
            b.do("leave", b.get(v), row, aux=(start + part, k))
        if k in b.arrays:
            b.poke(b.get(b.arrays[k].pointer), slot(b, row, WIDTH * start))
            for axis in range(len(b.arrays[k].dims)):
                b.poke(b.dim(k, axis), slot(b, row, WIDTH * (start + 2 + axis)))
    b.write_field(context.PC, b.get(b.position))
    settle(b)
    single = constant(f"@{b.callees.single(b)}", PTR)
    how = b.helper("rvm_each_lane", I32, single, row, b.field(0))
    _release_all(b)
    ended, left = b.fresh("ended"), b.fresh("left")
    b.fork(b.op("eq", how, constant(context.DONE, I32)), ended, left)
    b.block(ended)
    if not b.kind.root:
        for k, at, v in _results(b):
            _give_back(b, k, at, b.op("fetch", row, kind=v.kind, aux=(at, k)))
    b.do("return", constant(context.DONE, I32))
    b.block(left)
    b.do("return", how)


def _save(b: FunctionBuilder, k: int, base: Node, start: int) -> None:
    t = b.function.registers[k].type
    if isinstance(t, Scalar):
        if k in b.sums:
            b.from_zero(k)
        for part, v in enumerate(b.scalars[k]):
            b.poke(b.get(v), slot(b, base, start + part))
    elif isinstance(t, Array):
        held = b.arrays[k]
        b.poke(b.get(held.pointer), slot(b, base, start))
        owner = b.i64(0) if held.owner is None else b.get(held.owner)
        b.poke(owner, slot(b, base, start + 1))
        for axis in range(t.rank):
            b.poke(b.dim(k, axis), slot(b, base, start + 2 + axis))
            stride = b.op("stride", kind=I64, aux=(k, axis))
            b.poke(stride, slot(b, base, start + 2 + t.rank + axis))
        if k in b.frames:
            _move_out(b, k, t, base, start)
    else:
        b.poke(b.get(b.stacks[k]), slot(b, base, start))


def _move_out(b: FunctionBuilder, reg: int, t: Array, base: Node, start: int) -> None:
    """Copy an array to separate memory if it is in the frame at present."""

    def move() -> None:
        size = b.i64(item_size(elem_of(t)))
        for axis in range(t.rank):
            size = b.product(size, b.dim(reg, axis))
        frame = Node("room", PTR, (), b.frames[reg])
        moved = b.helper("rvm_copied", PTR, frame, size)
        none = b.op("eq", moved, constant(None, PTR))
        b.set(b.how, b.select(none, constant(context.LOST, I32), b.get(b.how)))
        b.poke(moved, slot(b, base, start))
        b.poke(b.i64(MINE), slot(b, base, start + 1))

    owner = b.get(cast(Var, b.arrays[reg].owner))
    b.when(b.op("eq", owner, b.i64(FRAMED)), move)
