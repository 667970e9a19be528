"""Calls on lines of their own: other functions, instructions, `with`, `print`."""

from __future__ import annotations

import ast
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rvm_asm.messages import Reporter
from rvm_asm.nodes import Lit, Node, Ref, Word
from rvm_asm.printer import quoted
from rvm_asm.stats import EffectStat, Extern, Invoke, Iterate, OpStat, Stat

from rvm.isa import OPCODES
from rvm.library import vocabulary
from rvm.library.generic import GenericFunction
from rvm.library.reversible import PythonOrigin
from rvm.library.vocabulary import Word as WordOf
from rvm.stmt import BACKWARD, FORWARD
from rvm_python.changes import places, root, shown
from rvm_python.expressions import Expressions
from rvm_python.messages import OUTSIDE, UNREAD
from rvm_python.scope import MISSING, Local, Outside, Variable, constant
from rvm_python.source import SourceText
from rvm_python.table import opcode_named

_POLICIES = ("pebbles", "max_moves", "memory", "state_bytes", "bennett", "goal")


class Calls(Expressions, ABC):
    """Reads lines that call something."""

    def __init__(
        self,
        source: SourceText,
        base: int,
        outside: Outside,
        report: Reporter,
        named: Callable[[PythonOrigin], str],
        record: Callable[[type], str],
    ) -> None:
        super().__init__(source, base, outside, report)
        self.named = named
        """What another function is called in the program."""
        self.record = record
        """What a class of records is called there."""
        self.changed: dict[str, int] = {}
        """The names of what the function changes, with the first line that does."""
        self.declared: dict[str, tuple[ast.expr, dict[str, Local]]] = {}
        """What `t: f64 = e` made, by what value, and what names stood for there."""
        self._outer_shorthands: list[set[str]] = []
        self.passed: list[tuple[str, PythonOrigin, str]] = []
        """Names that are arguments, with the function and the parameter that they are for."""
        self.taken: frozenset[str] = frozenset()
        """The names of the function's places, which no length has."""

    @abstractmethod
    def body(self, statements: Sequence[ast.stmt]) -> list[Stat]: ...

    @abstractmethod
    def compute(self, stat: ast.With, item: ast.withitem) -> list[Stat]: ...

    @abstractmethod
    def undo_of(self, call: ast.Call) -> list[Stat] | None: ...

    def length_name(self, name: str) -> str:
        """What a length of the name is called in the program."""
        return quoted(f"{name} (length)" if name in self.taken else name)

    def callee(self, f: ast.expr) -> tuple[PythonOrigin, bool] | None:
        """The reversible function that is called, and whether it is undone."""
        undo = False
        while isinstance(f, ast.UnaryOp) and isinstance(f.op, ast.Invert):
            f, undo = f.operand, not undo
        found = self.outer(f)
        if isinstance(found, GenericFunction) and isinstance(found.origin, PythonOrigin):
            return found.origin, undo != found.undo
        return None

    def changes(self, call: ast.Call) -> Sequence[ast.expr]:
        """The arguments that a line changes, for all that is known before it is read."""
        if self.callee(call.func) is not None:
            return [p for a in (*call.args, *(k.value for k in call.keywords)) for p in places(a)]
        found = self.outer(call.func)
        if found == vocabulary.iterate:
            return call.args[1:2]
        op = opcode_named(found)
        if not op:
            return ()
        modes = [o.mode for o in OPCODES[op].operands] if OPCODES[op].is_data else ["mut"] * 2
        return [a for a, mode in zip(call.args, modes, strict=False) if mode == "mut"]

    def call(self, call: ast.Call) -> list[Stat]:
        """A call on a line of its own."""
        undone = self.undo_of(call)
        if undone is not None:
            return undone
        start, end = self.at(call)
        found = self.callee(call.func)
        if found is not None:
            origin, undo = found
            word = Word(self.named(origin), *self.at(call.func))
            args = self._arguments(call, origin)
            return [Invoke("uncall" if undo else "call", word, args, start, end)]
        target = self.outer(call.func)
        if target is print:
            return [self._print(call)]
        if target == vocabulary.iterate:
            return [self._iterate(call)]
        op = opcode_named(target)
        if op:
            if call.keywords:
                self.refuse("A044", f"`{op}` takes its operands in order", call.keywords[0])
            if op in ("push", "pop") and len(call.args) == 2:
                self.stacks.add(root(call.args[1]))
            operands = [self._operand_of(a, op, k) for k, a in enumerate(call.args)]
            return [OpStat(op, operands, start, self.at(call.func)[1], end)]
        return self._no_call(call, target)

    def _operand_of(self, e: ast.expr, op: str, k: int) -> Node:
        row = OPCODES[op]
        is_mut = row.is_data and k < len(row.operands) and row.operands[k].mode == "mut"
        return self.place(e) if is_mut or op in ("push", "pop") else self.operand(e)

    def _no_call(self, call: ast.Call, target: Any) -> NoReturn:
        text = shown(call.func)
        if isinstance(target, WordOf) and target in (vocabulary.ancilla, vocabulary.compute):
            self.refuse(UNREAD, f"`{text}` stands in a `with`", call, f"`with {text}(…) as t:`")
        if target is MISSING and isinstance(call.func, ast.Attribute):
            self.refuse(
                UNREAD,
                f"the method `{call.func.attr}` is not read",
                call,
                "a method may be called in an expression: `y += x.sum()`",
            )
        if target is not MISSING and constant(target) is MISSING:
            here = getattr(target, "__module__", None)
            if callable(target) and here not in ("builtins", "numpy", "math", "cmath", None):
                self._function(call.func)
        self.operand(call)
        self.refuse(
            UNREAD,
            f"the value of `{text}` goes nowhere",
            call,
            f"`y += {shown(call)}` adds it to a place",
        )

    def _arguments(self, call: ast.Call, origin: PythonOrigin) -> list[Node]:
        """A call's arguments in the order of the parameters, defaults among them."""
        for a in call.args:
            if isinstance(a, ast.Starred):
                self.refuse_kind(a)
        for k in call.keywords:
            if k.arg is None:
                self.refuse(UNREAD, "`**` is not read here", k.value, "name the arguments")
        named = {k.arg: k.value for k in call.keywords}
        try:
            bound = inspect.signature(origin.function).bind(*call.args, **named)  # type: ignore[arg-type]
        except TypeError as error:
            self.refuse("A044", f"`{origin.name}`: {error}", call)
        out: list[Node] = []
        defaults = origin.defaults
        for name in origin.parameters:
            if name in bound.arguments:
                e = bound.arguments[name]
                if isinstance(e, ast.Name):
                    self.passed.append((e.id, origin, name))
                out.append(self.place(e) if self._is_place(e) else self.operand(e))
            else:
                value = constant(defaults[name])
                if value is MISSING or isinstance(value, tuple):
                    self.refuse(OUTSIDE, f"the default of `{name}` is no number", call)
                out.append(Lit(value, *self.at(call)))
        return out

    def _is_place(self, e: ast.expr) -> bool:
        """Whether an argument is passed by reference: a name of a place, not of an expression."""
        at: Any = e
        while isinstance(at, (ast.Attribute, ast.Subscript)):
            if isinstance(at, ast.Attribute) and at.attr == "shape":
                return False
            at = at.value
        if not isinstance(at, ast.Name):
            return False
        return isinstance(self.names.get(at.id), Variable)

    def _iterate(self, call: ast.Call) -> Stat:
        """`rvm.iterate(step, y, x, …, times=1000, pebbles=12)`."""
        start, end = self.at(call)
        named = {k.arg: k.value for k in call.keywords}
        found = self.callee(call.args[0]) if call.args else None
        if found is None or found[1] or "times" not in named or len(call.args) < 3:
            self.refuse(
                "A044",
                "`rvm.iterate` takes a reversible function, its arguments, and `times=`",
                call,
                "`rvm.iterate(step, y, x, times=1000, pebbles=12)`",
            )
        policy = []
        for name, value in named.items():
            if name == "times":
                continue
            if name not in _POLICIES:
                known = ", ".join(f"`{p}=`" for p in _POLICIES)
                self.refuse("A044", f"`rvm.iterate` takes no `{name}=`", value, f"{known}")
            start_of, end_of = self.at(value)
            node: Node
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                node = Ref(value.value, (), start_of, end_of)
            else:
                node = self.operand(value)
            policy.append((Word(name, start_of, end_of), node))
        args = [self.place(a) if self._is_place(a) else self.operand(a) for a in call.args[1:]]
        word = Word(self.named(found[0]), *self.at(call.args[0]))
        times = self.operand(named["times"])
        return Iterate(word, args, None, None, times, False, policy, start, end)

    def _print(self, call: ast.Call) -> Stat:
        start, end = self.at(call)
        if call.keywords:
            self.refuse(UNREAD, "`print` takes no options here", call.keywords[0])
        texts: list[str] = []
        args: list[Node] = []
        for a in call.args:
            text, more = self.text(a) if _is_text(a) else ("{}", [self._shown(a)])
            texts.append(text)
            args += more
        effect = EffectStat("print", " ".join(texts), args, start, end)
        return Extern(FORWARD | BACKWARD, [effect], start, end)

    def _shown(self, e: ast.expr) -> Node:
        return self.place(e) if self._is_place(e) else self.operand(e)

    def text(self, e: ast.expr) -> tuple[str, list[Node]]:
        """A text with `{}` for the values in it."""
        match e:
            case ast.Constant(str(text)):
                return text, []
            case ast.JoinedStr(parts):
                out, args = "", []
                for part in parts:
                    match part:
                        case ast.Constant(str(text)):
                            out += text
                        case ast.FormattedValue(value, -1, None):
                            out += "{}"
                            args.append(self._shown(value))
                        case _:
                            self.refuse(UNREAD, "a value is shown as it is", part, "`{x}`")
                return out, args
        return self.refuse(
            UNREAD, "a text stands here as it is", e, 'for example `assert c, "text"`'
        )


def _is_text(e: ast.expr) -> bool:
    return isinstance(e, ast.JoinedStr) or (
        isinstance(e, ast.Constant) and isinstance(e.value, str)
    )
