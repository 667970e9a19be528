"""Functions without state, made reversible, and their derivatives by source transformation.

Sources: M. Huot and A. Shaikhha, *Denotationally correct, purely functional, efficient
reverse-mode automatic differentiation* (2022); T. Ellis, *Automatic differentiation: forwards and
reverse* (2020).
"""

from rvm_pure.assembler import assemble, load, rasm
from rvm_pure.door import WORDS, pure
from rvm_pure.functions import PureFunction, functions

LINE = r"^def \w.*\).*=(?! *=)"
"""A pattern of lines that occur only in such texts: see `rvm.library.frontends`."""

__all__ = ["LINE", "WORDS", "PureFunction", "assemble", "functions", "load", "pure", "rasm"]
