"""From pure expressions and places to LLVM's assembly language.

Scalars live in variables that LLVM turns into registers; arrays are pointers with lengths and
strides.  Whatever is not for this printer raises `Unprintable`: the instruction is then executed by
the reference engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from rvm.emit.llvm.writer import Writer, constant, operands
from rvm.emit.values import Unprintable, type_of
from rvm.expr import Apply, Const, Expr, Index, Part, Place, Span, Step, Transposed
from rvm.isa import implementation
from rvm.numbers import system
from rvm.numbers.llvm import Value, register_type
from rvm.program import Function
from rvm.types import F64, Array, Scalar, elem_of, rank_of

TURNING = ("sin", "cos")
"""What the prelude's `rvm_turn` gives, in its order."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a scalar is: a pointer, or one for each part of a complex number."""

    pointers: tuple[str, ...]
    type: Scalar
    note: str = ""
    """Metadata for loads and stores: what else the memory cannot be."""
    variable: bool = False
    """Whether it is a register's own variable, where a bool is an `i1`."""


@dataclass(frozen=True, slots=True)
class View:
    """An array, or a part of one: a pointer, and operands for lengths and strides (in bytes)."""

    pointer: str
    elem: Scalar
    dims: tuple[str, ...]
    strides: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ArrayVariable:
    """The variables of an array register.

    `strides` is empty where the array is contiguous.  `owner` is 1 where its memory is to be freed
    by generated code, 0 where it is Python's; parameters have none.
    """

    pointer: str
    dims: tuple[str, ...]
    strides: tuple[str, ...] = ()
    owner: str = ""


def item_size(t: Scalar) -> int:
    """The bytes of an element in memory."""
    return int(system(t).dtype.itemsize)


class Values(Writer):
    """Prints the expressions and places of one function."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function
        self.scalars: dict[int, tuple[str, ...]] = {}
        """Variables of the scalar registers."""
        self.arrays: dict[int, ArrayVariable] = {}
        self.stacks: dict[int, str] = {}
        self.notes: dict[int, str] = {}
        """For array registers, metadata of loads and stores."""
        self.proved: frozenset[int] = frozenset()
        """The `id`s of index expressions that are known to lie inside."""
        self.turns: frozenset[Expr] = frozenset()
        """Angles of type f64 of which both sine and cosine are asked for."""

        self.known: Mapping[Expr, bool] = {}
        """Conditions that are known to hold, or not to, just now."""

    # ------------------------------------------------------------ places

    def located(self, place: Place) -> Location:
        """Where a scalar place is."""
        found = self.followed(place)
        if not isinstance(found, Location):
            raise Unprintable
        return found

    def viewed(self, place: Place) -> View:
        """An array place."""
        found = self.followed(place)
        if not isinstance(found, View):
            raise Unprintable
        return found

    def followed(self, place: Place) -> Location | View:
        """A place found along its path."""
        t = self.function.registers[place.reg].type
        found: Location | View
        if isinstance(t, Scalar):
            found = Location(self.scalars[place.reg], t, variable=True)
        elif isinstance(t, Array):
            found = self.whole(place.reg, t)
        else:
            raise Unprintable
        for step in place.path:
            found = self._stepped(found, step)
        return found

    def whole(self, reg: int, t: Array) -> View:
        """An array register as a view."""
        held = self.arrays[reg]
        dims = tuple(self.load("i64", d) for d in held.dims)
        if held.strides:
            strides = tuple(self.load("i64", s) for s in held.strides)
        else:
            strides = self.contiguous(dims, item_size(t.elem))
        pointer = self.load("ptr", held.pointer)
        return View(pointer, t.elem, dims, strides, self.notes.get(reg, ""))

    def contiguous(self, dims: Sequence[str], size: int) -> tuple[str, ...]:
        """The strides of an array in C order."""
        strides, stride = [], str(size)
        for dim in reversed(dims):
            strides.append(stride)
            stride = self.op(f"mul i64 {stride}, {dim}") if len(strides) < len(dims) else stride
        return tuple(reversed(strides))

    def _stepped(self, found: Location | View, step: Step) -> Location | View:
        if isinstance(step, Part):
            k = 0 if step.name == "re" else 1
            if isinstance(found, Location):
                return Location((found.pointers[k],), F64, found.note, found.variable)
            pointer = self.offset(found.pointer, str(8 * k))
            return View(pointer, F64, found.dims, found.strides, found.note)
        assert isinstance(found, View)
        if isinstance(step, Transposed):
            return View(
                found.pointer, found.elem, found.dims[::-1], found.strides[::-1], found.note
            )
        return self._indexed(found, step)

    def _indexed(self, found: View, step: Index) -> Location | View:
        pointer = found.pointer
        dims, strides = [], []
        for axis, item in enumerate(step.items):
            length, stride = found.dims[axis], found.strides[axis]
            if isinstance(item, Span):
                lo, hi = self._span(item, length)
                pointer = self.offset(pointer, self.product(lo, stride))
                dims.append(self.op(f"sub i64 {hi}, {lo}") if lo != "0" else hi)
                strides.append(stride)
            else:
                pointer = self.offset(pointer, self.product(self.index(item, length), stride))
        rest = len(step.items)
        dims += found.dims[rest:]
        strides += found.strides[rest:]
        if dims:
            return View(pointer, found.elem, tuple(dims), tuple(strides), found.note)
        return self.element(pointer, found.elem, found.note)

    def element(self, pointer: str, t: Scalar, note: str) -> Location:
        """The element behind a pointer."""
        if t.is_complex:
            return Location((pointer, self.offset(pointer, "8")), t, note)
        return Location((pointer,), t, note)

    def offset(self, pointer: str, distance: str) -> str:
        """A pointer moved by so many bytes."""
        return (
            pointer
            if distance == "0"
            else self.op(f"getelementptr i8, ptr {pointer}, i64 {distance}")
        )

    def product(self, a: str, b: str) -> str:
        """The product of two lengths or indices."""
        if "0" in (a, b):
            return "0"
        if a == "1":
            return b
        return a if b == "1" else self.op(f"mul i64 {a}, {b}")

    def index(self, item: Expr, length: str) -> str:
        """An index as an i64; trouble unless it lies inside."""
        found = self.whole_number(item)
        if id(item) not in self.proved:
            self.trouble(self.compare("uge", "i64", found, length))
        return found

    def whole_number(self, item: Expr) -> str:
        """An integer expression as an i64; one beyond that is negative, as no valid index is."""
        t = elem_of(type_of(item))
        value = cast(str, self.value(item))
        if isinstance(item, Const):
            return value
        if t.is_bool or t.bits < 64:
            return self.op(f"{'sext' if t.is_signed else 'zext'} {register_type(t)} {value} to i64")
        return value

    def _span(self, item: Span, length: str) -> tuple[str, str]:
        lo = "0" if item.lo is None else self.whole_number(item.lo)
        hi = length if item.hi is None else self.whole_number(item.hi)
        if item.hi is not None:
            self.trouble(self.compare("ugt", "i64", hi, length))
        if item.lo is not None:
            self.trouble(self.compare("ugt", "i64", lo, hi))
        return lo, hi

    # ------------------------------------------------------------ reading and writing

    def read(self, place: Location) -> Value:
        """The value at a location."""
        kind = register_type(place.type)
        if place.type.is_bool and not place.variable:
            byte = self.load("i8", place.pointers[0], place.note)
            return self.compare("ne", "i8", byte, "0")
        parts = tuple(self.load(kind, p, place.note) for p in place.pointers)
        return (parts[0], parts[1]) if len(parts) == 2 else parts[0]

    def write(self, place: Location, value: Value) -> None:
        """Put a value at a location."""
        if place.type.is_bool and not place.variable:
            byte = self.op(f"zext i1 {value} to i8")
            self.store("i8", byte, place.pointers[0], place.note)
            return
        for (kind, part), pointer in zip(operands(place.type, value), place.pointers, strict=True):
            self.store(kind, part, pointer, place.note)

    # ------------------------------------------------------------ values

    def value(self, node: Expr) -> Value:
        """The operand of a scalar expression."""
        if node in self.known:
            return "true" if self.known[node] else "false"
        match node:
            case Const(v):
                return constant(v, elem_of(type_of(node)))
            case Place():
                return self.read(self.located(node))
            case Apply("and" | "or" as fn, (a, b)):
                return self._lazy(fn, a, b)
            case Apply("dim" | "len", (Place() as place, *axis)):
                return self._length(place, cast(Const, axis[0]) if axis else None)
            case Apply(fn, args):
                if any(rank_of(type_of(a)) for a in args):
                    return self.reduced(fn, args)
                if fn in TURNING and args[0] in self.turns:
                    return self._turned(fn, args[0])
                code = implementation(fn, tuple(elem_of(type_of(a)) for a in args))
                if code.llvm is None:
                    raise Unprintable
                return cast(Value, code.llvm(self, *(self.value(a) for a in args)))
            case _:
                raise TypeError(f"a template cannot be printed: {node!r}")

    def _turned(self, fn: str, angle: Expr) -> str:
        """Sine or cosine out of both: what is asked for twice is found once by LLVM."""
        operand = cast(str, self.value(angle))
        both = self.helper("rvm_turn", "{double, double}", ("double", operand))
        return self.op(f"extractvalue {{double, double}} {both}, {TURNING.index(fn)}")

    def reduced(self, fn: str, args: tuple[Expr, ...]) -> Value:
        """A scalar made of arrays; `rvm.emit.llvm.arrays` has what there is."""
        raise Unprintable

    def _length(self, place: Place, axis: Const | None) -> str:
        k = axis.value if axis is not None else 0
        if not isinstance(k, int) or not 0 <= k < rank_of(type_of(place)):
            raise Unprintable
        if not place.path:
            return self.load("i64", self.arrays[place.reg].dims[k])
        return self.viewed(place).dims[k]

    def decided(
        self, node: Expr, early: dict[bool, str], known: dict[Expr, bool], sense: bool = True
    ) -> str:
        """The operand of a condition, or a jump to a label of `early` where it is known before.

        Labels are entered in `early` as they are needed, by whether the condition then is what
        `sense` says; in `known` what holds where there was no jump.
        """
        match node:
            case Apply("and" | "or" as fn, (a, b)):
                right = self.fresh("rhs")
                out = early.setdefault((fn == "or") == sense, self.fresh("early"))
                left = cast(str, self.value(a))
                self.fork(left, *((right, out) if fn == "and" else (out, right)))
                self.label(right)
                known[a] = fn == "and"
                return self.decided(b, early, known, sense)
            case Apply("not", (a,)):
                return self.op(f"xor i1 {self.decided(a, early, known, not sense)}, true")
        return cast(str, self.value(node))

    def _lazy(self, fn: str, a: Expr, b: Expr) -> str:
        """`and`, `or`: the right side is evaluated only if it decides."""
        left = cast(str, self.value(a))
        begun = self.block
        right, done = self.fresh("rhs"), self.fresh("both")
        if fn == "and":
            self.fork(left, right, done)
        else:
            self.fork(left, done, right)
        self.label(right)
        value = cast(str, self.value(b))
        ended = self.block
        self.jump(done)
        self.label(done)
        known = "false" if fn == "and" else "true"
        return self.op(f"phi i1 [{known}, %{begun}], [{value}, %{ended}]")


def variable_types(t: Scalar) -> tuple[str, ...]:
    """LLVM's types of the variables that hold a scalar."""
    return (register_type(t),) * (2 if t.is_complex else 1)
