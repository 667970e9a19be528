"""Derivatives of functions next to the functions themselves, for programs that call them.

A mark after a function's name denotes a derivative: `f'` is its gradient, `f~'` its adjoint, which
goes from results to inputs, and `f.` its tangent.  They are generated as by `gradient` and
`tangent`, in the same program as `f`.  Marks can be combined: `f'.` is the tangent of the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from rvm.faults import DefinitionError, Where
from rvm.program import Function, Program
from rvm.transform.copies import with_copies
from rvm.transform.duals import BAR, DOT, Form, forms, reachable
from rvm.transform.gradient import adjoints_of, there_and_back
from rvm.transform.tangent import tangents_of
from rvm.types import Stack, elem_of
from rvm.verify import inout_slots
from rvm.verify.matching import Restoration

GRADIENT, ADJOINT, TANGENT = "'", "~'", "."


class Mark(NamedTuple):
    """A mark: the derivative that it makes, the names of derivatives, and their suffix."""

    word: str
    duals: str
    suffix: str


MARKS = {
    GRADIENT: Mark("gradient", "bars", BAR),
    ADJOINT: Mark("adjoint", "bars", BAR),
    TANGENT: Mark("tangent", "dots", DOT),
}
Asked = Mapping[str, tuple[Form, str]]
"""For the name of a derived function: the original function, and the mark."""


def adjoint_names(program: Program) -> dict[str, str]:
    """For each function the name of its adjoint."""
    return {n: n + ADJOINT for n in program}


def tangent_names(program: Program) -> dict[str, str]:
    """For each function the name of its tangent."""
    return {n: n + TANGENT for n in program}


def head(f: Function, mark: str, without: frozenset[int] = frozenset()) -> Function:
    """The derived function without code: its name and parameters, which follow from those of `f`.

    `without` are the registers of parameters without bars or dots.
    """
    dims = tuple(d for d in f.dims if d.reg < f.n_args)
    bare = Function(f.name, f.params, f.registers[: f.n_args], (), (), dims)
    of = tangents_of if mark == TANGENT else adjoints_of
    form = Form(f.name, without)
    return of(Program((bare,), f.name), (form,), {f.name: f.name + mark})[form]


def derived(
    program: Program, asked: Asked, names: Iterable[str] | None = None
) -> tuple[Function, ...]:
    """The requested functions, and those that they call, as far as `program` lacks them.

    With `names`, only these, and the functions they are made from.  DefinitionError D011 or D012 if
    a derivative does not exist, D015 if a function calls its own derivative, D016 if one is left
    out that others need.
    """
    making = _Making(program, asked)
    for name in asked if names is None else names:
        making.make(name)
    return tuple(making.functions.values())[len(program.functions) :]


class _Making:
    """Functions to which those that are derived from them are added."""

    def __init__(self, program: Program, asked: Asked) -> None:
        self.functions = {f.name: f for f in program.functions}
        self.asked = asked
        self._sources = program.sources
        self._open: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self.functions

    def make(self, name: str) -> None:
        """Make a function, after all those that it is made from."""
        if name in self:
            return
        form, mark = self.asked[name]
        base = form.name
        if name in self._open:
            chain = ", which needs ".join(f"`{n}`" for n in (*self._open, name))
            raise DefinitionError(
                "D015",
                f"`{base}` calls a derivative of itself: {chain}",
                where=Where(function=name),
                hint="let it call the derivative of another function",
            )
        self._open.append(name)
        self._complete(base)
        program = Program(tuple(self.functions.values()), base, self._sources)
        kept = reachable(program, base)
        end = TANGENT if mark == TANGENT else ADJOINT
        names = {n: n + end for n in kept}
        of = tangents_of if mark == TANGENT else adjoints_of
        missing = (form,) if form.without else forms([n for n in kept if names[n] not in self])
        for made in of(program, missing, names).values():
            # The log of a run undoes all of it, what an adjoint undoes like the rest.
            self.functions.setdefault(made.name, replace(made, undoing=None))
        if mark == GRADIENT:
            f = program.function(base)
            adjoint = self.functions[form.called(names[base], f)]
            made = there_and_back(f, adjoint, name)
            self.functions[name] = with_copies(made, _brought_back(program, f, len(made.code)))
        self._open.pop()

    def _complete(self, name: str) -> None:
        """Make a function, and all that it may call."""
        seen, todo = {name}, [name]
        while todo:
            found = todo.pop()
            if found in self.asked:
                self.make(found)
            for instr in self.functions[found].code:
                if instr.op in ("call", "uncall") and instr.symbol not in seen:
                    seen.add(instr.symbol)
                    todo.append(instr.symbol)


def _brought_back(program: Program, f: Function, end: int) -> Iterator[Restoration]:
    """The values that the gradient of a function changes and restores, which rounding may move.

    Their copies show whether the adjoint was computed from the original values.
    """
    for k in sorted(inout_slots(program)[f.name]):
        t = f.registers[k].type
        if not (isinstance(t, Stack) or elem_of(t).is_exact):
            yield Restoration(k, 0, end)
