"""Functions of fixed-point numbers as operations of every target, correctly rounded.

A text (`rvm.numbers.fixedpoint_pairs`) gives the nearest raw number, or that it is in doubt; then
Python's integers decide (`rvm.numbers.fixedpoint_exact`), and machine code bails out of the
instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.leaf import Function, Node
from rvm.leaf.ops import I64, OPS, Op, add, number
from rvm.leaf.python import NAMES, in_blocks, on_kinds, on_numbers
from rvm.leaf.trace import apply
from rvm.numbers.base import words
from rvm.numbers.code import DOUBT, Body

UNARY = words(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh"
    " atanh sech sigmoid softplus sqrt cbrt leg erf erfc lgamma digamma"
)
BINARY = words("atan2 hypot versor polygamma **")
"""The functions, by the numbers that they take."""
UNROLLED = 16
"""The greatest constant exponent of which products are written out."""


def _pairs() -> Any:
    return import_module("rvm.numbers.fixedpoint_pairs")


def _exact(f: str, *args: Any) -> int:
    return getattr(import_module("rvm.numbers.fixedpoint_exact"), f)(*args)  # type: ignore[no-any-return]


def _quick(of: Function, *args: int) -> int:
    """The result of a text on numbers."""
    try:
        return on_numbers(of)(*args)  # type: ignore[no-any-return]
    except ArithmeticError:
        return DOUBT


@cache
def text(name: str, frac: int) -> Function:
    """The text of a function of numbers with `frac` fraction bits."""
    return _pairs().settled(name, frac)  # type: ignore[no-any-return]


@cache
def power_text(frac: int, n: int | None) -> Function:
    """The text of `x ** n` for any n, or for a small constant one."""
    if n is None:
        return _pairs().settled_power(frac, 0)  # type: ignore[no-any-return]
    return _pairs().settled_chain(frac, n)  # type: ignore[no-any-return]


def settle(name: str, frac: int, *raws: int) -> int:
    """A function of raw numbers; R009 where it does not fit."""
    found = _quick(text(name, frac), *raws)
    return found if found != DOUBT else _exact("exact", name, frac, *raws)


def settle_power(frac: int, raw: int, n: int) -> int:
    """`x ** n` of a raw number and an integer."""
    if not 0 < n <= UNROLLED:
        found = _quick(power_text(frac, None), raw, n)
        return found if found != DOUBT else _exact("exact_power", frac, raw, n)
    found, shift = raw**n, frac * (n - 1)
    if shift:
        found = found + (1 << shift - 1) - 1 + (found >> shift & 1) >> shift
    return found if DOUBT <= found <= ~DOUBT else _exact("exact_power", frac, raw, n)


def on_arrays(of: Function, settled: Callable[..., int], *args: Any) -> NDArray[np.int64]:
    """A text on arrays and numbers, which are broadcast, block by block."""
    given, flat, out = in_blocks(on_kinds(of), args, np.int64)
    for k in np.nonzero(out == DOUBT)[0].tolist():
        out[k] = settled(*(int(a[k]) for a in flat))
    return out.reshape(given[0].shape)


def _power_array(frac: int, x: Any, n: Any) -> NDArray[np.int64]:
    k = int(n) if np.ndim(n) == 0 else 0
    constant = 0 < k <= UNROLLED
    of = power_text(frac, k if constant else None)
    if constant:
        return on_arrays(of, lambda raw: settle_power(frac, raw, k), x)
    return on_arrays(of, partial(settle_power, frac), x, n)


def _given_up(b: Any, of: Function, *args: Node) -> Any:
    found = b.op("written", *args, kind=I64, aux=of)
    b.trouble(b.op("eq", found, b.i64(DOUBT)))
    return found


def entered(fn: str, frac: int) -> str:
    """The operation that is a function of numbers with `frac` fraction bits."""
    name = f"fixed_{'power' if fn == '**' else fn}_of_{frac}"
    if name not in OPS:
        arity = 2 if fn in BINARY else 1
        one = NAMES[name] = partial(settle, fn, frac)
        NAMES[f"{name}_array"] = lambda *x: on_arrays(text(fn, frac), one, *x)
        _enter(name, arity, lambda b, *x: _given_up(b, text(fn, frac), *x))
    return name


def entered_power(frac: int, product: str) -> str:
    """The operation `x ** n`, where n is an i64; `product` is that of two numbers."""
    name = f"fixed_whole_power_of_{frac}"

    def native(b: Any, x: Node, n: Node) -> Any:
        k = number(n)
        if k in (1, 2):
            return x if k == 1 else OPS[product].native(b, x, x)  # type: ignore[operator]
        if k is not None and 0 < k <= UNROLLED:
            return _given_up(b, power_text(frac, k), x)
        return _given_up(b, power_text(frac, None), x, n)

    NAMES[name] = partial(settle_power, frac)
    NAMES[f"{name}_array"] = partial(_power_array, frac)
    _enter(name, 2, native)
    return name


def _enter(name: str, arity: int, native: Callable[..., Any]) -> None:
    slots = ", ".join(f"{{{k}}}" for k in range(arity))
    python, numpy = f"{name}({slots})", f"{name}_array({slots})"
    add(Op(name, (I64,) * arity, I64, python, numpy, native))


def bodies(frac: int) -> dict[str, Body]:
    """The functions that texts and integers settle, by their names."""
    made: dict[str, Body] = {fn: (lambda x, fn=fn: apply(entered(fn, frac), x)) for fn in UNARY}
    made |= {fn: (lambda x, y, fn=fn: apply(entered(fn, frac), x, y)) for fn in BINARY}
    return made
