"""Counting loops with hoisted checks: the checks in front, and the nest without them.

`loops` finds these loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rvm.expr import Expr, reads
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.flow import Cycle
from rvm.ir.jam import Jam
from rvm.ir.joined_rounds import between, join
from rvm.ir.loops import Counted, Inner, Inside
from rvm.ir.node import I64, Node
from rvm.ir.statements import altered
from rvm.ir.typed import Unprintable
from rvm.ir.vacant import Vacant
from rvm.ir.values import located, read, scalar, value

if TYPE_CHECKING:
    from rvm.ir.function import MachineMaker

FAR = 1 << 40
"""Loops run without checks only if their variables are within ± this."""
Onward = Callable[[int, bool], None]
Block = Callable[[int], str]
Range = tuple[Node, Node]
"""The least and the greatest value of a variable."""


def hoisted(maker: MachineMaker, loop: Counted, copy: int) -> bool:
    """Continue at a counting loop: without checks if all can be made in advance, and hold.

    False, without any code, if lanes differ in the values checked.
    """
    b = maker.b
    if b.varying and _involved(loop) & b.varying:
        # Bounds that differ are asked in each iteration, as whatever differs is.
        return False
    fast, slow = b.fresh("f"), b.fresh("slow")
    begun = b.scalars[loop.variable][0]
    first = b.get(begun)
    end, low = scalar(b, loop.end), scalar(b, loop.start)
    up, step = loop.step > 0, abs(loop.step)
    distance = b.op("wsub", *((end, first) if up else (first, end)))
    near = [_near(b, first), _near(b, end), b.op("gt", distance, b.i64(0))]
    b.stay(b.all([*near, b.op("le" if up else "ge", low, first)]), slow)
    trips = distance
    if step > 1:
        b.stay(b.op("eq", b.op("urem", distance, b.i64(step)), b.i64(0)), slow)
        trips = b.op("udiv", distance, b.i64(step))
    least, most = first, b.op("wsub", end, b.i64(loop.step))
    if loop.early:
        least, most = b.op("wadd", first, b.i64(loop.step)), end
    ranges = {loop.variable: (least, most) if up else (most, least)}
    tests = [t for inner in loop.inner for t in _range(b, inner, ranges)]
    tests += [t for i in loop.indices for t in _inside(b, i, ranges)]
    tests += _enough(b, loop, trips, ranges)
    for variable in ranges:
        if variable != loop.variable:
            b.set(b.scalars[variable][0], b.i64(0))
    b.set(begun, first)
    b.stay(b.all(tests), slow)
    b.jump(fast)
    b.block(slow)
    maker.goto(copy, loop.cycle.head + 1)
    _unchecked(maker, loop, fast, copy)
    return True


def _involved(loop: Counted) -> set[int]:
    """The registers checked in front of a loop."""
    nodes = [loop.end, loop.start, *(i.item for i in loop.indices)]
    nodes += [bound for inner in loop.inner for bound in (inner.low, inner.high)]
    own = {loop.variable, *(inner.variable for inner in loop.inner)}
    return own | {place.reg for node in nodes for place in reads(node)}


def _near(b: FunctionBuilder, value: Node) -> Node:
    return b.op("ult", b.op("wadd", value, b.i64(FAR)), b.i64(2 * FAR))


def _extreme_at(
    b: FunctionBuilder,
    node: Expr,
    factors: tuple[tuple[int, int], ...],
    ranges: dict[int, Range],
    greatest: bool,
) -> Node:
    """The least or greatest value of an affine expression over its variables' ranges."""
    for variable, factor in factors:
        b.set(b.scalars[variable][0], ranges[variable][(factor > 0) == greatest])
    return scalar(b, node)


def _range(b: FunctionBuilder, inner: Inner, ranges: dict[int, Range]) -> list[Node]:
    """Enter the range of an inner loop's variable; whether it is not too wide."""
    low = _extreme_at(b, inner.low, inner.low_factors, ranges, False)
    high = _extreme_at(b, inner.high, inner.high_factors, ranges, True)
    ranges[inner.variable] = (low, high)
    return [_near(b, low), _near(b, high)]


def _inside(b: FunctionBuilder, index: Inside, ranges: dict[int, Range]) -> list[Node]:
    """Whether an index is within bounds at both ends of its range."""
    length = b.dim(index.reg, index.axis)
    ends = [
        _extreme_at(b, index.item, index.factors, ranges, greatest)
        for greatest in ((False, True) if index.factors else (True,))
    ]
    return [b.op("ult", end, length) for end in ends]


def _enough(b: FunctionBuilder, loop: Counted, trips: Node, ranges: dict[int, Range]) -> list[Node]:
    """Whether there are enough ticks for a whole nest, and for each loop at most."""
    fine: list[Node] = []

    def times(x: Node, y: Node) -> Node:
        both = b.op("intrinsic", x, y, kind="{i64, i1}", aux="umul.with.overflow")
        fine.append(b.invert(b.op("extract", both, kind="bit", aux=1)))
        return b.op("extract", both, kind=I64, aux=0)

    def total(cycle: Cycle, count: Node) -> Node:
        each = b.i64(loop.rounds(cycle))
        for inner in loop.inner:
            if _directly(loop, cycle, inner.cycle):
                low, high = ranges[inner.variable]
                some = b.intrinsic("smax", b.op("wsub", high, low), b.i64(0))
                if inner.step > 1:
                    some = b.op("udiv", some, b.i64(inner.step))
                each = b.op("wadd", each, total(inner.cycle, b.op("wadd", some, b.i64(1))))
        return times(count, each)

    ticks = total(loop.cycle, trips)
    # Sums of a few numbers below 2**61 do not wrap.
    small = b.op("ult", ticks, b.i64(1 << 61))
    return [small, b.op("le", ticks, b.get(b.ticks)), *fine]


def _directly(loop: Counted, outer: Cycle, inner: Cycle) -> bool:
    """Whether a loop of a nest is directly inside another."""
    if not (outer.head < inner.head and inner.back < outer.back):
        return False
    return not any(
        outer.head < i.cycle.head < inner.head and inner.back < i.cycle.back < outer.back
        for i in loop.inner
    )


def _unchecked(maker: MachineMaker, loop: Counted, label: str, copy: int) -> None:
    """The loop once more, with all that was found out before it."""
    b = maker.b
    before, maker.trusted, b.proved = (maker.trusted, b.proved), loop.trusted, loop.proved
    certain = b.certain
    leave = b.fresh("leave")
    todo: list[tuple[str, int, Onward, frozenset[int]]] = []

    def piece(
        name: str, cycle: Cycle, outside: Block, onward: Onward, known: frozenset[int]
    ) -> Block:
        """The blocks of a loop by the positions where they begin."""
        made: set[int] = set()

        def block(target: int) -> str:
            if not cycle.head < target <= cycle.back:
                return outside(target)
            if target not in made:
                made.add(target)
                todo.append((f"{name}_{target}", target, onward, known))
            return f"{name}_{target}"

        return block

    def onward(target: int, falling: bool) -> None:
        # The values of lanes fill the registers as it is.
        enters = falling and not b.lanes
        jam: Jam | None = loop.jams.get(target - 1) if enters else None
        if jam is not None and joined(jam):
            return
        vacant = loop.vacant.get(target - 1) if enters and b.checks else None
        if vacant is not None:
            quick(vacant, block(target))
        else:
            b.jump(block(target))

    def joined(jam: Jam) -> bool:
        """Make the blocks of joined rounds, or none if they can't be made."""
        cycle = jam.loops[0].cycle
        begun, here, items = len(b.blocks), len(b.items), b.items
        try:
            join(b, jam, block(cycle.head + 1), block(cycle.back + 1))
        except Unprintable:
            del b.blocks[begun:], items[here:]
            b.items = items
            return False
        return True

    def quick(vacant: Vacant, rest: str) -> None:
        """The loop without comparisons of what it finds, if that is what should be there."""
        cycle = vacant.rounds.cycle
        known = frozenset(s.asks for s in vacant.stored)
        if known <= certain:
            b.jump(rest)
            return
        _look(b, vacant, rest)
        inner = piece(b.fresh("q"), cycle, block, lambda t, _: b.jump(inner(t)), certain | known)
        b.jump(inner(cycle.head + 1))

    block = piece(label, loop.cycle, lambda _: leave, onward, certain)
    b.block(label)
    onward(loop.cycle.head + 1, True)
    while todo:
        name, start, further, b.certain = todo.pop()
        b.block(name)
        maker.straight(start, further)
    maker.trusted, b.proved = before
    b.certain = certain
    b.block(leave)
    maker.goto(copy, loop.cycle.back + 1)


def _look(b: FunctionBuilder, loop: Vacant, rest: str) -> None:
    """Continue at `rest` unless all that a loop will find where it stores is what should be."""
    rounds = loop.rounds
    variable = b.scalars[rounds.variable][0]
    first, end = b.get(variable), scalar(b, rounds.end)
    step = b.i64(rounds.step)
    begun = b.op("wadd", first, step) if rounds.early else first
    other = b.variable(I64, "other")
    b.set(other, b.i64(0))

    def one(k: Sequence[Node]) -> None:
        b.set(variable, b.op("wadd", begun, b.op("wmul", k[0], step)))
        for s in loop.stored:
            differs = altered(b, read(b, located(b, s.place)), value(b, s.expected))
            b.set(other, b.op("or", b.get(other), b.op("zext", differs, kind=I64)))

    b.nest((between(b, first, end, rounds.step),), one)
    b.set(variable, first)
    b.stay(b.op("eq", b.get(other), b.i64(0)), rest)
