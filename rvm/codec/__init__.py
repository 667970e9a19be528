"""Bytecode files: a program as bytes, and back.

`docs/bytecode.md` describes the format.
"""

from rvm.codec.decode import decode
from rvm.codec.encode import encode
from rvm.codec.layout import MAGIC

__all__ = ["MAGIC", "decode", "encode"]
