"""Functions in Python as a front end of the machine: what `@rvm.reversible` reads.

The source of a function becomes declarations of the assembly language, with positions in the
Python text; the assembler types, lowers and verifies them.
"""

from __future__ import annotations

from rvm.library.reversible import PythonOrigin, Translated
from rvm_python.files import load, rasm
from rvm_python.translate import Translation


def translate(origin: PythonOrigin) -> Translated:
    """What a function and all that it calls become; AssemblyError holds what is wrong with it."""
    return Translation(origin)


LINE = r"^(?:import \w|from \S+ import |class \w|@\w|def \w.*:\s*$)"
"""Lines that only such texts have: see `rvm.library.frontends`."""

__all__ = ["LINE", "load", "rasm", "translate"]
