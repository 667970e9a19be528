"""The code of one function as Python: scalars in local variables, NumPy arrays."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rvm.emit.python.builder import PythonBuilder
from rvm.emit.python.lines import Lines
from rvm.expr import Expr, Place
from rvm.image import Clash
from rvm.ir.node import Node
from rvm.ir.statements import instruction
from rvm.ir.values import located, put
from rvm.program import Function
from rvm.stmt import Stmt

RESERVED = ("regs", "block", "n", "state", "spent", "done", "error", "run", "LINES", "exactly")
COUNTING = ("row", "pass_on")
"""Names that source which counts uses besides those."""


def local_names(function: Function, taken: Iterable[str]) -> list[str]:
    """A Python variable for each register, as near to its name as can be."""
    used = {*RESERVED, *COUNTING, *taken, *keyword.kwlist}
    out = []
    for register in function.registers:
        base = re.sub(r"\W", "_", register.name)
        base = base if base.isidentifier() and not base.startswith("_") else f"r{base}"
        name, k = base, 1
        while name in used:
            k += 1
            name = f"{base}_{k}"
        used |= {name, f"{name}_m"}
        out.append(name)
    return out


class Printer:
    """Prints what one function's code does as lines of Python.

    `viewed` says that elements of arrays are reached through memoryviews, `total` that functions
    must not raise where their value is defined.
    """

    def __init__(
        self, function: Function, names: Iterable[str], *, viewed: bool = True, total: bool = False
    ) -> None:
        self.function = function
        self.constants: dict[str, object] = {}
        """Values that have no literal, by the names that the source gives them."""
        self.regs = self.register_names(names)
        self.builder = PythonBuilder(function, self.regs, self.bind, total)
        self.text = Lines(function, self.regs, self.constant, viewed)
        self.elements = self.text.elements

    def register_names(self, taken: Iterable[str]) -> list[str]:
        """The names of the registers' variables."""
        return local_names(self.function, taken)

    # ------------------------------------------------------------ what is printed

    def begin(self) -> list[str]:
        """Start again: the lines, to be filled."""
        self.text.begin()
        return self._lines

    @property
    def _lines(self) -> list[str]:
        return self.text.lines

    def instruction(
        self,
        stmts: Sequence[Stmt],
        clashes: Sequence[Clash] = (),
        notes: Sequence[Stmt] = (),
        way: int = 0,
        rounding: int | None = None,
    ) -> list[str]:
        """The lines that do an instruction; Unprintable if it is not for this printer."""
        self._restart()
        self.builder.begin()
        instruction(self.builder, stmts, clashes, notes, way, rounding)
        self.text.print(self.builder.items)
        return self._lines

    def condition(self, cond: Expr) -> tuple[list[str], str]:
        """A condition as an expression, and the lines that go before it."""
        self._restart()
        return self._lines, self.value(cond)

    def value(self, node: Expr) -> str:
        """An expression: an atom, or in parentheses; what it needs is put into lines before."""
        return self._one(lambda b: b.value(node))

    def inline(self, node: Expr) -> str:
        """An expression that no line goes before."""
        self.builder.begin()
        return self.text.inside(*self.builder.apart(node))

    def index(self, node: Expr) -> str:
        """An index that is not negative."""
        return self._one(lambda b: b.index(node))

    def view(self, place: Place) -> str:
        """An array place as a view."""
        return self._one(lambda b: b.view(place))

    def _restart(self) -> None:
        """Start again, with variables that may be used again."""
        self.begin()
        self.text.temps = 0

    def _one(self, make: Callable[[PythonBuilder], Node]) -> str:
        self.builder.begin()
        found = make(self.builder)
        self.text.print(self.builder.items, found)
        return self.text.text(found)

    def stored(self, place: Place, text: str) -> str:
        """The line that stores a text's value in a scalar place; others may go before it."""
        b = self.builder
        b.begin()
        put(b, located(b, place), b.call(text, kind=str(place.type)))
        self.text.print(b.items)
        return self._lines.pop()

    # ------------------------------------------------------------ constants

    def constant(self, v: Any) -> str:
        """A constant as a literal, or as the name of a bound value."""
        if isinstance(v, float):
            if math.isnan(v):
                return self.bind(v)
            if math.isinf(v):
                return "inf" if v > 0 else "(-inf)"
        if isinstance(v, complex):
            return self.bind(v)
        text = repr(v)
        return f"({text})" if text.startswith("-") else text

    def bind(self, v: object) -> str:
        """A name for a value in the source's namespace."""
        for name, known in self.constants.items():
            if known is v:
                return name
        name = f"_k{len(self.constants)}"
        self.constants[name] = v
        return name
