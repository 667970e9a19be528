"""Counting loops as LLVM code: what is asked in front of a nest, and the nest without questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from rvm.emit.llvm.edges import Edge
from rvm.emit.llvm.flow import Cycle, Flow
from rvm.emit.llvm.jam import Jam, print_jam
from rvm.emit.llvm.kind import Kind
from rvm.emit.llvm.loops import Counted, Inner, Inside
from rvm.emit.llvm.oneway import OneWays
from rvm.emit.llvm.registers import Callees
from rvm.emit.values import Unprintable
from rvm.expr import Expr
from rvm.image import Code

FAR = 1 << 40
"""Variables of counting loops lie within ± this where a loop is run without checks."""


class Nests(OneWays):
    """Prints the counting loops of one function."""

    def __init__(self, symbol: str, code: Code, kind: Kind, flow: Flow, callees: Callees) -> None:
        super().__init__(symbol, code, kind, flow, callees)
        self._fast: Counted | None = None
        self.joins = True
        """Whether rounds of loops are joined."""

    # What `rvm.emit.llvm.function` adds.

    def goto(self, copy: int, target: int) -> None:
        """End the block by going on at a leader."""
        raise NotImplementedError

    def straight(self, start: int, onward: Callable[[int, bool], None]) -> None:
        """Instructions from a leader on, and the jump that ends them."""
        raise NotImplementedError

    def count(self, ticks: int | str) -> None:
        """Count ticks as done."""
        raise NotImplementedError

    def along(self, edge: Edge, times: str = "1") -> None:
        """A straight piece has been done, so often, and a run goes on along this edge."""
        raise NotImplementedError

    def _enter(self, loop: Counted, copy: int) -> None:
        """In front of a counting loop: without checks if all of them can be made now."""
        fast, slow = self.fresh("f"), self.fresh("slow")
        begun = self.scalars[loop.variable][0]
        first = self.load("i64", begun)
        end, low = cast(str, self.value(loop.end)), cast(str, self.value(loop.start))
        up, step = loop.step > 0, abs(loop.step)
        distance = self.op(f"sub i64 {end}, {first}" if up else f"sub i64 {first}, {end}")
        self._all(
            slow,
            self._near(first),
            self._near(end),
            self.compare("sgt", "i64", distance, "0"),
            self.compare("sle" if up else "sge", "i64", low, first),
        )
        trips = distance
        if step > 1:
            self._all(slow, self.compare("eq", "i64", self.op(f"urem i64 {distance}, {step}"), "0"))
            trips = self.op(f"udiv i64 {distance}, {step}")
        last = self.op(f"sub i64 {end}, {loop.step}")
        near, far = first, last
        if loop.early:
            near, far = self.op(f"add i64 {first}, {loop.step}"), end
        ranges = {loop.variable: (near, far) if up else (far, near)}
        tests = [t for inner in loop.inner for t in self._range(inner, ranges)]
        tests += [t for i in loop.indices for t in self._inside(i, ranges)]
        tests.append(self._enough(loop, trips, ranges))
        for variable in ranges:
            if variable != loop.variable:
                self.store("i64", "0", self.scalars[variable][0])
        self.store("i64", first, begun)
        self._all(slow, *tests)
        self.jump(fast)
        self.label(slow)
        self.goto(copy, loop.cycle.head + 1)
        self._unchecked(loop, fast, copy)

    def _all(self, otherwise: str, *tests: str) -> None:
        """Go on only if all tests hold."""
        test = tests[0]
        for more in tests[1:]:
            test = self.op(f"and i1 {test}, {more}")
        going = self.fresh("go")
        self.fork(test, going, otherwise)
        self.label(going)

    def _near(self, value: str) -> str:
        moved = self.op(f"add i64 {value}, {FAR}")
        return self.compare("ult", "i64", moved, str(2 * FAR))

    def _extreme_at(
        self,
        node: Expr,
        factors: tuple[tuple[int, int], ...],
        ranges: dict[int, tuple[str, str]],
        greatest: bool,
    ) -> str:
        """The least or greatest value of an affine expression over its variables' ranges."""
        for variable, factor in factors:
            value = ranges[variable][(factor > 0) == greatest]
            self.store("i64", value, self.scalars[variable][0])
        return cast(str, self.value(node))

    def _range(self, inner: Inner, ranges: dict[int, tuple[str, str]]) -> list[str]:
        """Enter the range of an inner loop's variable; whether it is not too wide."""
        low = self._extreme_at(inner.low, inner.low_factors, ranges, False)
        high = self._extreme_at(inner.high, inner.high_factors, ranges, True)
        ranges[inner.variable] = (low, high)
        return [self._near(low), self._near(high)]

    def _inside(self, index: Inside, ranges: dict[int, tuple[str, str]]) -> list[str]:
        """Whether an index lies inside at both ends of its range."""
        length = self.load("i64", self.arrays[index.reg].dims[index.axis])
        ends = {
            self._extreme_at(index.item, index.factors, ranges, greatest)
            for greatest in ((False, True) if index.factors else (True,))
        }
        return [self.compare("ult", "i64", end, length) for end in sorted(ends)]

    def _enough(self, loop: Counted, trips: str, ranges: dict[int, tuple[str, str]]) -> str:
        """Whether there are ticks enough for a whole nest; those of each loop at most."""
        fine = "true"

        def times(a: str, b: str) -> str:
            nonlocal fine
            both = self.op(f"call {{i64, i1}} @llvm.umul.with.overflow.i64(i64 {a}, i64 {b})")
            over = self.op(f"extractvalue {{i64, i1}} {both}, 1")
            over = self.op(f"xor i1 {over}, true")
            fine = over if fine == "true" else self.op(f"and i1 {fine}, {over}")
            return self.op(f"extractvalue {{i64, i1}} {both}, 0")

        def total(cycle: Cycle, count: str) -> str:
            each = str(loop.rounds(cycle))
            for inner in loop.inner:
                if self._directly(loop, cycle, inner.cycle):
                    low, high = ranges[inner.variable]
                    wide = self.op(f"sub i64 {high}, {low}")
                    some = self.op(f"call i64 @llvm.smax.i64(i64 {wide}, i64 0)")
                    if inner.step > 1:
                        some = self.op(f"udiv i64 {some}, {inner.step}")
                    more = total(inner.cycle, self.op(f"add i64 {some}, 1"))
                    each = self.op(f"add i64 {each}, {more}")
            return times(count, each)

        ticks = total(loop.cycle, trips)
        # Sums of a few numbers below 2**61 do not wrap.
        small = self.compare("ult", "i64", ticks, str(1 << 61))
        enough = self.compare("sle", "i64", ticks, self.load("i64", self.ticks))
        found = self.op(f"and i1 {small}, {enough}")
        return found if fine == "true" else self.op(f"and i1 {found}, {fine}")

    def _directly(self, loop: Counted, outer: Cycle, inner: Cycle) -> bool:
        """Whether a loop of a nest stands in another without one between them."""
        if not (outer.head < inner.head and inner.back < outer.back):
            return False
        return not any(
            outer.head < i.cycle.head < inner.head and inner.back < i.cycle.back < outer.back
            for i in loop.inner
        )

    def _unchecked(self, loop: Counted, label: str, copy: int) -> None:
        """The loop once more, with all that was found out before it."""
        outer, self._fast = (self._fast, self.proved), loop
        self.proved = loop.proved
        head, back = loop.cycle.head + 1, loop.cycle.back
        todo: list[int] = []
        made: set[int] = set()
        leave = self.fresh("leave")

        def block(target: int) -> str:
            if not head <= target <= back:
                return leave
            if target not in made:
                made.add(target)
                todo.append(target)
            return f"{label}_{target}"

        def onward(target: int, falling: bool) -> None:
            jam = loop.jams.get(target - 1) if falling else None
            if jam is None or not self._joined(jam, block):
                self.jump(block(target))

        self.label(label)
        onward(head, True)
        while todo:
            start = todo.pop()
            self.label(f"{label}_{start}")
            self.straight(start, onward)
        self._fast, self.proved = outer
        self.label(leave)
        self.goto(copy, back + 1)

    def _joined(self, jam: Jam, block: Callable[[int], str]) -> bool:
        """Print rounds of a loop joined, and go on; False, and nothing, where that cannot be."""
        if not self.joins:
            return False
        lines, begun = len(self.lines), self.block
        cycle = jam.loops[0].cycle
        try:
            print_jam(self, jam, block(cycle.head + 1), block(cycle.back + 1))
        except Unprintable:
            del self.lines[lines:]
            self.block = begun
            return False
        return True
