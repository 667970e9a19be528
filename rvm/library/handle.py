"""Functions of a program as Python callables: `f(…)`, `~f`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rvm.derive.gate import gradient_check
from rvm.faults import UsageError
from rvm.host.signals import Listening, interrupted, is_ctrl_c
from rvm.program import Function, Program, type_text
from rvm.run.binding import Result
from rvm.run.direct import direct_of, transact
from rvm.run.machine import OPTION_NAMES, Machine
from rvm.state import Options

if TYPE_CHECKING:
    from rvm.derive.gradients import Pullback
    from rvm.library.lane_map import LaneMap


Inputs = Mapping[str, Any]
"""Values by parameter."""


class FunctionHandle:
    """A function of a program, callable; `~f` is its inverse, itself such a function.

    A call takes every parameter by name, or in order, and gives all of them back by name.  Arrays
    and lists are updated in place.  A call is a transaction: on any exception, Ctrl-C and those of
    callbacks included, the caller's data is as it was, bit for bit (unless `on_error="stop"`).
    """

    def __init__(
        self,
        program: Program,
        name: str,
        *,
        undo: bool = False,
        options: Options | None = None,
    ) -> None:
        if name not in program:
            raise UsageError(
                "U001",
                f"the program has no function `{name}`",
                hint=f"it has: {', '.join(program)}",
            )
        self.program = program
        self.name = name
        self.undo = undo
        self._options = options or Options()
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
    def options(self) -> Options:
        """The options that it runs with."""
        return self._options

    def __invert__(self) -> FunctionHandle:
        return FunctionHandle(self.program, self.name, undo=not self.undo, options=self._options)

    def with_options(self, **options: Any) -> FunctionHandle:
        """The same function with other options, whatever its parameters are called."""
        for name in options:
            if name not in OPTION_NAMES:
                raise UsageError(
                    "U004",
                    f"there is no option `{name}`",
                    hint=f"options: {', '.join(OPTION_NAMES)}",
                )
        return FunctionHandle(
            self.program, self.name, undo=self.undo, options=replace(self._options, **options)
        )

    def machine(self, /, *args: Any, **inputs: Any) -> Machine:
        """A machine on these inputs, stopped before the first instruction."""
        options, values = self._split(args, inputs)
        return Machine.start(self.program, self.name, values, options, undo=self.undo)

    def __call__(self, /, *args: Any, **inputs: Any) -> Result:
        options, values = self._split(args, inputs)
        try:
            direct = direct_of(self.program, self.name, self.undo, options)
            found = None if direct is None else direct.call(values, options)
            if found is not None:
                return found
            with Listening():
                machine = Machine.start(self.program, self.name, values, options, undo=self.undo)
                regs = machine.state.frames[0].regs
                check = gradient_check(self.program, self.name, self.undo, regs, options)
                return transact(machine, values, check=check)
        except KeyboardInterrupt as error:
            if is_ctrl_c(error):
                raise interrupted() from None
            raise

    @property
    def map(self) -> LaneMap:
        """This function over lanes: `f.map(x=xs, …)`, `f.map.grad(loss="y", x=xs, …)`."""
        from rvm.library.lane_map import LaneMap

        return LaneMap(self)

    # ------------------------------------------------------------ derivatives

    @property
    def gradient_program(self) -> Program:
        """The program that differentiates this function; see `rvm.transform.gradient`."""
        from rvm.transform.programs import gradient_program

        handle = self.upright()
        return gradient_program(handle.program, handle.name)

    def upright(self) -> FunctionHandle:
        """The same function as one that runs forwards: an inverse, of the inverse program."""
        if not self.undo:
            return self
        from rvm.transform import invert

        program = self.program.cache.get(invert)
        if not isinstance(program, Program):
            program = self.program.cache[invert] = invert(self.program)
        return FunctionHandle(program, self.name, options=self._options)

    def pullback(self, /, *args: Any, **inputs: Any) -> Pullback:
        """The function run forwards, ready to pass adjoints back; its `result` can be looked at."""
        from rvm.derive.gradients import Pullback

        options, values = self._split(args, inputs)
        return Pullback(self, values, options)

    def grad(
        self,
        given: Inputs | None = None,
        /,
        *,
        loss: str,
        wrt: Collection[str] | None = None,
        **inputs: Any,
    ) -> Result:
        """dL/dx for every parameter x that carries an adjoint (or those in `wrt`).

        Inputs go by name, or in the mapping `given`: there a parameter may be called `loss`.

        `loss` names a scalar place of the results: `y`, `x[2]`, `p.vel[0, 1]`, `z.re`.  An array's
        adjoint has its shape, a complex one is dL/dRe + i dL/dIm, that of a `fixed` is a float, and
        that of a `log64` is by its logarithm.  The inputs are left as they were.
        """
        return self.value_and_grad(given, loss=loss, wrt=wrt, **inputs)[1]

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
        from rvm.derive.direct_gradient import direct_gradient
        from rvm.derive.gradients import Pullback

        options, values = self._merged(given, inputs)
        direct = direct_gradient(self, loss, options)
        found = None if direct is None else direct.run(values, wrt, options)
        if found is not None:
            return found
        pull = Pullback(self, values, options)
        pull.seed(loss)
        return pull.value(loss), pull(wrt)

    def vjp(
        self,
        seeds: Inputs,
        given: Inputs | None = None,
        /,
        *,
        wrt: Collection[str] | None = None,
        **inputs: Any,
    ) -> Result:
        """The inputs' adjoints, from adjoints of the results given by parameter."""
        from rvm.derive.direct_gradient import direct_vjp
        from rvm.derive.gradients import Pullback

        options, values = self._merged(given, inputs)
        found = direct_vjp(self, seeds, values, wrt, options)
        if found is not None:
            return found
        pull = Pullback(self, values, options)
        pull.seed_all(seeds)
        return pull(wrt)

    def jvp(
        self, tangents: Inputs, given: Inputs | None = None, /, **inputs: Any
    ) -> tuple[Result, Result]:
        """The results, and their tangents from tangents of the inputs given by parameter."""
        from rvm.derive.directions import jvp

        options, values = self._merged(given, inputs)
        return jvp(self, tangents, values, options)

    def jacobian(
        self,
        given: Inputs | None = None,
        /,
        *,
        of: Collection[str] | None = None,
        wrt: Collection[str] | None = None,
        **inputs: Any,
    ) -> Result:
        """`j[y][x]`: the derivatives of the result `y` by the input `x`, shapes joined.

        For all parameters that carry derivatives or those named; of what shape see `hessian`.
        """
        from rvm.derive.directions import jacobian

        options, values = self._merged(given, inputs)
        return jacobian(self, of, wrt, values, options)

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
        """`h[a][b]`: the second derivatives of the loss by the inputs `a` and `b`, shapes joined.

        A record has those of its fields, a stack is a row of numbers, and of a complex number the
        derivatives by both parts are a last axis of length 2.  `method`: "forward-over-reverse"
        takes tangents of the gradient program, one for each number in `wrt`; "taylor" propagates
        all second derivatives in one run back.
        """
        from rvm.derive.hessians import hessian

        options, values = self._merged(given, inputs)
        return hessian(self, loss, wrt, values, options, method)

    def hvp(
        self, tangents: Inputs, given: Inputs | None = None, /, *, loss: str, **inputs: Any
    ) -> Result:
        """The Hessian of the loss times a direction, which `tangents` gives by parameter."""
        from rvm.derive.hessians import hvp

        options, values = self._merged(given, inputs)
        return hvp(self, loss, tangents, values, options)

    def _merged(self, given: Inputs | None, inputs: Inputs) -> tuple[Options, dict[str, Any]]:
        """Options and inputs: those in a mapping are inputs, whatever they are called."""
        options, values = self._split((), inputs)
        if given is not None and not isinstance(given, Mapping):
            raise UsageError(
                "U005",
                f"inputs go by name, or in one mapping, not as {type(given).__name__}",
                hint=f"`{self.name}` takes: {', '.join(self.parameters)}",
            )
        for name, value in (given or {}).items():
            if name in values:
                raise UsageError("U005", f"`{self.name}` got `{name}` twice")
            values[name] = value
        return options, values

    def _split(
        self, args: tuple[Any, ...], inputs: Mapping[str, Any]
    ) -> tuple[Options, dict[str, Any]]:
        if not args and inputs.keys() == self._known:
            return self._options, dict(inputs)
        names = self.parameters
        if len(args) > len(names):
            raise UsageError("U005", f"`{self.name}` takes {len(names)} arguments, not {len(args)}")
        values = dict(zip(names, args, strict=False))
        given: dict[str, Any] = {}
        for name, value in inputs.items():
            if name in values:
                raise UsageError("U005", f"`{self.name}` got `{name}` twice")
            if name in OPTION_NAMES and name not in names:
                given[name] = value
            else:
                values[name] = value
        return replace(self._options, **given) if given else self._options, values

    def __repr__(self) -> str:
        f = self.function
        inside = ", ".join(
            f"{p.name}: " + (type_text(f, p.layout) if isinstance(p.layout, int) else p.layout.name)
            for p in f.params
        )
        return f"<function {'~' * self.undo}{self.name}({inside})>"


Program.handle = FunctionHandle

__all__ = ["FunctionHandle"]
