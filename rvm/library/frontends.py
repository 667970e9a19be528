"""Reading programs: bytecode files here, source texts through registered front ends.

A front end is a function from a path to a Program, registered by file suffix in the entry-point
group `rvm.frontends`; its module has `assemble(text, name)` if it reads texts.  Both take
`includes` and `include_path`. `LINE` is a pattern of lines that occur only in its texts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict, Unpack

from rvm.codes.words import described, instead
from rvm.faults import AssemblyError, BytecodeError, UsageError, Where
from rvm.host.read import DATA, read_bytes, read_stream
from rvm.host.signals import asked
from rvm.library.handle import Library
from rvm.program import AnyProgram, Program

GROUP = "rvm.frontends"


class ReadingOptions(TypedDict, total=False):
    """The options of the included front ends; each takes some of them."""

    expand: bool
    dialect: str
    width: int


def front_end(path: str | Path) -> ModuleType | None:
    """The module that reads files with the path's suffix; None for bytecode or an unknown one."""
    point = front_ends().get(Path(path).suffix.lstrip("."))
    return None if point is None else import_module(point.module)


def needed(suffix: str, what: str) -> Any:
    """The front end for a suffix; UsageError U006 if none is installed that reads `what`."""
    found = front_end(f"a.{suffix}")
    if found is None:
        raise UsageError("U006", f"no front end reads {what}")
    return found


def front_ends() -> Mapping[str, EntryPoint]:
    """The installed front ends, by the suffixes of their files."""
    return _installed(tuple(sys.path))


@lru_cache(maxsize=1)
def _installed(folders: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """The front ends in the folders that are searched for modules."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _front_end(path: Path) -> EntryPoint:
    """The entry point for files with the path's suffix; UsageError U006 if there is none."""
    points = front_ends()
    suffix = path.suffix.lstrip(".")
    if suffix in points:
        return points[suffix]
    known = sorted({*(f".{name}" for name in points), ".rbc"})
    hint = f"known suffixes: {', '.join(known)}"
    message = f"no front end reads `{path.suffix}` files"
    if path.is_dir():
        message = f"{path} is a folder, not a file"
    elif not suffix:
        message = f"{path} has no suffix to show how it should be read"
        if path.name:
            there = [f"`{path}{end}`" for end in known if Path(f"{path}{end}").is_file()]
            hint = f"did you mean {' or '.join(there)}?" if there else hint
    raise UsageError("U006", message, hint=hint)


def check_suffix(path: Path) -> None:
    """Raise UsageError U006 if a text looks like that of another front end."""
    text = read_bytes(path, DATA).decode(errors="replace")
    like: dict[str, str] = {}
    for point in front_ends().values():
        line = getattr(import_module(point.module), "LINE", None)
        if line is not None and re.search(line, text, re.M):
            like.setdefault(point.module, f".{point.name}")
    if len(like) == 1 and _front_end(path).module not in like:
        [suffix] = like.values()
        raise UsageError(
            "U006",
            f"{path} reads like a `{suffix}` file, not like a `{path.suffix}` one",
            hint="the suffix says how a file is read",
        )


@asked
def load(
    path: str | Path,
    *,
    includes: str = "any",
    include_path: str | Path | Sequence[str | Path] = (),
    **options: Unpack[ReadingOptions],
) -> Library:
    """Read and verify the program in a file; `-` is standard input.

    The suffix gives the format: `.rbc` is bytecode, others belong to front ends.  `includes` says
    which files a text may include: "any", those "below" its folder and the folders of
    `include_path`, or "none"; `options` are those of the front end.  OSError if the file cannot be
    read; AssemblyError, BytecodeError or VerifyError if its contents are invalid.
    """
    if not isinstance(path, (str, PathLike)):
        hint = "`rvm.assemble(text)` reads a text"
        raise UsageError("U006", f"a file has a path, not {described(path)}", hint=hint)
    if str(path) == "-":
        return loads(
            read_stream(sys.stdin.buffer), "<stdin>", includes=includes, include_path=include_path
        )
    path = Path(path)
    if path.suffix == ".rbc":
        return Library(_decoded(read_bytes(path, DATA), str(path)))
    front: Callable[..., AnyProgram] = _front_end(path).load()
    for name in options:
        if name not in signature(front).parameters:
            hint = instead(name, ("includes", "include_path", *signature(front).parameters), "")
            message = f"`{path.suffix}` files are read without an option `{name}`"
            raise UsageError("U006", message, hint=hint)
    try:
        return Library(front(path, includes=includes, include_path=include_path, **options))
    except (AssemblyError, SyntaxError):
        check_suffix(path)
        raise


@asked
def loads(
    data: bytes,
    name: str,
    *,
    includes: str = "none",
    include_path: str | Path | Sequence[str | Path] = (),
) -> Library:
    """Read and verify a program in bytes: bytecode, or else an assembly text."""
    from rvm.codec import MAGIC

    if not data.startswith(MAGIC):
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError("U006", f"{name} is neither bytecode nor a UTF-8 text") from None
        return assemble(text, name, includes=includes, include_path=include_path)
    return Library(_decoded(data, name))


def _decoded(data: bytes, name: str) -> Program:
    from rvm.codec import decode
    from rvm.verify import verify

    try:
        program = decode(data)
    except BytecodeError as error:
        if error.where == Where():
            error.where = Where(name)
        raise
    verify(program)
    return program


@asked
def assemble(
    text: str,
    name: str = "<text>",
    *,
    includes: str = "none",
    include_path: str | Path | Sequence[str | Path] = (),
) -> Library:
    """Assemble a text; AssemblyError lists all of its errors.

    By default a text may include no files; `includes="below"` allows those in the folders of
    `include_path`, `"any"` every file.
    """
    if not isinstance(text, str):
        hint = "`rvm.load(path)` reads a file"
        raise UsageError("U006", f"a program is a text, not {described(text)}", hint=hint)
    point = _front_end(Path("a.rasm"))
    front = import_module(point.module).assemble
    return Library(front(text, name, includes=includes, include_path=include_path))
