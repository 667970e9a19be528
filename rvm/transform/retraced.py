"""Code that is its own inverse, and is undone bit by bit.

Such code creates its registers, and begins with the same values in either direction; the values are
created, exchanged, or added to zero once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
    """An instruction of a function, and what it does."""

    f: Function
    instr: Instr

    @cached_property
    def stmts(self) -> Sequence[Stmt]:
        """Its statements."""
        return lower(self.instr)

    @cached_property
    def changed(self) -> frozenset[int]:
        """The registers that it changes, makes or removes."""
        return frozenset(p.reg for s in self.stmts for p in writes(s))

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


def mirrored(code: Sequence[Step], start: int, without: Collection[int] = ()) -> int | None:
    """Where code ends that begins by making a register and is retraced; None if there is none.

    Positions `without` are left out of account.
    """
    if code[start].instr.op not in MAKES:
        return None
    undo = invert_instr(code[start].instr)
    for end in range(start + 1, len(code)):
        if code[end].instr == undo:
            kept = [pc for pc in range(start, end + 1) if pc not in without]
            if _is_own_inverse(code, kept) and _is_retraced([code[pc] for pc in kept]):
                return end
    return None


def retraced(f: Function, asked: Collection[int], finite: bool = True) -> frozenset[int]:
    """Those of some frees whose registers hold to the bit what they are freed with.

    Code that makes the register is undone by what follows, whatever else is done in between to
    registers on which it does not depend.  With `finite` that is so of finite numbers: an infinity
    that is added to zero and taken away leaves NaN.
    """
    code = [Step(f, instr) for instr in f.code]
    changes: dict[int, list[int]] = {}
    for pc, step in enumerate(code):
        for reg in step.changed:
            changes.setdefault(reg, []).append(pc)
    found: set[int] = set()
    for end in sorted(asked, reverse=True):
        if end not in found:
            (reg,) = code[end].changed
            found.update(_retraced(code, end, changes[reg], finite))
    return frozenset(found.intersection(asked))


def _retraced(
    code: Sequence[Step], end: int, changes: Sequence[int], finite: bool
) -> Iterator[int]:
    """The frees in the second half of the code that a free ends, if that is retraced.

    `changes` are all changes of the register that is freed.
    """
    undo = invert_instr(code[end].instr)
    start = next((pc for pc in reversed(changes) if pc < end and code[pc].instr == undo), None)
    if start is None:
        return
    if not _keeps_bits([code[pc] for pc in changes if start <= pc <= end], finite):
        return
    own = _depended_on(code[start : end + 1], code[end].changed)
    kept = [
        pc
        for pc in range(start, end + 1)
        if code[pc].instr.op in JUMPS or not own.isdisjoint(code[pc].changed)
    ]
    steps = [code[pc] for pc in kept]
    if (
        all(isinstance(s, ABLE) for step in steps for s in step.stmts)
        and _is_own_inverse(code, kept)
        and _is_retraced(steps, finite)
    ):
        yield from (pc for pc in kept[len(kept) // 2 :] if code[pc].instr.op == "free")


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


def _depended_on(code: Sequence[Step], regs: frozenset[int]) -> frozenset[int]:
    """The registers that code changes and on which the values of some depend.

    Lengths change only where an array is made again.
    """
    changed = frozenset().union(*(step.changed for step in code))
    made = frozenset().union(*(step.changed for step in code if step.instr.op in (*MAKES, *ENDS)))
    while True:
        more = regs.union(
            *(
                step.changed | (step.read & changed) | (step.known & made)
                for step in code
                if step.instr.op in JUMPS or not regs.isdisjoint(step.changed)
            )
        )
        if more == regs:
            return regs
        regs = more


def _is_own_inverse(code: Sequence[Step], kept: Sequence[int]) -> bool:
    """Whether the instructions at some positions, from the last on, are what undoes them."""
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


def _is_retraced(steps: Sequence[Step], finite: bool = True) -> bool:
    """Whether code that is its own inverse changes registers of its own only, each bit by bit."""
    live: set[int] = set()
    zero: set[int] = set()
    made: dict[int, Step] = {}
    half = len(steps) // 2
    for k, step in enumerate(steps):
        instr, changed = step.instr, step.changed
        if instr.op in ENDS and k < half and not (step.is_exact or _is_certain(step, made)):
            # What is freed within rounding is made again with other bits.
            return False
        made = {
            reg: one
            for reg, one in made.items()
            if reg not in changed and one.known.isdisjoint(changed)
        }
        if instr.op in MAKES:
            made |= dict.fromkeys(changed, step)
            live |= changed
            zero |= changed if _is_zero(step.stmts[0]) else set()
            continue
        if not changed <= live:
            return False
        if instr.op in ENDS:
            live -= changed
        elif not step.is_exact and k < half:
            adds = finite and step.adds and changed <= zero
            if not (adds or all(map(only_exchanges, step.stmts))):
                return False
        zero -= changed
        if instr.op in JUMPS:
            zero.clear()
    return not live


def _is_certain(end: Step, made: Mapping[int, Step]) -> bool:
    """Whether a register holds a constant, or still the value with which it was made."""
    if len(end.instr.args) < 2 or isinstance(end.instr.args[1], Const):
        return True
    return all(reg in made and invert_instr(made[reg].instr) == end.instr for reg in end.changed)


def _is_zero(s: Stmt) -> bool:
    match s:
        case Alloc(_, None | Const(0)):
            return True
    return False
