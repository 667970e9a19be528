"""A user's own pure functions: `@rvm.function`.

    @rvm.function(partials=lambda x: (1 / (1 + abs_(x)) ** 2,))
    def softsign(x):
        "x / (1 + |x|)"
        return x / (1 + abs(x))

The body runs once, on formal arguments.  If it returns a formula over the function table, the
function is defined by that formula: every engine and every number type evaluates it, and its
derivatives are derived.  Otherwise the function remains a Python callable on real numbers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rvm.expr import Apply, Expr, Formal, Place, is_formula, lift, recording, substitute
from rvm.faults import DefinitionError, MachineError, RvmError
from rvm.host.once import one_by_one, taken
from rvm.isa import FUNCTIONS
from rvm.isa.implementation import register_callable
from rvm.isa.rows import COSTS, FunctionRow, add_function, defining_module
from rvm.isa.rules import TypeFault, elementwise
from rvm.isa.trials import valued
from rvm.isa.typing import typed
from rvm.leaf.ops import F64 as REAL
from rvm.leaf.ops import Op, add
from rvm.leaf.trace import apply as operation
from rvm.numbers.code import Body
from rvm.types import F64

__all__ = ["apply", "function"]


def apply(name: str, *args: Any) -> Expr:
    """A function of the table applied to expressions, for bodies and partials:

    `apply("sin", x)`.
    """
    if name not in FUNCTIONS:
        raise DefinitionError("D003", f"there is no function `{name}`")
    return Apply(name, tuple(map(lift, args)))


def function(
    *, name: str = "", partials: Callable[..., tuple[Any, ...]] | None = None, cost: str = "NLOPS"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function in the function table, for programs to use by name.

    `partials(*args)` returns the derivatives of a Python callable as a tuple of formulas (None for
    one that is 0); without them it has no gradient.  The callable must be pure: the
    machine calls it again to undo an update.
    DefinitionError D003, D007 if it cannot be registered.
    """
    if cost not in COSTS:
        raise DefinitionError("D007", f"there is no cost class {cost!r}", hint=", ".join(COSTS))

    @one_by_one
    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        title = name or body.__name__
        try:
            operands = tuple(inspect.signature(body).parameters)
        except (TypeError, ValueError) as error:
            raise DefinitionError(
                "D007",
                f"the arguments of `{title}` are not known: {error}",
                hint="define it in Python: @rvm.function() def f(x): return …",
            ) from None
        arity = len(operands)
        if taken(FUNCTIONS, title):
            raise DefinitionError("D007", f"the function table has a `{title}` already")
        if not title.isidentifier():
            raise DefinitionError("D007", f"`{title}` is not a name that a program can use")
        if not arity:
            raise DefinitionError("D007", f"`{title}` has no arguments: that is a constant")
        formula = _formula(body, arity)
        if formula is not None:
            _compare(title, formula, body, arity)
        if formula is not None and partials is not None:
            raise DefinitionError(
                "D007",
                f"`{title}` is a formula, and so its derivatives are derived from it",
                hint="leave `partials` out",
            )
        row = FunctionRow(
            title,
            operands,
            elementwise("field" if formula is not None else "real"),
            inspect.getdoc(body) or "",
            cost=cost,
            partials=None if partials is None else _lifted(title, arity, partials),
            body=None if formula is not None else _called(title, body, arity),
            formula=formula,
            module=defining_module(body),
        )
        add_function(row)
        return body

    return enter


def _formula(body: Callable[..., Any], arity: int) -> Expr | None:
    """The body as a formula, if it is one; it is none if it looks at its arguments' values."""
    try:
        with recording():
            found = body(*(Formal(k) for k in range(arity)))
    except (TypeError, AttributeError, ValueError):
        return None
    return found if isinstance(found, Expr) and is_formula(found) else None


def _compare(title: str, formula: Expr, body: Callable[..., Any], arity: int) -> None:
    """Raise DefinitionError D007 if a body computes something else on numbers than on operands.

    It looks at what its arguments are, then: by `isinstance`, for example.
    """
    try:
        made = typed(substitute(formula, tuple(Place(k, (), F64) for k in range(arity))), F64)
    except TypeFault:
        return  # Other types may have it; where they do not, programs are refused.
    for n in range(len(SAMPLES)):
        given = [SAMPLES[(n + k) % len(SAMPLES)] for k in range(arity)]
        try:
            found, want = body(*given), valued(made, given)
        except Exception:
            continue  # A division by zero, for which Python has no number.
        if not isinstance(found, int | float) or not math.isfinite(found):
            continue
        if not abs(found - want) <= 1e-9 * max(abs(found), 1.0):
            raise DefinitionError(
                "D007",
                f"`{title}` is another function of numbers than of operands",
                values={"arguments": tuple(given), "value": found, "value by formula": want},
                hint="a body that asks what its arguments are is no formula: define two functions",
            )


SAMPLES = (0.75, -1.25, 3.5, 0.0, 1.0, -2.0)
"""Arguments for which a formula is compared with the body from which it was recorded."""


def _lifted(
    title: str, arity: int, partials: Callable[..., tuple[Any, ...]]
) -> Callable[..., tuple[Expr | None, ...]]:
    """The rule of the derivatives; DefinitionError D007 unless there is a formula for each."""

    def refused(found: object) -> DefinitionError:
        many = "an argument" if arity == 1 else f"each of the {arity} arguments"
        return DefinitionError(
            "D007",
            f"`partials` of `{title}` must return a tuple with a formula for {many}, not {found}",
            hint="a derivative that is 0 may be None",
        )

    def rule(*args: Expr) -> tuple[Expr | None, ...]:
        with recording():
            found = partials(*args)
        if not isinstance(found, tuple):
            raise refused(f"`{type(found).__name__}`")
        if len(found) != arity:
            raise refused(f"{len(found)} of them")
        lifted = tuple(None if p is None else lift(p) for p in found)
        for p in lifted:
            if p is not None and not is_formula(p):
                raise refused("what is not a number")
        return lifted

    try:
        inspect.signature(partials).bind(*range(arity))
    except (TypeError, ValueError) as error:
        raise refused(f"{partials!r}: {error}") from None
    try:
        for p in rule(*(Place(k, (), F64) for k in range(arity))):
            if p is not None and typed(p, F64).type != F64:
                raise refused("a condition")
    except TypeFault as fault:
        raise refused(f"what cannot be computed: {fault.message}") from None
    except DefinitionError as error:
        # It may use a function that is defined later, or this one.
        if error.code != "D003":
            raise
    return rule


def _called(title: str, body: Callable[..., Any], arity: int) -> Body:
    """A call of a Python function on real numbers, as a leaf operation without machine code."""

    def value(*args: float) -> float:
        try:
            return float(body(*args))
        except RvmError:
            raise
        except Exception as error:
            raise MachineError(
                "R014",
                f"the function `{title}` raised {type(error).__name__}: {error}",
                values={f"argument {k}": a for k, a in enumerate(args, 1)},
            ) from error

    many = np.vectorize(value, otypes=[np.float64])
    slots = ", ".join(f"{{{k}}}" for k in range(arity))
    python = f"{register_callable(title, value)}({slots})"
    numpy = f"{register_callable(title + '_array', many)}({slots})"
    add(Op(f"user_{title}", (REAL,) * arity, REAL, python, numpy, ""))
    return partial(operation, f"user_{title}")
