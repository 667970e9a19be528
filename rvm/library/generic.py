"""Generic functions of a text as Python callables: each call is of the function for its types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rvm.derive.target import Target
from rvm.faults import UsageError
from rvm.library.handle import FunctionHandle
from rvm.program import Program
from rvm.state import Options

if TYPE_CHECKING:
    from rvm.derive.gradients import Pullback
    from rvm.run.machine import Machine
    from rvm.run.results import Result


class GenericFunction(FunctionHandle):
    """A function with type parameters, which follow from the arguments: see `of`.

    It is called, run back, mapped and differentiated as any function.  What is asked without
    arguments is asked of the function for types, `lib["axpy[f32]"]`.
    """

    def __init__(
        self, program: Program, name: str, *, undo: bool = False, options: Options | None = None
    ) -> None:
        assert program.generics is not None
        self.program = program
        self.name = name
        self.undo = undo
        self._options = options or Options()
        self._parameters = program.generics.parameters(name)
        self._known = frozenset(self._parameters)

    def of(self, /, *args: Any, **inputs: Any) -> FunctionHandle:
        """The function for the types of these arguments.

        NumPy's arrays have the types of their elements; plain numbers, which are asked last, may be
        of any type that fits: f64 where i64 does not.  AssemblyError A071 where nothing says it.
        """
        options, values = self._split(args, inputs)
        return self._for(values, options)

    def for_values(self, values: Mapping[str, Any]) -> FunctionHandle:
        return self._for(values, self._options)

    def _for(self, values: Mapping[str, Any], options: Options) -> FunctionHandle:
        found = self.program.having(self.name, values)
        assert found is not None
        return FunctionHandle(*found, undo=self.undo, options=options)

    @property
    def parameters(self) -> tuple[str, ...]:
        return self._parameters

    @property
    def options(self) -> Options:
        return self._options

    @property
    def target(self) -> Target:  # type: ignore[override]
        raise UsageError(
            "U043",
            f"`{self.name}` is generic, and here are no arguments that say for which types",
            hint=f'name them: lib["{self.name}[f64]"]',
        )

    def __invert__(self) -> FunctionHandle:
        return GenericFunction(self.program, self.name, undo=not self.undo, options=self._options)

    def with_options(self, **options: Any) -> FunctionHandle:
        return GenericFunction(self.program, self.name, undo=self.undo, options=self._with(options))

    def machine(self, /, *args: Any, **inputs: Any) -> Machine:
        return self.of(*args, **inputs).machine(*args, **inputs)

    def __call__(self, /, *args: Any, **inputs: Any) -> Result:
        return self.of(*args, **inputs)(*args, **inputs)

    def pullback(self, /, *args: Any, **inputs: Any) -> Pullback:
        return self.of(*args, **inputs).pullback(*args, **inputs)

    def target_of(
        self, given: Mapping[str, Any] | None, inputs: Mapping[str, Any]
    ) -> tuple[Target, dict[str, Any]]:
        values = {**(given if isinstance(given, Mapping) else {}), **inputs}
        named = {n: v for n, v in values.items() if n in self._known}
        return self.for_values(named).target_of(given, inputs)

    def _split(
        self, args: tuple[Any, ...], inputs: Mapping[str, Any]
    ) -> tuple[Options, dict[str, Any]]:
        if not args and inputs.keys() == self._known:
            return self._options, dict(inputs)
        return super()._split(args, inputs)

    def __repr__(self) -> str:
        return f"<generic function {'~' * self.undo}{self.name}({', '.join(self._parameters)})>"


__all__ = ["GenericFunction"]
