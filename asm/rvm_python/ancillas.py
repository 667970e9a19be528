"""`with rvm.ancilla(…)` and other statements that make registers."""

from __future__ import annotations

import ast
from typing import Any

from rvm_asm.names import quoted
from rvm_asm.nodes import Declared, LikeRef, Node, TypeRef
from rvm_asm.stats import Stat, With

from rvm.library import vocabulary
from rvm_python.annotations import TypeReader, WrongType
from rvm_python.calls import Calls
from rvm_python.changes import shown
from rvm_python.messages import UNREAD
from rvm_python.names import Refused
from rvm_python.scope import MISSING, Local, Variable
from rvm_python.table import is_type


class Ancillas(Calls):
    """Reads statements that make registers which are freed automatically."""

    def _with(self, stat: ast.With) -> list[Stat]:
        """`with rvm.ancilla(…) as t, … :` and `with rvm.compute() as r:`."""
        calls: list[tuple[ast.withitem, Any]] = []
        for item in stat.items:
            e = item.context_expr
            found = self.outer(e.func) if isinstance(e, ast.Call) else MISSING
            if found not in (vocabulary.ancilla, vocabulary.compute):
                hint = "`rvm.ancilla(…) as t`, or `rvm.compute() as r`"
                self.refuse(UNREAD, "`with` holds ancillas here", e, hint)
            calls.append((item, found))
        if any(found == vocabulary.compute for _, found in calls):
            if len(calls) > 1:
                self.refuse(
                    UNREAD, "`rvm.compute()` has a `with` of its own", stat.items[0].context_expr
                )
            return self.compute(stat, stat.items[0])
        start, end = self.at(stat.items[0].context_expr)[0], self.at(stat.items[-1].context_expr)[1]
        held: list[tuple[Declared, Node | None]] = []
        mine: list[tuple[str, Local | None]] = []
        broken = False
        for item, _ in calls:
            try:
                mine.append(self._held(item, held))
            except Refused:
                broken = True
                parts = [] if item.optional_vars is None else ast.walk(item.optional_vars)
                self.spoiled |= {n.id for n in parts if isinstance(n, ast.Name)}
                self.spoiled |= {k.arg for k in _keywords(item) if k.arg}
        body = self.body(stat.body)
        for name, before in reversed(mine):
            local = self.names.get(name)
            if isinstance(local, Variable):
                local.live = False
                self.gone[name] = f"is the ancilla of line {local.line}, which ends before this"
            self.names.pop(name, None)
            if before is not None:
                self.names[name] = before
        if broken:
            raise Refused
        return [With(held, body, start, end)]

    def _held(
        self, item: ast.withitem, held: list[tuple[Declared, Node | None]]
    ) -> tuple[str, Local | None]:
        call: Any = item.context_expr
        target = item.optional_vars
        if not isinstance(target, ast.Name):
            name, made = "t", shown(call)
            for k in _keywords(item):
                name, made = k.arg or name, f"{shown(call.func)}({shown(k.value)})"
            what = "has no name" if target is None else "has one name"
            self.refuse(UNREAD, f"the ancilla {what}", target or call, f"`with {made} as {name}:`")
        named = {k.arg: k.value for k in call.keywords}
        like = named.pop("like", None)
        if named:
            self.refuse("A044", f"`rvm.ancilla` takes no `{next(iter(named))}=`", call)
        args = call.args
        first = self._type_object(args[0]) if args else MISSING
        value: Node | None = None
        t: TypeRef | None = None
        start, end = self.at(call)
        if like is not None:
            t = LikeRef(self.place(like))
            if args:
                value = self.operand(args[0])
        elif not args:
            self.refuse(
                "A044",
                "`rvm.ancilla` takes a value, a type, or `like=`",
                call,
                "`rvm.ancilla(0.0)`, `rvm.ancilla(rvm.f64, n)`, `rvm.ancilla(like=x)`",
            )
        elif first is not MISSING:
            try:
                t = TypeReader(*self.at(args[0]), self.record, self.length_name).type(first)
            except WrongType as wrong:
                self.refuse("A011", wrong.message, args[0], wrong.hint)
            for a in args[1:]:
                if self.constant(a) == 0:
                    name = shown(args[0])
                    hint = f"`{name}({shown(a)})` is the number, and `{name}` alone begins as zero"
                    self.refuse("A063", "an array without elements holds nothing", a, hint)
            dims: list[Node | None] = [self.operand(a) for a in args[1:]]
            t = TypeRef(t.name, t.frac, t.fields, [*(t.dims or []), *dims] or None, start, end)
        elif len(args) > 1:
            hint = "`rvm.ancilla(rvm.f64, n)`"
            if len(args) == 2 and self._type_object(args[1]) is not MISSING:
                hint = f"`rvm.ancilla({shown(args[1])}({shown(args[0])}))`"
            self.refuse("A044", "`rvm.ancilla` takes one value, or a type and lengths", call, hint)
        else:
            value = self.place(args[0]) if self._is_place(args[0]) else self.operand(args[0])
        before = self.names.get(target.id)
        declared = self.new(target.id, t, target)
        declared.start, declared.end = start, self.at(target)[1]
        held.append((declared, value))
        return target.id, None if isinstance(before, Variable) else before

    def _type_object(self, e: ast.expr) -> Any:
        """The type denoted by an expression, `rvm.f64` or `rvm.Array[…]`; MISSING if none."""
        match e:
            case ast.Name() | ast.Attribute():
                found = self.outer(e)
                return found if found is not MISSING and is_type(found) else MISSING
            case ast.Subscript(whole) if self.outer(whole) in (vocabulary.Array, vocabulary.Stack):
                pass
            case ast.Call(f, [ast.Constant(int())], []):
                if self._type_object(f) is MISSING or ast.unparse(f).split(".")[-1] != "fixed":
                    return MISSING
            case _:
                return MISSING
        code = compile(ast.Expression(e), self.source.name, "eval")
        try:
            return eval(code, self.outside.namespace())
        except Exception as error:
            self.refuse("A011", f"the type has no value: {error}", e)

    def annotation(self, e: ast.expr) -> TypeRef:
        """The type given by an annotation."""
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
        """A new register, to which the name refers from here on."""
        known = self.names.get(name)
        if isinstance(known, Variable) and known.live:
            what = "a parameter" if known.is_parameter else f"made in line {known.line}"
            self.refuse("A006", f"`{name}` is {what} already", at, "give this another name")
        start, end = self.at(at)
        variable = Variable(quoted(name), line or at.lineno)  # type: ignore[attr-defined]
        self.names[name] = variable
        return Declared(variable.name, t, start, end)


def _keywords(item: ast.withitem) -> list[ast.keyword]:
    """What a `with` gives by names, as in `rvm.ancilla(t=0.0)`, other than `like=`."""
    return [k for k in getattr(item.context_expr, "keywords", ()) if k.arg != "like"]
