"""The rules of adjoints: the only access to the derivatives of the function table.

For a result with the adjoint g, `gains` gives the term that is added to the adjoint of each
argument.  It is derived from the rows' `partials` and `vjp`: conjugated for complex numbers (an
adjoint is dL/dRe + i dL/dIm), its real part for a real argument, summed where an argument was
broadcast, computed in f64 for fixed-point numbers, and in the field of logarithms for log64.
"""

from __future__ import annotations

from rvm.expr import Const, Expr
from rvm.faults import DefinitionError
from rvm.isa.functions.conversions import conversion_target
from rvm.isa.functions.formulas import Partials, conj, elem, rank
from rvm.isa.functions.logs import LOG_PARTIALS
from rvm.isa.rows import FUNCTIONS, FunctionRow
from rvm.isa.typing import apply, typed
from rvm.types import SCALARS, Scalar, elem_of


def adjoint_type(t: Scalar) -> Scalar | None:
    """The type of the adjoint of a number of type `t`; None if it has none.

    The adjoint of a `fixed` is an f64, and so is that of a log64: the derivative with respect to
    its logarithm.
    """
    name = t.row.derivative
    return SCALARS[name] if name else None


def gains(name: str, args: tuple[Expr, ...], g: Expr) -> Partials:
    """The term that each typed argument's adjoint receives, typed;

    None for arguments without adjoint.

    `g` is the typed adjoint of the result.  A term has the argument's adjoint type, and its
    dimensions, or those of `g` where that is broadcast to it.  DefinitionError D011 if the function
    has no derivative although its arguments have adjoints.
    """
    result = apply(name, *args)
    if result.type is None or adjoint_type(elem_of(result.type)) is None:
        return (None,) * len(args)
    wanted = [adjoint_type(_elem(a)) for a in args]
    if not any(wanted):
        return (None,) * len(args)
    raw = _raw_gains(name, args, g, _elem(result))
    return tuple(
        None if r is None or t is None else _fitted(typed(r, t), t, a, len(args))
        for r, t, a in zip(raw, wanted, args, strict=True)
    )


def _elem(x: Expr) -> Scalar:
    t = elem(x)
    assert t is not None, "derivatives are taken of typed expressions"
    return t


def _raw_gains(name: str, args: tuple[Expr, ...], g: Expr, result: Scalar) -> Partials:
    name = FUNCTIONS[name].stated or name
    row = FUNCTIONS[name]
    if result.is_log or any(_elem(a).is_log for a in args):
        rule = LOG_PARTIALS.get(name)
        if rule is not None:
            return _products(g, rule(*map(in_field, args)))
    elif conversion_target(name) is not None:
        return (g,)
    plain = tuple(map(in_field, args))
    holomorphic = row.partials is not None and not (
        row.vjp is not None and any(_elem(a).is_complex for a in args)
    )
    if holomorphic and row.partials is not None:
        return _products(g, row.partials(*plain), pole_of(row, plain))
    if row.vjp is not None:
        return row.vjp(g, *plain)
    if row.steps:
        return (None,) * len(args)
    raise DefinitionError(
        "D011",
        f"`{name}` has no derivative",
        hint="give the function `partials`, or keep its arguments out of the loss",
    )


def in_field(x: Expr) -> Expr:
    """A fixed-point number as an f64, in which its derivatives are computed."""
    return apply("f64", x) if _elem(x).is_fixed else x


def _products(g: Expr, partials: Partials, pole: Expr | None = None) -> Partials:
    out: list[Expr | None] = []
    for p in partials:
        if p is None:
            out.append(None)
            continue
        p = typed(p, _elem(g))
        out.append(g if _is_one(p) else product(g, conj(p), pole))
    return tuple(out)


def pole_of(row: FunctionRow, args: tuple[Expr, ...]) -> Expr | None:
    """The row's `pole` for these arguments; None for complex ones."""
    if row.pole is None or any(_elem(a).is_complex for a in args):
        return None
    return row.pole(*args)


def product(seed: Expr, factor: Expr, pole: Expr | None) -> Expr:
    """An adjoint or tangent times a derivative; 0 times one that merely overflowed is 0."""
    if pole is None:
        return apply("*", seed, factor)
    return apply("scaled", seed, factor, typed(pole, _elem(seed)))


def _is_one(p: Expr) -> bool:
    return isinstance(p, Const) and p.value == 1


def _fitted(gain: Expr, t: Scalar, arg: Expr, arguments: int) -> Expr:
    """A term in the type `t` and the shape of its argument."""
    if _elem(gain).is_complex and not t.is_complex:
        gain = apply("real", gain)
    if _elem(gain) != t:
        gain = apply(str(t), gain)
    if rank(gain) and not rank(arg):
        return apply("sum", gain)
    if rank(gain) > rank(arg) or (rank(gain) and arguments > 1):
        return apply("sum_like", gain, arg)
    return gain


__all__ = ["adjoint_type", "gains", "pole_of", "product"]
