"""Programs made by hand, a line at a time, for tests that need no assembler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rvm.expr import Apply, Const, Expr, Index, Place, Step
from rvm.isa import check_operands, place, typed
from rvm.program import Dim, Function, Instr, Param, Program, Register, Span
from rvm.types import F64, I64, Array, RegisterType, Scalar, Stack


class Maker:
    """A function in the making: `params` and `local` make registers, `op` instructions."""

    def __init__(self, name: str, **params: RegisterType) -> None:
        self.name = name
        self.registers: list[Register] = []
        self.dims: list[Dim] = []
        self.code: list[Instr] = []
        for p, t in params.items():
            rank = t.rank if isinstance(t, Array) else 0
            self.registers.append(Register(p, t, (None,) * rank))
        self.params = tuple(Param(p, k) for k, p in enumerate(params))

    def local(self, name: str, t: RegisterType = I64, *dims: Any) -> Place:
        lengths = tuple(typed(d if isinstance(d, Expr) else Const(d), I64) for d in dims)
        self.registers.append(Register(name, t, lengths))
        k = len(self.registers) - 1
        return Place(k) if isinstance(t, Stack) else place(k, t)

    def __getitem__(self, name: str) -> Place:
        return self.at(name)

    def at(self, name: str, *path: Step) -> Place:
        k = next(k for k, r in enumerate(self.registers) if r.name == name)
        t = self.registers[k].type
        return Place(k) if isinstance(t, Stack) else place(k, t, path)

    def elem(self, name: str, *items: Any) -> Place:
        """`name[items]`."""
        return self.at(name, Index(tuple(i if not isinstance(i, int) else Const(i) for i in items)))

    def length(self, name: str, axis: int = 0) -> Expr:
        return typed(Apply("dim", (self[name], Const(axis, I64))))

    def op(self, op: str, *args: Any, aux: int = -1, symbol: str = "") -> Instr:
        """Append an instruction whose operands are typed as the assembler would."""
        given = tuple(a if isinstance(a, Expr) else Const(a) for a in args)
        if op in ("call", "uncall"):
            done: Sequence[Expr] = [a if isinstance(a, Place) else typed(a) for a in given]
        else:
            done = check_operands(op, given, self.registers)
        return self.raw(op, *done, aux=aux, symbol=symbol)

    def raw(self, op: str, *args: Expr, aux: int = -1, symbol: str = "") -> Instr:
        """Append an instruction as it is."""
        instr = Instr(op, tuple(args), aux, symbol)
        self.code.append(instr)
        return instr

    def function(self) -> Function:
        spans = tuple(Span(0, k + 1, 1, 4) for k in range(len(self.code)))
        return Function(
            self.name,
            self.params,
            tuple(self.registers),
            tuple(self.code),
            spans,
            tuple(self.dims),
        )


def program(*makers: Maker) -> Program:
    return Program(tuple(m.function() for m in makers), makers[0].name)


def array(t: Scalar = F64, rank: int = 1) -> Array:
    return Array(t, rank)
