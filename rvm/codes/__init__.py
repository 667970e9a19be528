"""The registry of diagnostics: a title and a long text for every code of the machine.

The assembler's own codes (names, syntax, macros) are in its package.
"""

from rvm.codes.explanation import Explanation
from rvm.codes.files import FILES
from rvm.codes.interface import INTERFACE
from rvm.codes.pebbling import PEBBLING
from rvm.codes.running import RUNNING
from rvm.codes.static import STATIC

__all__ = ["EXPLANATIONS", "Explanation"]

EXPLANATIONS: dict[str, Explanation] = {**STATIC, **FILES, **RUNNING, **INTERFACE, **PEBBLING}
"""Every code that the machine, its files and its Python interface can report."""
