"""Expressions and types of syntax nodes as text, as they are read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rvm.expr import Const
from rvm.isa import FUNCTIONS
from rvm.types import C128
from rvm_asm.expressions import BINARY, COMPARE, NOT, POWER, UNARY
from rvm_asm.generics import Types
from rvm_asm.habits import SHAPE
from rvm_asm.literals import plain_literal, typed_literal
from rvm_asm.nodes import Declared, FieldStep, Lit, Node, Operator, Range, Ref, ShapeStep, TypeRef

_ATOM = 99


class Texts:
    """Expressions and types as text.

    `became` holds what syntax nodes stand for that follows from types alone, by their identity, and
    `types` what type parameters stand for.
    """

    def __init__(self, became: Mapping[int, Any], types: Types) -> None:
        self.became = became
        self.types = types

    def list(self, args: Sequence[Node]) -> str:
        """Expressions with commas between them."""
        return ", ".join(map(self.expression, args))

    def declared(self, d: Declared) -> str:
        """A name with its type, if one is written or has been found."""
        register = f" as {d.register}" if d.register else ""
        t = self.became.get(id(d), d.type)
        return f"{d.name}{register}" + (f": {self.type(t)}" if t else "") + " = 0" * d.zero

    def type(self, t: TypeRef) -> str:
        """A type, with the value of a type parameter in its place."""
        value = self.types.get(t.name) if t.fields is None else None
        if value is not None:
            t = value.written(t.name, t)
        text = t.name
        if t.frac is not None:
            text += f"({t.frac})"
        if t.name == "stack" and t.fields and t.fields[0].type:
            text += f"[{self.type(t.fields[0].type)}]"
        elif t.fields is not None:
            text += "{" + ", ".join(map(self.declared, t.fields)) + "}"
        for nodes in (t.args, t.dims):
            if nodes:
                ends = (":" if d is None else self.expression(d) for d in nodes)
                text += "[" + ", ".join(ends) + "]"
        return text

    def expression(self, node: Node) -> str:
        """An expression, with brackets where its operators need them."""
        return self._printed(node)[0]

    def _printed(self, node: Node) -> tuple[str, int]:
        """An expression, and how tight its outermost operator binds."""
        target = self.became.get(id(node))
        text, power = self._as_written(node)
        return (text, power) if target is None else (f"{target}({text})", _ATOM)

    def _as_written(self, node: Node) -> tuple[str, int]:
        if isinstance(node, Ref):
            return self.place(node), _ATOM
        if isinstance(node, Lit):
            return self._literal(node)
        if not isinstance(node, Operator):
            return f"{node.name}({self.list(node.args)})", _ATOM
        sign = FUNCTIONS[node.name].symbol or node.name if node.name in FUNCTIONS else node.name
        if len(node.args) == 1:
            power = NOT if sign == "not" else UNARY
            gap = " " if sign == "not" else ""
            return f"{sign}{gap}{self._inside(node.args[0], power)}", power
        power = BINARY[sign]
        # Comparisons do not chain, and powers go from the right.
        left = power + (power in (COMPARE, POWER))
        right = power + (power != POWER)
        return (
            f"{self._inside(node.args[0], left)} {sign} {self._inside(node.args[1], right)}",
            power,
        )

    def _inside(self, node: Node, least: int) -> str:
        text, power = self._printed(node)
        return text if power >= least else f"({text})"

    def _literal(self, node: Lit) -> tuple[str, int]:
        value: Any = node.value
        text = plain_literal(value)
        if text is None:  # a complex number with a part that is infinite or NaN
            return typed_literal(Const(value, C128)), _ATOM
        if node.type is not None:
            text += f"'{self.type(node.type)}"
        return text, UNARY if text.startswith("-") else _ATOM

    def place(self, node: Ref) -> str:
        """A name with its steps."""
        text = node.name
        for step in node.steps:
            if isinstance(step, FieldStep):
                text += f".{step.name}"
            elif isinstance(step, ShapeStep):
                text += f".{SHAPE}({', '.join(map(self.expression, step.dims))})"
            else:
                text += "[" + ", ".join(map(self._item, step.items)) + "]"
        return text

    def _item(self, item: Node | Range) -> str:
        if not isinstance(item, Range):
            return self.expression(item)
        ends = item.ends if item.by is not None else item.ends[:2]
        return ":".join("" if e is None else self.expression(e) for e in ends)
