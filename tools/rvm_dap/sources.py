"""The texts that an editor can show: files, sources without a file, and listings of bytecode.

Instructions made by a transformation are in no source; for them there is a listing of their
function, one instruction per line.  Texts without a path are identified to the editor by number.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rvm_tools.debug.lines import function_lines, line_of

from rvm.faults import UsageError
from rvm.image import Code
from rvm.program import Program
from rvm_dap.code import Addresses

_LISTINGS = 1_000_000
"""The number of the first listing; sources have the numbers from 1."""


class Sources:
    """The sources of a program, and the places of its instructions in them."""

    def __init__(self, program: Program, addresses: Addresses, base: Path) -> None:
        self._program = program
        self._addresses = addresses
        self._names = [f.name for f in program.functions]
        self._paths = [_path(s.name, base) for s in program.sources]

    def source(self, index: int) -> dict[str, Any]:
        """A source as the protocol describes it."""
        path = self._paths[index]
        name = Path(self._program.sources[index].name).name
        if path is not None:
            return {"name": name, "path": path}
        return {"name": name, "sourceReference": index + 1}

    def listing(self, function: str) -> dict[str, Any]:
        """A function's bytecode as a source."""
        number = _LISTINGS + self._names.index(function)
        return {
            "name": f"{function} (bytecode)",
            "sourceReference": number,
            "presentationHint": "deemphasize",
        }

    def all(self) -> list[dict[str, Any]]:
        """Every source; listings only of functions that have none."""
        without = [f.name for f in self._program.functions if function_lines(f) is None]
        return [
            *(self.source(k) for k in range(len(self._paths))),
            *(self.listing(name) for name in without),
        ]

    def find(self, path: str, number: int) -> int | str:
        """The index of a source, or the function of a listing; UsageError U031 if it is not one."""
        if number >= _LISTINGS and number - _LISTINGS < len(self._names):
            return self._names[number - _LISTINGS]
        if 0 < number <= len(self._paths):
            return number - 1
        wanted = _same(path)
        for k, own in enumerate(self._paths):
            if own is not None and _same(own) == wanted:
                return k
        shown = path or f"number {number}"
        names = ", ".join(s.name for s in self._program.sources) or "none"
        raise UsageError("U031", f"the program has no source `{shown}`", hint=f"sources: {names}")

    def content(self, number: int) -> str:
        """The text of a source that is in no file."""
        found = self.find("", number)
        if isinstance(found, str):
            return "\n".join(self._addresses.listing(found)) + "\n"
        return self._program.sources[found].text

    def where(self, found: int | str, line: int) -> str:
        """A line of a source or listing, as the debugger writes a place to stop at."""
        if isinstance(found, str):
            return f"{found}@{max(line - 1, 0)}"
        return f"{self._program.sources[found].name}:{line}"

    def place(self, code: Code, pc: int) -> dict[str, Any]:
        """Source, line and columns (from 1) of a position; at a function's end, its last line."""
        at = min(pc, len(code) - 1)
        source, line = line_of(code, at) if code.instrs else (-1, 0)
        if source < 0:
            forward = max(code.forward_pc(at), 0) + 1 if code.instrs else 1
            return {"source": self.listing(code.name), "line": forward, "column": 1}
        if pc >= len(code):
            found = function_lines(code.function)
            if found is not None and found[0] == source:
                line = found[1 if code.undo else 2]
            return {"source": self.source(source), "line": line, "column": 1}
        span = code.span(at)
        return {
            "source": self.source(source),
            "line": line,
            "column": max(span.column, 1),
            "endLine": line,
            "endColumn": max(span.end, span.column, 1),
        }


def _path(name: str, base: Path) -> str | None:
    """The file that a source was read from, if it is one."""
    for path in (Path(name), base / name):
        if path.is_file():
            return str(path.absolute())
    return None


def _same(path: str) -> str:
    """A path by which files can be compared."""
    return os.path.normcase(os.path.realpath(path)) if path else ""
