"""`@rvm.reversible`: functions in Python as functions of the machine.

The source of a function is read, by the front end that is registered for `.py` files, and never
run.  It is compiled at the first call, and again when names that it uses from outside have changed.
"""

from __future__ import annotations

import linecache
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from inspect import Parameter, Signature, signature
from itertools import count
from types import FunctionType
from typing import Any, ParamSpec, Protocol

from rvm.faults import UsageError
from rvm.host.signals import asked
from rvm.library.generic import GenericFunction
from rvm.library.handle import FunctionHandle
from rvm.program import Program, slots_of
from rvm.run.results import Result
from rvm.state import Options
from rvm.types import TYPES, Stack, elem_of

P = ParamSpec("P")


class Translated(Protocol):
    """A Python function as translated by a front end."""

    def is_current(self) -> bool:
        """Whether the names that the function uses from outside are unchanged."""

    def made(self, values: Mapping[str, Any] | None) -> tuple[Program, str] | None:
        """The program for these values, and the function's name in it."""

    def without_lists(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values with lists of numbers as arrays;

        UsageError U046 if the function changes one.
        """

    def finished(self, result: Result, name: str) -> Result:
        """The result of a call in the form that callers receive."""

    def source(self, program: Program, name: str) -> str:
        """The text of a program that has been made, in the assembly language."""


Callee = tuple["PythonOrigin | LinkedOrigin", bool]
"""A function that is called, or passed as an argument, and whether it is undone."""


class Adding(ABC):
    """A function with a value, of which there is a reversible form that adds it to places."""

    @property
    @abstractmethod
    def reversible(self) -> FunctionHandle:
        """The reversible form: places for the value come first, then the parameters."""


class LinkedOrigin:
    """A function of a program, which those that call it contain too."""

    functions: Mapping[str, Callee] = {}
    defaults: Mapping[str, Any] = {}

    def __init__(self, program: Program, name: str, adds: bool) -> None:
        self.program = program
        self.name = name
        self.adds = adds
        """Whether it is the reversible form of a function with a value."""
        function = program.function(name)
        self.parameters = tuple(p.name for p in function.params)
        registers = function.registers[: function.n_args]
        self.kind = TYPES[elem_of(registers[0].type).name].kind if registers else ""
        """The kind of the numbers in its first parameter."""
        self.stacks = frozenset(
            p.name
            for p in function.params
            if any(isinstance(function.registers[s].type, Stack) for s in slots_of(p.layout))
        )

    @property
    def signature(self) -> Signature:
        """The parameters as Python describes them."""
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter(p, kind) for p in self.parameters])

    def taking(self, functions: Mapping[str, Callee]) -> LinkedOrigin:
        """Itself: its parameters are places."""
        return self


def called(value: object) -> Callee | None:
    """The function that an object is, as one that others call; None if it is none, or generic."""
    adds = isinstance(value, Adding)
    if isinstance(value, Adding):
        value = value.reversible
    if isinstance(value, GenericFunction):
        return (value.origin, value.undo) if isinstance(value.origin, PythonOrigin) else None
    if not isinstance(value, FunctionHandle):
        return None
    program, name = value.program, value.name
    key = (LinkedOrigin, name, adds)
    found = program.cache.setdefault(key, LinkedOrigin(program, name, adds))
    assert isinstance(found, LinkedOrigin)
    return found, value.undo


class PythonOrigin:
    """A function in Python, with its translation."""

    def __init__(
        self, function: FunctionType, functions: Mapping[str, Callee] | None = None
    ) -> None:
        self.function = function
        self.functions = dict(functions or {})
        """The functions passed for function parameters, which take no values."""
        inside = ", ".join(f"{'~' * undo}{o.name}" for o, undo in self.functions.values())
        self.name: str = f"{function.__name__}[{inside}]" if inside else function.__name__
        code = function.__code__
        written = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.positional = sum(n not in self.functions for n in written[: code.co_argcount])
        self.parameters = tuple(n for n in written if n not in self.functions)
        self._with: dict[tuple[tuple[str, Callee], ...], PythonOrigin] = {}
        self._translated: Translated | None = None

    def taking(self, functions: Mapping[str, Callee]) -> PythonOrigin:
        """The function with these function parameters filled in."""
        if not functions:
            return self
        key = tuple(sorted(functions.items(), key=lambda item: item[0]))
        found = self._with.get(key)
        if found is None:
            found = self._with[key] = PythonOrigin(self.function, {**self.functions, **functions})
        return found

    def split(self, values: dict[str, Any]) -> tuple[PythonOrigin, dict[str, Any]]:
        functions = {n: f for n, v in values.items() if (f := called(v)) is not None}
        if not functions:
            return self, values
        rest = {n: v for n, v in values.items() if n not in functions}
        return self.taking(functions), rest

    @property
    def signature(self) -> Signature:
        """The parameters as written."""
        return signature(self.function)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The default values of parameters."""
        f = self.function
        values = f.__defaults__ or ()
        count = f.__code__.co_argcount
        names = f.__code__.co_varnames[count - len(values) : count]
        found = {**dict(zip(names, values, strict=True)), **(f.__kwdefaults__ or {})}
        return {n: v for n, v in found.items() if n not in self.functions}

    @property
    def translated(self) -> Translated:
        """The translation for the present values of names from outside."""
        found = self._translated
        if found is None or not found.is_current():
            found = self._translated = _front_end().translate(self)
        return found

    def program(self) -> Program | None:
        return None

    def made(self, values: Mapping[str, Any] | None) -> tuple[Program, str] | None:
        return self.translated.made(values)

    def completed(self, values: dict[str, Any], positional: int) -> dict[str, Any]:
        if positional > self.positional:
            raise UsageError(
                "U005",
                f"`{self.name}` takes {self.positional} arguments in order, not {positional}",
                hint=f"it takes: {', '.join(self.parameters)}",
            )
        if len(values) < len(self.parameters):
            for name, value in self.defaults.items():
                values.setdefault(name, value)
        for value in values.values():
            if type(value) is list:
                return self.translated.without_lists(values)
        return values

    def finished(self, result: Result, name: str) -> Result:
        # What made it: the call has just looked whether that is current.
        found = self._translated
        return result if found is None else found.finished(result, name)

    def source(self, program: Program, name: str) -> str:
        return self.translated.source(program, name)

    def reduced(self, undo: bool, options: Options) -> tuple[Any, ...]:
        return _again, (self.function.__module__, self.function.__qualname__, undo, options)


def _again(module: str, name: str, undo: bool, options: Options) -> GenericFunction[...]:
    """Unpickle a function by its name, as Python does for functions."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert isinstance(found, GenericFunction)
    return GenericFunction(found.origin, undo=undo, options=options)


class Decorator:
    """`rvm.reversible`: makes a Python function one of the machine."""

    @asked
    def __call__(self, function: Callable[P, None]) -> GenericFunction[P]:
        """Return the function as a reversible one, with inverse, gradients and the rest.

        Its source is read at the first call. AssemblyError if a statement cannot be undone or has
        no meaning; UsageError U048 if there is no source.
        """
        if not isinstance(function, FunctionType):
            raise UsageError(
                "U048",
                f"`rvm.reversible` takes a function, not {type(function).__name__}",
                hint="put it next to `def`, below other decorators",
            )
        made: GenericFunction[P] = GenericFunction(PythonOrigin(function))
        return update_wrapper(made, function)  # type: ignore[return-value]

    @asked
    def source(
        self, text: str, globals: dict[str, Any] | None = None, name: str = ""
    ) -> GenericFunction[...]:
        """The last function that a text defines, for generated code.

        `globals` holds the names that the text may use from outside.
        """
        file = name or f"<reversible {next(_texts)}>"
        names: dict[str, Any] = {"__name__": __name__, **(globals or {})}
        lines = text.splitlines(keepends=True)
        linecache.cache[file] = len(text), None, lines, file
        before = set(map(id, names.values()))
        exec(compile(text, file, "exec"), names)
        found = [
            v
            for v in names.values()
            if isinstance(v, (FunctionType, GenericFunction)) and id(v) not in before
        ]
        if not found:
            raise UsageError("U048", "the text defines no function", hint="`def f(x): …`")
        last = found[-1]
        if isinstance(last, GenericFunction):
            return last
        # It may call itself, by its name.
        made = names[last.__name__] = self(last)
        return made

    def __repr__(self) -> str:
        return "rvm.reversible"


_texts = count(1)
reversible = Decorator()


@cache
def _front_end() -> Any:
    from rvm.library.frontends import needed

    return needed("py", "functions in Python")


__all__ = ["Adding", "LinkedOrigin", "PythonOrigin", "Translated", "called", "reversible"]
