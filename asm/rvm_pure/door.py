"""`rvm.pure`: a NumPy function, traced, as a pure function of the machine."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

from rvm_asm.cursor import Bad
from rvm_asm.lexer import END, NEWLINE
from rvm_asm.nodes import Word
from rvm_asm.program import Declarations

from rvm.codes.words import described
from rvm.faults import UsageError
from rvm.types import I64
from rvm_pure.combinators import folded, iota, loop, mapped, replicate, update, where
from rvm_pure.deep import deep
from rvm_pure.definition import Definition, Param
from rvm_pure.functions import PureFunction, keep
from rvm_pure.keeping import Keep
from rvm_pure.lexer import lex
from rvm_pure.reader import TextParser
from rvm_pure.recorder import caller, file_of
from rvm_pure.simplify import typed as with_types
from rvm_pure.tracing import traced
from rvm_pure.types import Product, Type
from rvm_pure.typing import lengths_of

WORDS: dict[str, Callable[..., Any]] = {
    "loop": loop,
    "map": mapped,
    "reduce": folded("foldl"),
    "scan": folded("scanl"),
    "where": where,
    "iota": iota,
    "replicate": replicate,
    "update": update,
}
"""Functions for control flow in traces, by their names as attributes of `rvm.pure`."""


@deep
def pure(f: Callable[..., Any], types: Mapping[str, Any]) -> PureFunction:
    """A function of values of the named types, `f64["n"]` or `"f64[n]"`; run once, on these.

    Types that are not named are those of the annotations.  What names no parameter may be a
    budget for the states of loops, as `keeping` takes it.  UsageError U060 at the line of what
    cannot be traced.
    """
    if not isinstance(f, FunctionType):
        what = f"a function in Python is traced, not {described(f)}"
        raise UsageError("U060", what, where=caller(), hint="`lambda x: np.sin(x)`, or `def f(x):`")
    names = list(inspect.signature(f).parameters)
    for p in inspect.signature(f).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            what = f"`{f.__name__}` takes `*{p.name}`, and a traced function has named parameters"
            raise UsageError("U060", what, where=caller(), hint="a tuple is one parameter")
    words = [n for n in types if n not in names and n in Keep.__dataclass_fields__]
    kept = keep(**{n: types[n] for n in words})
    given = {n: v for n, v in types.items() if n not in words}
    found = {n: typed(v) for n, v in {**_annotated(f), **given}.items()}
    missing = [n for n in names if n not in found]
    unknown = [n for n in found if n not in names]
    if missing or unknown:
        what = f"`{f.__name__}` has no parameter {_words(unknown)}, it takes {_words(names)}"
        if missing:
            what = f"`{f.__name__}` takes {_words(names)}, and {_words(missing)} has no type"
        hint = f'annotate them, or name them: `rvm.pure(f, {(missing or names)[0]}=rvm.f64["n"])`'
        raise UsageError("U060", what, where=caller(), hint=hint)
    ordered = {n: found[n] for n in names}
    declarations = Declarations()
    code = f.__code__
    file = file_of(declarations.sources, code.co_filename)
    line = min(code.co_firstlineno, len(file.starts))
    while file.line(line).lstrip().startswith("@"):
        line += 1
    start, end = file.starts[line - 1], file.starts[line - 1] + len(file.line(line))
    params = tuple(Param(n, t, start, end) for n, t in ordered.items())
    body = traced(f, params, declarations.sources)
    d = Definition(Word(_name(f), start, end), params, body)
    env = {**ordered, **dict.fromkeys(lengths_of(params), I64)}
    return PureFunction(replace(d, body=with_types(body, env)), declarations, kept)


def _words(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _name(f: Callable[..., Any]) -> str:
    return f.__name__ if f.__name__.isidentifier() else "f"


def _annotated(f: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's annotations."""
    try:
        found = inspect.get_annotations(f, eval_str=True)
    except NameError as error:
        raise UsageError("U060", f"an annotation cannot be read: {error}") from None
    return {n: t for n, t in found.items() if n != "return"}


def typed(v: Any) -> Type:
    """A type as it is given: a word of `rvm`, `rvm.f64["n"]`, a text, a tuple of types, float."""
    if isinstance(v, tuple):
        return Product(tuple(map(typed, v)))
    plain = {float: "f64", int: "i64", bool: "bool", complex: "c128"}
    if isinstance(v, type) and v not in plain:
        what = f"`{v.__name__}` is not a type of a traced parameter"
        hint = 'numbers are `rvm.f64`, arrays `rvm.f64["n"]`'
        raise UsageError("U060", what, where=caller(), hint=hint)
    text = plain[v] if isinstance(v, type) and v in plain else v if isinstance(v, str) else _text(v)
    declarations = Declarations()
    file = declarations.sources.add("<type>", text)
    try:
        tokens = lex(file, declarations.report)
        parser = TextParser(tokens, declarations.report)
        found = parser.type()
        if parser.kinds[parser.i] not in (NEWLINE, END):
            parser.fail("the end of the type")
    except Bad:
        declarations.report.raise_if_failed()
        raise
    declarations.report.raise_if_failed()
    return found


def _text(v: Any) -> str:
    elem, lengths = getattr(v, "elem", None), getattr(v, "lengths", None)
    if lengths is None:
        return str(getattr(v, "name", v))
    if len(lengths) > 1 and any(n == ":" for n in lengths):
        raise UsageError("U060", "every length has a name or is a number")
    return f"{getattr(elem, 'name', elem)}[{', '.join(map(str, lengths))}]"
