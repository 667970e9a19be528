"""Inference of a called function's type parameters from its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rvm.isa.rules import default_type
from rvm.numbers import Fixed, LogNumber, system
from rvm.numbers.base import BUFFERS, plain_array
from rvm.types import (
    BOOL,
    C128,
    F64,
    I64,
    LOG64,
    SCALARS,
    RegisterType,
    Scalar,
    Stack,
    elem_of,
    fixed,
    rank_of,
    with_rank,
)
from rvm_asm.generics import NUMBERS, RECORD, STACK, TypeValue, may_be, numbers, type_node
from rvm_asm.names import plain
from rvm_asm.nodes import TypeParam, TypeRef
from rvm_asm.registers import MAX_RECORDS
from rvm_asm.scope import NameGroup, Slot
from rvm_asm.stats import Func, RecordDef


@dataclass(frozen=True, slots=True)
class Shape:
    """The known type of an argument: its leaves' types, and its record if it is one."""

    leaves: tuple[RegisterType, ...]
    record: TypeValue | None = None
    stacked: bool = False
    """Whether it is a stack of such records."""

    def element(self) -> Shape:
        """The shape of an element selected by one leading index."""
        record = None if self.record is None else replace(self.record, rank=self.record.rank - 1)
        return Shape(tuple([with_rank(elem_of(t), rank_of(t) - 1) for t in self.leaves]), record)


def shape_of(binding: Slot | NameGroup) -> Shape:
    """The shape of a parameter."""
    if isinstance(binding, Slot):
        return Shape((binding.type,))
    types = tuple(s.type for s in binding.leaves())
    return Shape(types, record_of(binding, binding.rank), binding.stacked)


def record_of(group: NameGroup, rank: int) -> TypeValue:
    """The type of a record, with this many leading dimensions."""
    return TypeValue(RECORD, name=group.record, rank=rank, args=group.args)


@dataclass(frozen=True, slots=True)
class Given:
    """The types that a value from outside of programs may have.

    The first that a parameter allows is it.  A `weak` one, a plain number, says nothing where
    another argument has said something.
    """

    types: tuple[Scalar, ...]
    rank: int = 0
    weak: bool = False
    is_stack: bool = False


def literal(value: Any, rank: int = 0) -> Given:
    """A plain number, or an array or a stack of such."""
    wider = () if isinstance(value, bool) else (F64, C128)
    return Given((default_type(value), *wider), rank, weak=True)


def given(value: Any) -> Given:
    """The types that a caller's value in Python may have."""
    if isinstance(value, Given):
        return value
    if isinstance(value, BUFFERS):
        value = plain_array(value)
    if isinstance(value, (np.ndarray, np.generic)):
        # Of types that are stored alike the first: int64 is i64, and fixed where it is named.
        types = tuple(t for t in SCALARS.values() if system(t).dtype == value.dtype)[:1]
        if isinstance(value, np.ndarray):
            return Given(types, value.ndim)
        return Given((*types, F64, C128), weak=True)
    if isinstance(value, list):
        first = value[0] if value else 0.0
        found = given(first) if isinstance(first, (Fixed, LogNumber)) else literal(first)
        return replace(found, weak=True, is_stack=True)
    if isinstance(value, Fixed):
        return Given((fixed(value.frac),))
    if isinstance(value, LogNumber):
        return Given((LOG64,))
    if isinstance(value, (bool, int, float, complex)):
        return literal(value)
    return Given((), weak=True)


class Conflict(Exception):
    """A type parameter that would need two different values."""

    def __init__(self, name: str, one: TypeValue, by: str, two: TypeValue, where: str) -> None:
        super().__init__(name)
        self.name = name
        self.message = f"`{plain(name)}` is {one} by `{by}`, and {two} by `{where}`"
        both = one.kind == two.kind == NUMBERS and one.rank == two.rank
        self.hint = f"convert one of them: `{one.elem}(…)`" if both else ""


class Inference:
    """The type parameters of one function, as they are found out."""

    def __init__(self, func: Func, records: Mapping[str, RecordDef]) -> None:
        self.params: dict[str, TypeParam] = {p.name: p for p in func.types}
        self.records = records
        self.found: dict[str, TypeValue] = {}
        self._by: dict[str, str] = {}
        """For each parameter that is found the argument that it was found by."""
        self._weak: dict[str, Scalar] = {}
        """Type parameters known only from plain numbers, with the resulting types."""

    @property
    def missing(self) -> list[str]:
        return [name for name in self.params if name not in self.found]

    def set(self, name: str, value: TypeValue, where: str) -> None:
        """Set the value of a parameter; Conflict if it has another one already."""
        known = self.found.setdefault(name, value)
        self._by.setdefault(name, where)
        if known != value:
            raise Conflict(name, known, self._by[name], value, where)

    def by(self, name: str) -> str:
        """The source of a type parameter's value, for messages."""
        where = self._by.get(name, "[")
        return "here" if where.startswith("[") else f"by `{where}`"

    def argument(self, written: TypeRef, shape: Shape, where: str) -> None:
        """Infer from an argument for a parameter of the type `written`.

        What does not fit is ignored here: it is reported when the call is checked.
        """
        if shape.stacked:
            inner = written.fields[0].type if written.name == "stack" and written.fields else None
            if inner is not None:
                elems = tuple(map(elem_of, shape.leaves))
                self.argument(inner, Shape(elems, shape.record), where)
            return
        whole = self.params.get(written.name)
        dims = len(written.dims or ())
        if whole is not None and shape.record is not None:
            rank = shape.record.rank - dims
            if rank >= 0:
                record = shape.record
                self.set(
                    written.name, TypeValue(RECORD, F64, record.name, rank, record.args), where
                )
            return
        leaves = list(self._leaves(written, 0, {}))
        if len(leaves) != len(shape.leaves):
            return
        for (_, leaf, rank), t in zip(leaves, shape.leaves, strict=True):
            self._leaf(leaf, rank, t, where)

    def _leaf(self, written: TypeRef, rank: int, t: RegisterType, where: str) -> None:
        if written.name == "stack" and written.fields:
            inner = written.fields[0].type
            if isinstance(t, Stack) and inner is not None and inner.name in self.params:
                self.set(inner.name, TypeValue(NUMBERS, t.elem), where)
            return
        p = self.params.get(written.name)
        if p is None:
            return
        value = numbers(t, 0 if _is_scalar(p) else rank)
        if value is not None and not (_is_scalar(p) and value.kind != NUMBERS):
            self.set(p.name, TypeValue(NUMBERS, value.elem) if _is_scalar(p) else value, where)

    def given(self, written: TypeRef, value: Any, where: str, *, weak: bool) -> None:
        """Infer from a caller's value; for a record, a mapping or an object with its fields.

        Weak ones are used last.
        """
        for path, leaf, rank in self._leaves(written, 0, {}):
            try:
                found = given(_part(value, path))
            except (KeyError, AttributeError, IndexError, TypeError, ValueError):
                continue
            if found.weak is weak and found.types:
                self._given(leaf, rank, found, where)

    def _given(self, written: TypeRef, rank: int, found: Given, where: str) -> None:
        inner = written.fields[0].type if written.name == "stack" and written.fields else None
        p = self.params.get(written.name if inner is None else inner.name)
        if p is None or (found.weak and p.name in self.found and not self._is_wider(p, found)):
            return
        if found.weak:
            self._weak[p.name] = found.types[0]
            self.found.pop(p.name, None)
        elems = [TypeValue(NUMBERS, t) for t in found.types]
        elem = next((e for e in elems if may_be(p, e)), elems[0]).elem
        if inner is not None or _is_scalar(p):
            self.set(p.name, TypeValue(NUMBERS, elem), where)
        elif found.is_stack and not rank:
            self.set(p.name, TypeValue(STACK, elem), where)
        elif found.rank >= rank:
            self.set(p.name, TypeValue(NUMBERS, elem, rank=found.rank - rank), where)

    def _is_wider(self, p: TypeParam, found: Given) -> bool:
        """Whether this one of several numbers needs a wider type: of 1 and 2.5, it is 2.5.

        NumPy's own, such as a float32, say more than plain ones.
        """
        known, t = self._weak.get(p.name), found.types[0]
        order = (BOOL, I64, F64, C128)
        return known in order and (t not in order or order.index(t) > order.index(known))

    def _leaves(
        self,
        written: TypeRef,
        lead: int,
        renamed: Mapping[str, TypeRef],
        path: tuple[str, ...] = (),
    ) -> Iterator[tuple[tuple[str, ...], TypeRef, int]]:
        """The leaves of a parameter's type: path, type, and how many dimensions it is written."""
        written = renamed.get(written.name, written) if written.fields is None else written
        fields = written.fields
        dims = written.dims
        inner = renamed
        definition = self.records.get(written.name) if fields is None else None
        if definition is not None:
            fields = definition.fields
            nodes = written.args
            if definition.types and nodes is None:
                nodes, dims = dims, None
            args = [type_node(n) for n in nodes or ()]
            names = (p.name for p in definition.types)
            inner = {n: a for n, a in zip(names, args, strict=False) if a is not None}
        rank = lead + len(dims or ())
        if fields is None or written.name in ("stack", "func") or len(path) > MAX_RECORDS:
            yield path, written, rank
            return
        for f in fields:
            if f.type is not None:
                more = len(f.type.dims or ()) if f.type.name in inner else 0
                yield from self._leaves(f.type, rank + more, inner, (*path, plain(f.name)))


def _is_scalar(p: TypeParam) -> bool:
    """Whether a parameter is of numbers alone, never of arrays of them."""
    return bool(p.classes) and not p.shaped


def _part(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        by_key = isinstance(value, (Mapping, np.ndarray, np.void))
        value = value[name] if by_key else getattr(value, name)
    return value
