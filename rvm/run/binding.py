"""Arguments in, results out: conversion between a caller's Python values and registers.

Arrays are the caller's own buffers, never copies; a stack is a separate list, filled from a list or
from an array of the storage dtype.  Scalars come back as Python numbers.  A record is any mapping,
object with attributes, or structured array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, combinations
from math import prod
from typing import Any

import numpy as np

from rvm.codes.words import count, described, instead, meant, with_article
from rvm.expr import Apply, Const, Expr, Place
from rvm.faults import InputError
from rvm.numbers import system
from rvm.numbers.base import BUFFERS, NumberSystem, plain_array
from rvm.program import Function, Layout, Param, Record, Register, stack_text, type_text
from rvm.run.results import Info, Result, Rounding
from rvm.state import Options
from rvm.types import Array, RegisterType, Scalar, Stack, elem_of

Own = dict[int, Any]
"""The caller's arrays, by register, where the register holds a plain view of them."""


def bind(
    function: Function, inputs: Mapping[str, Any], inout: frozenset[int], own: Own | None = None
) -> list[Any]:
    """The registers of a new frame, filled from the caller's values.

    Arrays are entered in `own`.  InputError I001 (missing), I002 (unknown), I003
    (type), I004 (shape), I005 (layout), I006 (read-only), I007 (two arguments share memory).
    """
    names = [p.name for p in function.params]
    for name in inputs:
        if name not in names:
            raise unknown(function, name)
    regs: list[Any] = [None] * len(function.registers)
    given = regs.copy()
    for param in function.params:
        value = inputs.get(param.name)
        if param.name not in inputs:
            value = start_of(function, param)
            if value is not None and isinstance(param.layout, int):
                regs[param.layout] = value
                continue
        if value is None and param.name not in inputs:
            raise InputError(
                "I001",
                f"`{function.name}` needs a value for `{param.name}`",
                hint=f"it takes: {', '.join(names)}",
            )
        _fill(function, param.name, param.layout, value, regs, given, inout, own)
    check_lengths(function, regs)
    check_fields(function, regs)
    _apart(function, given, inout)
    return regs


def unknown(function: Function, name: object) -> InputError:
    """The error I002 for a name that is not a parameter."""
    names = [p.name for p in function.params]
    near = meant(name, [*names, *Options.__dataclass_fields__])
    what = "" if near in names else "the option "
    return InputError(
        "I002",
        f"`{function.name}` has no parameter `{name}`",
        hint=f"did you mean {what}`{near}`?" if near else f"it takes: {', '.join(names)}",
    )


def start_of(function: Function, param: Param) -> Any:
    """The default value of a parameter; None if a caller must give one."""
    if isinstance(param.layout, Record):
        fields = {n: start_of(function, Param(n, inner)) for n, inner in param.layout.fields}
        return None if None in fields.values() else fields
    register = function.registers[param.layout]
    if isinstance(register.type, Stack):
        return []
    if not param.zero:
        return None
    sys = system(elem_of(register.type))
    lengths = [d.value for d in register.dims if isinstance(d, Const)]
    if len(lengths) < len(register.dims):
        return None
    return np.full(lengths, sys.zero, sys.dtype) if register.dims else sys.zero


def _fill(
    function: Function,
    name: str,
    layout: Layout,
    value: Any,
    regs: list[Any],
    given: list[Any],
    inout: frozenset[int],
    own: Own | None,
) -> None:
    if isinstance(layout, Record):
        for path, inner, part in parts(name, layout, value):
            _fill(function, path, inner, part, regs, given, inout, own)
        return
    register = function.registers[layout]
    regs[layout] = _value(function, layout, register, name, value, layout in inout)
    # Of an array that fills a stack only the numbers are taken.
    taken = isinstance(register.type, Array) or not isinstance(value, list)
    given[layout] = regs[layout] if taken else value
    if own is not None and isinstance(register.type, Array):
        own[layout] = value


def parts(name: str, layout: Record, value: Any) -> Iterator[tuple[str, Layout, Any]]:
    """The path, layout and value of each field of a record that a caller gives.

    InputError I003 for a field that is missing, and for one of a mapping that is unknown.
    """
    known_fields(name, layout, value)
    for field, inner in layout.fields:
        path = f"{name}.{field}"
        try:
            if isinstance(value, (Mapping, np.ndarray, np.void)):
                yield path, inner, value[field]
            else:
                yield path, inner, getattr(value, field)
        except (KeyError, AttributeError, IndexError, ValueError, TypeError):
            fields = ", ".join(f for f, _ in layout.fields)
            raise InputError(
                "I003",
                f"`{path}` is missing: a `{layout.name}` has the fields {fields}",
                values={"given": value},
                hint="pass a mapping, an object with these attributes, or a structured array",
            ) from None


def known_fields(name: str, layout: Record, given: Any) -> None:
    """Raise InputError I003 if a mapping has a field that the record has not."""
    fields = [f for f, _ in layout.fields]
    for field in given if isinstance(given, Mapping) else ():
        if field not in fields:
            raise InputError(
                "I003",
                f"`{name}` has no field `{field}`: a `{layout.name}` has {', '.join(fields)}",
                hint=instead(field, fields, ""),
            )


def _value(
    function: Function, slot: int, register: Register, name: str, value: Any, changed: bool
) -> Any:
    t = register.type
    if isinstance(t, Array):
        return _array(function, slot, t, name, value, changed)
    return held_in(register, name, value)


def held_in(register: Register, name: str, value: Any) -> Any:
    """`held` for a register; for a stack of arrays, the numbers of all of them, or I004."""
    t, shape = register.type, register.shape
    if not shape or not isinstance(t, Stack):
        return held(t, name, value)
    wanted = with_article(stack_text(t.elem, shape))
    listed = isinstance(value, list) and value and all(map(_is_numbers, value))
    if listed or (isinstance(value, np.ndarray) and value.ndim > 1):
        flat = []
        for k, item in enumerate(value):
            given = item.shape if isinstance(item, np.ndarray) else _lengths(item)
            if given != shape:
                has = "rows of several lengths" if given is None else f"the shape {list(given)}"
                message = f"`{name}` is {wanted}: array {k} has {has}, not {list(shape)}"
                raise InputError("I004", message)
            for _ in shape[1:]:
                item = item.ravel() if isinstance(item, np.ndarray) else list(chain(*item))
            flat += held(t, name, item if isinstance(item, np.ndarray) else list(item), wanted)
        return flat
    flat = held(t, name, value, wanted)
    if len(flat) % prod(shape):
        raise InputError(
            "I004",
            f"`{name}` is {wanted}: {count(len(flat), 'number')} are not a whole number of arrays",
            hint="pass a list of arrays, or an array of them",
        )
    return flat


def _is_numbers(item: Any) -> bool:
    return isinstance(item, (list, tuple, np.ndarray))


def _lengths(item: Any) -> tuple[int, ...] | None:
    """The shape of nested lists; None if their lengths differ."""
    if not isinstance(item, (list, tuple)):
        return ()
    inner = {_lengths(i) for i in item}
    if None in inner or len(inner) > 1:
        return None
    return (len(item), *(inner.pop() or () if inner else ()))


def arrays_of(elem: Scalar, shape: tuple[int, ...], raw: list[Any]) -> list[Any]:
    """The arrays in a stack of arrays, in the storage dtype, from its numbers.

    If the numbers do not fill whole arrays, which only hand-written code can cause, they are
    returned as they are.
    """
    if len(raw) % prod(shape):
        return list(as_python(Stack(elem), raw))
    return rows_of(shape, np.array(raw, system(elem).dtype))


def rows_of(shape: tuple[int, ...], numbers: np.ndarray[Any, Any]) -> list[Any]:
    """The numbers as a list, or as a list of arrays of the given shape."""
    if not shape or len(numbers) % prod(shape):
        return list(numbers.tolist())
    return [row.reshape(shape).copy() for row in numbers.reshape(-1, prod(shape))]


def from_register(register: Register, raw: Any) -> Any:
    """`as_python` for the contents of a register; a stack of arrays becomes a list of arrays."""
    if register.shape and raw is not None:
        return arrays_of(elem_of(register.type), register.shape, raw)
    return as_python(register.type, raw)


def held(t: RegisterType, name: str, value: Any, wanted: str = "") -> Any:
    """A caller's numbers in the form that a register of the type holds; all inputs use this rule.

    Whole numbers must be exact, finite ones must stay finite, others are rounded to nearest.
    InputError I003 for anything else; `wanted` is the name of the type in the message.
    """
    wanted = wanted or with_article(t)
    sys = system(elem_of(t))
    try:
        if isinstance(t, Array):
            return sys.array_from_python(value)
        if not isinstance(t, Stack):
            return sys.from_python(value)
        if type(value) is list:
            return sys.list_from_python(value)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"`{name}` is {wanted}: {error}"
        raise InputError("I003", message, values={name: value}) from None
    if not isinstance(value, (np.ndarray, *BUFFERS)):
        raise InputError(
            "I003",
            f"`{name}` is {wanted}: it takes a list or a NumPy array, not {described(value)}",
            hint=f"{name}.encode()" if isinstance(value, str) else f"list({name})",
        )
    view = plain_view(wanted, name, value)
    _check_stored(wanted, name, view, sys, 1, not isinstance(value, np.ndarray))
    return view.tolist()


def plain_view(wanted: str, name: str, value: Any) -> np.ndarray[Any, Any]:
    """An array or buffer as a plain NumPy array over the same memory.

    InputError I003 for a masked array.
    """
    try:
        return plain_array(value)
    except TypeError as error:
        raise InputError(
            "I003",
            f"`{name}` is {wanted}: {error}",
            hint="pass x.filled(…), an array in which each number counts",
        ) from None


def _array(function: Function, slot: int, t: Array, name: str, value: Any, changed: bool) -> Any:
    sys = system(t.elem)
    dtype = sys.dtype
    wanted = with_article(type_text(function, slot))
    if not isinstance(value, (np.ndarray, *BUFFERS)):
        raise InputError(
            "I003",
            f"`{name}` is {wanted}: it takes a NumPy array, not {described(value)}",
            notes=stored_as(sys),
            hint=f"{name}.encode()"
            if isinstance(value, str) and dtype == np.uint8
            else sys.stored("np.array(…)")
            if sys.held_as
            else f"np.array(…, dtype=np.{dtype.name})",
        )
    buffer = not isinstance(value, np.ndarray)
    value = plain_view(wanted, name, value)
    _check_stored(wanted, name, value, sys, t.rank, buffer)
    if not value.flags.aligned:
        raise InputError(
            "I005",
            f"the elements of `{name}` are not aligned to their size",
            values={"strides": list(value.strides)},
            hint=f"pass a copy, np.require({name}, requirements='A')",
        )
    if not value.flags.c_contiguous and not _is_spread(value):
        raise InputError(
            "I005",
            f"`{name}` is a view whose elements overlap",
            values={"strides": list(value.strides), "shape": list(value.shape)},
            hint=f"pass a copy, np.ascontiguousarray({name})",
        )
    if changed and not value.flags.writeable:
        raise InputError(
            "I006",
            f"`{function.name}` changes `{name}`, and {'bytes are' if buffer else 'the array is'} "
            "read-only",
            hint=f"pass a copy: {f'bytearray({name})' if buffer else f'{name}.copy()'}",
        )
    # A view: what callbacks do to the array's shape, type and flags is not the run's matter.
    return value.view()


def stored_as(sys: NumberSystem) -> tuple[str, ...]:
    """A note on the storage format of arrays, if they do not hold the numbers themselves."""
    return (f"arrays of {sys.type} hold {sys.held_as}",) if sys.held_as else ()


def _check_stored(
    wanted: str, name: str, value: np.ndarray[Any, Any], sys: NumberSystem, rank: int, buffer: bool
) -> None:
    """Raise InputError I003 or I004 if an array has the wrong dtype or number of dimensions."""
    dtype = sys.dtype
    if value.dtype != dtype:
        raise InputError(
            "I003",
            f"`{name}` is {wanted}: its dtype must be {dtype.name}, not {value.dtype}",
            notes=stored_as(sys),
            hint=f"np.array(…, dtype=np.{dtype.name})"
            if buffer and not sys.held_as
            else f"convert it yourself, for example {sys.stored(name)}: nothing is copied silently",
        )
    if value.ndim != rank:
        raise InputError(
            "I004",
            f"`{name}` is {wanted}: it must have {count(rank, 'dimension')}, not {value.ndim}",
            values={"shape": list(value.shape)},
        )


def _is_spread(value: np.ndarray[Any, Any]) -> bool:
    """Whether an array's axes are nested in memory, so that no two elements share memory."""
    extent = value.itemsize
    axes = zip(map(abs, value.strides), value.shape, strict=True)
    for stride, n in sorted((s, n) for s, n in axes if n > 1):
        if stride < extent:
            return False
        extent += stride * (n - 1)
    return True


def is_stack_of_records(layout: Layout) -> bool:
    """Whether a parameter is a stack of records, stored as one stack for each field."""
    return isinstance(layout, Record) and layout.name.startswith("stack[")


def check_fields(function: Function, regs: list[Any]) -> None:
    """Raise InputError I004 unless the fields of each stack of records have equally many values."""
    for param in function.params:
        layout = param.layout
        if isinstance(layout, int) or not is_stack_of_records(layout):
            continue
        held = {k: len(regs[k]) // prod(function.registers[k].shape) for k in layout.slots()}
        if len(set(held.values())) > 1:
            each = ", ".join(f"`{function.registers[k].name}` {n}" for k, n in held.items())
            raise InputError(
                "I004",
                f"`{param.name}` is a {layout.name}, whose fields must hold equally many values",
                values={"values held": each},
            )


def check_lengths(function: Function, regs: list[Any]) -> None:
    """Raise InputError I004 unless all lengths agree with the parameters' types."""
    for slot in range(function.n_args):
        register = function.registers[slot]
        for axis, dim in enumerate(register.dims):
            if dim is None:
                continue
            want = _known_length(dim, regs)
            shape = regs[slot].shape
            if shape[axis] != want:
                raise other_length(function, register.name, slot, axis, want, shape)


def other_length(
    function: Function, name: str, slot: int, axis: int, want: int, shape: tuple[int, ...]
) -> InputError:
    """The error I004 for an array whose length on an axis is not the wanted one."""
    return InputError(
        "I004",
        f"`{name}` is {with_article(type_text(function, slot))}: "
        f"its length on axis {axis} must be {want}, not {shape[axis]}",
        values={"shape": list(shape)},
    )


def _known_length(dim: Expr, regs: list[Any]) -> int:
    match dim:
        case Const(v):
            return int(v)
        case Apply("dim", (Place(reg), Const(axis))):
            return int(regs[reg].shape[axis])
        case _:
            from rvm.engines.evaluate import evaluate

            return int(evaluate(dim, regs))


def _apart(function: Function, regs: list[Any], inout: frozenset[int]) -> None:
    """Raise InputError I007 if an array or list of the caller is changed and given twice."""
    arrays = [k for k in range(function.n_args) if isinstance(regs[k], (np.ndarray, list))]
    for i, j in combinations(arrays, 2):
        if i not in inout and j not in inout:
            continue
        a, b = regs[i], regs[j]
        shared = a is b or (
            isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)
        )
        if shared:
            one, two = function.registers[i].name, function.registers[j].name
            changed = one if i in inout else two
            raise InputError(
                "I007",
                f"`{one}` and `{two}` share memory, and `{function.name}` changes `{changed}`",
                hint="pass a copy of one of them",
            )


def result(
    function: Function, regs: list[Any], info: Info | Rounding, own: Own | None = None
) -> Result:
    """The parameters' values for the caller; arrays in `own` are the caller's objects."""
    if own:
        regs = [own.get(k, v) for k, v in enumerate(regs)]
    return Result({p.name: outside(function, p.layout, regs) for p in function.params}, info)


def outside(function: Function, layout: Layout, regs: list[Any]) -> Any:
    """A register's value (or a record's values) as Python objects; arrays are not copied."""
    if isinstance(layout, Record):
        return Result({f: outside(function, inner, regs) for f, inner in layout.fields})
    return from_register(function.registers[layout], regs[layout])


def as_python(t: RegisterType, raw: Any) -> Any:
    """A raw value as a Python object; arrays are not copied."""
    if raw is None or isinstance(t, Array):
        return raw
    sys = system(elem_of(t))
    if isinstance(t, Stack):
        if type(sys).to_python is NumberSystem.to_python:
            return list(raw)
        return [sys.to_python(v) for v in raw]
    return sys.to_python(raw)
