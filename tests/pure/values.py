"""The value of a typed term, by walking it: what all else is held to.

A value is a number, an array, or a tuple of values; an array of tuples is a tuple of arrays.
Numbers and arrays are raw, as registers hold them, and functions of the table are the table's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rvm_pure.formulas import formula_of
from rvm_pure.terms import (
    Each,
    Fold,
    If,
    Index,
    Let,
    Loop,
    Num,
    Op,
    Pattern,
    Prim,
    Proj,
    Term,
    Tup,
    Update,
    Var,
)
from rvm_pure.types import Arr, Product, Type, dims, elem_type, leaves

from rvm.expr import LENGTHS
from rvm.faults import InputError, MachineError
from rvm.isa import FUNCTIONS
from rvm.isa.implementation import array_value, value
from rvm.numbers import system
from rvm.types import Scalar

Env = Mapping[str, Any]


def evaluate(e: Term, env: Env) -> Any:
    """The value of a term; InputError or MachineError where it has none."""
    match e:
        case Num(held):
            assert isinstance(e.type, Scalar)
            return system(e.type).literal(held)
        case Var(name):
            return env[name]
        case Let(p, a, b):
            return evaluate(b, bound(p, evaluate(a, env), env))
        case Tup(items):
            return tuple(evaluate(x, env) for x in items)
        case Proj(k, of):
            return evaluate(of, env)[k]
        case If(c, a, b):
            return evaluate(a if evaluate(c, env) else b, env)
        case Op(fn, args):
            return _applied(e, fn, args, env)
        case Each(fn, found):
            arrays = [evaluate(a, env) for a in found]
            n = one_length(arrays)
            made = [
                _function(fn.params, [at(a, i) for a in arrays], fn.body, env) for i in range(n)
            ]
            assert isinstance(e.type, Arr)
            return stacked(made, e.type)
        case Fold():
            return _fold(e, env)
        case Prim(name, args):
            return _prim(e, name, [evaluate(a, env) for a in args])
        case Index(of, items):
            return at(evaluate(of, env), *_indices(evaluate(of, env), items, env))
        case Update(of, items, new):
            old = evaluate(of, env)
            return _updated(old, _indices(old, items, env), evaluate(new, env))
        case Loop(p, init, var, count, body, down):
            state, n = evaluate(init, env), evaluate(count, env)
            for i in range(n - 1, -1, -1) if down else range(n):
                state = evaluate(body, {**bound(p, state, env), var: i})
            return state
    raise TypeError(f"a {type(e).__name__} has no value")


def bound(p: Pattern, v: Any, env: Env) -> dict[str, Any]:
    """An environment with the names of a pattern."""
    out = dict(env)
    _bind(p, v, out)
    return out


def _bind(p: Pattern, v: Any, out: dict[str, Any]) -> None:
    if isinstance(p, str):
        out[p] = v
    else:
        for q, w in zip(p, v, strict=True):
            _bind(q, w, out)


def _function(params: Sequence[Pattern], args: Sequence[Any], body: Term, env: Env) -> Any:
    out = dict(env)
    for p, v in zip(params, args, strict=True):
        _bind(p, v, out)
    return evaluate(body, out)


def _applied(e: Op, fn: str, args: Sequence[Term], env: Env) -> Any:
    if fn in LENGTHS:
        shape = _shape(evaluate(args[0], env))
        return shape[evaluate(args[1], env) if len(args) > 1 else 0]
    if FUNCTIONS[fn].lazy and isinstance(args[0].type, Scalar):
        first = evaluate(args[0], env)
        if fn == "choose":
            return evaluate(args[1 if first else 2], env)
        return evaluate(args[1], env) if first == (fn == "and") else first
    held = [evaluate(a, env) for a in args]
    elems = tuple(_scalar(a) for a in args)
    formula = formula_of(e)
    if formula is not None:
        body, names = formula
        return evaluate(body, dict(zip(names, held, strict=True)))
    assert e.type is not None
    if dims(e.type) or any(isinstance(h, np.ndarray) for h in held):
        with np.errstate(all="ignore"):
            try:
                return array_value(fn, elems)(*held)
            except ValueError:
                shapes = " and ".join(str(np.shape(h)) for h in held)
                raise MachineError("R008", f"`{fn}` of arrays with the lengths {shapes}") from None
    return value(fn, elems)(*held)


def _scalar(e: Term) -> Scalar:
    assert e.type is not None
    t = elem_type(e.type)
    assert isinstance(t, Scalar)
    return t


def _fold(e: Fold, env: Env) -> Any:
    state, array = evaluate(e.init, env), evaluate(e.array, env)
    n = one_length([array])
    states = [state]
    for i in range(n - 1, -1, -1) if e.kind == "scanr" else range(n):
        state = _function(e.fn.params, (state, at(array, i)), e.fn.body, env)
        states.append(state)
    if e.kind in ("reduce", "foldl"):
        return state
    assert isinstance(e.type, Arr)
    return stacked(states[::-1] if e.kind == "scanr" else states, e.type)


def _prim(e: Prim, name: str, args: list[Any]) -> Any:
    match name:
        case "shift1L":
            return _each_leaf(args[0], lambda a: a[1:])
        case "shift1R":
            return _each_leaf(args[0], lambda a: a[:-1])
        case "dup":
            return args[0], args[0]
        case "iota":
            return np.arange(args[0], dtype=np.int64)
    assert isinstance(e.type, Arr)
    return stacked([args[1]] * args[0], e.type)


def _each_leaf(v: Any, f: Any) -> Any:
    return tuple(_each_leaf(x, f) for x in v) if isinstance(v, tuple) else f(v)


def _shape(v: Any) -> tuple[int, ...]:
    return _shape(v[0]) if isinstance(v, tuple) else v.shape


def one_length(arrays: Sequence[Any]) -> int:
    """The length of arrays that are to be as long; MachineError R008 if they are not."""
    found = [_shape(a)[0] for a in arrays]
    if len(set(found)) != 1:
        raise MachineError("R008", f"arrays of the lengths {', '.join(map(str, found))}")
    return found[0]


def at(v: Any, *indices: int) -> Any:
    """An element of an array, of all arrays where it is one of tuples."""

    def one(a: Any) -> Any:
        found = a[indices]
        return found if isinstance(found, np.ndarray) else found.item()

    return _each_leaf(v, one)


def _indices(v: Any, items: Sequence[Term], env: Env) -> tuple[int, ...]:
    found = tuple(evaluate(i, env) for i in items)
    for i, n in zip(found, _shape(v), strict=False):
        if not 0 <= i < n:
            raise MachineError("R003", f"the index {i} is not below the length {n}")
    return found


def _updated(old: Any, indices: tuple[int, ...], new: Any) -> Any:
    if isinstance(old, tuple):
        return tuple(_updated(a, indices, b) for a, b in zip(old, new, strict=True))
    out = old.copy()
    out[indices] = new
    return out


def stacked(found: Sequence[Any], t: Arr) -> Any:
    """Values as an array of them."""
    if isinstance(t.elem, Product):
        return tuple(
            stacked([v[k] for v in found], Arr(item, t.length))
            for k, item in enumerate(t.elem.items)
        )
    dtype = system(next(leaves(t))).dtype
    if not found:
        inner = tuple(0 if n is None or n.name else n.more for n in dims(t.elem))
        return _hollow(t.elem, dtype, inner)
    return np.array(found, dtype=dtype)


def _hollow(elem: Type, dtype: Any, inner: tuple[int, ...]) -> Any:
    if isinstance(elem_type(elem), Product):
        raise InputError("U006", "an array without elements of arrays of tuples")
    return np.zeros((0, *inner), dtype=dtype)
