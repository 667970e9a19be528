"""Functions with type parameters, as Python callables that choose an instance in each call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, cast

from rvm.derive.target import Target
from rvm.faults import UsageError
from rvm.host.signals import asked
from rvm.library.description import Documented, documentation
from rvm.library.handle import FunctionHandle
from rvm.program import Program
from rvm.run.doors import door
from rvm.run.results import is_of_a_run
from rvm.state import Options

if TYPE_CHECKING:
    from rvm.derive.gradients import Pullback
    from rvm.run.machine import Machine
    from rvm.run.results import Result

P = ParamSpec("P")


class Origin(Protocol):
    """The source of a function's instances: a text, or a function in Python."""

    @property
    def name(self) -> str:
        """The name of the function."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that take values, in order."""

    def program(self) -> Program | None:
        """The program if it does not depend on arguments, or that of a text; None otherwise."""

    def made(self, values: Mapping[str, Any] | None) -> tuple[Program, str] | None:
        """The program for these values, by parameter, and the function's name in it.

        `values=None`: the program that serves all values; None if there is none.
        """

    def completed(self, values: dict[str, Any], positional: int) -> dict[str, Any]:
        """A call's values with defaults added; the first `positional` were given by position."""

    def split(self, values: dict[str, Any]) -> tuple[Origin, dict[str, Any]]:
        """The function with its function parameters filled in, and the other values."""

    def finished(self, result: Result, name: str) -> Result:
        """The result of a call in the form that callers receive."""

    def source(self, program: Program, name: str) -> str:
        """The text of an instance's program, in the assembly language."""

    def reduced(self, undo: bool, options: Options) -> tuple[Any, ...]:
        """The pickled form of a function with these options."""


class GenericFunction(FunctionHandle, Generic[P]):
    """A function whose types follow from the arguments: see `of`.

    It is called, run back, mapped and differentiated like any function.  Attributes that take no
    arguments belong to an instance, `lib["axpy[f32]"]`.
    """

    def __init__(
        self, origin: Origin, *, undo: bool = False, options: Options | None = None
    ) -> None:
        self.origin = origin
        self.name = origin.name
        self.undo = undo
        self._options = options or Options()
        self._parameters = tuple(origin.parameters)
        self._known = frozenset(self._parameters)
        self._last: tuple[Program, FunctionHandle] | None = None

    @property
    @asked
    def program(self) -> Program:  # type: ignore[override]
        """The program: that of the text, or the one that serves all arguments."""
        found = self.origin.program()
        return self._alone().program if found is None else found

    @asked
    def of(self, /, *args: Any, **inputs: Any) -> FunctionHandle:
        """The function for the types of these arguments.

        NumPy arrays have the types of their elements. Plain numbers are considered last and take
        any type that fits, such as f64 where i64 does not.  AssemblyError A071 if the types remain
        open.
        """
        return self._for(*self._given(args, inputs))

    @asked
    def for_values(self, values: Mapping[str, Any]) -> FunctionHandle:
        return self._for(*self._taking(self._options, dict(values)))

    def _given(
        self, args: tuple[Any, ...], inputs: Mapping[str, Any]
    ) -> tuple[Origin, Options, dict[str, Any]]:
        """The function that a call needs, its options, and its values."""
        return self._taking(*self._split(args, inputs))

    def _taking(
        self, options: Options, values: dict[str, Any]
    ) -> tuple[Origin, Options, dict[str, Any]]:
        origin, values = self.origin.split(values)
        return origin, options, values

    def _for(self, origin: Origin, options: Options, values: Mapping[str, Any]) -> FunctionHandle:
        found = origin.made(values)
        assert found is not None
        last = self._last
        same = last is not None and last[0] is found[0] and last[1].name == found[1]
        if last is not None and same and options is self._options:
            return last[1]
        handle = FunctionHandle(*found, undo=self.undo, options=options)
        if options is self._options:
            self._last = found[0], handle
        return handle

    @property
    def parameters(self) -> tuple[str, ...]:
        return self._parameters

    @property
    def options(self) -> Options:
        return self._options

    @property
    @asked
    def target(self) -> Target:  # type: ignore[override]
        return self._alone().target

    @property
    def __signature__(self) -> Signature:
        wrapped = self.__dict__.get("__wrapped__")
        if wrapped is not None:
            return inspect.signature(wrapped)
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter(name, kind) for name in self.parameters])

    def comment(self) -> str:
        program = self.origin.program()
        return documentation(program.sources if program is not None else (), self.name)

    def _alone(self) -> FunctionHandle:
        """The only instance; UsageError U043 if the function depends on argument types."""
        found = self.origin.made(None)
        if found is None:
            raise UsageError(
                "U043",
                f"`{self.name}` is generic, and there are no arguments that determine its types",
                hint=f'name them: lib["{self.name}[f64]"], or {self.name}.of(…)',
            )
        return FunctionHandle(*found, undo=self.undo, options=self._options)

    def __invert__(self) -> GenericFunction[P]:
        return self._other(undo=not self.undo, options=self._options)

    @door
    def with_options(self, **options: Any) -> GenericFunction[P]:
        return self._other(undo=self.undo, options=self._with(options))

    def _other(self, undo: bool, options: Options) -> GenericFunction[P]:
        return GenericFunction(self.origin, undo=undo, options=options)

    @asked
    def machine(self, /, *args: Any, **inputs: Any) -> Machine:
        origin, options, values = self._given(args, inputs)
        return self._for(origin, options, values).machine(**values)

    @asked
    def __call__(self, /, *args: P.args, **inputs: P.kwargs) -> Result:
        if len(args) == 1 and is_of_a_run(args[0]):
            # A result of a strict run, which is taken back by the log that it keeps.
            result: Any = args[0]
            origin, options, values = self._given((), {**result, **inputs})
            handle = self._for(origin, options, values)
            rest = {n: v for n, v in inputs.items() if n in values}
            return origin.finished(handle(args[0], **rest), handle.name)
        origin, options, values = self._given(args, inputs)
        handle = self._for(origin, options, values)
        return origin.finished(handle(**values), handle.name)

    @asked
    def pullback(self, /, *args: Any, **inputs: Any) -> Pullback:
        origin, options, values = self._given(args, inputs)
        return self._for(origin, options, values).pullback(**values)

    @asked
    def target_of(
        self, given: Mapping[str, Any] | None, inputs: Mapping[str, Any]
    ) -> tuple[Target, dict[str, Any]]:
        if given is not None and not isinstance(given, Mapping):
            return super().target_of(given, {})  # which says what is wrong with it
        values = {**(given or {}), **inputs}
        for name in inputs:
            if name in (given or ()):
                raise UsageError("U005", f"`{self.name}` got `{name}` twice")
        named = {n: v for n, v in values.items() if n in self._known}
        whole = self.origin.completed(named, 0)
        rest = {n: v for n, v in inputs.items() if n not in whole}
        unknown = {n: v for n, v in (given or {}).items() if n not in whole}
        origin, options, whole = self._taking(self._options, whole)
        handle = self._for(origin, options, whole)
        return handle.target_of({**whole, **unknown}, rest)

    def _split(
        self, args: tuple[Any, ...], inputs: Mapping[str, Any]
    ) -> tuple[Options, dict[str, Any]]:
        if not args and inputs.keys() == self._known:
            return self._options, self.origin.completed(dict(inputs), 0)
        if not inputs and len(args) == len(self._parameters):
            values = dict(zip(self._parameters, args, strict=True))
            return self._options, self.origin.completed(values, len(args))
        if len(args) > len(self._parameters) or inputs.keys() - self._known:
            self.origin.made(None)  # what its text is refused for, as `*args`, comes first
        options, values = super()._split(args, inputs)
        return options, self.origin.completed(values, len(args))

    @property
    @asked
    def source(self) -> str:
        """The program in the assembly language, if it does not depend on types; see `source_of`."""
        handle = self._alone()
        return self.origin.source(handle.program, handle.name)

    @asked
    def source_of(self, /, *args: Any, **inputs: Any) -> str:
        """The program for the types of these arguments, in the assembly language."""
        origin, options, values = self._given(args, inputs)
        handle = self._for(origin, options, values)
        return origin.source(handle.program, handle.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.origin.reduced(self.undo, self._options)

    def __repr__(self) -> str:
        return f"<generic function {'~' * self.undo}{self.name}({', '.join(self.parameters)})>"


GenericFunction.__doc__ = cast(str, Documented(GenericFunction.__doc__))


class TextOrigin:
    """A generic function in the text of a program."""

    def __init__(self, program: Program, name: str) -> None:
        assert program.generics is not None
        self._program = program
        self.name = name
        self.parameters = program.generics.parameters(name)

    def program(self) -> Program | None:
        return self._program

    def made(self, values: Mapping[str, Any] | None) -> tuple[Program, str] | None:
        return None if values is None else self._program.having(self.name, values)

    def completed(self, values: dict[str, Any], positional: int) -> dict[str, Any]:
        return values

    def split(self, values: dict[str, Any]) -> tuple[Origin, dict[str, Any]]:
        return self, values

    def finished(self, result: Result, name: str) -> Result:
        return result

    def source(self, program: Program, name: str) -> str:
        raise UsageError("U043", f"`{name}` is of a text, which is its source")

    def reduced(self, undo: bool, options: Options) -> tuple[Any, ...]:
        return _again, (self._program, self.name, undo, options)


def _again(program: Program, name: str, undo: bool, options: Options) -> GenericFunction[...]:
    return GenericFunction(TextOrigin(program, name), undo=undo, options=options)


__all__ = ["GenericFunction", "Origin", "TextOrigin"]
