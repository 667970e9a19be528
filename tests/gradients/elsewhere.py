"""A second reading of the bytecode, on arrays of JAX or PyTorch: for gradients by somebody else.

Nothing is shared with the engines: registers hold a framework's immutable values, an update makes
new ones, and a function is undone by reading its instructions from the end.  `fixed` is read as a
real number, log64 as its logarithm, integers and bools as Python's own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rvm.expr import Apply, Const, Expr, Index, Part, Place, Span
from rvm.isa import lower
from rvm.program import Function, Program
from rvm.stmt import (
    Alloc,
    Branch,
    Call,
    Exchange,
    Free,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
)
from rvm.types import Array, elem_of

Table = Mapping[str, Callable[..., Any]]
"""A framework's functions by their names here."""
PLAIN: Table = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "//": operator.floordiv,
    "%": operator.mod,
    "neg": operator.neg,
    "not": operator.not_,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "@": operator.matmul,
    "identity": lambda x: x,
    "fixed": lambda x: x,
    "len": len,
    "dim": lambda x, axis: x.shape[axis],
    "for_end": lambda a, b, s: a + max(0, (b - a) // s + 1) * s,
}
LOGS: Table = {
    "*": operator.add,
    "/": operator.sub,
    "**": operator.mul,
    "neg": operator.neg,
    "identity": lambda x: x,
}
"""Functions of log64 on logarithms, but for the sum."""
OPS = {"+": ("+", "-"), "-": ("-", "+"), "*": ("*", "/"), "/": ("/", "*")}


class Reader:
    """Runs functions of a program on a framework's arrays."""

    def __init__(self, program: Program, table: Table) -> None:
        self.program = program
        self.table = {**PLAIN, **table}
        self.logs = {**LOGS, "+": table["logaddexp"]}

    def run(self, name: str, regs: list[Any], undo: bool = False) -> list[Any]:
        """The parameters' values after a call, or after undoing one."""
        function = self.program.function(name)
        regs = regs + [None] * (len(function.registers) - len(regs))
        pc, step, end = 0, 1, len(function.code)
        if undo:
            pc, step, end = end - 1, -1, -1
        while pc != end:
            stmts = lower(function.code[pc])
            for stmt in reversed(stmts) if undo else stmts:
                if isinstance(stmt, (Branch, Land)):
                    leaves = isinstance(stmt, Land) if undo else isinstance(stmt, Branch)
                    if leaves and self.value(stmt.cond, regs):
                        pc = stmt.partner
                else:
                    self._do(stmt, function, regs, undo)
            pc += step
        return regs[: function.n_args]

    def _do(self, stmt: Stmt, function: Function, regs: list[Any], undo: bool) -> None:
        match stmt:
            case Update(dst, op, value):
                logs = elem_of(dst.type).is_log
                new = self._call(
                    OPS[op][undo], logs, [self.read(dst, regs), self.value(value, regs)]
                )
                self.write(dst, regs, new)
            case Exchange(a, b):
                one, two = self.read(a, regs), self.read(b, regs)
                self.write(a, regs, two)
                self.write(b, regs, one)
            case Map(dsts, values, inverse):
                found = [self.value(v, regs) for v in (inverse if undo else values)]
                for dst, new in zip(dsts, found, strict=True):
                    self.write(dst, regs, new)
            case When(cond, body):
                if self.value(cond, regs):
                    for inner in reversed(body) if undo else body:
                        self._do(inner, function, regs, undo)
            case Alloc(reg, value) | Free(reg, value):
                made = isinstance(stmt, Free) if undo else isinstance(stmt, Alloc)
                if not made:
                    regs[reg.reg] = None
                elif isinstance(function.registers[reg.reg].type, Array):
                    dims = function.registers[reg.reg].dims
                    shape = tuple(self.value(d, regs) for d in dims)
                    regs[reg.reg] = self.table["full"](shape, self.value(value, regs))
                else:
                    regs[reg.reg] = self.value(value, regs)
            case Push(x, stack) | Pop(x, stack):
                held = regs[stack.reg]
                if isinstance(stmt, Pop) if undo else isinstance(stmt, Push):
                    regs[stack.reg] = [*held, self.read(x, regs)]
                    self.write(x, regs, 0.0)
                else:
                    regs[stack.reg] = held[:-1]
                    self.write(x, regs, held[-1])
            case Call(callee, args, backwards):
                inner = [regs[a.reg] if a.type is None else self.value(a, regs) for a in args]
                out = self.run(callee, inner, undo != backwards)
                for arg, value in zip(args, out, strict=True):
                    if isinstance(arg, Place):
                        self.write(arg, regs, value)
            case _:
                raise NotImplementedError(stmt)

    # ------------------------------------------------------------ values

    def value(self, node: Expr, regs: list[Any]) -> Any:
        match node:
            case Const(raw, t):
                return raw / 2**t.frac if t.is_fixed else raw
            case Place():
                return self.read(node, regs)
            case Apply("and", (a, b)):
                return self.value(a, regs) and self.value(b, regs)
            case Apply("or", (a, b)):
                return self.value(a, regs) or self.value(b, regs)
            case Apply("f64", (a,)) if elem_of(a.type).is_log:
                return self.table["exp"](self.value(a, regs))
            case Apply("log", (a,)) if elem_of(a.type).is_log:
                return self.value(a, regs)
            case Apply("log64", (a,)):
                return self.table["log"](self.value(a, regs))
            case Apply(fn, args):
                logs = elem_of(args[0].type).is_log
                return self._call(fn, logs, [self.value(a, regs) for a in args])
        raise NotImplementedError(node)

    def _call(self, fn: str, logs: bool, args: list[Any]) -> Any:
        if all(isinstance(a, (bool, int, float)) for a in args) and fn in SCALARS:
            return SCALARS[fn](*args)
        return (self.logs if logs else self.table)[fn](*args)

    def _steps(self, place: Place, regs: list[Any]) -> list[Any]:
        """A place's path: tuples of indices and slices, names of parts."""
        out: list[Any] = []
        for step in place.path:
            match step:
                case Index(items):
                    out.append(tuple(self._item(i, regs) for i in items))
                case Part(name):
                    out.append(name)
                case _:
                    raise NotImplementedError(step)
        return out

    def _item(self, item: Expr | Span, regs: list[Any]) -> Any:
        if not isinstance(item, Span):
            return int(self.value(item, regs))
        return slice(*(None if e is None else int(self.value(e, regs)) for e in item.ends))

    def read(self, place: Place, regs: list[Any]) -> Any:
        held = regs[place.reg]
        for step in self._steps(place, regs):
            part = isinstance(step, str)
            held = self.table[PARTS[step]](held) if part else held[_forwards(step, held.shape)]
        return held

    def write(self, place: Place, regs: list[Any], new: Any) -> None:
        regs[place.reg] = self._written(regs[place.reg], self._steps(place, regs), new)

    def _written(self, held: Any, steps: list[Any], new: Any) -> Any:
        """What is held with a part of it replaced."""
        if not steps:
            shape = getattr(held, "shape", ())
            return self.table["full"](shape, new) if shape else new
        step, *rest = steps
        if isinstance(step, str):
            re, im = self.table["real"](held), self.table["imag"](held)
            return self.table["complex"](*((new, im) if step == "re" else (re, new)))
        at = _forwards(step, held.shape)
        return self.table["put"](held, at, self._written(held[at], rest, new))


def _forwards(step: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index; with arrays instead of slices if one goes backwards, as frameworks' do not."""
    if not any(isinstance(i, slice) and (i.step or 1) < 0 for i in step):
        return step
    ranges = [range(n)[i] if isinstance(i, slice) else i for i, n in zip(step, shape, strict=False)]
    left = sum(isinstance(i, range) for i in ranges)
    out: list[Any] = []
    for item in ranges:
        if isinstance(item, range):
            left -= 1
            out.append(np.array(item).reshape(-1, *[1] * left))
        else:
            out.append(item)
    return tuple(out)


PARTS = {"re": "real", "im": "imag"}
SCALARS: Table = {"f64": float, "i64": int, "hypot": math.hypot, "sqrt": math.sqrt}
"""Functions of Python's own numbers that a framework's would not take."""
