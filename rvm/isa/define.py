"""The tracer: an opcode is one small decorated Python function, run once.

The function runs a single time, on formal operands that record the operations on them.  The result
is statement templates; the inverse is found or proved, not trusted:

    @opcode(inverse="sub")
    def add(y: Mut, v: Use) -> None:
        "y += v"
        y += v

A body updates `Mut` operands in place (`+= -= ^= *= /=`), exchanges them (`exchange(a, b)`), guards
statements (`with when(c):`), or returns the new values of all its `Mut` operands, in order, as
formulas in their old values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from rvm.codes.words import instead
from rvm.expr import Expr, Formal, Place, is_formula, lift, recording, walk
from rvm.faults import DefinitionError
from rvm.host.once import one_by_one, taken
from rvm.isa.proof import prove_inverse
from rvm.isa.rows import (
    COSTS,
    OPCODES,
    Operand,
    OpRow,
    add_opcode,
    defining_module,
    is_of_the_table,
)
from rvm.isa.rules import CLASSES
from rvm.stmt import Exchange, Map, Stmt, Update, When, writes

__all__ = ["Mut", "Use", "exchange", "opcode", "when"]


class Use(Formal):
    """An operand that an opcode reads; `Annotated[Use, "bool"]` narrows its type."""

    __slots__ = ()

    def _refuse(self, value: Any) -> Any:
        raise DefinitionError("D004", f"the opcode updates its Use operand number {self.index}")

    __iadd__ = __isub__ = __ixor__ = __imul__ = __itruediv__ = _refuse


class Mut(Formal):
    """An operand that an opcode changes; augmented assignment on it is recorded."""

    __slots__ = ()

    def _update(self, op: str, value: Any) -> Mut:
        _emit(Update(cast(Place, self), op, lift(value)))
        return self

    def __iadd__(self, value: Any) -> Any:
        return self._update("+", value)

    def __isub__(self, value: Any) -> Any:
        return self._update("-", value)

    def __ixor__(self, value: Any) -> Any:
        return self._update("^", value)

    def __imul__(self, value: Any) -> Any:
        return self._update("*", value)

    def __itruediv__(self, value: Any) -> Any:
        return self._update("/", value)


ANNOTATE = 'annotate each: `y: Mut`, `v: Use`, `c: Annotated[Use, "bool"]`'

_bodies: list[list[Stmt]] = []
"""The statement lists being recorded, innermost last."""


def _emit(stmt: Stmt) -> None:
    if not _bodies:
        raise DefinitionError("D004", "an operand is changed outside the definition of an opcode")
    _bodies[-1].append(stmt)


def exchange(a: Mut, b: Mut) -> None:
    """Exchange the contents of two operands."""
    for operand in (a, b):
        if not isinstance(operand, Formal):
            raise DefinitionError("D003", f"`exchange` takes two Mut operands, not {operand!r}")
    _emit(Exchange(cast(Place, a), cast(Place, b)))


@contextmanager
def when(cond: Expr) -> Iterator[None]:
    """Guard the statements inside: they are executed only where `cond` holds."""
    if not isinstance(cond, Expr):
        raise DefinitionError("D003", f"`when` takes a condition on operands, not {cond!r}")
    _bodies.append([])
    try:
        yield
    finally:
        body = _bodies.pop()
    _emit(When(cond, tuple(body)))


def opcode(
    *,
    inverse: str = "",
    types: str = "number",
    cost: str = "ADDS",
    name: str = "",
    exact: Callable[..., Any] | None = None,
    exact_inverse: str = "",
    exact_types: str = "exact",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as an opcode.

    `inverse` names the inverse opcode; without it the opcode must be its own inverse, which is
    proved here for all except the table's own.  `types` is the class in `rvm.isa.rules.CLASSES` of
    the operands' types. `exact` is an alternative body, on the same operands, for types in the
    class `exact_types`, and `exact_inverse` the inverse opcode on these, if different.
    DefinitionError (D001 … D006) for an invalid body, D008 for another argument; then nothing is
    registered.
    """
    for value, known, what in (
        (types, CLASSES, "class of types"),
        (exact_types, CLASSES, "class of types"),
        (cost, COSTS, "cost class"),
    ):
        if not isinstance(value, str) or value not in known:
            hint = instead(str(value), known, f"known: {', '.join(known)}")
            raise DefinitionError("D008", f"there is no {what} `{value}`", hint=hint)
    for value in (inverse, exact_inverse, name):
        if not isinstance(value, str) or not (value.isidentifier() or value == ""):
            raise DefinitionError("D008", f"{value!r} is not a name that a program can use")

    @one_by_one
    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        named = name or body.__name__.rstrip("_")
        if not named.isidentifier():
            raise DefinitionError(
                "D008",
                f"`{named}` is not a name that a program can use",
                hint='name it: @opcode(name="…")',
            )
        if taken(OPCODES, named):
            raise DefinitionError("D008", f"there is an opcode `{named}` already")
        apart = (exact, exact_inverse, exact_types)
        add_opcode(_row(body, named, inverse, types, cost, *apart))
        return body

    return enter


def _row(
    body: Callable[..., Any],
    name: str,
    inverse: str,
    types: str,
    cost: str,
    exact: Callable[..., Any] | None = None,
    exact_inverse: str = "",
    exact_types: str = "exact",
) -> OpRow:
    operands = _operands(body, name)
    row = OpRow(
        name=name,
        operands=operands,
        types=types,
        body=_recorded(body, name, operands),
        inverse=inverse or name,
        doc=inspect.getdoc(body) or "",
        cost=cost,
        module=defining_module(body),
        exact=_recorded(exact, name, operands) if exact else (),
        exact_inverse=exact_inverse,
        exact_types=exact_types,
    )
    if is_of_the_table(body):
        # The tests prove those pairs; here it would take as long as the rest of the import.
        return row
    partners = [OPCODES.get(n) if n != name else row for n in (row.inverse, exact_inverse) if n]
    for partner in partners:
        if partner is not None:
            prove_inverse(row, partner)
    for other in OPCODES.values():
        if name in (other.inverse, other.exact_inverse) and other not in partners:
            prove_inverse(other, row)
    return row


def _recorded(
    body: Callable[..., Any], name: str, operands: tuple[Operand, ...]
) -> tuple[Stmt, ...]:
    """The statements recorded from a body."""
    formals: list[Expr] = [Mut(k) if o.mode == "mut" else Use(k) for k, o in enumerate(operands)]
    _bodies.append([])
    try:
        with recording():
            result = body(*formals)
    finally:
        recorded = _bodies.pop()
    muts = tuple(f for f in formals if isinstance(f, Mut))
    if result is not None:
        values = tuple(map(lift, result if isinstance(result, tuple) else (result,)))
        if len(values) != len(muts):
            raise DefinitionError(
                "D001",
                f"`{name}` returns {len(values)} values for {len(muts)} Mut operands",
                hint="return the new value of every Mut operand, in order",
            )
        recorded.append(Map(cast("tuple[Place, ...]", muts), values, ()))
    if not recorded:
        raise DefinitionError(
            "D002",
            f"`{name}` changes nothing",
            hint="a value computed by `d = d + a` is never absorbed: write `d += a`, "
            "or return the new values of the Mut operands",
        )
    for stmt in recorded:
        _check(name, stmt, operands)
    return tuple(recorded)


def _operands(body: Callable[..., Any], name: str) -> tuple[Operand, ...]:
    out = []
    try:
        notes = get_type_hints(body, include_extras=True)
        params = inspect.signature(body).parameters
    except (NameError, TypeError, ValueError) as error:
        raise DefinitionError(
            "D003", f"the operands of `{name}` cannot be read: {error}", hint=ANNOTATE
        ) from error
    if not params:
        raise DefinitionError("D003", f"`{name}` has no operands", hint=ANNOTATE)
    for p, param in params.items():
        if param.kind is not param.POSITIONAL_OR_KEYWORD or param.default is not param.empty:
            raise DefinitionError(
                "D003",
                f"operand `{p}` of `{name}` is not an ordinary parameter without a default value",
                hint=ANNOTATE,
            )
        note = notes.get(p)
        base, *kinds = get_args(note) if get_origin(note) is Annotated else (note,)
        kind = kinds[0] if kinds else "T"
        if base not in (Mut, Use) or (kind not in ("T", "angle") and kind not in CLASSES):
            raise DefinitionError(
                "D003", f"operand `{p}` of `{name}` is annotated neither Mut nor Use", hint=ANNOTATE
            )
        out.append(Operand(p, "mut" if base is Mut else "use", kind))
    return tuple(out)


def _formals(node: Expr) -> set[int]:
    return {n.index for n in walk(node) if isinstance(n, Formal)}


def _index(place: Place) -> int:
    return cast(Formal, place).index


def _check(name: str, stmt: Stmt, operands: tuple[Operand, ...]) -> None:
    """Refuse a body that writes an operand it may not change, or reads one that it is updating."""

    def writable(place: Place) -> int:
        k = _index(place)
        if operands[k].mode != "mut":
            raise DefinitionError("D004", f"`{name}` writes its Use operand `{operands[k].name}`")
        return k

    def formula(value: Expr) -> None:
        if not is_formula(value):
            raise DefinitionError("D001", f"`{name}` computes with what is not a number")

    match stmt:
        case Map(_, values, _):
            for value in values:
                formula(value)
        case Update(dst, _, value):
            formula(value)
            if writable(dst) in _formals(value):
                raise DefinitionError(
                    "D005",
                    f"`{name}` updates `{operands[_index(dst)].name}` by a value that reads it",
                    hint="such an update has no inverse; accumulate into another operand",
                )
        case Exchange(a, b):
            writable(a), writable(b)
        case When(cond, body):
            for inner in body:
                _check(name, inner, operands)
            changed = {_index(d) for inner in body for d in writes(inner)}
            if _formals(cond) & changed:
                raise DefinitionError(
                    "D005", f"`{name}` changes what the condition of its `when` reads"
                )
        case _:
            pass
