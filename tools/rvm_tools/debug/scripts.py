"""Scripts of debugger commands, and their format.

A saved script has a first line that identifies it, and a last one with the number and a checksum of
the lines before it, so that truncated or damaged scripts are refused.  Hand-written scripts have
neither.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

from rvm.faults import UsageError
from rvm_tools.programs import read_text

_HEAD = "# rvm debug script: "
_END = re.compile(r"# end: (\d+) lines, checksum ([0-9a-f]{16})")


def sealed(title: str, commands: Sequence[str]) -> str:
    """Commands as the text of a saved script."""
    lines = [_HEAD + title, *commands]
    return "\n".join([*lines, _end(lines)]) + "\n"


def read_script(file: str) -> list[str]:
    """The commands in a file; a line with `#` in front is a comment.

    UsageError U044 if it was saved and is not whole, or if it holds no command.
    """
    lines = read_text(file, is_source=False).splitlines()
    saved = bool(lines) and (lines[0].startswith(_HEAD) or _END.match(lines[-1]) is not None)
    if saved and (len(lines) < 2 or lines[-1] != _end(lines[:-1])):
        raise UsageError(
            "U044",
            f"the script {file} is not as it was saved: it was cut, damaged or edited",
            hint="save it again; if you changed it, take out its first and its last line",
        )
    commands = [k for k in lines if k.strip() and not k.lstrip().startswith("#")]
    if not commands and not saved:
        raise UsageError("U044", f"the script {file} holds no command")
    return commands


def _end(lines: Sequence[str]) -> str:
    """The last line of a saved script."""
    digest = blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()
    return f"# end: {len(lines)} lines, checksum {digest}"
