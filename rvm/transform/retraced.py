"""Code that is its own inverse, and is undone bit by bit.

Such code creates its registers, and begins with the same values in either direction; the values are
created, exchanged, or added to zero once.  Between its halves, and in loops and conditionals where
it has no part, anything may be done that does not change what it depends on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from rvm.expr import Const, Expr, places
from rvm.expr import reads as expr_reads
from rvm.isa import ENDS, MAKES, invert_instr, lower
from rvm.program import Function, Instr
from rvm.stmt import (
    Alloc,
    Branch,
    Exchange,
    Free,
    Land,
    Map,
    Stmt,
    Update,
    When,
    only_exchanges,
    reads,
    writes,
)
from rvm.types import elem_of

ABLE = Alloc | Free | Branch | Land | Update | Exchange | Map | When
"""The statements of such code: calls may do more than they show, and effects are seen."""
JUMPS = ("br", "cf")


@dataclass(frozen=True)
class Step:
    """An instruction of a function, and what it does.

    `inout` holds, for each function, the arguments that it may change; without it a call is taken
    to change all of them.
    """

    f: Function
    instr: Instr
    inout: Mapping[str, Collection[int]] | None = None

    @cached_property
    def stmts(self) -> Sequence[Stmt]:
        """Its statements."""
        return lower(self.instr)

    @cached_property
    def changed(self) -> frozenset[int]:
        """The registers that it changes, makes or removes."""
        return frozenset(p.reg for s in self.stmts for p in writes(s, self.inout))

    @cached_property
    def read(self) -> frozenset[int]:
        """The registers that it reads, also for the lengths of arrays that it makes or removes."""
        found = {p.reg for s in self.stmts for p in reads(s)}
        if self.instr.op in (*MAKES, *ENDS):
            found.update(*(known_from(self.f, e) for e in self.instr.args[1:]))
            found.update(*(lengths_from(self.f, reg) for reg in self.changed))
        return frozenset(found)

    @cached_property
    def known(self) -> frozenset[int]:
        """The registers on which its values and places depend, also by a length alone."""
        return frozenset().union(
            *(known_from(self.f, e) for e in self.instr.args if isinstance(e, Expr))
        )

    @cached_property
    def is_exact(self) -> bool:
        """Whether all that it changes are exact."""
        return all(elem_of(self.f.registers[reg].type).is_exact for reg in self.changed)

    @property
    def adds(self) -> bool:
        """Whether it only adds to a place, or takes something away."""
        match self.stmts:
            case (Update(_, "+" | "-"),):
                return True
        return False


def known_from(f: Function, e: Expr) -> set[int]:
    """The registers on which an expression depends.

    The lengths of parameters do not change; those of an ancilla may when it is made again.
    """
    local = {p.reg for p in places(e) if p.reg >= f.n_args}
    return local.union(p.reg for p in expr_reads(e))


def lengths_from(f: Function, reg: int) -> set[int]:
    """The registers on which a register's lengths depend."""
    return {r for d in f.registers[reg].dims if d is not None for r in known_from(f, d)}


def retraced(f: Function, asked: Collection[int], finite: bool = True) -> frozenset[int]:
    """Those of some frees whose registers hold to the bit what they are freed with.

    Code that makes the register is undone by what follows, whatever else is done in between to
    registers on which it does not depend.  With `finite` that is so of finite numbers: an infinity
    that is added to zero and taken away leaves NaN.
    """
    return Retraced([Step(f, instr) for instr in f.code], finite).ends(asked)


class Retraced:
    """The code in a function that is retraced, by the frees that end it."""

    def __init__(self, code: Sequence[Step], finite: bool = True) -> None:
        self.code = code
        self.finite = finite
        self._changes: dict[int, list[int]] = {}
        self._makes: dict[int, list[int]] = {}
        self._edges: dict[int, list[int]] = {}
        """Where a register is made or removed."""
        for pc, step in enumerate(code):
            is_made = step.instr.op in MAKES
            for reg in step.changed:
                self._changes.setdefault(reg, []).append(pc)
                if is_made:
                    self._makes.setdefault(reg, []).append(pc)
                if is_made or step.instr.op in ENDS:
                    self._edges.setdefault(reg, []).append(pc)
        self._jumps = [pc for pc, step in enumerate(code) if step.instr.op in JUMPS]
        self._found: dict[int, Sequence[int]] = {}

    def ends(self, asked: Collection[int]) -> frozenset[int]:
        """Those of some frees that are in the second half of such code."""
        halves = (kept[len(kept) // 2 :] for kept in self.within(asked))
        return frozenset(chain.from_iterable(halves)).intersection(asked)

    def within(self, asked: Collection[int]) -> Iterator[Sequence[int]]:
        """The positions of each such code that some frees end or are in, but once."""
        found: set[int] = set()
        for end in sorted(asked, reverse=True):
            if end not in found:
                if end not in self._found:
                    self._found[end] = ()  # It is none inside of itself.
                    self._found[end] = self._ended(end)
                kept = self._found[end]
                found.update(kept[len(kept) // 2 :])
                yield kept

    def _ended(self, end: int) -> Sequence[int]:
        code = self.code
        start = self._start(end)
        if start is None or not _keeps_bits(self._changing(start, end), self.finite):
            return ()
        kept = self._mirrored(start, end)
        steps = [code[pc] for pc in kept]
        if (
            all(isinstance(s, ABLE) for step in steps for s in step.stmts)
            and _is_local(steps)
            and _is_retraced(steps, self.finite)
        ):
            forth = kept[: len(kept) // 2]
            unsure = _unsure(code, forth)
            # What code inside undoes is certain too.
            if not unsure or unsure <= self.ends([p for p in forth if code[p].instr.op == "free"]):
                return kept
        return ()

    def repeated(self, asked: Collection[int]) -> Iterator[Sequence[int]]:
        """The positions of code that is its own inverse, for each of some frees that end it.

        It changes only registers that it creates.  Between its halves they hold the same bits in
        either direction, also where the second half does not bring back those of the first.
        """
        for end in asked:
            start = self._start(end)
            kept = () if start is None else self._mirrored(start, end)
            if kept and _is_local([self.code[pc] for pc in kept]):
                yield kept

    def _start(self, end: int) -> int | None:
        """Where the register is created that a free ends, if that undoes the free."""
        undo = invert_instr(self.code[end].instr)
        (reg,) = self.code[end].changed
        before = (pc for pc in reversed(self._changes[reg]) if pc < end)
        return next((pc for pc in before if self.code[pc].instr == undo), None)

    def _changing(self, start: int, end: int) -> list[Step]:
        (reg,) = self.code[end].changed
        return [self.code[pc] for pc in self._changes[reg] if start <= pc <= end]

    def _mirrored(self, start: int, end: int) -> Sequence[int]:
        """The positions on which a register depends in a range, if that is its own inverse."""
        within, kept = range(start, end + 1), list[int]()
        while within:
            kept = self._depended_on(within, end)
            within = self._around(kept)
        return kept if _is_own_inverse(self.code, kept) else ()

    def _depended_on(self, within: range, end: int) -> list[int]:
        """The positions of code on which a register depends, from when it is made to a free.

        Loops and conditionals in which none of these are do not belong to it.  Lengths change only
        where an array is made again.  A register that is made several times, as counters of loops
        are, is another one each time.
        """
        code, kept, known = self.code, set[int](), set[tuple[int, int]]()
        waiting = _in_range(self._jumps, within.start, within.stop)

        def life(reg: int, pc: int) -> Sequence[int]:
            """The changes of a register, of that which is alive at a position, but once."""
            begins = self._makes.get(reg, ())
            k = bisect_right(begins, pc)
            if (reg, k) in known:
                return ()
            known.add((reg, k))
            low = max(begins[k - 1], within.start) if k else within.start
            high = min(begins[k], within.stop) if k < len(begins) else within.stop
            return _in_range(self._changes.get(reg, ()), low, high)

        more = {pc for reg in code[end].changed for pc in life(reg, end)}
        while more:
            kept |= more
            ordered = sorted(more)
            found = {pc for pc in waiting if _leads_past(code[pc].instr.aux, pc, ordered)}
            waiting = [pc for pc in waiting if pc not in found]
            for pc in more:
                step = code[pc]
                for r in step.changed | step.read:
                    found.update(life(r, pc))
                for r in step.known - step.changed - step.read:
                    if _in_range(self._edges.get(r, ()), within.start, within.stop):
                        found.update(life(r, pc))
            more = found - kept
        return sorted(kept)

    def _around(self, kept: Sequence[int]) -> range:
        """The positions around code that changes registers which it does not make; else none."""
        steps = [self.code[pc] for pc in kept]
        changed = frozenset().union(*(step.changed for step in steps))
        made = (step.changed for step in steps if step.instr.op in MAKES)
        edges: list[int] = []
        for reg in changed.difference(*made):
            begin = next((pc for pc in reversed(self._changes[reg]) if pc < kept[0]), None)
            end = next((pc for pc in self._changes[reg] if pc > kept[-1]), None)
            if begin is None or end is None:
                return range(0)
            edges += [begin, end]
        return range(min(edges), max(edges) + 1) if edges else range(0)


def _keeps_bits(steps: Sequence[Step], finite: bool) -> bool:
    """Whether the changes of one register, in code that may be retraced, can be undone to the bit.

    This is soon seen, and rules out most code.
    """
    made, *changes = steps[: (len(steps) + 1) // 2]
    zero = finite and _is_zero(made.stmts[0])
    return all(
        step.is_exact or all(map(only_exchanges, step.stmts)) or (k == 0 and zero and step.adds)
        for k, step in enumerate(changes)
    )


def _in_range(positions: Sequence[int], low: int, high: int) -> Sequence[int]:
    """Those of some positions, in order, that are in a range."""
    return positions[bisect_left(positions, low) : bisect_left(positions, high)]


def _leads_past(target: int, pc: int, kept: Sequence[int]) -> bool:
    """Whether some positions are between those of a jump and its target."""
    low, high = min(pc, target), max(pc, target)
    return bisect_left(kept, high) > bisect_right(kept, low)


def _is_own_inverse(code: Sequence[Step], kept: Sequence[int]) -> bool:
    """Whether the instructions at some positions, from the last on, are what undoes them."""
    if len(kept) % 2:
        return False  # What is in the middle, such as an exchange, is done, and not undone.
    place = {pc: k for k, pc in enumerate(kept)}
    last = len(kept) - 1
    for k, pc in enumerate(kept):
        one, undo = code[pc].instr, invert_instr(code[kept[last - k]].instr)
        if one.op in JUMPS:
            to, back = place.get(one.aux), place.get(undo.aux)
            if to is None or back is None or to != last - back:
                return False
            undo = replace(undo, aux=one.aux)
        if one != undo:
            return False
    return True


def _is_local(steps: Sequence[Step]) -> bool:
    """Whether code changes only registers that it creates, and frees them."""
    live: set[int] = set()
    for step in steps:
        if step.instr.op in MAKES:
            live |= step.changed
        elif not step.changed <= live:
            return False
        elif step.instr.op in ENDS:
            live -= step.changed
    return not live


def _is_retraced(steps: Sequence[Step], finite: bool) -> bool:
    """Whether code that is its own inverse changes its registers bit by bit.

    What it frees in its first half is taken to be what it is freed with.
    """
    zero: set[int] = set()
    for k, step in enumerate(steps):
        changed = step.changed
        if step.instr.op in MAKES:
            zero |= changed if _is_zero(step.stmts[0]) else set()
            continue
        if step.instr.op not in ENDS and not step.is_exact and k < len(steps) // 2:
            adds = finite and step.adds and changed <= zero
            if not (adds or all(map(only_exchanges, step.stmts))):
                return False
        zero -= changed
        if step.instr.op in JUMPS:
            zero.clear()
    return True


def _unsure(code: Sequence[Step], kept: Sequence[int]) -> set[int]:
    """Those of some positions at which a register may be freed within rounding.

    It would be made again with other bits.  Certain are constants, and values with which registers
    were made, as long as nothing changes them or what they depend on.
    """
    found: set[int] = set()
    made: dict[int, Step] = {}
    for pc in kept:
        step = code[pc]
        instr, changed = step.instr, step.changed
        if instr.op in ENDS and not step.is_exact:
            as_made = all(r in made and invert_instr(made[r].instr) == instr for r in changed)
            if not as_made and not (len(instr.args) < 2 or isinstance(instr.args[1], Const)):
                found.add(pc)
        if instr.op in JUMPS:
            # In another round of a loop, or on another branch.
            low, high = sorted((pc, instr.aux))
            changed = changed.union(*(code[p].changed for p in kept if low < p < high))
        made = {
            reg: one
            for reg, one in made.items()
            if reg not in changed and one.known.isdisjoint(changed)
        }
        if instr.op in MAKES:
            made |= dict.fromkeys(changed, step)
    return found


def _is_zero(s: Stmt) -> bool:
    match s:
        case Alloc(_, None | Const(0)):
            return True
    return False
