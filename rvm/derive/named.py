"""Derivatives by the names of parameters and fields: as callers give them, and receive them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import prod
from numbers import Complex, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.codes.words import described, with_article
from rvm.derive.places import wanted
from rvm.faults import InputError
from rvm.numbers import system
from rvm.program import Function, Layout, Record, slots_of
from rvm.run.binding import from_register, known_fields, rows_of, unknown
from rvm.run.results import Info, Result, Told
from rvm.transform.duals import bar_slots, bar_type
from rvm.types import Array, Scalar, Stack, elem_of


def zero_dual(function: Function, slot: int, held: Any) -> Any:
    """Zero duals for the contents of a parameter's register, as raw values."""
    t = bar_type(function.registers[slot].type)
    assert t is not None
    sys = system(elem_of(t))
    if isinstance(t, Array):
        return np.zeros(held.shape, sys.dtype)
    return [sys.zero] * len(held) if isinstance(t, Stack) else sys.zero


def bar_layout(layout: Layout, slots: Mapping[int, int]) -> Layout | None:
    """The layout of a parameter's duals, where it has any."""
    if isinstance(layout, int):
        return slots.get(layout)
    fields = tuple(
        (name, inner)
        for name, field in layout.fields
        if (inner := bar_layout(field, slots)) is not None
    )
    return Record(layout.name, fields) if fields else None


def by_parameter(
    function: Function,
    duals: Collection[int],
    shown: Callable[[int], Any],
    info: Told | None = None,
    wrt: Collection[str] | None = None,
) -> Result:
    """The result of `shown` for registers that have duals, by parameter, all or those in `wrt`."""
    slots = {k: k for k in duals}
    found = {}
    for p in function.params:
        layout = bar_layout(p.layout, slots)
        if layout is not None:
            found[p.name] = by_field(layout, shown)
    names = wanted(function, found, wrt)
    return Result({name: found[name] for name in found if name in names}, info)


def by_field(layout: Layout, shown: Callable[[int], Any]) -> Any:
    """The result of `shown` for a register, or for each field of a record."""
    if isinstance(layout, Record):
        return Result({field: by_field(inner, shown) for field, inner in layout.fields})
    return shown(layout)


def named_duals(
    function: Function, duals: Mapping[int, Any], info: Told, wrt: Collection[str] | None = None
) -> Result:
    """Duals by parameter register as a result by parameter, all or those in `wrt`."""

    def shown(slot: int) -> Any:
        t = bar_type(function.registers[slot].type)
        assert t is not None
        return from_register(replace(function.registers[slot], type=t), duals[slot])

    return by_parameter(function, duals, shown, info, wrt)


def named_errors(
    function: Function, errors: Mapping[int, NDArray[np.float64]], wrt: Collection[str] | None
) -> Result:
    """Errors by parameter register as a result by parameter, all or those in `wrt`."""

    def shown(slot: int) -> Any:
        held, register = errors[slot], function.registers[slot]
        if isinstance(register.type, Stack):
            return rows_of(register.shape, held)
        return held if isinstance(register.type, Array) else held.tolist()

    return by_parameter(function, errors, shown, wrt=wrt)


def add_seeds(
    function: Function, held: dict[int, Any], seeds: Mapping[str, Any], what: str = "adjoint"
) -> None:
    """Add derivatives given by parameter to those in the parameters' registers.

    InputError I002 (unknown), I003 (no derivatives, or wrong numbers), I004 (wrong shape).
    """
    if type(seeds) is not dict and not isinstance(seeds, Mapping):
        names = ", ".join(p.name for p in function.params)
        raise InputError(
            "I003",
            f"{what}s go by parameter, in a mapping, not as {described(seeds)}",
            hint=f"`{function.name}` has the parameters {names}",
        )
    for name, value in seeds.items():
        for p in function.params:
            if p.name == name:
                _add(function, held, what, name, p.layout, value)
                break
        else:
            raise unknown(function, name)


def _add(
    function: Function, held: dict[int, Any], what: str, name: str, layout: Layout, value: Any
) -> None:
    """Add to the contents of a register, or of each field of a record."""
    if isinstance(layout, Record):
        if not isinstance(value, Mapping):
            fields = ", ".join(field for field, _ in layout.fields)
            message = f"the {what} of `{name}` goes by field, in a mapping"
            raise InputError(
                "I003",
                f"{message}, not as {described(value)}",
                hint=f"`{name}` has the fields {fields}",
            )
        known_fields(name, layout, value)
        for field, inner in layout.fields:
            if field in value:
                _add(function, held, what, f"{name}.{field}", inner, value[field])
        return
    plain = held.get(layout)
    if type(plain) is type(value) is float:
        held[layout] = plain + value
        return
    if (
        type(plain) is type(value) is np.ndarray
        and plain.dtype == value.dtype
        and plain.shape == value.shape
    ):
        plain += value
        return
    register = function.registers[layout]
    t = register.type
    if layout not in held:
        raise InputError("I003", f"`{name}` is {with_article(t)}, which has no {what}")
    old = held[layout]
    if not _is_numeric(value, elem_of(t).is_complex):
        kind = "complex" if elem_of(t).is_complex else "real"
        raise InputError(
            "I003",
            f"the {what} of `{name}` is made of {kind} numbers, and cannot be " + described(value),
        )
    shape = np.shape(old)
    if register.shape and np.ndim(value) > 1:
        shape = (len(old) // prod(register.shape), *register.shape)
    if np.shape(value) != shape:
        raise InputError(
            "I004",
            f"the {what} of `{name}` must have the shape {list(shape)}",
            values={"shape": list(np.shape(value))},
        )
    if register.shape:
        value = np.ravel(value).tolist()
    if isinstance(old, list):
        held[layout] = [a + b for a, b in zip(old, value, strict=True)]
    elif isinstance(old, np.ndarray):
        old += value
    else:
        held[layout] = old + value


def _is_numeric(value: Any, is_complex: bool) -> bool:
    """Whether derivatives may be given so: as a real or complex number, or an array of them."""
    try:
        found = np.asarray(value)
    except ValueError:
        return False
    if found.dtype.kind == "O":
        return all(isinstance(v, Complex if is_complex else Real) for v in found.flat)
    return found.dtype.kind in ("biufc" if is_complex else "biuf")


def nested(layout: Layout, values: list[Any]) -> Any:
    """A parameter's value from raw register values: a record's as a dict."""
    if isinstance(layout, int):
        return values[layout]
    return {name: nested(inner, values) for name, inner in layout.fields}


def dressed(function: Function, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Raw scalars as `bind` takes them."""

    def dress(layout: Layout, value: Any) -> Any:
        if isinstance(layout, Record):
            return {name: dress(inner, value[name]) for name, inner in layout.fields}
        t = function.registers[layout].type
        if isinstance(t, Scalar):
            return system(t).to_python(value)
        if isinstance(t, Stack):
            return [system(t.elem).to_python(v) for v in value]
        return value

    return {p.name: dress(p.layout, inputs[p.name]) for p in function.params}


def chosen(
    function: Function, names: Collection[str] | None, option: str = "wrt"
) -> dict[str, Layout]:
    """The parameters of a matrix, by name: the layouts of the parts that have duals.

    InputError I008 if one of `names` is not among them.
    """
    slots = {k: k for k in bar_slots(function)}
    layouts = {p.name: bar_layout(p.layout, slots) for p in function.params}
    able = {name: layout for name, layout in layouts.items() if layout is not None}
    found = wanted(function, able, names, option)
    return {name: layout for name, layout in able.items() if name in found}


def leaves(layouts: Mapping[str, Layout]) -> list[int]:
    """The registers of chosen parameters, in order."""
    return [k for layout in layouts.values() for k in slots_of(layout)]


def by_names(
    rows: Mapping[str, Layout],
    columns: Mapping[str, Layout],
    blocks: Mapping[tuple[int, int], Any],
    info: Info | None,
) -> Result:
    """Blocks of a matrix by parameters, those of records by their fields."""

    def row(k: int) -> Result:
        return Result({n: by_field(inner, lambda j: blocks[k, j]) for n, inner in columns.items()})

    return Result({name: by_field(layout, row) for name, layout in rows.items()}, info)
