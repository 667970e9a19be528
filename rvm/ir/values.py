"""From pure expressions and places to nodes.

Anything that cannot be compiled raises `Unprintable`: the reference engine then executes the
instruction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from rvm.expr import (
    LENGTHS,
    Apply,
    Const,
    Expr,
    Index,
    Part,
    Peek,
    Place,
    Shaped,
    Span,
    Step,
    Transposed,
)
from rvm.ir.builder import FALSE, TRUE, Builder, Indices
from rvm.ir.context import COUNT
from rvm.ir.items import Parts, parts_of, value_of
from rvm.ir.node import BIT, F64, FLOATS, I64, PTR, Node, constant, number
from rvm.ir.places import LONGEST, Behind, Element, Location, Variables, View, item_size, kind_of
from rvm.ir.slices import Cut, cut
from rvm.ir.typed import Unprintable, type_of
from rvm.isa import FUNCTIONS, implementation
from rvm.leaf import Function
from rvm.numbers import system
from rvm.numbers.elementary import TURNING
from rvm.types import F64 as FLOAT
from rvm.types import Array, Scalar, Stack, elem_of, rank_of

PAIR = "{double, double}"
UNSIGNED = {"<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"}


def raw(value: Any, t: Scalar) -> Parts:
    """A raw value as a constant."""
    kind = kind_of(t)
    if t.parts == 2:
        return constant(value.real, kind), constant(value.imag, kind)
    if t.is_bool:
        return TRUE if value else FALSE
    if kind in FLOATS:
        return constant(float(value), kind)
    wrapped = value % (1 << t.bits)
    return constant(wrapped - (1 << t.bits) if wrapped >> (t.bits - 1) else wrapped, kind)


# ------------------------------------------------------------------------- places


def located(b: Builder, place: Place) -> Location:
    """Where a scalar place is."""
    found = followed(b, place)
    if isinstance(found, View):
        raise Unprintable
    return found


def viewed(b: Builder, place: Place) -> View:
    """An array place."""
    found = followed(b, place)
    if not isinstance(found, View):
        raise Unprintable
    return found


def followed(b: Builder, place: Place) -> Location | View:
    """A place found along its path."""
    t = b.function.registers[place.reg].type
    path = place.path
    found: Location | View
    if isinstance(t, Stack):
        found, path = top(b, place.reg, t.elem), path[1:]
    elif isinstance(t, Scalar):
        found = Variables(b.scalars[place.reg], t)
    elif isinstance(t, Array):
        found = whole(b, place.reg, t)
    else:
        raise Unprintable
    for step in path:
        found = _stepped(b, found, step)
    return found


def top(b: Builder, reg: int, t: Scalar) -> Behind:
    """Where the last value of a stack is; trouble if it holds none."""
    if reg not in b.stacks:
        raise Unprintable
    return last_of(b, b.get(b.stacks[reg]), t)[0]


def size_of(b: Builder, stack: Node) -> Node:
    """A pointer to the number of a stack's values."""
    return b.op("slot", stack, kind=PTR, aux=COUNT)


def last_of(b: Builder, stack: Node, t: Scalar) -> tuple[Behind, Node]:
    """A stack's last value, and how many there are before it; trouble if it holds none."""
    count = b.peek(I64, size_of(b, stack))
    b.trouble(b.op("eq", count, b.i64(0)))
    before = b.op("wsub", count, b.i64(1))
    away = b.product(before, b.i64(item_size(t)))
    return behind(b, b.op("moved", b.peek(PTR, stack), away, kind=PTR), t), before


def behind(b: Builder, pointer: Node, t: Scalar) -> Behind:
    """A value of a stack, whose parts stand one after the other."""
    if t.parts == 1:
        return Behind((pointer,), t)
    return Behind((pointer, b.op("slot", pointer, kind=PTR, aux=1)), t)


def whole(b: Builder, reg: int, t: Array) -> View:
    """An array register as a view."""
    axes = tuple(range(t.rank))
    none = (None,) * t.rank
    return View(reg, t.elem, none, axes, none, tuple(b.dim(reg, k) for k in axes))


def _stepped(b: Builder, found: Location | View, step: Step) -> Location | View:
    if isinstance(step, Part):
        k = 0 if step.name == "re" else 1
        if isinstance(found, Variables):
            if len(found.parts) == 1:
                return Variables(found.parts, FLOAT, k)
            return Variables((found.parts[k],), FLOAT)
        if isinstance(found, Behind):
            return Behind((found.pointers[k],), FLOAT)
        return (
            replace(found, elem=FLOAT, part=k)
            if isinstance(found, View)
            else replace(found, type=FLOAT, part=k)
        )
    assert isinstance(found, View)
    if isinstance(step, Transposed):
        return replace(found, axes=found.axes[::-1], steps=found.steps[::-1], dims=found.dims[::-1])
    if isinstance(step, Shaped):
        return _shaped(b, found, step)
    assert isinstance(step, Index)
    return _indexed(b, found, step)


def _shaped(b: Builder, found: View, step: Shaped) -> View:
    """One axis as several, each with a fixed distance between elements."""
    (axis,), (by,), (length,) = found.axes, found.steps, found.dims
    dims, steps = [whole_number(b, d) for d in step.dims], list[Node | None]()
    zero, one = b.i64(0), b.i64(1)
    total, none = one, list[Node]()
    for dim in reversed(dims):
        steps.append(by if total is one else _scaled(b, total, by))
        least, known = dim, number(dim)
        if known is None:
            b.trouble(b.op("lt", dim, zero))
            none.append(b.op("eq", dim, zero))
            least = b.select(none[-1], one, dim)
        elif known < 1:
            raise Unprintable
        more = least if total is one else b.product(total, least)
        if total is not one:
            b.trouble(b.op("ne", b.op("udiv", more, least), total))  # it is too large for an i64
        total = more
    b.trouble(b.op("ugt", total, b.i64(LONGEST)))
    for empty in none:
        total = b.select(empty, zero, total)
    b.trouble(b.op("ne", total, length))
    axes = (axis,) * len(dims)
    return replace(found, axes=axes, steps=tuple(reversed(steps)), dims=tuple(dims))


def _indexed(b: Builder, found: View, step: Index) -> Location | View:
    bases = list(found.bases)
    axes, steps, dims = list[int](), list[Node | None](), list[Node]()
    along = zip(step.items, found.axes, found.steps, found.dims, strict=False)
    for item, axis, by, length in along:
        if isinstance(item, Span):
            lo, count, apart = span(b, item, length)
            dims.append(count)
            axes.append(axis)
            steps.append(by if apart is None else _scaled(b, apart, by))
        else:
            lo = index(b, item, length, _is_cut(found.reg, axis, by, length))
        _move(b, bases, axis, None if lo is None else _scaled(b, lo, by))
    rest = len(step.items)
    dims += found.dims[rest:]
    axes += found.axes[rest:]
    steps += found.steps[rest:]
    view = replace(
        found, bases=tuple(bases), axes=tuple(axes), steps=tuple(steps), dims=tuple(dims)
    )
    return view if dims else at(b, view, ())


def _is_cut(reg: int, axis: int, by: Node | None, length: Node) -> bool:
    """Whether an axis of a view is less than that of its register, or turned round."""
    return by is not None or (length.op, length.aux) != ("dim", (reg, axis))


def _move(b: Builder, bases: list[Node | None], axis: int, by: Node | None) -> None:
    base = bases[axis]
    bases[axis] = by if base is None else base if by is None else b.sum(base, by)


def _scaled(b: Builder, distance: Node, step: Node | None) -> Node:
    """A distance along an axis of a view in that of the register."""
    return distance if step is None else b.product(distance, step)


def at(b: Builder, view: View, indices: Indices) -> Element:
    """An element of a view."""
    places = list(view.bases)
    for axis, by, i in zip(view.axes, view.steps, indices, strict=True):
        _move(b, places, axis, _scaled(b, i, by))
    zero = b.i64(0)
    return Element(view.reg, tuple(zero if p is None else p for p in places), view.elem, view.part)


def strides(b: Builder, view: View) -> list[Node]:
    """The distance in bytes between elements of a view along each of its axes."""
    along = zip(view.axes, view.steps, strict=True)
    found = ((b.op("stride", kind=I64, aux=(view.reg, axis)), by) for axis, by in along)
    return [_scaled(b, stride, by) for stride, by in found]


def index(b: Builder, item: Expr, length: Node, cut: bool) -> Node:
    """An index as an i64; bails out unless it is within bounds."""
    found = whole_number(b, item)
    if id(item) not in b.proved:
        b.bound(found, length, cut)
    return found


def whole_number(b: Builder, item: Expr) -> Node:
    """An integer expression as an i64; one beyond that is negative, as no valid index is."""
    t = elem_of(type_of(item))
    found = scalar(b, item)
    if found.op == "constant":
        return b.i64(int(found.aux))
    return widened(b, found, t)


def widened(b: Builder, found: Node, t: Scalar) -> Node:
    """An integer as an i64."""
    if t.bits < 64:
        return b.op("sext" if t.is_signed else "zext", found, kind=I64)
    return found


def span(b: Builder, item: Span, length: Node, checked: bool = True) -> Cut:
    """A slice as `rvm.ir.slices.cut` has it."""
    ends = tuple([None if e is None else whole_number(b, e) for e in item.ends])
    signed = item.by is None or elem_of(type_of(item.by)).is_signed
    return cut(b, ends, length, signed, checked)


# ------------------------------------------------------------------------- reading and writing


def read(b: Builder, place: Location) -> Parts:
    """The value at a location."""
    kinds = b.kinds(place.type)
    if isinstance(place, Variables):
        if place.part is not None:
            return b.op("part", b.get(place.parts[0]), kind=kinds[0], aux=place.part)
        return value_of(tuple(b.get(v) for v in place.parts))
    if isinstance(place, Behind):
        return value_of(tuple(b.peek(kinds[0], p) for p in place.pointers))
    parts = enumerate(kinds, place.part or 0)
    return value_of(tuple(b.op("load", *place.at, kind=t, aux=(place.reg, k)) for k, t in parts))


def put(b: Builder, place: Location, value: Parts) -> None:
    """Put a value at a location."""
    if not b.writes:
        return
    parts = parts_of(value)
    if isinstance(place, Variables):
        if place.part is not None:
            held = b.get(place.parts[0])
            parts = (b.op("joined", held, *parts, kind=held.kind, aux=place.part),)
        for v, part in zip(place.parts, parts, strict=True):
            b.set(v, part)
    elif isinstance(place, Behind):
        for p, part in zip(place.pointers, parts, strict=True):
            b.poke(part, p)
    else:
        for k, part in enumerate(parts, place.part or 0):
            b.do("store", part, *place.at, aux=(place.reg, k))


# ------------------------------------------------------------------------- values


def scalar(b: Builder, node: Expr) -> Node:
    """The value of an expression that is not a complex number."""
    return cast(Node, value(b, node))


def value(b: Builder, node: Expr) -> Parts:
    """The value of a scalar expression."""
    match node:
        case Const(v):
            return b.raw(v, elem_of(type_of(node)))
        case Place() if node in b.instead:
            return b.instead[node]
        case Place(_, (Peek(what), *_)):
            return b.peeked(node, what)
        case Place():
            return read(b, located(b, node))
        case Apply("dim" | "len", (Place() as place, *axis)):
            return _length(b, place, cast(Const, axis[0]) if axis else None)
        case Apply():
            return b.applied(node)
    raise TypeError(f"a template cannot be printed: {node!r}")


def peeked(b: Builder, place: Place, what: str) -> Parts:
    """The top or length of a stack in memory."""
    if what == "len":
        return b.peek(I64, size_of(b, b.get(b.stacks[place.reg])))
    return read(b, located(b, place))


def applied(b: Builder, node: Apply) -> Parts:
    """A function's value, for a target that has leaf operations only."""
    fn, args = node.fn, node.args
    if fn == "choose":
        return _chosen(b, scalar(b, args[0]), *args[1:])
    if FUNCTIONS[fn].lazy:
        return _lazy(b, fn, *args)
    if fn in UNSIGNED and b.one_ways:
        compared = _compared(b, fn, *args)
        if compared is not None:
            return compared
    if any(rank_of(type_of(a)) for a in args):
        from rvm.ir.elements import reduced

        return reduced(b, fn, args)
    if fn in TURNING and args[0] in b.turns:
        # Sine or cosine out of both: what is asked for twice is found once by LLVM.
        both = b.helper("rvm_turn", PAIR, scalar(b, args[0]))
        return b.op("extract", both, kind=F64, aux=TURNING.index(fn))
    body = body_of(fn, tuple(elem_of(type_of(a)) for a in args))
    found: Parts = b.put(body, *[value(b, a) for a in args])
    return found


def body_of(fn: str, elems: tuple[Scalar, ...]) -> Function:
    """The body of a function on some types; Unprintable if there is none for machine code."""
    code = implementation(fn, elems)
    if code.body is None or not code.is_native:
        raise Unprintable
    return code.body


def _length(b: Builder, place: Place, axis: Const | None) -> Node:
    k = axis.value if axis is not None else 0
    if not isinstance(k, int) or not 0 <= k < rank_of(type_of(place)):
        raise Unprintable
    return b.dim(place.reg, k) if not place.path else b.measured(place, k)


def measured(b: Builder, place: Place, axis: int) -> Node:
    """The length of a view of an array."""
    return viewed(b, place).dims[axis]


def _lazy(b: Builder, fn: str, x: Expr, y: Expr) -> Node:
    """`and`, `or`: the right side is evaluated only if it decides."""
    left, found = scalar(b, x), b.variable(BIT, "both")
    b.set(found, constant(fn == "or", BIT))
    decide = left if fn == "and" else b.invert(left)
    b.when(decide, lambda: b.set(found, scalar(b, y)))
    return b.get(found)


def _chosen(b: Builder, condition: Node, x: Expr, y: Expr) -> Parts:
    """`choose`: of two values only one is evaluated."""
    t = elem_of(type_of(x))
    where = Variables(tuple(b.variable(k, "chosen") for k in b.kinds(t)), t)
    for v, part in zip(where.parts, parts_of(b.raw(system(t).zero, t)), strict=True):
        b.set(v, part)

    def set_to(node: Expr) -> None:
        for v, part in zip(where.parts, parts_of(value(b, node)), strict=True):
            b.set(v, part)

    b.when(condition, lambda: set_to(x), lambda: set_to(y))
    return read(b, where)


# ------------------------------------------------------------------------- one-way registers


def _compared(b: Builder, fn: str, x: Expr, y: Expr) -> Node | None:
    """A comparison of one-way registers, which are compared as indices are."""
    if natural(b, x) and natural(b, y):
        return b.op(UNSIGNED[fn], scalar(b, x), scalar(b, y))
    match x, y:
        case Place(reg, ()), Const(0) if fn == ">":
            register = b.one_ways.get(reg)
            if register is not None and not register.up and natural(b, register.begin):
                # The previous index is within bounds: not negative, since it is not too large.
                before = b.op("wsub", scalar(b, x), b.i64(1))
                return b.op("ult", before, scalar(b, register.begin))
    return None


def natural(b: Builder, node: Expr) -> bool:
    """Whether a whole number is never negative."""
    match node:
        case Const(int(v)):
            return kind_of(elem_of(type_of(node))) == I64 and str(node.type) == "i64" and v >= 0
        case Place(reg, ()) if reg in b.one_ways:
            register = b.one_ways[reg]
            return register.up and natural(b, register.begin)
        case Apply(fn, (Place(_, ()), *_)):
            return fn in LENGTHS
    return False
