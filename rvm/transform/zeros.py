"""Adjoints that are always zero on the way back, whatever the inputs.

An ancilla's adjoint begins as zero where the ancilla was freed, and stays zero until a contribution
that is not zero is added: while a function undoes its uncomputation, the loss does not depend on
its values.  Such an adjoint contributes nothing, and its terms need not be computed on the way
back.

This is a data-flow analysis of a function from its end to its beginning, the direction of the
adjoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rvm.expr import Expr, Place, places
from rvm.isa import OPCODES, lower
from rvm.isa.machine_ops import ENDS, MAKES
from rvm.program import Function, Instr
from rvm.stmt import Exchange, Map, Stmt, Update, When

Changed = Mapping[str, frozenset[int]]
"""For each function the parameters that it may change."""


def zeros(f: Function, carrying: Iterable[int], changed: Changed) -> list[frozenset[int]]:
    """For each instruction the registers whose adjoints are zero when it is to be undone.

    `carrying` are the registers that have adjoints.
    """
    everything = frozenset(carrying)
    n = len(f.code)
    known = [everything] * n + [frozenset[int]()]
    settled = False
    while not settled:
        settled = True
        for pc in reversed(range(n)):
            instr = f.code[pc]
            before = _undone(instr, known[pc + 1], everything, changed)
            if instr.op == "br":
                before &= known[instr.aux + 1]
            if before != known[pc]:
                known[pc] = before
                settled = False
    return known[1:]


def passes_nothing(
    call: Instr, zero: frozenset[int], carrying: frozenset[int], changed: Changed
) -> bool:
    """Whether no adjoint passes through a call: those of all that it may change are zero."""
    args = (call.args[k] for k in changed[call.symbol])
    return _read(args) & carrying <= zero


def _undone(
    instr: Instr, zero: frozenset[int], carrying: frozenset[int], changed: Changed
) -> frozenset[int]:
    """The adjoints that are zero before an instruction, from those that are zero after it."""
    if instr.op in ENDS:
        # Its adjoint begins, as zero; what the value reads gains nothing from that.
        return zero | {_register(instr.args[0])} & carrying
    if instr.op in MAKES:
        x = _register(instr.args[0])
        return (zero if x in zero else zero - _read(instr.args[1:])) - {x}
    if instr.op in ("call", "uncall"):
        nothing = passes_nothing(instr, zero, carrying, changed)
        return zero if nothing else zero - _read(instr.args)
    if instr.op in ("push", "pop"):
        return zero if _read(instr.args) <= zero else zero - _read(instr.args)
    if not OPCODES[instr.op].is_data:
        return zero
    for stmt in reversed(lower(instr)):
        zero = _passed(stmt, zero)
    return zero


def _passed(stmt: Stmt, zero: frozenset[int]) -> frozenset[int]:
    """The adjoints that are zero before a data statement."""
    match stmt:
        case Update(Place(reg), _, value):
            return zero if reg in zero else zero - _read((value,))
        case Exchange(Place(a), Place(b)):
            return zero if {a, b} <= zero else zero - {a, b}
        case Map(dsts, values):
            changed = {d.reg for d in dsts}
            return zero if changed <= zero else zero - changed - _read(values)
        case When(_, body):
            for inner in reversed(body):
                zero = _passed(inner, zero)
            return zero
        case _:
            return frozenset()


def _register(place: Expr) -> int:
    assert isinstance(place, Place)
    return place.reg


def _read(nodes: Iterable[Expr]) -> frozenset[int]:
    """The registers of all places in some expressions."""
    return frozenset(p.reg for node in nodes for p in places(node))


__all__ = ["passes_nothing", "zeros"]
