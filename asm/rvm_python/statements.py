"""Statements of Python as those of the assembler."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from rvm_asm.nodes import Application, Declared, Lit, Node, Operator, TypeRef, Word
from rvm_asm.printer import quoted
from rvm_asm.stats import (
    AllocStat,
    Arm,
    EffectStat,
    Extern,
    For,
    IfStat,
    OpStat,
    Routine,
    Stat,
    Undo,
    While,
)

from rvm.library import vocabulary
from rvm.stmt import BACKWARD, FORWARD
from rvm_python.annotations import TypeReader, WrongType
from rvm_python.calls import Calls
from rvm_python.changes import is_exchange, operand_of, reads, same
from rvm_python.expressions import Refused
from rvm_python.messages import CHANGES, FORGETS, FORGETTING, UNREAD
from rvm_python.scope import MISSING, Block, Local, Shorthand, Variable

UPDATES: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.BitXor: "xor",
    ast.Mult: "mul",
    ast.Div: "div",
}
_BOTH = FORWARD | BACKWARD


class Statements(Calls):
    """Reads the body of a function."""

    def body(self, statements: Sequence[ast.stmt]) -> list[Stat]:
        """A block; what is wrong in it is reported, statement by statement."""
        out: list[Stat] = []
        for stat in statements:
            self._depth = self._count = 0
            try:
                out += self._statement(stat)
            except Refused:
                self._spoil(stat)
        return out

    def _spoil(self, stat: ast.stmt) -> None:
        """Names that a refused statement would have given a meaning."""
        match stat:
            case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
                if name not in self.names:
                    self.spoiled.add(name)

    @contextmanager
    def _block(self, why: str) -> Iterator[None]:
        """A block of its own: names that it gives a meaning have none behind it."""
        before = dict(self.names)
        self._outer_shorthands.append({n for n, v in before.items() if isinstance(v, Shorthand)})
        yield
        self._outer_shorthands.pop()
        for name, local in self.names.items():
            if name not in before and isinstance(local, Shorthand):
                self.gone[name] = why.format(local.line)
        self.names = {n: v for n, v in self.names.items() if n in before or _stays(v)}

    def _statement(self, stat: ast.stmt) -> list[Stat]:
        match stat:
            case ast.Expr(ast.Constant(str() | None | bool())) | ast.Pass():
                return []
            case ast.AugAssign():
                return [self._update(stat)]
            case ast.Assign([target], value):
                return self._assign(stat, target, value)
            case ast.Assign():
                self.refuse(FORGETS, "`a = b = …` is not read", stat, "one line for each name")
            case ast.AnnAssign(ast.Name() as name, annotation, value):
                return [self._declare(stat, name, annotation, value)]
            case ast.Delete(targets):
                return [self._free(t) for t in targets]
            case ast.Expr(ast.Call() as call):
                return self.call(call)
            case ast.Expr(ast.UnaryOp(ast.Invert(), ast.Name(name))) if isinstance(
                self.names.get(name), Block
            ):
                return [self._undo(stat, name)]
            case ast.If():
                return [self._if(stat)]
            case ast.For():
                return [self._for(stat)]
            case ast.While():
                return [self._while(stat)]
            case ast.With():
                return self._with(stat)
            case ast.Assert():
                return [self._assert(stat)]
            case ast.Return(None):
                self.refuse(UNREAD, "a function ends at its end", stat, "leave `return` out")
            case ast.Expr():
                self.refuse(UNREAD, "an expression by itself changes nothing", stat)
        return self.refuse_kind(stat)

    # Changes.

    def _update(self, stat: ast.AugAssign) -> Stat:
        kind = type(stat.op)
        text = ast.unparse(stat.target)[:60]
        if kind in FORGETTING:
            sign, what, hint = FORGETTING[kind]
            self.refuse(FORGETS, f"`{text} {sign} …` forgets {what}", stat, hint)
        start, end = self.at(stat)
        if isinstance(stat.target, ast.Name) and isinstance(
            self.names.get(stat.target.id), Shorthand
        ):
            self._no_place(stat.target, text)
        target = self.place(stat.target)
        value = self.operand(stat.value)
        return OpStat(UPDATES[kind], [target, value], start, target.end, end)

    def _no_place(self, target: ast.Name, text: str) -> None:
        short = self.names[target.id]
        assert isinstance(short, Shorthand)
        value = ast.unparse(short.value)[:60]
        self.refuse(
            FORGETS,
            f"`{text}` names an expression (line {short.line}), and is no place",
            target,
            f"`with rvm.ancilla({value}) as {text}:` makes a place, which is freed with that value",
        )

    def _assign(self, stat: ast.stmt, target: ast.expr, value: ast.expr) -> list[Stat]:
        start, end = self.at(stat)
        if is_exchange(target, value):
            assert isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            return self._exchange(stat, target.elts, value.elts)
        op = self._in_place(target, value)
        if op:
            return [OpStat(op, [self.place(target)], start, end, end)]
        if isinstance(target, ast.Tuple):
            return self._several(stat, target, value)
        if isinstance(target, ast.Name) and not isinstance(self.names.get(target.id), Variable):
            self._name(stat, target, value)
            return []
        return self._forgetting(stat, target, value)

    def _in_place(self, target: ast.expr, value: ast.expr) -> str:
        """The instruction that `x = -x` and its like are; "" of others."""
        if not same(operand_of(value), target) or not self.is_local(target):
            return ""
        match value:
            case ast.UnaryOp(ast.USub()):
                return "neg"
            case ast.UnaryOp(ast.Invert() | ast.Not()):
                return "not"
            case ast.Call(ast.Attribute(whole, "conjugate" | "conj")) if self.is_local(whole):
                return "conj"
            case ast.Call(f) if self.outer(f) is not MISSING and self._function(f) == "conj":
                return "conj"
        return ""

    def _forgetting(self, stat: ast.stmt, target: ast.expr, value: ast.expr) -> NoReturn:
        text = ast.unparse(target)[:60]
        hint = f"`{text} += …` into a place that is 0, or exchange: `a, b = b, a`"
        match value:
            case ast.BinOp(left, op, right) if same(left, target) and type(op) in UPDATES:
                sign = {"add": "+=", "sub": "-=", "xor": "^=", "mul": "*=", "div": "/="}
                hint = f"`{text} {sign[UPDATES[type(op)]]} {ast.unparse(right)[:60]}`"
            case ast.BinOp(left, ast.Add(), right) if same(right, target):
                hint = f"`{text} += {ast.unparse(left)[:60]}`"
        self.refuse(FORGETS, f"`{text} = …` forgets what `{text}` was", stat, hint)

    def _exchange(
        self, stat: ast.stmt, targets: Sequence[ast.expr], values: Sequence[ast.expr]
    ) -> list[Stat]:
        """`a, b = b, a`, and longer permutations as several exchanges."""
        start, end = self.at(stat)
        places = [ast.unparse(t) for t in targets]
        stands = list(range(len(places)))
        """For each place, where what it held before stands by now."""
        out: list[Stat] = []
        for k, value in enumerate(values):
            source = stands[places.index(ast.unparse(value))]
            if source != k:
                a, b = self.place(targets[k]), self.place(targets[source])
                out.append(OpStat("swap", [a, b], start, end, end))
                stands[stands.index(k)] = source
        return out

    # Names for expressions.

    def _several(self, stat: ast.stmt, target: ast.Tuple, value: ast.expr) -> list[Stat]:
        names = [t for t in target.elts if isinstance(t, ast.Name)]
        new = len(names) == len(target.elts) and not any(
            isinstance(self.names.get(t.id), Variable) for t in names
        )
        if new and isinstance(value, ast.Tuple) and len(value.elts) == len(names):
            for name, v in zip(names, value.elts, strict=True):
                self._name(stat, name, v)
            return []
        if new and isinstance(value, ast.Attribute) and value.attr == "shape":
            for k, name in enumerate(names):
                index = ast.copy_location(ast.Constant(k), value)
                whole = ast.copy_location(ast.Subscript(value, index, ast.Load()), value)
                self._name(stat, name, whole)
            return []
        text = ast.unparse(target)[:60]
        return self.refuse(
            FORGETS,
            f"`{text} = …` forgets what was there, unless it is a permutation of these places",
            stat,
            "`a, b = b, a` exchanges",
        )

    def _name(self, stat: ast.stmt, target: ast.Name, value: ast.expr) -> None:
        """Give an expression a name."""
        name = target.id
        line = stat.lineno
        if self._outer_shorthands and name in self._outer_shorthands[-1]:
            first = self.names[name]
            assert isinstance(first, Shorthand)
            self.refuse(
                FORGETS,
                f"`{name}` names another expression (line {first.line}), and would forget it",
                stat,
                f"`with rvm.ancilla(…) as {name}:` makes a place that can be changed",
            )
        for read in reads(value):
            if isinstance(self.names.get(read.id), Variable) and read.id in self.changed:
                at = self.changed[read.id]
                self.refuse(
                    CHANGES,
                    f"`{name}` names a value that changes (`{read.id}`, line {at})",
                    stat,
                    f"`with rvm.ancilla({ast.unparse(value)[:60]}) as {name}:` holds what it is "
                    "here",
                )
        if self.constant(value) is MISSING:
            self.operand(value)
        self.names[name] = Shorthand(value, dict(self.names), line)

    # Registers that come and go by themselves.

    def _declare(
        self, stat: ast.AnnAssign, name: ast.Name, annotation: ast.expr, value: ast.expr | None
    ) -> Stat:
        start, end = self.at(stat)
        if value is None:
            self.refuse(UNREAD, "what it holds is not named", stat, f"`{name.id}: … = 0`")
        if isinstance(self.names.get(name.id), Variable) and self.names[name.id].live:  # type: ignore[union-attr]
            self._forgetting(stat, name, value)
        t = self.annotation(annotation)
        node = self.operand(value)
        declared = self.new(name.id, t, name)
        self.declared[name.id] = value, dict(self.names)
        return AllocStat("alloc", declared, node, start, end)

    def _free(self, target: ast.expr) -> Stat:
        start, end = self.at(target)
        if not isinstance(target, ast.Name) or target.id not in self.declared:
            text = ast.unparse(target)[:60]
            self.refuse(
                FORGETS,
                f"`del {text}` would forget it",
                target,
                "what `t: rvm.f64 = e` has made is freed with the value of e",
            )
        found = self.local(target)
        assert isinstance(found, Variable)
        value, names = self.declared[target.id]
        now, self.names = self.names, names
        try:
            node = self.operand(value)
        finally:
            self.names = now
        found.live = False
        declared = Declared(found.name, None, start, end)
        return AllocStat("free", declared, node, start, end)

    def annotation(self, e: ast.expr) -> TypeRef:
        """The type that an annotation says."""
        start, end = self.at(e)
        code = compile(ast.Expression(e), self.source.name, "eval")
        try:
            value = eval(code, self.outside.namespace())
            if isinstance(value, str):
                value = eval(value, self.outside.namespace())
        except Exception as error:
            self.refuse("A011", f"the annotation has no value: {error}", e)
        try:
            return TypeReader(start, end, self.record, self.length_name).type(value)
        except WrongType as wrong:
            self.refuse("A011", wrong.message, e, wrong.hint)

    def new(self, name: str, t: TypeRef | None, at: ast.AST, line: int = 0) -> Declared:
        """A new register, which the name stands for from here on."""
        known = self.names.get(name)
        if isinstance(known, Variable) and known.live:
            what = "a parameter" if known.is_parameter else f"made in line {known.line}"
            self.refuse("A006", f"`{name}` is {what} already", at, "give this another name")
        start, end = self.at(at)
        variable = Variable(quoted(name), line or at.lineno)  # type: ignore[attr-defined]
        self.names[name] = variable
        return Declared(variable.name, t, start, end)

    # Control.

    def _if(self, stat: ast.If) -> Stat:
        arms: list[Arm] = []
        first = self.at(stat)[0]
        while True:
            start = self.at(stat)[0]
            end = self.at(stat.test)[1]
            cond, post = self._conditions(stat.test)
            with self._block("names an expression of the branch in line {}"):
                arms.append(Arm(cond, post, self.body(stat.body), start, end))
            if len(stat.orelse) != 1 or not isinstance(stat.orelse[0], ast.If):
                break
            stat = stat.orelse[0]
        orelse = None
        if stat.orelse:
            with self._block("names an expression of the branch in line {}"):
                orelse = self.body(stat.orelse)
        return IfStat(arms, orelse, first, arms[0].end)

    def _conditions(self, test: ast.expr) -> tuple[Node, Node | None]:
        """What holds before a branch, and after it if that is something else."""
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
                "a loop names what holds after each round, and not before the first",
                stat.test,
                f"`while rvm.loop({ast.unparse(stat.test)[:60]}, …):`",
            )
        if stat.orelse:
            self.refuse(UNREAD, "`else` of a loop is not read", stat.orelse[0])
        cond, post = self.operand(two[0]), self.operand(two[1])
        with self._block("names an expression of the loop in line {}"):
            body = self.body(stat.body)
        return While(cond, post, body, start, self.at(stat.test)[1])

    def _for(self, stat: ast.For) -> Stat:
        start, end = self.at(stat)[0], self.at(stat.iter)[1]
        if not isinstance(stat.target, ast.Name):
            self.refuse(UNREAD, "a loop has one variable", stat.target, "`for i in range(n):`")
        if stat.orelse:
            self.refuse(UNREAD, "`else` of a loop is not read", stat.orelse[0])
        match stat.iter:
            case ast.Call(f, [_, *_] as args, []) if self.outer(f) is range and len(args) <= 3:
                pass
            case _:
                hint = "`for i in range(len(x)):`, and `x[i]`"
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
        with self._block("names an expression of the loop in line {}"):
            body = self.body(stat.body)
        variable.live = False
        self.gone[name] = f"is the loop's of line {stat.lineno}, and is gone after it"
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
            behind = Operator("+", [self.operand(stop), Lit(1, start, end)], start, end)
            before = Operator("-", [self.operand(stop), Lit(1, start, end)], start, end)
            positive = Operator(">", [self.operand(step), Lit(0, start, end)], start, end)
            last = Application("choose", [positive, before, behind], start, end)
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

    # Blocks.

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
        self.names[name.id] = Block(quoted(name.id), made)
        return [Routine(Word(quoted(name.id), *self.at(name)), body, None, start, end)]

    def undo_of(self, call: ast.Call) -> list[Stat] | None:
        """`r.undo()`."""
        match call:
            case ast.Call(ast.Attribute(ast.Name(name), "undo"), [], []):
                if isinstance(self.names.get(name), Block):
                    return [self._undo(call, name)]
        return None

    # Effects.

    def _assert(self, stat: ast.Assert) -> Stat:
        start, end = self.at(stat)
        text, args = "", [self.operand(stat.test)]
        if stat.msg is not None:
            text, more = self.text(stat.msg)
            args += more
        effect = EffectStat("assert", text, args, start, end)
        return Extern(_BOTH, [effect], start, end)


def _stays(local: Local) -> bool:
    return isinstance(local, (Variable, Block))
