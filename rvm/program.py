"""The program: immutable functions of fixed-width instructions, the form shared by all tools.

An instruction is an opcode with operands; operands are pure expressions and places. Programs have
no records: a parameter of a record type is a layout over several registers, and an array of records
is one array for each field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from rvm.codes.words import described, instead, plainly
from rvm.expr import Apply, Const, Expr, Place
from rvm.faults import UsageError
from rvm.types import Array, RegisterType, Scalar, Stack


class Span(NamedTuple):
    """The position of an instruction in its source: 1-based line and columns, `end` exclusive."""

    source: int = -1
    line: int = 0
    column: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Instr:
    """One instruction.

    `aux` is the partner's index for `br` and `cf`, the direction bits for effects, else -1;
    `symbol` is the callee's name for `call`/`uncall`, the text or name for effects, else "".
    """

    op: str
    args: tuple[Expr, ...] = ()
    aux: int = -1
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Register:
    """A named cell of a frame.

    `dims` holds an array's lengths. For a parameter, each is an expression over other parameters'
    lengths that the caller must satisfy, or None for any length; for a local, it is an expression
    that `alloc` and `free` evaluate. `shape` holds the lengths of the arrays in a stack of arrays;
    the machine moves their numbers one by one.
    """

    name: str
    type: RegisterType
    dims: tuple[Expr | None, ...] = ()
    shape: tuple[int, ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether the machine made it; such registers cannot be named and are not shown."""
        return self.name.startswith(".")


@dataclass(frozen=True, slots=True)
class Record:
    """The layout of a record parameter: its type's name, and each field's layout."""

    name: str
    fields: tuple[tuple[str, Layout], ...]

    def slots(self) -> Iterator[int]:
        """The registers of all leaves, in order."""
        for _, layout in self.fields:
            yield from slots_of(layout)


Layout = int | Record
"""A register's index, or the layouts of a record's fields."""


def slots_of(layout: Layout) -> Iterator[int]:
    """The registers of a layout, in order."""
    if isinstance(layout, int):
        yield layout
    else:
        yield from layout.slots()


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter; all are passed by reference.

    `zero`: it starts as zero if the caller gives no value.
    """

    name: str
    layout: Layout
    zero: bool = False


class Dim(NamedTuple):
    """A dimension variable of a function: the length of axis `axis` of register `reg`."""

    name: str
    reg: int
    axis: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function: parameters, registers (the parameters' first), code and its source spans."""

    name: str
    params: tuple[Param, ...]
    registers: tuple[Register, ...]
    code: tuple[Instr, ...]
    spans: tuple[Span, ...] = ()
    dims: tuple[Dim, ...] = ()
    undoing: frozenset[int] | None = field(default=None, compare=False)
    """The instructions that undo another function, as some of those in an adjoint do.

    Without such marks, all instructions may. Bytecode does not store the marks.
    """
    origins: tuple[int, ...] = field(default=(), repr=False, compare=False)
    """For an adjoint or a tangent: the original instruction of each of its instructions."""
    n_args: int = field(init=False, repr=False, compare=False)
    """The number of registers that a caller fills: the first ones."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_args", len(self.param_slots))

    @property
    def param_slots(self) -> tuple[int, ...]:
        """The registers that a caller fills, in order: 0, 1, …, n-1."""
        return tuple(s for p in self.params for s in slots_of(p.layout))

    def span(self, pc: int) -> Span:
        return self.spans[pc] if 0 <= pc < len(self.spans) else Span()


@dataclass(frozen=True, slots=True)
class Source:
    """A source text from which a program was assembled, kept for messages."""

    name: str
    text: str
    words: Callable[[str], str] | None = field(default=None, repr=False, compare=False)
    """Puts the messages of runs into the words of the text's language, unless it is that of the
    assembler; a function of a module, as programs are pickled.  Bytecode does not store it."""

    def line(self, number: int) -> str | None:
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else None


class Generics(Protocol):
    """The generic functions of the text of a program, known to its front end."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the generic functions."""

    @property
    def entry(self) -> str:
        """The name of the entry if it is generic and given without types, else ""."""

    def parameters(self, name: str) -> tuple[str, ...]:
        """The names of a generic function's parameters that take values, in order."""

    def made(self, function: str) -> tuple[Program, str]:
        """The program extended by an instance, such as `axpy[f32]`, and the instance's name."""

    def check(self) -> None:
        """Check the generic functions for every type they may have; raise an error if one fails."""

    def inferred(self, name: str, values: Mapping[str, Any]) -> str:
        """The name of the instance for a caller's values, by parameter: `axpy[f32]`."""


@dataclass(frozen=True)
class Program:
    """A set of functions, one of which is the entry: data without behaviour.

    `rvm.Library` makes its functions callable. With `generics`, instances for other types can be
    made, in extended programs (`having`).
    """

    functions: tuple[Function, ...]
    entry: str
    sources: tuple[Source, ...] = ()
    generics: Generics | None = field(default=None, repr=False, compare=False)
    _index: dict[str, int] = field(init=False, repr=False, compare=False)
    cache: dict[object, object] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )
    """Data that tools derive from the program (inverse, analyses, generated code), computed
    once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", {f.name: i for i, f in enumerate(self.functions)})

    def __repr__(self) -> str:
        return f"<program of {', '.join(self)}; entry {self.entry}>"

    def function(self, name: str) -> Function:
        """The function called `name`; KeyError if there is none."""
        return self.functions[self._index[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __copy__(self) -> Program:
        return self

    def __deepcopy__(self, memo: Any) -> Program:
        return self

    def having(
        self, name: str, values: Mapping[str, Any] | None = None
    ) -> tuple[Program, str] | None:
        """A program that has the function, with its name there; None if no such function exists.

        A generic function is named with its types, or its types follow from `values`, by parameter;
        without a name it is the entry. AssemblyError if it cannot be made.
        """
        generics = self.generics
        if not name:
            name = (generics.entry if generics is not None and values else "") or self.entry
        if name in self:
            return self, name
        if (
            not isinstance(name, str)
            or generics is None
            or name.split("[")[0].strip("` ") not in generics.names
        ):
            return None
        if name in generics.names:
            name = generics.inferred(name, values or {})
        return (self, name) if name in self else generics.made(name)


def unknown_function(name: object, program: Program) -> UsageError:
    """The error (U001) that a program has no function of a name."""
    known = [*program, *(program.generics.names if program.generics else ())]
    shown = name if isinstance(name, str) else plainly(name)
    hint = instead(name, known, f"it has: {', '.join(known)}")
    return UsageError("U001", f"the program has no function `{shown}`", hint=hint)


class Holder:
    """An object that holds a program and is accepted wherever a program is: `rvm.Library`."""

    __slots__ = ()

    @property
    def program(self) -> Program:
        raise NotImplementedError


AnyProgram = Program | Holder


def program_of(given: AnyProgram) -> Program:
    """The program itself, or that of a library; TypeError for any other object."""
    if isinstance(given, Holder):
        return given.program
    if not isinstance(given, Program):
        raise TypeError(f"expected a program or a library, not {described(given)}")
    return given


def type_text(function: Function, reg: int) -> str:
    """A register's type in the notation of the assembly language: `f64[n, 3]`."""
    register = function.registers[reg]
    match register.type:
        case Scalar() as t:
            return str(t)
        case Stack(elem):
            return stack_text(elem, register.shape)
        case Array(elem, rank):
            names = {(d.reg, d.axis): d.name for d in function.dims}
            dims = register.dims or (None,) * rank
            lengths = [names.get((reg, k)) or _length_text(function, dims[k]) for k in range(rank)]
            return f"{elem}[{', '.join(lengths)}]"


def _length_text(function: Function, length: Expr | None) -> str:
    """A length in the notation of the assembly language; `:` if it has no short notation."""
    match length:
        case Const(int(value)):
            return str(value)
        case Place(reg, ()):
            return function.registers[reg].name
        case Apply("dim", (Place(reg, ()), Const(axis))):
            return next((d.name for d in function.dims if (d.reg, d.axis) == (reg, axis)), ":")
        case Apply(("+" | "-" | "*" | "//") as sign, (a, b)):
            parts = [_length_text(function, part) for part in (a, b)]
            if ":" in parts:
                return ":"
            return f" {sign} ".join(f"({p})" if " " in p and sign != "+" else p for p in parts)
    return ":"


def stack_text(elem: Scalar, shape: tuple[int, ...]) -> str:
    """The type of a stack of numbers, or of arrays: `stack[f64[3]]`."""
    lengths = f"[{', '.join(map(str, shape))}]" if shape else ""
    return f"stack[{elem}{lengths}]"


def layout_text(function: Function, layout: Layout) -> str:
    """A parameter's type in the assembly language: that of a register, or a record's name."""
    return type_text(function, layout) if isinstance(layout, int) else layout.name


def head_text(function: Function) -> str:
    """The parameters of a function with their types: `x: f64[n], y: f64`."""
    return ", ".join(f"{p.name}: {layout_text(function, p.layout)}" for p in function.params)
