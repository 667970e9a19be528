"""What beginners write who come from Python or C, what is said of it, and what they write then.

`beginners.txt` holds texts, with what the assembler says word for word, and for most the text that
follows what was said.  After a change that is meant, `python tests/asm/test_beginners.py` writes
the messages anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rvm_asm import assemble

from rvm.faults import AssemblyError

FILE = Path(__file__).parent / "beginners.txt"
ENTRY = re.compile(
    r"=== (.*)\n((?:.*\n)*?)(?:--- mended\n((?:.*\n)*?))?--- said\n((?:(?!===).*\n)*)"
)
ENTRIES = {m[1]: m for m in ENTRY.finditer(FILE.read_text(encoding="utf-8"))}


def said(text: str) -> str:
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    return str(caught.value) + "\n"


def test_none_is_left_out() -> None:
    assert "".join(m[0] for m in ENTRIES.values()) == FILE.read_text(encoding="utf-8")
    assert len(ENTRIES) >= 80


@pytest.mark.parametrize("name", ENTRIES)
def test_what_is_said(name: str) -> None:
    assert said(ENTRIES[name][2]) == ENTRIES[name][4]


@pytest.mark.parametrize("name", [n for n, m in ENTRIES.items() if m[3]])
def test_what_follows_it_is_read(name: str) -> None:
    assemble(ENTRIES[name][3])


if __name__ == "__main__":
    FILE.write_text(
        "".join(m[0][: len(m[0]) - len(m[4])] + said(m[2]) for m in ENTRIES.values()),
        encoding="utf-8",
    )
