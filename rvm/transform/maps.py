"""Derivatives of opcodes that compute new values from old ones: a rotation, a negation.

Tangents are multiplied by the Jacobian, adjoints by its transpose. For a linear opcode this is
often an opcode of the table (for a rotation, the inverse rotation), which trials find; for
others a derived opcode is added.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from typing import Any, cast

from rvm.expr import Apply, Const, Expr, Formal, Place, places, rebuild, walk
from rvm.faults import DefinitionError
from rvm.isa import FUNCTIONS, OPCODES, apply, lower, typed
from rvm.isa.derivatives import adjoint_type
from rvm.isa.lower import linked_body
from rvm.isa.proof import prove_inverse
from rvm.isa.rows import Operand, OpRow, add_opcode, angle_type
from rvm.isa.tangents import tangent
from rvm.isa.trials import Undecided, evaluated, starts, tolerance
from rvm.program import Instr
from rvm.stmt import Map
from rvm.transform.adjoint import contributions
from rvm.types import BOOL, I64, Scalar, elem_of

FEW = 4
"""On so many numbers opcodes of the table are tried."""


@cache
def adjoint_map(row: OpRow, t: Scalar) -> tuple[str, bool]:
    """The opcode that propagates adjoints back through `row` on operands of type `t`.

    It has the operands of `row`, with adjoints instead of the values that `row` changes; if the
    second result is true, the initial values of `row` follow.  DefinitionError D012 if the opcode
    mixes numbers with adjoints of another type.
    """
    bar = adjoint_type(t)
    assert bar is not None
    _refuse_mixed(row, t, bar)
    for name in dict.fromkeys((row.inverse, row.name)):
        if _agree(row, OPCODES[name], bar, _transposed(row, bar)):
            return name, False
    return _derived(row, bar, "_adjoint", "Adjoints go back through", _transposed), True


@cache
def tangent_map(row: OpRow, t: Scalar) -> tuple[str, bool]:
    """The opcode that propagates tangents forwards through `row` on operands of type `t`.

    As in `adjoint_map`: the operands of `row`, with tangents instead of the values that it changes,
    then the old values if the second result is true.
    """
    bar = adjoint_type(t)
    assert bar is not None
    _refuse_mixed(row, t, bar)
    if _agree(row, row, bar, _pushed(row, bar)):
        return row.name, False
    return _derived(row, bar, "_tangent", "Tangents go through", _pushed), True


def _refuse_mixed(row: OpRow, t: Scalar, bar: Scalar) -> None:
    """Refuse an opcode whose map in the field of the duals differs from that on numbers.

    One that has a separate definition for exact types has the same meaning on all.
    """
    if row.exact:
        return
    if bar != t and any(o.mode == "use" and o.kind in ("T", "angle") for o in row.operands):
        raise DefinitionError(
            "D012", f"`{row.name}` has no derivative on {t}, whose derivatives are {bar}"
        )


def _operands(row: OpRow, t: Scalar) -> tuple[Place, ...]:
    named = {"T": t, "angle": angle_type(t), "bool": BOOL, "int": I64, "i64": I64}
    return tuple(Place(k, (), named.get(o.kind, t)) for k, o in enumerate(row.operands))


def _bars(row: OpRow, t: Scalar) -> dict[int, Place]:
    """For each operand that changes, a place for its adjoint."""
    n = len(row.operands)
    return {k: Place(n + k, (), t) for k, o in enumerate(row.operands) if o.mode == "mut"}


def _transposed(row: OpRow, t: Scalar) -> list[Expr]:
    """The adjoints of the old values, over the old values and the adjoints of the new."""
    bars = _bars(row, t)
    stmt = cast(Map, lower(Instr(row.name, _operands(row, t)))[0])
    terms: dict[Place, list[Expr]] = {d: [] for d in stmt.dsts}
    for dst, new in zip(stmt.dsts, stmt.values, strict=True):
        for read, gain in contributions(new, bars[dst.reg]):
            if read in terms:
                terms[read].append(gain)
    zero = typed(Const(0), t)
    return [_sum(terms[d]) if terms[d] else zero for d in stmt.dsts]


def _sum(parts: list[Expr]) -> Expr:
    total = parts[0]
    for part in parts[1:]:
        total = apply("+", total, part)
    return total


def _pushed(row: OpRow, t: Scalar) -> list[Expr]:
    """The tangents of the new values, over the old values and their tangents."""
    bars = _bars(row, t)
    stmt = cast(Map, lower(Instr(row.name, _operands(row, t)))[0])

    def dot(node: Expr) -> Expr | None:
        return bars.get(node.reg) if isinstance(node, Place) else None

    zero = typed(Const(0), t)
    found = [tangent(v, dot) for v in stmt.values]
    return [zero if f is None else f for f in found]


def _agree(row: OpRow, other: OpRow, t: Scalar, want: list[Expr]) -> bool:
    """Whether `other`, on duals, computes the wanted formulas.

    Only if both are linear, with the same coefficients for all values: then it is enough to try
    each dual alone, in which the smallest coefficient shows.  The tests try the table's own opcodes
    on all numbers; here it would take longer than most gradients.
    """
    bars, held = _bars(row, t), _operands(row, t)
    operands = tuple(bars.get(k, p) for k, p in enumerate(held))
    made = cast(Map, lower(Instr(other.name, operands))[0]).values
    changing = {held[k] for k in bars}
    if any(p in changing for e in (*want, *_pushed(other, t)) for p in places(e)):
        return False
    if any(isinstance(n, Apply) and FUNCTIONS[n.fn].steps for e in made for n in walk(e)):
        return False
    ones = (1.0, 1j) if t.is_complex else (1.0,)
    zeros = dict.fromkeys((p.reg for p in bars.values()), 0j if t.is_complex else 0.0)
    duals = [zeros, *(zeros | {reg: one} for reg in zeros for one in ones)]
    tried = 0
    every = starts(random.Random(row.name), [elem_of(p.type or I64) for p in held], want)
    for start in every if row.module else islice(every, FEW):
        for dual in duals:
            state: Any = dict(enumerate(start)) | dual
            try:
                pairs = list(zip(evaluated(want, state), evaluated(made, state), strict=True))
            except Undecided:
                continue
            tried += 1
            if any(abs(a - b) > tolerance(t) * max(abs(a), abs(b)) for a, b in pairs):
                return False
    return tried > 0


def _derived(
    row: OpRow, t: Scalar, suffix: str, doc: str, jacobian: Callable[[OpRow, Scalar], list[Expr]]
) -> str:
    """An opcode made from the Jacobian itself, and its inverse; returns the first one's name."""
    name = row.name + suffix
    if name in OPCODES:
        return name
    n = len(row.operands)
    muts = [k for k, o in enumerate(row.operands) if o.mode == "mut"]
    operands = (
        *row.operands,
        *(Operand(f"{row.operands[k].name}_value", "use", "T") for k in muts),
    )
    # In the derived opcode, operand k is an adjoint if the opcode changes it.
    slots = {k: Formal(n + j) for j, k in enumerate(muts)}
    values = {k: slots.get(k, Formal(k)) for k in range(n)}
    adjoints = {n + k: Formal(k) for k in muts}
    forth = tuple(_template(e, values | adjoints) for e in jacobian(row, t))
    partner = OPCODES[row.inverse]
    new = {
        k: _template(e, values)
        for k, e in zip(muts, cast(Map, linked_body(row.name)[0]).values, strict=True)
    }
    back = tuple(_template(e, values | new | adjoints) for e in jacobian(partner, t))
    dsts = cast("tuple[Place, ...]", tuple(Formal(k) for k in muts))
    doc = f"{doc} `{row.name}`."
    undo = f"{name}_undo"
    rows = [
        OpRow(name, operands, row.types, (Map(dsts, forth, ()),), undo, doc, row.cost),
        OpRow(undo, operands, row.types, (Map(dsts, back, ()),), name, doc, row.cost),
    ]
    prove_inverse(rows[0], rows[1], t)
    # The one that is looked for comes last: where it is, so is its inverse.
    for made in reversed(rows):
        if made.name not in OPCODES:
            add_opcode(made)
    return name


def _template(node: Expr, formals: Mapping[int, Expr]) -> Expr:
    """A typed formula over places as an untyped one over formals, for operands of any type."""
    match node:
        case Place(reg):
            return formals[reg]
        case Formal(k):
            return formals[k]
        case Const(v):
            return Const(v)
        case Apply(fn, args):
            return Apply(fn, tuple(_template(a, formals) for a in args))
        case _:
            return rebuild(node, lambda child: _template(child, formals))
