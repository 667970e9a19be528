"""Functions on dual registers: the common part of adjoint and tangent transformations.

Each register with derivatives has a second register, its *dual*: the adjoint in gradient mode, the
tangent in tangent mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, NoReturn, cast

from rvm.expr import Const, Expr, Place, rebuild
from rvm.faults import DefinitionError
from rvm.isa import OPCODES, apply, place
from rvm.isa.derivatives import adjoint_type
from rvm.isa.shapes import Dims, Lengths
from rvm.program import Function, Instr, Layout, Param, Program, Record, Register, Span
from rvm.transform.graph import Graph
from rvm.transform.shared_parts import share
from rvm.types import F64, I64, Array, RegisterType, Scalar, Stack, ValueType, elem_of, with_rank

BAR, DOT = "_bar", "_dot"
"""The suffixes of the names of adjoint and tangent registers."""


def unique(name: str, taken: set[str]) -> str:
    """`name`, made longer until it is none of those taken."""
    while name in taken:
        name += "_"
    return name


def reachable(program: Program, name: str) -> tuple[str, ...]:
    """A function and all that it may call, itself first."""
    seen = {name: None}
    todo = [name]
    while todo:
        for instr in program.function(todo.pop()).code:
            if instr.op in ("call", "uncall") and instr.symbol not in seen:
                seen[instr.symbol] = None
                todo.append(instr.symbol)
    return tuple(seen)


def bar_type(t: RegisterType) -> RegisterType | None:
    """The type of the register that holds the duals of one of type `t`, if it has any."""
    elem = adjoint_type(elem_of(t))
    if elem is None:
        return None
    if isinstance(t, Stack):
        return Stack(elem)
    return with_rank(elem, t.rank if isinstance(t, Array) else 0)


class Form(NamedTuple):
    """A function to differentiate, and the parameters whose duals are left out.

    They are registers. If the function only reads one, it is treated as a constant; if it changes
    one, the dual begins as zero and must have no effect.
    """

    name: str
    without: frozenset[int] = frozenset()

    def called(self, name: str, f: Function) -> str:
        """The name of the function derived from it; `name` is that of the form with all duals."""
        if not self.without:
            return name
        kept = (f.registers[k].name for k in bar_slots(f, self.without))
        return f"{name}({', '.join(kept)})"


def form_called(found: str, name: str, f: Function) -> Form | None:
    """The form of a function whose derived name is `found`, where `name` has all duals."""
    if found == name:
        return Form(f.name)
    kept = found.removeprefix(f"{name}(").removesuffix(")").split(", ")
    form = Form(f.name, frozenset(k for k in bar_slots(f) if f.registers[k].name not in kept))
    return form if form.called(name, f) == found else None


def forms(names: Sequence[str]) -> tuple[Form, ...]:
    """Functions with all of their duals."""
    return tuple(map(Form, names))


def with_called(
    wanted: Sequence[Form], make: Callable[[Form], tuple[Function, Sequence[Form]]]
) -> dict[Form, Function]:
    """The functions made from forms, and from those they call; `make` returns both for one form."""
    made: dict[Form, Function] = {}
    todo = list(reversed(wanted))
    while todo:
        form = todo.pop()
        if form not in made:
            made[form], called = make(form)
            todo = [*reversed(called), *todo]
    return made


def bar_slots(f: Function, without: frozenset[int] = frozenset()) -> dict[int, int]:
    """For each parameter register that has duals the register of those in the dual function."""
    carrying = [
        k for k in range(f.n_args) if k not in without and bar_type(f.registers[k].type) is not None
    ]
    return {k: f.n_args + j for j, k in enumerate(carrying)}


class Duals:
    """A function under construction, on the registers of another and their duals."""

    def __init__(
        self,
        f: Function,
        functions: dict[str, Function],
        names: dict[str, str],
        suffix: str,
        part: str,
        without: frozenset[int] = frozenset(),
    ) -> None:
        self.f = f
        self.changing = frozenset[int]()
        """The parameters that the function changes, where some are without duals."""
        self.without = without
        """The parameters whose duals are left out; their registers are the same in both."""
        self.suffix, self.part = suffix, part
        self.functions = functions
        self.names = names
        self.code: list[Instr] = []
        self.spans: list[Span] = []
        self._taken = {r.name for r in f.registers} | {p.name for p in f.params}
        self._spare: dict[tuple[str, ValueType, Dims], list[int]] = {}
        self._layout()

    # ------------------------------------------------------------ registers

    def _layout(self) -> None:
        """Parameters, their duals, locals, their duals."""
        f = self.f
        self.bars = bar_slots(f, self.without)
        self.moved = {k: k for k in range(f.n_args)}
        shift = len(self.bars)
        self.moved |= {k: k + shift for k in range(f.n_args, len(f.registers))}
        n = len(f.registers) + shift
        local_bars = [k for k in range(f.n_args, len(f.registers)) if bar_type(f.registers[k].type)]
        self.bars |= {k: n + j for j, k in enumerate(local_bars)}
        self.dual_of = {self.moved[k]: b for k, b in self.bars.items()}
        self.registers: list[Register] = [Register("", F64)] * (n + len(local_bars))
        for k, r in enumerate(f.registers):
            dims = tuple(None if d is None else self.value(d) for d in r.dims)
            self.registers[self.moved[k]] = Register(r.name, r.type, dims, r.shape)
        for k, b in self.bars.items():
            r, t = f.registers[k], bar_type(f.registers[k].type)
            assert t is not None
            whole = isinstance(r.type, Array) and k < f.n_args
            dims = (
                tuple(self._dim(place(k, r.type), axis) for axis in range(len(r.dims)))
                if whole
                else tuple(None if d is None else self.value(d) for d in r.dims)
            )
            self.registers[b] = Register(self._name(r.name + self.suffix), t, dims, r.shape)

    def _name(self, name: str) -> str:
        name = unique(name, self._taken)
        self._taken.add(name)
        return name

    def _dim(self, of: Expr, axis: int) -> Expr:
        return apply("dim", of, Const(axis, I64))

    def temp(self, name: str, t: Scalar | Array, shape_of: Expr) -> Place:
        """A new local register shaped like an expression."""
        rank = t.rank if isinstance(t, Array) else 0
        dims = tuple(self._dim(shape_of, axis) for axis in range(rank))
        self.registers.append(Register(self._name(name), t, dims))
        return Place(len(self.registers) - 1, (), t)

    def value(self, node: Expr) -> Expr:
        """An expression of `f` over the new registers."""
        if isinstance(node, Place):
            moved = Place(self.moved[node.reg], node.path, node.type)
            return rebuild(moved, self.value)
        return rebuild(node, self.value)

    def dual(self, of: Place) -> Place:
        """The dual of a place (over the new function's registers)."""
        b = self.dual_of[of.reg]
        t = self.registers[b].type
        return place(b, t, of.path) if of.path or not isinstance(t, Stack) else Place(b)

    def dual_type(self, t: Scalar | Array) -> Scalar | Array:
        """The type of the dual of a value that has one."""
        found = bar_type(t)
        assert isinstance(found, (Scalar, Array))
        return found

    def has_dual(self, of: Place) -> bool:
        """Whether a place that is read has a dual; DefinitionError D016 if one was left out that
        is not known to be zero.
        """
        if of.reg in self.without and of.reg in self.changing:
            self.lost(of)
        return of.reg in self.dual_of

    def have_duals(self, places: Sequence[Place]) -> bool:
        """Whether places between which values move have duals; D016 if one is left out of some."""
        found = [p.reg in self.dual_of for p in places]
        if any(found) and not all(found):
            for p in places:
                if p.reg in self.without:
                    self.lost(p)
        return all(found)

    def lost(self, of: Place) -> NoReturn:
        """Refuse to leave out the dual of a parameter."""
        name = self.f.registers[of.reg].name
        raise DefinitionError(
            "D016",
            f"`{self.f.name}` changes `{name}` and computes with it",
            hint="write a place instead of `_`: `fresh` makes one, `drop` forgets what it holds; "
            "for a dot that stays as it is a number will do, such as 0",
        )

    # ------------------------------------------------------------ common parts

    def graph(self) -> Graph:
        """An empty graph over the registers so far."""
        return Graph(Lengths(self.registers))

    def shared(
        self,
        graph: Graph,
        before: Sequence[Instr],
        inner: Sequence[Instr],
        after: Sequence[Instr] = (),
        *,
        changing: Sequence[int] = (),
        held: Mapping[int, Place] | None = None,
    ) -> None:
        """Add instructions with their common parts in ancillas.

        Operands may be stand-ins for nodes of the graph.  The instructions read nothing that they
        change, except the registers `changing`, which stay the same throughout `inner`.  A branch
        in `inner` and the come-from after it belong together.
        """
        duals = set(self.dual_of.values())
        mine: list[tuple[tuple[str, ValueType, Dims], int]] = []

        def make(number: int, t: ValueType, dims: Dims) -> Place:
            name = self.part if graph.reads(number) & duals else "t"
            key = (name, t, dims)
            spare = self._spare.setdefault(key, [])
            reg = spare.pop() if spare else len(self.registers)
            if reg == len(self.registers):
                self.registers.append(Register(self._numbered(name), t, dims))
            mine.append((key, reg))
            return Place(reg, (), t)

        body = [*before, *inner, *after]
        outer = share(graph, body, make, changing=changing, held=held)
        at = len(before), len(before) + len(inner)
        nested = share(graph, outer.body[slice(*at)], make)
        self.code += (*outer.made, *outer.body[: at[0]], *nested.made)
        begun = 0
        for instr in nested.body:
            if instr.op == "br":
                begun = len(self.code)
            elif instr.op == "cf":
                self.code[begun] = replace(self.code[begun], aux=len(self.code))
                instr = replace(instr, aux=begun)
            self.code.append(instr)
        self.code += (*nested.freed, *outer.body[at[1] :], *outer.freed)
        for key, reg in reversed(mine):
            self._spare[key].append(reg)

    def _numbered(self, name: str) -> str:
        k = 1
        while f"{name}{k}" in self._taken:
            k += 1
        self._taken.add(f"{name}{k}")
        return f"{name}{k}"

    # ------------------------------------------------------------ code

    def finished(self, name: str) -> Function:
        """The function of the code so far."""
        params = list(self.f.params)
        for p in self.f.params:
            layout = self._dual_layout(p.layout)
            if layout is not None:
                known = self.registers[layout].name if isinstance(layout, int) else ""
                params.append(Param(known or self._name(p.name + self.suffix), layout))
        return Function(
            name,
            tuple(params),
            tuple(self.registers),
            tuple(self.code),
            tuple(self.spans) if self.f.spans else (),
            tuple(d._replace(reg=self.moved[d.reg]) for d in self.f.dims),
        )

    def _dual_layout(self, layout: Layout) -> Layout | None:
        if isinstance(layout, int):
            return self.bars.get(layout)
        fields = tuple(
            (name, inner)
            for name, field in layout.fields
            if (inner := self._dual_layout(field)) is not None
        )
        return Record(layout.name + self.suffix, fields) if fields else None

    def emit(self, op: str, *args: Expr, aux: int = -1, symbol: str = "") -> None:
        """Add an instruction."""
        self.code.append(Instr(op, args, aux, symbol))

    def emit_duals(self, op: str, *places: Expr) -> None:
        """The same opcode on the duals of the places, if there are any."""
        if self.have_duals([cast(Place, p) for p in places]):
            self.emit(op, *(self.dual(cast(Place, p)) for p in places))

    def exchanged(self, instr: Instr, op: str) -> None:
        """An opcode that only moves values: `op` moves their duals in the same way."""
        row = OPCODES[instr.op]
        operands = zip(instr.args, row.operands, strict=True)
        if self.have_duals([cast(Place, a) for a, o in operands if o.mode == "mut"]):
            self.emit(
                op,
                *(
                    self.dual(cast(Place, a)) if o.mode == "mut" else a
                    for a, o in zip(instr.args, row.operands, strict=True)
                ),
            )
