"""Calls on lines of their own: other functions, instructions, `with`, `print`."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from rvm_asm.derivatives import LEFT_OUT
from rvm_asm.messages import Reporter, did_you_mean
from rvm_asm.names import quoted
from rvm_asm.nodes import Lit, Node, Ref, Word
from rvm_asm.stats import EffectStat, Extern, Func, Invoke, Iterate, OpStat, Stat

from rvm.codes.templates import escaped, holes
from rvm.codes.words import unused
from rvm.isa import OPCODES
from rvm.library import vocabulary
from rvm.library.handle import Library
from rvm.library.reversible import Callee, LinkedOrigin, PythonOrigin, called
from rvm.library.vocabulary import Word as WordOf
from rvm.stmt import BACKWARD, FORWARD
from rvm_python.changes import places, root, shown
from rvm_python.expressions import SIGNS, Expressions
from rvm_python.messages import INSTEAD, OUTSIDE, UNREAD
from rvm_python.scope import MISSING, Local, Outside, Variable, constant
from rvm_python.source import SourceText
from rvm_python.table import opcode_named

Origin = PythonOrigin | LinkedOrigin
_MAP = "`rvm.map(f, y, x)` does f for each element of y and x"
_DUALS = {
    "bars": "the gradient takes `bars=`: `rvm.gradient_of({f})(…, bars=(…))`",
    "dots": "the tangent takes `dots=`: `rvm.tangent_of({f})(…, dots=(…))`",
}
ACCUMULATE: dict[str, tuple[type[ast.operator], ...]] = {
    "bool": (ast.BitXor,),
    "log": (ast.Mult, ast.Div),
}
"""How values of a type are put to a place, and taken away; others by `+=` and `-=`."""
_POLICIES = ("pebbles", "max_moves", "memory", "state_bytes", "bennett", "goal")


class Calls(Expressions, ABC):
    """Reads lines that call something."""

    def __init__(
        self,
        source: SourceText,
        base: int,
        outside: Outside,
        report: Reporter,
        named: Callable[[Origin], str],
        record: Callable[[type], str],
    ) -> None:
        super().__init__(source, base, outside, report)
        self.named = named
        """A function from another function to its name in the program."""
        self.record = record
        """A function from a class of records to its name in the program."""
        self.changed: dict[str, int] = {}
        """The names of places that the function changes, with the first line that does so."""
        self.declared: dict[str, tuple[ast.expr, dict[str, Local]]] = {}
        """The ancillas declared by `t: f64 = e`: the value, and the meanings of names there."""
        self._outer_shorthands: list[set[str]] = []
        self._routines: set[str] = set()
        """The names of routines, one for each block under `rvm.compute()`."""
        self._read: set[int] = set()
        """The blocks that have been read, by their identity."""
        self.functions: Mapping[str, Callee] = {}
        """The parameters that are functions, with the functions passed."""
        self.passed: list[tuple[str, Origin, str]] = []
        """Names that are arguments, with the function and the parameter that they are for."""
        self.permutations: dict[str, Func] = {}
        """Functions that exchange places which must not be the same, by their names."""
        self.taken: frozenset[str] = frozenset()
        """The names of the function's places, which no length has."""

    @abstractmethod
    def body(self, statements: Sequence[ast.stmt]) -> list[Stat]: ...

    @abstractmethod
    def compute(self, stat: ast.With, item: ast.withitem) -> list[Stat]: ...

    @abstractmethod
    def undo_of(self, call: ast.Call) -> list[Stat] | None: ...

    def length_name(self, name: str) -> str:
        """The program's name for a length of this name."""
        return quoted(f"{name} (length)" if name in self.taken else name)

    def callee(self, f: ast.expr) -> Callee | None:
        """The reversible function that is called, and whether it is undone."""
        undo = False
        while isinstance(f, ast.UnaryOp) and isinstance(f.op, ast.Invert):
            f, undo = f.operand, not undo
        if isinstance(f, ast.Name) and f.id in self.functions:
            origin, inner = self.functions[f.id]
            return origin, undo != inner
        found = called(self.outer(f))
        return None if found is None else (found[0], undo != found[1])

    def _derived(self, f: ast.expr) -> tuple[Origin, bool, tuple[str, ...]] | None:
        """The function that a call is of: undone perhaps, and with the marks of a derivative.

        `rvm.gradient_of(f)`, `~rvm.tangent_of(rvm.gradient_of(f))`.
        """
        undo = False
        while isinstance(f, ast.UnaryOp) and isinstance(f.op, ast.Invert):
            f, undo = f.operand, not undo
        if isinstance(f, ast.Call):
            marks = self._marks_of(f.func)
            if marks is None:
                return None
            inner = self._derived(f.args[0]) if len(f.args) == 1 and not f.keywords else None
            if inner is None or inner[1]:
                text = shown(f.func)
                self.refuse(
                    "A044",
                    f"`{text}` takes a reversible function",
                    f,
                    f"`{text}(f)(x, …)`; of what f undoes, `rvm.adjoint_of(f)`",
                )
            return inner[0], undo, (*inner[2], *marks)
        found = self.callee(f)
        return None if found is None else (found[0], undo != found[1], ())

    def changes(self, call: ast.Call) -> Sequence[ast.expr]:
        """The arguments that a line changes, for all that is known before it is read."""
        found = self.outer(call.func)
        if found == vocabulary.map_ or self._calls_derivative(call.func):
            named = [k.value for k in call.keywords]
            every = [e for v in (*call.args, *named) for e in _several(v)]
            return [p for e in every for p in places(e)]
        if self.callee(call.func) is not None:
            return [p for a in (*call.args, *(k.value for k in call.keywords)) for p in places(a)]
        if found == vocabulary.iterate:
            return call.args[1:2]
        op = opcode_named(found)
        if not op:
            return ()
        modes = [o.mode for o in OPCODES[op].operands] if OPCODES[op].is_data else ["mut"] * 2
        return [a for a, mode in zip(call.args, modes, strict=False) if mode == "mut"]

    def call(self, call: ast.Call) -> list[Stat]:
        """A call as a statement."""
        undone = self.undo_of(call)
        if undone is not None:
            return undone
        start, end = self.at(call)
        target = self.outer(call.func)
        if target == vocabulary.map_:
            if not call.args:
                self.refuse("A044", "`rvm.map` takes a function and arguments", call, _MAP)
            return [self._invoke(call, call.args[0], call.args[1:], ("map", "unmap"))]
        if self.callee(call.func) is not None or self._calls_derivative(call.func):
            return [self._invoke(call, call.func, call.args, ("call", "uncall"))]
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

    def _marks_of(self, f: ast.expr) -> tuple[str, ...] | None:
        """The marks for `rvm.gradient_of` and similar functions."""
        found = self.outer(f)
        return vocabulary.DERIVED.get(found) if isinstance(found, WordOf) else None

    def _calls_derivative(self, f: ast.expr) -> bool:
        while isinstance(f, ast.UnaryOp) and isinstance(f.op, ast.Invert):
            f = f.operand
        return isinstance(f, ast.Call) and self._marks_of(f.func) is not None

    def _invoke(
        self, call: ast.Call, f: ast.expr, args: Sequence[ast.expr], words: tuple[str, str]
    ) -> Stat:
        """A call of a function, or of what is derived from one, there or back."""
        found = self._derived(f)
        if found is None:
            self.refuse("A044", f"`{shown(f)}` is not a reversible function", f, _MAP)
        origin, undo, marks = found
        named = {k.arg: k.value for k in call.keywords}
        duals = ("dots" if marks[-1] == "." else "bars") if marks else ""
        given = named.pop(duals, None) if duals else None
        if duals and given is None:
            hint = (
                f"`{duals}=(…)`, one for each parameter that has any, None where it is not wanted"
            )
            self.refuse("A044", f"a call of a derivative takes `{duals}=`", call, hint)
        # Of a derivative of a derivative some arguments are bars of the first.
        plain = len(marks) > 1
        if plain and not named:
            nodes = [self._argument(a) for a in args]
        else:
            origin, nodes = self._arguments(call, origin, args, named)
        more = [] if given is None else [self._dual(e) for e in _several(given)]
        word = Word(self.named(origin), *self.at(f))
        return Invoke(words[undo], word, nodes, *self.at(call), marks=marks, bars=more)

    def added(self, stat: ast.AugAssign, call: ast.Call) -> Stat | None:
        """`y += f(x)` where f has a value, as a call of its reversible form; None if it has none.

        `y -= f(x)` undoes that.
        """
        found = self.callee(call.func)
        if found is None or not isinstance(found[0], LinkedOrigin) or not found[0].adds:
            return None
        origin = found[0]
        way, *back = ACCUMULATE.get(origin.kind, (ast.Add, ast.Sub))
        if type(stat.op) not in (way, *back):
            sign, text = f"{SIGNS[way]}=", shown(stat.target)
            hint = f"`{text} {sign} {shown(call)}`"
            what = f"the value of `{origin.name}` is accumulated by `{sign}`"
            self.refuse("A004", what, stat, hint)
        named = {k.arg: k.value for k in call.keywords}
        _, nodes = self._arguments(call, origin, [stat.target, *call.args], named)
        word = Word(self.named(origin), *self.at(call.func))
        kind = "call" if type(stat.op) is way else "uncall"
        return Invoke(kind, word, nodes, *self.at(stat))

    def _argument(self, e: ast.expr) -> Node:
        return self.place(e) if self._is_place(e) else self.operand(e)

    def _dual(self, e: ast.expr) -> Node:
        """A bar or a dot; None denotes one that is left out."""
        if isinstance(e, ast.Constant) and e.value is None:
            return Ref(LEFT_OUT, (), *self.at(e))
        return self._argument(e)

    def _operand_of(self, e: ast.expr, op: str, k: int) -> Node:
        row = OPCODES[op]
        is_mut = row.is_data and k < len(row.operands) and row.operands[k].mode == "mut"
        return self.place(e) if is_mut or op in ("push", "pop") else self.operand(e)

    def _no_call(self, call: ast.Call, target: Any) -> NoReturn:
        text = shown(call.func)
        if isinstance(target, WordOf) and target in (vocabulary.ancilla, vocabulary.compute):
            self.refuse(UNREAD, f"`{text}` belongs in a `with`", call, f"`with {text}(…) as t:`")
        local = self.names.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if isinstance(local, Variable) and local.is_parameter:
            self.refuse(
                UNREAD,
                f"`{text}` is called, and was given no function",
                call,
                "pass one that is under `@rvm.reversible`",
            )
        if target is MISSING and isinstance(call.func, ast.Attribute):
            whole = self.outer(call.func.value)
            if isinstance(whole, Library):
                what = f"`{shown(call.func.value)}` has no function `{call.func.attr}`"
                self.refuse("A045", what, call.func, did_you_mean(call.func.attr, whole))
            self.refuse(
                UNREAD,
                f"the method `{call.func.attr}` is not read",
                call,
                INSTEAD.get(
                    call.func.attr, "a method may be called in an expression: `y += x.sum()`"
                ),
            )
        if target is not MISSING and constant(target) is MISSING:
            here = getattr(target, "__module__", None)
            if callable(target) and here not in ("builtins", "numpy", "math", "cmath", None):
                self._function(call.func)
        self.operand(call)
        place = unused("y", (n.id for n in ast.walk(call) if isinstance(n, ast.Name)))
        self.refuse(
            UNREAD,
            f"the value of `{text}` goes nowhere",
            call,
            f"`{place} += {shown(call)}` adds it to a place",
        )

    def _arguments(
        self,
        call: ast.Call,
        origin: Origin,
        args: Sequence[ast.expr],
        named: Mapping[str | None, ast.expr],
    ) -> tuple[Origin, list[Node]]:
        """The function for those that a call passes, and its other arguments.

        In the order of the parameters, defaults among them.
        """
        for a in args:
            if isinstance(a, ast.Starred):
                self.refuse_kind(a)
        if None in named:
            self.refuse(UNREAD, "`**` is not read here", named[None], "name the arguments")
        signature = origin.signature
        kept = [p for n, p in signature.parameters.items() if n not in origin.functions]
        try:
            bound = signature.replace(parameters=kept).bind(*args, **named)  # type: ignore[arg-type]
        except TypeError as error:
            duals = next((n for n in _DUALS if n in named and n not in signature.parameters), "")
            hint = _DUALS.get(duals, "").format(f=origin.name)
            self.refuse("A044", f"`{origin.name}`: {error}", call, hint)
        functions = {n: f for n, e in bound.arguments.items() if (f := self.callee(e)) is not None}
        origin = origin.taking(functions)
        out: list[Node] = []
        defaults = origin.defaults
        for name in origin.parameters:
            if name in bound.arguments:
                e = bound.arguments[name]
                if isinstance(e, ast.Name):
                    self.passed.append((e.id, origin, name))
                out.append(self._argument(e))
            else:
                value = constant(defaults[name])
                if value is MISSING or isinstance(value, tuple):
                    self.refuse(OUTSIDE, f"the default of `{name}` is not a number", call)
                out.append(Lit(value, *self.at(call)))
        return origin, out

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
        args = [self._argument(a) for a in call.args[1:]]
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
                for hole, _ in holes(text):
                    hint = f'`f"{hole}"` shows a value, and `f"{{{{"` a brace'
                    self.refuse("A044", f"`{hole}` in a text has no value", e, hint)
                return escaped(text), []
            case ast.JoinedStr(parts):
                out, args = "", []
                for part in parts:
                    match part:
                        case ast.Constant(str(text)):
                            out += escaped(text)
                        case ast.FormattedValue(value, -1, None):
                            out += "{}"
                            args.append(self._shown(value))
                        case ast.FormattedValue(value, -1, ast.JoinedStr([ast.Constant("x")])):
                            out += "{:x}"
                            args.append(self._shown(value))
                        case _:
                            hint = "`{x}`, or `{x:x}` in base sixteen"
                            self.refuse(UNREAD, "a value is shown as it is", e, hint)
                return out, args
        return self.refuse(
            UNREAD, "a text stands here as it is", e, 'for example `assert c, "text"`'
        )


def _is_text(e: ast.expr) -> bool:
    return isinstance(e, ast.JoinedStr) or (
        isinstance(e, ast.Constant) and isinstance(e.value, str)
    )


def _several(e: ast.expr) -> Sequence[ast.expr]:
    """The parts of a tuple, or the single value in place of a tuple of one."""
    return e.elts if isinstance(e, (ast.Tuple, ast.List)) else (e,)
