"""Expressions of Janus with their types, as nodes of the assembly language.

A literal has no type of its own: it takes that of what it meets, and wraps to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rvm_asm.nodes import Application, Lit, Node, Operator

from rvm.types import SCALARS

BOOL = "bool"
_SIGNS = {"/": "//", "=": "==", "&&": "and", "||": "or", "!": "not"}
"""Operators with a different notation in the assembly language."""
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "=", "!="})
_BITS = frozenset({"&", "|", "^"})
MOST_BITS = 4096
"""The longest constant that is computed here."""


@dataclass(slots=True)
class Value:
    """An expression: its type, and its node, or a number if it consists of literals."""

    type: str
    node: Node | None
    number: int
    start: int
    end: int

    @property
    def is_literal(self) -> bool:
        """Whether it is a number without a type."""
        return self.node is None


def literal(number: int, start: int, end: int) -> Value:
    """A number without a type."""
    return Value("", None, number, start, end)


def truth(value: bool, start: int, end: int) -> Value:
    """`true` or `false`."""
    return Value(BOOL, Lit(value, start, end), 0, start, end)


def wrapped(number: int, t: str) -> int:
    """A number modulo the size of an integer type."""
    row = SCALARS[t]
    number &= (1 << row.bits) - 1
    return number - (1 << row.bits) if row.is_signed and number >> row.bits - 1 else number


def node_of(v: Value, t: str = "") -> Node:
    """The node of an expression: a literal as a number of type `t`, others as they are."""
    if v.node is not None:
        return v.node
    return Lit(wrapped(v.number, t) if t and t != BOOL else v.number, v.start, v.end)


def integer(v: Value, t: str) -> Node:
    """The node of an expression where an integer of type `t` is wanted: a bool is 1 or 0."""
    if v.type == BOOL:
        return Application(t, [node_of(v)], v.start, v.end)
    return node_of(v, t)


def count_of(v: Value) -> Node:
    """The node of an expression where a count is wanted: a length, or how far to shift."""
    if v.is_literal or v.type == "i64":
        return node_of(v)
    return Application("i64", [node_of(v)], v.start, v.end)


def condition(v: Value, loose: bool) -> Node:
    """The node of a condition; with `loose`, and for literals, any nonzero value is true."""
    if v.is_literal:
        return Lit(v.number != 0, v.start, v.end)
    if v.type == BOOL or not loose:
        return node_of(v)
    return Operator("!=", [node_of(v), Lit(0, v.start, v.end)], v.start, v.end)


def unary(sign: str, a: Value, start: int, loose: bool) -> Value:
    """`!a` or `~a`."""
    if sign == "!":
        return Value(BOOL, Operator("not", [condition(a, loose)], start, a.end), 0, start, a.end)
    if a.is_literal:
        return literal(~a.number, start, a.end)
    return Value(a.type, Operator("~", [node_of(a)], start, a.end), 0, start, a.end)


def cast(t: str, a: Value, start: int) -> Value:
    """`(t) a`: the number modulo the size of the type."""
    return Value(t, Application(t, [node_of(a, t)], start, a.end), 0, start, a.end)


def binary(sign: str, a: Value, b: Value, word: str, loose: bool) -> Value:
    """A binary operation; `word` is the type of `int`."""
    start, end = a.start, b.end
    if sign in ("&&", "||"):
        made = Operator(_SIGNS[sign], [condition(a, loose), condition(b, loose)], start, end)
        return Value(BOOL, made, 0, start, end)
    if a.is_literal and b.is_literal:
        number = _computed(sign, a.number, b.number)
        if isinstance(number, bool):
            return truth(number, start, end)
        if number is not None:
            return literal(number, start, end)
    shift = sign in ("<<", ">>", "**")
    t = a.type if shift else (a.type or b.type)
    if loose and BOOL in (a.type, b.type) and not (sign in _BITS and a.type == b.type):
        t = word
    t = t or word
    if t == BOOL:
        operands = [node_of(a), node_of(b)]
    else:
        count = node_of(b, t) if b.type == t else count_of(b)
        operands = [integer(a, t), count if shift else integer(b, t)]
    if sign == "*/":
        return Value(t, _high_product(operands, start, end), 0, start, end)
    made = Operator(_SIGNS.get(sign, sign), operands, start, end)
    return Value(BOOL if sign in _COMPARISONS else t, made, 0, start, end)


def _high_product(operands: list[Node], start: int, end: int) -> Node:
    """The upper half of the product of two numbers of 32 bits."""
    long: list[Node] = [Application("i64", [x], x.start, x.end) for x in operands]
    half = Operator(">>", [Operator("*", long, start, end), Lit(32, start, end)], start, end)
    return Application("i32", [half], start, end)


def _computed(sign: str, a: int, b: int) -> int | bool | None:
    """The value of an operation on literals; None where it is left to the run."""
    match sign:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/" | "%" if b:
            return a // b if sign == "/" else a % b
        case "**" if 0 <= b <= MOST_BITS and a.bit_length() * b <= MOST_BITS:
            return int(a**b)
        case "<<" if 0 <= b <= MOST_BITS:
            return a << b
        case ">>" if b >= 0:
            return a >> b
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case "=":
            return a == b
        case "!=":
            return a != b
    return None
