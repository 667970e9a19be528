"""Proofs that one opcode undoes another: by form, by algebra, or by trials on numbers of all sizes.

Bodies of updates, exchanges and conditions are inverse by their form.  New values given as formulas
are composed with those of the inverse.  On exact types the result must be *proved* to be the old
value, since trials could miss a silent loss: as polynomials modulo 2^n, or, for functions affine
over single bits, on a basis.  On floats, where restoring is subject to rounding, formulas are tried
over the whole range.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Any, cast

from rvm.expr import Apply, Const, Expr, Formal, Place, substitute
from rvm.faults import DefinitionError
from rvm.isa.rows import OpRow, angle_type
from rvm.isa.rules import CLASSES, TypeFault
from rvm.isa.trials import Undecided, is_restored, starts, there_and_back
from rvm.isa.typing import typed
from rvm.numbers import system
from rvm.stmt import Exchange, Map, Stmt, Update, When, invert
from rvm.types import BOOL, F64, I64, SCALARS, Scalar, ValueType, elem_of

MAX_CASES = 6
"""The largest number of conditions whose outcomes are distinguished."""
TAKEN_BACK = {
    fn: other
    for pair in (("rotl", "rotr"), ("odd_product", "odd_quotient"))
    for fn, other in (pair, pair[::-1])
}
"""Pairs of inverse functions of integers, for equal second arguments."""
UPDATES = {"add": ("+", "-"), "mul": ("*", "/"), "xor": ("^", "^")}
"""The updates that a number system may have: operation and inverse."""
TYPES = 'name the types that both are for: @opcode(types="inexact", …)'
HINT = "name the opcode that does: @opcode(inverse=…)"


def prove_inverse(row: OpRow, partner: OpRow, *types: Scalar) -> None:
    """Raise DefinitionError D006 unless `partner` undoes `row` and `row` undoes `partner`.

    `types` are the operand types to consider, by default all of the opcode's class.
    """
    if [(o.mode, o.kind) for o in row.operands] != [(o.mode, o.kind) for o in partner.operands]:
        raise DefinitionError("D006", f"`{partner.name}` takes other operands than `{row.name}`")
    undoes, undone = ((r.inverse, r.exact_inverse) for r in (row, partner))
    if partner.name not in undoes or row.name not in undone:
        raise DefinitionError(
            "D006",
            f"`{row.name}` is to be undone by `{row.inverse}`, `{partner.name}` by "
            f"`{partner.inverse}`: they are not a pair",
        )
    if not types:
        own, its = (
            [t for t in SCALARS.values() if CLASSES[r.types](t) and r.inverse_on(t) == s.name]
            for r, s in ((row, partner), (partner, row))
        )
        if own != its:
            raise DefinitionError(
                "D006",
                f"`{partner.name}` takes other types of numbers than `{row.name}`",
                hint=TYPES,
            )
        types = tuple(own)
    opposite = tuple(invert(s) for s in reversed(row.body)) == partner.body
    tried = False
    for t in types:
        if opposite and row.body_on(t) is row.body and _undone_by_form(row, t):
            tried = True
            continue
        try:
            forth = _composed(row.body_on(t), _places(row, t))
        except TypeFault:
            continue  # a program that used it on this type would not be typed either
        try:
            back = _composed(partner.body_on(t), _places(row, t))
        except TypeFault as fault:
            raise DefinitionError(
                "D006",
                f"`{row.name}` works on {t}, and `{partner.name}`, which is to undo it, does not",
                notes=(fault.message,),
                hint=TYPES,
            ) from None
        tried = True
        for one, two, there, again in ((row, partner, forth, back), (partner, row, back, forth)):
            if not (t.is_exact and _proved(one, two, t, there, again)):
                _try(one, two, t, there, again)
    if not tried:
        raise DefinitionError("D006", f"`{row.name}` has no type that it could be tried on")


def _undone_by_form(row: OpRow, t: Scalar) -> bool:
    """Whether a body consists of exchanges and of updates that its types undo."""
    operands, todo = _operand_types(row, t), list(row.body)
    while todo:
        match todo.pop():
            case Map():
                return False
            case Update(dst, op, _):
                updates = system(operands[_index(dst)]).updates
                if not any(op in UPDATES[update] for update in updates):
                    return False
            case When(_, body):
                todo += body
    return True


def _index(place: Place) -> int:
    return cast(Formal, place).index


def _operand_types(row: OpRow, t: Scalar) -> list[Scalar]:
    named = {"T": t, "angle": angle_type(t), "bool": BOOL, "int": I64, "i64": I64}
    return [named.get(o.kind, F64) for o in row.operands]


def _places(row: OpRow, t: Scalar) -> tuple[Place, ...]:
    return tuple(Place(k, (), o) for k, o in enumerate(_operand_types(row, t)))


# ------------------------------------------------------------ algebra


def _proved(
    row: OpRow, partner: OpRow, t: Scalar, there: Sequence[Expr], again: Sequence[Expr]
) -> bool:
    """Whether one followed by the other is proved to be the identity on an exact type."""
    state = _composed(partner.body_on(t), there)
    wanted = [(k, e) for k, e in enumerate(state) if row.operands[k].mode == "mut"]
    if _same_polynomials(wanted, t):
        return True
    bitwise = all(_bitwise(e) for _, e in wanted)
    return bitwise and _identity_on_a_basis(_operand_types(row, t), there, again)


def _composed(body: Sequence[Stmt], start: Sequence[Expr]) -> list[Expr]:
    """The operands' values after some statements, as typed formulas; or TypeFault."""
    state = list(start)

    def formula(node: Expr, t: ValueType | None) -> Expr:
        return typed(substitute(node, tuple(state)), elem_of(t or F64))

    for stmt in body:
        match stmt:
            case Update(dst, op, v):
                k = _index(dst)
                state[k] = formula(Apply(op, (dst, v)), state[k].type)
            case Exchange(a, b):
                i, j = _index(a), _index(b)
                state[i], state[j] = state[j], state[i]
            case Map(dsts, values, _):
                pairs = zip(dsts, values, strict=True)
                new = {_index(d): formula(v, state[_index(d)].type) for d, v in pairs}
                state = [new.get(k, old) for k, old in enumerate(state)]
            case When(cond, inner):
                c, inside = formula(cond, BOOL), _composed(inner, state)
                state = [
                    old if new is old else typed(Apply("select", (c, new, old)), elem_of(old.type))
                    for new, old in zip(inside, state, strict=True)
                    if old.type is not None
                ]
    return state


Polynomial = frozenset[tuple[tuple[Any, ...], int]]
"""Monomials (sorted tuples of atoms) with their coefficients modulo 2^n, none of them 0."""


class _Algebra:
    """Normal forms of expressions over one exact type, for given outcomes of conditions."""

    def __init__(self, t: Scalar) -> None:
        self.bits = t.bits
        self.type = t
        self.outcomes: dict[Any, bool] = {}

    def sum(self, a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
        out = dict(a)
        for m, c in b:
            out[m] = (out.get(m, 0) + factor * c) % (1 << self.bits)
        return frozenset((m, c) for m, c in out.items() if c)

    def constant(self, value: int) -> Polynomial:
        return self.sum(frozenset(), frozenset({((), value)}))

    def atom(self, *key: Any) -> Polynomial:
        return frozenset({((key,), 1)})

    def product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        out: Polynomial = frozenset()
        for (m, c), (n, d) in product(a, b):
            both = tuple(sorted((*m, *n), key=repr))
            out = self.sum(out, frozenset({(both, c * d)}))
        return out

    def form(self, node: Expr) -> Polynomial:
        match node:
            case Place(reg, ()):
                return self.atom("operand", reg)
            case Apply("select", (cond, a, b)):
                return self.form(a if self.outcome(cond) else b)
            case Apply("turned", (a, cond)):
                return self.sum(frozenset(), self.form(a), -1 if self.outcome(cond) else 1)
            case Apply(fn, args):
                forms = [self.form(a) for a in args]
                if fn in TAKEN_BACK and node.type == self.type:
                    return self.taken_back(fn, *forms)
                # What has another type is another function, and does not compute modulo 2^n.
                return self.apply(fn, forms) if self.own(node) else self.atom(fn, node.type, *forms)
            case Const(bool(v) | int(v)) if self.own(node) and (not self.type.is_fixed or not v):
                return self.constant(int(v))
            case _:
                return self.atom(repr(node))

    def own(self, node: Expr) -> bool:
        return node.type == self.type and all(
            a.type == self.type for a in (node.args if isinstance(node, Apply) else ())
        )

    def outcome(self, cond: Expr) -> bool:
        if isinstance(cond, Apply) and cond.fn == "not":
            return not self.outcome(cond.args[0])
        if isinstance(cond, Const):
            return bool(cond.value)
        return self.outcomes.setdefault(self.form(cond), True)

    def apply(self, fn: str, args: list[Polynomial]) -> Polynomial:
        integers = self.type.is_integer
        match fn, args:
            case (("+" | "checked_add"), [a, b]) if not self.type.is_bool:
                return self.sum(a, b)
            case (("-" | "checked_sub"), [a, b]) if not self.type.is_bool:
                return self.sum(a, b, -1)
            case "neg", [a] if not self.type.is_bool:
                return self.sum(frozenset(), a, -1)
            case "~", [a] if integers:
                return self.sum(self.constant(-1), a, -1)
            case (("~" | "not"), [a]) if self.type.is_bool:
                return self.sum(self.constant(1), a)
            case "^", [a, b] if self.type.is_bool:
                return self.sum(a, b)
            case "*", [a, b] if integers:
                return self.product(a, b)
        return self.atom(fn, *args)

    def taken_back(self, fn: str, a: Polynomial, k: Polynomial) -> Polynomial:
        """The inverse in `a` of a function of a pair, for the same `k`."""
        other = TAKEN_BACK[fn]
        for monomial, c in a:
            if len(a) == 1 and c == 1 and len(monomial) == 1:
                name, *rest = monomial[0]
                if name == other and rest[1] == k:
                    return cast(Polynomial, rest[0])
        return self.atom(fn, a, k)


def _same_polynomials(wanted: list[tuple[int, Expr]], t: Scalar) -> bool:
    """Whether each expression equals the operand of its number for all outcomes of conditions."""
    todo: list[dict[Any, bool]] = [{}]
    cases = 0
    while todo:
        algebra = _Algebra(t)
        algebra.outcomes = dict(known := todo.pop())
        cases += 1
        if cases > 1 << MAX_CASES:
            return False
        for k, node in wanted:
            if algebra.form(node) != algebra.atom("operand", k):
                return False
        new = [key for key in algebra.outcomes if key not in known]
        for n, key in enumerate(new):
            todo.append({**known, **dict.fromkeys(new[:n], True), key: False})
    return True


def _bitwise(node: Expr) -> bool:
    """Whether each bit of a value is a constant plus a sum modulo 2 of operand bits."""
    match node:
        case Place() | Const():
            return True
        case Apply("&" | "|" | "<<" | ">>" | "rotl" | "rotr" as fn, (a, b)):
            masks = fn in ("&", "|") and isinstance(a, Const)
            return (isinstance(b, Const) and _bitwise(a)) or (masks and _bitwise(b))
        case Apply("^" | "~", args):
            return all(map(_bitwise, args))
    return False


def _identity_on_a_basis(
    types: Sequence[Scalar], there: Sequence[Expr], again: Sequence[Expr]
) -> bool:
    """Whether operands with at most one bit set are restored; then all operands are."""
    if any(not (o.is_integer or o.is_bool) for o in types):
        return False
    zeros: list[Any] = [system(o).zero for o in types]
    cases = [zeros]
    for k, o in enumerate(types):
        for bit in range(o.bits):
            one = -(1 << bit) if o.is_signed and bit == o.bits - 1 else 1 << bit
            cases.append([*zeros[:k], True if o.is_bool else one, *zeros[k + 1 :]])
    return all(there_and_back(there, again, one)[1] == one for one in cases)


# ------------------------------------------------------------ trials


def _try(
    row: OpRow, partner: OpRow, t: Scalar, there: Sequence[Expr], again: Sequence[Expr]
) -> None:
    """Raise DefinitionError D006: for a counterexample, or on an exact type for lack of a proof."""
    types = _operand_types(row, t)
    conclusive = 0
    for start in starts(random.Random(row.name), types, (*there, *again)):
        try:
            middle, end = there_and_back(there, again, start)
        except Undecided:
            continue
        conclusive += 1
        if not is_restored(t, there, again, start, middle, end):
            raise DefinitionError(
                "D006",
                f"`{partner.name}` does not undo `{row.name}`",
                values={
                    "type": str(t),
                    **{o.name: v for o, v in zip(row.operands, start, strict=True)},
                },
                hint=HINT,
            )
    if t.is_exact:
        raise DefinitionError(
            "D006",
            f"that `{partner.name}` undoes `{row.name}` can't be proved on {t}",
            notes=("it came back where it was tried, which on exact types is not enough",),
            hint="write it in updates (`a += …`), `exchange` and `when`, which are undone by "
            'their form, or keep it to floats: types="inexact"',
        )
    if not conclusive:
        raise DefinitionError("D006", f"no number of type {t} goes through `{row.name}` and back")
