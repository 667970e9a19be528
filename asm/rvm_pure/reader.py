"""Reading pure texts: definitions, with the types of their parameters and blocks of lines."""

from __future__ import annotations

from rvm_asm.cursor import Bad
from rvm_asm.lexer import END, NAME, NEWLINE, NUMBER
from rvm_asm.messages import did_you_mean

from rvm.types import SCALARS, Scalar, fixed
from rvm_pure.definition import Definition, Param
from rvm_pure.parser import MAX_LETS, TermParser
from rvm_pure.terms import Let, Pattern, Term
from rvm_pure.types import Arr, Product, Size, Type


class TextParser(TermParser):
    """A cursor over the tokens of a pure text."""

    def definitions(self) -> list[Definition]:
        """All definitions of the text; errors in others are reported."""
        out: list[Definition] = []
        while self.kinds[self.i] != END:
            first = self.i
            try:
                if self.accept(NEWLINE):
                    continue
                out.append(self._definition())
            except Bad:
                self.depth = self.lets = 0
                self.i += self.i == first
                while self.kinds[self.i] != END and self.texts[self.i] != "def":
                    self.i += 1
        return out

    def _definition(self) -> Definition:
        if not self.accept_word("def"):
            self.fail("`def`", "a text is a list of definitions: `def f(x: f64) = x * x`")
        word = self.name("the definition's name")
        self.bound = []
        params, continuation = self.parameters()
        self.expect("=", f"a definition is written `def {word.text}(x: f64) = x * x`")
        lines = self._lines()
        body = self._block(lines) if lines else self.term()
        if not self.accept(NEWLINE):
            hint = {"if": "a choice is written `if c then a else b`"}.get(self.texts[self.i], "")
            more = "a definition is one term, or lines that name values and a term"
            self.fail("the end of the definition", hint or more)
        return Definition(word, params, body, bool(lines), continuation)

    def parameters(self) -> tuple[tuple[Param, ...], tuple[str, ...]]:
        """The parameters in brackets, which are bound, and a continuation, if there is one."""
        self.expect("(")
        params: list[Param] = []
        continuation: tuple[str, ...] = ()
        while self.kinds[self.i] != ")":
            p = self.name("a parameter")
            self.bound.append(self.texts[self.i - 1])
            if self.accept("("):
                continuation = (p.text, *self._adjoints())
                break
            self.expect(":", f"every parameter has a type: `{p.text}: f64`")
            params.append(Param(p.text, self.type(), p.start, p.end))
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(params), continuation

    def _adjoints(self) -> list[str]:
        """The variables of a continuation, which is the last parameter."""
        found = [self.name("a variable").text]
        while self.accept(","):
            found.append(self.name("a variable").text)
        self.expect(")")
        return found

    def type(self) -> Type:
        """A type as written: `f64`, `f64[n, 3]`, `(f64, f64[n])[m]`."""
        i = self.i
        if self.accept("("):
            items = [self.type()]
            while self.accept(","):
                items.append(self.type())
            self.expect(")")
            out: Type = items[0] if len(items) == 1 else Product(tuple(items))
        else:
            out = self._number_type(i)
        if not self.accept("["):
            return out
        lengths = [self._length()]
        while self.accept(","):
            lengths.append(self._length())
        self.expect("]")
        for n in reversed(lengths):
            out = Arr(out, n)
        return out

    def _number_type(self, i: int) -> Scalar:
        if self.kinds[i] != NAME:
            self.fail("a type")
        text = self.texts[i]
        self.i += 1
        if text not in SCALARS:
            self.report.error(
                "A005",
                f"there is no type `{text}`",
                self.starts[i],
                self.end_of(i),
                hint=did_you_mean(text, SCALARS) or f"there are {', '.join(SCALARS)}",
            )
            raise Bad
        if text == "fixed" and self.accept("("):
            frac = self.whole()
            self.expect(")")
            return fixed(min(frac, 62))
        return SCALARS[text]

    def whole(self) -> int:
        if self.kinds[self.i] != NUMBER or not self.texts[self.i].isdigit():
            self.fail("a whole number")
        self.i += 1
        return int(self.texts[self.i - 1][:18])

    def _length(self) -> Size:
        if self.kinds[self.i] == NUMBER:
            return Size("", self.whole())
        name = self.name("a length: a name or a number").text
        for sign, factor in (("+", 1), ("-", -1)):
            if self.accept(sign):
                if self.kinds[self.i] != NUMBER:
                    self.fail("a whole number", "a length is `n`, `n + 1`, `n - 1` or a number")
                return Size(name, factor * self.whole())
        return Size(name)

    # Blocks of lines.

    def _lines(self) -> bool:
        """Whether a block of lines begins here, each but the last of which names a value."""
        return self._pattern_end(self.i) > 0

    def _pattern_end(self, i: int) -> int:
        """The place of the `=` after the pattern at `i`; 0 if there is none."""
        depth = 0
        while self.kinds[i] == NAME or self.kinds[i] in "(),":
            depth += (self.kinds[i] == "(") - (self.kinds[i] == ")")
            i += 1
            if depth == 0 and self.kinds[i] != ",":
                break
        return i if self.kinds[i] == "=" and depth == 0 else 0

    def _block(self, more: bool) -> Term:
        lines: list[tuple[Pattern, Term, int]] = []
        while more:
            first, start = self.i, self.starts[self.i]
            pattern = self.patterns()
            names = self.written(first)
            self.expect("=")
            value = self.term()
            self.bound += names
            if not self.accept(NEWLINE):
                self.fail("the end of the line")
            lines.append((pattern, value, start))
            if len(lines) > MAX_LETS:
                self.too_deep("the lines of a definition may use each other", MAX_LETS)
            more = self._lines()
        body = self._result()
        for pattern, value, start in reversed(lines):
            body = Let(pattern, value, body, start=start, end=value.end)
        return body

    def _result(self) -> Term:
        if self.kinds[self.i] in (END, NEWLINE) or self.at_word("def"):
            self.fail("the definition's value", "its last line is a term without a name")
        return self.tuple_or_term()
