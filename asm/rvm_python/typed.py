"""The text of functions that were typed at Python's prompt, from the history of its lines.

Python keeps that text from 3.13 on; before, only the history of the prompt has it.
"""

from __future__ import annotations
import __future__

import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

PROMPT = "<stdin>"
_FUTURE = __future__.annotations.compiler_flag
_MOST_LINES = 400
"""The largest number of lines of a function that is searched for."""


@lru_cache(maxsize=64)
def typed(code: CodeType) -> str:
    """The lines that were compiled to this code, or nothing.

    Lines that make other code are never taken for it: the history leaves out a line that repeats
    the one before.
    """
    history = sys.modules.get("readline")
    if code.co_filename != PROMPT or history is None:
        return ""
    many = history.get_current_history_length()
    lines = [history.get_history_item(k + 1) or "" for k in range(many)]
    flags = code.co_flags & _FUTURE
    for text in _candidates(lines, code.co_name):
        try:
            made = compile(text, PROMPT, "exec", flags, dont_inherit=True)
        except (SyntaxError, ValueError):
            continue
        if any(const == code for const in made.co_consts):
            return text
    return ""


def _candidates(lines: list[str], name: str) -> Iterator[str]:
    """Stretches that may define a name, the latest first."""
    for k in reversed(range(len(lines))):
        if not lines[k].startswith(f"def {name}"):
            continue
        first = k
        while first and lines[first - 1].startswith("@"):
            first -= 1
        for end in range(k + 1, min(len(lines), k + _MOST_LINES) + 1):
            if end == len(lines) or not lines[end][:1].isspace():
                yield "\n".join(lines[first:end]) + "\n"
