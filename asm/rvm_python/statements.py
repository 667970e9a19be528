"""Statements of Python as those of the assembler."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NoReturn

from rvm_asm.names import quoted
from rvm_asm.nodes import Declared, Node, Word
from rvm_asm.stats import AllocStat, EffectStat, Extern, Invoke, OpStat, Stat

from rvm.codes.words import unused
from rvm.stmt import BACKWARD, FORWARD
from rvm_python.changes import is_exchange, operand_of, reads, same, shown
from rvm_python.control import Control
from rvm_python.exchanges import exchanges, permutation
from rvm_python.messages import CHANGES, FORGETS, FORGETTING, SIGNS, UNREAD
from rvm_python.names import Refused
from rvm_python.scope import MISSING, Block, Shorthand, Variable

UPDATES: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.BitXor: "xor",
    ast.Mult: "mul",
    ast.Div: "div",
}
_BOTH = FORWARD | BACKWARD


class Statements(Control):
    """Reads the body of a function."""

    def body(self, statements: Sequence[ast.stmt]) -> list[Stat]:
        """A block; what is wrong in it is reported, statement by statement."""
        out: list[Stat] = []
        self._read.add(id(statements))
        for stat in statements:
            self._depth = self._count = 0
            try:
                out += self._statement(stat)
            except Refused:
                self._spoil(stat)
        return out

    def _spoil(self, stat: ast.stmt) -> None:
        """Go on behind a refused statement: with names that it would have given a meaning, and
        with its blocks, which may hold errors of their own."""
        match stat:
            case ast.Assign([ast.Name() as target]) | ast.AnnAssign(ast.Name() as target):
                self.spoiled |= {target.id} - set(self.names)
            case ast.For(target):
                found = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
                self.spoiled |= found - set(self.names)
        match stat:
            case ast.While(body=body, orelse=rest) | ast.For(body=body, orelse=rest):
                blocks = [body, rest]
            case ast.If(body=body, orelse=rest):
                blocks = [body, rest]
            case _:
                return
        for block in blocks:
            if id(block) not in self._read:
                with self._block("names an expression in the block of line {}"):
                    self.body(block)

    def _statement(self, stat: ast.stmt) -> list[Stat]:
        match stat:
            case ast.Expr(ast.Constant(str() | None | bool())) | ast.Pass():
                return []
            case ast.AugAssign():
                return [self._update(stat)]
            case ast.Assign([target], value):
                return self._assign(stat, target, value)
            case ast.Assign():
                what = f"`{shown(stat)}` is not read"
                self.refuse(FORGETS, what, stat, "one line for each name")
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

    def _update(self, stat: ast.AugAssign) -> Stat:
        kind = type(stat.op)
        text = shown(stat.target)
        if kind in FORGETTING:
            sign, what, hint = FORGETTING[kind]
            read = {n.id for n in ast.walk(stat) if isinstance(n, ast.Name)}
            free = {n: unused(n, read) for n in ("y", "h", "r")}
            hint = hint.format(x=text, e=shown(stat.value), **free)
            self.refuse(FORGETS, f"`{text} {sign} …` forgets {what}", stat, hint)
        start, end = self.at(stat)
        if isinstance(stat.target, ast.Name) and isinstance(
            self.names.get(stat.target.id), Shorthand
        ):
            self._no_place(stat.target, text)
        if isinstance(stat.value, ast.Call):
            added = self.added(stat, stat.value)
            if added is not None:
                return added
        target = self.place(stat.target)
        value = self.operand(stat.value)
        return OpStat(UPDATES[kind], [target, value], start, target.end, end)

    def _no_place(self, target: ast.Name, text: str) -> None:
        short = self.names[target.id]
        assert isinstance(short, Shorthand)
        value = shown(short.value)
        self.refuse(
            FORGETS,
            f"`{text}` names an expression (line {short.line}), and is not a place",
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
        text = shown(target)
        hint = f"`{text} += {shown(value)}` where it is 0, or an exchange: `a, b = b, a`"
        if any(same(part, target) for part in ast.walk(value)):
            other = unused("y", {n.id for n in ast.walk(stat) if isinstance(n, ast.Name)})
            hint = f"`{other} += {shown(value)}` adds it to another place"
        match value:
            case ast.BinOp(left, op, right) if same(left, target) and type(op) in UPDATES:
                hint = f"`{text} {SIGNS[UPDATES[type(op)]]} {shown(right)}`"
            case ast.BinOp(left, ast.Add(), right) if same(right, target):
                hint = f"`{text} += {shown(left)}`"
            case ast.BinOp(left, ast.Sub(), right) if same(right, target):
                hint = f"`{text} -= {shown(left)}`, and `{text} = -{text}`"
        self.refuse(FORGETS, f"`{text} = …` forgets what `{text}` was", stat, hint)

    def _exchange(
        self, stat: ast.stmt, targets: Sequence[ast.expr], values: Sequence[ast.expr]
    ) -> list[Stat]:
        """`a, b = b, a`, and longer permutations as several exchanges.

        Places that are not names are arguments of a function, as those of a call must not overlap:
        Python would leave the value of one of them in both.
        """
        start, end = self.at(stat)
        texts = [ast.unparse(t) for t in targets]
        sources = [texts.index(ast.unparse(value)) for value in values]
        places: list[Node] = [self.place(t) for t in targets]
        if len(places) == 2 or all(isinstance(t, ast.Name) for t in targets):
            return [*exchanges(sources, places, start, end)]
        name = quoted(f"permutation {' '.join(map(str, sources))}")
        self.permutations[name] = permutation(name, sources, start, end)
        return [Invoke("call", Word(name, start, end), places, start, end)]

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
        text = ", ".join(map(shown, target.elts))
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
                    f"`with rvm.ancilla({shown(value)}) as {name}:` holds what it is here",
                )
        if self.constant(value) is MISSING:
            self.operand(value)
        self.names[name] = Shorthand(value, dict(self.names), line)

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
            text = shown(target)
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

    def _assert(self, stat: ast.Assert) -> Stat:
        start, end = self.at(stat)
        text, args = "", [self.operand(stat.test)]
        if stat.msg is not None:
            text, more = self.text(stat.msg)
            args += more
        effect = EffectStat("assert", text, args, start, end)
        return Extern(_BOTH, [effect], start, end)
