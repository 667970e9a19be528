"""Evaluating pure expressions, and finding places, by walking them: the reference for engines.

Indices count from 0 and are checked; a slice must lie within its dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from rvm.expr import Apply, Const, Expr, Index, Part, Peek, Place, Shaped, Span
from rvm.faults import InvertibilityError, MachineError
from rvm.ir.places import LONGEST
from rvm.isa import array_value, value
from rvm.types import elem_of, rank_of

Regs = Sequence[Any]
Call = Callable[[tuple[Expr, ...], Regs], Any]


def evaluate(node: Expr, regs: Regs) -> Any:
    """The raw value of a typed expression: a Python number, or an array."""
    if isinstance(node, Place):
        return find(node, regs).read() if node.path else regs[node.reg]
    if isinstance(node, Const):
        return node.value
    if not isinstance(node, Apply):
        raise TypeError(f"a template cannot be evaluated: {node!r}")
    call = node.memo
    if call is None:
        call = _resolve(node)
        object.__setattr__(node, "memo", call)
    return call(node.args, regs)


def _resolve(node: Apply) -> Call:
    """The implementation of a node: the function on these types, and how it takes its arguments."""
    if node.fn == "choose":
        return lambda args, regs: evaluate(args[1 if evaluate(args[0], regs) else 2], regs)
    elems = tuple(elem_of(_type(a)) for a in node.args)
    if any(rank_of(_type(a)) for a in node.args):
        many = array_value(node.fn, elems)
        return lambda args, regs: plain(_fitting(many, [evaluate(a, regs) for a in args]))
    if node.fn == "and":
        return lambda args, regs: evaluate(args[0], regs) and evaluate(args[1], regs)
    if node.fn == "or":
        return lambda args, regs: evaluate(args[0], regs) or evaluate(args[1], regs)
    f = value(node.fn, elems)
    if len(elems) == 1:
        return lambda args, regs: f(evaluate(args[0], regs))
    if len(elems) == 2:
        return lambda args, regs: f(evaluate(args[0], regs), evaluate(args[1], regs))
    return lambda args, regs: f(*[evaluate(a, regs) for a in args])


def _fitting(many: Callable[..., Any], args: list[Any]) -> Any:
    """The function on arrays; MachineError R008 where their shapes do not match."""
    try:
        return many(*args)
    except ValueError as error:
        raise MachineError(
            "R008",
            "the shapes of the arrays do not go together",
            values={f"shape {k}": list(np.shape(a)) for k, a in enumerate(args, 1)},
        ) from error


def _type(node: Expr) -> Any:
    assert node.type is not None, "an untyped expression reached an engine"
    return node.type


def plain(result: Any) -> Any:
    """A NumPy scalar as a Python number; arrays unchanged."""
    if isinstance(result, np.generic) or (isinstance(result, np.ndarray) and not result.ndim):
        return result.item()
    return result


class Found:
    """A place that has been found: a whole register, an array view, or one element.

    `base` is the register's value or a view; `key` the element's index tuple, -1 for a stack's top,
    or None; `part` is "real" or "imag" where only that part of one complex number is meant.
    """

    __slots__ = ("base", "key", "part")

    def __init__(self, base: Any, key: Any, part: str | None) -> None:
        self.base = base
        self.key = key
        self.part = part

    def read(self) -> Any:
        """The raw value: a number, an array (not copied), or a stack's list."""
        value = self.base
        if self.key is not None:
            value = value[self.key] if isinstance(value, list) else value[self.key].item()
        return value if self.part is None else getattr(value, self.part)

    def bytes_view(self) -> Any:
        """An array that covers just the place's memory, for overlap tests."""
        view = self.base if self.key is None else self.base[(*self.key, ...)]
        return view if self.part is None else getattr(view, self.part)


def find(place: Place, regs: Regs) -> Found:
    """Follow a place's path; MachineError R003 where an index is out of bounds."""
    base = regs[place.reg]
    key: Any = None
    part: str | None = None
    for step in place.path:
        if isinstance(step, Index):
            items = [
                _slice(i, base.shape[k], k, regs)
                if isinstance(i, Span)
                else _checked(evaluate(i, regs), base.shape[k], k)
                for k, i in enumerate(step.items)
            ]
            if len(items) == base.ndim and not any(isinstance(i, slice) for i in items):
                key = tuple(items)
            else:
                base = base[tuple(items)]
        elif isinstance(step, Shaped):
            base = _shaped(base, [int(evaluate(d, regs)) for d in step.dims])
        elif isinstance(step, Part):
            name = {"re": "real", "im": "imag"}[step.name]
            if key is None and isinstance(base, np.ndarray):
                base = getattr(base, name)
            else:
                part = name
        elif isinstance(step, Peek):
            if step.name == "len":
                base = len(base)
            elif not base:
                raise InvertibilityError("R006", "the stack is empty")
            else:
                key = -1
        else:
            base = base.T
    return Found(base, key, part)


def has_shape(dims: Sequence[int], elements: int) -> bool:
    """Whether an array of these lengths has this many elements, and no length is absurdly large."""
    return min(dims) >= 0 and prod(dims) == elements and prod(filter(None, dims)) <= LONGEST


def _shaped(base: Any, dims: list[int]) -> Any:
    """The elements of one axis arranged in rows; MachineError R008 if the number differs."""
    if not has_shape(dims, len(base)):
        raise MachineError(
            "R008",
            f"{len(base)} elements are not an array of the lengths {', '.join(map(str, dims))}",
            values={"elements": len(base), "lengths": dims},
            hint="`x.reshape(m, n)` is of m * n elements; `x[a:b].reshape(…)` takes some of x",
        )
    return base.reshape(dims)


def _checked(i: Any, length: int, axis: int) -> Any:
    if not 0 <= i < length:
        raise MachineError(
            "R003",
            f"the index {i} is outside 0 … {length - 1}"
            if length
            else f"the index {i} on an axis of length 0",
            values={"index": i, "length": length, "axis": axis},
            hint="indices do not count from the end: the last element has the index `n - 1`, "
            f"and n is {length} here"
            if -length <= i < 0
            else "",
        )
    return i


def _slice(item: Span, length: int, axis: int, regs: Regs) -> Any:
    lo, hi, by = (None if e is None else evaluate(e, regs) for e in item.ends)
    found = cut(lo, hi, by, length)
    if found is not None:
        return found
    if by == 0:
        raise MachineError(
            "R003",
            "the step of a slice is 0",
            values={"length": length, "axis": axis},
            hint="x[::2] is every other element, x[::-1] all of them from the last to the first",
        )
    down = by is not None and by < 0
    lo = (length - 1 if down else 0) if lo is None else lo
    hi = length if hi is None and not down else hi
    text = f"{lo}:{'' if hi is None else hi}" + ("" if by is None else f":{by}")
    raise MachineError(
        "R003",
        f"the slice {text} is out of bounds for a dimension of length {length}",
        values={"from": lo, "to": hi, "step": by, "length": length, "axis": axis},
        hint="a slice a:b with a negative step begins with the element a and ends before it comes "
        "to b, so it needs length > a >= b >= 0; without b it goes down to the first element"
        if down
        else "a slice a:b needs 0 <= a <= b <= length",
    )


def cut(lo: int | None, hi: int | None, by: int | None, length: int) -> slice | None:
    """A slice of a dimension as NumPy's; None if it is out of bounds, or its step is 0."""
    if by is None or by > 0:
        first, end = 0 if lo is None else lo, length if hi is None else hi
        return slice(first, end, by) if 0 <= first <= end <= length else None
    first, end = length - 1 if lo is None else lo, 0 if hi is None else hi
    inside = (lo is None or 0 <= lo < length) and end >= 0 and (hi is None or end <= first)
    return slice(lo, hi, by) if by and inside else None
