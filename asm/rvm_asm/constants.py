"""Constants: expressions that the assembler itself evaluates.

The value of a constant is a literal: like one it takes the type that its use needs.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, NoReturn

from rvm.expr import Apply, Const, Expr
from rvm.faults import RvmError
from rvm.isa import FUNCTIONS, TypeFault, typed, value
from rvm.isa.functions.formulas import MAX_BITS
from rvm.types import C128, F64, I64, elem_of
from rvm_asm.literals import NO_NUMBER
from rvm_asm.messages import Reporter, did_you_mean
from rvm_asm.nodes import Lit, Node, Ref
from rvm_asm.stats import Constant


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


_BUILT_IN = {"pi": math.pi, "tau": math.tau}
_MAX_DEPTH = 150
"""The largest depth of dependences between definitions, including their expressions."""


class NotConstant(Exception):
    """The expression has no value before a run; reported already."""


_OF_TEXTS = (operator.add, len)
"""Operations on texts: joining, and length."""


def is_evaluated(name: str) -> bool:
    """Whether constants have a value of this function: of scalars, or of a text."""
    row = FUNCTIONS.get(name)
    return row is not None and (row.exactly is not None or row.is_elementwise)


def by_table(name: str, numbers: Sequence[Any]) -> Any:
    """A function of the table on f64 or c128, or on integers if it has them: as a run has it.

    ArithmeticError if it is not finite, and the numbers are.
    """
    node = Apply(name, tuple(Const(n) for n in numbers))
    expr = typed(node, C128 if any(isinstance(n, complex) for n in numbers) else F64)
    if all(isinstance(n, int) for n in numbers):
        with suppress(TypeFault):
            expr = typed(node, I64)
    assert expr.type is not None
    t = elem_of(expr.type)
    if t.is_fixed or t.is_log:
        raise TypeFault(f"a constant takes its type where it is used: leave out `{name}`")
    found = _computed(expr)
    if not cmath.isfinite(found) and all(map(cmath.isfinite, numbers)):
        raise ArithmeticError(f"it is {found}")
    return found


def _computed(e: Expr) -> Any:
    if isinstance(e, Const):
        return e.value
    assert isinstance(e, Apply)
    types = tuple(elem_of(a.type) for a in e.args if a.type is not None)
    return value(e.fn, types)(*map(_computed, e.args))


def _why_not(name: str, numbers: Sequence[Any]) -> str:
    """The reason, from the table, why a function does not take these numbers."""
    if name == "len":
        return "`len` counts the bytes of a text"
    try:
        by_table(name, numbers)
    except TypeFault as fault:
        return fault.message
    except (ArithmeticError, ValueError, RvmError):
        pass
    return f"`{name}` does not take these numbers"


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
                self.report.about(
                    definition.name, "A054", f"the constant `{name}` is defined by itself"
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
        """The bytes of a text literal, or of a constant that is one."""
        if type(node) is Ref and not node.steps and node.name in self:
            node = self.literal(node.name)
        return node.value if type(node) is Lit and type(node.value) is bytes else None

    def evaluate(self, node: Node) -> Lit:
        """The value of an expression; NotConstant, reported, if it has none."""
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                self._refuse(node, "this nests too deeply, or depends on too many other constants")
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
        if not is_evaluated(node.name):
            self._refuse(node, f"`{node.name}` is not evaluated in constants")
        function = FUNCTIONS[node.name].exactly
        args = [self.evaluate(a) for a in node.args]
        text = next((a for a in args if isinstance(a.value, bytes)), None)
        if text is not None and function not in _OF_TEXTS:
            self._refuse(node, NO_NUMBER, "`a + b` joins texts, `len(a)` counts")
        typed = next((a for a in args if a.type is not None), None)
        if typed is not None:
            self._refuse(node, "a typed literal is not computed with in constants")
        numbers = [_number(a.value) for a in args]
        try:
            value = by_table(node.name, numbers) if function is None else function(*numbers)
        except TypeFault as fault:
            self._refuse(node, f"this has no value: {fault.message}", fault.hint)
        except TypeError:
            if text is not None:
                self._refuse(node, NO_NUMBER, "`a + b` joins texts, `len(a)` counts")
            self._refuse(node, f"this has no value: {_why_not(node.name, numbers)}")
        except (ArithmeticError, ValueError, RvmError) as error:
            # Python's power of floats gives C's error number and text.
            why = "the number is too large" if len(error.args) > 1 else error
            if isinstance(error, (RvmError, ZeroDivisionError)):
                why = getattr(error, "message", "division by zero")
            self._refuse(node, f"this has no value: {why}")
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            self._refuse(node, "the number is too large")
        return Lit(value if value == value else math.nan, node.start, node.end)

    def _refuse(self, node: Node, message: str, hint: str = "") -> NoReturn:
        self.report.about(node, "A054", message, hint=hint)
        raise NotConstant
