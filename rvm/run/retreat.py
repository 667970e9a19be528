"""Ways back out of code that is executed only forwards."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from rvm.image import Code, image_of
from rvm.image.traps import Trap, Traps
from rvm.probes.armed import Armory, Bindings, arm, disarm
from rvm.program import Program
from rvm.state import State


def come_out(state: State, program: Program, go: Callable[[], bool]) -> None:
    """Reverse a state, and go to where no frame is inside code that is executed only forwards.

    `go` runs the state to its next stop, and says whether it may go on.  From there on, the
    registers that distinguish the directions are false.
    """
    if state.direction > 0:
        state.turn()
    while (found := state.retreat()) is not None:
        depth, out = found
        arm(state, Armory(image_of(program), _traps), {}, {depth: out})
        try:
            if not go():
                return
        finally:
            disarm(state)


def _traps(code: Code, bindings: Bindings, extra: Hashable) -> Mapping[int, Traps]:
    return {extra: (Trap("out"),)} if isinstance(extra, int) else {}
