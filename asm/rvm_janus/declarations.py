"""Declarations of Janus: the variables that they make, and their ends."""

from __future__ import annotations

from rvm_asm.cursor import Bad
from rvm_asm.lexer import NAME, Tokens
from rvm_asm.messages import Reporter
from rvm_asm.nodes import Declared, Lit, Node, Ref, Sub, TypeRef, Word
from rvm_asm.stats import AllocStat, OpStat, Stat

from rvm.codes.words import count
from rvm_janus.expressions import TYPE_WORDS, ExpressionParser
from rvm_janus.names import Variable, plain_name
from rvm_janus.values import Value, count_of, integer, literal

Initial = Value | list["Initial"]
"""The initial value of a declaration: a number, or rows in braces."""


class DeclarationParser(ExpressionParser):
    """Reads declarations, and makes variables that the text does not name."""

    def __init__(self, tokens: Tokens, report: Reporter, word: str, classic: bool) -> None:
        super().__init__(tokens, report, word, classic)
        self.held: dict[str, int] = {}
        """The number of local variables for arguments that are values."""

    def keyword(self, wanted: str, opener: str, start: int) -> None:
        """The keyword that ends a construct begun by another."""
        if not self.accept_word(wanted):
            line = self.report.sources.where(start, start + 1).line
            self.fail(f"`{wanted}`", f"of the `{opener}` in line {line}")

    def type_word(self) -> str:
        if not self.at_type():
            self.fail("a type")
        text = self.texts[self.i]
        self.i += 1
        return self.word_type if text == "int" else text

    def at_type(self) -> bool:
        return self.kinds[self.i] == NAME and self.texts[self.i] in TYPE_WORDS

    def declared(
        self, like: Variable | None = None
    ) -> tuple[Variable, list[Value | None], Initial | None]:
        """`int a[3] = {1, 2}`, `stack s`: the variable, its lengths, its initial value.

        After a comma the type may be left out: it is that of `like`, as in `int x, y`.
        """
        if like is None or self.at_type():
            t = self.type_word()
        else:
            t = "stack" if like.is_stack else like.type
        word = self.identifier("a name")
        lengths: list[Value | None] = []
        while self.accept("["):
            self.in_length = True
            lengths.append(None if self.kinds[self.i] == "]" else self.expression())
            self.in_length = False
            self.expect("]")
        v = Variable(word, t, len(lengths))
        if t == "stack":
            v = Variable(word, "", -1)
        initial: Initial | None = None
        if self.accept("="):
            if v.is_stack and self.kinds[self.i] != "{":
                self.keyword("nil", "stack", word.start)
            else:
                initial = self._initial()
        v.lengths = tuple(_length(n, k, initial) for k, n in enumerate(lengths))
        return v, lengths, initial

    def _initial(self) -> Initial:
        if not self.accept("{"):
            return self.expression()
        rows: list[Initial] = [self._initial()]
        while self.accept(","):
            rows.append(self._initial())
        self.expect("}")
        return rows

    def enter(self, v: Variable) -> Variable:
        known = self.procedure.names.get(v.word.text)
        if known is not None:
            self.twice(v.word, known.word)
            raise Bad
        self.procedure.names[v.word.text] = v
        return v

    def type_ref(self, v: Variable, lengths: list[Value | None]) -> TypeRef:
        """The type of a variable, as the assembly language writes it."""
        a, b = v.word.start, v.word.end
        if v.is_stack:
            inner = TypeRef(self.word_type, None, None, None, a, b)
            self.elements.written(v, inner)
            return TypeRef("stack", None, [Declared("", inner, a, b)], None, a, b)
        dims = [None if n is None else count_of(n) for n in lengths]
        return TypeRef(v.type, None, None, dims or None, a, b)

    def alloc(
        self,
        name: str,
        v: Variable,
        value: Node | None,
        start: int,
        end: int,
        lengths: list[Value | None] | None = None,
    ) -> Stat:
        word = v.word
        ref = self.type_ref(v, lengths or [])
        return AllocStat(
            name, Declared(plain_name(word.text), ref, word.start, word.end), value, start, end
        )

    def sizes(self, v: Variable, lengths: list[Value | None]) -> list[Value | None]:
        """The lengths of an array; those that are not written follow from its initial values."""
        out = [
            literal(known, v.word.start, v.word.end) if n is None and known is not None else n
            for n, known in zip(lengths, v.lengths, strict=True)
        ]
        if None in out:
            self._wrong(f"the length of `{v.word.text}` is not known", v.word, "write it: `[3]`")
        if any(n is not None and n.is_literal and n.number < 1 for n in out):
            self._wrong(f"`{v.word.text}` has no elements", v.word, "a length is 1 or more")
        return out

    def filled(self, op: str, v: Variable, initial: Initial, start: int, end: int) -> list[Stat]:
        """Statements that add an array's initial values, or with `sub` subtract them.

        Those of a stack are pushed, and popped; the first is on top.
        """
        out: list[Stat] = []
        if v.is_stack:
            assert isinstance(initial, list)
            for value in reversed(initial) if op == "add" else initial:
                if isinstance(value, list) or isinstance(value.node, Ref):
                    self._wrong(f"`{v.word.text}` begins with numbers, not variables", v.word)
                assert isinstance(value, Value)
                word = "push" if op == "add" else "pop"
                out += self.moved(word, value, v, v.word, start, end)
            return out

        def put(rows: Initial, at: tuple[int, ...]) -> None:
            if isinstance(rows, list):
                known = v.lengths[len(at)] if len(at) < v.rank else 0
                if known is not None and len(rows) > known:
                    what = f"`{v.word.text}` has no room for {len(rows)} values"
                    self._wrong(what, v.word)
                for k, row in enumerate(rows):
                    put(row, (*at, k))
                return
            if len(at) != v.rank:
                self._wrong(f"`{v.word.text}` has {count(v.rank, 'dimension')}", v.word)
            if rows.number == 0 and rows.is_literal:
                return
            index: list[Node] = [Lit(k, start, end) for k in at]
            steps = (Sub([*index], start, end),) if at else ()
            place = Ref(plain_name(v.word.text), steps, v.word.start, v.word.end)
            out.append(OpStat(op, [place, integer(rows, v.type)], start, end, end))

        put(initial, ())
        return out if op == "add" else out[::-1]

    def moved(
        self, word: str, value: Value, stack: Variable, name: Word, start: int, end: int
    ) -> list[Stat]:
        t = value.type or self.word_type
        self.elements.holds(stack, t)
        held = Ref(plain_name(name.text), (), name.start, name.end)
        if isinstance(value.node, Ref):
            return [OpStat(word, [value.node, held], start, end, end)]
        own = self.own(value, t)
        here = Ref(plain_name(own.word.text), (), value.start, value.end)
        known = integer(value, t)
        return [
            self.alloc("alloc", own, known if word == "push" else None, start, end),
            OpStat(word, [here, held], start, end, end),
            self.alloc("free", own, None if word == "push" else known, start, end),
        ]

    def own(self, value: Value, t: str) -> Variable:
        """A new variable that holds a value, under exactly this name."""
        text = " ".join(self.report.sources.text(value.start, value.end).split())
        self.held[text] = again = self.held.get(text, 0) + 1
        name = text if again == 1 else f"{text} ({again})"
        return Variable(Word(name, value.start, value.end), t)

    def made(self, start: int, like: Variable | None = None) -> tuple[list[Stat], Variable]:
        """The statements of one declaration of a `local`."""
        v, lengths, initial = self.declared(like)
        end = self.last_end()
        self.enter(v)
        if v.rank or initial is None:
            sizes = [] if v.is_stack else self.sizes(v, lengths)
            out = [self.alloc("alloc", v, None, start, end, sizes)]
            return out + (self.filled("add", v, initial, start, end) if initial else []), v
        assert isinstance(initial, Value)
        return [self.alloc("alloc", v, integer(initial, v.type), start, end)], v

    def ended(self, v: Variable, start: int, like: Variable | None = None) -> list[Stat]:
        """The statements of one declaration of a `delocal`."""
        at = self.i
        w, lengths, initial = self.declared(like)
        end = self.last_end()
        if w.word.text != v.word.text:
            self.report.about(
                w.word,
                "A002",
                f"expected `{v.word.text}`, found `{w.word.text}`",
                also=((v.word.start, v.word.end, "the `local` names it here"),),
                hint="`delocal` names the variables of its `local`, in the same order",
            )
            raise Bad
        if (w.type, w.rank) != (v.type, v.rank) and not v.is_stack:
            self.report.error(
                "A040",
                f"`{v.word.text}` was declared with another type",
                self.starts[at],
                w.word.end,
                also=((v.word.start, v.word.end, "declared here"),),
            )
            raise Bad
        del self.procedure.names[v.word.text]
        if v.rank or initial is None:
            v.lengths = tuple(
                b if a is None else a for a, b in zip(v.lengths, w.lengths, strict=True)
            )
            out = self.filled("sub", v, initial, start, end) if initial is not None else []
            sizes = self.sizes(v, lengths) if not v.is_stack else []
            return [*out, self.alloc("free", v, None, start, end, sizes)]
        assert isinstance(initial, Value)
        return [self.alloc("free", v, integer(initial, v.type), start, end)]


def _length(n: Value | None, axis: int, initial: Initial | None) -> int | None:
    """A length that is written or follows from the initial values;

    None if only the run knows it.
    """
    if n is not None:
        return n.number if n.is_literal else None
    rows: Initial | None = initial
    for _ in range(axis):
        rows = rows[0] if isinstance(rows, list) else None
    return len(rows) if isinstance(rows, list) else None
