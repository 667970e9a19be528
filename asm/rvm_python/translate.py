"""The translation of one function in Python: a program for each combination of argument types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rvm_asm import kept
from rvm_asm.build import Build
from rvm_asm.generics import NUMBERS, RECORD, STACK, TypeValue
from rvm_asm.inference import given
from rvm_asm.names import plain
from rvm_asm.nodes import TypeRef, Word
from rvm_asm.program import Declarations
from rvm_asm.stats import EntryDef

from rvm.codes.words import described
from rvm.faults import InputError, UsageError
from rvm.isa.functions.conversions import conversion_target
from rvm.library.reversible import PythonOrigin
from rvm.numbers import Fixed, system
from rvm.program import Program
from rvm.run.results import Result
from rvm.types import BOOL, C128, F64, I64, Scalar
from rvm.verify import inout_slots
from rvm_python.annotations import WrongType
from rvm_python.unit import Unit

_PLAIN = (BOOL, I64, F64, C128)
"""The types of which Python's own numbers are."""
_NOTHING = TypeRef("", None, None, None, 0, 0)


class Translation:
    """A function with all that it calls, read; its programs are made for types as they come."""

    def __init__(self, origin: PythonOrigin) -> None:
        self._unit = Unit([origin])
        declarations = self._unit.declarations
        self._name = self._unit.named(origin)
        self._func = declarations.functions[self._name]
        self._open = tuple(
            plain(p.name)
            for p in self._func.params
            if p.type is not None and p.type.name in {t.name for t in self._func.types}
        )
        """The parameters whose types the arguments tell."""
        self._stacks = self._unit.stacks(origin)
        self._made: dict[tuple[object, ...], tuple[Program, str]] = {}
        self._builds: dict[str, Build] = {}
        self._found: dict[str, Declarations] = {}
        """The declarations of programs that were kept by another process."""
        self._narrow: dict[str, dict[str, Any]] = {}

    def is_current(self) -> bool:
        return self._unit.captured.is_current()

    def made(self, values: Mapping[str, Any] | None) -> tuple[Program, str] | None:
        if self._open and values is None:
            return None
        key = tuple([self._kind(n, values) for n in self._open])
        found = self._made.get(key)
        if found is None:
            types = [self._type(n, values[n]) for n in self._open] if values is not None else []
            found = self._made[key] = self._build(types)
        return found

    def _kind(self, name: str, values: Mapping[str, Any] | None) -> object:
        """The part of an argument on which its type depends."""
        assert values is not None
        try:
            value = values[name]
        except KeyError:
            raise InputError(
                "I001",
                f"`{plain(self._name)}` needs a value for `{name}`",
                hint=f"it takes: {', '.join(plain(p.name) for p in self._func.params)}",
            ) from None
        if isinstance(value, np.ndarray):
            return value.dtype, value.ndim
        if type(value) is list:
            return list, _class(value[0]) if value else float
        return _class(value)

    def _type(self, name: str, value: Any) -> TypeValue:
        cls = type(value)
        if hasattr(cls, "__rvm_record__"):
            try:
                return TypeValue(RECORD, name=self._unit.record(cls))
            except WrongType as wrong:
                raise InputError("I003", f"`{name}`: {wrong.message}", hint=wrong.hint) from None
        found = given(value)
        if not found.types:
            raise InputError(
                "I003",
                f"`{name}` cannot be {described(value)}",
                hint=f"`{plain(self._name)}` takes numbers, NumPy arrays, lists of numbers and "
                "objects of an `rvm.record` class; others if the parameter's type is annotated",
            )
        if found.is_stack:
            return TypeValue(STACK, found.types[0])
        return TypeValue(NUMBERS, found.types[0], rank=found.rank)

    def _build(self, types: list[TypeValue]) -> tuple[Program, str]:
        declarations = self._unit.declarations.again()
        at = self._func.name
        written = [t.written("", _NOTHING) for t in types] if self._open else None
        declarations.entries = {0: EntryDef(Word(self._name, at.start, at.end), written)}
        key = kept.key_of(declarations)
        program = kept.found(key, declarations) if key is not None else None
        if program is None:
            build = Build(declarations)
            program = build.program()
            self._builds[program.entry] = build
            # Warnings are given each time.
            if key is not None and not build.report.found:
                kept.keep(key, program)
        else:
            self._found[program.entry] = declarations
        self._narrow[program.entry] = self._narrow_types(program)
        return program, program.entry

    def _narrow_types(self, program: Program) -> dict[str, Any]:
        """The parameters without an annotation whose numbers are not those of Python."""
        function = program.function(program.entry)
        found: dict[str, Any] = {}
        for param in function.params:
            if param.name in self._open and isinstance(param.layout, int):
                t = function.registers[param.layout].type
                if isinstance(t, Scalar) and t not in _PLAIN and (t.is_integer or t.is_float):
                    found[param.name] = system(t).dtype.type
        return found

    def finished(self, result: Result, name: str) -> Result:
        narrow = self._narrow.get(name)
        if not narrow:
            return result
        values = {n: narrow[n](v) if n in narrow else v for n, v in result.items()}
        return Result(values, lambda: result.info)

    def without_lists(self, values: dict[str, Any]) -> dict[str, Any]:
        out = dict(values)
        lists = [n for n, v in values.items() if type(v) is list and not self._is_stack(n)]
        for name in lists:
            out[name] = self._array(name, values[name])
        if not lists:
            return out
        found = self.made(out)
        assert found is not None
        program, entry = found
        function = program.function(entry)
        changed = inout_slots(program)[entry]
        for param in function.params:
            if param.name in lists and param.layout in changed:
                raise UsageError(
                    "U046",
                    f"`{plain(self._name)}` changes `{param.name}`, and a list stays as it is",
                    hint=f"pass an array, np.array({param.name}), which is changed in place",
                )
        return out

    def _is_stack(self, name: str) -> bool:
        """Whether a parameter is a stack: by its annotation, or by its uses."""
        if name in self._open:
            return name in self._stacks
        param = next((p for p in self._func.params if plain(p.name) == name), None)
        return param is None or (param.type is not None and param.type.name == "stack")

    def _array(self, name: str, value: list[Any]) -> Any:
        if name in self._open:
            try:
                return np.array(value)
            except ValueError:
                raise InputError(
                    "I003", f"`{name}` is {described(value)}, whose rows are not equally long"
                ) from None
        param = next(p for p in self._func.params if plain(p.name) == name)
        assert param.type is not None
        frac = "" if param.type.frac is None else f"({param.type.frac})"
        t = conversion_target(param.type.name + frac)
        if t is None:
            return value
        try:
            return system(t).array_from_python(value)
        except (TypeError, ValueError, OverflowError) as error:
            message = f"`{name}` is an array of {t}: {error}"
            raise InputError("I003", message, values={name: value}) from None

    def source(self, program: Program, name: str) -> str:
        from rvm_python.rasm import written

        build = self._builds.get(name)
        if build is None:
            build = self._builds[name] = Build(self._found[name])
            build.program()
        return written(build, program)


def _class(value: Any) -> object:
    """A number's class, and the fraction bits of a fixed-point one."""
    return (Fixed, value.frac) if type(value) is Fixed else type(value)
