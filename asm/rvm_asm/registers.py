"""The registers of one function: how declared types become registers, records included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from rvm.expr import Const, Expr
from rvm.program import Dim, Layout, Record, Register
from rvm.types import SCALARS, Array, RegisterType, Stack, elem_of, fixed, with_rank
from rvm.verify.nodes import MAX_RANK
from rvm_asm.generics import (
    FUNCTION,
    NUMBERS,
    RECORD,
    STACK,
    Types,
    TypeValue,
    class_text,
    listed,
    may_be,
    type_node,
)
from rvm_asm.habits import type_hint
from rvm_asm.messages import Reporter, did_you_mean
from rvm_asm.names import plain
from rvm_asm.nodes import Declared, Lit, Node, TypeRef
from rvm_asm.scope import Binding, NameGroup, Slot
from rvm_asm.stats import RecordDef

MAX_LEAVES = 1 << 12
"""Registers that one declaration may make: nested records multiply."""
MAX_RECORDS = 100
"""The largest nesting depth of records, equal to that of types written in one place."""
_DimOf = Callable[[Node | None, Slot, int], Expr | None]
"""A function from a node, the register and the axis to the dimension of the register."""


class TypeProblem(Exception):
    """A declared type that means nothing; already reported."""


class RegisterWriter:
    """The growing list of a function's registers."""

    def __init__(
        self, records: dict[str, RecordDef], report: Reporter, types: Callable[[], Types] = dict
    ) -> None:
        self.records = records
        self.report = report
        self.types = types
        """The values of type parameters."""
        self.list: list[Register] = []
        self.dims: list[Dim] = []
        self.aliases: dict[str, Slot] = {}
        """Registers of parameters that have names of their own."""
        self.paths: dict[str, Slot] = {}
        """All leaves by the paths that lead to them, as they are made."""
        self.keeps_numbers = False
        """Whether the contents of stacks of arrays are named number by number."""
        self.shaped = False
        """Whether there are stacks of arrays."""
        self._built = 0
        self._shared: dict[tuple[str, str], list[int]] = {}

    def declare(self, declared: Declared, dim: _DimOf, owner: str | None = None) -> Binding:
        """Registers for a declared name.

        With an `owner`, a register that the same owner (the function itself, or an expansion of
        the same macro at the same depth) declared before is shared if type and lengths agree.
        """
        self._built = 0
        return self._build(declared.name, declared, (), dim, owner, self.types())

    def _build(
        self,
        path: str,
        declared: Declared,
        lead: tuple[Node | None, ...],
        dim: _DimOf,
        owner: str | None,
        types: Types,
        around: tuple[str, ...] = (),
        stacked: bool = False,
    ) -> Slot | NameGroup:
        assert declared.type is not None
        written = self._resolved(declared.type, types)
        held = self._held(written, types)
        if held is not None:
            if stacked or lead or written.dims:
                self._no_stack(written)
            declared = Declared(declared.name, held, declared.start, declared.end)
            return self._build(path, declared, (), dim, owner, types, around, stacked=True)
        fields = written.fields
        args: tuple[TypeValue, ...] = ()
        if fields is None and written.name in self.records:
            fields = self.records[written.name].fields
            args, written = self._record_args(written, types)
            types = dict(zip((p.name for p in self.records[written.name].types), args, strict=True))
        elif written.args is not None:
            self.problem("A011", f"`{written.name}` has no type parameters", written)
        dims = (*lead, *(written.dims or ()))
        if fields is not None and written.name not in ("stack", "func"):
            if stacked and dims:
                self._no_stack(written)
            self._built += len(fields)
            if written.name in around:
                self.problem("A011", f"the record `{written.name}` contains itself", written)
            if self._built > MAX_LEAVES:
                what = f"the record `{written.name}` has more than {MAX_LEAVES} registers"
                self.problem("A011", what, written)
            if len(around) >= MAX_RECORDS:
                what = f"records nest deeper than {MAX_RECORDS} levels"
                self.problem("A011", what, written)
            inner = (*around, written.name) if written.name in self.records else around
            made: dict[str, Slot | NameGroup] = {}
            for f in fields:
                made[f.name] = self._build(
                    f"{path}.{f.name}", f, dims, dim, owner, types, inner, stacked
                )
            return NameGroup(written.name, made, len(dims), args, stacked)
        t = self._leaf_type(written, len(dims), types)
        of = dims if stacked else self._on_stack(written, types)
        if stacked:
            t, dims = Stack(elem_of(t)), ()
        shape = tuple(self._constant(d, dim, t, k, written) for k, d in enumerate(of))
        slot = self._leaf(plain(declared.register or path), t, dims, dim, owner, shape)
        slot.shape = () if self.keeps_numbers else shape
        self.shaped |= bool(slot.shape)
        self.paths[path] = slot
        if declared.register:
            self.aliases[declared.register] = slot
        return slot

    def _held(self, written: TypeRef, types: Types) -> TypeRef | None:
        """The record type of a stack's elements; None for anything else."""
        inner = written.fields[0].type if written.name == "stack" and written.fields else None
        if inner is None:
            return None
        inner = self._resolved(inner, types)
        is_record = inner.fields is not None and inner.name not in ("stack", "func")
        return inner if is_record or inner.name in self.records else None

    def _on_stack(self, written: TypeRef, types: Types) -> tuple[Node | None, ...]:
        """The lengths of the arrays that a stack holds; () if it is not a stack, or of others."""
        inner = written.fields[0].type if written.name == "stack" and written.fields else None
        return () if inner is None else tuple(self._resolved(inner, types).dims or ())

    def _constant(
        self, node: Node | None, dim: _DimOf, t: RegisterType, axis: int, written: TypeRef
    ) -> int:
        """A length of an array on a stack."""
        slot = Slot(len(self.list), t)
        found = Const(node.value) if isinstance(node, Lit) else dim(node, slot, axis)
        if not isinstance(found, Const) or type(found.value) is not int or found.value < 1:
            what = "the lengths of arrays on a stack are constants, and at least 1"
            self.problem("A011", what, written)
        return found.value

    def _no_stack(self, written: TypeRef) -> NoReturn:
        what = "a stack holds numbers, arrays or records of them, and is not an array"
        self.problem("A011", what, written)

    def _leaf(
        self,
        name: str,
        t: RegisterType,
        dims: tuple[Node | None, ...],
        dim: _DimOf,
        owner: str | None,
        shape: tuple[int, ...],
    ) -> Slot:
        slot = Slot(len(self.list), t)
        if not dims:
            register = Register(name, t, shape=shape)
        else:
            self.list.append(Register(name, t))  # so that a length may name it
            lengths = tuple(dim(d, slot, k) for k, d in enumerate(dims))
            self.list.pop()
            register = Register(name, t, lengths)
        return self._enter(register, owner)

    def local(self, name: str, t: RegisterType, owner: str, lengths: tuple[Expr, ...] = ()) -> Slot:
        """A register of the assembler's own, shared as `declare` does."""
        return self._enter(Register(name, t, lengths), owner)

    def retire(self, reg: int) -> None:
        """Stop sharing a register: it is left live where others of its name may begin."""
        for same in self._shared.values():
            if reg in same:
                same.remove(reg)

    def _enter(self, register: Register, owner: str | None) -> Slot:
        slot = Slot(len(self.list), register.type)
        if owner is not None:
            same = self._shared.setdefault((owner, register.name), [])
            for reg in same:
                if self.list[reg] == register:
                    return Slot(reg, register.type)
            same.append(slot.reg)
        self.list.append(register)
        return slot

    # Type parameters.

    def _resolved(self, written: TypeRef, types: Types) -> TypeRef:
        """The type with a type parameter replaced by its value."""
        value = types.get(written.name)
        if value is None or written.fields is not None:
            return written
        if value.kind == FUNCTION:
            self.problem("A011", f"`{plain(written.name)}` is a function, not a type", written)
        if value.kind == STACK and written.dims:
            self._no_stack(written)
        return value.written(written.name, written)

    def _record_args(self, written: TypeRef, types: Types) -> tuple[tuple[TypeValue, ...], TypeRef]:
        """The types in brackets after a record's name, and the rest of the written type."""
        params = self.records[written.name].types
        name = plain(written.name)
        if not params:
            if written.args is not None:
                self.problem("A011", f"the record `{name}` has no type parameters", written)
            return (), written
        nodes, dims = written.args, written.dims
        if nodes is None:
            nodes, dims = dims, None
        names = ", ".join(plain(p.name) for p in params)
        if nodes is None or len(nodes) != len(params):
            self.problem(
                "A011",
                f"the record `{name}` takes types for {names}",
                written,
                f"`{name}[f64]`" + (", and its lengths after them" if dims is None else ""),
            )
        values: list[TypeValue] = []
        for p, node in zip(params, nodes, strict=True):
            inner = type_node(node)
            if inner is None:
                self.problem("A011", f"the record `{name}` takes types for {names}", written)
            values.append(self.value(inner, types))
            if values[-1].kind != NUMBERS or values[-1].rank or not may_be(p, values[-1]):
                self.problem(
                    "A072",
                    f"the record `{name}` takes {class_text(p)}, not {values[-1]}",
                    inner,
                    f"it may be {listed(p)}",
                )
        rest = TypeRef(written.name, None, None, dims, written.start, written.end)
        return tuple(values), rest

    def value(
        self, written: TypeRef, types: Types | None = None, functions: Sequence[str] = ()
    ) -> TypeValue:
        """A type that is written in brackets, as a value; a name of one of `functions`, too."""
        types = self.types() if types is None else types
        known = types.get(written.name)
        if known is not None:
            if not written.dims:
                return known
            written = self._resolved(written, types)
        rank = len(written.dims or ())
        name = written.name
        if name in self.records and written.fields is None:
            args, written = self._record_args(written, types)
            return TypeValue(RECORD, name=name, rank=len(written.dims or ()), args=args)
        if name in functions and written.fields is None:
            return TypeValue(FUNCTION, name=name)
        if written.fields is not None and name != "stack":
            self.problem("A011", "a type in brackets has a name", written)
        t = self._leaf_type(written, rank, types)
        if isinstance(t, Stack):
            if self._on_stack(written, types):
                what = "a type parameter can be a stack of numbers, not of arrays"
                self.problem("A011", what, written)
            return TypeValue(STACK, t.elem)
        return TypeValue(NUMBERS, t.elem if isinstance(t, Array) else t, rank=rank)

    def register_type(self, written: TypeRef, rank: int) -> RegisterType:
        """The type of a leaf with `rank` dimensions."""
        types = self.types()
        resolved = self._resolved(written, types)
        return self._leaf_type(
            resolved, rank + len(resolved.dims or ()) - len(written.dims or ()), types
        )

    def _leaf_type(self, written: TypeRef, rank: int, types: Types) -> RegisterType:
        name = written.name
        if name == "stack" and written.fields:
            inner = written.fields[0].type
            assert inner is not None
            inner = self._resolved(inner, types)
            elem = self._leaf_type(inner, len(inner.dims or ()), types)
            if isinstance(elem, Stack) or rank:
                self._no_stack(written)
            return Stack(elem_of(elem))
        if rank > MAX_RANK:
            self.problem("A011", f"an array has at most {MAX_RANK} dimensions", written)
        scalar = SCALARS.get(name)
        if scalar is None:
            known = [*SCALARS, "stack", *self.records, *types]
            if written.is_function:
                self.problem(
                    "A011", "functions are parameters of functions, and nothing else", written
                )
            if name == "stack":
                self.problem("A011", "a stack names its elements", written, "`stack[f64]`")
            hint = type_hint(name) or did_you_mean(name, known)
            self.problem("A011", f"there is no type `{name}`", written, hint)
        if written.frac is not None:
            if written.frac > 62:
                self.problem("A011", "a `fixed` has 0 to 62 fraction bits", written)
            scalar = fixed(written.frac)
        return with_rank(scalar, rank)

    def problem(self, code: str, message: str, written: TypeRef, hint: str = "") -> NoReturn:
        """Report a type that means nothing, and give the declaration up."""
        self.report.about(written, code, message, hint=hint)
        raise TypeProblem


def layout(binding: Binding) -> Layout:
    """A parameter's layout over its registers."""
    if isinstance(binding, Slot):
        return binding.reg
    assert isinstance(binding, NameGroup)
    return Record(str(binding), tuple((plain(n), layout(f)) for n, f in binding.fields.items()))
