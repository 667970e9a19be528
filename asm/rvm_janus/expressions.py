"""Parsing expressions of Janus, by their own table of binding powers."""

from __future__ import annotations

from typing import NoReturn

from rvm_asm.cursor import Bad, Cursor
from rvm_asm.lexer import NAME, NUMBER, Tokens
from rvm_asm.messages import Reporter, did_you_mean
from rvm_asm.nodes import Application, Node, Range, Ref, Sub, Word

from rvm.types import TYPES
from rvm_janus.messages import ELSEWHERE
from rvm_janus.names import Elements, Procedure, Variable, plain_name
from rvm_janus.values import (
    BOOL,
    Value,
    binary,
    cast,
    condition,
    integer,
    literal,
    node_of,
    truth,
    unary,
)

MAX_DEPTH = 100
"""The largest nesting depth of expressions."""
BINARY = {
    "**": 7,
    "*/": 7,
    "*": 6,
    "/": 6,
    "%": 6,
    "+": 5,
    "-": 5,
    "<<": 4,
    ">>": 4,
    "<": 3,
    "<=": 3,
    ">": 3,
    ">=": 3,
    "=": 3,
    "!=": 3,
    "&": 2,
    "|": 2,
    "^": 2,
    "&&": 1,
    "||": 1,
}
"""Binding powers, as jana has them: the bitwise operators are looser than comparisons."""
INTEGERS = tuple(row.name for row in TYPES.values() if row.kind == "integer")
TYPE_WORDS = ("int", "stack", "bool", *INTEGERS)
_BOTH = "procedure int if then else fi from do loop until call uncall skip"
_JANA = """stack bool true false push pop local delocal external error empty top size show print
printf nil assert iterate by to ancilla constant"""
JANA_WORDS = frozenset((*_BOTH.split(), *_JANA.split(), *INTEGERS))
CLASSIC_WORDS = frozenset((*_BOTH.split(), "read", "write"))


class ExpressionParser(Cursor):
    """A cursor over the tokens of a Janus text that reads expressions and places."""

    def __init__(self, tokens: Tokens, report: Reporter, word: str, classic: bool) -> None:
        super().__init__(tokens, report)
        self.word_type = word
        """The type of `int`."""
        self.classic = classic
        self.words = CLASSIC_WORDS if classic else JANA_WORDS
        self.procedure = Procedure(Word("", 0, 0))
        self.known: dict[str, int] = {}
        """The first values of the numbers that `main` has declared so far."""
        self.in_length = False
        """Whether the length of an array is read."""
        self.elements = Elements()
        heads = [i for i, text in enumerate(tokens.texts) if text == "procedure"]
        self.defined = {tokens.texts[i + 1] for i in heads}
        """The names of all procedures of the text."""

    def fail(self, expected: str, hint: str = "") -> NoReturn:
        """Report that something else was expected, with what is written here if it is known."""
        text = self.texts[self.i]
        if text == "=" and self.texts[self.i - 1] == "=":
            hint = "`=` compares"
        super().fail(expected, hint or ELSEWHERE.get(text, ""))

    def identifier(self, what: str) -> Word:
        """A name that is not a word of the language."""
        i = self.i
        text = self.texts[i]
        if self.kinds[i] != NAME or text in self.words:
            self.fail(what)
        self.i += 1
        return Word(text, self.starts[i], self.end_of(i))

    def variable(self, word: Word) -> Variable:
        """The meaning of a name; A005 if it has none here."""
        self.procedure.used.add(word.text)
        found = self.procedure.names.get(word.text)
        if found is None:
            self.report.about(
                word,
                "A005",
                f"nothing here is called `{word.text}`",
                hint=did_you_mean(word.text, self.procedure.names)
                or f"declare it: `int {word.text}`",
            )
            raise Bad
        return found

    def twice(self, word: Word, first: Word) -> None:
        """Report a name that is declared for the second time."""
        also = ((first.start, first.end, "first here"),)
        what = f"`{word.text}` is declared twice"
        self.report.about(word, "A006", what, also=also)

    # Expressions.

    def condition(self) -> Node:
        """A condition."""
        return condition(self.expression(), self.classic)

    def expression(self, power: int = 0) -> Value:
        """An expression whose operators bind tighter than `power`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.too_deep("the expression nests", MAX_DEPTH)
        left = self._prefix()
        while (own := BINARY.get(self.kinds[self.i], 0)) > power:
            sign = self.kinds[self.i]
            if sign == "*/" and self.word_type != "i32":
                self.fail("another operator: `*/` is for numbers of 32 bits")
            self.i += 1
            left = binary(sign, left, self.expression(own), self.word_type, self.classic)
        if not power and self.accept("?"):
            yes = self.expression()
            self.expect(":")
            no = self.expression()
            t = yes.type or no.type or self.word_type
            args = [condition(left, self.classic), node_of(yes, t), node_of(no, t)]
            made = Application("choose", args, left.start, no.end)
            left = Value(t, made, 0, left.start, no.end)
        self.depth -= 1
        return left

    def _prefix(self) -> Value:
        i = self.i
        kind, start = self.kinds[i], self.starts[i]
        if kind in ("!", "~"):
            self.i += 1
            return unary(kind, self._prefix(), start, self.classic)
        if kind in ("-", "+") and self.kinds[i + 1] == NUMBER:
            self.i += 1
            found = self._number()
            return literal(-found.number if kind == "-" else found.number, start, found.end)
        if kind == "(" and self.texts[i + 1] in ("int", *INTEGERS) and self.kinds[i + 2] == ")":
            t = self.texts[i + 1]
            self.i += 3
            return cast(self.word_type if t == "int" else t, self._prefix(), start)
        if kind == "(":
            self.i += 1
            found = self.expression()
            self.expect(")")
            return found
        if kind == NUMBER:
            return self._number()
        if kind == NAME and self.texts[i] in ("true", "false") and not self.classic:
            self.i += 1
            return truth(self.texts[i] == "true", start, self.last_end())
        if kind == NAME and self.texts[i] in ("empty", "top", "size") and not self.classic:
            return self._question(self.texts[i])
        if kind == NAME and self.texts[i] not in self.words:
            return self._place_value()
        return self.fail(
            "an expression", "a number may have a sign; `0 - x` negates" * (kind == "-")
        )

    def _number(self) -> Value:
        i = self.i
        text = self.texts[i]
        self.i += 1
        if len(text) > 400:
            self.report.error("A041", "the number is too large", self.starts[i], self.end_of(i))
            raise Bad
        base = {"x": 16, "o": 8, "b": 2}.get(text[1:2].lower(), 10)
        return literal(int(text, base), self.starts[i], self.end_of(i))

    def _question(self, what: str) -> Value:
        """`empty(s)`, `top(s)` or `size(x)`."""
        start = self.starts[self.i]
        self.i += 1
        self.expect("(")
        word = self.identifier("the name of a stack" if what != "size" else "a name")
        v = self.variable(word)
        self.expect(")")
        ref = Ref(plain_name(word.text), (), word.start, word.end)
        end = self.last_end()
        if what == "size" and not v.rank:
            self._wrong(f"`{word.text}` is a number, and has no size", word)
        if what != "size" and not v.is_stack:
            self._wrong(f"`{word.text}` is not a stack", word)
        if what == "size" and self.in_length and v.lengths and v.lengths[0] is not None:
            return literal(v.lengths[0], start, end)
        if what == "size":
            made = Application(self.word_type, [Application("len", [ref], start, end)], start, end)
            return Value(self.word_type, made, 0, start, end)
        t = BOOL if what == "empty" else self._element(v)
        return Value(t, Application(what, [ref], start, end), 0, start, end)

    def _element(self, stack: Variable) -> str:
        return self.elements.types.get(self.elements.find(stack), self.word_type)

    def _wrong(self, message: str, word: Word, hint: str = "") -> None:
        self.report.about(word, "A040", message, hint=hint)
        raise Bad

    # Places.

    def place(self) -> tuple[Variable, Ref, bool]:
        """A place: its variable, its node, and whether it is all of the variable."""
        word = self.identifier("the name of a variable")
        v = self.variable(word)
        items: list[Node | Range] = []
        first = self.starts[self.i]
        while self.accept("["):
            index = self.expression()
            items.append(node_of(index) if index.type != BOOL else integer(index, self.word_type))
            self.expect("]")
        if items and v.rank <= 0:
            what = "a stack" if v.is_stack else "a number"
            self._wrong(f"`{word.text}` is {what}, and has no elements", word)
        if v.is_open:
            v.rank = max(v.rank, len(items))
        steps = (Sub(items, first, self.last_end()),) if items else ()
        ref = Ref(plain_name(word.text), steps, word.start, self.last_end())
        return v, ref, not items

    def _place_value(self) -> Value:
        known = self.known.get(self.texts[self.i]) if self.in_length else None
        if known is not None:
            word = self.identifier("a name")
            return literal(known, word.start, word.end)
        v, ref, _ = self.place()
        return Value(v.type, ref, 0, ref.start, ref.end)
