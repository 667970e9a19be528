"""Statements of Janus with effects outside: output, and assertions."""

from __future__ import annotations

import ast

from rvm_asm.cursor import Bad
from rvm_asm.lexer import STRING
from rvm_asm.nodes import Lit, Node, Ref, Sub, Word
from rvm_asm.stats import EffectStat, Extern, Stat

from rvm.codes.templates import escaped
from rvm.stmt import BACKWARD, FORWARD
from rvm_janus.names import Variable, plain_name
from rvm_janus.stacks import StackParser
from rvm_janus.values import condition

_BOTH = FORWARD | BACKWARD


class EffectParser(StackParser):
    """Reads `print`, `printf`, `show`, `write`, `error` and `assert`."""

    def effect(self, name: str, text: str, args: list[Node], start: int) -> Stat:
        end = self.last_end()
        return Extern(_BOTH, [EffectStat(name, text, args, start, end)], start, end)

    def _string(self) -> str:
        i = self.i
        is_name = self.texts[i] in self.procedure.names
        if self.kinds[i] != STRING:
            self.fail("a string", f"`show({self.texts[i]})` prints a variable" * is_name)
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
        """A variable or an element, which counts as a separate number."""
        v, ref, whole = self.place()
        if whole:
            return v, ref
        text = self.report.sources.text(ref.start, ref.end)
        rank = v.rank - sum(len(s.items) for s in ref.steps if isinstance(s, Sub))
        return Variable(Word(text, ref.start, ref.end), v.type, rank), ref

    def _print(self, word: str, start: int) -> list[Stat]:
        self.expect("(")
        at = self.i
        text, args = escaped(self._string()), []
        if word == "printf":
            while self.accept(","):
                args.append(self._printed())
            text = self._format(text, args, at)
        self.expect(")")
        return [self.effect("print", text, [ref for _, ref in args], start)]

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
                wrong = f"there is no value for `%{part[0]}`"
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
            what = f"the text has no placeholder for `{args[k][0].word.text}`"
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
        return [self.effect("print", text, [ref for _, ref in args], start)]

    def _write(self, word: str, start: int) -> list[Stat]:
        _, ref, _ = self.place()
        text = self.report.sources.text(ref.start, ref.end)
        return [self.effect("print", f"{text} = {{}}", [ref], start)]

    def _read(self, word: str, start: int) -> list[Stat]:
        self.i -= 1
        return self.fail("a statement", "a program reads nothing while it runs: `rvm run FILE x=3`")

    def _error(self, word: str, start: int) -> list[Stat]:
        bracket = self.accept("(")
        text = escaped(self._string())
        if bracket:
            self.expect(")")
        return [self.effect("assert", text, [Lit(False, start, self.last_end())], start)]

    def _assert(self, word: str, start: int) -> list[Stat]:
        return [self.effect("assert", "", [condition(self.expression(), self.classic)], start)]


def _kind(v: Variable) -> str:
    if v.is_stack:
        return "stack"
    return "array" if v.rank else "bool" if v.type == "bool" else "int"


def _braces(v: Variable) -> str:
    """The notation of a value in printed text."""
    return "{:<]}" if v.is_stack else "{:{}}" if v.rank else "{}"


def _sizes_text(v: Variable) -> str:
    return "".join(f"[{n}]" if n is not None else "[]" for n in v.lengths)
