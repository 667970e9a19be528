"""Parsing statements of Janus into those of the assembly language."""

from __future__ import annotations

import ast

from rvm_asm.cursor import Bad
from rvm_asm.lexer import NAME, STRING
from rvm_asm.nodes import Declared, Lit, Node, Operator, Ref, Sub, TypeRef, Word
from rvm_asm.stats import (
    AllocStat,
    Arm,
    EffectStat,
    Extern,
    From,
    IfStat,
    Invoke,
    OpStat,
    Stat,
)

from rvm.codes.words import count
from rvm.stmt import BACKWARD, FORWARD
from rvm_janus.expressions import JANA_WORDS, TYPE_WORDS, ExpressionParser
from rvm_janus.names import Call, Variable, plain_name
from rvm_janus.values import Value, condition, integer, literal, node_of

UPDATES = {"+=": "add", "-=": "sub", "^=": "xor"}
MAX_LEVELS = 60
"""How deeply statements may nest."""
_BOTH = FORWARD | BACKWARD
Initial = Value | list["Initial"]
"""What a declaration begins with: a number, or rows in braces."""


class StatementParser(ExpressionParser):
    """Reads the body of a procedure."""

    level = 0
    made = 0

    def statements(self, *closers: str) -> list[Stat]:
        """Statements up to one of the words, of which there must be one at least."""
        self.level += 1
        if self.level > MAX_LEVELS:
            self.too_deep("statements nest", MAX_LEVELS)
        out = self._statement()
        while self.kinds[self.i] == NAME and self.texts[self.i] not in (*closers, "procedure"):
            out += self._statement()
        self.level -= 1
        return out

    def _statement(self) -> list[Stat]:
        i = self.i
        start, word = self.starts[i], self.texts[i]
        if self.kinds[i] != NAME:
            self.fail("a statement")
        if word not in self.words:
            if self.classic and word in JANA_WORDS and word not in self.procedure.names:
                self.fail("a statement of the classic dialect", _OF_JANA.format(word))
            return [self._change()]
        read = {
            "if": self._if,
            "from": self._from,
            "call": self._call,
            "uncall": self._call,
            "skip": self._skip,
            "read": self._read,
            "write": self._write,
            "push": self._move,
            "pop": self._move,
            "local": self._local,
            "ancilla": self._ancilla,
            "constant": self._ancilla,
            "iterate": self._iterate,
            "print": self._print,
            "printf": self._print,
            "show": self._show,
            "error": self._error,
            "assert": self._assert,
        }.get(word)
        if read is None:
            self.fail("a statement")
        self.i += 1
        return read(word, start)

    # Changes of variables.

    def _change(self) -> Stat:
        v, place, whole = self.place()
        sign = self.kinds[self.i]
        if v.constant:
            name = Word(place.name, place.start, place.end)
            self.report.error("A034", f"`{name.text}` is a constant", name.start, name.end)
            raise Bad
        if sign in UPDATES:
            self.i += 1
            value = integer(self.expression(), v.type)
            stop = place.end
            return OpStat(UPDATES[sign], [place, value], place.start, stop, self.last_end())
        if sign == "<=>":
            self.i += 1
            w, other, _ = self.place()
            if v.is_stack and w.is_stack and whole:
                self.elements.join(v, w)
            return OpStat("swap", [place, other], place.start, place.end, self.last_end())
        if sign in ("*=", "/=", "**=", "*/="):
            hint = "that is a change only in a field of prime size; here numbers have so many bits"
            return self.fail("`+=`, `-=`, `^=` or `<=>`", hint)
        return self.fail(
            "`+=`, `-=`, `^=` or `<=>`", "`=` compares; a change is `+=`" * (sign == "=")
        )

    # Control.

    def _skip(self, word: str, start: int) -> list[Stat]:
        return []

    def _if(self, word: str, start: int) -> list[Stat]:
        cond = self.condition()
        end = self.last_end()
        self._keyword("then", word, start)
        yes = self.statements("else", "fi")
        no = self.statements("fi") if self.accept_word("else") else None
        self._keyword("fi", word, start)
        post = self.condition()
        return [IfStat([Arm(cond, post, yes)], no, start, end)]

    def _from(self, word: str, start: int) -> list[Stat]:
        entry = self.condition()
        end = self.last_end()
        body: list[Stat] = []
        again: list[Stat] = []
        if self.accept_word("do"):
            body = self.statements("loop", "until")
        if self.accept_word("loop"):
            again = self.statements("until")
        self._keyword("until", word, start)
        return [From(entry, body, again, self.condition(), start, end)]

    def _keyword(self, wanted: str, opener: str, start: int) -> None:
        if not self.accept_word(wanted):
            line = self.report.sources.where(start, start + 1).line
            self.fail(f"`{wanted}`", f"of the `{opener}` in line {line}")

    def _iterate(self, word: str, start: int) -> list[Stat]:
        """A loop over a variable of its own, up to a bound that is among its values."""
        t = self._type()
        name = self.identifier("the variable's name")
        self.expect("=")
        first = self.expression()
        step = self.expression() if self.accept_word("by") else literal(1, start, self.last_end())
        self._keyword("to", word, start)
        last = self.expression()
        end = self.last_end()
        v = self._enter(Variable(name, t))
        body = self.statements("end")
        self._keyword("end", word, start)
        ref = Ref(plain_name(name.text), (), name.start, name.end)
        behind = Operator("+", [node_of(last, t), node_of(step, t)], last.start, last.end)
        body.append(OpStat("add", [ref, node_of(step, t)], start, end, end))
        begins = Operator("==", [ref, node_of(first, t)], name.start, first.end)
        ends = Operator("==", [ref, behind], name.start, last.end)
        del self.procedure.names[name.text]
        return [
            self._alloc("alloc", v, integer(first, t), start, end),
            From(begins, [], body, ends, start, end),
            self._alloc("free", v, behind, start, end),
        ]

    def _call(self, word: str, start: int) -> list[Stat]:
        if self.at_word("external"):
            self.fail("a procedure", "external procedures are those of C")
        callee = self.identifier("a procedure")
        args: list[Node] = []
        call = Call(callee, {}, args)
        self.procedure.calls.append(call)
        if not self.classic:
            self.expect("(")
            while self.kinds[self.i] != ")":
                args.append(self._argument(call))
                if not self.accept(","):
                    break
            self.expect(")")
        name = Word(plain_name(callee.text), callee.start, callee.end)
        return [Invoke(word, name, args, start, self.last_end())]

    def _argument(self, call: Call) -> Node:
        value = self.expression()
        node = node_of(value)
        if isinstance(node, Ref) and not node.steps:
            v = self.procedure.names.get(node.name.strip("`"))
            if v is not None and v.is_stack:
                call.stacks[len(call.args)] = v
        return node

    # Stacks.

    def _move(self, word: str, start: int) -> list[Stat]:
        """`push(x, s)` and `pop(x, s)`; of what is no place, by way of a local."""
        self.expect("(")
        value = self.expression()
        self.expect(",")
        name = self.identifier("a stack")
        stack = self.variable(name)
        self.expect(")")
        end = self.last_end()
        if not stack.is_stack:
            self._wrong(f"`{name.text}` is not a stack", name)
        return self._moved(word, value, stack, name, start, end)

    def _moved(
        self, word: str, value: Value, stack: Variable, name: Word, start: int, end: int
    ) -> list[Stat]:
        t = value.type or self.word_type
        self.elements.holds(stack, t)
        held = Ref(plain_name(name.text), (), name.start, name.end)
        if isinstance(value.node, Ref):
            return [OpStat(word, [value.node, held], start, end, end)]
        self.made += 1
        own = Variable(Word(f"{word}ed {self.made}", value.start, value.end), t)
        here = Ref(plain_name(own.word.text), (), value.start, value.end)
        known = integer(value, t)
        return [
            self._alloc("alloc", own, known if word == "push" else None, start, end),
            OpStat(word, [here, held], start, end, end),
            self._alloc("free", own, None if word == "push" else known, start, end),
        ]

    # Declarations.

    def _type(self) -> str:
        i = self.i
        text = self.texts[i]
        if self.kinds[i] != NAME or text not in TYPE_WORDS:
            self.fail("a type")
        self.i += 1
        return self.word_type if text == "int" else text

    def declared(self) -> tuple[Variable, list[Value | None], Initial | None]:
        """`int a[3] = {1, 2}`, `stack s`: the variable, its lengths, what it begins with."""
        t = self._type()
        word = self.identifier("a name")
        lengths: list[Value | None] = []
        while self.accept("["):
            lengths.append(None if self.kinds[self.i] == "]" else self.expression())
            self.expect("]")
        v = Variable(word, t, len(lengths))
        if t == "stack":
            v = Variable(word, "", -1)
        initial: Initial | None = None
        if self.accept("="):
            if v.is_stack and self.kinds[self.i] != "{":
                self._keyword("nil", "stack", word.start)
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

    def _enter(self, v: Variable) -> Variable:
        known = self.procedure.names.get(v.word.text)
        if known is not None:
            self.report.error(
                "A006",
                f"`{v.word.text}` is declared twice",
                v.word.start,
                v.word.end,
                also=((known.word.start, known.word.end, "first here"),),
            )
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
        dims = [None if n is None else node_of(n) for n in lengths]
        return TypeRef(v.type, None, None, dims or None, a, b)

    def _alloc(
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

    def filled(self, op: str, v: Variable, initial: Initial, start: int, end: int) -> list[Stat]:
        """What adds an array's first values, or with `sub` takes them away.

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
                out += self._moved(word, value, v, v.word, start, end)
            return out

        def put(rows: Initial, at: tuple[int, ...]) -> None:
            if isinstance(rows, list):
                known = v.lengths[len(at)] if len(at) < v.rank else 0
                if known is not None and len(rows) > known:
                    what = f"`{v.word.text}` has no place for {len(rows)} values"
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

    def _made(self, start: int) -> tuple[list[Stat], Variable]:
        """The statements of one declaration of a `local`."""
        v, lengths, initial = self.declared()
        end = self.last_end()
        self._enter(v)
        if v.rank or initial is None:
            sizes = [] if v.is_stack else self._sizes(v, lengths)
            out = [self._alloc("alloc", v, None, start, end, sizes)]
            return out + (self.filled("add", v, initial, start, end) if initial else []), v
        assert isinstance(initial, Value)
        return [self._alloc("alloc", v, integer(initial, v.type), start, end)], v

    def _ended(self, v: Variable, start: int) -> list[Stat]:
        """The statements of one declaration of a `delocal`."""
        at = self.i
        w, lengths, initial = self.declared()
        end = self.last_end()
        if w.word.text != v.word.text:
            self.report.error(
                "A002",
                f"expected `{v.word.text}`, found `{w.word.text}`",
                w.word.start,
                w.word.end,
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
            sizes = self._sizes(v, lengths) if not v.is_stack else []
            return [*out, self._alloc("free", v, None, start, end, sizes)]
        assert isinstance(initial, Value)
        return [self._alloc("free", v, integer(initial, v.type), start, end)]

    def _sizes(self, v: Variable, lengths: list[Value | None]) -> list[Value | None]:
        """The lengths of an array of its own, those that are not written from its first values."""
        out = [
            literal(known, v.word.start, v.word.end) if n is None and known is not None else n
            for n, known in zip(lengths, v.lengths, strict=True)
        ]
        if None in out:
            self._wrong(f"the length of `{v.word.text}` is not known", v.word, "write it: `[3]`")
        return out

    def _local(self, word: str, start: int) -> list[Stat]:
        out, v = self._made(start)
        opened = [v]
        while self.accept(","):
            more, v = self._made(start)
            out += more
            opened.append(v)
        out += self.statements("delocal")
        at = self.starts[self.i]
        self._keyword("delocal", word, start)
        ended = []
        for k, v in enumerate(opened):
            if k:
                self.expect(",", f"of the `local`, `{v.word.text}` is still to be named")
            ended.append(self._ended(v, at))
        for statements in reversed(ended):
            out += statements
        return out

    def _ancilla(self, word: str, start: int) -> list[Stat]:
        """`ancilla int x = e` and `constant int x = e`: to the end of the block."""
        v, lengths, initial = self.declared()
        v.constant = word == "constant"
        end = self.last_end()
        self._enter(v)
        body: list[Stat] = []
        if self.kinds[self.i] == NAME and self.texts[self.i] not in _CLOSERS:
            body = self.statements(*_CLOSERS)
        del self.procedure.names[v.word.text]
        if v.rank:
            sizes = self._sizes(v, lengths)
            first = self.filled("add", v, initial, start, end) if initial is not None else []
            last = self.filled("sub", v, initial, start, end) if initial is not None else []
            return [
                self._alloc("alloc", v, None, start, end, sizes),
                *first,
                *body,
                *last,
                self._alloc("free", v, None, start, end, sizes),
            ]
        assert not isinstance(initial, list)
        known = None if initial is None else integer(initial, v.type)
        return [
            self._alloc("alloc", v, known, start, end),
            *body,
            self._alloc("free", v, known, start, end),
        ]

    # Outside of the machine.

    def _effect(self, name: str, text: str, args: list[Node], start: int) -> Stat:
        end = self.last_end()
        return Extern(_BOTH, [EffectStat(name, text, args, start, end)], start, end)

    def _string(self) -> str:
        i = self.i
        if self.kinds[i] != STRING:
            self.fail("a string")
        self.i += 1
        try:
            return str(ast.literal_eval(self.texts[i]))
        except (SyntaxError, ValueError):
            what = "the string has a wrong escape"
            self.report.error("A001", what, self.starts[i], self.end_of(i))
            raise Bad from None

    def _shown(self) -> tuple[Variable, Ref]:
        word = self.identifier("a variable")
        v = self.variable(word)
        return v, Ref(plain_name(word.text), (), word.start, word.end)

    def _printed(self) -> tuple[Variable, Ref]:
        """A variable or an element, which counts as a number of its own."""
        v, ref, whole = self.place()
        if whole:
            return v, ref
        text = self.report.sources.text(ref.start, ref.end)
        rank = v.rank - sum(len(s.items) for s in ref.steps if isinstance(s, Sub))
        return Variable(Word(text, ref.start, ref.end), v.type, rank), ref

    def _print(self, word: str, start: int) -> list[Stat]:
        self.expect("(")
        at = self.i
        text, args = self._string(), []
        if word == "printf":
            while self.accept(","):
                args.append(self._printed())
            text = self._format(text, args, at)
        self.expect(")")
        return [self._effect("print", text, [ref for _, ref in args], start)]

    def _format(self, text: str, args: list[tuple[Variable, Ref]], at: int) -> str:
        """The text of a `printf` with the assembly language's braces."""
        kinds = {"d": "int", "a": "array", "t": "stack", "b": "bool"}
        parts = text.split("%")
        out, k = parts[0], 0
        rest = iter(parts[1:])
        for part in rest:
            if not part:
                out += "%" + next(rest, "")
                continue
            wrong = ""
            if part[0] not in kinds:
                wrong = (
                    f"`%{part[0]}` prints nothing: `%d` is a number, `%a` an array, `%t` a stack"
                )
            elif k >= len(args):
                wrong = f"there is nothing for `%{part[0]}`"
            elif _kind(args[k][0]) != kinds[part[0]]:
                name = args[k][0].word.text
                wrong = (
                    f"`%{part[0]}` prints a value of type {kinds[part[0]]}, which `{name}` is not"
                )
            if wrong:
                self.report.error("A044", wrong, self.starts[at], self.end_of(at))
                raise Bad
            out += _braces(args[k][0]) + part[1:]
            k += 1
        if k < len(args):
            what = f"the text has no place for `{args[k][0].word.text}`"
            self.report.error("A044", what, self.starts[at], self.end_of(at))
            raise Bad
        return out

    def _show(self, word: str, start: int) -> list[Stat]:
        self.expect("(")
        args = [self._shown()]
        while self.accept(","):
            args.append(self._shown())
        self.expect(")")
        text = ", ".join(f"{v.word.text}{_sizes_text(v)} = {_braces(v)}" for v, _ in args)
        return [self._effect("print", text, [ref for _, ref in args], start)]

    def _write(self, word: str, start: int) -> list[Stat]:
        _, ref, _ = self.place()
        text = self.report.sources.text(ref.start, ref.end)
        return [self._effect("print", f"{text} = {{}}", [ref], start)]

    def _read(self, word: str, start: int) -> list[Stat]:
        self.i -= 1
        return self.fail("a statement", "a program reads nothing while it runs: `rvm run FILE x=3`")

    def _error(self, word: str, start: int) -> list[Stat]:
        bracket = self.accept("(")
        text = self._string()
        if bracket:
            self.expect(")")
        return [self._effect("assert", text, [Lit(False, start, self.last_end())], start)]

    def _assert(self, word: str, start: int) -> list[Stat]:
        return [self._effect("assert", "", [condition(self.expression(), self.classic)], start)]


_OF_JANA = "`{}` is of the dialect of jana, whose procedures have brackets: `procedure main()`"
_CLOSERS = ("else", "fi", "loop", "until", "delocal", "end", "procedure")


def _length(n: Value | None, axis: int, initial: Initial | None) -> int | None:
    """A length that is written or follows from the first values; None if only the run knows it."""
    if n is not None:
        return n.number if n.is_literal else None
    rows: Initial | None = initial
    for _ in range(axis):
        rows = rows[0] if isinstance(rows, list) else None
    return len(rows) if isinstance(rows, list) else None


def _kind(v: Variable) -> str:
    if v.is_stack:
        return "stack"
    return "array" if v.rank else "bool" if v.type == "bool" else "int"


def _braces(v: Variable) -> str:
    """What stands for a value in a text that is printed."""
    return "{:<]}" if v.is_stack else "{:{}}" if v.rank else "{}"


def _sizes_text(v: Variable) -> str:
    return "".join(f"[{n}]" if n is not None else "[]" for n in v.lengths)
