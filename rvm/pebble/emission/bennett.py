"""Bennett's recursion as one function, for a number of steps that is known when it runs.

    func step_bennett(y: T, x: T, ..., steps: i64)

cuts `steps` into at most k pieces of ceil(steps / k), makes the state at the end of each in turn by
calling itself, the last one into y, and takes the others away again, the last first: the schedule
of `rvm.pebble.chains.bennett`.  No step leaves y as x is; one is the step itself.
"""

from __future__ import annotations

from collections.abc import Callable

from rvm.expr import Const, Expr, Place
from rvm.faults import UsageError
from rvm.isa import apply, place
from rvm.pebble.emission.code import State, Writer, copied, integer
from rvm.pebble.emission.step import Step
from rvm.program import Function, Instr, Param, Register, Span
from rvm.transform.duals import unique
from rvm.types import BOOL, I64, elem_of, rank_of, with_rank

BOTH = 3
"""The direction bits of an effect that happens both ways."""
TRUE = Const(True, BOOL)


class _Recursion(Writer):
    """The growing function."""

    def __init__(self, step: Step, name: str, radix: int) -> None:
        super().__init__(step, with_y=True, sweeps=False)
        self.name, self.radix = name, radix
        word = unique("steps", {r.name for r in self.registers} | {p.name for p in self.params})
        self.count = self._integer(word)
        self.params.append(Param(word, self.count.reg))
        self.size = self._integer("size")
        self.pieces = self._integer("pieces")
        self.k = self._integer("k")
        self.row = self._row()

    def _integer(self, name: str) -> Place:
        self.registers.append(Register(self.fresh_name(name), I64))
        return place(len(self.registers) - 1, I64)

    def _row(self) -> State:
        """States for the ends of all pieces but the last."""
        f, regs = self.step.function, []
        base = self.fresh_name("row")
        for k in self.step.x:
            t = f.registers[k].type
            lengths = (apply("-", self.pieces, integer(1)), *self.lengths(k))
            regs.append(len(self.registers))
            made = with_rank(elem_of(t), rank_of(t) + 1)
            self.registers.append(Register(self.leaf_name(base, k), made, lengths))
        return State(tuple(regs))

    # ------------------------------------------------------------ structure

    def branch(self, cond: Expr, then: Callable[[], None], other: Callable[[], None]) -> None:
        """`if cond … else … end`; what `cond` reads does not change."""
        down = self.put("br", apply("not", cond))
        then()
        out = self.put("br", TRUE)
        self._pair(down, self.put("cf", TRUE))
        other()
        self._pair(out, self.put("cf", cond))

    def over(self, first: Expr, end: Expr, by: int, body: Callable[[], None]) -> None:
        """The body for k from first up to, not including, end."""
        skip = self.put("br", apply("==", first, end))
        self.put("alloc", self.k, first)
        top = self.put("cf", apply("!=", self.k, first))
        body()
        self.put("add" if by > 0 else "sub", self.k, integer(1))
        self._pair(top, self.put("br", apply("!=", self.k, end)))
        self.put("free", self.k, end)
        self._pair(skip, self.put("cf", apply("==", first, end)))

    def _pair(self, a: int, b: int) -> None:
        for own, other in ((a, b), (b, a)):
            instr = self.code[own]
            self.code[own] = Instr(instr.op, instr.args, other)

    # ------------------------------------------------------------ the recursion

    def write(self) -> None:
        """All of the code."""
        sound = apply(">=", self.count, integer(0))
        text = f"`{self.step.function.name}` is done 0 times or more, not so often:"
        self.put("assert", sound, self.count, aux=BOTH, symbol=text)
        self.branch(apply(">", self.count, integer(1)), self._cut, self._short)

    def _short(self) -> None:
        assert self.y is not None
        args = self.arguments(self.y, self.x, self.number, None)
        self.branch(
            apply("==", self.count, integer(1)),
            lambda: self._call("call", args, self.step.function.name),
            lambda: copied(self, self.y, self.x),
        )

    def _call(self, op: str, args: list[Expr], symbol: str) -> None:
        self.put(op, *args, symbol=symbol)

    def _cut(self) -> None:
        radix, one = integer(self.radix), integer(1)
        size = apply("//", apply("+", self.count, integer(self.radix - 1)), radix)
        held = (
            (self.size, size),
            (
                self.pieces,
                apply("//", apply("-", apply("+", self.count, self.size), one), self.size),
            ),
        )
        for reg, value in held:
            self.put("alloc", reg, value)
        self.each("alloc", self.row)
        last = apply("-", self.pieces, one)
        before = self._in_row(apply("-", self.k, one))
        start = apply("*", self.k, self.size)
        whole = self.size

        def piece(op: str, y: State | None, x: State, done: Expr | int, steps: Expr) -> None:
            args = [*self.arguments(y, x, self.numbered(done), None), steps]
            self._call(op, args, self.name)

        first = self._in_row(integer(0))
        piece("call", first, self.x, 0, whole)
        here = self._in_row(self.k)
        self.over(one, last, 1, lambda: piece("call", here, before, start, whole))
        done = apply("*", last, self.size)
        end = self._in_row(apply("-", self.pieces, integer(2)))
        piece("call", self.y, end, done, apply("-", self.count, done))
        back = apply("-", last, one)
        self.over(back, integer(0), -1, lambda: piece("uncall", here, before, start, whole))
        piece("uncall", first, self.x, 0, whole)
        for leaf in reversed(self.places(self.row)):
            self.put("free", leaf)
        for reg, value in reversed(held):
            self.put("free", reg, value)

    def _in_row(self, index: Expr) -> State:
        return self.row.at(index)


def bennett_function(step: Step, radix: int, name: str, span: Span | None = None) -> Function:
    """Bennett's recursion with `radix` pieces as a function, called `name`.

    Its parameters are those of the step, and the number of steps.  UsageError P001: no radix.
    """
    if radix < 2:
        raise UsageError("P001", "a radix is 2 or more", values={"radix": radix})
    code = _Recursion(step, name, radix)
    code.write()
    return code.function(name, span)
