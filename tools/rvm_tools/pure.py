"""The command `rvm pure`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import rich_click as click
from rvm_pure import PureFunction, functions

from rvm.faults import UsageError
from rvm_tools.programs import read_text

_OTHERS = {
    ".py": "Python",
    ".rasm": "assembly language",
    ".rbc": "bytecode",
    ".ja": "Janus",
    ".janus": "Janus",
}
_INSTEAD = {".py": "in Python, `f.stage(name)` is a stage of a function under `rvm.pure`"}


def show_cost(found: Sequence[PureFunction], wrt: Sequence[str], lengths: str) -> None:
    """Print the accounts of definitions at lengths, `n=100,m=3`."""
    sizes: dict[str, int] = {}
    for part in filter(None, lengths.split(",")):
        name, _, value = part.partition("=")
        if not value.strip().isdigit():
            raise UsageError("U006", f"`{part}` is not a length", hint="--cost n=100,m=3")
        sizes[name.strip()] = int(value)
    known = dict.fromkeys(n for f in found for n in f.sizes)
    for name in sizes:
        if name not in known:
            what = f"`{name}` is no length here, and no whole number"
            raise UsageError("U006", what, hint=f"there are {', '.join(known)}" if known else "")
    for f in found:
        click.echo(f"{f!r}\n{f.cost(wrt, **sizes)}")


def chosen(file: str, function: str | None) -> list[PureFunction]:
    """The definitions of a file, or the one that is named; UsageError U006 if it is not there."""
    suffix = Path(file).suffix
    if suffix in _OTHERS:
        what = f"`rvm pure` reads texts of pure definitions, not {_OTHERS[suffix]}"
        raise UsageError("U006", what, hint=_INSTEAD.get(suffix, ""))
    found = functions(read_text(file), file)
    if function is None:
        return list(found.values())
    if function not in found:
        known = ", ".join(found)
        raise UsageError("U006", f"there is no definition `{function}`", hint=f"there are {known}")
    return [found[function]]
