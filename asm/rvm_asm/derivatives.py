"""Calls of derivatives: `call f'(x; x_bar)`, `call f~'(x; x_bar)`, `call f.(x; x_dot)`.

The parameters of what is called are known from those of `f`.  It is made by
`rvm.transform.derived` once all functions are lowered and sound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rvm.expr import Place
from rvm.faults import DefinitionError
from rvm.program import Function, Instr, Layout, Param, Program, slots_of
from rvm.transform.derived import GRADIENT, MARKS, Asked, derived
from rvm.transform.duals import Form, bar_slots
from rvm.types import Stack, elem_of
from rvm.verify import findings
from rvm_asm.messages import Reporter
from rvm_asm.nodes import Node, Ref, Word
from rvm_asm.scope import NameGroup, Slot


class Said(NamedTuple):
    """A parameter of a derivative as callers see it: `x`, the bar of `x`, the dot of the bar."""

    name: str
    of: Slot | NameGroup
    """The function's own parameter."""
    dual: str = ""

    def with_dual(self, mark: str) -> Said:
        """Its bar, or its dot."""
        return self._replace(dual=f"the {MARKS[mark].duals[:-1]} of {self.dual}")

    def text(self, path: str = "") -> str:
        return f"{self.dual or 'parameter '}`{self.name}{path and '.'}{path}`"

    def wanted(self, bars: NameGroup) -> str:
        """A hint: the argument to pass for the bars of a record."""
        assert isinstance(self.of, NameGroup)
        own = dict(zip(self.of.paths(), self.of.leaves(), strict=True))
        fields = dict(zip(bars.paths(), bars.leaves(), strict=True))
        if all(elem_of(own[path].type) == elem_of(slot.type) for path, slot in fields.items()):
            return f"pass a record of the type of `{self.name}`; fields without bars are left alone"
        written = ", ".join(f"{path}: {slot.type}" for path, slot in fields.items())
        return f"bars of fixed-point numbers and of log64 are f64: pass a record with {written}"


class LeftOut(NamedTuple):
    """A bar or dot that is left out: its name, the parameter's registers, and the `_`."""

    what: str
    slots: frozenset[int]
    at: Node


class Derivative(NamedTuple):
    """The derivative that a mark after a function's name denotes, and the place of the call."""

    base: Function
    """The function, as far as callers see it."""
    mark: str
    head: Function
    """Its name and parameters: those of the function, then their bars or dots."""
    at: Word
    without: frozenset[int] = frozenset()
    """The parameters, as registers, whose bars or dots are left out."""
    said: tuple[Said, ...] = ()
    """Its parameters as callers see them."""
    left_out: tuple[LeftOut, ...] = ()

    @property
    def of(self) -> str:
        return self.base.name

    @property
    def params(self) -> list[Param]:
        """The parameters that bars or dots are of, in their order."""
        return [p for p in carrying(self.base) if self.without.isdisjoint(slots_of(p.layout))]


LEFT_OUT = "_"
"""The notation for a bar or dot that is left out."""


def is_left_out(node: Node) -> bool:
    return isinstance(node, Ref) and node.name == LEFT_OUT and not node.steps


def carrying(f: Function) -> list[Param]:
    """The parameters of a function that have bars, in their order."""
    slots = bar_slots(f)
    return [p for p in f.params if any(r in slots for r in slots_of(p.layout))]


def said_of(f: Function, mark: str, said: Sequence[Said], without: frozenset[int]) -> list[Said]:
    """The parameters of a function's derivative, from those of the function."""
    kept = bar_slots(f, without)
    of = zip(f.params, said, strict=True)
    return [
        *said,
        *(s.with_dual(mark) for p, s in of if any(r in kept for r in slots_of(p.layout))),
    ]


def binding(layout: Layout, f: Function) -> Slot | NameGroup:
    """The meaning of a parameter with such a layout."""
    if isinstance(layout, int):
        return Slot(layout, f.registers[layout].type)
    return NameGroup(layout.name, {n: binding(inner, f) for n, inner in layout.fields}, 0)


def listed(f: Function, params: Sequence[Param]) -> str:
    """Some of a function's parameters with their types, for a message."""
    return ", ".join(f"{p.name}: {_type_text(p.layout, f)}" for p in params)


def _type_text(layout: Layout, f: Function) -> str:
    if isinstance(layout, int):
        return str(f.registers[layout].type)
    return f"{{{', '.join(f'{n}: {_type_text(inner, f)}' for n, inner in layout.fields)}}}"


def changing(d: Derivative, own: int) -> Function:
    """A derivative that does nothing but change what it changes: its bars or dots, and what the
    function with `own` parameters changes, which the gradient alone puts back.
    """
    f = d.head
    args, duals = (
        tuple([_place(f, r) for p in params for r in slots_of(p.layout)])
        for params in (f.params[:own], f.params[own:])
    )
    code = [Instr("neg", (dual,)) for dual in duals]
    if d.mark != GRADIENT:
        code.append(Instr("call", args, symbol=d.of))
    return replace(f, code=tuple(code))


def _place(f: Function, reg: int) -> Place:
    t = f.registers[reg].type
    return Place(reg, (), None if isinstance(t, Stack) else t)


def complete(
    program: Program, called: Mapping[str, Derivative], report: Reporter
) -> tuple[Function, ...]:
    """The derivatives that a program's functions call, and those that these call.

    Where something is wrong, which is reported now or by the verifier, they do nothing.
    """
    heads = tuple(d.head for d in called.values())
    if not called or report.failed or findings(Program((*program.functions, *heads), "")):
        return heads
    try:
        asked = {n: (Form(d.of, d.without), d.mark) for n, d in called.items()}
        made = derived(program, asked)
        _refuse_declared(program, called, made, report)
        return made
    except DefinitionError as error:
        refuse = _refuse_left_out if error.code == "D016" else _refuse
        refuse(program, called, error, report)
    return heads


def _refuse_declared(
    program: Program, called: Mapping[str, Derivative], made: Sequence[Function], report: Reporter
) -> None:
    """Report A006 where a declared function is called by the name of a derivative."""
    at = next(iter(called.values())).at
    for name in dict.fromkeys(i.symbol for f in made for i in f.code if i.symbol in program):
        for end, mark in MARKS.items():
            of = name.removesuffix(end)
            if of != name and of in program:
                what = f"`{name}` is declared, and is the {mark.word} of `{of}`"
                report.error("A006", what, at.start, at.end, hint="call the declared one otherwise")
                return


def _refuse(
    program: Program, called: Mapping[str, Derivative], error: DefinitionError, report: Reporter
) -> None:
    where = error.where
    found = (d for d in called.values() if d.of == where.function)
    d = called.get(where.function) or next(found, next(iter(called.values())))
    start, end = d.at.start, d.at.end
    also: tuple[tuple[int, int, str], ...] = ()
    if where.function in program:
        also = ((start, end, f"`{d.of}` is differentiated here"),)
        start, end = report.sources.stretch(program.function(where.function).span(where.pc))
    report.error(error.code, error.message, start, end, also=also, hint=error.hint)


def _refuse_left_out(
    program: Program, called: Mapping[str, Derivative], error: DefinitionError, report: Reporter
) -> None:
    """D016 at each `_` in the way: what stands before it can be left out, and it not besides."""
    asked = {n: (Form(d.of, d.without), d.mark) for n, d in called.items()}
    for name, d in called.items():
        without = frozenset[int]()
        if _trouble(program, asked, name, without) is not None:
            continue  # with what it is made of
        for left in d.left_out:
            found = _trouble(program, asked, name, without | left.slots)
            if found is None:
                without |= left.slots
                continue
            where, also = found.where, []
            if where.function in program:
                span = program.function(where.function).span(where.pc)
                also = [(*report.sources.stretch(span), found.message)]
            report.error(
                found.code,
                f"{left.what} can't be left out: others follow from it",
                left.at.start,
                left.at.end,
                also=also,
                notes=() if also else (found.message,),
                hint=found.hint,
            )
    if not report.failed:
        _refuse(program, called, error, report)


def _trouble(
    program: Program, asked: Asked, name: str, without: frozenset[int]
) -> DefinitionError | None:
    """The error in a derivative with so many duals left out, if any."""
    form, mark = asked[name]
    try:
        derived(program, {**asked, name: (Form(form.name, without), mark)}, (name,))
    except DefinitionError as found:
        return found
    return None
