"""Where a function stands: its file's text, read once, and its definition there."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from pathlib import Path
from types import CodeType, FunctionType

import rvm
from rvm.faults import AssemblyError, Diagnostic, UsageError, Where
from rvm_python.changes import statements
from rvm_python.typed import typed


class SourceText:
    """The text of a file, or of a cell of a notebook, and its definitions by their first line."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.definitions: dict[int, list[ast.FunctionDef]] = {}
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as error:
            at = int(getattr(error, "lineno", None) or 1)
            column = int(getattr(error, "offset", None) or 1)
            where = Where(name, at, column, column + 1, self._lines[at - 1])
            message = f"this is not Python: {getattr(error, 'msg', error)}"
            raise AssemblyError([Diagnostic("A091", message, where)]) from None
        for node in statements(tree.body):
            if isinstance(node, ast.FunctionDef):
                first = min((d.lineno for d in node.decorator_list), default=node.lineno)
                self.definitions.setdefault(first, []).append(node)

    def offset(self, line: int, column: int) -> int:
        """The place of a line and a column, which the parser counts in bytes of UTF-8."""
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + column

    def head(self, node: ast.FunctionDef) -> tuple[int, int]:
        """Where `def name` stands."""
        start = self.offset(node.lineno, node.col_offset)
        found = _HEAD.match(self.text, start)
        return start, found.end() if found else start + 3


_HEAD = re.compile(r"def\s+\w+")


@lru_cache(maxsize=64)
def _read(name: str, text: str) -> SourceText:
    return SourceText(name, text)


def definition(function: FunctionType) -> tuple[SourceText, ast.FunctionDef]:
    """A function's text and its definition; UsageError U048 where there is none to be read."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    text = "".join(lines) or typed(code)
    if not text:
        raise UsageError(
            "U048",
            f"the source of `{function.__name__}` can't be read: {code.co_filename} is not a file",
            hint="put it in a file or a notebook, or give the text: rvm.reversible.source(text)",
        )
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    source = _read(code.co_filename, text)
    for node in source.definitions.get(code.co_firstlineno, ()):
        if node.name == function.__name__ and _is_of(node, code):
            _check_unchanged(function, source)
            return source, node
    if code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        raise UsageError(
            "U048",
            f"`{function.__name__}` is a coroutine, and no function that runs there and back",
            hint=f"`def {function.__name__}(…):`, without `async` and `await`",
        )
    if function.__name__ == "<lambda>":
        raise UsageError(
            "U048",
            "a lambda has no statements, and so changes nothing",
            hint="write it as `def f(…):`",
        )
    raise UsageError(
        "U048",
        f"`{function.__name__}` is not in line {code.co_firstlineno} of "
        f"{code.co_filename}, as it did when it was imported",
        hint="the file has changed since: import it again",
    )


def takes_functions(function: FunctionType) -> bool:
    """Whether a function calls one of its parameters, which then is a function itself."""
    _, node = definition(function)
    a = node.args
    names = {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
    called = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    plain = (f.operand if isinstance(f, ast.UnaryOp) else f for f in called)
    return any(isinstance(f, ast.Name) and f.id in names for f in plain)


def _is_of(node: ast.FunctionDef, code: CodeType) -> bool:
    a = node.args
    names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return tuple(names) == code.co_varnames[: len(names)]


def _check_unchanged(function: FunctionType, source: SourceText) -> None:
    """UsageError U048 if a file that was written since the start has another function now."""
    code = function.__code__
    try:
        if Path(code.co_filename).stat().st_mtime_ns <= rvm.BEGAN:
            return
        now = compile(source.text, code.co_filename, "exec", dont_inherit=True)
    except (OSError, ValueError, SyntaxError):
        return
    same = [
        c for c in _codes(now) if c.co_name == code.co_name and c.co_varnames == code.co_varnames
    ]
    if not same:
        raise UsageError(
            "U048",
            f"`{function.__name__}` is another function in {code.co_filename} by now",
            hint="import the file again",
        )


def _codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _codes(const)
