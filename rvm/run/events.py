"""Events: a run notifies a monitor of instructions, calls, checks and memory, as they happen.

Only the requested events are instrumented; between two events the engine runs freely, and an
unmonitored machine runs plain code.  Events occur in both directions; going back, an event names
the inverse instruction, which is the one executed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from rvm.expr import Const
from rvm.image import Code, image_of
from rvm.image.traps import Trap, Traps
from rvm.isa import ENDS, MAKES
from rvm.probes.armed import Armory, Bindings, arm, disarm, plain_code
from rvm.program import Instr
from rvm.run.machine import Machine

KINDS = ("before", "after", "call", "return", "check", "alloc", "free")
"""The kinds of events.

`before` and `after` each instruction; `call`: a function was entered; `return`: it was left;
`check`: a condition or a freed value was checked successfully; `alloc`, `free`: memory was
allocated or freed.
"""
Where = Callable[[Code, int], bool]


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    `time` is the machine's: before the instruction for `before`, after it for all others.  `pc` is
    the instruction's index in its function as written; -1 for a return.
    """

    kind: str
    time: int
    direction: int
    code: Code
    pc: int


def observe(
    machine: Machine,
    listen: Callable[[Event], object],
    kinds: Collection[str],
    *,
    where: Where | None = None,
    ticks: int | None = None,
) -> int:
    """Run in the present direction (for `ticks`, or to the end), and call `listen` for each event.

    `where(code, pc)` restricts events to some instructions (for returns, pc is the code's length).
    Return the number of ticks executed. After an error or Ctrl-C the machine is in the same state
    as without a monitor.
    """
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise ValueError(f"no kinds of events: {', '.join(sorted(unknown))}")
    from rvm.engines.reference import step

    asked = frozenset(kinds)

    def traps(code: Code, bindings: Bindings, extra: Hashable) -> Mapping[int, Traps]:
        found = {
            pc: (Trap("event"),)
            for pc, instr in enumerate(code.instrs)
            if kinds_of(instr) & asked and (where is None or where(code, pc))
        }
        if "return" in asked and (where is None or where(code, len(code))):
            found[len(code)] = (Trap("event"),)
        return found

    state, done = machine.state, 0
    arm(state, Armory(image_of(machine.program), traps), {}, {})
    try:
        while not state.at_end and (ticks is None or done < ticks):
            top = state.frames[-1]
            if top.pc not in top.code.traps:
                done += machine.go(None if ticks is None else ticks - done)
                continue
            code, pc = plain_code(top.code), top.pc
            returning = pc == len(code)
            if not returning and "before" in asked:
                listen(Event("before", state.time, state.direction, code, code.forward_pc(pc)))
            with np.errstate(all="ignore"):
                step(state)
            done += 1
            if returning:
                listen(Event("return", state.time, state.direction, code, -1))
                continue
            for kind in KINDS[1:]:
                if kind in asked & kinds_of(code.instrs[pc]):
                    at = code.forward_pc(pc)
                    listen(Event(kind, state.time, state.direction, code, at))
    finally:
        disarm(state)
    return done


def kinds_of(instr: Instr) -> frozenset[str]:
    """The kinds of events that an instruction causes."""
    found = {"before", "after"}
    if instr.op in ("call", "uncall"):
        found.add("call")
    elif instr.op in ("br", "cf"):
        if not (isinstance(instr.args[0], Const) and instr.op == "br"):
            found.add("check")
    elif instr.op in MAKES:
        found.add("alloc")
    elif instr.op in ENDS:
        found |= {"free", "check"}
    return frozenset(found)
