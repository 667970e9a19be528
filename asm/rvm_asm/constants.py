"""Constants: expressions that the assembler itself evaluates, on Python's numbers.

The value of a constant is a literal: like one it takes the type that its use needs.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from rvm_asm.literals import NO_NUMBER
from rvm_asm.messages import Reporter, did_you_mean
from rvm_asm.nodes import Lit, Node, Ref
from rvm_asm.stats import Constant


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


_BUILT_IN = {"pi": math.pi, "tau": math.tau}
_MAX_DEPTH = 150
"""How deeply definitions may depend on one another, their expressions included."""
_MAX_BITS = 4096
"""The largest integer that a constant may be."""


class NotConstant(Exception):
    """The expression has no value before a run; reported already."""


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() * abs(b) > _MAX_BITS:
        raise OverflowError("the number is too large")
    return a**b


def _shift(a: Any, b: Any) -> Any:
    if b > _MAX_BITS:
        raise OverflowError("the number is too large")
    return a << b


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": _power,
    "<<": _shift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "~": operator.invert,
    "neg": operator.neg,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "not": operator.not_,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "abs": abs,
    "min": min,
    "max": max,
    "sqrt": lambda x: cmath.sqrt(x) if isinstance(x, complex) else math.sqrt(x),
    "exp": lambda x: cmath.exp(x) if isinstance(x, complex) else math.exp(x),
    "log": lambda x: cmath.log(x) if isinstance(x, complex) else math.log(x),
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "hypot": math.hypot,
    "floor": math.floor,
    "len": len,
}
_OF_TEXTS = (operator.add, len)
"""What texts are computed with, too: joined, and counted."""


class Constants:
    """The constants of a program, evaluated when first asked for, in any order of definition."""

    def __init__(self, report: Reporter) -> None:
        self.report = report
        self.definitions: dict[str, Constant] = {}
        self._values: dict[str, Lit] = {}
        self._busy: list[str] = []
        self._broken: set[str] = set()
        self._depth = 0

    def __contains__(self, name: str) -> bool:
        return name in self.definitions or name in _BUILT_IN

    def literal(self, name: str) -> Lit | None:
        """The value as a literal; None if its definition is wrong (which is reported once)."""
        definition = self.definitions.get(name)
        if definition is None:
            return Lit(_BUILT_IN[name], 0, 0)
        if name in self._broken:
            return None
        if name not in self._values:
            node = definition.value
            if name in self._busy:
                self.report.error(
                    "A054",
                    f"the constant `{name}` is defined by itself",
                    definition.name.start,
                    definition.name.end,
                )
                self._broken.add(name)
                return None
            self._busy.append(name)
            try:
                self._values[name] = self.evaluate(node)
            except NotConstant:
                self._broken.add(name)
                return None
            finally:
                self._busy.pop()
        return self._values[name]

    def text(self, node: Node | None) -> bytes | None:
        """The bytes that a text literal, or a constant that is one, stands for."""
        if type(node) is Ref and not node.steps and node.name in self:
            node = self.literal(node.name)
        return node.value if type(node) is Lit and type(node.value) is bytes else None

    def evaluate(self, node: Node) -> Lit:
        """The value of an expression; NotConstant, reported, if it has none."""
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                self._refuse(node, "this depends on too many other constants")
            return self._evaluate(node)
        finally:
            self._depth -= 1

    def _evaluate(self, node: Node) -> Lit:
        if isinstance(node, Lit):
            return node
        if isinstance(node, Ref):
            if not node.steps and node.name in self:
                found = self.literal(node.name)
                if found is None:
                    raise NotConstant
                return found
            self._refuse(
                node,
                f"`{node.name}` is not a constant",
                did_you_mean(node.name, [*self.definitions, *_BUILT_IN]),
            )
        assert not isinstance(node, Ref)
        function = FUNCTIONS.get(node.name)
        if function is None:
            self._refuse(node, f"`{node.name}` is not evaluated in constants")
        assert function is not None
        args = [self.evaluate(a) for a in node.args]
        text = next((a for a in args if isinstance(a.value, bytes)), None)
        if text is not None and function not in _OF_TEXTS:
            self._refuse(node, NO_NUMBER, "`a + b` joins texts, `len(a)` counts")
        typed = next((a for a in args if a.type is not None), None)
        if typed is not None:
            self._refuse(node, "a typed literal is not computed with in constants")
        try:
            value = function(*(_number(a.value) for a in args))
        except (ArithmeticError, ValueError, TypeError) as error:
            # Python's power of floats gives C's error number and text.
            why = "the number is too large" if len(error.args) > 1 else error
            self._refuse(node, f"this has no value: {why}")
            raise
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            self._refuse(node, "the number is too large")
        return Lit(value if value == value else math.nan, node.start, node.end)

    def _refuse(self, node: Node, message: str, hint: str = "") -> None:
        self.report.error("A054", message, node.start, node.end, hint=hint)
        raise NotConstant
