"""Stubs of programs: `.pyi` texts that describe functions, parameters and results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rvm.faults import UsageError
from rvm.library.description import documentation
from rvm.library.import_hook import importable
from rvm.program import Function, Layout, Program, Record
from rvm.run.binding import start_of
from rvm.types import SCALARS, Array, Scalar, Stack, elem_of

MARK = "# Written by `rvm stubs`"
"""The beginning of a stub; files without it are not overwritten."""
_OPTIONS = "**options: Unpack[RunOptions]"
_NARROW = "  # type: ignore[override]"
"""A stub's function takes its own names only, where the class that it overrides takes any."""
_TYPED = "rvm.library.typed"


class _Python(NamedTuple):
    """A kind of numbers in Python: the types accepted, and the type returned."""

    taken: str
    given: str


_KINDS = {
    "bool": _Python("Bool", "bool"),
    "integer": _Python("Int", "int"),
    "float": _Python("Real", "float"),
    "complex": _Python("Complex", "complex"),
    "fixed": _Python("FixedLike", "Fixed"),
    "log": _Python("LogLike", "LogNumber"),
}
_ANY = _Python("Any", "Any")
"""Numbers of a user's own."""


def stub_path(file: str) -> Path:
    """The path of a file's stub, beside it. UsageError U006 if it can't be imported."""
    path = Path(file)
    if path.suffix == ".py":
        raise UsageError(
            "U006",
            f"{file} is a Python module, which type checkers read themselves",
            hint="stubs are for programs in other languages",
        )
    if not path.stem.isidentifier() or iskeyword(path.stem):
        raise UsageError(
            "U006",
            f"`{path.stem}` can't be imported: that is not a name in Python",
            hint=f"call the file {re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}{path.suffix}",
        )
    return path.with_suffix(".pyi")


def stub_text(program: Program, name: str) -> str:
    """The stub of a program from a file of that name."""
    generics = program.generics
    parts: list[str] = []
    for function in program.functions:
        if importable(function.name):
            parts.append(_function(program, function))
    for generic in generics.names if generics is not None else ():
        if generics is not None and importable(generic) and generic not in program:
            parts.append(_generic(program, generic, generics.parameters(generic)))
    return f"{_head(name, parts)}\n\n" + "\n\n".join(parts)


def _head(name: str, parts: list[str]) -> str:
    from rvm.library import typed

    body = "\n".join(parts)

    def used(word: str) -> bool:
        return re.search(rf"(?<![\w.\"]){word}\b", body) is not None

    typing = [n for n in ("Any", "Unpack", "overload") if used(n)]
    lines = [f"{MARK} for {name}; with --check it says whether this is out of date."]
    lines.append(f"from typing import {', '.join(typing)}")
    if used("np"):
        lines += ["", "import numpy as np"]
    if used("NDArray"):
        lines.append("from numpy.typing import NDArray")
    lines.append(
        "\n" * (not used("np"))
        + f"from {_TYPED} import (\n"
        + "".join(f"    {n},\n" for n in typed.__all__ if n != "Unpack" and used(n))
        + ")"
    )
    return "\n".join(lines) + "\n"


def _function(program: Program, function: Function) -> str:
    name = function.name
    names = [p.name for p in function.params]
    if not all(map(importable, names)) or not _free(names, name):
        return f"{name}: FunctionHandle\n"
    optional: list[bool] = []
    taken: list[tuple[str, str]] = []
    for p in function.params:
        kind = _taken(function, p.layout)
        taken.append((p.name, kind))
        optional.append(start_of(function, p) is not None)
    results = [line for p in function.params for line in _given(function, p.name, p.layout)]
    slopes = [line for p in function.params for line in _given(function, p.name, p.layout, True)]
    return _class("FunctionHandle", program, name, taken, _heads(taken, optional), results, slopes)


def _heads(taken: list[tuple[str, str]], optional: list[bool]) -> list[list[str]]:
    """The parameter lists of a call, for every way in which it may be made.

    A required parameter may follow an optional one, which Python does not allow. Then either all
    are given, or it is given by name.
    """
    needed = [k for k, free in enumerate(optional) if not free]
    first = optional.index(True) if True in optional else len(optional)
    formals = [f"{n}: {t}" + " = ..." * o for (n, t), o in zip(taken, optional, strict=True)]
    if not needed or needed[-1] < first:
        return [formals]
    last = needed[-1]
    whole = [f"{n}: {t}" for n, t in taken[: last + 1]] + formals[last + 1 :]
    behind = next(k for k in needed if k > first)
    return [whole, [*formals[:behind], "*", *formals[behind:]]]


def _generic(program: Program, name: str, parameters: tuple[str, ...]) -> str:
    if not all(map(importable, parameters)) or not _free(list(parameters), name):
        return f"{name}: FunctionHandle\n"
    values = [f"{p}: Any" for p in parameters]
    taken = [(p, "Argument") for p in parameters]
    heads = [[f"{p}: Argument = ..." for p in parameters]]
    return _class("GenericFunction[...]", program, name, taken, heads, values, values)


def _free(names: list[str], function: str) -> bool:
    """Whether names of parameters have no other meaning in a stub."""
    from rvm.library import typed

    own = {"self", "loss", "wrt", "given", "error", "info", "np", "NDArray", "Any", "overload"}
    own |= {*typed.__all__, *typed.MapOptions.__annotations__, *dir(dict), "object", "memoryview"}
    own |= {given for _, given in _KINDS.values()} | {"list", "tuple", "Inputs"}
    return own.isdisjoint([*names, function])


def _class(
    base: str,
    program: Program,
    name: str,
    taken: list[tuple[str, str]],
    heads: list[list[str]],
    results: list[str],
    slopes: list[str],
) -> str:
    own = f"_{name}"
    said = documentation(program.sources, name).replace("\\", "\\\\").replace('"""', "'''").strip()
    lines = [f"class {own}({base}):"]
    if said:
        first, *others = said.splitlines()
        lines += [f'    """{first}', *(f"    {line}".rstrip() for line in others)]
        lines[-1] += ' """' if lines[-1].endswith('"') else '"""'
        lines.append("")
    lines += ["    class Given(RunOptions, total=False):"]
    lines += [f"        {n}: {t}" for n, t in taken] or ["        pass"]
    for title, fields in (("Result", results), ("Gradient", slopes)):
        lines += ["", f"    class {title}(Values):"]
        lines += [f"        {line}" for line in fields] or ["        pass"]
    lanes = ", ".join(["self", *["/"] * bool(taken), *(f"{n}: Argument = ..." for n, _ in taken)])
    given, wrt = "given: Inputs | None = None, /", "wrt: Collection[str] | None = None"
    loss, slope = f"*, loss: str, {wrt}", f"{own}.Gradient"
    inputs = f"**inputs: Unpack[{own}.Given]"
    mapped = f"**inputs: Unpack[{own}.Lanes]"
    derivatives = (
        ("grad", f"{given}, {loss}", slope),
        ("value_and_grad", f"{given}, {loss}", f"tuple[float, {slope}]"),
        ("vjp", f"seeds: Inputs, {given}, *, {wrt}", slope),
        ("jvp", f"tangents: Inputs, {given}", f"tuple[{own}.Result, {slope}]"),
        ("jacobian", f"{given}, *, of: Collection[str] | None = None, {wrt}", "Matrix"),
        ("hessian", f"{given}, {loss}, method: str = ...", "Matrix"),
        ("hvp", f"tangents: Inputs, {given}, *, loss: str", slope),
    )
    lines += [
        "",
        "    class Lanes(MapOptions, total=False):",
        *([f"        {n}: Argument" for n, _ in taken] or ["        pass"]),
        "",
        "    class Map(LaneMap):",
        f"        def __call__({lanes}, **options: Unpack[MapOptions]) -> LaneResult: ...",
        f"        def grad(self, {loss}, {mapped}) -> LaneResult: ...{_NARROW}",
        f"        def value_and_grad(self, {loss}, {mapped})"
        f" -> tuple[Losses, LaneResult]: ...{_NARROW}",
        "",
        "    @overload",
        f"    def __call__(self, result: Values, /, {_OPTIONS}) -> {own}.Result: ...",
        *_called("__call__", heads, f"{own}.Result", overloaded=True),
        f"    def __invert__(self) -> {own}: ...",
        f"    def with_options(self, {_OPTIONS}) -> {own}: ...{_NARROW}",
        *_called("machine", heads, "Machine", overloaded=len(heads) > 1),
        *_called("pullback", heads, "Pullback", overloaded=len(heads) > 1),
        "    @property",
        f"    def map(self) -> {own}.Map: ...",
        *(
            f"    def {method}(self, {head}, {inputs}) -> {gives}: ...{_NARROW}"
            for method, head, gives in derivatives
        ),
        "",
        f"{name}: {own}",
        "",
    ]
    return "\n".join(lines)


def _called(name: str, heads: list[list[str]], gives: str, *, overloaded: bool) -> list[str]:
    """A method that takes a call's arguments, for each way to give them."""
    lines: list[str] = []
    for formals in heads:
        lines += ["    @overload"] * overloaded
        own = ", ".join(["self", *(["/", *formals] if formals else []), _OPTIONS])
        lines.append(f"    def {name}({own}) -> {gives}: ...")
    return lines


def _python(t: Scalar) -> _Python:
    return _KINDS.get(t.row.kind, _ANY)


def _array(t: Scalar) -> str:
    kind = np.dtype(t.row.dtype).name if t.row.kind in _KINDS else ""
    return f"NDArray[np.{kind}{'_' * (kind == 'bool')}]" if kind else "NDArray[Any]"


def _taken(function: Function, layout: Layout) -> str:
    """The type accepted for a parameter; for a record any object with these attributes."""
    if isinstance(layout, Record):
        return "object"
    match function.registers[layout].type:
        case Array(elem, rank):
            return "Bytes" if elem.name == "u8" and rank == 1 else f"{_array(elem)} | memoryview"
        case Stack(elem):
            arrays = "Bytes" if elem.name == "u8" else f"{_array(elem)} | memoryview"
            item = "Any" if function.registers[layout].shape else _python(elem).given
            return f"list[{item}] | {arrays}"
        case t:
            return _python(t).taken


def _given(function: Function, name: str, layout: Layout, slope: bool = False) -> Iterator[str]:
    """The lines for a name of a result, or of a gradient if it has a derivative."""
    if isinstance(layout, Record):
        fields = [f for n, x in layout.fields for f in _given(function, n, x, slope)]
        if fields or not slope:
            yield f"class {name}_(Values):"
            yield from (f"    {field}" for field in fields)
            yield f"{name}: {name}_"
        return
    t = function.registers[layout].type
    elem = elem_of(t)
    if slope:
        if not elem.row.derivative:
            return
        elem = SCALARS[elem.row.derivative]
    if isinstance(t, Array):
        # A caller's own buffer comes back as what it was given as.
        yield f"{name}: {'Any' if elem.name == 'u8' and t.rank == 1 else _array(elem)}"
    elif isinstance(t, Stack):
        item = _array(elem) if function.registers[layout].shape else _python(elem).given
        yield f"{name}: {'Any' if slope else f'list[{item}]'}"
    else:
        yield f"{name}: {_python(elem).given}"


def is_ours(path: Path) -> bool:
    """Whether a stub may be written: it is not there, or was written here."""
    return not path.exists() or path.read_text(encoding="utf-8").startswith(MARK)


__all__ = ["is_ours", "stub_path", "stub_text"]
