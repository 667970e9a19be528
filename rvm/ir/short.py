"""Short loops with calls, which are worth unrolling.

Unrolling lets common computations of their iterations be done once: for the rows of a Jacobian,
which are gradients of one function at one point, this is everything that does not depend on the
row.
"""

from __future__ import annotations

from rvm.expr import Apply, Const
from rvm.image import Code
from rvm.ir.flow import Cycle, Flow
from rvm.verify.pieces import counted

MOST = 4
"""Iterations."""
LONG = 1_000
"""The largest number of instructions in all iterations and their callees: LLVM takes about a
millisecond for each."""


def short(code: Code, flow: Flow) -> frozenset[int]:
    """The come-froms of loops that are worth unrolling.

    They call functions, contain no other loop, nor do these functions, and have a few iterations,
    whose number is known from the text.
    """
    return frozenset(c.head for c in flow.cycles if _is_short(code, flow, c))


def _is_short(code: Code, flow: Flow, cycle: Cycle) -> bool:
    calls = [pc for pc in flow.calls if cycle.head < pc < cycle.back]
    if not calls or any(cycle.head < c.head < cycle.back for c in flow.cycles):
        return False
    many = _iterations(code, cycle)
    if many is None or not 1 < many <= MOST:
        return False
    called = [code.image.program.function(n) for pc in calls for n in _called(code, pc)]
    if any(i.op == "br" and i.aux < pc for f in called for pc, i in enumerate(f.code)):
        return False
    return many * (cycle.back - cycle.head + sum(len(f.code) for f in called)) <= LONG


def _called(code: Code, pc: int) -> tuple[str, ...]:
    return code.image.reachable(code.instrs[pc].symbol)


def _iterations(code: Code, cycle: Cycle) -> int | None:
    """The number of iterations of a `for` with constant bounds; None for other loops."""
    loop = counted(code.instrs, cycle.head - 1, cycle.back + 2)
    match loop and loop.end:
        case Apply("for_end", (Const(int(a)), Const(int(b)), Const(int(by)))):
            return len(range(a, b + (1 if by > 0 else -1), by))
    return None
