"""The engine for runs with traps, if no engine was chosen by name.

It begins with generated Python, which needs no compilation, and changes to machine code if armed
code runs for long and both engines give the same bits.
"""

from __future__ import annotations

from rvm.engines.auto import choose, native_is_there
from rvm.engines.protocol import Engine
from rvm.engines.python import Python
from rvm.faults import UsageError
from rvm.probes.armed import ArmedCode, Armory
from rvm.state import State

WARM = 2_000_000
"""The number of ticks of generated Python after which compiling armed code pays."""


class Watchful:
    """Two engines that stop at traps, one after the other."""

    name = "watchful"
    exact = False

    def __init__(self) -> None:
        self._python = Python()
        self._native: Engine | None = None

    def advance(self, state: State, ticks: int) -> int:
        """Execute up to `ticks` ticks, or up to a trap that is due."""
        armory = armory_of(state)
        if armory is None or not self._may_compile(state):
            return self._python.advance(state, ticks)
        if armory.heat >= WARM:
            try:
                return self._compiled().advance(state, ticks)
            except UsageError:
                if native_is_there():
                    raise
                return self.advance(state, ticks)
        did = self._python.advance(state, min(ticks, WARM))
        armory.heat += did
        return did

    def _may_compile(self, state: State) -> bool:
        """Whether `auto` would change to machine code; its traits are those of plain code."""
        code = state.frames[0].code
        if isinstance(code, ArmedCode):
            code = code.plain
        return choose(code.image, code.name, state.options).then == "native"

    def _compiled(self) -> Engine:
        if self._native is None:
            from rvm.engines.native.engine import Native

            self._native = Native()
        return self._native


def armory_of(state: State) -> Armory | None:
    """The armory that armed a state's frames."""
    return next((f.code.armory for f in state.frames if isinstance(f.code, ArmedCode)), None)
