"""Statements of Janus about stacks."""

from __future__ import annotations

from rvm_asm.nodes import Application, Declared, Node, Operator, Ref, TypeRef, Word
from rvm_asm.stats import AllocStat, Arm, From, IfStat, OpStat, Stat

from rvm_janus.declarations import DeclarationParser
from rvm_janus.names import Variable, plain_name


class StackParser(DeclarationParser):
    """Reads `push` and `pop`, and lets stacks change places."""

    def _move(self, word: str, start: int) -> list[Stat]:
        """`push(x, s)` and `pop(x, s)`; for an argument that is not a place, through a local."""
        self.expect("(")
        value = self.expression()
        self.expect(",")
        name = self.identifier("a stack")
        stack = self.variable(name)
        self.expect(")")
        end = self.last_end()
        if not stack.is_stack:
            self._wrong(f"`{name.text}` is not a stack", name)
        return self.moved(word, value, stack, name, start, end)

    def _exchange(self, v: Variable, w: Variable, start: int, end: int) -> list[Stat]:
        """Exchange two stacks, through two more that are empty before and after."""
        self.elements.join(v, w)
        spare = [Variable(Word(f"{name} 2", start, end), "", -1) for name in ("first", "second")]
        for x in spare:
            self.elements.join(v, x)
        one, two = spare
        return [
            *(self.alloc("alloc", x, None, start, end) for x in spare),
            *self._poured(v, one, start, end),
            *self._poured(w, two, start, end),
            *self._poured(one, w, start, end),
            *self._poured(two, v, start, end),
            *(self.alloc("free", x, None, start, end) for x in spare),
        ]

    def _poured(self, source: Variable, to: Variable, start: int, end: int) -> list[Stat]:
        """All elements of a stack to one that is empty, the top first."""
        own = Variable(Word("poured", start, end), self.word_type)
        held, here, there = (
            Ref(plain_name(v.word.text), (), start, end) for v in (own, source, to)
        )
        kind = TypeRef(self.word_type, None, None, None, start, end)
        self.elements.written(source, kind)
        declared = Declared(plain_name(own.word.text), kind, start, end)

        def ends(stack: Ref) -> Node:
            return Application("empty", [stack], start, end)

        def holds(stack: Ref) -> Node:
            return Operator("not", [ends(stack)], start, end)

        moves: list[Stat] = [
            OpStat("pop", [held, here], start, end, end),
            OpStat("push", [held, there], start, end, end),
        ]
        body = [
            AllocStat("alloc", declared, None, start, end),
            From(ends(there), moves, [], ends(here), start, end),
            AllocStat("free", declared, None, start, end),
        ]
        return [IfStat([Arm(holds(here), holds(there), body)], None, start, end)]
