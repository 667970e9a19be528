"""Annotations, and classes of records, as types of the assembly language."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import fields
from keyword import iskeyword
from typing import Any

from rvm_asm.names import quoted
from rvm_asm.nodes import Application, Declared, Lit, Node, Operator, Ref, TypeRef, Word
from rvm_asm.stats import RecordDef

from rvm.isa.functions.conversions import conversion_target
from rvm.library.vocabulary import ArrayWord, StackWord
from rvm_python.table import type_named

_SIGNS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//"}


class WrongType(Exception):
    """An object that is not a type, with a message and a hint at a valid type."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class TypeReader:
    """Types at one place of a text: `rename` gives names of lengths that nothing else has."""

    def __init__(
        self,
        start: int,
        end: int,
        record: Callable[[type], str],
        rename: Callable[[str], str] = quoted,
    ) -> None:
        self.start = start
        self.end = end
        self.record = record
        self.rename = rename

    def type(self, value: Any) -> TypeRef:
        """The type that an object denotes; WrongType if it denotes none."""
        if isinstance(value, ArrayWord):
            inner = self.type(value.elem)
            dims = [self.length(d) for d in value.lengths]
            if inner.fields is not None or inner.dims:
                raise WrongType(f"{value!r} is an array of what is not a number")
            return TypeRef(inner.name, inner.frac, None, dims, self.start, self.end)
        if isinstance(value, StackWord):
            elem = Declared("", self.type(value.elem), self.start, self.end)
            return TypeRef("stack", None, [elem], None, self.start, self.end)
        if hasattr(value, "__rvm_record__"):
            return TypeRef(self.record(value), None, None, None, self.start, self.end)
        name = type_named(value)
        if not name:
            raise WrongType(
                f"{_shown(value)} is not a type of the machine",
                '`rvm.f64`, `rvm.i64`, …, `rvm.Array[rvm.f64, "n"]`, `rvm.Stack[rvm.f64]`, '
                "or no annotation",
            )
        target = conversion_target(name)
        frac = target.frac if target is not None and "(" in name else None
        return TypeRef(name.split("(")[0], frac, None, None, self.start, self.end)

    def length(self, value: Any) -> Node | None:
        """A length of an array: a number, a name, a formula of such, or any."""
        if value == ":" or value is Ellipsis or value == slice(None):
            return None
        if type(value) is int:
            return Lit(value, self.start, self.end)
        if isinstance(value, str):
            if value.isascii() and value.isidentifier() and not iskeyword(value):
                return Ref(self.rename(value), (), self.start, self.end)
            try:
                return self._formula(ast.parse(value, mode="eval").body)
            except SyntaxError:
                pass
        raise WrongType(f"{value!r} is not a length", 'a number, a name such as "n", or "2 * n"')

    def _formula(self, node: ast.expr) -> Node:
        start, end = self.start, self.end
        match node:
            case ast.Name(name):
                return Ref(self.rename(name), (), start, end)
            case ast.Constant(int(value)):
                return Lit(value, start, end)
            case ast.BinOp(left, op, right) if type(op) in _SIGNS:
                args = [self._formula(left), self._formula(right)]
                return Operator(_SIGNS[type(op)], args, start, end)
            case ast.Call(ast.Name("len" | "dim" as name), args):
                return Application(name, [self._formula(a) for a in args], start, end)
        raise WrongType(f"`{ast.unparse(node)}` is not a length", 'a name such as "n", or "2 * n"')


def record_definition(cls: type, name: str, reader: TypeReader) -> RecordDef:
    """The record that a class of `rvm.record` declares."""
    written = inspect.get_annotations(cls, eval_str=True)
    declared = []
    for field in fields(cls):
        if field.name not in written:
            raise WrongType(f"`{cls.__name__}.{field.name}` has no annotation in its class")
        t = reader.type(written[field.name])
        declared.append(Declared(quoted(field.name), t, reader.start, reader.end))
    return RecordDef(Word(name, reader.start, reader.end), [], declared)


def _shown(value: Any) -> str:
    return f"`{value.__name__}`" if isinstance(value, type) else f"{value!r}"[:80]
