"""Bennett's recursion as one function, the number of steps a parameter.

    func step.bennett(y: T, x: T, ..., n: i64)

cuts n steps into at most k pieces of ceil(n / k), makes the state at the end of each in turn by
calling itself, the last one into y, and takes the others away again, the last first: the schedule
of `rvm.pebble.chains.bennett`.  To add the result to y, whatever that holds, another such function
goes on to the end, where it adds the state to y.
"""

from __future__ import annotations

from collections.abc import Collection

from rvm.expr import Expr, Place
from rvm.faults import UsageError
from rvm.isa import apply
from rvm.pebble.bridge.emission.body import integer, minus, plus
from rvm.pebble.bridge.emission.code import State, StepWriter, copied
from rvm.pebble.bridge.emission.knill import counted
from rvm.pebble.bridge.emission.step import Step
from rvm.program import Function, Register, Span
from rvm.transform.duals import unique
from rvm.types import elem_of, rank_of, with_rank

LONGEST = 1 << 40
"""The most steps: as many as a chain has."""


class _Recursion(StepWriter):
    """One of the two functions; `inner` is that which makes states, `ends` that for the last."""

    def __init__(self, step: Step, radix: int, inner: str, ends: str) -> None:
        super().__init__(step)
        self.inner, self.ends = inner, ends
        (self.n,) = self.add_integers("n")
        self.size, self.pieces, self.k = (self.local(name) for name in ("size", "pieces", "k"))
        self.row = self._row()
        one = apply("==", self.n, integer(1))
        self.branch(one, self._single, lambda: self._cut(integer(radix)))

    def _row(self) -> State:
        """States for the ends of all pieces but the last."""
        regs = []
        base = self.fresh_name("row")
        for k in self.step.x:
            t = self.step.function.registers[k].type
            lengths = (minus(self.pieces, 1), *self.lengths(k))
            regs.append(len(self.registers))
            made = with_rank(elem_of(t), rank_of(t) + 1)
            self.registers.append(Register(self.leaf_name(base, k), made, lengths))
        return State(tuple(regs))

    def _step(self, op: str, y: State | None) -> None:
        args = self.arguments(y, self.x, self.number, None)
        self.put(op, *args, symbol=self.step.function.name)

    def _single(self) -> None:
        if self.inner == self.ends:
            self._step("call", self.y)
            return
        state = self.fresh_state("state")
        self.each("alloc", state)
        self._step("call", state)
        copied(self, self.y, state)
        self._step("uncall", state)
        self.each("free", state)

    def _cut(self, radix: Expr) -> None:
        size = apply("//", plus(self.n, minus(radix, 1)), radix)
        count = apply("//", minus(plus(self.n, self.size), 1), self.size)
        held: tuple[tuple[Place, Expr], ...] = ((self.size, size), (self.pieces, count))
        for reg, value in held:
            self.put("alloc", reg, value)
        self.each("alloc", self.row)
        last, one = minus(self.pieces, 1), integer(1)
        first, here, before = (self.row.at(k) for k in (integer(0), self.k, minus(self.k, 1)))
        start, done = apply("*", self.k, self.size), apply("*", last, self.size)

        def piece(op: str, y: State | None, x: State, done: Expr | int, n: Expr, to: str) -> None:
            self.put(op, *self.arguments(y, x, self.numbered(done), None), n, symbol=to)

        def row(op: str) -> None:
            piece(op, here, before, start, self.size, self.inner)

        piece("call", first, self.x, 0, self.size, self.inner)
        self.over(self.k, one, last, 1, lambda: row("call"))
        end = self.row.at(minus(self.pieces, 2))
        piece("call", self.y, end, done, minus(self.n, done), self.ends)
        self.over(self.k, minus(last, 1), integer(0), -1, lambda: row("uncall"))
        piece("uncall", first, self.x, 0, self.size, self.inner)
        for leaf in reversed(self.places(self.row)):
            self.put("free", leaf)
        for reg, value in reversed(held):
            self.put("free", reg, value)


def bennett_functions(
    step: Step,
    n: int | None,
    radix: int,
    goal: str,
    name: str,
    span: Span | None,
    taken: Collection[str] = (),
) -> list[Function]:
    """Bennett's recursion with `radix` pieces, of the goal persist or erase, the outermost first.

    That one has the step's parameters, and one for the number of steps if n is None.  UsageError
    P001: no radix.
    """
    if radix < 2:
        raise UsageError("P001", "a radix is 2 or more", values={"radix": radix})
    used = {*taken, name}
    inner, erase = (unique(f"{name}.{part}", used) for part in ("persist", "erase"))
    ends = erase if goal == "erase" else inner

    def whole(w: StepWriter, count: Expr) -> None:
        w.put("call", *w.arguments(w.y, w.x, w.number, None), count, symbol=ends)

    found = [
        counted(step, n, LONGEST, whole).function(name, span),
        _Recursion(step, radix, inner, inner).function(inner, span),
    ]
    if ends != inner:
        found.append(_Recursion(step, radix, inner, erase).function(erase, span))
    return found
