"""The meanings of names and constants in a function, and refusals of errors."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from rvm_asm.literals import number
from rvm_asm.messages import Reporter, did_you_mean

from rvm.library import vocabulary
from rvm.library.generic import GenericFunction
from rvm.library.handle import Library
from rvm.numbers.floats import rounded
from rvm.types import F64
from rvm_python.changes import shown
from rvm_python.messages import INSTEAD, OUTSIDE, REFUSED, UNREAD
from rvm_python.scope import MISSING, Local, Outside, Shorthand, Variable, constant
from rvm_python.source import SourceText

_FOLDED: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_MUTABLE = (list, dict, set, bytearray, np.ndarray)
MAX_BITS = 1 << 14
"""The longest whole number that is computed while a function is read."""


class Refused(Exception):
    """An error that has been reported."""


class Names:
    """The names of one function while it is read."""

    def __init__(self, source: SourceText, base: int, outside: Outside, report: Reporter) -> None:
        self.source = source
        self.base = base
        self.outside = outside
        self.report = report
        self.names: dict[str, Local] = {}
        self.gone: dict[str, str] = {}
        """Names that had a meaning further up, and the reason why they no longer do."""
        self.spoiled: set[str] = set()
        """Names whose definition was refused, so that their errors are reported already."""
        self.stacks: set[str] = set()
        """The names of stacks, recognised by their use."""
        self._depth = 0
        self._count = 0

    def at(self, node: ast.AST) -> tuple[int, int]:
        """The position of a node."""
        n: Any = node
        offset = self.source.offset
        start = self.base + offset(n.lineno, n.col_offset)
        return start, self.base + offset(n.end_lineno, n.end_col_offset)

    def refuse(self, code: str, message: str, node: ast.AST, hint: str = "") -> NoReturn:
        """Report an error at a node, and stop reading its statement."""
        self.report.error(code, message, *self.at(node), hint=hint)
        raise Refused

    def refuse_kind(self, node: ast.AST) -> NoReturn:
        """Refuse a node that is refused everywhere."""
        kind = type(node)
        if kind in REFUSED:
            code, message, hint = REFUSED[kind]
            self.refuse(code, message, node, hint)
        if isinstance(node, ast.Constant):
            self.refuse(UNREAD, f"`{shown(node)}` is not a number", node)
        self.refuse(UNREAD, f"`{shown(node)}` is not read here", node)

    def constant(self, e: ast.expr) -> Any:
        """The value of an expression of constants, computed by Python; MISSING if it is none."""
        match e:
            case ast.Constant(float() | complex()):
                return self._written(e)
            case ast.Constant(value):
                return constant(value)
            case ast.Name(name) if name in self.names or name in self.spoiled:
                local = self.names.get(name)
                if not isinstance(local, Shorthand):
                    return MISSING
                with self._within(local):
                    return self.constant(local.value)
            case ast.Name() | ast.Attribute():
                return constant(self.outer(e))
            case ast.UnaryOp(op, operand) if type(op) in _FOLDED:
                return self._folded(e, type(op), [operand])
            case ast.BinOp(left, op, right) if type(op) in _FOLDED:
                return self._folded(e, type(op), [left, right])
            case ast.Subscript(value, index):
                whole, k = self.constant(value), self.constant(index)
                if isinstance(whole, tuple) and type(k) is int:
                    if not -len(whole) <= k < len(whole):
                        self.refuse(
                            OUTSIDE, f"the tuple has {len(whole)} elements, and no [{k}]", e
                        )
                    return whole[k]
            case ast.Call(ast.Name("len"), [arg], []):
                whole = self.constant(arg)
                return len(whole) if isinstance(whole, tuple) else MISSING
            case ast.Call(ast.Name(), [ast.Constant(str(c))], []) if len(c) == 1:
                return ord(c) if self.outer(e.func) is ord else MISSING
            case ast.Compare(left, [op], [right]) if type(op) in _FOLDED:
                return self._folded(e, type(op), [left, right])
            case ast.BoolOp(op, values):
                known = [self.constant(v) for v in values]
                if all(isinstance(v, bool) for v in known):
                    return all(known) if isinstance(op, ast.And) else any(known)
            case ast.IfExp(test, body, orelse):
                chosen = self.constant(test)
                if isinstance(chosen, bool):
                    return self.constant(body if chosen else orelse)
        return MISSING

    def _written(self, e: ast.Constant) -> Any:
        """The value of a real or imaginary literal, refused if Python has rounded it too far."""
        start, end = (at - self.base for at in self.at(e))
        text = self.source.text[start:end].lower()
        try:
            fits, said = number(text) is not None, ""
        except ValueError as error:
            fits, said = False, str(error)
        if not fits:
            hint = "" if said else "infinity is `math.inf`"
            self.refuse("A041", said or f"the number {text[:20]}… is too large", e, hint)
        return e.value

    def _folded(self, e: ast.expr, op: type[ast.AST], parts: Sequence[ast.expr]) -> Any:
        values = [self.constant(p) for p in parts]
        if any(v is MISSING or isinstance(v, tuple) for v in values):
            return MISSING
        if op in (ast.Pow, ast.LShift) and all(type(v) is int for v in values):
            base, by = values
            if by > MAX_BITS or by * max(1, base.bit_length() * (op is ast.Pow)) > MAX_BITS:
                self.refuse("A041", "the number is too large", e)
        try:
            if isinstance(e, ast.BinOp) and any(type(v) in (float, complex) for v in values):
                for v in values:
                    if type(v) is int:
                        rounded(v, F64)  # what Python would round without a word
            return _FOLDED[op](*values)
        except (ArithmeticError, ValueError, TypeError) as error:
            self.refuse("A041", f"`{shown(e)}` has no value: {error}", e)

    @contextmanager
    def _within(self, short: Shorthand) -> Iterator[None]:
        """A context for the expansion of a name for an expression."""
        names, self.names = self.names, short.names
        try:
            yield
        finally:
            self.names = names

    def outer(self, e: ast.expr) -> Any:
        """The outside object that a dotted name denotes; MISSING if it is local."""
        match e:
            case ast.Name(name):
                if name in self.names or name in self.spoiled:
                    return MISSING
                return self.outside.named(name)
            case ast.Attribute(value, name):
                whole = self.outer(value)
                return MISSING if whole is MISSING else self.outside.part(whole, name)
            case ast.Subscript(value, ast.Constant(str(name))):
                whole = self.outer(value)
                return self.outside.part(whole, name) if isinstance(whole, Library) else MISSING
        return MISSING

    def is_local(self, e: ast.expr) -> bool:
        """Whether an expression is a place, of a name that the function has itself."""
        while isinstance(e, (ast.Attribute, ast.Subscript)):
            e = e.value
        return isinstance(e, ast.Name) and (e.id in self.names or e.id in self.spoiled)

    def local(self, e: ast.Name) -> Local:
        """The meaning of a name in the function."""
        if e.id in self.spoiled and e.id not in self.names:
            raise Refused
        found = self.names.get(e.id)
        if found is None:
            self._unknown(e)
        if isinstance(found, Variable) and not found.live:
            why = f"was made in line {found.line}, and has been freed"
            self.refuse("A005", f"`{e.id}` {self.gone.get(e.id) or why}", e)
        return found

    def _unknown(self, e: ast.Name) -> NoReturn:
        if e.id in self.gone:
            self.refuse("A005", f"`{e.id}` {self.gone[e.id]}", e)
        known = [*self.names, *self.outside.namespace()]
        hint = did_you_mean(e.id, known)
        here = ", ".join(f"`{name}`" for name in self.names) or "nothing"
        if e.id in vocabulary.words():
            hint = f"`rvm.{e.id}`"
        self.refuse(
            "A005",
            f"nothing here is called `{e.id}`",
            e,
            hint or f"known here: {here}; `with rvm.ancilla(0.0) as {e.id}:` makes a place",
        )

    def _no_value(self, e: ast.expr) -> NoReturn:
        """Refuse an object from outside as a value."""
        at: Any = e.value if isinstance(e, ast.Subscript) else e
        found = self.outer(at)
        text = ast.unparse(at)
        if found is MISSING:
            root = at
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and self.outer(root) is MISSING:
                self.local(root)
            whole = self.outer(root) if isinstance(root, ast.Name) else MISSING
            if isinstance(whole, GenericFunction) and isinstance(at, ast.Attribute):
                what = f"the method `{at.attr}` is not read"
                self.refuse(UNREAD, what, e, INSTEAD.get(at.attr, ""))
            if hasattr(whole, "__dict__") and not isinstance(whole, (ModuleType, type)):
                what = f"`{text}` is a part of {_kind(whole)} from outside, which may change"
                hint = "make it a parameter, or a name of the module or of a class"
                self.refuse(OUTSIDE, what, e, hint)
            near = did_you_mean(at.attr, dir(whole)) if isinstance(at, ast.Attribute) else ""
            self.refuse("A005", f"nothing is called `{text}`", e, near)
        if isinstance(found, _MUTABLE):
            self.refuse(
                OUTSIDE,
                f"`{text}` is {_kind(found)} from outside, which may change",
                e,
                "make it a parameter; a tuple of numbers is a constant",
            )
        if isinstance(found, tuple):
            self.refuse(
                OUTSIDE,
                f"`{text}` is a tuple from outside, which is indexed by constants alone",
                e,
                f"make it a parameter, an array; `{text}[0]` is a constant",
            )
        if isinstance(found, GenericFunction):
            self.refuse(
                OUTSIDE, f"`{text}` is a function, not a number", e, f"`{text}(…)` calls it"
            )
        if callable(found) or isinstance(found, ModuleType):
            self.refuse(OUTSIDE, f"`{text}` is not a number", e)
        hint = "make it a parameter"
        self.refuse(OUTSIDE, f"`{text}` is not a number, but {_kind(found)}", e, hint)


def _kind(value: object) -> str:
    name = "array" if isinstance(value, np.ndarray) else type(value).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"
