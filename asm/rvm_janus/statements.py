"""Parsing statements of Janus into those of the assembly language."""

from __future__ import annotations

from rvm_asm.cursor import Bad
from rvm_asm.lexer import NAME
from rvm_asm.messages import did_you_mean
from rvm_asm.nodes import Lit, Node, Operator, Ref, Word
from rvm_asm.stats import Arm, From, IfStat, Invoke, OpStat, Stat

from rvm_janus.effects import EffectParser
from rvm_janus.expressions import JANA_WORDS, TYPE_WORDS
from rvm_janus.messages import ELSEWHERE
from rvm_janus.names import Call, Variable, plain_name
from rvm_janus.values import Value, integer, literal, node_of

UPDATES = {"+=": "add", "-=": "sub", "^=": "xor"}
_SPELT = {":": "<=>", "!=": "^="}
"""Signs of statements in the language of 1982, and what they have been since."""
_DECLARED = (
    "variables are declared at the beginning of `main`, elsewhere by `local {0} x = 0`, which ends "
    "in `delocal {0} x = 0`"
)
MAX_LEVELS = 60
"""The largest nesting depth of statements."""


class StatementParser(EffectParser):
    """Reads the body of a procedure."""

    level = 0
    arms = 0
    """The number of enclosing arms of an `if`."""

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
            if word in ELSEWHERE and word not in self.procedure.names:
                self.fail("a statement")
            return self._change()
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
            self.fail("a statement", _DECLARED.format(word) if word in TYPE_WORDS else "")
        self.i += 1
        return read(word, start)

    # Changes of variables.

    def _change(self) -> list[Stat]:
        v, place, _ = self.place()
        sign = self.kinds[self.i]
        if self.classic:
            sign = _SPELT.get(sign, sign)
        if v.constant:
            name = Word(place.name, place.start, place.end)
            self.report.about(name, "A034", f"`{name.text}` is a constant")
            raise Bad
        if sign in UPDATES:
            self.i += 1
            value = integer(self.expression(), v.type)
            stop = place.end
            return [OpStat(UPDATES[sign], [place, value], place.start, stop, self.last_end())]
        if sign == "<=>":
            self.i += 1
            w, other, _ = self.place()
            end = self.last_end()
            a, b = (self.report.sources.text(r.start, r.end) for r in (place, other))
            if a == b:
                what = f"`{a}` is swapped with itself"
                self.report.about(other, "A013", what)
                raise Bad
            if v.is_stack and w.is_stack:
                return self._exchange(v, w, place.start, end)
            return [OpStat("swap", [place, other], place.start, place.end, end)]
        if sign in ("*=", "/=", "**=", "*/="):
            hint = (
                "this is reversible only in a field of prime size; numbers here have a "
                "fixed number of bits"
            )
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
        self.keyword("then", word, start)
        self.arms += 1
        yes = self.statements("else", "fi")
        no = self.statements("fi") if self.accept_word("else") else None
        self.arms -= 1
        self.keyword("fi", word, start)
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
        self.keyword("until", word, start)
        return [From(entry, body, again, self.condition(), start, end)]

    def _iterate(self, word: str, start: int) -> list[Stat]:
        """A loop over a new variable, up to a bound that is included."""
        t = self.type_word()
        name = self.identifier("the variable's name")
        self.expect("=")
        first = self.expression()
        step = self.expression() if self.accept_word("by") else literal(1, start, self.last_end())
        self.keyword("to", word, start)
        last = self.expression()
        end = self.last_end()
        v = self.enter(Variable(name, t))
        body = self.statements("end")
        self.keyword("end", word, start)
        ref = Ref(plain_name(name.text), (), name.start, name.end)
        behind = Operator("+", [node_of(last, t), node_of(step, t)], last.start, last.end)
        body.append(OpStat("add", [ref, node_of(step, t)], start, end, end))
        begins = Operator("==", [ref, node_of(first, t)], name.start, first.end)
        ends = Operator("==", [ref, behind], name.start, last.end)
        del self.procedure.names[name.text]
        return [
            self.alloc("alloc", v, integer(first, t), start, end),
            From(begins, [], body, ends, start, end),
            self.alloc("free", v, behind, start, end),
        ]

    def _call(self, word: str, start: int) -> list[Stat]:
        if self.at_word("external"):
            self.fail("a procedure")
        callee = self.identifier("a procedure")
        args: list[Node] = []
        call = Call(callee, {}, args)
        self.procedure.calls.append(call)
        held: list[tuple[Variable, Node]] = []
        if not self.classic:
            self.expect("(")
            while self.kinds[self.i] != ")":
                args.append(self._argument(call, held))
                if not self.accept(","):
                    break
            self.expect(")")
            self._apart(args, held)
        if self.arms and callee.text not in self.defined:
            return [self._nobody(callee, start)]
        name, end = Word(plain_name(callee.text), callee.start, callee.end), self.last_end()
        return [
            *(self.alloc("alloc", v, e, e.start, e.end) for v, e in held),
            Invoke(word, name, args, start, end),
            *(self.alloc("free", v, e, e.start, e.end) for v, e in reversed(held)),
        ]

    def _apart(self, args: list[Node], held: list[tuple[Variable, Node]]) -> None:
        """Elements that are passed beside their whole arrays are passed by their values."""
        whole = {a.name for a in args if isinstance(a, Ref) and not a.steps}
        for k, a in enumerate(args):
            if isinstance(a, Ref) and a.steps and a.name in whole:
                t = self.procedure.names[a.name.strip("`")].type
                own = self.own(Value(t, a, 0, a.start, a.end), t)
                held.append((own, a))
                args[k] = Ref(plain_name(own.word.text), (), a.start, a.end)

    def _nobody(self, callee: Word, start: int) -> Stat:
        """A call of a missing procedure, which fails only if a run reaches it."""
        what = f"there is no procedure `{callee.text}`"
        hint = did_you_mean(callee.text, self.defined)
        self.report.about(callee, "A045", what, severity="warning", hint=hint)
        return self.effect("assert", what, [Lit(False, start, self.last_end())], start)

    def _argument(self, call: Call, held: list[tuple[Variable, Node]]) -> Node:
        """A place; or a value, held by a local variable that must have it again after the call."""
        value = self.expression()
        node = node_of(value)
        if not isinstance(node, Ref | Lit):
            own = self.own(value, value.type)
            held.append((own, node))
            return Ref(plain_name(own.word.text), (), value.start, value.end)
        if isinstance(node, Ref) and not node.steps:
            v = self.procedure.names.get(node.name.strip("`"))
            if v is not None and v.rank:
                call.whole[len(call.args)] = v
        return node

    def _local(self, word: str, start: int) -> list[Stat]:
        out, v = self.made(start)
        opened = [v]
        while self.accept(","):
            more, v = self.made(start, v)
            out += more
            opened.append(v)
        out += self.statements("delocal")
        at = self.starts[self.i]
        self.keyword("delocal", word, start)
        ended = []
        for k, v in enumerate(opened):
            if k:
                self.expect(",", f"of the `local`, `{v.word.text}` is still to be named")
            ended.append(self.ended(v, at, opened[k - 1] if k else None))
        for statements in reversed(ended):
            out += statements
        return out

    def _ancilla(self, word: str, start: int) -> list[Stat]:
        """`ancilla int x = e` and `constant int x = e`: to the end of the block."""
        v, lengths, initial = self.declared()
        v.constant = word == "constant"
        end = self.last_end()
        self.enter(v)
        body: list[Stat] = []
        if self.kinds[self.i] == NAME and self.texts[self.i] not in _CLOSERS:
            body = self.statements(*_CLOSERS)
        del self.procedure.names[v.word.text]
        if v.rank:
            sizes = self.sizes(v, lengths)
            first = self.filled("add", v, initial, start, end) if initial is not None else []
            last = self.filled("sub", v, initial, start, end) if initial is not None else []
            return [
                self.alloc("alloc", v, None, start, end, sizes),
                *first,
                *body,
                *last,
                self.alloc("free", v, None, start, end, sizes),
            ]
        assert not isinstance(initial, list)
        known = None if initial is None else integer(initial, v.type)
        return [
            self.alloc("alloc", v, known, start, end),
            *body,
            self.alloc("free", v, known, start, end),
        ]


_OF_JANA = "`{}` is of the dialect of jana, whose procedures have brackets: `procedure main()`"
_CLOSERS = ("else", "fi", "loop", "until", "delocal", "end", "procedure")
