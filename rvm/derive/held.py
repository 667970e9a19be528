"""The largest magnitudes that a function's parameters have on the way forwards.

A number that began as zero has no size of its own, and at the end it may be zero again, up to
rounding, as in a gradient whose gradient is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from rvm.derive.evidence import Evidence, muted, raw_size
from rvm.expr import Place
from rvm.run.machine import Machine
from rvm.state import State
from rvm.stmt import Call

OFTEN = 1024
"""The parameters are looked at after each of so many ticks; then after every second tick, so many
times again, and so on."""


def largest_held(known: Evidence) -> dict[int, float]:
    """The largest magnitude of the numbers in each parameter's register, in another run."""
    options = muted(known.options)
    machine = Machine.entered(known.program, known.name, known.begun, options, known.undo)
    found = dict.fromkeys(range(known.function.n_args), 0.0)
    looks, apart = 0, 1
    while True:
        for k, size in _sizes(machine.state, len(found)):
            found[k] = max(found[k], size)
        looks += 1
        if looks % OFTEN == 0:
            apart *= 2
        if not machine.step(apart):
            return found


def _sizes(state: State, n: int) -> Iterator[tuple[int, float]]:
    """The magnitudes of the outermost parameters now, wherever calls have passed them."""
    bound = {k: k for k in range(n)}
    for frame in state.frames:
        for reg, k in bound.items():
            if frame.regs[reg] is not None:
                yield k, raw_size(frame.code.function, reg, frame.regs[reg])
        call = frame.code.stmts(frame.pc)[0] if frame is not state.top else None
        args = enumerate(call.args if isinstance(call, Call) else ())
        bound = {j: bound[a.reg] for j, a in args if isinstance(a, Place) and a.reg in bound}
