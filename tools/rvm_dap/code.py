"""Addresses of instructions: numbers in one space, as editors want them.

Functions follow each other in the order of the program.  Each has an address for every
instruction as it is written, one in front of them for the end of a run back, and one after
them for the end of a run forwards.  An instruction has the same address in both directions.
"""

from __future__ import annotations

from bisect import bisect_right

from rvm_tools.debug.views import texts_of

from rvm.faults import UsageError
from rvm.image import Code, image_of
from rvm.program import Program

_FIRST = 0x1000
_COLUMN = 40
"""The largest column at which the text of the inverse begins."""


class Addresses:
    """The addresses of a program's instructions."""

    def __init__(self, program: Program) -> None:
        self._image = image_of(program)
        self._names = [f.name for f in program.functions]
        self._starts: list[int] = []
        at = _FIRST
        for function in program.functions:
            self._starts.append(at)
            at += len(function.code) + 2
        self.end = at

    def of(self, name: str, pc: int) -> int:
        """The address of an instruction as written; -1 and the number of all are the two ends."""
        return self._starts[self._names.index(name)] + 1 + pc

    def at(self, address: int) -> tuple[Code, int] | None:
        """The code and instruction at an address; None outside of all functions."""
        if not _FIRST <= address < self.end:
            return None
        k = bisect_right(self._starts, address) - 1
        return self._image.code(self._names[k], False), address - self._starts[k] - 1

    def read(self, reference: str) -> int:
        """The address that a reference means; UsageError U041 if it is not one."""
        try:
            return int(reference, 0)
        except ValueError:
            raise UsageError("U041", f"`{reference}` is not an address") from None

    def text(self, code: Code, pc: int) -> str:
        """An instruction with its inverse beside it, or a text for the function's ends."""
        if not 0 <= pc < len(code):
            return f"-- {'start' if pc < 0 else 'end'} of {code.name}"
        column = min(_COLUMN, max(len(t) for t in texts_of(code)))
        undo = texts_of(self._image.code(code.name, True))[len(code) - 1 - pc]
        return f"{texts_of(code)[pc]:<{column}}  ~  {undo}"

    def listing(self, name: str) -> list[str]:
        """A function's instructions, a line each, from the first."""
        code = self._image.code(name, False)
        return [self.text(code, pc) for pc in range(len(code))]


def shown(address: int) -> str:
    """An address as the protocol writes it."""
    return f"0x{address:x}"
