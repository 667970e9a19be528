"""Traces: a counted run, or a window of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import rich_click as click

from rvm.accounts.counts import Counts
from rvm.derive.gradients import Pullback
from rvm.derive.named import dressed, nested
from rvm.faults import InputError, Interrupted
from rvm.library.handle import FunctionHandle
from rvm.program import Function
from rvm.run.backup import snapshot
from rvm.run.machine import Machine
from rvm.state import State
from rvm.types import Stack
from rvm_tools.progress import watching
from rvm_tools.requests import FunctionRequest
from rvm_tools.trace.account import CostAccount, Tally
from rvm_tools.trace.energy import Model
from rvm_tools.trace.energy_models import model
from rvm_tools.trace.slices import Slices


@dataclass(frozen=True, slots=True)
class TraceRequest(FunctionRequest):
    """The command's options and arguments."""

    by: str = "line"
    energy: str = "landauer"
    begin: int = 0
    end: int | None = None
    form: str = "table"
    gradient: str | None = None
    keep_stacks: bool = False


@dataclass(frozen=True)
class Trace:
    """A counted run, or a window of one.

    `first` and `last` are the times between which it was counted; `complete` says whether all of
    the run was, `ended` whether the window reaches its end. With `interrupted` it was stopped by
    Ctrl-C, and this is the account up to there. `slices` are present if requested.
    """

    name: str
    way: str
    engine: str
    first: int
    last: int
    ended: bool
    account: CostAccount
    model: Model
    peak_bytes: int
    residue_bytes: int
    slices: Slices | None = None
    interrupted: Interrupted | None = None

    @property
    def complete(self) -> bool:
        return self.ended and self.first == 0

    @property
    def steps(self) -> int:
        return self.last - self.first

    @cached_property
    def all(self) -> Tally:
        """Everything that was counted."""
        return self.account.all

    def joules(self, tally: Tally) -> float:
        """The energy of some instructions by the trace's model."""
        return self.model.energy(tally)


def traced(request: TraceRequest) -> Trace:
    """Run and count the requested function."""
    used = model(request.energy)
    program, function = request.opened()
    # Standard output is the trace's alone.
    options = request.options(lambda line: click.echo(line, err=True))
    inputs = request.inputs(program, function, "trace")
    handle = FunctionHandle(program, function.name, undo=request.back, options=options)
    if request.gradient is None:
        machine = Machine.start(program, function.name, inputs, options, undo=request.back)
    else:
        machine = differentiating(handle.upright(), request.gradient, inputs)
    return counted(
        machine,
        used,
        request.begin,
        request.end,
        keep_stacks=request.keep_stacks,
        sliced=request.form == "perfetto",
    )


def differentiating(handle: FunctionHandle, loss: str, inputs: Mapping[str, Any]) -> Machine:
    """A machine before a function's gradient program, the adjoint of the loss seeded with one."""
    # The lengths of the adjoints are those of the results, so the function runs once before.
    pull = Pullback(handle.target, inputs)
    pull.seed(loss)
    program = handle.target.gradient_program
    entry = program.function(program.entry)
    values = [*pull.start[: handle.function.n_args], *pull.bars.values()]
    given = {p.name: nested(p.layout, values) for p in entry.params}
    return Machine.start(program, entry.name, dressed(entry, given), handle.options)


def counted(
    machine: Machine,
    used: Model,
    begin: int = 0,
    end: int | None = None,
    *,
    keep_stacks: bool = False,
    sliced: bool = False,
) -> Trace:
    """Count a machine's run from time `begin` to time `end`, or to its end, or to an interrupt.

    The machine stands at its start and is run to `begin` uncounted.  InputError I031 if the run
    ends before that.  With `keep_stacks` what stacks and the log hold at the end is not counted as
    lost; with `sliced` the times of calls are kept as well.
    """
    state, frame = machine.state, machine.state.frames[0]
    function = frame.code.function
    name = "~" * frame.code.undo + function.name
    way = "backwards" if frame.code.undo else "forwards"
    before, logged = _on_stacks(function, snapshot(function, frame.regs)), _logged(state)
    with watching(machine, begin, f"to time {begin:,}"):
        if machine.seek(begin) < begin:
            raise InputError(
                "I031",
                f"the run ends at time {machine.time:,}, before the window begins",
                values={"from": begin, "end of the run": machine.time},
            )
    state.account.peak_bytes = state.account.live_bytes
    slices = Slices([f.code for f in state.frames], begin) if sliced else None
    counts, interrupted = machine.count(Counts(slices)), None
    with watching(machine, end, way):
        try:
            if end is None:
                machine.run()
            else:
                machine.seek(end)
        except Interrupted as error:
            error.hint = "the account is exact, of all that ran until then"
            interrupted = error
    if slices is not None:
        slices.close(machine.time, counts.entered)
    left = kept = 0
    if state.at_end and not keep_stacks:
        left = max(0, _on_stacks(function, frame.regs) - before)
        kept = max(0, _logged(state) - logged)
    return Trace(
        name,
        way,
        machine.engine,
        begin,
        machine.time,
        state.at_end,
        CostAccount(machine.program, counts, left, kept),
        used,
        state.account.peak_bytes,
        machine.residue_bytes,
        slices,
        interrupted,
    )


def _logged(state: State) -> int:
    """The bits in the strict log."""
    return 0 if state.residue is None else state.residue.bits


def _on_stacks(function: Function, regs: Sequence[Any]) -> int:
    """The bits that a function's parameters hold on stacks."""
    return sum(
        r.type.elem.bits * len(held)
        for r, held in zip(function.registers[: function.n_args], regs, strict=False)
        if isinstance(r.type, Stack) and held is not None
    )
