"""The rules of tangents: the derivatives of the function table in forward mode.

For arguments with tangents, `tangent_of` gives the tangent of the result: the sum of each partial
derivative times its argument's tangent.  Array functions are linear in each argument or have a
special rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rvm.expr import Apply, Const, Expr, walk
from rvm.faults import DefinitionError
from rvm.isa.derivatives import adjoint_type, in_field, pole_of, product
from rvm.isa.functions.conversions import conversion_target
from rvm.isa.functions.formulas import conj, elem, fn, rank, safe_divisor
from rvm.isa.functions.logs import LOG_PARTIALS
from rvm.isa.rows import FUNCTIONS
from rvm.isa.simplify import simplify
from rvm.isa.typing import apply, typed
from rvm.types import F64, Scalar, elem_of

Tangents = tuple[Expr | None, ...]
Rule = Callable[[tuple[Expr, ...], Tangents], list[Expr]]
"""From arguments and their tangents (None: zero) to the terms of the result's tangent."""


def tangent_of(name: str, args: tuple[Expr, ...], dots: Tangents) -> Expr | None:
    """The typed tangent of `name(*args)`; None if it is zero.

    The tangent of a number has its adjoint's type.  DefinitionError D011 where there is no rule.
    """
    result = apply(name, *args)
    t = adjoint_type(_elem(result))
    if t is None or all(d is None for d in dots) or FUNCTIONS[name].steps:
        return None
    terms = _terms(name, args, dots, _elem(result))
    if not terms:
        return None
    total = typed(terms[0], t)
    for term in terms[1:]:
        total = apply("+", total, typed(term, t))
    if _elem(total) != t:
        total = apply("real" if _elem(total).is_complex else str(t), total)
    if rank(total) > rank(result):
        total = apply("sum", total)  # The products of a reduction of logarithms.
    elif not _fills(total, name, args, dots, rank(result)):
        total = apply("spread_like", total, result)
    return simplify(total)


def _fills(total: Expr, name: str, args: tuple[Expr, ...], dots: Tangents, axes: int) -> bool:
    """Whether a sum of terms has the shape of the result.

    An argument of which no term depends may be longer than the others along an axis.
    """
    if rank(total) < axes:
        return False
    arrays = [k for k, a in enumerate(args) if rank(a)]
    if len(arrays) < 2 or not FUNCTIONS[name].is_elementwise:
        return True
    parts = set(walk(total))
    return all(args[k] in parts or dots[k] in parts for k in arrays)


def choice_of(name: str, condition: Expr, arms: tuple[Expr, ...], dots: Tangents) -> Expr | None:
    """The tangent of a lazy choice, from those of its alternatives; None if it is zero."""
    t = adjoint_type(_elem(arms[0]))
    if t is None or all(d is None for d in dots):
        return None
    pairs = zip(arms, dots, strict=True)
    return apply(name, condition, *(zero_like(a, t) if d is None else d for a, d in pairs))


def zero_like(x: Expr, t: Scalar) -> Expr:
    """Zero of a type, in the shape of an expression."""
    zero = typed(Const(0), t)
    return apply("spread_like", zero, x) if rank(x) else zero


def _elem(x: Expr) -> Scalar:
    t = elem(x)
    assert t is not None, "tangents are taken of typed expressions"
    return t


def _terms(name: str, args: tuple[Expr, ...], dots: Tangents, result: Scalar) -> list[Expr]:
    name = FUNCTIONS[name].stated or name
    if result.is_log or any(_elem(a).is_log for a in args):
        rule = LOG_PARTIALS.get(name)
        if rule is not None:
            return _products(rule(*map(in_field, args)), dots)
    elif conversion_target(name) is not None:
        return [d for d in dots if d is not None]
    plain = tuple(map(in_field, args))
    row = FUNCTIONS[name]
    wide = any(_elem(a).is_complex for a in args)
    own = _linear(name) if row.linear else RULES.get(name) or (COMPLEX.get(name) if wide else None)
    if own is not None:
        return own(plain, dots)
    if row.partials is not None:
        return _products(row.partials(*plain), dots, pole_of(row, plain))
    raise DefinitionError("D011", f"`{name}` has no derivative")


def _products(partials: Tangents, dots: Tangents, pole: Expr | None = None) -> list[Expr]:
    out: list[Expr] = []
    for p, d in zip(partials, dots, strict=True):
        if p is not None and d is not None:
            # The tangent first, as adjoints are: what divides the partial then divides that.
            out.append(product(d, typed(p, elem_of(d.type or F64)), pole))
    return out


def _linear(name: str) -> Rule:
    """The rule of a function linear in its first argument; others are indices and shapes."""

    def rule(args: tuple[Expr, ...], dots: Tangents) -> list[Expr]:
        return [] if dots[0] is None else [fn(name, dots[0], *args[1:])]

    return rule


def _bilinear(name: str) -> Rule:
    def rule(args: tuple[Expr, ...], dots: Tangents) -> list[Expr]:
        out: list[Expr] = []
        if dots[0] is not None:
            out.append(fn(name, dots[0], args[1]))
        if dots[1] is not None:
            out.append(fn(name, args[0], dots[1]))
        return out

    return rule


def _by_one(f: Callable[[Expr, Expr], Expr]) -> Rule:
    """A rule for one argument, from it and its tangent."""

    def rule(args: tuple[Expr, ...], dots: Tangents) -> list[Expr]:
        return [] if dots[0] is None else [f(args[0], dots[0])]

    return rule


def _prod_others_1(args: tuple[Expr, ...], dots: Tangents) -> list[Expr]:
    x, d = args
    out: list[Expr] = []
    if dots[0] is not None:
        out.append(fn("prod_others_2", x, d, dots[0]))
    if dots[1] is not None:
        out.append(fn("prod_others_1", x, dots[1]))
    return out


def _quotient(args: tuple[Expr, ...], dots: Tangents) -> list[Expr]:
    """Divided last: what is too large for a number before that is so after it."""
    x, y = args
    top = dots[0]
    if dots[1] is not None:
        lost = fn("/", x, y) * dots[1]
        top = -lost if top is None else top - lost
    return [] if top is None else [top / y]


def _complex(args: tuple[Expr, ...], dots: Tangents) -> list[Expr]:
    out: list[Expr] = []
    if dots[0] is not None:
        out.append(fn("c128", dots[0]))
    if dots[1] is not None:
        out.append(fn("c128", dots[1]) * 1j)
    return out


RULES: Mapping[str, Rule] = {
    **{n: _bilinear(n) for n in ("dot", "matvec", "matmul", "@", "outer")},
    "prod": _by_one(lambda x, d: fn("sum", fn("prod_others", x) * d)),
    "amin": _by_one(lambda x, d: fn("sum", fn("last_min", x) * d)),
    "amax": _by_one(lambda x, d: fn("sum", fn("first_max", x) * d)),
    "prod_others": _by_one(lambda x, d: fn("prod_others_1", x, d)),
    "prod_others_1": _prod_others_1,
    "/": _quotient,
    "complex": _complex,
    "angle": _by_one(lambda z, d: fn("imag", d / z)),
}
"""Functions whose tangent is not a sum of partials times tangents."""
COMPLEX: Mapping[str, Rule] = {
    "abs": _by_one(lambda z, d: fn("real", conj(z) * d) / safe_divisor(fn("abs", z))),
    "abs2": _by_one(lambda z, d: 2.0 * fn("real", conj(z) * d)),
}
"""Those of which that is so where they are of complex numbers."""


def tangent(node: Expr, dot: Callable[[Expr], Expr | None]) -> Expr | None:
    """The tangent of a typed expression, where `dot` gives that of a place; None if it is zero."""
    if not isinstance(node, Apply):
        return dot(node)
    dots = tuple(tangent(a, dot) for a in node.args)
    if FUNCTIONS[node.fn].lazy:
        return choice_of(node.fn, node.args[0], node.args[1:], dots[1:])
    return tangent_of(node.fn, node.args, dots)
