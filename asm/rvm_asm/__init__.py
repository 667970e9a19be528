"""The assembler: from `.rasm` texts to programs, and back.

`assemble` and `load` make a verified `rvm.program.Program`; `disassemble` prints one as strict code
that assembles to the same program; `expand` expands nested expressions; `parse` gives the syntax of
a text.
"""

from __future__ import annotations

from rvm_asm.assembler import assemble, load, parse
from rvm_asm.disassemble import disassemble
from rvm_asm.expand import expand

LINE = r"^(?:func|record|macro|entry) \w"
"""A pattern of lines that occur only in such texts: see `rvm.library.frontends`."""

__all__ = ["LINE", "assemble", "disassemble", "expand", "load", "parse"]
