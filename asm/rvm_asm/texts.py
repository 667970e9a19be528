"""The generic functions of a text, with instances made on request after assembly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rvm.faults import AssemblyError
from rvm.program import Program
from rvm_asm.blocks import Blocks
from rvm_asm.build import Build
from rvm_asm.inference import Given
from rvm_asm.names import plain
from rvm_asm.program import Declarations
from rvm_asm.values import Rejected


def build(declarations: Declarations) -> Program:
    """The verified program of all declarations; AssemblyError with everything that is wrong."""
    is_read = not declarations.report.failed
    try:
        program = Build(declarations).program(check="once")
    except AssemblyError as error:
        if is_read and declarations.generics:
            raise _for_all_types(error, GenericText(declarations)) from None
        raise
    return _with_generics(program, GenericText(declarations)) if declarations.generics else program


def _for_all_types(error: AssemblyError, text: GenericText) -> AssemblyError:
    """The same messages, which name the types concerned in generic functions."""
    try:
        text.check()
    except AssemblyError as whole:
        notes = {(d.code, d.where): d.notes for d in whole.diagnostics}
        return AssemblyError(
            [replace(d, notes=notes.get((d.code, d.where), d.notes)) for d in error.diagnostics]
        )
    return error


class GenericText:
    """The declarations of a text, from which programs with further instances are made."""

    def __init__(self, declarations: Declarations, asked: tuple[str, ...] = ()) -> None:
        self._declarations = declarations
        self._asked = asked
        """Instances in the program besides those that its own functions need."""
        self._functions = {plain(n): f for n, f in declarations.generics.items()}
        self._made: dict[str, tuple[Program, str]] = {}
        self._inferred: dict[tuple[object, ...], str] = {}
        """Functions for arguments of the kinds of which there have been some."""

    def __reduce__(self) -> tuple[Any, ...]:
        return GenericText, (self._declarations.again(), self._asked)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the generic functions."""
        return tuple(self._functions)

    @property
    def entry(self) -> str:
        """The generic function that the entry is, if no types are named there; else ""."""
        return self._declarations.usual_entry

    def parameters(self, name: str) -> tuple[str, ...]:
        """The names of a function's parameters that take values, in order."""
        return tuple(plain(p.name) for p in self._functions[name].params if not p.is_function)

    def check(self) -> None:
        """Check all functions for every type that they may have; AssemblyError if one fails."""
        Build(self._declarations.again()).program(check="all")

    def made(self, function: str) -> tuple[Program, str]:
        """The program extended by an instance, `axpy[f32]`, and the instance's name.

        AssemblyError if there is none, or if something is wrong with it for these types.
        """
        found = self._made.get(function)
        if found is None:
            declarations = self._declarations.again()
            build = Build(declarations)
            wanted = [build.wanted(f) for f in (*self._asked, function)]
            program = build.program(wanted)
            name = plain(build.specialise(*wanted[-1]))
            generics = GenericText(self._declarations, (*self._asked, name))
            # One program for each function, however its types are written.
            found = self._made.setdefault(name, (_with_generics(program, generics), name))
            self._made[function] = found
        return found

    def inferred(self, name: str, values: Mapping[str, Any]) -> str:
        """The function for a caller's values, by parameter: `axpy[f32]`."""
        func = self._functions[name]
        kinds = [(n, *_kind(v)) for n, v in values.items()]
        key = (name, *kinds)
        known = self._inferred.get(key)
        if known is None:
            declarations = self._declarations.again()
            try:
                types = Blocks(declarations, func).inferred(func, values)
            except Rejected:
                declarations.report.raise_if_failed()
                raise
            known = f"{name}[{', '.join(map(str, types.values()))}]"
            if not any(type(part) is object for kind in kinds for part in kind):
                self._inferred[key] = known
        return known


def _kind(value: Any) -> tuple[object, ...]:
    """The part of a caller's value on which inference depends."""
    if isinstance(value, (bool, int, float, complex)):
        return (type(value),)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.names is None:
        return type(value), value.dtype, value.ndim
    return (Given, value) if isinstance(value, Given) else (object(),)


def _with_generics(program: Program, generics: GenericText) -> Program:
    out = replace(program, generics=generics)
    out.cache.update(program.cache)
    return out
