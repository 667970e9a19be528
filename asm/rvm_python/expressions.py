"""Expressions of Python as nodes of the assembler."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rvm_asm.messages import did_you_mean
from rvm_asm.names import quoted
from rvm_asm.nodes import Application, FieldStep, Lit, Node, Operator, Range, Ref, Sub

from rvm.isa.rows import reduction_by
from rvm.library.generic import GenericFunction
from rvm.library.handle import FunctionHandle
from rvm.library.reversible import Adding, PythonOrigin
from rvm_python.changes import root, shown
from rvm_python.messages import INSTEAD, REFUSED, UNREAD
from rvm_python.names import Names
from rvm_python.scope import MISSING, Block, Shorthand
from rvm_python.table import function_named, is_real, opcode_named

MAX_DEPTH = 90
"""The largest nesting depth of expressions."""
MAX_NODES = 4096
"""The largest size of an expression, with the meanings of names inserted."""
SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.USub: "-",
    ast.Invert: "~",
    ast.Not: "not",
    ast.And: "and",
    ast.Or: "or",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
"""Operators that Python has of whole numbers only, also where a real number is one."""
_PYTHONS = {"re": "real", "im": "imag"}
"""The parts of a complex number, and Python's names of them."""
_PARTS = {name: part for part, name in _PYTHONS.items()}
_METHODS = {"conjugate": "conj", "conj": "conj", "sum": "sum", "prod": "prod", "max": "amax",
            "min": "amin", "dot": "@", "transpose": "transpose"}  # fmt: skip


class Expressions(Names):
    """Reads the expressions of one function."""

    def operand(self, e: ast.expr) -> Node:
        """A whole expression."""
        self._depth = self._count = 0
        return self.node(e)

    def node(self, e: ast.expr) -> Node:
        """An expression, or a part of one."""
        self._count += 1
        self._depth += 1
        if self._depth > MAX_DEPTH or self._count > MAX_NODES:
            much = "nests too deeply" if self._depth > MAX_DEPTH else "is too large"
            self.refuse(
                "A046", f"the expression {much}", e, "`with rvm.ancilla(…) as t:` holds a part"
            )
        out: Node
        start, end = self.at(e)
        links = _links(e)
        value = self.constant(e) if len(links) <= MAX_DEPTH else MISSING
        if len(links) > MAX_DEPTH:
            out = self._chain(links)
        elif value is not MISSING:
            out = self._literal(value, e)
        else:
            out = self._node(e, start, end)
        self._depth -= 1
        return out

    def _chain(self, links: list[ast.BinOp]) -> Node:
        """A long chain of operators, the last of them first."""
        out = self.node(links[-1].left)
        for link in reversed(links):
            self._count = 0
            right = self.node(link.right)
            out = Operator(SIGNS[type(link.op)], [out, right], *self.at(link))
        return out

    def _node(self, e: ast.expr, start: int, end: int) -> Node:
        match e:
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._value_of(e)
            case ast.BinOp(left, op, right) if type(op) in SIGNS:
                if type(op) in _OF_BITS and any(
                    isinstance(self.constant(k), float) for k in (left, right)
                ):
                    sign = SIGNS[type(op)]
                    self.refuse("A040", f"`{sign}` is of whole numbers, not of real ones", e)
                return Operator(SIGNS[type(op)], [self.node(left), self.node(right)], start, end)
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.node(operand)
            case ast.UnaryOp(op, operand):
                return Operator(SIGNS[type(op)], [self.node(operand)], start, end)
            case ast.BoolOp(op, values):
                return self._joined(SIGNS[type(op)], [self.node(v) for v in values], start, end)
            case ast.Compare(left, ops, rights):
                return self._compared(e, [left, *rights], ops)
            case ast.IfExp(test, body, orelse):
                chosen = self.constant(test)
                if isinstance(chosen, bool):
                    return self.node(body if chosen else orelse)
                parts = [self.node(test), self.node(body), self.node(orelse)]
                return Application("choose", parts, start, end)
            case ast.Call():
                return self._call(e, start, end)
        return self.refuse_kind(e)

    def _joined(self, sign: str, parts: Sequence[Node], start: int, end: int) -> Node:
        out = parts[0]
        for part in parts[1:]:
            out = Operator(sign, [out, part], start, end)
        return out

    def _compared(self, e: ast.expr, terms: Sequence[ast.expr], ops: Sequence[ast.cmpop]) -> Node:
        parts: list[Node] = []
        start, end = self.at(e)
        for k, op in enumerate(ops):
            if type(op) not in SIGNS:
                word = {ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
                self.refuse(UNREAD, f"`{word[type(op)]}` is not read", e, "compare with `==`")
            a, b = self.node(terms[k]), self.node(terms[k + 1])
            parts.append(Operator(SIGNS[type(op)], [a, b], a.start, b.end))
        return self._joined("and", parts, start, end)

    def _literal(self, value: Any, e: ast.expr) -> Lit:
        if isinstance(value, tuple):
            self.refuse(
                UNREAD,
                "a tuple cannot be used as a value here",
                e,
                "take one of its numbers: `t[0]`",
            )
        return Lit(value, *self.at(e))

    def _value_of(self, e: ast.expr) -> Node:
        """A name, an element or a field, as a value."""
        match e:
            case ast.Subscript(ast.Attribute(array, "shape"), index) if self.is_local(array):
                return self._length(e, array, index)
            case ast.Attribute(value, "shape" | "size" | "ndim" as what) if self.is_local(value):
                self.refuse(UNREAD, f"`.{what}` has no value here", e, "`len(x)`, or `x.shape[0]`")
        if self.is_local(e):
            root: Any = e
            while not isinstance(root, ast.Name):
                root = root.value
            if isinstance(self.names.get(root.id), Shorthand) and isinstance(e, ast.Name):
                short = self.local(root)
                assert isinstance(short, Shorthand)
                with self._within(short):
                    return self.node(short.value)
            return self.place(e)
        if isinstance(e, ast.Subscript) and not isinstance(e.value, (ast.Name, ast.Attribute)):
            if type(e.value) in REFUSED:
                self.refuse_kind(e.value)
            self.refuse("A052", "only a place has elements", e)
        return self._no_value(e)

    def place(self, e: ast.expr) -> Ref:
        """A place: a name with elements, fields and parts."""
        start, end = self.at(e)
        match e:
            case ast.Name(name):
                found = self.local(e)
                if isinstance(found, Shorthand):
                    with self._within(found):
                        return self.place(found.value)
                if isinstance(found, Block):
                    self.refuse(UNREAD, f"`{name}` is a block, not a value", e, f"`{name}.undo()`")
                return Ref(found.name, (), start, end)
            case ast.Attribute(value, name):
                inner = self.place(value)
                step = FieldStep(_PARTS.get(name, quoted(name)), inner.end, end)
                return Ref(inner.name, (*inner.steps, step), start, end)
            case ast.Subscript(value, index):
                inner = self.place(value)
                items = index.elts if isinstance(index, ast.Tuple) else [index]
                read = [self._item(i, inner, k) for k, i in enumerate(items)]
                return Ref(inner.name, (*inner.steps, Sub(read, inner.end, end)), start, end)
        text = f"`{shown(e)}` is not a place"
        return self.refuse("A052", text, e, "a name, `x[i]`, `p.field`")

    def _item(self, e: ast.expr, whole: Ref, axis: int) -> Node | Range:
        if not isinstance(e, ast.Slice):
            return self._counted(e, whole, axis)
        by = None if e.step is None else self.node(e.step)
        low = None if e.lower is None else self._counted(e.lower, whole, axis)
        high = None if e.upper is None else self._counted(e.upper, whole, axis)
        return Range(low, high, by)

    def _counted(self, e: ast.expr, whole: Ref, axis: int) -> Node:
        """An index; a written negative one counts from the end."""
        value = self.constant(e)
        if type(value) is not int or value >= 0:
            if isinstance(e, ast.Constant) and value is MISSING:
                self.refuse(UNREAD, f"`{ast.unparse(e)}` is not an index", e)
            return self.node(e)
        start, end = self.at(e)
        length = Application("dim", [whole, Lit(axis, start, end)], start, end)
        return Operator("-", [length, Lit(-value, start, end)], start, end)

    def _length(self, e: ast.expr, array: ast.expr, index: ast.expr) -> Node:
        k = self.constant(index)
        if type(k) is not int or k < 0:
            self.refuse(UNREAD, "the axis is a constant, from 0", index)
        start, end = self.at(e)
        return Application("dim", [self.place(array), Lit(k, *self.at(index))], start, end)

    def _call(self, e: ast.Call, start: int, end: int) -> Node:
        f = e.func
        if isinstance(f, ast.Attribute) and self.outer(f.value) is MISSING:
            if not self.is_local(f.value) and isinstance(root_of(f.value), ast.Name):
                self._no_value(f.value)
            if f.attr not in _METHODS:
                hint = INSTEAD.get(f.attr, "")
                self.refuse("A004", f"there is no method `{f.attr}` here", f, hint)
            name, args, found = _METHODS[f.attr], [f.value, *e.args], None
        else:
            name, args, found = self._function(f), e.args, self.outer(f)
        if isinstance(found, np.ufunc) and len(args) != found.nin:
            many = f"{found.nin} argument{'s' * (found.nin != 1)}"
            self.refuse("A044", f"`{ast.unparse(f)}` takes {many} here, not {len(args)}", e)
        if e.keywords:
            self.refuse(
                UNREAD, f"`{ast.unparse(f)}` takes no `{e.keywords[0].arg}=` here", e.keywords[0]
            )
        if name in ("top", "empty") and args:
            self.stacks.add(root(args[0]))
        parts = [self.node(a) for a in args]
        if is_real(found):
            # Of whole numbers too the value is a real one.
            parts = [Operator("*", [p, Lit(1.0, p.start, p.end)], p.start, p.end) for p in parts]
        return self._applied(name, parts, found is math.floor, start, end)

    def _applied(self, name: str, parts: list[Node], counts: bool, start: int, end: int) -> Node:
        """A function of the table, where Python's takes other numbers of arguments."""
        whole = reduction_by(name)
        if whole and len(parts) == 1:
            return Application(whole, parts, start, end)
        if (whole or name == "hypot") and len(parts) > 2:
            out = parts[0]
            for part in parts[1:]:
                out = Application(name, [out, part], start, end)
            return out
        if name == "log" and len(parts) == 2:
            logs: list[Node] = [Application("log", [p], start, end) for p in parts]
            return Operator("/", logs, start, end)
        if name == "c128" and len(parts) == 2:
            return Application("complex", parts, start, end)
        if counts:
            return Application("i64", [Application("floor", parts, start, end)], start, end)
        if name in SIGNS.values() or name == "neg":
            return Operator("-" if name == "neg" else name, parts, start, end)
        return Application(name, parts, start, end)

    def _function(self, f: ast.expr) -> str:
        """The function of the table that is called."""
        if type(f) in REFUSED:
            self.refuse_kind(f)
        found = self.outer(f)
        text = shown(f)
        if found is MISSING:
            self._value_of(f)
            self.refuse("A004", f"`{text}` is not a function", f)
        name = "len" if found is len else function_named(found)
        if name:
            return name
        if isinstance(found, GenericFunction) and not isinstance(found.origin, PythonOrigin):
            what = f"`{text}` is generic, and is called for types that are named"
            self.refuse("A071", what, f, f'`lib["{found.name}[f64]"](y, x)`')
        if isinstance(found, FunctionHandle):
            what = f"`{text}` changes places and has no value"
            self.refuse("A004", what, f, f"call it on a separate line: `{text}(y, x)`")
        if opcode_named(found):
            self.refuse("A004", f"`{text}` is an instruction, and needs a separate line", f)
        if isinstance(found, Adding):
            what = f"the value of `{text}` is only added to a place here"
            hint = f"`y += {text}(…)` on a separate line, and `y -= {text}(…)` after the last use"
            self.refuse("A004", what, f, hint)
        here = str(getattr(found, "__module__", None)).split(".")[0]
        if callable(found) and here not in ("builtins", "numpy", "math", "cmath", "None"):
            self.refuse(
                UNREAD,
                f"`{text}` is an ordinary function, whose code is not read",
                f,
                "put it under `@rvm.reversible`, or `@rvm.function()` if it is a formula",
            )
        hint = INSTEAD.get(text.rpartition(".")[2]) or did_you_mean(text, _known())
        return self.refuse("A004", f"there is no function `{text}` here", f, hint)


def root_of(e: ast.expr) -> ast.expr:
    """The first part of an expression with dots and brackets."""
    while isinstance(e, (ast.Attribute, ast.Subscript)):
        e = e.value
    return e


def _known() -> Mapping[str, Any]:
    from rvm.isa import FUNCTIONS

    return FUNCTIONS


def _links(e: ast.expr) -> list[ast.BinOp]:
    """A binary operator, that on its left, the one on that one's left, and so on."""
    links: list[ast.BinOp] = []
    while isinstance(e, ast.BinOp) and type(e.op) in SIGNS:
        links.append(e)
        e = e.left
    return links
