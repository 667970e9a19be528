"""The operations of a traced function as lets: each is a typed term with a name."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path

from rvm_asm.messages import Reporter
from rvm_asm.source import SourceMap

import rvm.library
from rvm.faults import AssemblyError, UsageError, Where
from rvm_pure.terms import Lam, Let, Names, Pattern, Term, Tup, Var
from rvm_pure.types import Product, Type
from rvm_pure.typing import Typer

ACTIVE: ContextVar[Recorder | None] = ContextVar("trace", default=None)
"""The trace of the function that is run."""

_OURS = (Path(__file__).parent, Path(rvm.library.__file__).parent)


def refused(message: str, hint: str = "") -> UsageError:
    """The error (U060) at the caller's line that something cannot be traced."""
    return UsageError("U060", message, where=caller(), hint=hint)


def caller() -> Where:
    """The line of Python that is being traced."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        file = Path(frame.f_code.co_filename)
        if not any(f in file.parents for f in _OURS) and "numpy" not in file.parts:
            break
        frame = frame.f_back
    return line_of(frame.f_code.co_filename, frame.f_lineno)


def line_of(name: str, line: int) -> Where:
    """A line of a file of Python."""
    text = linecache.getline(name, line).rstrip("\n")
    first = len(text) - len(text.lstrip())
    return Where(name, line, first + 1, len(text) + 1, text or None)


class Recorder:
    """The lets of a trace, those of functions inside of it in blocks of their own."""

    def __init__(self, env: dict[str, Type]) -> None:
        self.env = env
        self.names = Names(env)
        self.lets: list[tuple[str, Term]] = []

    def typed(self, e: Term, want: Type | None = None) -> Term:
        """A term with its type; what is wrong with it is an error at the caller's line."""
        try:
            report = Reporter(SourceMap())
            report.sources.add("", "")
            typer = Typer((), report)
            try:
                return typer.term(e, self.env, want)
            except Exception:
                report.raise_if_failed()
                raise
        except AssemblyError as error:
            first = error.diagnostics[0]
            hint = first.hint
            if not hint and "arrays of one length" in first.message:
                hint = "lengths that agree are one name, or one number, in the types of parameters"
            raise refused(first.message, hint) from None

    def named(self, e: Term) -> Term:
        """The term's value by a name, which it has in the result."""
        done = self.typed(e)
        if isinstance(done, Var):
            return done
        name = self.names.new("v1")
        assert done.type is not None
        self.env[name] = done.type
        self.lets.append((name, done))
        return Var(name, type=done.type)

    def block(self, made: Callable[[], Term]) -> Term:
        """The result of a function, after the lets that it needs."""
        outer, self.lets = self.lets, []
        try:
            body = made()
            for name, value in reversed(self.lets):
                body = Let(name, value, body)
        finally:
            self.lets = outer
        return body

    def parameter(self, stem: str, t: Type) -> tuple[Pattern, Term]:
        """A pattern for a parameter of a type, and the value that it stands for."""
        if isinstance(t, Product):
            found = [self.parameter(stem, item) for item in t.items]
            return tuple(p for p, _ in found), Tup(tuple(v for _, v in found), type=t)
        name = self.names.new(stem)
        self.env[name] = t
        return name, Var(name, type=t)

    def function(self, types: Sequence[Type], body: Callable[..., Term]) -> Lam:
        """A traced function of values of some types."""
        params = [self.parameter("x1", t) for t in types]
        made = self.block(lambda: body(*(v for _, v in params)))
        return Lam(tuple(p for p, _ in params), made)
