"""The declarations of a program: all files' functions, constants, records and macros by name."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import NoReturn

from rvm.expr import LENGTHS, Apply, Const, Expr, Place
from rvm.isa import OPCODES, TypeFault, typed
from rvm.program import Dim, Function, Param, Program, Source, Span
from rvm.types import I64
from rvm_asm.constants import Constants
from rvm_asm.derivatives import Derivative
from rvm_asm.expressions import operator_name
from rvm_asm.generics import A_RECORD, Types
from rvm_asm.includes import Includes, Refused
from rvm_asm.literals import NO_NUMBER
from rvm_asm.messages import Reporter
from rvm_asm.names import plain
from rvm_asm.nodes import Declared, FieldStep, Lit, Node, Ref, TypeRef, Word
from rvm_asm.parser import parse_file
from rvm_asm.positions import read_positions
from rvm_asm.registers import RegisterWriter, TypeProblem, layout
from rvm_asm.scope import Binding, Length, NameGroup, Slot
from rvm_asm.source import SourceMap
from rvm_asm.stats import (
    Constant,
    Declaration,
    EntryDef,
    Func,
    Include,
    Keep,
    Macro,
    Pure,
    RecordDef,
)

_Specialise = Callable[[Func, Types, Word], str]
_Signature = tuple[tuple[str, Binding], ...]
"""A function's parameters: names and meanings."""


class Declarations:
    """All declarations, and the sources of the texts."""

    def __init__(
        self, includes: Includes | None = None, reporter: type[Reporter] = Reporter
    ) -> None:
        self.sources = SourceMap(reporter.words)
        self.report = reporter(self.sources)
        self._includes = includes or Includes("none", (), None)
        self.constants = Constants(self.report)
        self.functions: dict[str, Func] = {}
        self.generics: dict[str, Func] = {}
        """The functions that have type parameters, or take functions."""
        at = Word(A_RECORD, 0, 0)
        number = TypeRef("f64", None, None, None, 0, 0)
        indices = TypeRef("i64", None, None, [Lit(2, 0, 0)], 0, 0)
        fields = [Declared("x", number, 0, 0), Declared("k", indices, 0, 0)]
        self.records = {A_RECORD: RecordDef(at, [], fields)}
        self.macros: dict[str, Macro] = {}
        self.pures: dict[str, Pure] = {}
        self.excused: dict[str, set[str]] = {}
        """For each function's name the names on unreadable lines of its file."""
        self.entries: dict[int, EntryDef] = {}
        """The entry function that each file declares, by the file's index."""
        self.keeps = True
        """Whether copies are kept of values that are undone and used later."""
        self.keeps_values = False
        """Whether expressions that are passed are values, never bijections of a place."""
        self.keeps_numbers = False
        self.keeps_faults = False
        """Whether what every run would stop at is left to the run."""
        self.as_python = False
        """Whether types are those of Python: whole numbers are real beside real ones, and a generic
        function promises nothing for types that it is not called with."""
        self.usual_entry = ""
        """The function that the entry is, if it is generic and no types are named with it."""
        self.positions: tuple[dict[int, Span], tuple[Source, ...]] | None = None
        """The contents of the first file's position comments, if there are any."""
        self.signatures: dict[str, _Signature] = {}
        self.heads: dict[str, Function] = {}
        """The functions with their parameters alone."""
        self.made: dict[str, tuple[Func, Types]] = {}
        """The declaration of each function, and the values of its type parameters."""
        self.changed: dict[str, frozenset[int]] = {}
        """The parameters that functions change, where bijections of places are passed."""
        self.mapped: dict[str, Func] = {}
        """The functions made by `map`, with those that they are of, whose bodies they have.

        Linked functions they call, and texts show them.
        """
        self.generated: list[Function] = []
        """Functions made by statements, in addition to declared ones."""
        self.iterated: dict[tuple[object, ...], str] = {}
        """The function called by each `iterate`, by its place and text."""
        self.derivatives: dict[str, Derivative] = {}
        """The derivatives of functions that calls name, by their names."""
        self.scheduled = 0
        """The number of instructions in the schedules of `iterate`, without Bennett's."""
        self.specialise: _Specialise | None = None
        """Makes a generic function for types; gives the name by which it is known."""
        self._words: dict[str, Word] = {}
        self.linked: dict[int, tuple[Program, dict[str, str]]] = {}
        """The programs of which functions are linked, by identity, with the names of these here."""

    def read(self, name: str, text: str, path: Path | None = None) -> None:
        """Parse a text and everything that it includes, and enter the declarations."""
        self._includes.enter(path, len(text))
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        file = self.sources.add(name, text)
        if file.index == 0:
            self.positions = read_positions(text)
        declarations, excused = parse_file(file, self.report)
        for d in declarations:
            if isinstance(d, Include):
                self._include(d, path)
            elif isinstance(d, EntryDef):
                self._entry(d)
            elif isinstance(d, Keep):
                self.keeps &= d.what != "none"
                self.keeps_values |= d.what == "values"
                self.keeps_numbers |= d.what == "numbers"
                self.keeps_faults |= d.what == "faults"
            else:
                self.enter(d, excused)
        self._includes.leave()

    def again(self) -> Declarations:
        """The same declarations, before anything is generated from them."""
        out = copy(self)
        out.sources = self.sources.copy()
        out.report = type(self.report)(out.sources)
        out.report.warned = self.report.warned
        out.constants = copy(self.constants)
        out.constants.report = out.report
        out.signatures, out.heads, out.made, out.generated, out.iterated = {}, {}, {}, [], {}
        out.macros, out.mapped = dict(self.macros), {}
        out.derivatives, out.scheduled = {}, 0
        out.changed, out.specialise = {}, None
        return out

    def _include(self, node: Include, path: Path | None) -> None:
        try:
            found = self._includes.find(node.path, path)
            if found is not None:
                target, text = found
                self.read(str(target or node.path), text, target)
        except Refused as error:
            self.report.about(node, error.code, error.message, notes=error.notes, hint=error.hint)

    def _entry(self, d: EntryDef) -> None:
        word = d.name
        file = self.sources.file(word.start).index
        if file in self.entries:
            first = self.entries[file].name
            self.report.about(
                word,
                "A006",
                "the entry is named twice",
                also=((first.start, first.end, "first here"),),
            )
        self.entries[file] = d

    @property
    def own(self) -> list[str]:
        """The functions of the first file; those of all files if it has none."""
        written = {n: f for n, f in self.functions.items() if f.linked is None}
        found = [n for n, f in written.items() if not self.sources.file(f.start).index]
        return found or list(written)

    @property
    def entry(self) -> EntryDef | None:
        """The declaration of the entry: in the first file, or in another if that has none."""
        if 0 in self.entries:
            return self.entries[0]
        own = self.own
        return next((d for d in self.entries.values() if d.name.text in own), None)

    def is_declared(self, name: str) -> bool:
        """Whether a name, as texts write it, means something."""
        return name in self._words

    def enter(self, d: Declaration, excused: set[str]) -> None:
        assert not isinstance(d, (Include, EntryDef, Keep))
        word = d.name
        first = self._words.get(word.text)
        if first is not None:
            self.report.about(
                word,
                "A006",
                f"`{plain(word.text)}` is declared twice",
                also=((first.start, first.end, "first here"),),
            )
            return
        self._words[word.text] = word
        match d:
            case Func():
                self.functions[word.text] = d
                if d.is_generic:
                    self.generics[word.text] = d
                self.excused[word.text] = excused
            case Constant():
                self.constants.definitions[word.text] = d
            case RecordDef():
                self._distinct(d.fields, "field")
                self.records[word.text] = d
            case Macro():
                if word.text in OPCODES:
                    self.report.about(
                        word,
                        "A006",
                        f"`{word.text}` is an instruction",
                        hint="give the macro another name",
                    )
                self._distinct(d.formals, "parameter")
                self.macros[word.text] = d
            case Pure():
                self._distinct(d.formals, "parameter")
                self.pures[word.text] = d

    def _distinct(self, words: list[Declared] | list[Word], what: str) -> None:
        seen: set[str] = set()
        for w in words:
            text = w.text if isinstance(w, Word) else w.name
            if text in seen:
                self.report.about(w, "A006", f"two {what}s are called `{plain(text)}`")
            seen.add(text)


class Signing:
    """Builds the parameters of one function: their registers, layouts and dimension variables."""

    def __init__(self, program: Declarations, registers: RegisterWriter, func: Func) -> None:
        self.program = program
        self.report = program.report
        self.registers = registers
        self.func = func
        self.names: dict[str, Binding] = {}
        self.params: list[Param] = []
        self._written = [p for p in func.params if not p.is_function]
        self._parameters = {p.name for p in self._written}

    def build(self) -> bool:
        """Enter all parameters; False if some mean nothing (which is reported)."""
        fine = True
        self.program._distinct(self.func.params, "parameter")
        for p in self._written:
            try:
                binding = self.registers.declare(p, self._dimension)
            except (TypeProblem, TypeFault):
                fine = False
                continue
            if p.zero and not self._has_size(binding):
                fine = False
                self.report.about(
                    p,
                    "A063",
                    f"`{p.name}` can't begin as zero: its size is not known here",
                    hint="a number, or an array whose lengths are constants",
                )
            self.names[p.name] = binding
            self.params.append(Param(plain(p.name), layout(binding), p.zero))
        for name, slot in self.registers.aliases.items():
            self.names.setdefault(name, slot)
        return fine

    def _has_size(self, binding: Binding) -> bool:
        if not isinstance(binding, Slot):
            return False
        return all(isinstance(d, Const) for d in self.registers.list[binding.reg].dims)

    def _dimension(self, node: Node | None, slot: Slot, axis: int) -> Expr | None:
        """A parameter's length: a new name is bound to it, anything else must equal it."""
        if node is None:
            return None
        if isinstance(node, Ref) and not node.steps and node.name not in self.program.constants:
            bound = self.names.get(node.name)
            if isinstance(bound, Length):
                return bound.expr()
            if node.name in self._parameters:
                self._problem(
                    node,
                    f"the length `{node.name}` has the name of a parameter",
                    "call it otherwise: a length is not a register",
                )
            self.names[node.name] = Length(slot, axis)
            self.registers.dims.append(Dim(plain(node.name), slot.reg, axis))
            return None
        try:
            template = self._template(node)
            done = typed(template, I64)
        except TypeFault as fault:
            self._problem(node, fault.message, fault.hint)
        if done.type != I64:
            self._problem(node, f"a length is an i64, not a {done.type}", "")
        return done

    def _template(self, node: Node) -> Expr:
        if isinstance(node, Lit):
            if isinstance(node.value, bytes):
                self._problem(node, NO_NUMBER, "its length is `len(…)`")
            return Const(node.value)
        if isinstance(node, Ref):
            bound = self.names.get(node.name)
            if isinstance(bound, Length) and not node.steps:
                return bound.expr()
            if node.name in self.program.constants and not node.steps:
                literal = self.program.constants.literal(node.name)
                if literal is not None:
                    return self._template(Lit(literal.value, node.start, node.end))
            if isinstance(bound, (Slot, NameGroup)):
                self._problem(
                    node,
                    "the length of a parameter does not depend on a value",
                    "name the length, and `assert` what it must be",
                )
            self._problem(
                node, f"no length `{node.name}` is bound before this", self._bound_by(node)
            )
        assert not isinstance(node, (Lit, Ref))
        text = self.program.constants.text(node.args[0]) if node.args else None
        if node.name == "len" and text is not None:
            return Const(len(text))
        if node.name in LENGTHS and node.args and isinstance(node.args[0], Ref):
            found = self._leaf(node.args[0])
            if found is not None:
                rest = [self._template(a) for a in node.args[1:]]
                return Apply(node.name, (Place(found.reg, (), found.value_type), *rest))
        name = operator_name(node.name, len(node.args))
        return Apply(name, tuple(self._template(a) for a in node.args))

    def _bound_by(self, node: Ref) -> str:
        """A hint about a length that nothing before has bound."""
        for p in self._written:
            for dim in (p.type.dims or ()) if p.type is not None else ():
                if isinstance(dim, Ref) and dim.name == node.name and not dim.steps:
                    return f"put `{plain(p.name)}` before this: its length is `{node.name}`"
        return f"a length that is just a name binds it: `x: f64[{node.name}]`, before this"

    def _leaf(self, node: Ref) -> Slot | None:
        """The register that a name with fields leads to, if it is a parameter's."""
        words = [node.name]
        for step in node.steps:
            if not isinstance(step, FieldStep):
                return None
            words.append(step.name)
        path = ".".join(words)
        return self.registers.aliases.get(path) or self.registers.paths.get(path)

    def _problem(self, node: Node, message: str, hint: str) -> NoReturn:
        self.report.about(node, "A063", message, hint=hint)
        raise TypeProblem
