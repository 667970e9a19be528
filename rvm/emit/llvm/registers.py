"""Registers of a function that is being compiled: how they come in, and how they leave.

A *root* is entered by Python, with its registers in a row of slots, and leaves them there.  An
*inner* function is called by compiled code, with its parameters as arguments; where it cannot go
on it leaves its registers in a frame of its own, and so do its callers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from rvm.emit.llvm import context
from rvm.emit.llvm.arrays import Arrays
from rvm.emit.llvm.certain import certain
from rvm.emit.llvm.context import FRAMED, MINE
from rvm.emit.llvm.flow import Flow
from rvm.emit.llvm.kind import ANYWHERE, INNER, Kind
from rvm.emit.llvm.reading import turns
from rvm.emit.llvm.runtime import FRAMES
from rvm.emit.llvm.values import ArrayVariable, item_size, variable_types
from rvm.emit.llvm.writer import COLD
from rvm.expr import Place
from rvm.image import Code
from rvm.image.traps import Changed
from rvm.numbers.llvm import memory_type
from rvm.types import Array, Scalar, elem_of

LENGTH = "i64 range(i64 0, -9223372036854775808)"
RANGE = "!{i64 0, i64 -9223372036854775808}"
"""The type of a length, and its range as metadata: it is never negative.  LLVM is told, and then
one comparison does for both ends of an index."""


class Callees(Protocol):
    """Where calls go: the module that is being made."""

    def inner(self, code: Code, scattered: frozenset[int]) -> str:
        """The symbol of an inner function whose array parameters `scattered` have strides."""

    def number(self, code: Code) -> int:
        """The number by which a stopped frame names its code."""

    def metadata(self, text: str) -> str:
        """The name of a new metadata node; `{}` in its text is that name."""

    def cell(self, guard: Changed) -> int:
        """The number of what a guard compares with, and of the element that it looks at."""


class Registers(Arrays):
    """Prints the way in and the ways out of one function."""

    def __init__(self, symbol: str, code: Code, kind: Kind, flow: Flow, callees: Callees) -> None:
        super().__init__(code.function, kind.checks)
        self.symbol = symbol
        self.code = code
        self.kind = kind
        self.flow = flow
        self.callees = callees
        self.ticks = self.variable("i64", "ticks")
        self.position = self.variable("i64", "position")
        self.how = self.variable("i32", "how")
        self.passed = frozenset(
            a.reg for pc in flow.calls for a in code.instrs[pc].args if isinstance(a, Place)
        )
        self.starts, self.slots = context.slots(r.type for r in self.function.registers)
        self.changed = code.image.inout[code.name]
        self.turns = turns(code)
        if kind.entry in (0, INNER):
            self.certain = certain(code)
        self._arguments: list[str] = []
        self._lengths = ""

    # ------------------------------------------------------------ registers

    def _variables(self) -> None:
        for k, register in enumerate(self.function.registers):
            t = register.type
            if isinstance(t, Scalar):
                self.scalars[k] = tuple(self.variable(v, f"r{k}_") for v in variable_types(t))
            elif isinstance(t, Array):
                local = k >= self.function.n_args
                dims = tuple(self.variable("i64", f"d{k}_") for _ in range(t.rank))
                strides = tuple(self.variable("i64", f"s{k}_") for _ in range(t.rank))
                self.arrays[k] = ArrayVariable(
                    self.variable("ptr", f"p{k}_"),
                    dims,
                    strides if k in self.kind.scattered else (),
                    self.variable("i64", f"o{k}_") if local else "",
                )
            else:
                self.stacks[k] = self.variable("ptr", f"k{k}_")
        self._scopes()

    def _scopes(self) -> None:
        """Say of each array register that no other one shares its memory."""
        arrays = list(self.arrays)
        if len(arrays) < 2:
            return
        new = self.callees.metadata
        domain = new("distinct !{{}}")
        scopes = {k: new(f"distinct !{{{{}}, {domain}}}") for k in arrays}
        for k in arrays:
            others = new(f"!{{{', '.join(scopes[j] for j in arrays if j != k)}}}")
            own = new(f"!{{{scopes[k]}}}")
            self.notes[k] = f", !alias.scope {own}, !noalias {others}"

    def _bound_stack(self) -> None:
        """Raise the floor by what one more call may take; leave at once if that is too high."""
        field = self.field(context.DEEPEST)
        floor = self.op(f"add i64 {self.load('i64', field)}, {self.load('i64', f'@{FRAMES}')}")
        self.store("i64", floor, field)
        low, going = self.fresh("low"), self.fresh("go")
        self.fork(self.too_deep(), low, going, COLD)
        self.label(low)
        if self.kind.entry != ANYWHERE:
            self.store("i64", str(self.kind.entry), self.field(context.PC))
        self.line(f"ret i32 {context.STOPPED}")
        self.label(going)

    def too_deep(self) -> str:
        """Whether the stack has grown as far as it may."""
        here = self.op("call ptr @llvm.frameaddress.p0(i32 0)")
        address = self.op(f"ptrtoint ptr {here} to i64")
        return self.compare("ult", "i64", address, self.load("i64", self.field(context.DEEPEST)))

    def _from_slots(self) -> None:
        """Load a root's registers; what is not live is read as it stands, and never used."""
        for k, start in enumerate(self.starts):
            t = self.function.registers[k].type
            if isinstance(t, Scalar):
                for part, pointer in enumerate(self.scalars[k]):
                    kind = variable_types(t)[part]
                    slot = self._slot("%regs", start + part)
                    if t.is_bool:
                        byte = self.load("i8", slot)
                        self.store("i1", self.op(f"trunc i8 {byte} to i1"), pointer)
                    else:
                        self.store(kind, self.load(kind, slot), pointer)
            elif isinstance(t, Array):
                self._array_slots(k, "%regs", start, self._fetch)
                for axis, dim in enumerate(self.arrays[k].dims):
                    slot = self._slot("%regs", start + 2 + axis)
                    self.store("i64", self.load("i64", slot, self._length_note()), dim)
            else:
                self._fetch("ptr", self._slot("%regs", start), self.stacks[k])

    def _length_note(self) -> str:
        if not self._lengths:
            self._lengths = f", !range {self.callees.metadata(RANGE)}"
        return self._lengths

    def _fetch(self, kind: str, slot: str, pointer: str) -> None:
        self.store(kind, self.load(kind, slot), pointer)

    def _keep(self, kind: str, slot: str, pointer: str) -> None:
        self.store(kind, self.load(kind, pointer), slot)

    def _slot(self, base: str, k: int) -> str:
        return self.op(f"getelementptr i64, ptr {base}, i64 {k}")

    def _array_slots(
        self, reg: int, base: str, start: int, move: Callable[[str, str, str], None]
    ) -> None:
        """Move an array's description between its slots and its variables."""
        held = self.arrays[reg]
        move("ptr", self._slot(base, start), held.pointer)
        if held.owner:
            move("i64", self._slot(base, start + 1), held.owner)
        rank = len(held.dims)
        for k, dim in enumerate(held.dims):
            move("i64", self._slot(base, start + 2 + k), dim)
        for k, stride in enumerate(held.strides):
            move("i64", self._slot(base, start + 2 + rank + k), stride)

    def _from_arguments(self) -> None:
        """Take an inner function's parameters from its arguments."""
        for k in range(self.function.n_args):
            t = self.function.registers[k].type
            if isinstance(t, Array):
                held = self.arrays[k]
                self._argument("ptr", f"%a{k}", held.pointer)
                for axis, dim in enumerate(held.dims):
                    self._argument(LENGTH, f"%a{k}d{axis}", dim)
                for axis, stride in enumerate(held.strides):
                    self._argument("i64", f"%a{k}s{axis}", stride)
            elif isinstance(t, Scalar):
                for part, (kind, pointer) in enumerate(
                    zip(variable_types(t), self.scalars[k], strict=True)
                ):
                    name = f"%a{k}p{part}"
                    if k in self.changed:
                        self._arguments.append(f"ptr noalias {name}")
                        self._fetch(kind, name, pointer)
                    else:
                        self._argument(kind, name, pointer)
            else:
                self._argument("ptr", f"%a{k}", self.stacks[k])

    def _argument(self, kind: str, name: str, pointer: str) -> None:
        self._arguments.append(f"{kind} {name}")
        self.store(kind.split(" ")[0], name, pointer)

    # ------------------------------------------------------------ ways out

    def _settle(self) -> None:
        """Give the counters back to the context."""
        self.store("i64", self.load("i64", self.ticks), self.field(context.TICKS))
        erased = self.field(context.ERASED)
        total = self.op(f"add i64 {self.load('i64', erased)}, {self.load('i64', self.erased)}")
        self.store("i64", total, erased)

    def _stop(self) -> None:
        """Leave with all registers in slots."""
        self.label("stop")
        if self.kind.root:
            base, first = "%regs", 0
            self.store("i64", self.load("i64", self.position), self.field(context.PC))
        else:
            size = 8 * (context.HEADER + self.slots)
            base, first = self.helper("rvm_frame", "ptr", ("i64", str(size))), context.HEADER
            lost, held = self.fresh("lost"), self.fresh("held")
            self.fork(self.compare("eq", "ptr", base, "null"), lost, held, COLD)
            self.label(lost)
            self._settle()
            self.line(f"ret i32 {context.LOST}")
            self.label(held)
            frames = self.field(context.FRAMES)
            self.store("ptr", self.load("ptr", frames), self._slot(base, context.NEXT))
            number = str(self.callees.number(self.code))
            self.store("i64", number, self._slot(base, context.CODE))
            at = self.load("i64", self.position)
            self.store("i64", at, self._slot(base, context.POSITION))
            self.store("ptr", base, frames)
        for k, start in enumerate(self.starts):
            self._save(k, base, first + start)
        self._settle()
        self.line(f"ret i32 {self.load('i32', self.how)}")

    def _save(self, k: int, base: str, start: int) -> None:
        t = self.function.registers[k].type
        if isinstance(t, Scalar):
            for part, pointer in enumerate(self.scalars[k]):
                slot = self._slot(base, start + part)
                if t.is_bool:
                    held = self.op(f"zext i1 {self.load('i1', pointer)} to i8")
                    self.store("i8", held, slot)
                else:
                    self._keep(memory_type(t), slot, pointer)
        elif isinstance(t, Array):
            self._array_slots(k, base, start, self._keep)
            held_array = self.arrays[k]
            if k in self.frames:
                self._move_out(k, base, start)
            if not held_array.owner:
                self.store("i64", "0", self._slot(base, start + 1))
            if not held_array.strides:
                dims = [self.load("i64", d) for d in held_array.dims]
                for axis, stride in enumerate(self.contiguous(dims, item_size(elem_of(t)))):
                    self.store("i64", stride, self._slot(base, start + 2 + t.rank + axis))
        else:
            self._keep("ptr", self._slot(base, start), self.stacks[k])

    def _move_out(self, reg: int, base: str, start: int) -> None:
        """Copy an array that lives in the frame, if it does just now, to memory of its own."""
        held = self.arrays[reg]
        move, stay = self.fresh("move"), self.fresh("stay")
        owner = self.load("i64", held.owner)
        self.fork(self.compare("eq", "i64", owner, str(FRAMED)), move, stay)
        self.label(move)
        t = cast(Array, self.function.registers[reg].type)
        size = str(item_size(t.elem))
        for dim in held.dims:
            size = self.product(size, self.load("i64", dim))
        moved = self.helper("rvm_copied", "ptr", ("ptr", self.frames[reg]), ("i64", size))
        none = self.compare("eq", "ptr", moved, "null")
        how = self.choose(none, "i32", str(context.LOST), self.load("i32", self.how))
        self.store("i32", how, self.how)
        self.store("ptr", moved, self._slot(base, start))
        self.store("i64", str(MINE), self._slot(base, start + 1))
        self.jump(stay)
        self.label(stay)
