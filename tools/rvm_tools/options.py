"""Options and arguments that several commands share, and the numbers that they take."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click
from click.shell_completion import CompletionItem

from rvm.codes.words import meant

F = TypeVar("F", bound=Callable[..., Any])


MAX_SHOWN = 40
"""The number of characters of wrong input that are shown."""


class OneOf(click.Choice[str]):
    """A choice among words; the message for a misspelt one suggests the probable word."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        near = meant(value, self.choices)
        hint = f" Did you mean {near!r}?" if near else ""
        return f"{super().get_invalid_choice_message(value, ctx)}{hint}"


def _amount(units: dict[str, int]) -> Callable[[str], int]:
    """Reads a whole number, which may be written `1_000_000`, `1e6` or with a unit, `64M`."""
    words = "|".join(sorted(units, key=len, reverse=True))

    def convert(value: str | int) -> int:
        if isinstance(value, int):
            return value
        number = r"([0-9_]+|[0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?)"
        found = re.fullmatch(rf"{number} *({words})", value, re.IGNORECASE)
        if found is None:
            raise _no_amount(value)
        text = found[1].replace("_", "")
        try:
            read = int(text) if text.isdigit() else float(text)
            return int(read * units[found[2].lower()])
        except (ValueError, OverflowError):  # too many digits, or infinite
            raise _no_amount(value) from None

    return convert


def _no_amount(value: str) -> click.BadParameter:
    shown = value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}…"
    return click.BadParameter(f"{shown!r} is not an amount; for example 1000000, 1e6 or 64M.")


STEPS = _amount({"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12})
BYTES = _amount(
    {
        "": 1,
        "b": 1,
        **{f"{unit}{b}": 1 << 10 * k for k, unit in enumerate("kmgt", 1) for b in ("", "ib")},
        **{f"{unit}b": 1000**k for k, unit in enumerate("kmgt", 1)},
    }
)
"""`64M` and `64MiB` are 64 * 2^20, `64MB` are 64 million."""


def quarter_of_memory() -> int | None:
    """A quarter of the computer's memory in bytes, if known.

    The machine counts a little more than it takes, so endless recursion reaches its limit before
    that of the computer.
    """
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, OSError, ValueError):
        return None


_INCLUDES = "rvm_tools.includes"
"""The key in a command's context for the files that its program may include."""


def _keep_includes(ctx: click.Context, param: click.Parameter, value: str) -> None:
    ctx.meta[_INCLUDES] = value


def allowed_includes() -> str:
    """The files that the program of this command may include."""
    ctx = click.get_current_context(silent=True)
    return "any" if ctx is None else str(ctx.meta.get(_INCLUDES, "any"))


def includes_option(f: F) -> F:
    """The option --includes."""
    return click.option(
        "--includes",
        type=OneOf(["any", "below", "none"]),
        default="any",
        expose_value=False,
        callback=_keep_includes,
        help="Which files FILE may include: any (the default), those below its folder, or none.",
    )(f)


_READING = "rvm_tools.reading"
"""The key in a command's context for the options of reading its program."""


def _keep_reading(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None:
        assert param.name is not None
        ctx.meta.setdefault(_READING, {})[param.name] = value


def reading_options() -> dict[str, Any]:
    """The options of reading this command's program, for the front end."""
    ctx = click.get_current_context(silent=True)
    return {} if ctx is None else dict(ctx.meta.get(_READING, {}))


def _janus_options(f: F) -> F:
    f = click.option(
        "--width",
        type=OneOf(["32", "64"]),
        expose_value=False,
        callback=lambda ctx, param, value: _keep_reading(ctx, param, value and int(value)),
        help="The width of an `int` in a Janus program, in bits (32).",
    )(f)
    return click.option(
        "--dialect",
        type=OneOf(["jana", "classic"]),
        expose_value=False,
        callback=_keep_reading,
        help="The dialect of a Janus program; recognised from the text by default.",
    )(f)


def file_argument(f: F) -> F:
    """The argument FILE, and the options --includes, --dialect and --width."""
    path = click.Path(allow_dash=True)
    return click.argument("file", type=path, metavar="FILE")(includes_option(_janus_options(f)))


def function_option(f: F) -> F:
    """The option -f FUNC."""
    return click.option(
        "-f", "--function", metavar="FUNC", help="The function; by default the program's entry."
    )(f)


def values_argument(f: F) -> F:
    """The arguments NAME=VALUE."""
    return click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")(f)


def _engines(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from rvm.engines import ENGINES

    return [CompletionItem(n) for n in ENGINES if n.startswith(incomplete)]


def engine_option(f: F) -> F:
    """The option --engine."""
    from rvm.engines import ENGINES

    names = (f"{row.name} ({row.doc})" for row in ENGINES.values())
    return click.option(
        "--engine",
        default="auto",
        metavar="NAME",
        shell_complete=_engines,
        help=f"{'; '.join(names)}.",
    )(f)


def bits_option(f: F) -> F:
    """The option --bits."""
    return click.option(
        "--bits",
        type=OneOf(["stated", "machine"]),
        default="stated",
        help="stated (the default): the same bits on every engine and machine; machine: the "
        "faster functions of this machine's libm, NumPy and BLAS.",
    )(f)


def run_options(f: F) -> F:
    """The options of a run: --strict, --tolerance, --max-steps, --max-memory."""
    for option in (
        click.option(
            "--max-memory",
            type=BYTES,
            default=quarter_of_memory,
            metavar="N",
            help="The largest amount of memory, such as 64M; by default a quarter of the "
            "computer's.",
        ),
        click.option(
            "--max-steps", type=STEPS, metavar="N", help="The largest number of steps, such as 1e6."
        ),
        click.option(
            "--tolerance",
            type=click.FloatRange(min=0),
            metavar="X",
            help="The largest relative error of freed floats (relative to their largest "
            "magnitude) and of values restored for a gradient; 0 demands equality.",
        ),
        click.option(
            "--strict",
            is_flag=True,
            help="Keep the bits that rounding would lose, so that floats also run back exactly.",
        ),
    ):
        f = option(f)
    return f
