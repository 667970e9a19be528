"""The screen behind `?`: keys, and then the commands of the prompt."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from rvm_tools.debug.console import Command, load_commands

KEYS = """\
Lower-case keys go forwards, upper-case keys backwards.

  s S   to where a line begins, into calls     i I   one instruction
  n N   the same, over calls                   f F   out of this function
  c C   to a stop, or an end of the run        Enter repeats the last command
  Home End   start and end of the run          click on the timeline: go there
  g     go to a time                           Esc Ctrl-C   stop a run, either way

  Up Down PgUp PgDn   the cursor in the code   b     a breakpoint there, or none
  v V   source, bytecode, inverse              w     watch a place
  a A   registers, or the elements of an array [ ]   their pages
  u d   look at the caller, the function called
  Tab : the command line; Esc leaves it        q     quit

In the code: > the machine, ● a breakpoint.  Among values: * changed since the last stop, adj the
adjoint.  Over the timeline: ◆ marks, ● stops at breakpoints and watchpoints, ╵ calls and returns
that were seen.  Below it: bits erased, or memory while none are, where the run was looked at.

Commands of the command line:
"""


class HelpScreen(ModalScreen[None]):
    """Keys and commands; any of Escape, q and ? leaves it."""

    CSS = "HelpScreen VerticalScroll { background: $surface; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "back"),
        ("q", "dismiss", "back"),
        ("question_mark", "dismiss", "back"),
    ]

    def compose(self) -> ComposeResult:
        commands: list[Command] = list({id(c): c for c in load_commands().values()}.values())
        rows = "\n".join(f"  {c.usage:<44} {c.help}" for c in commands)
        with VerticalScroll():
            yield Static(KEYS + rows, markup=False)
