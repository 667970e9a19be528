"""A map's arguments in registers, and back: values by lane separate from shared values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rvm.codes.words import count, with_article
from rvm.faults import InputError
from rvm.numbers import system
from rvm.numbers.base import BUFFERS, NumberSystem
from rvm.program import Function, Layout, Record, Register, type_text
from rvm.run.binding import (
    bind,
    check_fields,
    from_register,
    held,
    held_in,
    is_stack_of_records,
    parts,
    plain_view,
    stored_as,
)
from rvm.run.results import Result
from rvm.types import Array, Scalar, Stack, elem_of, rank_of


class Lanes:
    """The arguments of a map: shared values as raw registers, and values by lane."""

    def __init__(self, function: Function, inputs: Mapping[str, Any]) -> None:
        self.function = function
        self.varying: dict[int, Any] = {}
        self._named: dict[int, str] = {}
        sample = dict(inputs)
        for p in function.params:
            if p.name in inputs:
                sample[p.name] = self._one(p.name, p.layout, inputs[p.name])
        self._equally_many()
        self.regs: list[Any] = bind(function, sample, frozenset())
        if not self.varying:
            raise InputError(
                "I020",
                f"no argument of `{function.name}` is given by lane",
                hint="give at least one argument one dimension more than its parameter has: "
                + next((_example(function, p.layout, p.name) for p in function.params), ""),
            )
        self.size = len(next(iter(self.varying.values())))
        if any(is_stack_of_records(p.layout) for p in function.params):
            for k in range(self.size):
                check_fields(function, self.lane(k))

    def _equally_many(self) -> None:
        """Raise InputError I021 unless all lane axes have the same length."""
        sizes = {self._named[k]: len(v) for k, v in self.varying.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(
                "I021",
                "the arguments given by lane do not have equally many lanes",
                values=dict(sizes),
                hint="the first axis of each is that of the lanes",
            )

    def _one(self, name: str, layout: Layout, value: Any) -> Any:
        """The value of an argument in one lane; an argument by lane is stored separately."""
        if isinstance(layout, Record):
            found = [self._one(*part) for part in parts(name, layout, value)]
            return dict(zip((field for field, _ in layout.fields), found, strict=True))
        t = self.function.registers[layout].type
        if isinstance(value, (np.ndarray, *BUFFERS)):
            wanted = with_article(type_text(self.function, layout))
            value = plain_view(wanted, name, value)
        if isinstance(t, Stack):
            register = self.function.registers[layout]
            if isinstance(value, list) and value and all(_is_stack(register, v) for v in value):
                self._aside(layout, name, [held_in(register, name, v) for v in value])
                return value[0]
            return value
        if isinstance(t, Scalar):
            return self._scalar(name, layout, t, value)
        if isinstance(value, np.ndarray) and value.ndim == t.rank + 1:
            dtype = system(t.elem).dtype
            if value.dtype != dtype:
                raise self._dtype(name, layout, system(t.elem), value)
            self._aside(layout, name, value)
            return np.zeros(value.shape[1:], dtype)
        return value

    def _scalar(self, name: str, layout: int, t: Scalar, value: Any) -> Any:
        sys = system(t)
        if isinstance(value, (list, tuple)):
            raw = np.array([held(t, name, v) for v in value], sys.dtype)
        elif isinstance(value, np.ndarray) and value.ndim == 1:
            raw = value
            if t.is_fixed and value.dtype == np.float64:
                raw = np.array([held(t, name, v) for v in value.tolist()], sys.dtype)
            if raw.dtype != sys.dtype:
                raise self._dtype(name, layout, sys, value)
        else:
            return value
        self._aside(layout, name, raw)
        return sys.to_python(sys.zero)

    def _aside(self, layout: int, name: str, raw: Any) -> None:
        self.varying[layout] = raw
        self._named[layout] = name

    def _dtype(self, name: str, layout: int, sys: NumberSystem, value: Any) -> InputError:
        return InputError(
            "I003",
            f"`{name}` is {with_article(type_text(self.function, layout))}: "
            f"by lane its dtype must be {sys.dtype.name}, not {value.dtype}",
            notes=stored_as(sys),
            hint=f"convert it yourself, for example {sys.stored(name)}: "
            "nothing is converted silently",
        )

    def lane(self, k: int) -> list[Any]:
        """The raw values of one lane by register."""
        return [self.varying[r][k] if r in self.varying else v for r, v in enumerate(self.regs)]


def _is_stack(register: Register, value: Any) -> bool:
    """Whether a value is a plain list for a stack, and not an array."""
    if not isinstance(value, list) or not register.shape:
        return isinstance(value, list)
    return not value or isinstance(value[0], np.ndarray) or _depth(value) > len(register.shape)


def _depth(value: Any) -> int:
    """The nesting depth of lists, found from the first element of each."""
    return 1 + (_depth(value[0]) if value else 0) if isinstance(value, list) else 0


def _example(function: Function, layout: Layout, name: str) -> str:
    while isinstance(layout, Record):
        field, layout = layout.fields[0]
        name = f"{name}.{field}"
    t = function.registers[layout].type
    if isinstance(t, Stack):
        inner = "arrays" if function.registers[layout].shape else "numbers"
        return f"`{name}` as a list of lists of {inner}"
    dtype = system(elem_of(t)).dtype.name
    return f"`{name}` as an array of {count(rank_of(t) + 1, 'dimension')} of {dtype}"


def values_of(function: Function, layout: Layout, regs: list[Any]) -> Any:
    """A parameter's values as Python objects: arrays by lane as they are, shared ones as given."""
    if isinstance(layout, Record):
        return Result({f: values_of(function, inner, regs) for f, inner in layout.fields})
    t, raw = function.registers[layout].type, regs[layout]
    sys = system(elem_of(t))
    if isinstance(t, Stack):
        register = function.registers[layout]
        if raw and isinstance(raw[0], list):
            return [from_register(register, held) for held in raw]
        return from_register(register, raw)
    if isinstance(t, Array) or isinstance(raw, np.ndarray):
        return raw
    return sys.to_python(raw)
