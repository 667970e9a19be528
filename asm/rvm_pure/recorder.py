"""The operations of a traced function as lets: each is a typed term with a name."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rvm_asm.messages import Reporter
from rvm_asm.source import SourceFile, SourceMap

import rvm.library
from rvm.faults import AssemblyError, UsageError, Where
from rvm_pure.terms import Lam, Let, Names, Pattern, Term, Tup, Var, rebuild
from rvm_pure.types import Product, Type
from rvm_pure.typing import Typer

MOST = 300
"""The most operations of a traced function: derivatives of so many take some ten seconds."""
ACTIVE: ContextVar[Recorder | None] = ContextVar("trace", default=None)
"""The trace of the function that is run."""

_PASSED = tuple(f"{Path(f).parent}{os.sep}" for f in (__file__, rvm.library.__file__, np.__file__))
"""The folders of code that a traced function calls, whose lines are not its own."""


def refused(message: str, hint: str = "") -> UsageError:
    """The error (U060) at the caller's expression that something cannot be traced."""
    return UsageError("U060", message, where=caller(), hint=hint)


def caller() -> Where:
    """The expression of Python that is being traced."""
    frame = _traced_frame()
    code, at = frame.f_code, frame.f_lasti // 2
    line, last, start, end = next(islice(code.co_positions(), at, None), (None,) * 4)
    whole = line_of(code.co_filename, frame.f_lineno)
    if whole.text is None or line != frame.f_lineno or start is None or end is None:
        return whole
    # Columns are counted in bytes of UTF-8.
    bytes_ = whole.text.encode()
    first = len(bytes_[:start].decode(errors="ignore")) + 1
    stop = len(bytes_[:end].decode(errors="ignore")) + 1 if last == line else whole.end
    return replace(whole, column=first, end=stop)


def _traced_frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        frame = frame.f_back
    return frame


def line_of(name: str, line: int) -> Where:
    """A line of a file of Python."""
    text = linecache.getline(name, line).rstrip("\n")
    first = len(text) - len(text.lstrip())
    return Where(name, line, first + 1, len(text) + 1, text or None)


def file_of(sources: SourceMap, name: str) -> SourceFile:
    """A file of Python among the sources of a program."""
    for file in sources.files:
        if file.name == name:
            return file
    return sources.add(name, "".join(linecache.getlines(name)).replace("\r\n", "\n"))


class Recorder:
    """The lets of a trace, those of functions inside of it in blocks of their own."""

    def __init__(self, env: dict[str, Type], sources: SourceMap) -> None:
        self.env = env
        self.sources = sources
        self.names = Names(env)
        self.lets: list[tuple[str, Term]] = []
        self.blocks = 0
        """How many functions the trace is inside of, the traced one included."""
        self.constants: list[tuple[str, Term]] = []
        """The lets of arrays from outside that functions inside of it use, before all others."""
        self._known: dict[tuple[str, tuple[int, ...], bytes], Term] = {}
        self.count = 0
        """The operations so far."""

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
        self.count += 1
        if self.count > MOST:
            what = f"the function has more than {MOST} operations"
            how = "a loop of Python is traced round by round; `rvm.pure.loop(n, body, init)` is one"
            raise refused(what, how)
        name = self.names.new("v1")
        assert done.type is not None
        self.env[name] = done.type
        start, end = self._here()

        def placed(x: Term) -> Term:
            if isinstance(x, Var):  # the place of its use, not of its value
                return replace(x, start=start, end=end)
            return x if x.end else replace(rebuild(x, placed), start=start, end=end)

        self.lets.append((name, placed(done)))
        return Var(name, type=done.type, start=start, end=end)

    def constant(self, v: NDArray[Any], written: Callable[[], Term]) -> Term:
        """An array from outside, as it is `written`; in a function inside of the trace by a name.

        So a loop does not make it in every round.
        """
        if self.blocks < 2:
            return written()
        key = v.dtype.str, v.shape, v.tobytes()
        if key not in self._known:
            here, self.lets = self.lets, self.constants
            try:
                self._known[key] = self.named(written())
            finally:
                self.lets = here
        return self._known[key]

    def _here(self) -> tuple[int, int]:
        """The positions of the expression that is being traced."""
        where = caller()
        starts = file_of(self.sources, where.source).starts
        if where.line > len(starts):  # a text that cannot be read
            return 0, 0
        return starts[where.line - 1] + where.column - 1, starts[where.line - 1] + where.end - 1

    def block(self, made: Callable[[], Term]) -> Term:
        """The result of a function, after the lets that it needs."""
        outer, self.lets = self.lets, []
        self.blocks += 1
        try:
            body = made()
            first = self.constants if self.blocks == 1 else []
            for name, value in reversed([*first, *self.lets]):
                body = Let(name, value, body, start=value.start, end=value.end)
        finally:
            self.lets = outer
            self.blocks -= 1
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
