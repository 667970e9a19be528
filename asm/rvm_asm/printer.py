"""Printing names, types and expressions so that they are read back exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from rvm.expr import Apply, Const, Expr, Index, Place, Shaped, Span, Transposed, children, walk
from rvm.isa import FUNCTIONS, TypeFault, typed
from rvm.numbers import system
from rvm.program import Function, Layout, stack_text
from rvm.types import I64, Array, Scalar, Stack
from rvm_asm.expressions import BINARY, COMPARE, NOT, POWER, PREFIX, UNARY, operator_name
from rvm_asm.literals import number, plain_literal, typed_literal
from rvm_asm.names import dotted, quoted

_ATOM = 20
PREFIXES = {fn: sign for sign, fn in PREFIX.items()}

Tree: TypeAlias = "int | tuple[str, list[tuple[str, Tree]]]"
"""A register, or a record's name and its fields with their printed names."""


class RegisterNames:
    """Distinct names for the parameters, lengths and registers of a function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._used: set[str] = set()
        self.registers = [""] * len(function.registers)
        names = [self._fresh(quoted(p.name)) for p in function.params]
        self._trees = [
            (name, self._tree(p.layout, name, p.name))
            for name, p in zip(names, function.params, strict=True)
        ]
        self._used.update(self.registers)
        self.dims: dict[tuple[int, int], str] = {}
        for d in function.dims:
            self.dims.setdefault((d.reg, d.axis), self._fresh(quoted(d.name)))
        for k, register in enumerate(function.registers):
            if not self.registers[k]:
                self.registers[k] = self._fresh(dotted(register.name))

    def _tree(self, layout: Layout, path: str, name: str) -> Tree:
        """A parameter's fields as printed; a register is named by its path if that is its name."""
        if isinstance(layout, int):
            if self.function.registers[layout].name == name:
                self.registers[layout] = path
            return layout
        used: set[str] = set()
        fields: list[tuple[str, Tree]] = []
        for n, inner in layout.fields:
            field = _distinct(quoted(n), used)
            fields.append((field, self._tree(inner, f"{path}.{field}", f"{name}.{n}")))
        return layout.name, fields

    def parameters(self, printer: SourcePrinter) -> str:
        """The parameter list."""
        starts = [" = 0" * p.zero for p in self.function.params]
        trees = [self._declared(n, n, tree, printer) for n, tree in self._trees]
        return ", ".join([t + s for t, s in zip(trees, starts, strict=True)])

    def _declared(self, name: str, path: str, tree: Tree, printer: SourcePrinter) -> str:
        if isinstance(tree, int):
            register = self.registers[tree]
            alias = "" if register == path else f" as {register}"
            return f"{name}{alias}: {printer.typed_register(tree)}"
        record, fields = tree
        inside = ", ".join([self._declared(n, f"{path}.{n}", t, printer) for n, t in fields])
        return f"{name}: {quoted(record)}{{{inside}}}"

    def _fresh(self, name: str) -> str:
        return _distinct(name, self._used)


def _distinct(name: str, used: set[str]) -> str:
    """The name, numbered if it is used already."""
    out, k = name, 0
    while out in used:
        k += 1
        out = f"{name}#{k}"
    used.add(out)
    return out


class SourcePrinter:
    """Prints the expressions of one function."""

    def __init__(self, function: Function, names: RegisterNames) -> None:
        self.function = function
        self.names = names
        self.bare = True
        """Whether constants are printed without their types."""

    def expr(self, node: Expr, power: int = 0) -> str:
        """An expression, in parentheses if it binds no tighter than `power` demands."""
        text, binding = self._expr(node)
        return text if binding >= power else f"({text})"

    def _expr(self, node: Expr) -> tuple[str, int]:
        if isinstance(node, Place):
            return self.place(node), _ATOM
        if isinstance(node, Const):
            text = self.const(node)
            return text, UNARY if text[0] == "-" else _ATOM
        assert isinstance(node, Apply)
        row = FUNCTIONS.get(node.fn)
        args = node.args
        if node.fn == "dim" and len(args) == 2:
            name = self._length(args)
            if name:
                return name, _ATOM
        symbol = row.symbol if row is not None else ""
        if symbol and len(args) == 2 and operator_name(symbol, 2) == node.fn:
            return self._binary(symbol, args)
        if node.fn == "not" and len(args) == 1:
            return f"not {self.expr(args[0], NOT)}", NOT
        if node.fn in PREFIXES and len(args) == 1:
            inner, binding = self._expr(args[0])
            if not isinstance(args[0], Const) or node.fn == "~":
                inner = inner if binding >= UNARY else f"({inner})"
                return f"{PREFIXES[node.fn]}{inner}", UNARY
        inside = ", ".join([self.expr(a) for a in args])
        return f"{quoted(node.fn)}({inside})", _ATOM

    def _binary(self, sign: str, args: tuple[Expr, ...]) -> tuple[str, int]:
        binding = BINARY[sign]
        left, right = binding, binding + 1
        if binding == POWER:
            left, right = POWER + 1, UNARY
        elif binding == COMPARE:
            left = right
        return f"{self.expr(args[0], left)} {sign} {self.expr(args[1], right)}", binding

    def _length(self, args: Sequence[Expr]) -> str:
        array, axis = args
        if isinstance(array, Place) and not array.path and isinstance(axis, Const):
            return self.names.dims.get((array.reg, axis.value), "")
        return ""

    def const(self, node: Const) -> str:
        """A constant as a literal."""
        if self.bare:
            text = _literal_text(node)
            if text is not None:
                return text
        return typed_literal(node)

    def place(self, node: Place) -> str:
        """A place."""
        out = self.names.registers[node.reg]
        for step in node.path:
            if isinstance(step, Index):
                out += f"[{', '.join([self._item(i) for i in step.items])}]"
            elif isinstance(step, Shaped):
                out += f".reshape({', '.join(map(self.expr, step.dims))})"
            else:
                out += ".T" if isinstance(step, Transposed) else f".{step.name}"
        return out

    def _item(self, item: Expr | Span) -> str:
        if not isinstance(item, Span):
            return self.expr(item)
        ends = item.ends if item.by is not None else item.ends[:2]
        return ":".join("" if e is None else self.expr(e) for e in ends)

    def typed_register(self, reg: int) -> str:
        """The declared type of a register; constants in its lengths have types where they must."""
        dims = self.function.registers[reg].dims
        self.bare = all(d is None or reads_back(d, I64) for d in dims)
        text = self.register_type(reg)
        self.bare = True
        return text

    def register_type(self, reg: int) -> str:
        """The declared type of a register, with its lengths."""
        register = self.function.registers[reg]
        match register.type:
            case Scalar() as t:
                return str(t)
            case Stack(elem):
                return stack_text(elem, register.shape)
            case Array(elem):
                dims = [
                    self.names.dims.get((reg, k), ":") if d is None else self.expr(d)
                    for k, d in enumerate(register.dims)
                ]
                return f"{elem}[{', '.join(dims)}]"


def _literal_text(node: Const) -> str | None:
    """A constant as a literal without a type, None where there is none for it."""
    t = node.type
    assert t is not None
    if t.is_fixed:
        return system(t).text(node.value)
    if t.is_log:
        return "1" if node.value == 0.0 else None
    return plain_literal(node.value)


def template(node: Expr) -> Expr | None:
    """A typed expression as its text without types would be read; None if it has no such text."""
    if isinstance(node, Const):
        text = _literal_text(node)
        if text is None:
            return None
        return Const(node.value if isinstance(node.value, (bool, complex)) else _value(text))
    if isinstance(node, Apply):
        args = [template(a) for a in node.args]
        if any(a is None for a in args):
            return None
        return Apply(node.fn, tuple(a for a in args if a is not None))
    return node


def _value(text: str) -> object:
    negative = text.startswith("-")
    word = text.lstrip("-")
    value = float(word) if word in ("inf", "nan") else number(word)
    return -value if negative else value


def reads_back(node: Expr, want: Scalar | None) -> bool:
    """Whether an expression of type `want` is read back the same without types on its constants."""
    if only_places(node):
        return True
    bare = template(node)
    if bare is None:
        return False
    try:
        return typed(bare, want) == node and indices_read_back(node)
    except TypeFault:
        return False


def indices_read_back(node: Expr) -> bool:
    """Whether the indices in an operand are unchanged when read back without types."""
    return all(
        reads_back(end, I64)
        for sub in walk(node)
        if isinstance(sub, Place) and sub.path
        for end in children(sub)
    )


def only_places(node: Expr) -> bool:
    """Whether an operand is a place whose indices need no types to be read back."""
    return isinstance(node, Place) and not node.path
