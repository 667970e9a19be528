"""From statements on arrays to nodes: loops over elements.

Shapes must agree in their last axes; if a length of 1 is to be stretched, the reference engine
executes the instruction.  It also executes very large matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import cast

from rvm.expr import LENGTHS, Apply, Const, Expr, Place, places, walk
from rvm.ir import statements as scalars
from rvm.ir.builder import TRUE, Builder, Indices
from rvm.ir.context import CLEAN, FRAMED, MINE, WIDTH
from rvm.ir.elements import elements, everywhere, in_rows, matching
from rvm.ir.items import Parts, parts_of
from rvm.ir.node import I64, PTR, Node, Var, constant, number
from rvm.ir.others import fill as fill_others
from rvm.ir.others import others_of
from rvm.ir.places import LONGEST, View, item_size
from rvm.ir.sums import Element
from rvm.ir.typed import Unprintable
from rvm.ir.values import at, located, put, raw, read, viewed, whole, whole_number
from rvm.isa import implementation
from rvm.isa import place as typed_place
from rvm.numbers import system
from rvm.stmt import Drop, Free, Map, Update
from rvm.types import Array, Scalar, elem_of, rank_of

SMALL = 512
"""Arrays of constant lengths up to this many bytes live in the function's frame."""


def update(b: Builder, stmt: Update) -> None:
    """`dst op= value` for an array place."""
    t = elem_of(cast(Array, stmt.dst.type))
    place = viewed(b, stmt.dst)
    shape, element = elements(b, stmt.value)
    matching(b, shape, place.dims, element=element)
    rank = len(shape)
    asked = stmt.op in "*/" and b.checks
    spread = rank < len(place.dims)

    def factor(i: Indices) -> None:
        scalars.factor(b, element(i), t)

    if asked and spread:
        # Asked here, since there may be no elements of the place at all.
        if rank:
            b.everywhere(shape, factor)
        else:
            factor(())

    def new(i: Indices) -> None:
        by = element(i[len(i) - rank :])
        if asked and not spread:
            scalars.factor(b, by, t)
        where = at(b, place, i)
        old = raw(system(t).zero, t) if id(stmt) in b.filling else read(b, where)
        new = scalars.changed(b, stmt.op, t, old, by)
        put(b, where, new)
        if id(stmt) in b.looking:
            look_finite(b, new)

    _everywhere(b, place.dims, new, t)


def _everywhere(
    b: Builder, dims: Sequence[Node], body: Callable[[Indices], object], *types: Scalar
) -> None:
    """Execute `body` at all indices or at none; its rounding losses are counted together.

    `types` are those of the numbers that change.
    """
    if b.way:
        _prepare(b, dims, *(t for t in types if not t.is_exact))
        b.everywhere(dims, _in_order(b, dims, body))
        return
    pc = b.rounding
    if pc is None:
        everywhere(b, dims, body)
        return
    lost = b.lost = b.variable(I64, "lost")
    b.set(lost, b.i64(0))
    b.everywhere(dims, body)
    b.lost = None
    b.do("rounded", b.get(lost), aux=pc)


def _prepare(b: Builder, dims: Sequence[Node], *types: Scalar) -> None:
    """Trouble unless the strict log has room for numbers of some types at all indices, or has them.

    After this there can be no trouble.
    """
    gaps = b.i64(sum(t.parts for t in types))
    for dim in dims:
        gaps = b.product(gaps, dim)
    if b.way > 0:
        b.reserve(gaps)
    else:
        b.ask(gaps)


def _in_order(
    b: Builder, dims: Sequence[Node], body: Callable[[Indices], object]
) -> Callable[[Indices], object]:
    """`body` at the indices in order; where it pops from the strict log, in reverse order."""
    if b.way >= 0:
        return body
    last = [b.op("wsub", dim, b.i64(1)) for dim in dims]
    return lambda i: body([b.op("wsub", *pair) for pair in zip(last, i, strict=True)])


def exchange(b: Builder, a: Place, c: Place) -> None:
    """Exchange the contents of two array places."""
    one, two = viewed(b, a), viewed(b, c)
    matching(b, one.dims, two.dims, exactly=True)

    def swap(i: Indices) -> None:
        x, y = at(b, one, i), at(b, two, i)
        v, w = read(b, x), read(b, y)
        put(b, x, w)
        put(b, y, v)

    b.everywhere(one.dims, swap)


def assign(b: Builder, stmt: Map) -> None:
    """Store values, all of them computed first, if the places include arrays."""
    dsts, values = stmt.dsts, stmt.values
    if len({rank_of(cast(Array, d.type)) for d in dsts}) > 1:
        raise Unprintable
    if not all(_goes_in_place(v, dsts) for v in (*values, *stmt.inverse)):
        raise Unprintable
    views = [viewed(b, d) for d in dsts]
    for view in views[1:]:
        matching(b, view.dims, views[0].dims, exactly=True)
    found = [elements(b, v) for v in values]
    for shape, element in found:
        matching(b, shape, views[0].dims, element=element)
    undoes = b.rounding is not None or b.way > 0
    undone = [elements(b, v) for v in stmt.inverse] if undoes else []
    rounding = [k for k, view in enumerate(views) if not view.elem.is_exact]

    def store(i: Indices) -> None:
        new = [element(i[len(i) - len(shape) :]) for shape, element in found]
        b.instead = dict(zip(dsts, new, strict=True))
        guesses = [element(i[len(i) - len(shape) :]) for shape, element in undone]
        b.instead = {}
        if undoes:
            note_down = b.keep if b.way > 0 else b.rounded
            note_down(
                *(
                    (views[k].elem, guesses[k], read(b, at(b, views[k], i)))
                    for k in reversed(rounding)
                )
            )
        elif b.way < 0:
            for k in rounding:
                new[k] = b.taken(views[k].elem, new[k])
        for view, value in zip(views, new, strict=True):
            put(b, at(b, view, i), value)

    _everywhere(b, views[0].dims, store, *(view.elem for view in views))


# ------------------------------------------------------------------------- coming and going


def make(b: Builder, reg: int, value: Expr | None) -> None:
    """A local array, filled with a value (None: zero)."""
    register = b.function.registers[reg]
    t = cast(Array, register.type)
    dims = [whole_number(b, cast(Expr, d)) for d in register.dims]
    size = _size(b, dims, t.elem)
    others = others_of(b, value)
    given = value if others is None else others
    shape, element = ((), None) if given is None else elements(b, given)
    uniform = raw(system(t.elem).zero, t.elem) if value is None else b.uniform
    matching(b, shape, dims, exactly=others is not None, element=element)
    held, rank = b.arrays[reg], len(shape)
    if element is not None and not b.kind.anew:
        inner = element
        b.surely(dims, lambda i: inner(i[len(i) - rank :]))
    total = scalars.room(b, size)
    if b.way:
        _prepare(b, dims, t.elem)
    zero = not shape and uniform is not None and _is_zero(uniform)
    many = WIDTH if reg in (b.varying or ()) else 1
    taken = b.product(size, b.i64(many))
    _find_room(b, reg, taken, zero, many)
    for dim, variable in zip(dims, held.dims, strict=True):
        b.set(variable, dim)
    contiguous(b, reg, item_size(t.elem))
    scalars.grow(b, total)
    if others is not None:
        factor, memory = cast(Element, element), b.get(held.pointer)
        b.trusting(lambda: fill_others(b, t.elem, dims, factor, memory))
    elif b.way < 0 or (element is not None and not zero):
        view, filling = whole(b, reg, t), element

        def fill(i: Indices) -> None:
            new = uniform if filling is None else filling(i[len(i) - rank :])
            assert new is not None
            put(b, at(b, view, i), new if b.way >= 0 else b.taken(t.elem, new))

        if b.kind.anew:
            in_rows(b, dims, fill)
        else:
            b.trusting(lambda: in_rows(b, dims, _in_order(b, dims, fill)))


def _find_room(b: Builder, reg: int, size: Node, zero: bool, many: int) -> None:
    """Give a local array its memory: in the frame if it is small, else separately.

    `many` lanes may have one each.
    """
    held, known = b.arrays[reg], number(size)
    owner = cast(Var, held.owner)

    def in_frame(most: int) -> None:
        room = b.frames.get(reg)
        if room is None:
            room = b.frames[reg] = b.variable(PTR, f"m{reg}_", most)
        pointer = Node("room", PTR, (), room)
        if zero:
            b.do("clear", pointer, size)
        b.set(held.pointer, pointer)
        b.set(owner, b.i64(FRAMED))

    def apart() -> None:
        pointer = b.helper("rvm_zeros" if zero else "rvm_room", PTR, size)
        b.trouble(b.op("eq", pointer, constant(None, PTR)))
        b.set(held.pointer, pointer)
        b.set(owner, b.i64(MINE))

    if reg in b.passed and not b.kind.anew:
        apart()
    elif known is not None:
        in_frame(known) if known <= many * SMALL else apart()
    elif b.lanes:
        apart()
    else:
        small = b.op("ule", size, b.i64(SMALL))
        b.when(small, lambda: in_frame(SMALL), apart)


def contiguous(b: Builder, reg: int, size: int) -> None:
    """Set an array's stride variables, if it has any, to those of contiguous items of a size."""
    held, stride = b.arrays[reg], b.i64(size)
    for axis in reversed(range(len(held.strides))):
        b.set(held.strides[axis], stride)
        stride = b.product(stride, b.dim(reg, axis))


def _is_zero(value: Parts) -> bool:
    """Whether a value is all zero bytes."""
    return all(p.op == "constant" and repr(p.aux) in ("0", "False", "0.0") for p in parts_of(value))


def give_up(b: Builder, reg: int, stmt: Free | Drop, check: bool) -> None:
    """A local array given up: forgotten, or, if wanted, checked against its value."""
    register = b.function.registers[reg]
    t = cast(Array, register.type)
    held = whole(b, reg, t)
    if isinstance(stmt, Drop):
        if b.way > 0:
            _prepare(b, held.dims, t.elem)
            _keep_all(b, held, lambda _: raw(system(t.elem).zero, t.elem))
        else:
            _count_differing(b, held, lambda v: scalars.nonzero(b, t.elem, v))
    elif check or b.way > 0:
        dims = [whole_number(b, cast(Expr, d)) for d in register.dims]
        matching(b, dims, held.dims, exactly=True)
        _check(b, held, stmt)
    scalars.shrink(b, _size(b, held.dims, t.elem, checked=False))
    is_sure = isinstance(stmt, Free) and id(stmt) in b.certain and not b.lanes
    release(b, reg, clean=is_sure and _is_blank(cast(Free, stmt).value, t))
    b.set(cast(Var, b.arrays[reg].owner), b.i64(0))


def _is_blank(value: Expr | None, t: Array) -> bool:
    """Whether an array that holds a value has all zero bytes."""
    match value:
        case Const(number, Scalar()):
            return _is_zero(raw(number, t.elem))
    return False


def release(b: Builder, reg: int, *, clean: bool = False) -> None:
    """Free an array's memory if the array owns it; `clean` says that it holds zero bytes."""
    held, t = b.arrays[reg], cast(Array, b.function.registers[reg].type)
    owned = b.op("eq", b.get(cast(Var, held.owner)), b.i64(MINE))

    def give() -> None:
        size = _size(b, whole(b, reg, t).dims, t.elem, checked=False)
        taken = b.product(size, b.i64(WIDTH if reg in (b.varying or ()) else 1))
        b.helper("rvm_release", I64, b.get(held.pointer), taken, b.i64(CLEAN if clean else 0))

    b.when(owned, give)


def _check(b: Builder, held: View, stmt: Free) -> None:
    """Trouble unless an array has its value everywhere; rounding residues are erased.

    Nothing is changed here, so one check suffices, after a loop that is never left early.
    """
    value = cast(Expr, stmt.value)
    if others_of(b, value) is not None:
        # There would have to be another array: the reference engine does that.
        b.trouble(TRUE)
        return
    shape, element = elements(b, value)
    matching(b, shape, held.dims, element=element)
    t = held.elem
    count, bad = b.variable(I64, "v"), b.variable(I64, "v")
    for variable in (count, bad):
        b.set(variable, b.i64(0))

    off = None if t.is_exact else scalars.Residue(b, t, stmt)
    if b.way > 0:
        _prepare(b, held.dims, t)

    def note(far: Node) -> None:
        b.set(bad, b.op("or", b.get(bad), b.op("zext", far, kind=I64)))

    def compare(i: Indices) -> None:
        v, want = read(b, at(b, held, i)), element(i[len(i) - len(shape) :])
        if off is None:
            note(b.op("ne", cast(Node, v), cast(Node, want)))
            return
        known = b.invert(scalars.both_nan(b, v, want))
        altered = b.op("and", scalars.altered(b, v, want), known)
        note(altered)
        off.add(v, want, altered)
        differs = b.op("and", scalars.unequal(b, v, want), known)
        b.add_to(count, b.op("zext", differs, kind=I64))

    b.nest(held.dims, compare)
    some = b.op("ne", b.get(bad), b.i64(0))
    if off is None:
        b.trouble(some)
        return
    b.when(some, off.judge, unlikely=True)
    if b.way > 0:
        _keep_all(b, held, lambda i: element(i[len(i) - len(shape) :]))
    else:
        _erase_many(b, count, t)


def look_finite(b: Builder, v: Parts) -> None:
    """Note a number that is not finite."""
    for p in parts_of(v):
        test = b.op("fueq", b.intrinsic("fabs", p), constant(inf, p.kind))
        b.set(b.infinite, b.op("or", b.get(b.infinite), b.op("zext", test, kind=I64)))


def _look(b: Builder, held: View, i: Indices) -> None:
    look_finite(b, read(b, at(b, held, i)))


def ask_finite(b: Builder, regs: Iterable[int]) -> None:
    """Trouble unless all numbers of some parameters are finite, and none was noted that is not."""
    for reg in regs:
        t = b.function.registers[reg].type
        if isinstance(t, Array):
            held = whole(b, reg, t)
            b.nest(held.dims, partial(_look, b, held))
        else:
            look_finite(b, read(b, located(b, typed_place(reg, elem_of(t)))))
    b.trouble(b.op("ne", b.get(b.infinite), b.i64(0)))


def _keep_all(b: Builder, held: View, guess: Callable[[Indices], Parts]) -> None:
    """Push on the strict log the gaps from the results of undoing to an array's elements.

    There must be room for them.
    """
    b.trusting(
        lambda: b.nest(held.dims, lambda i: b.keep((held.elem, guess(i), read(b, at(b, held, i)))))
    )


def _count_differing(b: Builder, held: View, test: Callable[[Parts], Node]) -> None:
    count = b.variable(I64, "v")
    b.set(count, b.i64(0))
    b.nest(
        held.dims, lambda i: b.add_to(count, b.op("zext", test(read(b, at(b, held, i))), kind=I64))
    )
    _erase_many(b, count, held.elem)


def _erase_many(b: Builder, count: Var, t: Scalar) -> None:
    scalars.lose(b, b.product(b.get(count), b.i64(t.bits)))


def _size(b: Builder, dims: Sequence[Node], t: Scalar, checked: bool = True) -> Node:
    """The bytes of an array; trouble for lengths that are negative or beyond all memory."""
    known = [number(d) for d in dims]
    size = item_size(t)
    if all(d is not None and d >= 0 for d in known):
        for d in known:
            size *= cast(int, d)
        if size >= LONGEST:
            raise Unprintable
        return b.i64(size)
    total = b.i64(size)
    for dim in dims:
        if checked:
            b.trouble(b.op("ugt", dim, b.i64(LONGEST)))
            b.trouble(b.op("ugt", total, b.i64(LONGEST)))
            both = b.op("intrinsic", total, dim, kind="{i64, i1}", aux="umul.with.overflow")
            b.trouble(b.op("extract", both, kind="bit", aux=1))
            total = b.op("extract", both, kind=I64, aux=0)
        else:
            total = b.product(total, dim)
    return total


def _goes_in_place(value: Expr, dsts: Sequence[Place]) -> bool:
    """Whether an expression's elements depend on the same elements only of places that change.

    Other parts of their arrays are known to be apart, or have been found to be.
    """
    for node in walk(value):
        if isinstance(node, Apply) and any(rank_of(cast(Array, a.type)) for a in node.args):
            elems = tuple(elem_of(cast(Array, a.type)) for a in node.args)
            if node.fn in LENGTHS or implementation(node.fn, elems).is_native:
                continue
            if any(_is_in(p, d) for p in places(node) for d in dsts):
                return False
    return True


def _is_in(place: Place, other: Place) -> bool:
    """Whether a place is written as another one, or as a part of it."""
    n = len(other.path)
    return place.reg == other.reg and place.path[:n] == other.path
