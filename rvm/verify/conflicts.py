"""The alias rules, written once: an instruction must not write what it also reads.

`conflicts` lists the pairs of places of one instruction that the rules keep apart and that are not
provably disjoint.  The verifier refuses those that always overlap; an engine checks at run time
those that may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from rvm.expr import Place, index_reads, reads
from rvm.isa import OPCODES
from rvm.program import Instr
from rvm.stmt import only_exchanges
from rvm.verify.alias import Verdict, View, view, views_overlap

CALLS = ("call", "uncall")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two places of one instruction that must not overlap, and whether they do.

    `code` is A013 (`written` is also read by the value `operand`), A014 (two arguments of a
    call), A015 (finding a place needs what is written) or A016 (two places that are both written).
    """

    code: str
    written: Place
    other: Place
    verdict: Verdict
    operand: int
    """The number of the operand that holds `other`."""
    same_allowed: bool = False
    """Whether the very same place is not a conflict: it would be exchanged with itself."""


def written_operands(instr: Instr, inout: Collection[int] = ()) -> tuple[int, ...]:
    """The operands that are places and are changed; `inout` are those of a callee."""
    if instr.op in CALLS:
        return tuple(k for k, a in enumerate(instr.args) if k in inout and isinstance(a, Place))
    if instr.op not in OPCODES:
        return ()
    args = instr.args
    return tuple([k for k in _changed(instr.op) if k < len(args) and isinstance(args[k], Place)])


@cache
def _changed(op: str) -> tuple[int, ...]:
    """The numbers of the operands that an opcode changes."""
    modes = [o.mode for o in OPCODES[op].operands]
    return tuple(k for k, mode in enumerate(modes) if mode in ("mut", "stack"))


def conflicts(instr: Instr, inout: Collection[int] = ()) -> tuple[Conflict, ...]:
    """The pairs of places that must not overlap and are not proved apart.

    `inout` holds the numbers of the arguments that a callee changes (see `inout_slots`).
    Operands must be typed.  A whole place exchanged with its very self is not a conflict.
    """
    written = written_operands(instr, inout)
    if not written:
        return ()
    return tuple(c for c in _pairs(instr, written, instr.op in CALLS) if c.verdict != "never")


def _pairs(instr: Instr, written: Sequence[int], call: bool) -> Iterator[Conflict]:
    changed = set(written)
    targets = {k: a for k, a in enumerate(instr.args) if k in changed and isinstance(a, Place)}
    wanted = {a.reg for a in targets.values()}
    places: dict[int, list[tuple[int, Place]]] = {reg: [] for reg in wanted}
    read: dict[int, list[tuple[str, int, Place]]] = {reg: [] for reg in wanted}
    for j, arg in enumerate(instr.args):
        if isinstance(arg, Place) and (call or j in changed):
            if arg.reg in wanted:
                places[arg.reg].append((j, arg))
            code, sources = "A015", index_reads(arg)
        else:
            code, sources = "A014" if call else "A013", reads(arg)
        for p in sources:
            if p.reg in wanted:
                read[p.reg].append((code, j, p))
    views: dict[int, View] = {}

    def overlap(a: Place, b: Place) -> Verdict:
        for p in (a, b):
            if id(p) not in views:
                views[id(p)] = view(p)
        return views_overlap(views[id(a)], views[id(b)])

    for k, dst in targets.items():
        for j, other in places[dst.reg]:
            if j == k or (j in changed and j < k):
                continue
            itself = not call and exchanges(instr.op)
            if itself and dst == other:
                continue
            code = "A014" if call else "A016"
            yield Conflict(code, dst, other, overlap(dst, other), j, itself)
        for code, j, p in read[dst.reg]:
            yield Conflict(code, dst, p, overlap(dst, p), j)


@cache
def exchanges(op: str) -> bool:
    """Whether an opcode does nothing but exchange, so that a place may meet itself."""
    row = OPCODES[op]
    return row.is_data and all(map(only_exchanges, row.body))
