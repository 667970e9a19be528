"""The prompt of `rvm debug` on a terminal: history, completion, Ctrl-C in either direction.

It needs prompt_toolkit (the extra `debug`).  Without it the prompt is a plain line of input, with
the history that the readline module has.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rvm_tools.debug.completions import completions
from rvm_tools.debug.console import Console, OutputLine

_FIRST = "rvm debugger: `help` lists the commands, s and rs step, c and rc run, q leaves"


def converse(console: Console) -> None:
    """Read commands and run them, until the session is left."""
    console.show(OutputLine(_FIRST, "dim"))
    read = _reader(console)
    while not console.finished:
        try:
            text = read(console.prompt())
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        console.execute(text)


def _reader(console: Console) -> Callable[[str], str]:
    try:
        import prompt_toolkit  # noqa: F401
    except ImportError:
        console.show(OutputLine("completion and a status line: pip install prompt_toolkit", "dim"))
        return _plain_reader()
    return _prompt_reader(console)


def _plain_reader() -> Callable[[str], str]:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401
    return input


def _history_file() -> Path | None:
    """The file in which commands are remembered between sessions; None if there is none."""
    base = os.environ.get("XDG_STATE_HOME")
    folder = Path(base) if base else Path.home() / ".local" / "state"
    try:
        (folder / "rvm").mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder / "rvm" / "debug_history"


def _prompt_reader(console: Console) -> Callable[[str], str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory

    class Words(Completer):
        """Completions of commands, and of their arguments."""

        def get_completions(self, document: Any, event: Any) -> Iterable[Completion]:
            text = document.text_before_cursor
            start, found = completions(console, text)
            for word in found:
                yield Completion(word, start_position=start - len(text))

    path = _history_file()
    history: History = FileHistory(str(path)) if path is not None else InMemoryHistory()
    session: PromptSession[str] = PromptSession(
        history=history,
        completer=Words(),
        complete_while_typing=False,
        bottom_toolbar=lambda: toolbar(console),
    )
    return session.prompt


def toolbar(console: Console) -> str:
    """The machine's position, and the costs so far."""
    session = console.session
    from rvm_tools.debug.views import frame_text

    account = session.machine.state.account
    where = frame_text(session.frames[-1], True)
    return (
        f" {where} | frame {len(session.frames) - 1} | work {session.work:,} | "
        f"{session.erased:,} bits erased | {account.live_bytes:,} bytes"
    )
