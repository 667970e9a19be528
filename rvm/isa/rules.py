"""Typing rules: from the types of a function's arguments to that of its result.

A rule takes the known facts about the arguments (a literal has no type of its own and adapts to its
neighbours, or to the wanted type). It returns the element type that each argument must have, and
the type of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from rvm.expr import Expr
from rvm.numbers import system
from rvm.types import BOOL, C128, F64, I64, TYPES, Scalar, ValueType, fixed, with_rank


class Arg(NamedTuple):
    """Known facts about an argument: element type (None: a literal), rank, a literal's value."""

    elem: Scalar | None
    rank: int = 0
    value: Any = None


class Typing(NamedTuple):
    """The element types of the arguments, and the type of the result."""

    elems: tuple[Scalar, ...]
    result: ValueType


class TypeFault(Exception):
    """An expression without a type; `node` is the expression at fault, `operand` its number."""

    def __init__(
        self,
        message: str,
        node: Expr | None = None,
        *,
        hint: str = "",
        code: str = "A040",
        operand: int = -1,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.hint = hint
        self.code = code
        self.operand = operand


Rule = Callable[[Sequence[Arg], Scalar | None], Typing]

FIXED_RESULT: set[Rule] = set()
"""The rules whose result has a fixed type, independent of context: comparisons, conversions."""
OF_ARRAYS: set[Rule] = set()
"""The rules of functions that are not computed element by element."""
OF_A_SHAPE: set[Rule] = set()
"""The rules of functions that use only the shape of their last argument."""
OF_SCALARS: set[Rule] = set()
"""The rules of functions that take no arrays."""


@cache
def offers(t: Scalar, *names: str) -> bool:
    """Whether the number system of a type has these updates (`add`) and functions (`<`)."""
    return all(map(system(t).offers, names))


def _offering(*names: str) -> Callable[[Scalar], bool]:
    return lambda t: t.name in TYPES and offers(t, *names)


def _of_kind(kind: str) -> Callable[[Scalar], bool]:
    return lambda t: t.name in TYPES and t.row.kind == kind


CLASSES: dict[str, Callable[[Scalar], bool]] = {
    "any": lambda t: True,
    "bool": _offering("not"),
    "int": _offering("add", "<<"),
    "i64": lambda t: t.name == "i64",
    "bits": _offering("xor"),
    "real": _offering("add", "/", "<"),
    "float": _offering("add", "mul", "<"),
    "f64": lambda t: t.name == "f64",
    "field": _offering("add", "/"),
    "inexact": _offering("add", "mul"),
    "number": _offering("add"),
    "value": _offering("+"),
    "ordered": _offering("<"),
    "scale": _offering("add", "<"),
    "exact": lambda t: t.name in TYPES and t.is_exact,
    "log": _of_kind("log"),
    "complex": _of_kind("complex"),
    "multiplies": _offering("mul"),
    "multiplied": lambda t: CLASSES["multiplies"](t) or CLASSES["int"](t),
    "analytic": _offering("/"),
    "signed": _offering("shear"),
    "rotated": lambda t: CLASSES["inexact"](t) or CLASSES["signed"](t),
}
"""Named classes of element types, for rules and opcodes, each with its membership conditions."""


def default_type(value: Any) -> Scalar:
    """The type of a literal if the context does not determine it."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return I64
    return C128 if isinstance(value, complex) else F64


def widest_default(args: Sequence[Arg]) -> Scalar:
    """The common type of several literals if the context does not determine it."""
    order = (BOOL, I64, F64, C128)
    return max((default_type(a.value) for a in args), key=order.index)


def unify(args: Sequence[Arg], want: Scalar | None) -> Scalar:
    """The common element type of all `args`; TypeFault if they differ."""
    known = [a.elem for a in args if a.elem is not None]
    if not known:
        return want or widest_default(args)
    if any(t != known[0] for t in known):
        other = next(t for t in known if t != known[0])
        raise TypeFault(
            f"the operands have the types {known[0]} and {other}",
            hint=f"convert one of them: `{other.name}(…)` or `{known[0].name}(…)`",
        )
    return known[0]


COMPARE = "compare it: `… != 0`"
"""The hint where a number is given for a condition."""


def demand(t: Scalar, cls: str) -> Scalar:
    """`t` if it belongs to the class; TypeFault otherwise."""
    if not CLASSES[cls](t):
        hint = "convert it: `f64(…)`" if t.is_integer and CLASSES[cls](F64) else ""
        hint = COMPARE if cls == "bool" else hint
        raise TypeFault(f"does not take a value of type {t}", hint=hint)
    return t


def elementwise(cls: str, result: Scalar | None = None) -> Rule:
    """All arguments have one type in `cls`, broadcast; so has the result unless one is named."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        if cls == "bool":
            for a in args:
                demand(a.elem or BOOL, cls)
        t = demand(_suited(args, want if result is None else None, cls), cls)
        rank = max(a.rank for a in args)
        return Typing((t,) * len(args), with_rank(result or t, rank))

    if result is not None:
        FIXED_RESULT.add(rule)
    return rule


def arithmetic(cls: str) -> Rule:
    """Like `elementwise`, but f64 and c128 mix, and give c128."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        if {a.elem for a in args} == {F64, C128}:
            rank = max(a.rank for a in args)
            return Typing(tuple(a.elem or C128 for a in args), with_rank(C128, rank))
        return elementwise(cls)(args, want)

    return rule


def _suited(args: Sequence[Arg], want: Scalar | None, cls: str) -> Scalar:
    """The common type of all arguments; literals alone become floats if `cls` needs it: sqrt(2)."""
    t = unify(args, want)
    if CLASSES[cls](t) or any(a.elem is not None for a in args):
        return t
    real = max(F64, widest_default(args), key=(BOOL, I64, F64, C128).index)
    return real if CLASSES[cls](real) else t


def modulus(cls: str) -> Rule:
    """One argument; a complex one gives a real result."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        t = demand(args[0].elem or _suited(args, want, cls), cls)
        return Typing((t,), with_rank(F64 if t.is_complex else t, args[0].rank))

    return rule


def power(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """`x ** y`: one type for both.

    A float, fixed or complex base also takes an i64 exponent (including integer literals), a
    complex base also an f64 exponent; a log64 base takes an f64 exponent.
    """
    base, exponent = args
    t = base.elem
    rank = max(base.rank, exponent.rank)
    if t is not None and t.is_log:
        if exponent.elem is not None:
            demand(exponent.elem, "f64")
        return Typing((t, F64), with_rank(t, rank))
    if t is not None and CLASSES["field"](t):
        literal = exponent.elem is None and default_type(exponent.value) == I64
        if literal or exponent.elem == I64:
            return Typing((t, I64), with_rank(t, rank))
    return arithmetic("number")(args, want)


def logarithm(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """`log x`: has the type of x; that of a log64 is an f64."""
    t = args[0].elem
    if t is not None and t.is_log:
        return Typing((t,), with_rank(F64, args[0].rank))
    return elementwise("field")(args, want)


def shift(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """An integer and a bit count of type i64 (or of the integer's own type)."""
    t = demand(args[0].elem or want or default_type(args[0].value), "int")
    k = args[1].elem or I64
    if k not in (t, I64):
        raise TypeFault(f"the bit count has the type {k}, not i64")
    return Typing((t, k), with_rank(t, max(a.rank for a in args)))


def conditional(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """`turned(x, c)`: a number, and a bool."""
    if args[1].elem is not None:
        demand(args[1].elem, "bool")
    t = demand(unify(args[:1], want), "signed")
    return Typing((t, BOOL), with_rank(t, max(a.rank for a in args)))


def by_factor(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """`shear(x, k)`: a number, and a factor of the type fixed(62)."""
    t, k = demand(unify(args[:1], want), "signed"), FACTOR
    if args[1].elem not in (None, k):
        raise TypeFault(f"the factor has the type {args[1].elem}, not {k}")
    return Typing((t, k), with_rank(t, max(a.rank for a in args)))


def of_angle(result: Scalar) -> Rule:
    """An angle, an f64 or fixed; the result is of the type named."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        t = args[0].elem or F64
        if not t.is_fixed:
            demand(t, "f64")
        return Typing((t,), with_rank(result, args[0].rank))

    FIXED_RESULT.add(rule)
    return rule


FACTOR = fixed(62)
"""The type of the factors of shears."""


def choice(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """`select(c, a, b)`: a bool, then two of one type."""
    if args[0].elem not in (None, BOOL):
        raise TypeFault(f"the condition has the type {args[0].elem}, not bool", hint=COMPARE)
    t = unify(args[1:], want)
    return Typing((BOOL, t, t), with_rank(t, max(a.rank for a in args)))


def lazy_choice(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """`choose(c, a, b)`: like `select`, with a single condition and values of one rank."""
    condition, a, b = args
    if condition.rank or a.rank != b.rank:
        raise ranks("takes a scalar condition, and two scalars or two arrays of one rank")
    return choice(args, want)


CHOICES: tuple[Rule, ...] = (choice, lazy_choice)
"""The rules of functions whose first argument is a condition, not a value."""


def conversion(target: Scalar) -> Rule:
    """Any number to `target`; a literal has that type already, unless it has a fraction."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        source = args[0].elem
        if source is None:
            source = default_type(args[0].value)
            cut = target.is_integer and source != I64
            if not (cut or target.is_bool or source in (BOOL, C128)):
                source = target
        if source != target and not (system(source).converts and system(target).converts):
            raise TypeFault(f"a {source} does not convert to {target}")
        if source.is_complex and not target.is_complex:
            raise TypeFault(
                f"a complex value does not convert to {target}", hint="take its `.re` or `abs(…)`"
            )
        return Typing((source,), with_rank(target, args[0].rank))

    FIXED_RESULT.add(rule)
    return rule


def of(*elems: Scalar, result: Scalar, scalars: bool = False) -> Rule:
    """Exactly these element types, broadcast (or scalars only)."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        if scalars and any(a.rank for a in args):
            raise ranks("takes scalars, not arrays")
        for a, t in zip(args, elems, strict=True):
            if a.elem is not None and a.elem != t:
                raise TypeFault(
                    f"an operand has the type {a.elem}, not {t}", hint=f"convert: `{t.name}(…)`"
                )
        return Typing(tuple(elems), with_rank(result, max(a.rank for a in args)))

    FIXED_RESULT.add(rule)
    if scalars:
        OF_SCALARS.add(rule)
    return rule


def ranks(message: str) -> TypeFault:
    """The fault for arguments of the wrong number of dimensions."""
    return TypeFault(message, code="A042")


def reduction(cls: str) -> Rule:
    """An array to a scalar of its type."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        if not args[0].rank:
            raise ranks("takes an array, not a scalar")
        t = demand(unify(args, want), cls)
        return Typing((t,), t)

    OF_ARRAYS.add(rule)
    return rule


def same_shape(cls: str) -> Rule:
    """Arrays of one type and shape, to another."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        if not args[0].rank or any(a.rank > args[0].rank for a in args):
            raise ranks("takes an array, not a scalar")
        t = demand(unify(args, want), cls)
        return Typing((t,) * len(args), with_rank(t, args[0].rank))

    OF_ARRAYS.add(rule)
    return rule


def like(cls: str) -> Rule:
    """A number or array, and one of any type whose number of dimensions the result has."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        if not args[1].rank:
            raise ranks("takes an array, not a scalar")
        t = demand(args[0].elem or want or default_type(args[0].value), cls)
        return Typing((t, args[1].elem or t), with_rank(t, args[1].rank))

    OF_ARRAYS.add(rule)
    OF_A_SHAPE.add(rule)
    return rule


def scan(cls: str) -> Rule:
    """A vector to a vector of the same length and type."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        if args[0].rank != 1:
            raise ranks("takes a vector")
        t = demand(unify(args, want), cls)
        return Typing((t,), with_rank(t, 1))

    OF_ARRAYS.add(rule)
    return rule


PRODUCTS = {(1, 1): 0, (2, 1): 1, (1, 2): 1, (2, 2): 2}
"""Ranks of the operands of `@`, and the rank of the product."""


def product(*allowed: tuple[int, int]) -> Rule:
    """A product of arrays of the given ranks, as `@` contracts them."""

    def rule(args: Sequence[Arg], want: Scalar | None) -> Typing:
        pair = (args[0].rank, args[1].rank)
        if pair not in allowed:
            raise ranks(f"does not multiply arrays of {pair[0]} and {pair[1]} dimensions")
        t = demand(unify(args, want), "number")
        return Typing((t, t), with_rank(t, PRODUCTS[pair]))

    OF_ARRAYS.add(rule)
    return rule


def outer(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """Two vectors to a matrix."""
    if (args[0].rank, args[1].rank) != (1, 1):
        raise ranks("takes two vectors")
    t = demand(unify(args, want), "number")
    return Typing((t, t), with_rank(t, 2))


def gather(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """A vector and a vector of i64 indices to a vector as long as the latter."""
    if (args[0].rank, args[1].rank) != (1, 1):
        raise ranks("takes a vector and a vector of indices")
    if args[1].elem != I64:
        raise TypeFault(f"the indices have the type {args[1].elem}, not i64")
    t = unify(args[:1], want)
    return Typing((t, I64), with_rank(t, 1))


def scatter(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """Values, their i64 indices, and the length of the vector that they are summed into."""
    if (args[0].rank, args[1].rank, args[2].rank) != (1, 1, 0):
        raise ranks("takes a vector, a vector of indices and a length")
    if args[1].elem != I64:
        raise TypeFault(f"the indices have the type {args[1].elem}, not i64")
    t = demand(unify(args[:1], want), "number")
    return Typing((t, I64, I64), with_rank(t, 1))


def length(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """`len(x)`, `dim(x, k)`: an array, and an axis."""
    if not args[0].rank or args[0].elem is None:
        raise ranks("takes an array, not a scalar")
    axis = args[-1].value
    known = len(args) == 2 and isinstance(axis, int)
    if known and not 0 <= axis < args[0].rank:
        raise ranks(f"takes an axis from 0 to {args[0].rank - 1}, not {axis}")
    return Typing((args[0].elem, I64)[: len(args)], I64)


FIXED_RESULT.add(length)


def transposition(args: Sequence[Arg], want: Scalar | None) -> Typing:
    """An array with its axes reversed."""
    if args[0].rank != 2:
        raise ranks("takes a matrix")
    t = unify(args, want)
    return Typing((t,), with_rank(t, 2))


OF_ARRAYS |= {outer, gather, scatter, transposition}
