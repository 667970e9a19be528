"""The assembler: from `.rasm` texts to programs, and back.

`assemble` and `load` make a verified `rvm.program.Program`; `disassemble` prints
one as strict code that assembles to the same program; `directives` reads the
`;!` lines that say what a program must do.
"""

from __future__ import annotations

from rvm_asm.assembler import assemble, load
from rvm_asm.disassemble import disassemble

__all__ = ["assemble", "disassemble", "load"]
