"""The debugger on a full screen, with Textual (the extra `tui`): another client of a `Console`.

`page` and `past` are the contents as plain data; `bars` the timeline; `panes` paints them; `keys`
lead to the actions of `app`, which runs the machine in a thread.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from rvm.faults import UsageError
from rvm_tools.debug.costs import FLOOR
from rvm_tools.debug.session import Session
from rvm_tools.trace.energy import Model


def check(*, alone: bool = True) -> None:
    """Raise UsageError U038 if no full screen is possible; `alone`: nothing else was requested."""
    if not alone:
        raise UsageError("U038", "--tui goes with neither --batch nor --json, which print")
    if find_spec("textual") is None:
        raise UsageError(
            "U038",
            "a full screen needs Textual, which is not installed",
            hint='pip install "rvm[tui]", or leave --tui out for the prompt',
        )
    # Textual reads from standard input and draws on standard error.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(
            "U038",
            "a full screen needs a terminal, and this is a pipe or a file",
            hint="--batch runs scripts, or commands from standard input",
        )


def full_screen(session: Session, commands: Sequence[str] = (), model: Model = FLOOR) -> None:
    """Debug on the full screen; `commands` are run first, and energy is shown by `model`."""
    from rvm_tools.debug.tui.app import Screenful

    Screenful(session, commands, model).run()


__all__ = ["check", "full_screen"]
