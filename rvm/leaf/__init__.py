"""Leaf operations, which every target computes to the same bits, and functions over them.

A *body* is a Python function that is traced once, over nodes; it is printed as Python, as NumPy
code over arrays, and as LLVM code.  Each operation is rounded separately, in the order of the text.
"""

from __future__ import annotations

from rvm.leaf.function import Function, function
from rvm.leaf.trace import Node, Table, constant, select

__all__ = ["Function", "Node", "Table", "constant", "function", "select"]
