"""Janus, the first reversible language, as a front end of the machine.

Both dialects that are in use are read: that of jana (2014: parameters, `local` and `delocal`,
stacks) and the classic one (2007: globals, no parameters).  A text becomes declarations of the
assembly language, which types, lowers and verifies them.

Sources: C. Lutz, *Janus: a time-reversible language* (1986); T. Yokoyama and R. Glück, *A
reversible programming language and its invertible self-interpreter* (2007); the interpreter jana.
"""

from rvm_janus.assembler import assemble, load, rasm
from rvm_janus.store import lines as store

LINE = r"^procedure \w"
"""A pattern of lines that occur only in such texts: see `rvm.library.frontends`."""

__all__ = ["LINE", "assemble", "load", "rasm", "store"]
