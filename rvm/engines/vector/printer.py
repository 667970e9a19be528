"""The text of a loop's body over lanes: values in arms, and elements as used.

Nothing is changed in place: every computed value has a separate variable. Stores at the end are
listed in `stores`, `sums` and `finals`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from rvm.emit.numpy.known import Known, Value
from rvm.emit.numpy.ufuncs import UFUNC
from rvm.emit.numpy.values import LaneValues
from rvm.emit.python.printer import Printer
from rvm.engines.vector.access import Access, access
from rvm.engines.vector.body import Arm, Item, Let, Merge
from rvm.engines.vector.dependences import Dependences
from rvm.engines.vector.elements import load
from rvm.engines.vector.indices import Indices
from rvm.engines.vector.items import do
from rvm.engines.vector.loops import Declined
from rvm.engines.vector.results import finish
from rvm.engines.vector.slots import Slot
from rvm.engines.vector.trace import Trace
from rvm.expr import Apply, Const, Expr, Part, Place, places, reads
from rvm.ir.typed import type_of
from rvm.isa.implementation import is_alike
from rvm.numbers import Code
from rvm.types import Array, Scalar, elem_of, rank_of


class LoopPrinter(LaneValues):
    """A printer of a body as lines of Python, for `_k` lanes.

    Invariants are computed as in ordinary code: if they raise, the loop is left to that.
    """

    def __init__(
        self,
        trace: Trace,
        dependences: Dependences,
        mirrored: bool,
        counting: bool,
        constants: dict[str, object],
        names: dict[str, object],
    ) -> None:
        function = replace(trace.code.function, registers=tuple(trace.registers))
        scalars = Printer(function, names, viewed=False)
        scalars.constants = constants
        varying = set(range(len(function.registers))) - trace.counted.fixed
        super().__init__(scalars, Known(function, varying), lambda fn: None)
        self.trace = trace
        self.dependences = dependences
        self.mirrored = mirrored
        self.counting = counting
        self.used: set[int] = set()
        """Registers whose values at the beginning the source uses."""
        self.top: list[str] = []
        """Lines that are executed once, before the first iteration."""
        self.indices = Indices(trace.counted, mirrored, self.fixed, self.name)
        self.stores: list[tuple[str, str, str]] = []
        """Stores: the place, the value, and a ufunc if the value is combined with the old one."""
        self.sums: list[tuple[Slot, str, str, str]] = []
        """Additions to elements: the ufunc, the place (a view, or keys), and the value."""
        self.finals: dict[Slot, str] = {}
        """The values of cells after the last iteration."""
        self.views: set[str] = set()
        """Values that are in arrays."""
        self.erasing: list[tuple[int, str]] = []
        """Instructions that erase bits, and the names of the numbers of bits."""
        self.parts: dict[Slot, list[str]] = {}
        self.alone: set[Slot] = set()
        """Cells whose last part is an array that nothing else uses."""
        self.placed: dict[object, str] = {}
        self.in_place: set[Slot] = set()
        self.under: list[Slot] = []
        """The slots whose values for the iterations are being found, the outermost first."""
        self.given: set[Slot] = set()
        """The slots for which these values have been found."""
        self.arm = trace.root
        self.widths: dict[Arm, str] = {self.arm: "_k"}
        """The number of lanes in each arm."""
        self.chosen = {self.arm: ""}
        self.sels = {self.arm: ""}
        """The lanes of arms, as indices into the enclosing arm's lanes; `sels`: into all lanes."""
        self._have: dict[Arm, dict[int, Value]] = {}
        self._fixed: dict[int, str] = {}
        self._cells: dict[Slot, str] = {}
        self.made: set[int] = set()
        self.done: set[Item] = set()
        self.wide = "_k"
        self.begin()
        self._homes = self._numbered(varying)
        for item in trace.items:
            do(self, item)
        finish(self)

    def _numbered(self, varying: set[int]) -> dict[int, Arm]:
        """Find the varying registers, and numbers of values; return the arms of registers."""
        trace, known = self.trace, self.known
        homes = {reg: made.arm for reg, made in trace.made.items()}
        self.handed: dict[int, Slot] = {}
        """Registers whose values iterations receive from others."""
        for reg, (slot, parts) in trace.behind.items():
            if slot.is_running:
                known.register[reg] = known.intern(("behind", slot.entry, parts))
            if slot.is_running or (reg == slot.entry and self.dependences.is_handed(slot)):
                self.handed[reg] = slot
                homes[reg] = trace.root
            elif reg == slot.entry and slot.ops:
                homes[reg] = self.dependences.left(slot)[0]
        for reg, made in trace.made.items():
            if isinstance(made, Let) and reg not in self.handed:
                if not any(p.reg in varying for p in reads(made.value)):
                    varying.discard(reg)
                known.register[reg] = known.number(made.value)
        return homes

    # ------------------------------------------------------------ what no iteration changes

    def fixed(self, node: Expr) -> str:
        """An expression that no iteration changes, computed once."""
        if isinstance(node, Const):
            return self.scalars.constant(node.value)
        number = self.known.number(node)
        found = self._fixed.get(number)
        if found is None:
            own = len(self.trace.code.function.registers)
            self.used |= {p.reg for p in places(node) if p.reg < own}
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
        return Value(self.fixed(node), is_full=False)

    # ------------------------------------------------------------ arms

    @property
    def sel(self) -> str:
        """The lanes of the arm; "" if they are all."""
        return self.sels[self.arm]

    def enter(self, arm: Arm) -> None:
        """Print the following lines for the lanes of an arm."""
        self.select(arm)
        self._have[self.arm] = self.known.have
        self.arm, self.wide = arm, self.widths[arm]
        self.known.have = self._have.get(arm, {})

    @contextmanager
    def inside(self, arm: Arm) -> Iterator[None]:
        """A context in which lines are printed for the lanes of an arm."""
        here, guard = self.arm, self.guard
        self.enter(arm)
        self.guard = ""
        yield
        self.enter(here)
        self.guard = guard

    def select(self, arm: Arm) -> None:
        """Find the lanes of an arm."""
        if arm.arm is None or arm in self.done:
            return
        self.done.add(arm)
        with self.inside(arm.arm):
            cond = self.lanes(arm.uses[0]).text
            if not (arm.is_used or arm.ticks or (self.counting and arm.passed)):
                return
            mask = self.named(f"spread({cond}, {self.wide})").text
            mask = mask if arm.want else f"{UFUNC}logical_not({mask})"
            if not arm.is_used:
                self.widths[arm] = self.named(f"np.count_nonzero({mask})").text
                return
            chosen = self.chosen[arm] = self.named(f"np.flatnonzero({mask})").text
            self.sels[arm] = self.named(f"{self.sel}[{chosen}]").text if self.sel else chosen
            self.widths[arm] = self.named(f"len({chosen})").text

    # ------------------------------------------------------------ values

    def _by_numpy(self, fn: str, code: Code, elems: tuple[Scalar, ...]) -> bool:
        """Whether NumPy gives every iteration the bits that it has by itself.

        The lengths of pieces depend on the time that they take, and must not show.
        """
        return bool(code.numpy) and is_alike(fn, elems)

    def apply(self, node: Apply) -> Value:
        if any(rank_of(type_of(a)) for a in node.args):
            raise Declined("it computes with whole arrays")
        return super().apply(node)

    def _length(self, node: Apply) -> Value:
        raise Declined("it computes with whole arrays")

    def lanes(self, node: Expr) -> Value:
        """A value in the lanes of the arm, taken from values known outside."""
        number, outer = self.known.number(node), self.arm.arm
        if number in self.known.have or outer is None or not self._is_outside(node, number):
            return super().lanes(node)
        with self.inside(outer):
            held = self.lanes(node)
        made = self.named(f"{held.text}[{self.chosen[self.arm]}]")
        self.known.remember(number, made)
        return made

    def _is_outside(self, node: Expr, number: int) -> bool:
        if not self.known.differs(node):
            return False
        outer = [arm for arm in self.arm.outer if arm is not self.arm]
        if any(number in self._have.get(arm, ()) for arm in outer):
            return True
        return isinstance(node, Place) and not node.path and self._homes.get(node.reg) in outer

    def _held(self, place: Place) -> Value:
        if rank_of(type_of(place)):
            raise Declined("it computes with whole arrays")
        reg, made = place.reg, self.trace.made.get(place.reg)
        if isinstance(self.function.registers[reg].type, Array):
            return load(self, access(place, self.trace.counted))
        if place.path:
            part = "real" if cast(Part, place.path[0]).name == "re" else "imag"
            return self.named(f"{self.lanes(self.trace.place(reg)).text}.{part}")
        if isinstance(made, Let):
            return self.lanes(made.value)
        if made is not None:
            return self._merged(made)
        if reg == self.trace.counted.var:
            return self.named(self.run("_at", str(self.indices.stride or "_by")))
        return load(self, cast(Access, self.trace.behind[reg][0].found))

    def _merged(self, made: Merge) -> Value:
        """The old value, replaced in the lanes of arms by their values."""
        old = "0" if made.old is None else self.text(made.old)
        merged = self.named(f"vector({old}, {self.dtype(made.reg)}, {self.wide})")
        for arm, side in made.sides:
            with self.inside(arm):
                text = self.text(side)
            self.lines.append(f"{merged.text}[{self.chosen[arm]}] = {text}")
        return merged

    def run(self, first: str, rate: str) -> str:
        """A value that grows in equal steps from lane to lane, in the lanes of the arm."""
        if not self.sel:
            return f"steps({first}, {rate}, _k)"
        return f"{first} + {self.sel if rate == '1' else f'{rate} * {self.sel}'}"

    def text(self, node: Expr) -> str:
        """A value, which may be one for all lanes."""
        return self.lanes(node).text if self.known.differs(node) else self.fixed(node)

    def vector(self, node: Expr) -> str:
        """A value as an array of all lanes."""
        text, differs = self.text(node), self.known.differs(node)
        name = elem_of(type_of(node)).name
        return text if differs else f"vector({text}, dtype_{name}, {self.wide})"

    def dtype(self, reg: int) -> str:
        """The name of the dtype of a register's numbers."""
        return f"dtype_{elem_of(self.function.registers[reg].type).name}"

    def cell_name(self, slot: Slot) -> str:
        """The variable that holds a cell between pieces."""
        name = self._cells.get(slot)
        if name is None and slot.found is None:
            name = self._cells[slot] = self.name(cast(int, slot.key))
        elif name is None and slot.found is not None:
            name = self._cells[slot] = f"_c{len(self._cells)}"
            self.top.append(f"{name} = {self.indices.at(slot.found)}.item()")
        assert name is not None
        return name
