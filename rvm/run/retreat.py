"""Ways back out of code that is executed only forwards."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from rvm.image import Code, image_of
from rvm.image.traps import Trap, Traps
from rvm.probes.armed import Armory, Bindings, arm, disarm

if TYPE_CHECKING:
    from rvm.run.machine import Machine


def come_out(machine: Machine) -> None:
    """Reverse a machine, and go to where no frame is inside code that is executed only forwards.

    From there on, the registers that distinguish the directions are false.
    """
    state = machine.state
    if state.direction > 0:
        state.turn()
    while (found := state.retreat()) is not None:
        depth, out = found
        arm(state, Armory(image_of(machine.program), _traps), {}, {depth: out})
        try:
            machine.go()
        finally:
            disarm(state)


def _traps(code: Code, bindings: Bindings, extra: Hashable) -> Mapping[int, Traps]:
    return {extra: (Trap("out"),)} if isinstance(extra, int) else {}
