"""Options and arguments that several commands share, and the numbers that they take."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Amount(click.ParamType):
    """A whole number, which may be written `1_000_000`, `1e6` or with a unit, `64M`."""

    def __init__(self, name: str, units: dict[str, int]) -> None:
        self.name = name
        self._units = units

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9_]+|[0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?) *([kmgtKMGT]?)", value)
        if found is None:
            self.fail(f"{value!r} is no amount; for example 1000000, 1e6 or 64M", param, ctx)
        text = found[1].replace("_", "")
        number = int(text) if text.isdigit() else float(text)
        return int(number * self._units[found[2].lower()])


STEPS = Amount("n", _UNITS)
BYTES = Amount("bytes", _BINARY)


class FileParam(click.Path):
    """A program's file or `-`; whether it can be read is found out by reading it."""

    name = "file"

    def __init__(self) -> None:
        super().__init__(allow_dash=True)


def file_argument(f: F) -> F:
    """The argument FILE."""
    return click.argument("file", type=FileParam(), metavar="FILE")(f)


def function_option(f: F) -> F:
    """The option -f FUNC."""
    return click.option(
        "-f", "--function", metavar="FUNC", help="The function; by default the program's entry."
    )(f)


def values_argument(f: F) -> F:
    """The arguments NAME=VALUE."""
    return click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")(f)


def _engines(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from rvm.engines import NAMES

    return [CompletionItem(n) for n in NAMES if n.startswith(incomplete)]


def engine_option(f: F) -> F:
    """The option --engine."""
    return click.option(
        "--engine",
        default="auto",
        metavar="NAME",
        shell_complete=_engines,
        help="auto (the default), reference or python.",
    )(f)


def run_options(f: F) -> F:
    """The options of a run: --strict, --tolerance, --max-steps, --max-memory."""
    for option in (
        click.option(
            "--max-memory", type=BYTES, help="End with an error where more memory is needed: 64M."
        ),
        click.option(
            "--max-steps", type=STEPS, help="End with an error after so many steps: 1e6."
        ),
        click.option(
            "--tolerance",
            type=click.FloatRange(min=0),
            default=1e-8,
            metavar="X",
            help="How far a freed float may be from its value (1e-8); 0 demands equality.",
        ),
        click.option(
            "--strict",
            is_flag=True,
            help="Keep what rounding would lose, so that floats too run back bit for bit.",
        ),
    ):
        f = option(f)
    return f
