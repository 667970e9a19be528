"""The source of a vectorised loop: a function that executes as many whole iterations as it can.

It is called before the ordinary loop, and takes pieces of at most `BLOCK` iterations, whose
temporaries stay in the processor's cache.  In a piece everything is computed and checked first, and
then stored.  If anything fails, nothing of the piece is stored, and the ordinary loop, which
follows, finds the failure.
"""

from __future__ import annotations

from typing import cast

from rvm.emit.numpy.reuse import reused
from rvm.engines.vector.access import Access
from rvm.engines.vector.dependences import Dependences
from rvm.engines.vector.loops import counted
from rvm.engines.vector.printer import LoopPrinter
from rvm.engines.vector.slots import Slot
from rvm.engines.vector.support import VECTOR_SUPPORT
from rvm.engines.vector.trace import Trace
from rvm.image import Code
from rvm.ir.counters import Counters
from rvm.ir.flow import Edge
from rvm.ir.structure import Loop, Structure
from rvm.numbers import NAMES

BLOCK = 16_384
"""Iterations of a piece: an f64 value of all lanes takes 128 KiB."""
PAYS = 60
"""The ticks of ordinary code that take about as long as the overhead of a piece."""
LEAST = 16
"""The fewest iterations of a piece, however long they are."""

ON: dict[int | None, str] = {1: "+= _k", -1: "-= _k"}
"""The update of the variable by `_k` iterations, for some strides."""


class LoopPlan:
    """A loop that is vectorised; Declined if it cannot be.

    With `counters` it counts what it executes.  `constants` are the names that the source binds.

    `lines` are those of a function `name(n, state, …)` which returns whether the loop goes on, the
    ticks left and the variables in `results`.
    """

    def __init__(
        self,
        code: Code,
        structure: Structure,
        loop: Loop,
        constants: dict[str, object],
        counters: Counters | None = None,
    ) -> None:
        self.counters = counters
        self.ways = structure.ways[loop.body[-1].leader]  # type: ignore[union-attr]
        """The successors of an iteration: the next one, or the code after the loop."""
        self.counted = c = counted(code, loop.cycle)
        self.trace = trace = Trace(code, structure, loop, c)
        self.dependences = Dependences(trace)
        mirrored = c.stride is not None and c.stride < 0 and self._in_any_order()
        names, counts = {**NAMES, **VECTOR_SUPPORT}, counters is not None
        made = LoopPrinter(trace, self.dependences, mirrored, counts, constants, names)
        self.printer = made
        self.name = f"_loop_{c.loop.head}"
        self.cost = c.loop.back - c.loop.head
        self.least = LEAST + PAYS // self.cost
        self.variable = made.regs[c.var]
        self._end = made.fixed(c.end)
        start, step = made.fixed(c.start), made.fixed(c.step)
        piece = self._piece()
        self.inputs = sorted(made.used | {c.var})
        """The registers that are passed."""
        cells = [cast(int, cell.key) for cell in self.dependences.cells if cell.found is None]
        self.results = [c.var, *cells]
        """The scalar registers that are returned."""
        regs = made.regs
        sign = "" if c.sign > 0 else "-"
        if made.erasing:
            made.top.append("_ctx = Erased(0.0 if state.edited else state.options.tolerance)")
        self.lines = [
            f"def {self.name}({', '.join([*self.given, *(regs[r] for r in self.inputs)])}):",
            "    try:",
            *(f"        {line}" for line in made.top),
            f"        _by = {sign}{step}",
            "        while True:",
            f"            _k = {self._trips(start, self._end)}",
            f"            if _k > {self._most()}: _k = {self._most()}",
            f"            if {self.cost} * _k > n: _k = n // {self.cost}",
            f"            if _k < {self.least}: break",
            *(f"            {line}" for line in piece),
            "    except REFUSALS:",
            "        pass",
            f"    return {', '.join(['True', 'n', *(regs[r] for r in self.results)])}",
        ]

    @property
    def given(self) -> tuple[str, ...]:
        """The arguments of the function before registers."""
        return ("n", "state") if self.counters is None else ("n", "state", "row")

    @property
    def summary(self) -> str:
        """A description of the vectorised loop."""
        found = self.dependences
        kinds = ["elementwise"] if found.elements else []
        for cell in found.cells:
            if not cell.is_running:
                kinds.append(f"{cell.label} handed on from iteration to iteration")
            elif cell.is_read:
                kinds.append(f"scan of {cell.label}")
            else:
                kinds.append(f"reduction into {cell.label}")
        kinds += [f"scan by way of {slot.label}" for slot in found.delayed]
        kinds += [f"sums into {slot.label}" for slot, *_ in self._sums()]
        kinds = kinds or ["elementwise"]
        if len(self.trace.arms) > 1:
            kinds.append("by masks")
        if found.limit:
            kinds.append(f"{found.limit} iterations at a time")
        kinds += [f"where {a.label} and {b.label} are apart" for a, b in found.apart]
        kinds += [f"where no {a.label} is an {b.label}" for a, bs in found.met.items() for b in bs]
        kinds += [f"where {a.label} are different ones" for a in found.distinct]
        return ", ".join(dict.fromkeys(kinds))

    def _in_any_order(self) -> bool:
        """Whether no iteration uses results of another, and nothing else determines their order."""
        found = self.dependences
        if found.delayed or found.apart or any(s.is_summed for s in self.trace.slots.values()):
            return False
        return all(cell.is_reduced for cell in found.cells)

    def _trips(self, start: str, end: str) -> str:
        """The number of iterations left; 0 or less if there are none, or it is not known."""
        c, i = self.counted, self.variable
        text = f"trips({i}, {c.going!r}, {end}, {c.landing!r}, {start}, _by)"
        if (c.going, c.landing) != ("!=", "!=") or c.stride not in (1, -1):
            return text
        if c.stride == 1:
            return f"{end} - {i} if {i} >= {start} else {text}"
        return f"{i} - {end} if {i} <= {start} else {text}"

    def _most(self) -> int:
        limit = self.dependences.limit
        return min(limit, BLOCK) if limit else BLOCK

    # ------------------------------------------------------------ a piece

    def _piece(self) -> list[str]:
        """The lines that execute `_k` iterations."""
        made, c = self.printer, self.counted
        apart = [line for pair in self.dependences.apart for line in self._apart(*pair)]
        arms = [arm for arm in self.trace.arms if arm.ticks]
        lines = [*made.lines, f"_t = {' + '.join(f'{a.ticks} * {made.widths[a]}' for a in arms)}"]
        after = [*self._commit(lines), *self._count()]
        again, left = self.ways
        ended = "".join(f"{line}; " for line in self._counted([(again, -1), (left, 1)], "1"))
        first = f"_at = {self.variable}" + (" + _by" if c.early else "")
        if made.mirrored:
            first += " + _by * (_k - 1)"
        back = ", ".join(["False", "n", *self._returned()])
        piece = [
            first,
            *made.indices.starts,
            *apart,
            *made.indices.reached,
            *made.indices.bounds,
            *lines,
            *after,
            f"{self.variable} {ON.get(c.stride, '+= _by * _k')}",
            "n -= _t",
            f"if not {self.variable} {c.going} {self._end}: {ended}return {back}",
        ]
        return reused(piece, made.results)

    def _counted(self, passed: list[tuple[Edge, int]], width: str) -> list[str]:
        """Lines that count edges, passed by as many iterations."""
        if self.counters is None:
            return []
        at = {edge: self.counters.counted.get(self.counters.numbers[edge]) for edge, _ in passed}
        signs = {1: "+=", -1: "-="}
        return [f"row[{at[e]}] {signs[sign]} {width}" for e, sign in passed if at[e] is not None]

    def _count(self) -> list[str]:
        """Lines that record erased bits, and counts."""
        made = self.printer
        out = [
            f"state.account.erased_bits += {e}" for e in dict.fromkeys(e for _, e in made.erasing)
        ]
        if made.erasing:
            out.append("_ctx.file(state.account)")
        if self.counters is None:
            return out
        for arm in self.trace.arms:
            if arm.passed:
                out += self._counted(arm.passed, made.widths[arm])
        at = self.counters.erased
        return out + [f"row[{at[pc]}] += {bits}" for pc, bits in made.erasing if pc in at]

    def _returned(self) -> list[str]:
        made = self.printer
        return [
            self.variable,
            *(made.cell_name(s) for s in self.dependences.cells if s.found is None),
        ]

    def _apart(self, one: Access, other: Access) -> list[str]:
        """Lines that shorten a piece until two accesses reach no common element."""
        at = self.printer.indices
        axes = ", ".join(
            f"({at.first(p)}, {at.rate(p)}, {at.first(q)}, {at.rate(q)})"
            for p, q in zip(one.axes, other.axes, strict=True)
        )
        return [f"_k = room_for(_k, {axes})", f"if _k < {self.least}: break"]

    def _commit(self, lines: list[str]) -> list[str]:
        """Lines that store; all stored values are computed before the first store."""
        made = self.printer
        stores, sums = made.stores, self._sums()
        several = len(stores) + len(sums) > 1

        def ready(text: str) -> str:
            if several and text in made.views:
                lines.append(f"{text} = {text}.copy()")
            return text

        out = []
        for place, value, f in stores:
            if f:
                out += [f"_w = {place}", f"{f}(_w, {ready(value)}, _w)"]
            else:
                out.append(f"{place} = {ready(value)}")
        for slot, f, where, value in sums:
            found = cast(Access, slot.found)
            base = made.indices.base(found)
            if slot.is_summed:
                # NumPy's `at` would convert a Python number to i64 or f64, and add in that type.
                value = f"asarray({value}, {base}.dtype)"
                at = f"({where})" if len(found.axes) > 1 else where
                out.append(f"{f}.at({base}, {at}, {ready(value)})")
            elif where.startswith(base):
                out += [f"_w = {where}", f"{f}(_w, {ready(value)}, out=_w)"]
            else:
                out.append(f"{base}[{where}] = {f}({base}[{where}], {ready(value)})")
        for cell, value in made.finals.items():
            if cell.found is not None:
                out.append(f"{made.indices.at(cell.found)} = {value}")
            out.append(f"{made.cell_name(cell)} = {value}")
        return out

    def _sums(self) -> list[tuple[Slot, str, str, str]]:
        """Values added to arrays whose additions are made in an order of their own."""
        order = self.dependences.summed
        return sorted(self.printer.sums, key=lambda s: order.index(s[0]) if s[0] in order else -1)
