"""Counting loops: those whose iterations and indices can be checked before they begin.

Such a loop is printed twice: once like any other, and once without the checks that hold throughout
(of its come-from, of indices that are affine in its variable, of its ticks).  LLVM can vectorise
the second version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rvm.expr import LENGTHS, Apply, Const, Expr, Index, Place, Span, reads
from rvm.image import Code
from rvm.ir.flow import Cycle, Flow
from rvm.ir.jam import Jam, Rounds, jam
from rvm.ir.loop_facts import MAX_STEP, bound, live_at, step_of, touched, wraps
from rvm.ir.vacant import Vacant, stored
from rvm.stmt import Alloc, Free, writes
from rvm.types import I64, Array, Scalar
from rvm.verify import pieces
from rvm.verify.affine import affine


@dataclass(frozen=True, slots=True)
class Inside:
    """An index that must be within bounds at both ends of its range; then all instances are.

    `item` is over the nest's variables and invariants; `factors` are those of the variables.
    """

    item: Expr
    reg: int
    axis: int
    factors: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Inner:
    """A loop within a nest, whose variable takes values from `low` to `high` only.

    The bounds are over the variables of the loops around it; `low_factors` and `high_factors` are
    those of the variables.
    """

    cycle: Cycle
    variable: int
    step: int
    low: Expr
    high: Expr
    low_factors: tuple[tuple[int, int], ...]
    high_factors: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """A loop `variable` += `step` until it is `end`, which never equals `start` before.

    `inner` are the loops inside it, outer ones first.
    """

    cycle: Cycle
    variable: int
    step: int
    end: Expr
    start: Expr
    early: bool
    """Whether the variable is stepped at the beginning of an iteration, not at its end."""
    inner: tuple[Inner, ...]
    indices: tuple[Inside, ...]
    proved: frozenset[int]
    """The `id`s of the index expressions that `indices` speak for."""
    trusted: frozenset[int]
    """The branches whose come-froms need no check."""
    jams: Mapping[int, Jam] = field(default_factory=dict)
    """Loops of the nest whose iterations can be joined, by the position of their come-from."""
    vacant: Mapping[int, Vacant] = field(default_factory=dict)
    """Loops of the nest that store to elements which should be zero, by the same."""

    def rounds(self, cycle: Cycle) -> int:
        """The instructions of an iteration of one of its loops, those of loops inside it aside."""
        within = [i.cycle for i in self.inner if cycle.head < i.cycle.head < cycle.back]
        covered = {pc for c in within for pc in range(c.head + 1, c.back + 1)}
        return cycle.back - cycle.head - len(covered)


def counted(code: Code, flow: Flow, strict: int = 0) -> dict[int, Counted]:
    """The counting loops of a code, including nests, by the position of their come-from.

    `strict` is the run's use of the strict log, whose order iterations preserve.
    """
    out = {}
    for cycle in flow.cycles:
        found = _Survey(code, flow, cycle, strict).result()
        if found is not None:
            out[cycle.head] = found
    return out


class Stepped(NamedTuple):
    """The step of a variable in an iteration, its instruction, and whether that comes first."""

    step: int
    at: int
    early: bool


class _Survey:
    """The analysis of one loop: its changes, and its variables."""

    def __init__(self, code: Code, flow: Flow, cycle: Cycle, strict: int) -> None:
        self.code = code
        self.flow = flow
        self.cycle = cycle
        self.inside = range(cycle.head + 1, cycle.back)
        self.ways = {pc: code.logging(pc, strict) for pc in self.inside}
        self.within = sorted(
            (c for c in flow.cycles if cycle.head < c.head and c.back < cycle.back),
            key=lambda c: c.head - c.back,
        )
        self.writers: dict[int, list[int]] = {}
        self.variables: set[int] = set()
        self.live_before = live_at(code, cycle.head + 1)
        """The registers that live when an iteration begins."""

    def result(self) -> Counted | None:
        """The result for the loop; None if it is not a counting loop."""
        code, cycle = self.code, self.cycle
        if not self.inside or not self._simple():
            return None
        for pc in self.inside:
            for reg in {p.reg for s in code.stmts(pc) for p in writes(s)}:
                self.writers.setdefault(reg, []).append(pc)
        ends, starts = bound(code.stmts(cycle.back)[0]), bound(code.stmts(cycle.head)[0])
        if ends is None or starts is None or ends[0] != starts[0]:
            return None
        variable = ends[0]
        stepped = self._stepped(cycle, variable)
        if stepped is None or any(
            p.reg in self.writers for b in (ends, starts) for p in reads(b[1])
        ):
            return None
        self.variables.add(variable)
        inner = []
        trusted = {cycle.back}
        for c in self.within:
            found = self._inner(c)
            if found is None:
                return None
            inner.append(found)
            trusted.add(c.back)
        indices, proved = self._indices()
        vacant = self._vacant(proved)
        stored = (s.place.path[0] for v in vacant.values() for s in v.stored)
        items = (i for step in stored if isinstance(step, Index) for i in step.items)
        return Counted(
            cycle,
            variable,
            stepped.step,
            ends[1],
            starts[1],
            stepped.early,
            tuple(inner),
            indices,
            proved.union(map(id, items)),
            frozenset(trusted),
            self._jams(inner),
            vacant,
        )

    def _vacant(self, proved: frozenset[int]) -> dict[int, Vacant]:
        """The loops that contain no others, and store where zeros should be."""
        out: dict[int, Vacant] = {}
        if any(self.ways.values()):
            # The strict log keeps what a `free` finds.
            return out
        every = (self.cycle, *self.within)
        for cycle in every:
            rounds = self._rounds(cycle)
            if rounds is None or any(cycle.head < c.head < cycle.back for c in every):
                continue
            parts = self.code, rounds, self.writers, proved
            found = tuple(stored(*parts, self._resolved, self._factors))
            if found:
                out[cycle.head] = Vacant(rounds, found)
        return out

    def _jams(self, inner: Sequence[Inner]) -> dict[int, Jam]:
        """The loops of the nest whose iterations can be joined, with the innermost ones in them."""
        out: dict[int, Jam] = {}
        if any(self.ways.values()):
            # Joined iterations would use the strict log in another order.
            return out
        known = {i.cycle: i for i in inner}
        for loop in inner:
            if any(loop.cycle.head < c.head < loop.cycle.back for c in known):
                continue
            loops: tuple[Rounds, ...] = ()
            fixed: set[int] = set()
            at: Inner | None = loop
            while at is not None and len(loops) < 3:
                cycle = self._around(at.cycle.head - 1)
                one, two = self._rounds(cycle), self._rounds(at.cycle)
                fixed |= {reg for reg, _ in (*at.low_factors, *at.high_factors)}
                if one is None or two is None or one.variable in fixed:
                    break
                loops = (one, *(loops or (two,)))
                found = jam(self.code, loops, self._resolved)
                if found is None:
                    break
                # What is left of three loops is an iteration; it is not worth another copy.
                out.pop(at.cycle.head, None)
                out[cycle.head] = found
                at = known.get(cycle)
        return out

    def _rounds(self, cycle: Cycle) -> Rounds | None:
        ends = bound(self.code.stmts(cycle.back)[0])
        stepped = None if ends is None else self._stepped(cycle, ends[0])
        if ends is None or stepped is None:
            return None
        return Rounds(cycle, ends[0], stepped.step, stepped.early, ends[1])

    def _simple(self) -> bool:
        """Whether the loop holds only scalar instructions, loops, and ifs that stay inside."""
        backs = {c.back for c in self.within}
        heads = {c.head for c in self.within}
        for pc in self.inside:
            instr = self.code.instrs[pc]
            if pc in self.flow.apart or pc in self.flow.calls:
                return False
            if instr.op in ("br", "cf"):
                if not self.cycle.head < instr.aux < self.cycle.back:
                    return False
                if (instr.op == "br") != (instr.aux > pc) and pc not in backs | heads:
                    return False
            elif instr.op in ("push", "pop") or not all(
                isinstance(p.type, Scalar) for p in touched(self.code.stmts(pc))
            ):
                return False
        return True

    def _stepped(self, cycle: Cycle, variable: int) -> Stepped | None:
        """The position in an iteration where a loop's variable is stepped."""
        inside = range(cycle.head + 1, cycle.back)
        at = [pc for pc in self.writers.get(variable, ()) if pc in inside]
        if len(at) != 1 or at[0] not in (inside[0], inside[-1]):
            return None
        step = step_of(self.code.stmts(at[0]), variable)
        if step is None:
            return None
        return Stepped(step, at[0], at[0] == inside[0] and len(inside) > 1)

    def _inner(self, cycle: Cycle) -> Inner | None:
        """A loop within, if it is a `for` whose bounds are known before the nest."""
        loop = pieces.counted(self.code.instrs, cycle.head - 1, cycle.back + 2)
        stepped = None if loop is None else self._stepped(cycle, loop.variable)
        if loop is None or stepped is None:
            return None
        variable, ends = loop.variable, (loop.first, loop.last)
        if self._made(variable, stepped.at, cycle) != loop.entered:
            return None
        if self._made(loop.behind, within=cycle) != loop.end:
            return None
        low, high = map(self._resolved, ends if loop.step > 0 else ends[::-1])
        if low is None or high is None:
            return None
        low_factors, high_factors = self._factors(low), self._factors(high)
        if low_factors is None or high_factors is None:
            return None
        self.variables.add(variable)
        return Inner(cycle, variable, abs(loop.step), low, high, low_factors, high_factors)

    def _around(self, pc: int) -> Cycle:
        """The innermost loop of the nest that holds an instruction."""
        found = [c for c in self.within if c.head < pc <= c.back]
        return max(found, key=lambda c: c.head, default=self.cycle)

    def _made(self, reg: int, step: int = -1, within: Cycle | None = None) -> Expr | None:
        """The value that a register is made with in each iteration, and has until it is freed.

        None if it lives when an iteration begins, or is made in several places, or is changed other
        than at `step`.  `within` is a loop that it must be made for anew each time.
        """
        if reg in self.live_before:
            return None
        made: list[tuple[int, Expr | None]] = []
        for pc in self.writers.get(reg, ()):
            if pc == step:
                continue
            for stmt in self.code.stmts(pc):
                if isinstance(stmt, Alloc):
                    made.append((pc, stmt.value))
                elif not isinstance(stmt, Free):
                    return None
        if len(made) != 1:
            return None
        pc, value = made[0]
        if within is not None and self._around(pc) != self._around(within.head):
            return None
        return value

    def _resolved(self, node: Expr) -> Expr | None:
        """An expression over loop variables and invariants of the nest.

        Ancillas that are created and removed inside are replaced by their values.
        """
        if isinstance(node, Place):
            if node.path or node.type != I64:
                return None
            if node.reg in self.variables or node.reg not in self.writers:
                return node
            made = self._made(node.reg)
            return None if made is None else self._resolved(made)
        if isinstance(node, Apply) and node.fn in LENGTHS:
            return node if isinstance(node.args[0], Place) and not node.args[0].path else None
        if isinstance(node, Const):
            return node
        if isinstance(node, Apply) and wraps(node):
            args = [self._resolved(a) for a in node.args]
            if any(a is None for a in args):
                return None
            return Apply(node.fn, tuple(a for a in args if a is not None), node.type)
        return None

    def _factors(self, node: Expr) -> tuple[tuple[int, int], ...] | None:
        """The factors of loop variables in a resolved expression; None if it is not affine."""
        found = []
        for atom, k in affine(node).atoms.items():
            match atom:
                case Place(reg, ()):
                    if reg in self.variables:
                        found.append((reg, k))
                case Apply(fn, _) if fn in LENGTHS:
                    pass
                case _:
                    return None
        return tuple(found) if all(abs(k) < MAX_STEP for _, k in found) else None

    def _indices(self) -> tuple[tuple[Inside, ...], frozenset[int]]:
        """The indices that can be checked before the loop, and their expressions."""
        found: dict[tuple[Expr, int, int], Inside] = {}
        proved: set[int] = set()
        registers = self.code.function.registers
        for pc in self.inside:
            for place in touched(self.code.logged(pc, self.ways[pc])):
                first = place.path[0] if place.path else None
                if not isinstance(first, Index) or not isinstance(registers[place.reg].type, Array):
                    continue
                for axis, item in enumerate(first.items):
                    if isinstance(item, Span) or item.type != I64:
                        continue
                    resolved = self._resolved(item)
                    factors = None if resolved is None else self._factors(resolved)
                    if resolved is None or factors is None:
                        continue
                    key = (resolved, place.reg, axis)
                    found.setdefault(key, Inside(*key, factors))
                    proved.add(id(item))
        return tuple(found.values()), frozenset(proved)
