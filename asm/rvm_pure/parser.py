"""Parsing terms, with functions applied by brackets and by arguments in a row."""

from __future__ import annotations

from itertools import count
from typing import NoReturn

from rvm_asm.cursor import Bad, Cursor
from rvm_asm.expressions import BINARY, COMPARE, NOT, POWER, UNARY, operator_name
from rvm_asm.lexer import NAME, NEWLINE, NUMBER, Tokens
from rvm_asm.literals import WORDS, number
from rvm_asm.messages import Reporter, did_you_mean
from rvm_asm.nodes import Word

from rvm.isa import FUNCTIONS
from rvm.types import SCALARS
from rvm_pure.terms import (
    FOLDS,
    PRIMS,
    App,
    Call,
    Each,
    Fold,
    If,
    Index,
    Lam,
    Let,
    Loop,
    Num,
    Op,
    Pattern,
    Prim,
    Proj,
    Term,
    Tup,
    Update,
    Var,
    tup,
)

MAX_DEPTH = 100
"""The largest nesting depth of terms; lets after each other are one level."""
MAX_LETS = 6000
"""The most lets, or lines, after each other."""
MAX_LINKS = 200
"""The largest number of operators in a chain, each of which contains its left side."""
PREFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "negate": "neg", "pow": "**"}
"""The words for operators in prefix notation."""
_WORDS = "def let in if then else loop for do to fun with and or not true false inf nan"
KEYWORDS = frozenset(_WORDS.split())
SECTIONS = frozenset(sign for sign in BINARY if not FUNCTIONS[sign].lazy)
"""The operators that can be used as binary functions."""
_LOOP = "a loop is written `loop s = v for i < n do e`"
_INSTEAD = {
    "[": "arrays are made by `iota`, `replicate`, `zeros` and `map`",
    "&": "conditions are joined by `and`",
    "|": "conditions are joined by `or`",
}
"""Replacements for some operators of other languages."""
_EACH = ("map", "map2", "map3", "map4", "map5", "map6", "map7", "map8", "mapn")
_SUGAR = {"fst": 1, "snd": 1, "proj": 2, "zip": 2, "zeros": 1, "scatter_add": 3}
"""Words for terms that are defined by other terms."""
WORDS_OF_TERMS = frozenset((*KEYWORDS, *_EACH, *FOLDS, *PRIMS, *_SUGAR, *PREFIX))


class TermParser(Cursor):
    """A cursor over the tokens of a pure text."""

    def __init__(self, tokens: Tokens, report: Reporter) -> None:
        super().__init__(tokens, report)
        defined = {self.texts[i + 1] for i, t in enumerate(self.texts[:-1]) if t == "def"}
        self.defined = {*defined, *(f"`{n}`" for n in defined)}
        self.bound: list[str] = []
        """The names that are bound here, as written: a variable hides a function of its name,
        but not in backquotes."""
        self.lets = 0
        """The number of lets around this place."""

    def name(self, what: str) -> Word:
        """A name that is not a word of the language, or is in backquotes."""
        i = self.i
        text = self.texts[i]
        if self.kinds[i] != NAME:
            self.fail(what)
        start, end = self.starts[i], self.end_of(i)
        if text in WORDS_OF_TERMS:
            message = f"`{text}` is a word of the language"
            hint = f"another name is free, and so is this one in backquotes, `` `{text}` ``"
            self.report.error("A062", message, start, end, hint=hint)
            raise Bad
        self.i += 1
        return Word(text.strip("`"), start, end)

    def written(self, first: int) -> list[str]:
        """The names as written from a token to here."""
        tokens = range(first, self.i)
        return [self.texts[i] for i in tokens if self.kinds[i] == NAME]

    def patterns(self) -> Pattern:
        """`x`, `(x, y)`, and without brackets `x, y`."""
        found = [self._pattern()]
        while self.accept(","):
            found.append(self._pattern())
        return found[0] if len(found) == 1 else tuple(found)

    def _pattern(self) -> Pattern:
        if self.accept("("):
            inner = self.patterns()
            self.expect(")")
            return inner
        return self.name("a name").text

    # Terms.

    def tuple_or_term(self) -> Term:
        """A term, or several with commas between them."""
        start = self.starts[self.i]
        items = [self.term()]
        while self.accept(","):
            items.append(self.term())
        return items[0] if len(items) == 1 else Tup(tuple(items), start=start, end=self.last_end())

    def term(self, power: int = 0) -> Term:
        """A term whose operators bind tighter than `power`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.too_deep("the term nests", MAX_DEPTH)
        left = self._prefix()
        for links in count():
            sign = self.texts[self.i]
            own = BINARY.get(sign, 0) if self.kinds[self.i] in (NAME, sign) else 0
            if own <= power:
                break
            if links == MAX_LINKS:
                hint = "give a part of it a name: `let t = … in …`"
                self.too_deep("the chain of operators nests", MAX_LINKS, hint)
            self.i += 1
            right = self.term(own - 1 if own == POWER else own)
            left = Op(operator_name(sign, 2), (left, right), start=left.start, end=right.end)
            if own == COMPARE and BINARY.get(self.texts[self.i]) == COMPARE:
                self.fail("no second comparison", "write `a < b and b < c`")
        if power == 0 and self.at_word("with"):
            left = self._update(left)
        self.depth -= 1
        return left

    def _prefix(self) -> Term:
        while self.accept(NEWLINE):
            pass
        i = self.i
        start, text = self.starts[i], self.texts[i]
        if self.kinds[i] in ("-", "~") or (text == "not" and self.kinds[i] == NAME):
            self.i += 1
            of = self.term(NOT if text == "not" else UNARY - 1)
            if text == "-" and isinstance(of, Num) and not isinstance(of.value, bool):
                return Num(-of.value, of.elem, start=start, end=of.end)
            return Op(operator_name(text, 1), (of,), start=start, end=of.end)
        found = {"let": self._let, "if": self._if, "loop": self._loop, "fun": self._fun}.get(text)
        if found is not None and self.kinds[i] == NAME:
            self.i += 1
            return found(start)
        return self._application()

    def _let(self, start: int) -> Term:
        before = len(self.bound)
        lets: list[tuple[Pattern, Term, int]] = []
        while not lets or self.accept_word("let"):
            first = self.i
            pattern = self.patterns()
            names = self.written(first)
            self.expect("=")
            self.depth -= 1
            self.lets += 1
            if self.lets > MAX_LETS:
                self.too_deep("lets may stand in each other", MAX_LETS)
            value = self.tuple_or_term()
            self.depth += 1
            if not self.accept_word("in"):
                self.fail("`in`", "a value with a name is written `let y = … in …`")
            lets.append((pattern, value, start))
            self.bound += names
            while self.accept(NEWLINE):
                pass
            start = self.starts[self.i]
        body = self.term()
        self.lets -= len(lets)
        del self.bound[before:]
        for pattern, value, begin in reversed(lets):
            body = Let(pattern, value, body, start=begin, end=body.end)
        return body

    def _under(self, names: list[str]) -> Term:
        """A term that sees more names."""
        before = len(self.bound)
        self.bound += names
        body = self.term()
        del self.bound[before:]
        return body

    def _if(self, start: int) -> Term:
        cond = self.term()
        if not self.accept_word("then"):
            self.fail("`then`", "a choice is written `if c then a else b`")
        yes = self.term()
        if not self.accept_word("else"):
            self.fail("`else`", "a term has a value either way: `if c then a else b`")
        no = self.term()
        return If(cond, yes, no, start=start, end=no.end)

    def _loop(self, start: int) -> Term:
        first = self.i
        pattern = self.patterns()
        names = self.written(first)
        self.expect("=")
        init = self.tuple_or_term()
        if not self.accept_word("for"):
            self.fail("`for`", _LOOP)
        var = self.name("the loop's variable").text
        names.append(self.texts[self.i - 1])
        down = self.accept("=")
        if down:
            at = self.starts[self.i]
            last = self.term()
            if not (isinstance(last, Op) and last.fn == "-" and last.args[1] == Num(1)):
                what = "a loop that counts down begins at the number of its iterations minus one"
                self.report.error("A002", what, at, last.end, hint="`for i = n - 1 to 0 do`")
                raise Bad
            count = last.args[0]
            if not (self.accept_word("to") and self.texts[self.i] == "0" and self.accept(NUMBER)):
                self.fail("`to 0`")
        else:
            self.expect("<", _LOOP)
            count = self.term()
        if not self.accept_word("do"):
            self.fail("`do`", _LOOP)
        body = self._under(names)
        return Loop(pattern, init, var, count, body, down, start=start, end=body.end)

    def _update(self, of: Term) -> Term:
        self.i += 1
        items = self._items()
        self.expect("=")
        value = self.term()
        return Update(of, items, value, start=of.start, end=value.end)

    def _items(self) -> tuple[Term, ...]:
        self.expect("[")
        items = [self.term()]
        while self.accept(","):
            items.append(self.term())
        self.expect("]")
        return tuple(items)

    # Functions.

    def _fun(self, start: int) -> Term:
        self.expect("(")
        first = self.i
        params: list[Pattern] = []
        while self.kinds[self.i] != ")":
            params.append(self._pattern())
            if not self.accept(","):
                break
        names = self.written(first)
        self.expect(")")
        self.expect("->")
        body = self._under(names)
        return Lam(tuple(params), body, start=start, end=body.end)

    def function(self, arity: int) -> Lam:
        """The function of a map or a fold: `(x, y. e)`, `fun (x, y) -> e`, `*`, a name."""
        i = self.i
        start = self.starts[i]
        fresh = [f"{n}'" for n in "abcdefgh"[: max(arity, 1)]]
        args = tuple(Var(n, start=start, end=self.end_of(i)) for n in fresh)
        bracket = self.kinds[i] == "("
        if self.kinds[i] in SECTIONS or (bracket and self.kinds[i + 2] == ")"):
            self.i += bracket
            sign = self.texts[self.i]
            self.i += 1 + bracket
            end = self.last_end()
            if sign in BINARY:
                op: Term = Op(operator_name(sign, 2), args, start=start, end=end)
                return Lam(tuple(fresh), op, start=start, end=end)
            return self._named(sign, args, start, end)
        if bracket:
            self.i += 1
            if self.accept_word("fun"):
                made = self._fun(start)
            else:
                first = self.i
                params = [self._pattern()]
                while self.accept(","):
                    params.append(self._pattern())
                names = self.written(first)
                self.expect(".", "a function is written `(x, y. e)`")
                body = self._under(names)
                made = Lam(tuple(params), body, start=start, end=body.end)
            self.expect(")")
            assert isinstance(made, Lam)
            return made
        if self.kinds[i] != NAME:
            self.fail("a function", "`(x. e)`, a sign, or the name of a function")
        self.i += 1
        return self._named(self.texts[i], args, start, self.last_end())

    def _named(self, name: str, args: tuple[Var, ...], start: int, end: int) -> Lam:
        fn = PREFIX.get(name, name)
        if name in self.defined:
            body: Term = Call(name.strip("`"), args, start=start, end=end)
        elif fn in FUNCTIONS:
            body = Op(fn, args, start=start, end=end)
        else:
            self.unknown(name, start, end)
        return Lam(tuple(a.name for a in args), body, start=start, end=end)

    def unknown(self, name: str, start: int, end: int) -> NoReturn:
        """Report a name without a meaning (A004)."""
        known = [*self.bound, *self.defined, *WORDS_OF_TERMS, *FUNCTIONS]
        self.report.error(
            "A004", f"there is no function `{name}`", start, end, hint=did_you_mean(name, known)
        )
        raise Bad

    # Applications.

    def _application(self) -> Term:
        i = self.i
        text, start = self.texts[i], self.starts[i]
        if self.kinds[i] != NAME or text in self.bound or text in WORDS:
            return self._postfix()
        if text in _EACH:
            self.i += 1
            arity = {"map": 1, "mapn": 1}.get(text) or int(text[3:])
            fn = self.function(arity)
            if text == "mapn":
                arity = len(fn.params)
            arrays = tuple(self._argument(text) for _ in range(arity))
            return Each(fn, arrays, start=start, end=self.last_end())
        if text in FOLDS:
            self.i += 1
            fn = self.function(2)
            init, array = self._argument(text), self._argument(text)
            return Fold(text, fn, init, array, start=start, end=self.last_end())
        arity = self._arity(text)
        if arity == 0 or self._is_call(i):
            return self._postfix()
        self.i += 1
        args: tuple[Term, ...] = (self._postfix(),)
        if not isinstance(args[0], Tup):
            args = (*args, *(self._postfix() for _ in range(arity - 1)))
        return self._applied(text, args, start)

    def _argument(self, of: str) -> Term:
        """An argument of a map or fold."""
        if self.kinds[self.i] in (NEWLINE, ")", ",", "]"):
            fold = f"a function, a first value and an array: `{of} f v A`"
            takes = fold if of in FOLDS else "a function and its arrays: `map f A`, `map2 f A B`"
            self.fail(f"an argument of `{of}`", f"it takes {takes}")
        return self._postfix()

    def _is_call(self, i: int) -> bool:
        """Whether a bracket follows without a space, which makes a call of a name."""
        return self.kinds[i + 1] == "(" and self.starts[i + 1] == self.end_of(i)

    def _arity(self, text: str) -> int:
        fn = PREFIX.get(text, text)
        found = PRIMS.get(text, 0) or _SUGAR.get(text, 0)
        if not found and text not in self.defined and fn in FUNCTIONS:
            found = FUNCTIONS[fn].arity
        return found

    def _applied(self, text: str, args: tuple[Term, ...], start: int) -> Term:
        """A function of a word applied; a tuple holds the arguments of 004's functions."""
        end = self.last_end()
        fn = PREFIX.get(text, text)
        arity = self._arity(text)
        if len(args) == 1 < arity and isinstance(args[0], Tup):
            args = args[0].items
        if arity == 1 < len(args) and text not in FUNCTIONS:
            args = (Tup(args, start=args[0].start, end=args[-1].end),)
        if text not in self.defined and arity and len(args) != arity:
            self.report.error(
                "A044",
                f"`{text}` takes {arity} argument{'s' * (arity != 1)}, not {len(args)}",
                start,
                end,
            )
            raise Bad
        match text:
            case "fst" | "snd":
                return Proj(int(text == "snd"), args[0], start=start, end=end)
            case "proj":
                if not (isinstance(args[0], Num) and type(args[0].value) is int):
                    what = "the number of a part is written: `proj 2 e`"
                    self.report.error("A002", what, start, end)
                    raise Bad
                return Proj(args[0].value - 1, args[1], start=start, end=end)
            case "zip":
                pair = ("a'", "b'")
                return Each(Lam(pair, tup(map(Var, pair))), args, start=start, end=end)
            case "zeros":
                return Prim("replicate", (args[0], Num(0.0)), start=start, end=end)
            case "scatter_add":
                x, at, values = args
                added = Op("scatter", (values, at, Op("len", (x,))), start=start, end=end)
                return Op("+", (x, added), start=start, end=end)
        if text in self.defined:
            return Call(text.strip("`"), args, start=start, end=end)
        if text in PRIMS:
            return Prim(text, args, start=start, end=end)
        return Op(fn, args, start=start, end=end)

    def _postfix(self) -> Term:
        out = self._atom()
        while self.kinds[self.i] == "[" and self.starts[self.i] == self.last_end():
            items = self._items()
            out = Index(out, items, start=out.start, end=self.last_end())
        return out

    def _atom(self) -> Term:
        i = self.i
        kind, text, start = self.kinds[i], self.texts[i], self.starts[i]
        if kind == "(":
            self.i += 1
            out = self.tuple_or_term()
            self.expect(")")
            if isinstance(out, Lam) and self.kinds[self.i] == "(":
                return App(out, self._arguments(), start=start, end=self.last_end())
            return out
        if kind == NUMBER:
            return self._number(start)
        if kind == "-" and self.kinds[i + 1] == NUMBER:
            self.i += 1
            n = self._number(start)
            return Num(-n.value, n.elem, start=start, end=n.end)
        if kind != NAME:
            self.fail("a term", _INSTEAD.get(text, ""))
        if text in WORDS:
            self.i += 1
            return Num(WORDS[text], start=start, end=self.last_end())
        if text in KEYWORDS:
            self.fail("a term", "it needs brackets here" if text in ("let", "if", "loop") else "")
        called = self._is_call(i)
        self.i += 1
        if text in self.bound:
            var = Var(text.strip("`"), start=start, end=self.last_end())
            return App(var, self._arguments(), start=start, end=self.last_end()) if called else var
        if called:
            if text not in self.defined and not self._arity(text):
                self.unknown(text, start, self.last_end())
            return self._applied(text, self._arguments(), start)
        if self._arity(text) or text in self.defined or text in _EACH or text in FOLDS:
            self.i -= 1
            self.fail("a term", f"`{text}` is a function: its use as an argument needs brackets")
        return Var(text.strip("`"), start=start, end=self.last_end())

    def _arguments(self) -> tuple[Term, ...]:
        self.expect("(")
        args: list[Term] = []
        while self.kinds[self.i] != ")":
            args.append(self.term())
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(args)

    def _number(self, start: int) -> Num:
        text, _, elem = self.texts[self.i].partition("'")
        what = f"there is no type `{elem}`" if elem else "the number is too large"
        try:
            value = number(text)
        except ValueError as error:
            value, what = None, str(error)
        self.i += 1
        if value is None or (elem and elem not in SCALARS):
            self.report.error("A041", what, start, self.last_end())
            raise Bad
        return Num(value, elem, start=start, end=self.last_end())
