"""From functions in Python to declarations: those that are asked for, and all that they call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rvm_asm.linking import link
from rvm_asm.messages import Reporter
from rvm_asm.names import quoted
from rvm_asm.nodes import Declared, TypeParam, TypeRef, Word
from rvm_asm.program import Declarations
from rvm_asm.stats import Func

from rvm.library.reversible import LinkedOrigin, PythonOrigin
from rvm_python.annotations import TypeReader, record_definition
from rvm_python.changes import changed_names, statements
from rvm_python.messages import UNREAD, PythonReporter
from rvm_python.names import Refused
from rvm_python.scope import Captured, Outside, Variable
from rvm_python.source import SourceText, definition
from rvm_python.statements import Statements

Origin = PythonOrigin | LinkedOrigin


class Unit:
    """Functions and what they call, as declarations of the assembler."""

    def __init__(self, roots: Sequence[PythonOrigin]) -> None:
        self.declarations = Declarations(reporter=PythonReporter)
        self.declarations.as_python = True
        self.captured = Captured()
        self._stacks: dict[Origin, set[str]] = {}
        self._passed: dict[Origin, list[tuple[str, Origin, str]]] = {}
        self.records: dict[type, str] = {}
        self._names: dict[Origin, str] = {}
        self._work: list[PythonOrigin] = []
        self._bases: dict[str, int] = {}
        for root in roots:
            self.named(root)
        while self._work:
            self._read(self._work.pop(0))
        self.declarations.report.raise_if_failed()

    @property
    def report(self) -> Reporter:
        return self.declarations.report

    def named(self, origin: Origin) -> str:
        """What a function is called among the declarations; it is read in its turn."""
        known = self._names.get(origin)
        if known is not None:
            return known
        taken = set(self._names.values())
        if isinstance(origin, LinkedOrigin):
            self._stacks[origin], self._passed[origin] = set(origin.stacks), []
            name = link(self.declarations, origin.program, origin.name, taken)
        else:
            names = _names(origin.name, origin.function.__module__)
            is_declared = self.declarations.is_declared
            name = next(n for n in names if n not in taken and not is_declared(n))
            self._work.append(origin)
        self._names[origin] = name
        return name

    def stacks(self, origin: Origin) -> set[str]:
        """The parameters of a function that are stacks, by their uses."""
        work = True
        while work:
            work = False
            for caller, passed in self._passed.items():
                for name, callee, parameter in passed:
                    known = self._stacks[caller]
                    if parameter in self._stacks[callee] and name not in known:
                        known.add(name)
                        work = True
        return self._stacks[origin]

    def record(self, cls: type) -> str:
        """What a class of records is called among the declarations; WrongType if it is none."""
        known = self.records.get(cls)
        if known is not None:
            return known
        taken = {*self.records.values(), *self._names.values()}
        name = next(n for n in _names(cls.__name__, cls.__module__) if n not in taken)
        self.records[cls] = name
        file = self.declarations.sources.add_name(cls.__name__)
        reader = TypeReader(file.base, file.base + len(cls.__name__), self.record)
        self.declarations.records[name] = record_definition(cls, name, reader)
        return name

    def _read(self, origin: PythonOrigin) -> None:
        source, node = definition(origin.function)
        reader = Statements(
            source,
            self._base(source),
            Outside(origin.function, self.captured),
            self.report,
            self.named,
            self.record,
        )
        name = self._names[origin]
        start, end = source.head(node)
        word = Word(name, reader.base + start, reader.base + end)
        reader.functions = origin.functions
        parameters = _Parameters(reader, node, origin)
        try:
            params = parameters.read()
        except Refused:
            params = []
            reader.spoiled |= {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        reader.changed = changed_names(node.body, reader.changes)
        body = reader.body(node.body)
        self._stacks[origin], self._passed[origin] = reader.stacks, reader.passed
        func = Func(word, parameters.types, params, body, word.start, word.end)
        self.declarations.enter(func, set())
        for name, made in reader.permutations.items():
            if name not in self.declarations.functions:
                self.declarations.enter(made, set())

    def _base(self, source: SourceText) -> int:
        """Where a text begins among all texts."""
        if source.name not in self._bases:
            self._bases[source.name] = self.declarations.sources.add(source.name, source.text).base
        return self._bases[source.name]


class _Parameters:
    """The head of a function."""

    def __init__(self, reader: Statements, node: ast.FunctionDef, origin: PythonOrigin) -> None:
        self.reader = reader
        self.node = node
        self.origin = origin
        self.types: list[TypeParam] = []

    def read(self) -> list[Declared]:
        """The parameters; those without an annotation are of any type."""
        reader, args = self.reader, self.node.args
        for star in (args.vararg, args.kwarg):
            if star is not None:
                sign = "*" if star is args.vararg else "**"
                reader.refuse(UNREAD, f"`{sign}{star.arg}` is not a place", star, "name each one")
        written = [
            a
            for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)
            if a.arg not in self.origin.functions
        ]
        inside = self.origin.function.__qualname__.split(".")[:-1]
        if inside and inside[-1] != "<locals>" and written and written[0].arg in ("self", "cls"):
            hint = "put it outside of the class, with the object's places as parameters"
            reader.refuse(UNREAD, "a method is not a reversible function", written[0], hint)
        names = {a.arg for a in written}
        reader.taken = frozenset(_made(self.node) - names)
        out: list[Declared] = []
        for a in written:
            start, end = reader.at(a)
            reader.names[a.arg] = Variable(quoted(a.arg), a.lineno, is_parameter=True)
            try:
                t = self._type(a)
            except Refused:
                reader.spoiled.add(a.arg)
                del reader.names[a.arg]
                continue
            out.append(Declared(quoted(a.arg), t, start, end))
        return out

    def _type(self, a: ast.arg) -> TypeRef:
        start, end = self.reader.at(a)
        if a.annotation is not None:
            return self.reader.annotation(a.annotation)
        name = type_parameter(a.arg)
        self.types.append(TypeParam(Word(name, start, end), [], False, end))
        return TypeRef(name, None, None, None, start, end)


def type_parameter(parameter: str) -> str:
    """What the type of a parameter without an annotation is called."""
    return quoted(f"type({parameter})")


def _made(node: ast.FunctionDef) -> set[str]:
    """The names of places that a function makes itself."""
    found: set[str] = set()
    for n in statements(node.body):
        match n:
            case ast.With(items):
                names = (i.optional_vars for i in items)
                found |= {v.id for v in names if isinstance(v, ast.Name)}
            case ast.For(ast.Name(name)) | ast.AnnAssign(ast.Name(name)):
                found.add(name)
    return found


def _names(name: str, module: str) -> Iterator[str]:
    """Names for something, the plainest first."""
    yield quoted(name)
    yield quoted(f"{module}.{name}")
    k = 2
    while True:
        yield quoted(f"{name} {k}")
        k += 1
