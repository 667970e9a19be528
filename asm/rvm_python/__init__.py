"""Functions in Python as a front end of the machine: the reader behind `@rvm.reversible`.

The source of a function becomes declarations of the assembly language, with positions in the Python
text; the assembler types, lowers and verifies them.
"""

from __future__ import annotations

from rvm.library.reversible import PythonOrigin, Translated
from rvm_python.files import load, rasm
from rvm_python.translate import Translation


def translate(origin: PythonOrigin) -> Translated:
    """The program of a function and all that it calls; AssemblyError lists the errors."""
    return Translation(origin)


LINE = r"^(?:import \w|from \S+ import |class \w|@\w|def \w.*:\s*$)"
"""A pattern of lines that occur only in such texts: see `rvm.library.frontends`."""

__all__ = ["LINE", "load", "rasm", "translate"]
