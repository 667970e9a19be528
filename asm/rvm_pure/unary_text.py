"""Unary forms as texts, and their reader: a head, and a primitive a line.

In a reverse one each line is the pair of the primitive and of the continuation before its
transposed Jacobian `J`, both after a `proj` that takes the context and the continuation apart.
"""

from __future__ import annotations

from rvm_asm.cursor import Bad
from rvm_asm.expressions import operator_name
from rvm_asm.lexer import END, NAME, NEWLINE
from rvm_asm.messages import Reporter
from rvm_asm.source import SourceMap

from rvm.isa import FUNCTIONS
from rvm_pure.definition import Definition
from rvm_pure.lexer import lex
from rvm_pure.printer import Printer
from rvm_pure.reader import TextParser
from rvm_pure.terms import Each, Fold, Lam, Num, Var
from rvm_pure.unary import Primitive, Unary


def text(u: Unary) -> str:
    """The text of a unary form."""
    d = u.definition
    spelled = Printer().spelled
    params = ", ".join(f"{spelled(p.name)}: {p.type}" for p in d.params)
    lines = [f"unf {'reverse ' * u.is_reverse}{spelled(d.name.text)}({params}) ="]
    m = len(d.params)
    for line in u.lines:
        own = primitive(line)
        if u.is_reverse:
            own = f"<proj {m} 1 0; {own}, proj 0 {m} 1 o (proj {m} 1 0; J {own})>"
        lines.append(f"    {own}")
        m += grown(line)
    return "\n".join(lines) + "\n"


def grown(line: Primitive) -> int:
    """The number of values that a primitive adds to its context."""
    return -line.counts[1] if line.word == "proj" else _GROWN[line.word]


_GROWN = dict.fromkeys(("var", "const", "op", "fst", "snd", "map", "reduce"), 1) | {"pair": -1}


def primitive(line: Primitive) -> str:
    """A primitive as a text."""
    match line:
        case Primitive("op", _, fn):
            row = FUNCTIONS[fn]
            return f"op {row.symbol if row.symbol and row.arity == 2 else fn}"
        case Primitive("const", _, _, Num() as c):
            return f"const {Printer().text(c)}"
        case Primitive("map", (k,), _, Lam() as fn):
            arrays = tuple(Var(f"a{j}") for j in range(k))
            return Printer().text(Each(fn, arrays)).rsplit(" ", k)[0]
        case Primitive("reduce", _, _, Lam() as fn):
            return Printer().text(Fold("reduce", fn, Var("v"), Var("a"))).rsplit(" ", 2)[0]
    return " ".join((line.word, *map(str, line.counts)))


def read_unary(source: str, name: str = "<text>") -> Unary:
    """The unary form in a text; AssemblyError for errors in it."""
    report = Reporter(SourceMap())
    tokens = lex(report.sources.add(name, source), report)
    report.raise_if_failed()
    try:
        return _Reader(tokens, report).unary()
    except Bad:
        report.raise_if_failed()
        raise


class _Reader(TextParser):
    """A cursor over the tokens of a unary form."""

    def unary(self) -> Unary:
        self.accept(NEWLINE)
        if not self.accept_word("unf"):
            self.fail("`unf`")
        reverse = self.accept_word("reverse")
        word = self.name("a name")
        params, _ = self.parameters()
        self.expect("=")
        m = len(params)
        found: list[Primitive] = []
        while self.kinds[self.i] != END:
            line = self._pair(m) if reverse else self._primitive()
            self.expect(NEWLINE)
            found.append(line)
            m += grown(line)
        d = Definition(word, params, Num(0.0))
        return Unary(d, tuple(found), reverse)

    def _pair(self, m: int) -> Primitive:
        """The pair of a primitive and of what its adjoint does to the continuation."""
        self.expect("<")
        self._fixed("proj", m, 1, 0)
        self.expect(";")
        first = self._primitive()
        self.expect(",")
        self._fixed("proj", 0, m, 1)
        if not self.accept_word("o"):
            self.fail("`o`")
        self.expect("(")
        self._fixed("proj", m, 1, 0)
        self.expect(";")
        if not self.accept_word("J"):
            self.fail("`J`")
        at = self.i
        if self._primitive() != first:
            self.i = at
            self.fail("the primitive that stands before")
        self.expect(")")
        self.expect(">")
        return first

    def _fixed(self, word: str, *counts: int) -> None:
        at = self.i
        if self._primitive() != Primitive(word, counts):
            self.i = at
            self.fail(f"`{word} {' '.join(map(str, counts))}`")

    def _primitive(self) -> Primitive:
        if self.kinds[self.i] != NAME:
            self.fail("a primitive")
        word = self.texts[self.i]
        self.i += 1
        match word:
            case "var":
                return Primitive("var", (self.whole(),))
            case "proj":
                return Primitive("proj", (self.whole(), self.whole(), self.whole()))
            case "fst" | "snd" | "pair":
                return Primitive(word)
            case "const":
                value = self._atom()
                return Primitive("const", term=value)
            case "op":
                sign = self.texts[self.i]
                self.i += 1
                fn = sign if sign in FUNCTIONS else operator_name(sign, 2)
                if fn not in FUNCTIONS:
                    self.i -= 1
                    self.fail("a function of the table")
                return Primitive("op", fn=fn)
            case "reduce":
                return Primitive("reduce", term=self.function(2))
        if word != "map" and not (word[:3] == "map" and word[3:].isdigit()):
            self.i -= 1
            self.fail("a primitive")
        k = int(word[3:] or 1)
        return Primitive("map", (k,), term=self.function(k))
