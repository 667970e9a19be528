"""The counters and bounds of `for` loops, which nothing in a loop's body may change.

Each way to change one becomes an instruction that writes it. So the lowered code is checked, not
the text: this includes macros, undone routines and calls of functions defined later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rvm.expr import Place
from rvm.isa import ENDS, MAKES
from rvm.program import Instr
from rvm.verify import written_operands


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """The body of a `for`, instructions `start` to `stop`, and its variable and bounds by name."""

    start: int
    stop: int
    held: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _CounterChange:
    """An instruction in a body, the operand that it changes, and the loop's name for it."""

    pc: int
    operand: int
    name: str
    is_freed: bool


def changes(
    code: Sequence[Instr], loops: Sequence[CountedLoop], inout: Mapping[str, Collection[int]]
) -> Iterator[_CounterChange]:
    """The instructions in loop bodies that change the loops' counters or bounds.

    `inout` are for each function the parameters that it changes.
    """
    begin: dict[int, list[CountedLoop]] = {}
    end: dict[int, list[CountedLoop]] = {}
    for loop in loops:
        begin.setdefault(loop.start, []).append(loop)
        end.setdefault(loop.stop, []).append(loop)
    held: dict[int, str] = {}
    for pc, instr in enumerate(code):
        for loop in end.get(pc, ()):
            for reg in loop.held:
                held.pop(reg, None)
        for loop in begin.get(pc, ()):
            if loop.start < loop.stop:
                held.update(loop.held)
        if held:
            is_memory = instr.op in MAKES or instr.op in ENDS
            written = (0,) if is_memory else written_operands(instr, inout.get(instr.symbol, ()))
            for k in written:
                place = instr.args[k]
                if isinstance(place, Place) and place.reg in held:
                    yield _CounterChange(pc, k, held[place.reg], is_memory)
