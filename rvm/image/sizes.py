"""The sizes of ancillas: internal registers that record them, and the code for this.

If an ancilla of an inexact type is freed, and its value is not known by construction
(`rvm.verify.matching`), the limit for its rounding error is `ε n S`: n is the number of its
updates, and S the largest magnitude that it has had, in present units: a multiplication of the
place also multiplies S.  So the verdict does not depend on units.  An array has one S and one n.
Two ancillas that are exchanged exchange their records.  A value that comes from where no record is
kept may have another unit: the record begins anew, as that of a value that was passed.

If an adjoint was computed from the value meanwhile, a tighter limit applies: then S is the largest
magnitude itself, and n is `rounding.RETURN` in gaps.  What did not begin as zero is measured by
itself besides, which needs no record (`rounding.away`).

Both are registers after those of the function, with names that begin with a dot, and *notes* update
them: statements that follow those of an instruction, in the same tick, and never fail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import cast

from rvm.expr import Apply, Const, Expr, Part, Place, walk
from rvm.isa import lower
from rvm.isa.typing import apply
from rvm.numbers import system
from rvm.numbers.rounding import PASSED, RETURN_GAPS
from rvm.program import Function, Program, Register
from rvm.stmt import Alloc, Call, Exchange, Fresh, Held, Map, Pop, Push, Stmt, Update, When, writes
from rvm.transform.duals import reachable
from rvm.transform.ends import Ends
from rvm.types import BOOL, C128, F64, I64, Array, Scalar, Stack, ValueType, elem_of, rank_of
from rvm.verify.flow import LIVES


class Sizes(dict[int, Held]):
    """For ancillas the registers that say how large they have been; and which of them return."""

    def __init__(
        self,
        held: Mapping[int, Held] = MappingProxyType({}),
        returning: Collection[int] = (),
        copies: Mapping[int, int] = MappingProxyType({}),
        by_calls: Mapping[str, Collection[int]] = MappingProxyType({}),
    ) -> None:
        super().__init__(held)
        self.returning = frozenset(returning)
        self.copies = copies
        """For parameters the copies that return, which are as large as the parameters become."""
        self.by_calls = by_calls
        """For functions that are called the parameters that they may leave in another unit."""


ZERO, ONE, TRUE = Const(0.0, F64), Const(1.0, F64), Const(True, BOOL)


def kept_for(program: Program, function: Function, both: Iterable[tuple[Function, Ends]]) -> Sizes:
    """The ancillas of a function whose sizes are kept."""
    regs: set[int] = set()
    returning: set[int] = set()
    for code, (matched, returns) in both:
        for pc, instr in enumerate(code.code):
            if instr.op in ("free", "pop") and (pc in returns or pc not in matched):
                reg = cast(Place, instr.args[0]).reg
                t = function.registers[reg].type
                if reg >= function.n_args and not isinstance(t, Stack) and not elem_of(t).is_exact:
                    (returning if pc in returns else regs).add(reg)
    if returning:
        returning &= _changed(program, function, _only_adds)[function.name]
    regs |= returning
    behind = len(function.registers)
    held = {
        reg: Held(Place(behind + 2 * k, (), F64), Place(behind + 2 * k + 1, (), F64))
        for k, reg in enumerate(sorted(regs))
    }
    by_calls = _changed(program, function, _keeps_unit) if held else {}
    return Sizes(held, returning, _copies(function, returning), by_calls)


def _copies(function: Function, returning: Collection[int]) -> dict[int, int]:
    """The parameters that change places with registers that return, and these registers."""
    found = {}
    for instr in function.code if returning else ():
        match lower(instr) if instr.op == "swap" else ():
            case (Exchange(Place(a, ()), Place(b, ())),) if (a in returning) != (b in returning):
                copy, of = (a, b) if a in returning else (b, a)
                if of < function.n_args:
                    found[of] = copy
    return found


def _changed(
    program: Program, function: Function, harmless: Callable[[Stmt], bool]
) -> Mapping[str, frozenset[int]]:
    """For a function and those it may call the registers that others than `harmless` statements
    change."""
    functions = [program.function(n) for n in reachable(program, function.name)]
    found = {f.name: frozenset[int]() for f in functions}
    growing = True
    while growing:
        now = {f.name: frozenset(_changed_in(f, found, harmless)) for f in functions}
        growing, found = now != found, now
    return found


def _changed_in(
    f: Function, by_calls: Mapping[str, Collection[int]], harmless: Callable[[Stmt], bool]
) -> Iterator[int]:
    for instr in f.code:
        for stmt in () if instr.op in LIVES else lower(instr):
            if not harmless(stmt):
                yield from (place.reg for place in writes(stmt, by_calls))


def _only_adds(stmt: Stmt) -> bool:
    """Whether a register is off afterwards by no more than the rounding of an addition."""
    if not isinstance(stmt, Update):
        return False
    return stmt.op in system(elem_of(cast(ValueType, stmt.dst.type))).additive


def _keeps_unit(stmt: Stmt) -> bool:
    """Whether what a statement changes has the same unit afterwards."""
    match stmt:
        case Update(_, _, value):
            return isinstance(value, Const) or _only_adds(stmt)
        case Exchange(a, b):
            return a.reg == b.reg
        case When(_, body):
            return all(map(_keeps_unit, body))
        case Map():
            return True
    return False


def with_sizes(function: Function, sizes: Sizes) -> Function:
    """A function with the registers that say how large its ancillas have been."""
    if not sizes:
        return function
    named = [function.registers[reg].name for reg in sizes]
    own = [Register(f".{name}.{part}", F64) for name in named for part in ("size", "updates")]
    return replace(function, registers=(*function.registers, *own))


def notes(
    function: Function,
    sizes: Sizes,
    inout: Mapping[str, Collection[int]],
    live: Collection[int],
    stmt: Stmt,
) -> Iterator[Stmt]:
    """Statements that record the sizes of places changed by a statement;

    `live` registers remain.
    """
    match stmt:
        case Alloc(Place(reg), Place(of, ())) if reg in sizes and of in sizes:
            # A copy is as far off as what it is a copy of.
            size, updates = sizes[of]
            many = apply("max", updates, Const(RETURN_GAPS, F64))
            yield Alloc(sizes[reg].size, size)
            yield Alloc(sizes[reg].updates, many if reg in sizes.returning else updates)
        case Alloc(reg, value) if value is not None and reg.reg in sizes:
            operations = sum(isinstance(n, Apply) for n in walk(value))
            yield from _begun(function, sizes, reg.reg, operations)
        case Fresh(reg) if reg.reg in sizes:
            yield from _begun(function, sizes, reg.reg, 0)
        case Update(dst, op, value) if dst.reg in sizes:
            yield from _updated(sizes, dst, op, value)
        case Exchange(Place(a, ()), Place(b, ())) if a in sizes and b in sizes:
            one, two = sizes[a], sizes[b]
            either = tuple(apply("max", p, q) for p, q in zip(one, two, strict=True))
            of_one = either if a in sizes.returning else two
            of_two = either if b in sizes.returning else one
            yield Map((*one, *two), (*of_one, *of_two), ())
        case Exchange(a, b):
            # Numbers that one array exchanges among each other leave its record as it is.
            for place in (a, b) if a.reg != b.reg else ():
                yield from _passed(sizes, place, PASSED)
        case Map(dsts):
            yield from _mixed(dsts, sizes)
        case When(cond, body):
            for inner in body:
                for note in notes(function, sizes, inout, live, inner):
                    yield When(cond, (note,))
        case Push(src):
            yield from _passed(sizes, src, 0)
        case Pop(dst):
            yield from _passed(sizes, dst, PASSED)
        case Call():
            others = {place.reg for place in writes(stmt, sizes.by_calls)}
            for place in writes(stmt, inout):
                if place.reg in sizes and place.reg in others:
                    yield from _passed(sizes, place, PASSED)
                elif place.reg in sizes:
                    yield from _updated(sizes, place, "+", None, PASSED)
                elif (copy := sizes.copies.get(place.reg)) is not None and copy in live:
                    held = sizes[copy]
                    yield from _noted(held, place, (held.size, held.updates))


def _begun(function: Function, sizes: Sizes, reg: int, operations: int) -> Iterator[Stmt]:
    """After a register was made by this many operations: it is as large as its value."""
    made = Const(RETURN_GAPS if reg in sizes.returning else float(operations), F64)
    t = cast("Scalar | Array", function.registers[reg].type)
    held = sizes[reg]
    if isinstance(t, Array):
        yield Alloc(held.size, ZERO)
        yield Alloc(held.updates, made)
        yield from _noted(held, Place(reg, (), t), (held.size, held.updates))
    else:
        yield Alloc(held.size, magnitude(Place(reg, (), t)))
        yield Alloc(held.updates, made)


def _updated(
    sizes: Sizes, dst: Place, op: str, value: Expr | None, many: int = 1
) -> Iterator[Stmt]:
    held = sizes[dst.reg]
    if dst.reg in sizes.returning:
        yield from _noted(held, dst, (held.size, held.updates))
        return
    t = elem_of(cast("Scalar | Array", dst.type))
    carried: Expr = held.size
    if value is not None and op not in system(t).additive and not dst.path:
        factor = _largest(value)
        if not (isinstance(value, Const) and abs(value.value) == 1):
            carried = apply(op, carried, factor)
    yield from _noted(held, dst, (carried, apply("+", held.updates, Const(float(many), F64))))


def _passed(sizes: Sizes, dst: Place, many: int) -> Iterator[Stmt]:
    """After a place of a register, or all of it, got a value whose history is not known."""
    held = sizes.get(dst.reg)
    if held is None:
        return
    if dst.path or dst.reg in sizes.returning:
        yield from _updated(sizes, dst, "+", None, many)
        return
    more = apply("+", held.updates, Const(float(many), F64)) if many else held.updates
    yield from _noted(held, dst, (ZERO, more))


def _noted(held: Held, dst: Place, carried: tuple[Expr, Expr]) -> Iterator[Stmt]:
    """Both size registers, from their propagated values and the place's new value."""
    size, updates = carried
    whole = _whole(dst)
    if not rank_of(cast("Scalar | Array", whole.type)):
        yield Map(tuple(held), (apply("max", size, magnitude(whole)), updates), ())
        return
    if carried != tuple(held):
        yield Map(tuple(held), carried, ())
    some: Expr = TRUE
    for axis in range(rank_of(cast("Scalar | Array", whole.type))):
        length = apply("dim", whole, Const(axis, I64))
        some = apply("&", some, apply(">", length, Const(0, I64)))
    largest = apply("max", held.size, magnitude(whole))
    yield When(some, (Map((held.size,), (largest,), ()),))


def _mixed(dsts: Sequence[Place], sizes: Sizes) -> Iterator[Stmt]:
    """Places that are computed from each other: each is as large as all of them together."""
    all_held = list(dict.fromkeys(sizes[d.reg] for d in dsts if d.reg in sizes))
    if not all_held:
        return
    if any(rank_of(cast("Scalar | Array", d.type)) for d in dsts):
        for d in dsts:
            if d.reg in sizes:
                yield from _updated(sizes, d, "+", None)
        return
    size: Expr = magnitude(_whole(dsts[0]))
    for d in dsts[1:]:
        size = apply("+", size, magnitude(_whole(d)))
    updates: Expr = all_held[0].updates
    for held in all_held:
        size = apply("max", size, held.size)
        if held is not all_held[0]:
            updates = apply("max", updates, held.updates)
    more = apply("+", updates, ONE)
    yield Map(tuple(p for h in all_held for p in h), (size, more) * len(all_held), ())


def _whole(place: Place) -> Place:
    """The complex number that a place is a part of; any other place unchanged."""
    if not (place.path and isinstance(place.path[-1], Part)):
        return place
    rank = rank_of(cast("Scalar | Array", place.type))
    return Place(place.reg, place.path[:-1], Array(C128, rank) if rank else C128)


def _largest(value: Expr) -> Expr:
    """The magnitude of a factor; of many, the largest of theirs."""
    if isinstance(value, Const):
        return Const(float(abs(value.value)), F64)
    found = apply("abs", value)
    if rank_of(cast("Scalar | Array", found.type)):
        found = apply("amax", found)
    return _double(found)


def magnitude(place: Place) -> Expr:
    """The magnitude of a place's value; for an array with elements, the largest magnitude."""
    t = cast("Scalar | Array", place.type)
    elem = elem_of(t)
    if elem.is_log:
        found = apply("abs", apply("log", place))
    elif elem.is_complex and not rank_of(t):
        parts = (Place(place.reg, (*place.path, Part(p)), F64) for p in ("re", "im"))
        found = apply("+", *(apply("abs", p) for p in parts))
    else:
        found = apply("abs", place)
    if rank_of(t):
        found = apply("amax", found)
    found = _double(found)
    if elem.is_log:
        # Zero is the logarithm -inf.
        finite = apply("<", found, Const(float("inf"), F64))
        found = apply("select", finite, found, ZERO)
    return found


def _double(found: Expr) -> Expr:
    return found if found.type == F64 else apply("f64", found)
