"""Functions of a program as Python callables, `f(…)`, `~f`, and libraries of such functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from inspect import Signature
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from rvm.codes.words import count, described, instead
from rvm.derive.estimate import gradient_check
from rvm.derive.gate import later
from rvm.derive.target import Target
from rvm.faults import UsageError
from rvm.host.signals import Listening, asked, interrupted, is_ctrl_c
from rvm.library.description import Documented, documentation, signature
from rvm.program import (
    AnyProgram,
    Function,
    Holder,
    Program,
    head_text,
    program_of,
    unknown_function,
)
from rvm.run.backup import snapshot
from rvm.run.direct import direct_of
from rvm.run.doors import door
from rvm.run.kept import Kept
from rvm.run.machine import OPTION_NAMES, Machine
from rvm.run.results import Result, is_of_a_run, values_of
from rvm.run.transaction import Check, transact
from rvm.state import Options
from rvm.transform.programs import differentiated

if TYPE_CHECKING:
    from rvm.derive.gradients import Pullback
    from rvm.library.lane_map import LaneMap


Inputs = Mapping[str, Any]
"""Values by parameter."""


class FunctionHandle:
    """A callable function of a program; `~f` is its inverse, also a FunctionHandle.

    A call takes every parameter by name, or in order, and returns all of them by name.  Arrays and
    lists are updated in place.  A call is a transaction: on any exception, including Ctrl-C and
    exceptions of callbacks, the caller's data is restored, bit for bit (unless `on_error="stop"`).
    With `error=True`, `info.error` of the result estimates how far each number is off. `f(result)`
    is `f(**result)`: the values of a result by name.  `(~f)(result)` undoes a strict call exactly,
    by the log kept in the result; R019 if the values have changed since.
    """

    def __init__(
        self, program: AnyProgram, name: str, *, undo: bool = False, options: Options | None = None
    ) -> None:
        program = program_of(program)
        if name not in program:
            found = program.having(name)
            if found is None:
                raise unknown_function(name, program)
            program, name = found
        self.target = Target(program, name, undo, options or Options())
        """The function as a target of derivatives."""
        self.program = program
        self.name = name
        self.undo = undo
        self._known = frozenset(self.parameters)

    @property
    def function(self) -> Function:
        """The function's code and registers."""
        return self.program.function(self.name)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters' names in order."""
        return tuple(p.name for p in self.function.params)

    @property
    def called(self) -> str:
        """The function in the notation of callers: `f`, `~f`."""
        return f"(~{self.name})" if self.undo else self.name

    @property
    def options(self) -> Options:
        """The options of its runs."""
        return self.target.options

    def __invert__(self) -> FunctionHandle:
        return FunctionHandle(self.program, self.name, undo=not self.undo, options=self.options)

    @door
    def with_options(self, **options: Any) -> FunctionHandle:
        """The same function with other options, whatever the names of its parameters."""
        return FunctionHandle(self.program, self.name, undo=self.undo, options=self._with(options))

    def _with(self, options: Mapping[str, Any]) -> Options:
        for name in options:
            if name not in OPTION_NAMES:
                raise UsageError(
                    "U004",
                    f"there is no option `{name}`",
                    hint=instead(name, OPTION_NAMES, f"options: {', '.join(OPTION_NAMES)}"),
                )
        return replace(self.options, **options)

    def for_values(self, values: Inputs) -> FunctionHandle:
        """The instance for the types of these arguments; itself unless it is generic."""
        return self

    @door
    def machine(self, /, *args: Any, **inputs: Any) -> Machine:
        """A machine on these inputs, stopped before the first instruction."""
        options, values = self._split(args, inputs)
        return Machine.start(self.program, self.name, values, options, undo=self.undo)

    def __call__(self, /, *args: Any, **inputs: Any) -> Result:
        try:
            kept: Kept | None = None
            if len(args) == 1 and is_of_a_run(result := args[0]):
                kept = result.info.log
                args, inputs = (), values_of(result) | inputs
            options, values = self._split(args, inputs)
            if kept is not None and not options.strict:
                options = replace(options, strict=True)
            if not options.error:
                direct = direct_of(self.program, self.name, self.undo, options, kept)
                found = None if direct is None else direct.call(values, options, kept, self._check)
                if found is not None:
                    return found
            with Listening():
                return self._on_machine(values, options, kept)
        except KeyboardInterrupt as error:
            if is_ctrl_c(error):
                raise interrupted() from None
            raise

    def _on_machine(self, values: Inputs, options: Options, kept: Kept | None) -> Result:
        asked = options.error
        if asked:
            options = replace(options, error=False)
        is_judged = not self.undo and differentiated(self.program, self.name) is not None
        if is_judged:
            options = later(options)
        machine = Machine.start(self.program, self.name, values, options, undo=self.undo)
        if kept is not None:
            kept.hand_to(machine)
        regs = machine.state.frames[0].regs
        check = self._check(snapshot(self.function, regs), options) if is_judged else None
        if not asked:
            return transact(machine, values, check=check)
        from rvm.derive.result_errors import Judging

        judging = Judging(replace(self.target, options=options), machine, kept is not None, check)
        found = transact(machine, values, check=judging)
        return Result(values_of(found), replace(found.info, judge=judging.found))

    def _check(self, start: Sequence[Any], options: Options) -> Check | None:
        """The check of a run from these registers, if it computes a gradient."""
        return gradient_check(self.program, self.name, self.undo, start, options)

    @property
    @door
    def map(self) -> LaneMap:
        """The function over lanes: `f.map(x=xs, …)`, `f.map.grad(loss="y", x=xs, …)`."""
        from rvm.library.lane_map import LaneMap

        return LaneMap(self)

    # ------------------------------------------------------------ derivatives

    @property
    @door
    def gradient_program(self) -> Library:
        """The program that computes the gradient of this function; see `rvm.gradient`."""
        return Library(self.target.gradient_program)

    @door
    def upright(self) -> FunctionHandle:
        """An equal function in forward direction: for an inverse, that of the inverse program."""
        if not self.undo:
            return self
        return FunctionHandle(self.target.upright().program, self.name, options=self.options)

    @door
    def pullback(self, /, *args: Any, **inputs: Any) -> Pullback:
        """Run the function forwards and return its pullback, which has the `result`."""
        from rvm.derive.gradients import Pullback

        options, values = self._split(args, inputs)
        return Pullback(self._target(options), values)

    @door
    def grad(
        self,
        given: Inputs | None = None,
        /,
        *,
        loss: str,
        wrt: Collection[str] | None = None,
        **inputs: Any,
    ) -> Result:
        """dL/dx for every parameter x that has an adjoint (or for those in `wrt`).

        Inputs are given by name, or in the mapping `given`, for example if a parameter is called
        `loss`.

        `loss` names a real scalar among the results: `y`, `x[2]`, `p.vel[0, 1]`, `z.re`.  The
        adjoint of an array has its shape. That of a complex number is dL/dRe + i dL/dIm, that of a
        `fixed` a float, and that of a `log64` is with respect to its logarithm.  The inputs are not
        changed.

        `info.error` of the result estimates its error. It is computed when first read, from the
        inputs as they are then, or at once with `error=True`.
        """
        return self._gradient(given, loss, wrt, inputs, valued=False)[1]

    @door
    def value_and_grad(
        self,
        given: Inputs | None = None,
        /,
        *,
        loss: str,
        wrt: Collection[str] | None = None,
        **inputs: Any,
    ) -> tuple[float, Result]:
        """The loss after the run, and its gradient; see `grad`."""
        return self._gradient(given, loss, wrt, inputs, valued=True)

    def _gradient(
        self,
        given: Inputs | None,
        loss: str,
        wrt: Collection[str] | None,
        inputs: Mapping[str, Any],
        valued: bool,
    ) -> tuple[float, Result]:
        target, values = self.target_of(given, inputs)
        direct = _direct().direct_gradient(target, loss, wrt, valued)
        found = None if direct is None else direct.run(values, wrt, target.options)
        if found is None:
            from rvm.derive.gradients import Pullback

            pull = Pullback(target, values)
            pull.seed(loss)
            found = pull.value(loss), pull(wrt)
        _at_once(found[1], target)
        return found

    @door
    def vjp(
        self,
        seeds: Inputs,
        given: Inputs | None = None,
        /,
        *,
        wrt: Collection[str] | None = None,
        **inputs: Any,
    ) -> Result:
        """The adjoints of the inputs, from adjoints of the results given by parameter."""
        target, values = self.target_of(given, inputs)
        found = _direct().direct_vjp(target, seeds, values, wrt)
        if found is None:
            from rvm.derive.gradients import Pullback

            pull = Pullback(target, values)
            pull.seed_all(seeds)
            found = pull(wrt)
        return _at_once(found, target)

    @door
    def jvp(
        self, tangents: Inputs, given: Inputs | None = None, /, **inputs: Any
    ) -> tuple[Result, Result]:
        """The results and their tangents, from tangents of the inputs given by parameter.

        They have an `info.error` only with `error=True`.
        """
        from rvm.derive.directions import jvp

        target, values = self.target_of(given, inputs)
        return jvp(target, tangents, values)

    @door
    def jacobian(
        self,
        given: Inputs | None = None,
        /,
        *,
        of: Collection[str] | None = None,
        wrt: Collection[str] | None = None,
        **inputs: Any,
    ) -> Result:
        """`j[y][x]`: the derivatives of the result `y` by the input `x`, with joined shapes.

        For all parameters that carry derivatives or those named; of what shape see `hessian`.
        `info.error` is as that of `grad`.
        """
        from rvm.derive.matrices import jacobian

        target, values = self.target_of(given, inputs)
        return _at_once(jacobian(target, of, wrt, values), target)

    @door
    def hessian(
        self,
        given: Inputs | None = None,
        /,
        *,
        loss: str,
        wrt: Collection[str] | None = None,
        method: str = "forward-over-reverse",
        **inputs: Any,
    ) -> Result:
        """`h[a][b]`: the second derivatives of the loss by `a` and `b`, with joined shapes.

        A record has those of its fields, a stack is a row of numbers, and of a complex number the
        derivatives by both parts are a last axis of length 2.  `method`: "forward-over-reverse"
        takes tangents of the gradient program, one for each number in `wrt`; "taylor" propagates
        all second derivatives in one run back.  `info.error` is as that of `grad`.
        """
        from rvm.derive.hessians import hessian

        target, values = self.target_of(given, inputs)
        return _at_once(hessian(target, loss, wrt, values, method), target)

    @door
    def hvp(
        self, tangents: Inputs, given: Inputs | None = None, /, *, loss: str, **inputs: Any
    ) -> Result:
        """The Hessian of the loss times a direction, which `tangents` gives by parameter.

        `info.error` is as in `grad`.
        """
        from rvm.derive.hessians import hvp

        target, values = self.target_of(given, inputs)
        return _at_once(hvp(target, loss, tangents, values), target)

    def target_of(self, given: Inputs | None, inputs: Inputs) -> tuple[Target, dict[str, Any]]:
        """The function to differentiate, and its inputs; names in a mapping are never options."""
        if given is not None and not inputs and type(given) is dict:
            return self.target, given.copy()
        options, values = self._split((), inputs)
        if given is not None and not isinstance(given, Mapping):
            raise UsageError(
                "U005",
                f"inputs are passed by name, or in one mapping, not as {described(given)}",
                hint=f"`{self.name}` takes: {', '.join(self.parameters)}",
            )
        for name, value in (given or {}).items():
            if name in values:
                raise UsageError("U005", f"`{self.name}` got `{name}` twice")
            values[name] = value
        return self._target(options), values

    def _target(self, options: Options) -> Target:
        return self.target if options is self.options else replace(self.target, options=options)

    def _split(
        self, args: tuple[Any, ...], inputs: Mapping[str, Any]
    ) -> tuple[Options, dict[str, Any]]:
        if not args and inputs.keys() == self._known:
            return self.target.options, dict(inputs)
        names = self.parameters
        if len(args) > len(names):
            raise UsageError(
                "U005",
                f"`{self.name}` takes {count(len(names), 'argument')}, not {len(args)}",
                hint=f"these: {', '.join(names)}" if names else "",
            )
        values = dict(zip(names, args, strict=False))
        given: dict[str, Any] = {}
        for name, value in inputs.items():
            if name in values:
                raise UsageError("U005", f"`{self.name}` got `{name}` twice")
            if name in OPTION_NAMES and name not in names:
                given[name] = value
            else:
                values[name] = value
        return replace(self.options, **given) if given else self.options, values

    def __repr__(self) -> str:
        return f"<function {'~' * self.undo}{self.name}({head_text(self.function)})>"

    @property
    def __signature__(self) -> Signature:
        """The parameters with their types."""
        return signature(self.function)

    def comment(self) -> str:
        """The comment at the head of its source text."""
        return documentation(self.program.sources, self.name)


@cache
def _direct() -> ModuleType:
    """The module of direct gradients, imported at first use."""
    from rvm.derive import direct_gradient

    return direct_gradient


def _at_once(found: Result, target: Target) -> Result:
    """Derivatives, with their error if `error=True` requests it."""
    if target.options.error:
        found.info.estimate()
    return found


FunctionHandle.__doc__ = cast(str, Documented(FunctionHandle.__doc__))


class Library(Holder):
    """A program whose functions are callables: `lib.f`, or `lib["f"]` for any name.

    A library is accepted wherever a program is, and equals its program.
    """

    __slots__ = ("_program",)

    def __init__(self, program: AnyProgram) -> None:
        self._program = program_of(program)

    @property
    def program(self) -> Program:
        """The program as data."""
        return self._program

    @asked
    def __getitem__(self, name: str) -> FunctionHandle:
        if name not in self._program and name in self.generics:
            from rvm.library.generic import GenericFunction, TextOrigin

            return GenericFunction(TextOrigin(self._program, name))
        return FunctionHandle(self._program, name)

    @asked
    def __getattr__(self, name: str) -> FunctionHandle:
        if name.startswith("_") or name not in self:
            raise AttributeError(f"the program has no function `{name}`")
        program = self._program
        return FunctionHandle(program, name) if name in program else self[name]

    @asked
    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._program, *self.generics})

    def __contains__(self, name: object) -> bool:
        return name in self._program or name in self.generics

    @property
    def generics(self) -> tuple[str, ...]:
        """The names of the text's generic functions; the program has some of their instances."""
        generics = self._program.generics
        return () if generics is None else generics.names

    @asked
    def having(self, *functions: str) -> Library:
        """The library of a program that has these functions too: `lib.having("axpy[f32]")`.

        A bytecode file holds the functions of the program, but no generic ones.
        """
        program = self._program
        for name in functions:
            found = program.having(name)
            if found is None:
                self[name]  # which says that there is no such function
            else:
                program = found[0]
        return Library(program)

    def __iter__(self) -> Iterator[str]:
        return iter(self._program)

    def __len__(self) -> int:
        return len(self._program.functions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AnyProgram):
            return NotImplemented
        return self._program == program_of(other)

    def __hash__(self) -> int:
        return hash(self._program)

    def __repr__(self) -> str:
        return f"<library of {', '.join(self)}; entry {self._program.entry}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Library, (self._program,)

    def __copy__(self) -> Library:
        return self

    def __deepcopy__(self, memo: Any) -> Library:
        return self


__all__ = ["FunctionHandle", "Library"]
