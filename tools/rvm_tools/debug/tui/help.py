"""The screen behind `?`: keys, and then the commands of the prompt."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from rvm_tools.debug.console import Command, load_commands

_KEYS = """\
Lower-case keys go forwards, upper-case keys backwards.

  s S   to where a line begins           n N   the same, over calls
  i I   one instruction                  f F   out of this function
  c C   to a stop, or an end of the run  Home End   the start, the end
  g     to a time; so does a click on the timeline
  Enter repeats the last command; Esc and Ctrl-C stop a run, either way

  Up Down PgUp PgDn   the cursor         b     a breakpoint there, or none
  v V   source, bytecode, inverse        w     watch a place
  a A   registers, or an array           [ ]   pages of it
  u d   the caller, the function called  q     quit
  Tab : the command line; Esc leaves it

Code: > is the machine, ● a breakpoint.  Values: * has changed since the
last stop, adj is the adjoint.  Over the timeline: ◆ marks, ● stops at
breakpoints and watchpoints, ╵ calls and returns that were stopped in.
Below it: energy by a model, joules a step, and from the start to now; and
memory, bytes.  That is known where the run was looked at.  e looks everywhere,
in a run of its own, and goes on to the next model.

On the command line:
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
        rows = "\n".join(f"  {c.usage:<26} {c.help}" for c in commands)
        with VerticalScroll():
            yield Static(_KEYS + rows, markup=False)
