"""Functions of a program over many inputs: `f.map(x=xs, …)`, and gradients through lanes.

An argument with one dimension more than its parameter differs by lane, and its first axis is that
of the lanes; other arguments are shared.  Unlike a call, `map` does not change its arguments and
returns new arrays.  A failing lane does not affect the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rvm.codes.words import count, described, instead, plainly
from rvm.derive.estimate import gradient_check
from rvm.faults import InputError, RvmError, UsageError
from rvm.host.signals import Listening
from rvm.program import Function
from rvm.run.doors import door
from rvm.run.lane_binding import Lanes, values_of
from rvm.run.lanes import LaneRun, run_lanes
from rvm.run.machine import OPTION_NAMES
from rvm.run.results import Info, Judge, Result
from rvm.state import Options, is_real
from rvm.transform.programs import differentiated

if TYPE_CHECKING:
    from rvm.library.handle import FunctionHandle

MAP_OPTIONS = ("block", "on_error")
"""Options of `map` in addition to those of a run."""


class LaneErrors(RvmError):
    """Some lanes failed: `errors` by lane, as in single runs; `result` of the other lanes.

    Its code, place, values and hint are those of the first error.
    """

    def __init__(self, errors: Mapping[int, RvmError], lanes: int, result: Any) -> None:
        lane, first = next(iter(errors.items()))
        others = f", and {len(errors) - 1} more of {lanes}" if len(errors) > 1 else f" of {lanes}"
        super().__init__(
            first.code,
            f"lane {lane}{others}: {first.message}",
            where=first.where,
            values=first.values,
            notes=first.notes,
            hint=first.hint,
            time=first.time,
            direction=first.direction,
        )
        self.errors = dict(errors)
        self.result = result


class LaneResult(Result):
    """The parameters after a map, by name; those that may differ by lane have the lane axis first.

    `errors`: the errors of failed lanes, by lane (such lanes hold their inputs).  `ticks` and
    `erased_bits` are given for each lane; `info` is that of all lanes together.  `alone`: the lanes
    that ran one by one, because they failed or could not run together.
    """

    __slots__ = ("alone", "erased_bits", "errors", "ticks")
    errors: dict[int, RvmError]
    ticks: NDArray[np.int64]
    erased_bits: NDArray[np.int64]
    alone: tuple[int, ...]

    def __init__(self, values: dict[str, Any], run: LaneRun, judge: Judge | None = None) -> None:
        super().__init__(values, Info.of(run, judge=judge))
        for name, value in (
            ("errors", run.errors),
            ("ticks", run.ticks),
            ("erased_bits", run.erased),
            ("alone", run.alone),
        ):
            object.__setattr__(self, name, value)


class LaneMap:
    """A function over lanes, which can be called and differentiated.

    Its options are those of a run, `on_error` ("raise", the default: raise LaneErrors if a lane
    fails; "return": put the errors in the result) and `block`, the number of lanes that run
    together.
    """

    def __init__(
        self, handle: FunctionHandle, *, on_error: str = "raise", block: int | None = None
    ) -> None:
        if not isinstance(on_error, str) or on_error not in ("raise", "return"):
            message = f'on_error of a map is "raise" or "return", not {plainly(on_error)}'
            raise InputError("I009", message, hint=instead(on_error, ("raise", "return"), ""))
        if block is not None and not (is_real(block) and block >= 1 and block % 1 == 0):
            raise InputError(
                "I009", f"`block` is a whole number of lanes, at least 1, not {described(block)}"
            )
        self.handle = handle
        self.on_error = on_error
        self.block = None if block is None else int(block)

    @property
    def called(self) -> str:
        """The function in the notation of callers."""
        return f"{self.handle.called}.map"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters' names in order."""
        return self.handle.parameters

    def __repr__(self) -> str:
        return f"<map of {self.handle!r}>"

    def __invert__(self) -> LaneMap:
        return LaneMap(~self.handle, on_error=self.on_error, block=self.block)

    @door
    def with_options(self, **options: Any) -> LaneMap:
        """The same map with other options, whatever the names of its parameters."""
        own = {k: options.pop(k) for k in MAP_OPTIONS if k in options}
        handle = self.handle.with_options(**options) if options else self.handle
        return LaneMap(handle, **{"on_error": self.on_error, "block": self.block} | own)

    @door
    def __call__(self, /, *args: Any, **inputs: Any) -> LaneResult:
        """The results by name; the inputs are not changed.

        InputError I020 (no argument has a lane axis), I021 (numbers of lanes differ) and those of a
        single call; LaneErrors if a lane fails.
        """
        chosen, options, values = self._split(args, inputs)
        given = Lanes(chosen.handle.function, values)
        handle = chosen.handle
        with Listening():
            run = run_lanes(
                handle.program,
                handle.name,
                given.regs,
                given.varying,
                options,
                handle.undo,
                block=chosen.block,
            )
            _check_gradients(handle, given, run, options)
            judge: Judge | None = None
            if options.error:
                from rvm.derive.result_errors import estimated, lane_errors

                target = replace(handle.target, options=options)
                judge = estimated(given.function, lane_errors(target, given, run, chosen.block))
        return chosen.finished(given.function, run, given.size, judge)

    def finished(
        self, function: Function, run: LaneRun, size: int, judge: Judge | None = None
    ) -> LaneResult:
        """The result of a run; raises for failed lanes unless `on_error="return"`."""
        found = LaneResult(
            {p.name: values_of(function, p.layout, run.regs) for p in function.params}, run, judge
        )
        if run.errors and self.on_error == "raise":
            raise LaneErrors(run.errors, size, found)
        return found

    # ------------------------------------------------------------ derivatives

    @door
    def grad(
        self, /, *, loss: str, wrt: Collection[str] | None = None, **inputs: Any
    ) -> LaneResult:
        """dL/dx for every parameter x that has an adjoint (or for those in `wrt`).

        `loss` names a real scalar among the results, as for a single gradient; L is the sum of the
        losses of all lanes.  An argument given by lane has an adjoint for each lane, a shared one
        the sum over all lanes that did not fail.
        """
        return self.value_and_grad(loss=loss, wrt=wrt, **inputs)[1]

    @door
    def value_and_grad(
        self, /, *, loss: str, wrt: Collection[str] | None = None, **inputs: Any
    ) -> tuple[NDArray[np.float64], LaneResult]:
        """Each lane's loss after the run, and the gradient; see `grad`."""
        from rvm.derive.lanes_gradient import LaneGradient

        chosen, options, values = self._split((), inputs)
        given = Lanes(chosen.handle.function, values)
        target = replace(chosen.handle.target, options=options)
        with Listening():
            made = LaneGradient(target, given, loss, chosen.block)
            found, run = made.run(wrt)
        result = LaneResult(found, run, made.judge)
        if options.error:
            result.info.estimate()
        if run.errors and chosen.on_error == "raise":
            raise LaneErrors(run.errors, given.size, result)
        return made.losses, result

    def _split(
        self, args: tuple[Any, ...], inputs: Mapping[str, Any]
    ) -> tuple[LaneMap, Options, dict[str, Any]]:
        """The map's options, those of its runs, and the inputs."""
        names = self.handle.parameters
        if len(args) > len(names):
            raise UsageError(
                "U005",
                f"`{self.handle.name}` takes {count(len(names), 'argument')}, not {len(args)}",
            )
        values = dict(zip(names, args, strict=False))
        given: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for name, value in inputs.items():
            if name in values:
                raise UsageError("U005", f"`{self.handle.name}` got `{name}` twice")
            if name not in names and name in MAP_OPTIONS:
                own[name] = value
            elif name not in names and name in OPTION_NAMES:
                given[name] = value
            else:
                values[name] = value
        options = replace(self.handle.options, on_error="back", **given)
        chosen = self.with_options(**own) if own else self
        handle = self.handle.for_values(values)
        if handle is not self.handle:
            chosen = LaneMap(handle, on_error=chosen.on_error, block=chosen.block)
        return chosen, options, values


def _check_gradients(handle: FunctionHandle, given: Lanes, run: LaneRun, options: Options) -> None:
    """Record R017 for the lanes of a gradient whose values did not come back."""
    if handle.undo or differentiated(handle.program, handle.name) is None:
        return
    for lane in range(given.size):
        start = given.lane(lane)
        check = gradient_check(handle.program, handle.name, False, start, options)
        ended = [_of_lane(v, start[k], lane) for k, v in enumerate(run.regs)]
        assert check is not None
        try:
            if lane not in run.errors:
                check(ended, run.drifts[lane])
                for held, v in zip(run.regs, ended, strict=True):
                    # Arrays of a lane are views, in which the check has put values back.
                    if isinstance(held, np.ndarray) and not isinstance(v, np.ndarray):
                        held[lane] = v
        except RvmError as error:
            run.errors[lane] = error


def _of_lane(held: Any, begun: Any, lane: int) -> Any:
    """A register's value in one lane."""
    if isinstance(begun, list):
        return held[lane] if held and isinstance(held[0], list) else held
    if np.ndim(held) == np.ndim(begun):
        return held
    return held[lane] if np.ndim(begun) else held[lane].item()
