"""The command line `rvm`: a group that imports a command when it is used.

Errors are handled here.  Results go to standard output, messages to standard error, and the exit
code is 0 for success, 1 for an error in the program or its input, 2 for wrong usage, 3 for a fault
of the machine, 4 for a failed reversibility check, 70 for a bug of ours, 130 if interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import rich_click as click
from click.exceptions import Exit

import rvm
from rvm.faults import Fault, UsageError
from rvm_tools.streams import prepare

COMMANDS = (
    "asm",
    "dis",
    "check",
    "run",
    "grad",
    "trace",
    "debug",
    "pebble",
    "pure",
    "stubs",
    "explain",
    "completion",
)
"""The commands of this package, each in the module of its name in `rvm_tools.commands`."""
GROUP = "rvm.commands"
"""The entry points at which other packages offer a command by its name."""

_BUG_EXIT = 70
INTERRUPTED_EXIT = 130
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT)
"""Errors of writing to standard output that are not internal errors."""


class _CommandGroup(click.RichGroup):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *sorted(_offered())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found: click.Command | None = None
        if cmd_name in COMMANDS:
            found = import_module(f"rvm_tools.commands.{cmd_name}").command
        elif cmd_name in (offered := _offered()):
            found = offered[cmd_name].load()
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            near = get_close_matches(name, known, 1)
            hint = f" Did you mean `{near[0]}`?" if near else f" There are: {', '.join(known)}."
            raise click.UsageError(f"There is no command `{name}`.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn errors into messages and exit codes."""
        from rvm_tools.messages import show, warnings_to

        try:
            with warnings_to(show):
                value = super().invoke(ctx)
            sys.stdout.flush()
        except (click.ClickException, Exit, click.Abort):
            raise
        except BrokenPipeError:
            _drop_output()
            ctx.exit(0)
        except (rvm.RvmError, rvm.Interrupted) as error:
            ctx.exit(_reported(error))
        except OSError as error:
            ctx.exit(_no_room(error) if _is_full(error) else _bug(error))
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED_EXIT)
        except Exception as error:
            ctx.exit(_bug(error))
        return value


def _offered() -> dict[str, EntryPoint]:
    """The commands of other packages by their names."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _reported(error: Fault) -> int:
    from rvm_tools.messages import show_error

    show_error(error)
    return error.exit_code


def _bug(error: Exception) -> int:
    """Report a bug of rvm, with the traceback if requested."""
    click.echo(f"internal error: {type(error).__name__}: {error}", err=True)
    if os.environ.get("RVM_TRACEBACK"):
        from traceback import print_exception

        print_exception(error)
    else:
        click.echo(
            "This is a bug of rvm, please report it; RVM_TRACEBACK=1 shows where it happened.",
            err=True,
        )
    return _BUG_EXIT


def _is_full(error: OSError) -> bool:
    return error.filename is None and error.errno in _NO_ROOM


def _no_room(error: OSError) -> int:
    """Report that standard output takes nothing more."""
    from rvm_tools.programs import unwritable

    _drop_output()
    with suppress(OSError):  # of standard error, which may be full too
        return _reported(unwritable("standard output", error))
    return UsageError.exit_code


def _drop_output() -> None:
    """The reader of our output has gone: drop what is still buffered."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(rvm.__version__, "-V", "--version", prog_name="rvm")
def cli() -> None:
    """rvm, a reversible virtual machine: programs that run forwards and backwards.

    FILE is a `.rasm` text or `.rbc` bytecode; `-` is standard input.
    """


def main() -> None:
    """The entry point of `rvm`."""
    prepare()
    try:
        cli(prog_name="rvm")
    except OSError as error:
        # What the group itself puts out, such as `--version`.
        if not _is_full(error):
            raise
        sys.exit(_no_room(error))
