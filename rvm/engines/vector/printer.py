"""The text of a loop's body over lanes: phases, arms, and elements as they are reached.

Nothing is changed in place: a register is the number of the value that it holds.  What is to be
stored in the end is told in `stores`, `sums` and `finals`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import cast

from rvm.emit.numpy.known import Known, Value
from rvm.emit.numpy.values import LaneValues
from rvm.emit.python.printer import Printer
from rvm.engines.vector.access import access
from rvm.engines.vector.arms import Frame, outside
from rvm.engines.vector.body import Arm, Body, Sum
from rvm.engines.vector.cells import Cell
from rvm.engines.vector.elements import load
from rvm.engines.vector.indices import Indices
from rvm.engines.vector.loops import Declined
from rvm.engines.vector.phases import Phases
from rvm.engines.vector.results import finish, give
from rvm.engines.vector.statements import do_items
from rvm.expr import Apply, Const, Expr, Place, places
from rvm.expr import Part as PlacePart
from rvm.ir.node import Var
from rvm.ir.typed import type_of
from rvm.isa.implementation import is_alike
from rvm.numbers import Code
from rvm.types import Array, Scalar, elem_of, rank_of


class Fixed(Printer):
    """Prints what no iteration changes, as in ordinary code."""

    viewed = False


class LoopPrinter(LaneValues):
    """Prints the phases of a body as lines of Python, to be done by `_k` lanes.

    What no iteration changes is computed as in ordinary code: what raises there leaves the loop
    to that.
    """

    def __init__(
        self,
        body: Body,
        phases: Phases,
        mirrored: bool,
        counting: bool,
        constants: dict[str, object],
        names: dict[str, object],
        uses: Counter[int] | None = None,
    ) -> None:
        function = replace(body.code.function, registers=tuple(body.registers))
        made = range(len(body.code.function.registers), len(body.registers))
        self._changing = body.counted.changed.union(made)
        self.elements = {e.reg: e for e in body.elements.values()}
        scalars = Fixed(function, names)
        scalars.constants = constants
        known = Known(function, self._changing, uses, self._standing)
        super().__init__(scalars, known, lambda fn: None)
        self.body = body
        self.mirrored = mirrored
        self.counting = counting
        self.used: set[int] = set()
        """Registers whose values at the beginning the source uses."""
        self.top: list[str] = []
        """Lines that are done once, before the first iteration."""
        self.indices = Indices(body.counted, mirrored, self.fixed, self.name)
        self.stores: list[tuple[str, str, str]] = []
        """What is stored: the place, the value, and a ufunc if it is combined with that."""
        self.sums: list[tuple[Sum, str, str]] = []
        """What is added: where (a view, or keys), and the value."""
        self.finals: dict[Cell, str] = {}
        """The values of cells behind the last iteration."""
        self.widths: dict[Arm, str] = {}
        """How many lanes arms have."""
        self.views: set[str] = set()
        """Values that lie in arrays."""
        self.erasing: list[tuple[int, str]] = []
        """Instructions that erase bits, and the names of how many."""
        self._fixed: dict[int, str] = {}
        self._cells: dict[Cell, str] = {}
        self.parts: dict[Cell, list[str]] = {}
        self.alone: set[Cell] = set()
        """Cells whose last part is an array that nothing else uses."""
        self.given: dict[int, int] = {}
        self.flat: dict[int, str] = {}
        """Registers that hold one value for all lanes."""
        self.kept: list[Value] = []
        self.placed: dict[object, str] = {}
        self.arm, self.width = body.root, "_k"
        self.inner = self.sel = ""
        """The lanes of an arm: as numbers of the lanes around, and of all lanes."""
        self.frames: list[Frame] = []
        """What the arms around have of their own."""
        self.begin()
        for phase in phases.found:
            self.items(phase.arm)
            give(self, phase)
            self.begin_phase()
        self.items(phases.last)
        self.widths[body.root] = "_k"
        finish(self)
        self.known.spend(*self.kept)

    # ------------------------------------------------------------ what no iteration changes

    def fixed(self, node: Expr) -> str:
        """An expression that no iteration changes, computed once."""
        if isinstance(node, Const):
            return self.scalars.constant(node.value)
        number = self.known.number(node)
        found = self._fixed.get(number)
        if found is None:
            for reg, name in self.flat.items():
                kind = elem_of(self.function.registers[reg].type).name
                self.builder.scalars[reg] = (Var(kind, name),)
            self.used |= {p.reg for p in places(node) if not self._is_lane(p.reg)}
            text = self.scalars.text
            around = dict(vars(text))
            text.begin()
            found = self.value(node)
            self.top += self.lines
            vars(text).update({**around, "temps": text.temps})
            if not found.isidentifier():
                self.top.append(f"_u{len(self._fixed)} = {found}")
                found = f"_u{len(self._fixed)}"
            self._fixed[number] = found
        return found

    def inline(self, node: Expr) -> str:
        """An expression that no iteration changes."""
        return self.fixed(node)

    def name(self, reg: int) -> str:
        """A register as the ordinary code names it."""
        self.used.add(reg)
        return self.regs[reg]

    def _uniform(self, node: Expr) -> Value:
        if rank_of(type_of(node)):
            raise Declined("it computes with whole arrays")
        return Value(self.fixed(node))

    # ------------------------------------------------------------ values

    def _by_numpy(self, fn: str, code: Code, elems: tuple[Scalar, ...]) -> bool:
        """Pieces are cut by the clock: an iteration must give the bits that it has alone."""
        return bool(code.numpy) and is_alike(fn, elems)

    def apply(self, node: Apply, fresh: str = "") -> Value:
        if any(rank_of(type_of(a)) for a in node.args):
            raise Declined("it computes with whole arrays")
        return super().apply(node, fresh)

    def _into(self, ufunc: str, texts: list[str], t: Scalar, ranked: bool, fresh: str) -> Value:
        # Buffers are as long as pieces are.
        return super()._into(ufunc, texts, t, ranked or bool(self.sel), fresh)

    def _length(self, node: Apply) -> Value:
        raise Declined("it computes with whole arrays")

    def _is_lane(self, reg: int) -> bool:
        """Whether a register is a scalar that iterations change."""
        is_array = isinstance(self.function.registers[reg].type, Array)
        return reg in self._changing and not is_array

    def _standing(self, reg: int) -> Place | None:
        """The element that a register stands for."""
        element = self.elements.get(reg)
        return None if element is None else element.found.place

    def lanes(self, node: Expr) -> Value:
        """A value in the lanes of the arm; what is known outside is taken from there."""
        number = self.known.number(node)
        if number in self.known.have or not self.frames or not self._is_outside(node, number):
            return super().lanes(node)
        chosen = self.inner
        with outside(self):
            held = self.lanes(node)
        made = self.named(f"{held.text}[{chosen}]")
        self.known.spend(held)
        self.known.remember(number, made)
        return made

    def _is_outside(self, node: Expr, number: int) -> bool:
        if any(number in frame[1]["have"] for frame in self.frames):
            return True
        if not isinstance(node, Place) or node.path or not self.known.differs(node):
            return False
        element = self.elements.get(node.reg)
        inside = element is not None and self.arm in element.home.outer
        return node.reg != self.body.counted.var and not inside

    def _held(self, place: Place) -> Value:
        if rank_of(type_of(place)):
            raise Declined("it computes with whole arrays")
        reg = place.reg
        if isinstance(self.function.registers[reg].type, Array):
            return load(self, access(place, self.body.counted))
        if place.path:
            held = self.lanes(Place(reg, (), self.function.registers[reg].type))  # type: ignore[arg-type]
            self.kept.append(held)
            part = cast(PlacePart, place.path[0]).name
            return self.named(f"{held.text}.{'real' if part == 're' else 'imag'}")
        if reg in self.elements:
            return load(self, self.elements[reg].found)
        if reg != self.body.counted.var:
            raise Declined("it reads a register that it has not made")
        stride = self.indices.stride or "_by"
        first = f"_at + {stride} * {self.sel}"
        return self.named(first if self.sel else f"steps(_at, {stride}, _k)")

    def keep(self, node: Expr) -> str:
        """A value that is used until the end."""
        held = self.lanes(node)
        self.kept.append(held)
        return held.text

    # ------------------------------------------------------------ registers

    def let(self, reg: int, number: int, flat: str = "") -> None:
        """Let a register have a value; it is `flat` if it is one for all lanes."""
        self.known.register[reg] = number
        self.flat = {k: v for k, v in self.flat.items() if k != reg} | ({reg: flat} if flat else {})
        self.known.varying = self._changing - self.flat.keys()
        self.known.forget()

    def assign(self, *pairs: tuple[int, Expr]) -> None:
        """Let registers have values, all of them computed before."""
        made = []
        for _, node in pairs:
            flat = "" if self.known.differs(node) else self.fixed(node)
            if not flat:
                self.known.spend(self.lanes(node))
            made.append((self.known.number(node), flat))
        for (reg, _), (number, flat) in zip(pairs, made, strict=True):
            self.let(reg, number, flat)

    def drop(self, reg: int) -> None:
        """Let a register have no value."""
        self.known.register.pop(reg, None)
        self.known.numbered = {}

    def whole(self, reg: int) -> Place:
        """A register as a place."""
        return Place(reg, (), self.function.registers[reg].type)  # type: ignore[arg-type]

    def text(self, reg: int) -> str:
        """What a register holds, perhaps one value for all lanes."""
        return self.keep(self.whole(reg)) if reg in self.varying else self.flat[reg]

    def vector(self, reg: int) -> str:
        """What a register holds, as an array of all lanes."""
        text, dtype = self.text(reg), self.dtype(reg)
        return text if reg in self.varying else f"vector({text}, {dtype}, _W)"

    def dtype(self, reg: int) -> str:
        """The name of the dtype of a register's numbers."""
        return f"dtype_{elem_of(self.function.registers[reg].type).name}"

    # ------------------------------------------------------------ statements

    def items(self, arm: Arm) -> None:
        """Do an arm's items."""
        do_items(self, arm)

    def check(self, cond: Expr, want: bool) -> None:
        """A line that raises unless a condition is what it must be, in the lanes of the arm."""
        if self.known.differs(cond):
            super().check(cond, want)
        else:
            test = "must" if want else "must_not"
            self.lines.append(f"{test}({self.fixed(cond)}, _W)")

    def cell_name(self, cell: Cell) -> str:
        """The variable that holds a cell between pieces."""
        name = self._cells.get(cell)
        if name is None and cell.access is None:
            name = self._cells[cell] = self.name(cell.reg)
        elif name is None and cell.access is not None:
            name = self._cells[cell] = f"_c{len(self._cells)}"
            self.top.append(f"{name} = {self.indices.at(cell.access)}.item()")
        assert name is not None
        return name

    def begin_phase(self) -> None:
        """Begin anew, with what registers have been given."""
        self.known.register, self.flat = dict(self.given), {}
        self.known.varying = self._changing
        self.known.forget()
