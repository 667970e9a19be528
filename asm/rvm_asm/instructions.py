"""Parsing the instructions that have a form of their own."""

from __future__ import annotations

from rvm.transform.derived import GRADIENT, MARKS
from rvm_asm.expressions import ExpressionParser
from rvm_asm.lexer import NEWLINE, STRING
from rvm_asm.names import plain
from rvm_asm.nodes import Declared, Node, Word
from rvm_asm.stats import AllocStat, EffectStat, Invoke, Iterate, Jump, Replace, Stat, Undo

DERIVATIVES = frozenset(mark[0] for mark in MARKS)
"""The signs that a mark begins with."""


class InstructionParser(ExpressionParser):
    """Parses the operands of `alloc`, `br`, `call`, `undo`, `print` and similar statements."""

    def _alloc(self, start: int) -> Stat:
        op = self.texts[self.i - 1]
        name = self.dotted("the name of a register")
        written = self.type_ref() if self.accept(":") else None
        value = self.expression() if self.accept("=") else None
        if op in ("local", "fresh", "drop") and value is not None:
            self.report.about(
                value, "A002", f"`{op}` takes no value", hint="the value belongs to `alloc`"
            )
        declared = Declared(name.text, written, name.start, name.end)
        return AllocStat(op, declared, value, start, self.last_end())

    def _jump(self, start: int) -> Stat:
        op = self.texts[self.i - 1]
        cond = self.expression()
        partner = None
        if self.accept(",") and not (self.accept("…") or self.accept("...")):
            partner = self.word("a label")
        return Jump(op, cond, partner, start, self.last_end())

    def _call(self, start: int) -> Stat:
        op = self.texts[self.i - 1]
        callee = self.word("the name of a function")
        types = self.type_args()
        marks = self._marks()
        self.expect("(")
        if not marks:
            args = self.arguments(")")
            return Invoke(op, callee, args, start, self.last_end(), types)
        what = MARKS[marks[-1]].duals
        form = f"`{op} {callee.text}{''.join(marks)}(arguments; {what})`"
        args = self.arguments(";", f"{what} follow the arguments: {form}")
        bars = self.arguments(")", f"{what} are separated by commas: {form}")
        return Invoke(op, callee, args, start, self.last_end(), types, marks=marks, bars=bars)

    def _marks(self) -> tuple[str, ...]:
        """The marks after a function's name that denote a derivative."""
        out: list[str] = []
        while self.kinds[self.i] in DERIVATIVES:
            mark = self.kinds[self.i]
            self.i += 1
            while mark not in MARKS:
                self.expect(GRADIENT, "marks are " + ", ".join(f"`{m}`" for m in MARKS))
                mark += GRADIENT
            out.append(mark)
        return tuple(out)

    def falls(self) -> bool:
        """Whether a variable falls: `downto`, not `to`."""
        down = self.accept_word("downto")
        if not down and not self.accept_word("to"):
            self.fail("`to` or `downto`")
        return down

    def _iterate(self, start: int) -> Stat:
        callee = self.word("the name of a step function")
        types = self.type_args()
        self.expect("(")
        args = self.arguments(")")
        var: Word | None = None
        first: Node | None = None
        down = False
        if self.accept_word("for"):
            var = self.word("the variable of the step's number")
            self.expect("=")
            first = self.expression()
            down = self.falls()
        elif not self.accept_word("times"):
            self.fail("`times` or `for`", "say how often: `iterate f(y, x) times 100 with …`")
        last = self.expression()
        if not self.accept_word("with"):
            self.fail("`with`", "name a policy: `with pebbles = 10` or `with bennett = 4`")
        policy: list[tuple[Word, Node]] = []
        while True:
            word = self.word("a word of the policy")
            self.expect("=")
            policy.append((word, self.expression()))
            if not self.accept(","):
                end = self.last_end()
                return Iterate(callee, args, var, first, last, down, policy, start, end, types)

    def _replace(self, start: int) -> Stat:
        place = self.expression()
        if not self.accept_word("as"):
            self.fail("`as`", "name the new value: `replace x as t by f(t, x), g(x, t)`")
        name = self.word("a name for the new value")
        if not self.accept_word("by"):
            self.fail("`by`", "`replace x as t by f(t, x), g(x, t)`")
        there = self.expression()
        self.expect(",", "what takes the old value away, from the new one: `…, g(x, t)`")
        back = self.expression()
        return Replace(place, name, there, back, start, self.last_end())

    def _undo(self, start: int) -> Stat:
        name = self.word("the name of a routine")
        return Undo(name, start, name.end)

    def _effect(self, start: int) -> Stat:
        op = self.texts[self.i - 1]
        text = ""
        args: list[Node] = []
        if op == "callback":
            text = plain(self.dotted("the name of a callback").text)
        elif op == "print" and self.kinds[self.i] == STRING:
            text = self.string()
        elif self.kinds[self.i] != NEWLINE:
            args.append(self.expression())
            if op == "assert":
                text = self.string() if self.accept(",") else ""
        while self.accept(","):
            args.append(self.expression())
        return EffectStat(op, text, args, start, self.last_end())
