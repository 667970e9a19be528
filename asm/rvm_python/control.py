"""Branches, loops and blocks of Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rvm_asm.names import quoted
from rvm_asm.nodes import Application, Lit, Node, Operator, Word
from rvm_asm.stats import Arm, For, IfStat, Routine, Stat, Undo, While

from rvm.codes.words import unused
from rvm.library import vocabulary
from rvm_python.ancillas import Ancillas
from rvm_python.changes import shown
from rvm_python.messages import UNREAD
from rvm_python.scope import MISSING, Block, Local, Shorthand, Variable


class Control(Ancillas):
    """Reads compound statements."""

    @contextmanager
    def _block(self, why: str) -> Iterator[None]:
        """A separate block: names defined in it have no meaning after it."""
        before = dict(self.names)
        self._outer_shorthands.append({n for n, v in before.items() if isinstance(v, Shorthand)})
        yield
        self._outer_shorthands.pop()
        for name, local in self.names.items():
            if name not in before and isinstance(local, Shorthand):
                self.gone[name] = why.format(local.line)
        self.names = {n: v for n, v in self.names.items() if n in before or _stays(v)}

    def _if(self, stat: ast.If) -> Stat:
        arms: list[Arm] = []
        start, end = self.at(stat)[0], self.at(stat.test)[1]
        while True:
            cond, post = self._conditions(stat.test)
            with self._block("names an expression only inside the branch in line {}"):
                arms.append(Arm(cond, post, self.body(stat.body)))
            if len(stat.orelse) != 1 or not isinstance(stat.orelse[0], ast.If):
                break
            stat = stat.orelse[0]
        orelse = None
        if stat.orelse:
            with self._block("names an expression only inside the branch in line {}"):
                orelse = self.body(stat.orelse)
        return IfStat(arms, orelse, start, end)

    def _conditions(self, test: ast.expr) -> tuple[Node, Node | None]:
        """The condition before a branch, and that after it if different."""
        two = self._two(test, vocabulary.when)
        if two is None:
            return self.operand(test), None
        return self.operand(two[0]), self.operand(two[1])

    def _two(self, test: ast.expr, word: Any) -> Sequence[ast.expr] | None:
        """The arguments of `rvm.when(p, q)` or `rvm.loop(p, q)`."""
        if not isinstance(test, ast.Call) or self.outer(test.func) is not word:
            return None
        if len(test.args) != 2 or test.keywords:
            name = ast.unparse(test.func)
            self.refuse("A044", f"`{name}` takes two conditions", test, f"`{name}(p, q)`")
        return test.args

    def _while(self, stat: ast.While) -> Stat:
        start = self.at(stat)[0]
        two = self._two(stat.test, vocabulary.loop)
        if two is None:
            self.refuse(
                UNREAD,
                "a loop needs a condition that holds after each iteration, and not before "
                "the first",
                stat.test,
                f"`while rvm.loop({shown(stat.test)}, …):`",
            )
        if stat.orelse:
            self.refuse(UNREAD, "`else` of a loop is not read", stat.orelse[0])
        cond, post = self.operand(two[0]), self.operand(two[1])
        with self._block("names an expression only inside the loop in line {}"):
            body = self.body(stat.body)
        return While(cond, post, body, start, self.at(stat.test)[1])

    def _for(self, stat: ast.For) -> Stat:
        start, end = self.at(stat)[0], self.at(stat.iter)[1]
        if not isinstance(stat.target, ast.Name):
            hint = "`for i in range(len(x)):`, and `x[i]`"
            self.refuse(UNREAD, "a loop has one variable", stat.target, hint)
        if stat.orelse:
            self.refuse(UNREAD, "`else` of a loop is not read", stat.orelse[0])
        match stat.iter:
            case ast.Call(f, [_, *_] as args, []) if self.outer(f) is range and len(args) <= 3:
                pass
            case _:
                hint = "`for i in range(len(x)):`, and `x[i]`"
                if isinstance(stat.iter, ast.Call) and shown(stat.iter.func) == "reversed":
                    hint = "it may count down: `for i in range(n - 1, -1, -1):`"
                self.refuse(UNREAD, "a loop runs over a `range`", stat.iter, hint)
        first = args[0] if len(args) > 1 else None
        begin = self.operand(first) if first is not None else Lit(0, *self.at(stat.iter))
        stop = args[0] if first is None else args[1]
        step = args[2] if len(args) > 2 else None
        by, last, down = self._steps(stop, step)
        name = stat.target.id
        word = self._counter(name, stat.target)
        before = self.names.get(name)
        variable = self.names[name] = Variable(word.text, stat.lineno)
        with self._block("names an expression only inside the loop in line {}"):
            body = self.body(stat.body)
        variable.live = False
        self.gone[name] = (
            f"is the variable of the loop in line {stat.lineno}, which ends before this"
        )
        del self.names[name]
        if before is not None:
            self.names[name] = before
        return For(word, begin, last, by, down, body, start, end)

    def _counter(self, name: str, at: ast.AST) -> Word:
        known = self.names.get(name)
        text = name
        if isinstance(known, Variable) and known.live:
            if name != "_":
                what = "a parameter" if known.is_parameter else f"of line {known.line}"
                hint = "give the loop another variable"
                self.refuse("A006", f"`{name}` is {what} already", at, hint)
            text = f"_{known.line}"
        elif known is not None and not isinstance(known, Variable):
            self.refuse("A006", f"`{name}` names an expression already", at, "another variable")
        return Word(quoted(text), *self.at(at))

    def _steps(self, stop: ast.expr, step: ast.expr | None) -> tuple[Node | None, Node, bool]:
        """The step of a loop, the last value that it may visit, and whether it counts down."""
        by = 1 if step is None else self.constant(step)
        start, end = self.at(stop)
        bound = self.constant(stop)
        if type(by) is not int:
            assert step is not None
            if by is not MISSING:
                self.refuse("A040", "a loop counts in whole numbers", step)
            # Of a step whose sign the run knows: range's end lies one behind it.
            unit = Application("sign", [self.operand(step)], start, end)
            last = Operator("-", [self.operand(stop), unit], start, end)
            return self.operand(step), last, False
        if by == 0:
            assert step is not None
            self.refuse("A040", "a loop of step 0 has no end", step)
        one = 1 if by > 0 else -1
        if type(bound) is int:
            last_node: Node = Lit(bound - one, start, end)
        else:
            sign = "-" if by > 0 else "+"
            last_node = Operator(sign, [self.operand(stop), Lit(1, start, end)], start, end)
        size = None if abs(by) == 1 else Lit(abs(by), *self.at(step or stop))
        return size, last_node, by < 0

    def _undo(self, at: ast.AST, name: str) -> Stat:
        block = self.names[name]
        assert isinstance(block, Block)
        start, end = self.at(at)
        for variable in block.made:
            variable.live = False
        return Undo(Word(block.name, start, end), start, end)

    def compute(self, stat: ast.With, item: ast.withitem) -> list[Stat]:
        """`with rvm.compute() as r:`, a routine."""
        start, end = self.at(item.context_expr)
        name = item.optional_vars
        if not isinstance(name, ast.Name):
            self.refuse(UNREAD, "the block has no name to undo it by", item.context_expr,
                        "`with rvm.compute() as r:`, and `r.undo()`")  # fmt: skip
        before = set(map(id, self.names.values()))
        body = self.body(stat.body)
        made = [v for v in self.names.values() if isinstance(v, Variable) and id(v) not in before]
        routine = unused(name.id, self._routines)
        self._routines.add(routine)
        self.names[name.id] = Block(quoted(routine), made)
        return [Routine(Word(quoted(routine), *self.at(name)), body, None, start, end)]

    def undo_of(self, call: ast.Call) -> list[Stat] | None:
        """`r.undo()`."""
        match call:
            case ast.Call(ast.Attribute(ast.Name(name), "undo"), [], []):
                if isinstance(self.names.get(name), Block):
                    return [self._undo(call, name)]
        return None


def _stays(local: Local) -> bool:
    return isinstance(local, (Variable, Block))
