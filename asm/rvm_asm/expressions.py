"""Parsing expressions and types: a Pratt parser over the token lists."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, NoReturn

from rvm.isa import FUNCTIONS
from rvm_asm.cursor import Bad, Cursor
from rvm_asm.habits import SHAPE
from rvm_asm.lexer import CHARACTER, NAME, NEWLINE, NUMBER, QUOTE, STRING
from rvm_asm.literals import WORDS, by_parts, number
from rvm_asm.names import RESERVED
from rvm_asm.nodes import (
    Application,
    Declared,
    FieldStep,
    Lit,
    Node,
    Operator,
    Range,
    Ref,
    RefStep,
    ShapeStep,
    Sub,
    TypeRef,
)

MAX_DEPTH = 100
"""The largest nesting depth of expressions and types."""

BINARY = {row.symbol: row.binds for row in FUNCTIONS.values() if row.binds}
"""Binding powers of the binary operators: those of Python."""
NOT, COMPARE, UNARY, POWER = 3, 4, 11, 12
PREFIX = {"-": "neg", "~": "~"}


@cache
def operator_name(sign: str, arity: int) -> str:
    """The function of the table for an operator's sign."""
    if sign in FUNCTIONS and FUNCTIONS[sign].arity == arity:
        return sign
    for row in FUNCTIONS.values():
        if row.symbol == sign and row.arity == arity:
            return row.name
    return sign


class ExpressionParser(Cursor):
    """A cursor over tokens that reads expressions, places and types."""

    # Expressions.

    def operand(self) -> Node:
        """One operand: the common case, a bare name, without the detour."""
        i = self.i
        kinds = self.kinds
        if kinds[i] == NAME:
            after = kinds[i + 1]
            if (after == "," or after == NEWLINE) and self.texts[i] not in RESERVED:
                self.i = i + 1
                start = self.starts[i]
                return Ref(self.texts[i], (), start, start + len(self.texts[i]))
        return self.expression()

    def expression(self, power: int = 0) -> Node:
        """An expression whose operators bind tighter than `power`."""
        first = self.starts[self.i]
        self.depth += 1
        if self.depth > MAX_DEPTH:
            hint = "compute a part of it into an ancilla"
            self.too_deep("the expression nests", MAX_DEPTH, hint)
        left = self._prefix(power)
        kinds, texts = self.kinds, self.texts
        while True:
            sign = texts[self.i]
            binding = BINARY.get(sign)
            if binding is None or binding <= power or kinds[self.i] == STRING:
                break
            self.i += 1
            # `**` is right associative and takes a sign on its right.
            right = self.expression(POWER - 1 if binding == POWER else binding)
            # With the brackets that an operand stands in, which leave no node.
            left = self._joined(sign, left, right, first, self.last_end())
            if binding == COMPARE and BINARY.get(texts[self.i]) == COMPARE:
                self.report.error(
                    "A002",
                    "comparisons do not chain",
                    self.starts[self.i],
                    self.end_of(self.i),
                    hint="write `a < b and b < c`",
                )
                raise Bad
        self.depth -= 1
        return left

    def _prefix(self, power: int) -> Node:
        i = self.i
        kind, text, start = self.kinds[i], self.texts[i], self.starts[i]
        if kind == NAME and text not in RESERVED:
            return self._named()
        self.i = i + 1
        if kind == NUMBER:
            return self._typed_literal(self._number(text, start), start)
        if kind == "(":
            return self._parenthesis(start)
        if kind in PREFIX or kind == "+":
            return self._signed(kind, start)
        if kind == NAME and text in WORDS:
            return self._typed_literal(WORDS[text], start)
        if kind == NAME and text == "not" and power < NOT:
            arg = self.expression(NOT - 1)
            return Operator("not", [arg], start, self.last_end())
        if kind == CHARACTER:
            return self._typed_literal(self.quoted(), start)
        if kind == STRING:
            return Lit(self.quoted(), start, self.last_end())
        self.i = i
        if kind == QUOTE:
            self._no_character(start)
        return self.fail("an expression", "put `not …` in parentheses" if text == "not" else "")

    def _no_character(self, start: int) -> NoReturn:
        """Report a quote that begins no character."""
        self.report.error(
            "A001",
            "a character literal is one character between two quotes",
            start,
            start + 1,
            hint="`'a'`, `'\\n'`, `'\\''`; a text of several is `\"abc\"`",
        )
        raise Bad

    def _number(self, text: str, start: int) -> Any:
        value = self._fitting(number, text, start=start, end=start + len(text))
        if value is None:
            self.report.error(
                "A041",
                f"the number {text[:20]}… is too large",
                start,
                start + len(text),
                hint="infinity is written `inf`",
            )
            raise Bad
        return value

    def _fitting(self, f: Callable[..., Any], *args: Any, start: int, end: int) -> Any:
        """What a function makes of literals; an error where it raises a ValueError."""
        try:
            return f(*args)
        except ValueError as error:
            self.report.error("A041", str(error), start, end)
            raise Bad from None

    def _signed(self, sign: str, start: int) -> Node:
        first = self.i
        arg = self.expression(UNARY)
        if sign == "+":
            return arg
        if (
            sign == "-"
            and isinstance(arg, Lit)
            and not isinstance(arg.value, bool | bytes)
            and self.texts[first] != "("
        ):
            return Lit(_negated(arg.value), start, arg.end, arg.type)
        return Operator(PREFIX[sign], [arg], start, self.last_end())

    def _joined(self, sign: str, left: Node, right: Node, start: int, end: int) -> Node:
        """A binary operation; `2 - 2.3j` of bare literals is one complex literal."""
        if (
            sign in ("+", "-")
            and _is_real(left)
            and isinstance(right, Lit)
            and right.type is None
            and isinstance(right.value, complex)
            and right.value.real == 0.0
        ):
            imag = right.value.imag if sign == "+" else -right.value.imag
            return Lit(self._complex(left, imag, left.end), start, end)
        return Operator(sign, [left, right], start, end)

    def _complex(self, re: Any, im: Any, end: int) -> Any:
        """A complex number by a literal and an imaginary part; errors are at what ends there."""
        return self._fitting(by_parts, re.value, im, start=re.start, end=end)

    def _parenthesis(self, start: int) -> Node:
        inner = self.expression()
        if self.accept(","):
            # `(re, im)'c128`: a complex literal by its parts.
            second = self.expression()
            self.expect(")")
            if not (_is_real(inner) and _is_real(second) and self.kinds[self.i] == "'"):
                self.habitual()
                self.report.error(
                    "A002",
                    "there are no tuples",
                    start,
                    self.last_end(),
                    hint="a complex literal by its parts is `(1.0, -0.0)'c128`",
                )
                raise Bad
            imag: Any = second
            return self._typed_literal(self._complex(inner, imag.value, imag.end), start)
        self.expect(")")
        return inner

    def _typed_literal(self, value: Any, start: int) -> Lit:
        if self.kinds[self.i] == "'":
            self.i += 1
            written = self.type_ref()
            return Lit(value, start, self.last_end(), written)
        return Lit(value, start, self.last_end())

    def _named(self) -> Node:
        i = self.i
        name, start = self.texts[i], self.starts[i]
        kinds = self.kinds
        self.i = i + 1
        if kinds[i + 1] == "(":
            self.i = i + 2
            args = self.arguments(")")
            call = Application(name, args, start, self.last_end())
            if kinds[self.i] not in (".", "["):
                return call
            if name != "top" or len(args) != 1 or not isinstance(args[0], Ref):
                self.report.error(
                    "A002",
                    f"the value of `{name}` is not a place and has no parts",
                    self.starts[self.i],
                    self.end_of(self.i),
                    hint="put it into an ancilla first",
                )
                raise Bad
            stack = args[0]
            top = FieldStep("top", start, start + len(name))
            return Ref(stack.name, (*stack.steps, top, *self._steps()), start, self.last_end())
        if kinds[i + 1] != "[" and kinds[i + 1] != ".":
            return Ref(name, (), start, start + len(name))
        steps = self._steps()
        return Ref(name, steps, start, self.last_end())

    def _steps(self) -> tuple[RefStep, ...]:
        """The steps after a name that lead to a part of it."""
        kinds = self.kinds
        steps: list[RefStep] = []
        while True:
            i = self.i
            if kinds[i] == ".":
                self.i = i + 1
                field = self.word("the name of a field")
                if field.text == SHAPE and kinds[self.i] == "(":
                    self.i += 1
                    steps.append(ShapeStep(self._lengths(), field.start, self.last_end()))
                else:
                    steps.append(FieldStep(field.text, field.start, field.end))
            elif kinds[i] == "[":
                self.i = i + 1
                items = self._items()
                steps.append(Sub(items, self.starts[i], self.last_end()))
            else:
                return tuple(steps)

    def _lengths(self) -> list[Node]:
        dims = self.arguments(")")
        if not dims:
            self.fail("a length", "`x.reshape(m, n)` is a matrix of m rows")
        return dims

    def _items(self) -> list[Node | Range]:
        items: list[Node | Range] = []
        while True:
            lo = None if self.kinds[self.i] == ":" else self.expression()
            if self.accept(":"):
                hi = None if self.kinds[self.i] in (":", ",", "]") else self.expression()
                by = None
                if self.accept(":") and self.kinds[self.i] not in (",", "]"):
                    by = self.expression()
                items.append(Range(lo, hi, by))
            else:
                assert lo is not None
                items.append(lo)
            if self.accept("]"):
                return items
            if not self.accept(","):
                self.fail("`,` or `]`")

    def arguments(self, close: str, hint: str = "") -> list[Node]:
        """Expressions up to the closing sign."""
        args: list[Node] = []
        if self.accept(close):
            return args
        while True:
            args.append(self.expression())
            if self.accept(close):
                return args
            if not self.accept(","):
                self.fail(f"`,` or `{close}`", hint)

    # Types.

    def type_ref(self) -> TypeRef:
        """A type: `f64`, `fixed(30)`, `f64[n, 3]`, `stack[f64]`, `Body[n]`, `Body{m: f64}`."""
        written = self._scalar_ref()
        if written.name == "func" and self.accept("("):
            written.fields = [Declared("", t, t.start, t.end) for t in self._types(")")]
            written.end = self.last_end()
            return written
        if written.name == "stack" and self.accept("["):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.depth = 0
                self.fail("a less deeply nested type")
            inner = self.type_ref()
            self.depth -= 1
            self.expect("]")
            written.fields = [Declared("", inner, inner.start, inner.end)]
        elif written.frac is None and self.accept("{"):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.depth = 0
                self.fail("a less deeply nested type")
            written.fields = self.declared_list("}")
            self.depth -= 1
        if written.name != "stack" and self.accept("["):
            written.dims = self._dims()
            if self.accept("["):
                written.args, written.dims = written.dims, self._dims()
        written.end = self.last_end()
        return written

    def type_args(self) -> list[TypeRef] | None:
        """The types in brackets after a function's name, if there are any."""
        return self._types("]") if self.accept("[") else None

    def _types(self, close: str) -> list[TypeRef]:
        out: list[TypeRef] = []
        if close == ")" and self.accept(close):
            return out
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.depth = 0
            self.fail("a less deeply nested type")
        while True:
            out.append(self.type_ref())
            if self.accept(close):
                self.depth -= 1
                return out
            if not self.accept(","):
                self.fail(f"`,` or `{close}`")

    def _scalar_ref(self) -> TypeRef:
        if self.texts[self.i] == "{":
            self.fail("a type", "a record written in place has a name: `Body{pos: f64[3], m: f64}`")
        name = self.word("a type")
        frac: int | None = None
        if name.text == "fixed" and self.accept("("):
            text, at = self.texts[self.i], self.starts[self.i]
            bits = self._number(text, at) if self.kinds[self.i] == NUMBER else None
            if not isinstance(bits, int):
                self.fail("the number of fraction bits")
            frac = bits
            self.i += 1
            self.expect(")")
        return TypeRef(name.text, frac, None, None, name.start, self.last_end())

    def _dims(self) -> list[Node | None]:
        dims: list[Node | None] = []
        while True:
            dims.append(None if self.accept(":") else self.expression())
            if self.accept("]"):
                return dims
            if not self.accept(","):
                self.fail("`,` or `]`")

    def declared_list(self, close: str) -> list[Declared]:
        """`name: type, …` up to the closing sign; of parameters `name: type = 0`, too."""
        out: list[Declared] = []
        if self.accept(close):
            return out
        while True:
            name = self.word("a name")
            register = self.dotted("a register's name").text if self.accept_word("as") else ""
            self.expect(":", f"write its type: `{name.text}: f64`")
            written = self.type_ref()
            zero = close == ")" and self.accept("=")
            if zero:
                self._zero()
            out.append(Declared(name.text, written, name.start, name.end, register, zero))
            if self.accept(close):
                return out
            if not self.accept(","):
                self.fail(f"`,` or `{close}`")

    def _zero(self) -> None:
        value = self.expression()
        if not isinstance(value, Lit) or value.type is not None or value.value != 0:
            self.report.about(
                value,
                "A041",
                "a parameter that no caller names begins as zero",
                hint="`= 0`; what is to be added to it is a line of the function",
            )


def _negated(value: Any) -> Any:
    if isinstance(value, complex):
        return complex(-value.real, -value.imag) if value.real else complex(0.0, -value.imag)
    if isinstance(value, Decimal):
        return value.copy_negate()
    return -value if value == value else value  # there is one NaN


def _is_real(node: Node) -> bool:
    return (
        isinstance(node, Lit)
        and node.type is None
        and isinstance(node.value, int | float | Decimal)
        and not isinstance(node.value, bool)
    )
