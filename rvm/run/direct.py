"""Direct calls of machine code, for short functions in which binding would dominate.

Arguments are converted by `rvm.run.intake`; if one is unusual, the call is made the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rvm.engines import ENGINES
from rvm.engines.auto import choice_of, is_warm
from rvm.engines.native.host import Llvm
from rvm.host.once import once
from rvm.host.signals import Listening, interrupted, is_ctrl_c
from rvm.image import Code
from rvm.program import Program
from rvm.run.backup import Saved, before
from rvm.run.bits import code_of
from rvm.run.intake import ODD, Intake, Taken, takes
from rvm.run.kept import Kept, seal
from rvm.run.machine import Machine
from rvm.run.results import Info, Result, Told
from rvm.run.transaction import AS_BEFORE, Check, transact
from rvm.state import Options
from rvm.transform.programs import differentiated

if TYPE_CHECKING:
    from rvm.engines.native.flight import Flight, Launch
    from rvm.engines.native.gaps import Gaps


CheckOf = Callable[[Sequence[Any], Options], Check | None]
"""A maker of checks of runs, by the registers at the start."""


class Direct:
    """A function in one direction, callable with plain arguments.

    `logging` is its use of a strict log, see `Code.logging`; where it is `judged`, what its values
    have come back to is judged after the run.
    """

    def __init__(self, program: Program, code: Code, checks: bool, logging: int) -> None:
        from rvm.engines.native.flight import Launch
        from rvm.engines.native.gaps import lent

        self.program = program
        self.code = code
        self.logging = logging
        self.judged = not code.undo and differentiated(program, code.name) is not None
        self.lent = lent
        self.launch = Launch(code, checks, logging)
        changed = code.image.inout[code.name]
        self.intake = Intake(code.function, self.launch.layout, changed)
        self.names = self.intake.names
        self.changing = [k for _, k, *_, changes in self.intake.arrays if changes]

    def call(
        self,
        values: Mapping[str, Any],
        options: Options,
        kept: Kept | None = None,
        check_of: CheckOf | None = None,
    ) -> Result | None:
        """The results, with a log if `kept` has one; None where a direct call is not possible."""
        try:
            taken = self.intake.take(values)
        except ODD:
            return None
        flat, arrays, live = taken.flat, taken.arrays, taken.live
        gaps: Gaps | None = None
        if self.logging:
            if kept is not None and not self._is_of(kept, flat, arrays):
                return None
            gaps = self.lent(None if kept is None else kept.log)
            live += gaps.log.bytes
        saved = [(v := arrays[k], before(v)) for k in self.changing]
        check: Check | None = None
        if self.judged and check_of is not None:
            options = replace(options, judged_later=True)
            check = check_of(self._start(taken, saved), options)
        back = True
        # Twice, as another Ctrl-C may come while the first is seen to.
        try:
            try:
                flight = self.launch.run(flat, live, options, gaps)
                if flight.done:
                    if check is not None:
                        regs = self._regs(flight.slots, arrays)
                        check(regs, flight.drift)
                        flight.slots[:] = self.launch.layout.packed(regs)
                    if gaps is not None:
                        return self._logged(flight, arrays, gaps, saved)
                    return self._result(flight, arrays, flight)
                back = options.on_error == "back"
                # Callbacks may change an array's shape, and not that of a view.
                saved = [(v.view(), copy) for v, copy in saved]
                return self._go_on(flight, gaps, values, saved, options, check)
            except BaseException:
                if back:
                    Saved(saved).restore()
                raise
        except BaseException as error:
            if back:
                Saved(saved).restore()
            if is_ctrl_c(error):
                raise interrupted(AS_BEFORE) from None
            raise

    def _go_on(
        self,
        flight: Flight,
        gaps: Gaps | None,
        values: Mapping[str, Any],
        saved: Iterable[tuple[Any, Any]],
        options: Options,
        check: Check | None,
    ) -> Result:
        """The results of a run that began in machine code."""
        with Listening():
            undo = self.code.undo
            machine = Machine.start(self.program, self.code.name, values, options, undo=undo)
            if gaps is not None:
                if self.logging < 0:
                    machine.state.take_back(gaps.log, marked=False)
                else:
                    machine.state.residue = gaps.log
            flight.land(machine.state)
            return transact(machine, values, Saved(saved), check)

    # ------------------------------------------------------------ strict calls

    def _is_of(self, kept: Kept, flat: list[Any], arrays: Mapping[int, Any]) -> bool:
        """Whether a log belongs to these values."""
        regs = self._regs(self.launch.layout.struct.pack(*flat), arrays)
        return kept.is_taken_back_by(self.code.image.program, self.code) and seal(regs) == kept.seal

    def _logged(
        self,
        flight: Flight,
        arrays: Mapping[int, Any],
        gaps: Gaps,
        saved: Iterable[tuple[Any, Any]],
    ) -> Result | None:
        """The results of a strict run; None, with everything as before, if its log is not empty."""
        left, code = len(gaps.log), self.code
        program = code.image.program
        log = gaps.released()
        if self.logging < 0:
            if left:
                Saved(saved).restore()
                return None
            return self._result(flight, arrays, flight)

        def sealed() -> bytes:
            return seal(self._regs(flight.slots, arrays))

        # Arrays may change before the log is asked for.
        now = sealed() if arrays else b""

        def info() -> Info:
            kept = Kept(program, code.name, code.undo, log, now or sealed())
            return replace(Info.of(flight), log=kept)

        return self._result(flight, arrays, info)

    def _start(self, taken: Taken, saved: Sequence[tuple[Any, Any]]) -> list[Any]:
        """The raw values of the parameters' registers before the run."""
        regs = self.intake.raw(taken)
        for k, (v, copy) in zip(self.changing, saved, strict=True):
            regs[k] = np.zeros_like(v) if copy is False else copy
        return regs

    def _regs(self, slots: bytes | bytearray, arrays: Mapping[int, Any]) -> list[Any]:
        """The raw values of the parameters' registers."""
        regs = [arrays.get(k) for k in range(len(self.names))]
        self.launch.layout.unpack(slots, self.launch.parameters, regs, {})
        return regs

    def _result(self, flight: Flight, arrays: Mapping[int, Any], told: Told) -> Result:
        raw = self.launch.layout.struct.unpack(flight.slots)
        out: dict[str, Any] = dict.fromkeys(self.names)
        for name, at, quick, sys, pair in self.intake.scalars:
            v = complex(raw[at], raw[at + 1]) if pair else raw[at]
            out[name] = v if quick is not None else sys.to_python(v)
        for k, v in arrays.items():
            out[self.names[k]] = v
        return Result(out, told)


def is_direct(code: Code, options: Options) -> bool:
    """Whether calls of a code may go straight to machine code, since one call takes many ticks."""
    row = ENGINES.get(options.engine)
    if row is None or not row.compiles or options.max_steps is not None:
        return False
    if not row.chooses:
        return True
    # Until machine code has run here, `auto` takes the way on which it can do without.
    return Llvm.works and is_warm(code, choice_of(code, options))


def launch_of(code: Code, options: Options, logging: int = 0) -> Launch | None:
    """A launcher that runs a code on registers, made at first use; None if options rule it out.

    `logging` is the use of a strict log, see `Code.logging`.
    """
    if not is_direct(code, options):
        return None
    from rvm.engines.native.flight import Launch

    key = (Launch, options.checks, logging)
    return once(code.compiled, key, Launch, lambda: Launch(code, options.checks, logging))


def direct_of(
    program: Program, name: str, undo: bool, options: Options, kept: Kept | None = None
) -> Direct | None:
    """The direct call of a function, with a log if `kept` has one; None if options rule it out."""
    code = code_of(program, name, undo, options)
    if not is_direct(code, options):
        return None
    logging = int(options.strict) if kept is None else -1
    key = (Direct, options.checks, logging)
    found = code.compiled.get(key)
    if found is None:
        able = takes(code.function)
        found = code.compiled[key] = (
            Direct(program, code, options.checks, logging) if able else False
        )
    return found if isinstance(found, Direct) else None
