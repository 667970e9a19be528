"""The growing body of a function: registers, parameters, instructions, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rvm.expr import Const, Expr, Place
from rvm.isa import apply, check_operands, place
from rvm.program import Dim, Function, Instr, Param, Register, Span
from rvm.transform.duals import unique
from rvm.types import BOOL, I64, Array

BACKWARD, BOTH = 2, 3
"""The direction bits of an effect for backward runs only, and for both directions."""
TABLE = Array(I64, 1)
TRUE, FALSE = Const(True, BOOL), Const(False, BOOL)


def integer(value: int) -> Const:
    """An i64."""
    return Const(int(value), I64)


def plus(a: Expr, b: Expr | int) -> Expr:
    """a + b."""
    return apply("+", a, integer(b) if isinstance(b, int) else b)


def minus(a: Expr, b: Expr | int) -> Expr:
    """a - b."""
    return apply("-", a, integer(b) if isinstance(b, int) else b)


class Body:
    """Registers and instructions so far."""

    def __init__(self) -> None:
        self.code: list[Instr] = []
        self.registers: list[Register] = []
        self.params: list[Param] = []
        self.dims: list[Dim] = []

    # ------------------------------------------------------------ registers

    def fresh_name(self, name: str) -> str:
        """A name that no register or parameter has."""
        return unique(name, {r.name for r in self.registers} | {p.name for p in self.params})

    def local(self, name: str) -> Place:
        """A register for an integer."""
        self.registers.append(Register(self.fresh_name(name), I64))
        return place(len(self.registers) - 1, I64)

    def add_integers(self, *names: str) -> list[Place]:
        """Parameters for integers."""
        found = [self.local(name) for name in names]
        self.params += [Param(self.registers[p.reg].name, p.reg) for p in found]
        return found

    def add_table(self) -> Place:
        """A parameter for an array of integers."""
        self.registers.append(Register("table", TABLE, (None,)))
        self.params.append(Param("table", len(self.registers) - 1))
        return place(len(self.registers) - 1, TABLE)

    # ------------------------------------------------------------ instructions

    def put(self, op: str, *args: Expr, aux: int = -1, symbol: str = "") -> int:
        """Add an instruction; its index."""
        if op not in ("call", "uncall", "br", "cf"):
            args = check_operands(op, args, self.registers)
        self.code.append(Instr(op, args, aux, symbol))
        return len(self.code) - 1

    def branch(
        self, cond: Expr, then: Callable[[], None], other: Callable[[], None] = lambda: None
    ) -> None:
        """`if cond … else … end`; what `cond` reads does not change."""
        down = self.put("br", apply("not", cond))
        then()
        out = self.put("br", TRUE)
        self._pair(down, self.put("cf", TRUE))
        other()
        self._pair(out, self.put("cf", cond))

    def over(self, k: Place, first: Expr, end: Expr, by: int, body: Callable[[], None]) -> None:
        """The body for k from first up to, not including, end."""
        skip = self.put("br", apply("==", first, end))
        self.loop(k, first, end, by, body)
        self._pair(skip, self.put("cf", apply("==", first, end)))

    def loop(self, k: Place, first: Expr, end: Expr, by: int, body: Callable[[], None]) -> None:
        """The same, if there is such a k."""
        self.put("alloc", k, first)
        top = self.put("cf", apply("!=", k, first))
        body()
        self.put("add" if by > 0 else "sub", k, integer(1))
        self._pair(top, self.put("br", apply("!=", k, end)))
        self.put("free", k, end)

    def _pair(self, a: int, b: int) -> None:
        for own, other in ((a, b), (b, a)):
            instr = self.code[own]
            self.code[own] = Instr(instr.op, instr.args, other)

    def holding(self, values: Mapping[Place, Expr], body: Callable[[], object]) -> None:
        """The body, with registers that hold values which it does not change."""
        for reg, value in values.items():
            self.put("alloc", reg, value)
        body()
        for reg, value in reversed(list(values.items())):
            self.put("free", reg, value)

    def filled(self, count: int, fill: str, body: Callable[[Place], None]) -> None:
        """The body, with a table of so many integers that the function `fill` makes of zeros."""
        self.registers.append(Register(self.fresh_name("table"), TABLE, (integer(count),)))
        table = place(len(self.registers) - 1, TABLE)
        self.put("alloc", table)
        self.put("call", table, symbol=fill)
        body(table)
        self.put("uncall", table, symbol=fill)
        self.put("free", table)

    def refuse_back(self, why: str) -> None:
        """Let a run back fail before it does anything."""
        self.put("assert", FALSE, aux=BACKWARD, symbol=why)

    def function(self, name: str, span: Span | None) -> Function:
        """The function with the instructions written."""
        return Function(
            name,
            tuple(self.params),
            tuple(self.registers),
            tuple(self.code),
            (span,) * len(self.code) if span is not None else (),
            tuple(self.dims),
        )
