"""From statements on scalars and stacks to nodes.

An instruction either is done, or is given up before it has changed anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, cast

from rvm.expr import Expr, Place
from rvm.image import Clash
from rvm.ir import arrays, context
from rvm.ir.builder import Builder, checked
from rvm.ir.context import STACK
from rvm.ir.items import Parts, parts_of, value_of
from rvm.ir.node import BIT, F32, F64, I32, I64, PTR, Node, constant
from rvm.ir.places import Element, Location, View, item_size
from rvm.ir.strict import bits_lost
from rvm.ir.typed import Unprintable, element, scalar_of, type_of
from rvm.ir.values import (
    at,
    behind,
    body_of,
    followed,
    last_of,
    located,
    put,
    raw,
    read,
    scalar,
    size_of,
    strides,
    value,
    whole_number,
)
from rvm.numbers import system
from rvm.numbers.rounding import LOST, TURNED, return_limit
from rvm.state import SCALAR_BYTES
from rvm.stmt import (
    FORWARD,
    UNDO,
    Alloc,
    Drop,
    Effect,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
)
from rvm.types import Array, Scalar, Stack, elem_of, rank_of

INFINITY = constant(math.inf, F64)


def instruction(
    b: Builder,
    stmts: Sequence[Stmt],
    clashes: Sequence[Clash],
    notes: Sequence[Stmt] = (),
    way: int = 0,
    rounding: int | None = None,
) -> None:
    """Append an instruction, and after it the updates of ancillas' sizes.

    It pushes on the strict log, pops, or leaves it alone, according to `way` (1, -1, 0). `rounding`
    is its position if its losses are to be counted.  Unprintable if it cannot be compiled.
    """
    if len(stmts) > 1:
        # Were the second to fail, the first would have been done already.
        raise Unprintable
    begun = len(b.items)
    apart(b, clashes)
    b.way, b.rounding, b.has_products = way, rounding, False
    try:
        statement(b, stmts[0])
    finally:
        b.way, b.rounding = 0, None
    if not b.kind.anew:
        checked(b.items[begun:])
    note(b, notes)


def instruction_at(b: Builder, pc: int) -> None:
    """Append the instruction at a position of the code, in the form for `b.kind`."""
    code = b.code
    way = code.logging(pc, b.kind.strict)
    rounding = pc if b.kind.counts and not way and code.rounds(pc) else None
    instruction(b, code.logged(pc, way), code.clashes(pc), code.notes(pc), way, rounding)


def note(b: Builder, notes: Sequence[Stmt]) -> None:
    """Append the updates of ancillas' sizes; they never fail."""
    for stmt in notes:
        b.trusting(partial(statement, b, stmt))


def statement(b: Builder, stmt: Stmt) -> None:
    """Append one statement."""
    match stmt:
        case Update(dst) if dst.reg in b.kind.unread and b.writes:
            b.writes = False
            b.surely((), lambda _: statement(b, stmt))
            b.writes = True
        case Update(dst) if not rank_of(type_of(dst)):
            _update(b, stmt)
        case Exchange(x, y) if not rank_of(type_of(x)):
            _exchange(b, x, y)
        case Map(dsts) if not any(rank_of(type_of(d)) for d in dsts):
            _assign(b, stmt)
        case When(cond, body):
            if len(body) > 1:
                raise Unprintable
            b.when(scalar(b, cond), lambda: statement(b, body[0]))
        case Land(cond, _):
            if b.checks:
                b.trouble(scalar(b, cond))
        case Effect(kind, _, args, when):
            # An assertion is trouble where it does not hold; other effects are not for here.
            if when & FORWARD:
                if kind != "assert":
                    raise Unprintable
                b.trouble(b.invert(scalar(b, args[0])))
        case _:
            b.statement(stmt)


def whole_statement(b: Builder, stmt: Stmt) -> None:
    """Append a statement on arrays or stacks, or one that makes or ends a register."""
    match stmt:
        case Update():
            arrays.update(b, stmt)
        case Exchange(x, y):
            arrays.exchange(b, x, y)
        case Map():
            arrays.assign(b, stmt)
        case Alloc(reg) | Fresh(reg):
            _made(b, stmt, reg)
        case Free(reg) | Drop(reg):
            _gone(b, stmt, reg)
        case Push(src, stack):
            _push(b, src, stack)
        case Pop(dst, stack):
            _pop(b, dst, stack)
        case _:
            raise Unprintable


# ------------------------------------------------------------------------- data


def _update(b: Builder, stmt: Update) -> None:
    t = elem_of(type_of(stmt.dst))
    place = located(b, stmt.dst)
    found = value(b, stmt.value)
    if stmt.op in "*/" and b.checks:
        b.factor(found, t)
    if not t.is_exact:
        ask(b, t)
    put(b, place, changed(b, stmt.op, t, read(b, place), found))


def changed(b: Builder, op: str, t: Scalar, old: Parts, by: Parts) -> Parts:
    """The result of an update of an old value, including the use of the strict log."""
    new = b.combined(op, t, old, by)
    if b.way > 0 and not t.is_exact:
        b.keep((t, b.combined(UNDO[op], t, new, by), old))
    elif b.way < 0 and not t.is_exact:
        return b.taken(t, new)
    elif b.rounding is not None and not t.is_exact:
        b.rounded((t, b.combined(UNDO[op], t, new, by), old))
    return new


def ask(b: Builder, *types: Scalar) -> None:
    """Trouble unless the strict log holds the numbers of some types that are to be popped."""
    gaps = sum(t.parts for t in types)
    if b.way < 0 and gaps:
        b.ask(b.i64(gaps))


def combined(b: Builder, op: str, t: Scalar, old: Parts, by: Parts) -> Parts:
    """The result of an update of an old value."""
    found: Parts = b.put(body_of(op, (t, t)), old, by)
    return found


def factor(b: Builder, by: Parts, t: Scalar) -> None:
    """Trouble unless a factor can be divided out again: finite, and not zero."""
    factors = system(t).factors
    if factors == "any":
        return
    parts = parts_of(by)
    wide = [b.op("fpext", p, kind=F64) if p.kind == F32 else p for p in parts]
    tests = [b.op("fueq", b.intrinsic("fabs", p), INFINITY) for p in wide]
    for test in tests:
        b.trouble(test)
    if factors == "nonzero":
        b.trouble(b.all([b.op("feq", p, constant(0.0, p.kind)) for p in parts]))


def _exchange(b: Builder, a: Place, c: Place) -> None:
    x, y = located(b, a), located(b, c)
    v, w = read(b, x), read(b, y)
    put(b, x, w)
    put(b, y, v)


def _assign(b: Builder, stmt: Map) -> None:
    places = [located(b, d) for d in stmt.dsts]
    new = [value(b, v) for v in stmt.values]
    rounding = [k for k, place in enumerate(places) if not place.type.is_exact]
    if b.way > 0 or b.rounding is not None:
        b.instead = dict(zip(stmt.dsts, new, strict=True))
        guesses = [value(b, v) for v in stmt.inverse]
        b.instead = {}
        note_down = b.keep if b.way > 0 else b.rounded
        note_down(*((places[k].type, guesses[k], read(b, places[k])) for k in reversed(rounding)))
    elif b.way < 0:
        ask(b, *(places[k].type for k in rounding))
        for k in rounding:
            new[k] = b.taken(places[k].type, new[k])
    for place, found in zip(places, new, strict=True):
        put(b, place, found)


def rounded(b: Builder, *pairs: tuple[Scalar, Parts, Parts]) -> None:
    """Count as lost the bits of the gaps from the results of undoing to the old values."""
    if not b.writes:
        return
    for _, guess, meant in pairs:
        for x, y in zip(parts_of(guess), parts_of(meant), strict=True):
            bits = bits_lost(b, x, y)
            if b.lost is not None:
                b.add_to(b.lost, bits)
            else:
                b.do("rounded", bits, aux=b.rounding)


# ------------------------------------------------------------------------- ancillas


def _made(b: Builder, stmt: Alloc | Fresh, reg: Place) -> None:
    t = b.function.registers[reg.reg].type
    given = stmt.value if isinstance(stmt, Alloc) else None
    if isinstance(t, Stack):
        made = b.helper("calloc", PTR, b.i64(STACK), b.i64(8))
        b.trouble(b.op("eq", made, constant(None, PTR)))
        b.set(b.stacks[reg.reg], made)
    elif isinstance(t, Array):
        arrays.make(b, reg.reg, given)
    else:
        zero = -0.0 if reg.reg in b.sums else system(t).zero
        new = raw(zero, t) if given is None else value(b, given)
        ask(b, t)
        put(b, located(b, reg), new if b.way >= 0 else b.taken(t, new))


def _gone(b: Builder, stmt: Free | Drop, reg: Place) -> None:
    t = b.function.registers[reg.reg].type
    given = stmt.value if isinstance(stmt, Free) else None
    asked = b.checks and id(stmt) not in b.certain
    if isinstance(t, Stack):
        stack = b.get(b.stacks[reg.reg])
        b.trouble(b.op("ne", b.peek(I64, size_of(b, stack)), b.i64(0)))
        for memory in (b.peek(PTR, stack), stack):
            b.helper("free", "void", memory)
    elif isinstance(t, Array):
        arrays.give_up(b, reg.reg, stmt, asked)
    elif given is not None:
        if asked or b.way > 0:
            freed(b, t, read(b, located(b, reg)), value(b, given), cast(Free, stmt))
    elif b.way > 0:
        b.keep((t, raw(system(t).zero, t), read(b, located(b, reg))))
    else:
        erase(b, nonzero(b, t, read(b, located(b, reg))), t.bits)


def freed(b: Builder, t: Scalar, held: Parts, expected: Parts, stmt: Free) -> None:
    """Check the value of a freed ancilla; a difference that is rounding is erased."""
    if t.is_exact:
        b.trouble(b.op("ne", cast(Node, held), cast(Node, expected)))
        return

    def number() -> None:
        off = Residue(b, t, stmt)
        off.add(held, expected)
        off.judge(keep)
        if not b.way:
            erase(b, unequal(b, held, expected), t.bits)

    def keep() -> None:
        if b.way > 0:
            b.keep((t, expected, held))

    def differs() -> None:
        # Where nothing has happened to a value LLVM finds that this is all there can be.
        b.when(both_nan(b, held, expected), keep, number)

    b.when(altered(b, held, expected), differs, keep, unlikely=True)


def both_nan(b: Builder, x: Parts, y: Parts) -> Node:
    """Whether two inexact numbers that differ are both NaN; of parts that are not, in no bit."""
    pairs = list(zip(parts_of(x), parts_of(y), strict=True))
    if len(pairs) == 1:
        return b.op("and", _is_nan(b, x), _is_nan(b, y))
    alike = [b.op("or", b.invert(altered(b, p, q)), both_nan(b, p, q)) for p, q in pairs]
    return b.all([_is_nan(b, x), _is_nan(b, y), *alike])


def _is_nan(b: Builder, x: Parts) -> Node:
    parts = parts_of(x)
    return b.op("funo", parts[0], parts[-1])


def altered(b: Builder, x: Parts, y: Parts) -> Node:
    """Whether two inexact numbers differ in a bit."""
    tests = []
    for p, q in zip(parts_of(x), parts_of(y), strict=True):
        whole = I32 if p.kind == F32 else I64
        tests.append(b.op("ne", b.op("bitcast", p, kind=whole), b.op("bitcast", q, kind=whole)))
    return _any(b, tests)


def unequal(b: Builder, x: Parts, y: Parts) -> Node:
    """Whether two inexact numbers differ; a NaN differs from everything."""
    pairs = zip(parts_of(x), parts_of(y), strict=True)
    return _any(b, [b.op("fne", p, q) for p, q in pairs])


def _any(b: Builder, tests: Sequence[Node]) -> Node:
    return tests[0] if len(tests) == 1 else b.op("or", *tests)


def nonzero(b: Builder, t: Scalar, x: Parts) -> Node:
    """Whether a value is not zero."""
    parts = parts_of(x)
    kind = parts[0].kind
    if kind == BIT:
        return parts[0]
    if kind in (F64, F32):
        return unequal(b, x, value_of((constant(0.0, kind),) * len(parts)))
    return b.op("ne", parts[0], constant(0, kind))


class Residue:
    """The judgement of a residue, as in `rvm.engines.heap`: of a number, or of all of an array."""

    def __init__(self, b: Builder, t: Scalar, stmt: Free) -> None:
        self.b = b
        self.t = t
        self.stmt = stmt
        self.gap, self.size = b.variable(I64, "gap"), b.variable(I64, "size")
        """The largest ones, as the bits of floats without signs: LLVM makes vectors of that."""
        self.own, self.others = b.variable(I64, "own"), b.variable(I64, "others")
        """The largest gaps in parts of the value, and of those that are zero the largest gap."""
        for variable in (self.gap, self.size, *((self.own, self.others) * stmt.returns)):
            b.set(variable, b.i64(0))

    def add(self, held: Parts, expected: Parts, off: Node | None = None) -> None:
        """Add a number; it is judged only if it is `off`."""
        b = self.b
        gap, size = _gap_and_size(b, held, expected)
        if off is not None:
            gap = b.select(off, gap, constant(0.0, F64))
        size = b.select(b.op("ford", size, size), size, constant(0.0, F64))
        largest = [(self.gap, gap), (self.size, size)]
        if self.stmt.returns:
            zero = constant(0.0, F64)
            sized = b.op("fgt", size, zero)
            largest.append((self.own, b.select(sized, b.op("fdiv", gap, size), zero)))
            largest.append((self.others, b.select(sized, zero, gap)))
        for variable, found in largest:
            bits = b.op("bitcast", b.intrinsic("fabs", found), kind=I64)
            b.set(variable, b.intrinsic("smax", b.get(variable), bits))

    def judge(self, accepted: Callable[[], None] = lambda: None) -> None:
        """Trouble unless the differences are rounding, which is then `accepted`."""
        b = self.b
        tolerance = b.read_field(context.TOLERANCE, F64)
        zero = constant(0.0, F64)
        gap, expected = (b.op("bitcast", b.get(v), kind=F64) for v in (self.gap, self.size))
        # Whatever compares with no number is not finite.
        b.trouble(b.invert(b.op("flt", gap, INFINITY)))
        b.trouble(b.op("feq", tolerance, zero))
        if self.stmt.judged is None:
            b.trouble(b.op("feq", tolerance, constant(context.EDITED, F64)))
            accepted()
            self._note_away(tolerance, expected)
            return
        size, updates = (b.get(b.scalars[p.reg][0]) for p in self.stmt.judged)
        size = b.larger(size, expected)
        turned = b.op("fge", updates, constant(TURNED, F64))
        b.trouble(b.op("and", turned, b.op("fgt", gap, zero)))
        many = b.larger(updates, constant(1.0, F64))
        ours = b.op("fmul", constant(system(self.t).unit, F64), many)
        by_rule = b.op("flt", tolerance, zero)
        least = b.select(by_rule, constant(system(self.t).least, F64), zero)
        allowed = b.op("fmul", b.larger(size, least), b.select(by_rule, ours, tolerance))
        b.trouble(b.invert(b.op("fle", gap, allowed)))
        lost = b.op("fgt", gap, b.op("fmul", constant(LOST, F64), expected))
        b.trouble(b.op("and", lost, b.op("fgt", expected, zero)))
        accepted()
        self._note(b.op("fdiv", gap, allowed))
        self._note_away(tolerance, expected)

    def _note_away(self, tolerance: Node, largest: Node) -> None:
        """Note how far an adjoint's values are from their start, as `rvm.numbers.rounding.away`."""
        if not self.stmt.returns:
            return
        b, zero = self.b, constant(0.0, F64)
        own, others = (b.op("bitcast", b.get(v), kind=F64) for v in (self.own, self.others))
        beside = b.select(b.op("fgt", largest, zero), b.op("fdiv", others, largest), zero)
        found = b.op("fdiv", b.larger(own, beside), constant(return_limit(self.t), F64))
        self._note(b.select(b.op("flt", tolerance, INFINITY), found, zero))

    def _note(self, drift: Node) -> None:
        """Note a residue in parts of what is allowed."""
        b = self.b
        if b.lanes:
            b.set(b.drift, b.larger(drift, b.get(b.drift)))
        else:
            b.write_field(context.DRIFT, b.larger(drift, b.read_field(context.DRIFT, F64)))


def _gap_and_size(b: Builder, held: Parts, expected: Parts) -> tuple[Node, Node]:
    xs, ys = parts_of(held), parts_of(expected)
    if len(xs) == 2:
        gaps = [b.op("fsub", x, y) for x, y in zip(xs, ys, strict=True)]
        return _extent(b, gaps), _extent(b, ys)
    x, y = xs[0], ys[0]
    if x.kind == F32:
        x, y = b.op("fpext", x, kind=F64), b.op("fpext", y, kind=F64)
    return b.intrinsic("fabs", b.op("fsub", x, y)), b.intrinsic("fabs", y)


def _extent(b: Builder, parts: Sequence[Node]) -> Node:
    """The size of a complex number, as in `rvm.numbers.rounding.extent`."""
    re, im = (b.intrinsic("fabs", x) for x in parts)
    return b.op("fadd", re, im)


def erase(b: Builder, condition: Node, bits: int) -> None:
    """Count bits as erased if a condition holds."""
    lose(b, b.select(condition, b.i64(bits), b.i64(0)))


def lose(b: Builder, bits: Node) -> None:
    """Count a number of bits as erased."""
    b.add_to(b.erased, bits)
    b.do("erased", bits)


# ------------------------------------------------------------------------- memory account


def room(b: Builder, size: Node) -> Node:
    """Trouble unless the memory limit leaves room; return the resulting number of live bytes."""
    total = b.op("wadd", b.read_field(context.LIVE), size)
    b.trouble(b.op("gt", total, b.read_field(context.LIMIT)))
    return total


def grow(b: Builder, total: Node) -> None:
    """Set the live bytes, and update the peak."""
    b.write_field(context.LIVE, total)
    peak = b.read_field(context.PEAK)
    b.write_field(context.PEAK, b.intrinsic("smax", peak, total))


def shrink(b: Builder, size: Node) -> None:
    """Subtract bytes from the live ones."""
    b.write_field(context.LIVE, b.op("wsub", b.read_field(context.LIVE), size))


# ------------------------------------------------------------------------- stacks


def _stack(b: Builder, place: Place) -> tuple[Node, Scalar]:
    t = b.function.registers[place.reg].type
    assert isinstance(t, Stack)
    return b.get(b.stacks[place.reg]), t.elem


def _push(b: Builder, src: Place, stack: Place) -> None:
    place = located(b, src)
    held, t = _stack(b, stack)
    found = read(b, place)
    left = raw(system(scalar_of(src)).zero, scalar_of(src))
    total = room(b, b.i64(SCALAR_BYTES))
    ask(b, t)
    slot = b.helper("rvm_stack_push", PTR, held, b.i64(item_size(t)))
    b.trouble(b.op("eq", slot, constant(None, PTR)))
    put(b, behind(b, slot, t), found)
    grow(b, total)
    put(b, place, left if b.way >= 0 else b.taken(t, left))


def _pop(b: Builder, dst: Place, stack: Place) -> None:
    place = located(b, dst)
    held, t = _stack(b, stack)
    old = read(b, place)
    _cleared(b, t, old)
    last, count = last_of(b, held, t)
    if b.way > 0:
        b.keep((t, raw(system(t).zero, t), old))
    b.poke(count, size_of(b, held))
    put(b, place, read(b, last))
    shrink(b, b.i64(SCALAR_BYTES))


def _cleared(b: Builder, t: Scalar, x: Parts) -> None:
    """Trouble unless a place holds zero, of either sign if there is a tolerance."""
    if t.is_exact:
        b.trouble(nonzero(b, t, x))
        return

    def differs() -> None:
        b.trouble(nonzero(b, t, x))
        b.trouble(b.op("feq", b.read_field(context.TOLERANCE, F64), constant(0.0, F64)))

    zero = value_of(tuple(constant(0.0, p.kind) for p in parts_of(x)))
    b.when(altered(b, x, zero), differs, unlikely=True)


# ------------------------------------------------------------------------- overlap


def apart(b: Builder, clashes: Sequence[Clash]) -> None:
    """Trouble if places that must not overlap do, or if views of one array overlap in range."""
    for x, y, same_ok in clashes:
        one, two = element(x), element(y)
        if one is not None and two is not None and len(one) == len(two):
            if not same_ok:
                differing(b, one, two)
        else:
            b.disjoint(x, y, same_ok)


def differing(b: Builder, one: Sequence[Expr], two: Sequence[Expr]) -> None:
    """Trouble if some indices are equal."""
    pairs = zip(one, two, strict=True)
    b.trouble(b.all([b.op("eq", whole_number(b, i), whole_number(b, j)) for i, j in pairs]))


def disjoint(b: Builder, x: Place, y: Place, same_ok: bool) -> None:
    """Trouble if the address ranges of two places overlap; common elements are not checked."""
    one, two = _reach(b, followed(b, x)), _reach(b, followed(b, y))
    test = b.op("and", b.op("ult", one.low, two.high), b.op("ult", two.low, one.high))
    if same_ok:
        pairs = zip((one.first, *one.strides), (two.first, *two.strides), strict=True)
        same = b.all([b.op("eq", p, q) for p, q in pairs])
        test = b.op("and", test, b.invert(same))
    b.trouble(test)


class _Reach(NamedTuple):
    """The addresses of a place's lowest byte, after its highest, and of its first element."""

    low: Node
    high: Node
    first: Node
    strides: Sequence[Node]


def _reach(b: Builder, place: Location | View) -> _Reach:
    if isinstance(place, View):
        found = at(b, place, (b.i64(0),) * len(place.axes))
        apart, dims = strides(b, place), place.dims
    elif isinstance(place, Element):
        found, apart, dims = place, [], ()
    else:
        raise Unprintable
    pointer = b.op("address", *found.at, kind=PTR, aux=(found.reg, found.part or 0))
    first = low = b.op("ptrtoint", pointer, kind=I64)
    high = b.op("wadd", low, b.i64(item_size(found.type)))
    zero = b.i64(0)
    for stride, dim in zip(apart, dims, strict=True):
        whole = b.product(b.op("wsub", dim, b.i64(1)), stride)
        low = b.op("wadd", low, b.intrinsic("smin", whole, zero))
        high = b.op("wadd", high, b.intrinsic("smax", whole, zero))
    return _Reach(low, high, first, apart)
