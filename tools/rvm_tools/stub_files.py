"""The files of `rvm stubs`, written and compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import rich_click as click
from click.exceptions import Exit

from rvm.faults import UsageError
from rvm_tools.programs import load_program, written
from rvm_tools.stubs import is_ours, stub_path, stub_text


def write_stubs(files: Sequence[str]) -> None:
    """Write the stubs of all files, if all can be made."""
    texts = {path: stub_text(load_program(file), Path(file).name) for file, path in _paths(files)}
    for path in texts:
        if not is_ours(path):
            raise UsageError(
                "U012",
                f"{path} was not written by `rvm stubs`, and is left as it is",
                hint="move it away, or delete it",
            )
    for path, text in texts.items():
        with written(str(path)) as out:
            out.write(text.encode())
        click.echo(f"wrote {path}")


def check_stubs(files: Sequence[str]) -> None:
    """Report which stubs are missing or out of date, and exit with 1 if there are any."""
    stale = False
    for file, path in _paths(files):
        text = stub_text(load_program(file), Path(file).name)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale = True
            state = "is out of date" if path.is_file() else "is missing"
            click.echo(f"{path} {state}: run `rvm stubs {file}`", err=True)
    if stale:
        raise Exit(1)


def _paths(files: Sequence[str]) -> list[tuple[str, Path]]:
    return [(file, stub_path(file)) for file in files]
