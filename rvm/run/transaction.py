"""Library calls as transactions: any exception restores the caller's data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rvm.faults import Fault, Interrupted
from rvm.host.signals import deferred, followed, heard
from rvm.run.backup import Saved, stacks_of
from rvm.run.backup import saved as save
from rvm.run.binding import from_register
from rvm.run.kept import Kept
from rvm.run.machine import Machine
from rvm.run.results import Result

Check = Callable[[list[Any], float], None]
"""A judgement of the parameters' registers at the end of a run, which it may change, and of its
drift."""
AS_BEFORE = "the arguments are as they were before the call"


@deferred
def transact(
    machine: Machine,
    inputs: Mapping[str, Any],
    saved: Saved | None = None,
    check: Check | None = None,
) -> Result:
    """The results of a machine; on any exception the caller's arrays and lists are restored.

    `saved` has copies of the arrays, if the machine has already begun; with `on_error="stop"` none
    are needed. A `check` raises an error if the results cannot be trusted.
    """
    code, regs = machine.state.frames[0].code, machine.state.frames[0].regs
    stacks = stacks_of(code.function, inputs)
    stops = machine.options.on_error == "stop"
    if saved is None:
        inout = frozenset() if stops else code.image.inout[code.name]
        saved = save(regs, inout, {} if stops else stacks)

    def give() -> None:
        for k, held in stacks.items():
            held[:] = from_register(code.function.registers[k], regs[k])

    # Twice, in case another exception comes while the first is seen to.
    try:
        try:
            machine.run()
            if check is not None:
                check(regs, machine.state.account.drift)
            heard()
            found = machine.result
            if machine.state.logging > 0:
                found = Result(dict(found), replace(found.info, log=Kept.of(machine)))
            give()
            return found
        except BaseException as error:
            if isinstance(error, Fault):
                _told(error, machine, saved)
            if stops:
                give()
            else:
                saved.restore()
            raise
    except BaseException as error:
        later = None if stops else saved.restore()
        if later is not None:
            followed(error, later)
        raise


def _told(error: Fault, machine: Machine, saved: Saved) -> None:
    """Render the values in an error before data are restored, so that it shows the old ones."""
    if machine.options.on_error == "stop":
        error.values.setdefault("machine", machine)
        return
    for name, value in error.values.items():
        if isinstance(value, np.ndarray) and any(
            isinstance(v, np.ndarray) and np.may_share_memory(v, value) for v, _ in saved.pairs
        ):
            error.values[name] = value.copy()
    if isinstance(error, Interrupted):
        error.hint = AS_BEFORE
