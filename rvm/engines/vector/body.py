"""What an iteration does, in registers of its own: arms of statements on scalars alone.

An element that iterations change becomes a register: a value in each lane (an iteration), which is
stored when all is computed.  What an iteration finds as others have left it is a register that is
*given*.  Branches become forks, whose arms are done in some of the lanes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

from rvm.engines.vector.access import Access, access
from rvm.engines.vector.cells import Cell, combiner
from rvm.engines.vector.loops import Counted, Declined
from rvm.engines.vector.survey import Survey
from rvm.expr import LENGTHS, Apply, Const, Expr, Place, rebuild
from rvm.image import Code
from rvm.ir.flow import JUMPS, Edge
from rvm.ir.structure import Again, Choice, Loop, Pieces, Straight, Structure
from rvm.program import Register
from rvm.stmt import Alloc, Branch, Drop, Exchange, Free, Fresh, Land, Map, Stmt, Update, When
from rvm.types import BOOL, Array, Scalar, elem_of, rank_of


@dataclass(frozen=True, slots=True, eq=False)
class Do:
    """A statement on scalar registers, of the instruction at `pc`."""

    pc: int
    stmt: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A condition that must be `want` in all lanes."""

    cond: Expr
    want: bool


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What a running value is combined with; `negated` if it is taken away from a sum."""

    cell: Cell
    value: Expr
    negated: bool


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """What is added to an element, in the order of iterations; `f` is the ufunc."""

    found: Access
    f: str
    value: Expr

    @property
    def is_scattered(self) -> bool:
        """Whether iterations may share the element in any order."""
        return self.found.kind == "scattered"


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """Arms for the lanes in which a condition holds and for those in which it does not."""

    cond: Expr
    yes: Arm
    no: Arm


Item = Do | Check | Part | Sum | Fork


@dataclass(slots=True, eq=False)
class Arm:
    """What some lanes do: all of those of `parent`, or those that a condition selects of them."""

    parent: Arm | None = None
    items: list[Item] = field(default_factory=list)
    ticks: int = 0
    """Those that an iteration spends in it, inner arms aside."""
    passed: list[tuple[Edge, int]] = field(default_factory=list)
    """The edges that an iteration passes in it, and how often; -1 if outer arms have counted it."""
    origin: Arm | None = None
    """The arm that it is a part of, if it is a part of one."""

    @property
    def outer(self) -> list[Arm]:
        """It, and those around it."""
        return [self, *(self.parent.outer if self.parent else ())]


@dataclass(slots=True, eq=False)
class Element:
    """An element that iterations change, as a register that the lanes of the arm `home` have."""

    reg: int
    found: Access
    home: Arm
    uses: int = 0
    """How often the register stands in a statement."""


class Body:
    """The arms of a loop's body, the registers that it needs beside the function's, and cells."""

    def __init__(self, code: Code, structure: Structure, loop: Loop, counted: Counted) -> None:
        self.code = code
        self.structure = structure
        self.counted = counted
        self.survey = Survey(code, counted)
        self.registers = list(code.function.registers)
        self.cells: dict[Hashable, Cell] = {}
        self.elements: dict[Hashable, Element] = {}
        self.delayed: dict[Hashable, int] = {}
        """Elements that the iteration before has changed, as registers that are given."""
        self.labels: dict[int, str] = {}
        """The registers that are given, as the assembly language writes them."""
        self.sums: list[Sum] = []
        self._make_cells()
        self.root = self._arm = Arm()
        self._go(self.root, loop.body)
        for _, changed in self.survey.delayed.values():
            if changed.key in self.elements:
                self.elements[changed.key].home = self.root

    @property
    def in_any_order(self) -> bool:
        """Whether no iteration finds what another has left, and nothing else tells their order."""
        survey = self.survey
        handed_on = survey.delayed or survey.apart or any(s.is_scattered for s in self.sums)
        return not handed_on and all(cell.is_reduced for cell in self.cells.values())

    @property
    def arms(self) -> list[Arm]:
        """All arms, the outer ones first."""
        return list(_arms(self.root))

    # ------------------------------------------------------------ registers

    def _register(self, name: str, t: Scalar) -> int:
        self.registers.append(Register(name, t))
        return len(self.registers) - 1

    def _make_cells(self) -> None:
        for reg in self.survey.carried:
            name = self.registers[reg].name
            t = self.registers[reg].type
            assert isinstance(t, Scalar)
            self.cells[reg] = Cell(reg, t, f"`{name}`", None, self.survey.updates(reg))
            self.labels[reg] = f"`{name}`"
        for found in self.survey.cells:
            reg, label = self._element(found), self.survey.show(found)
            t = elem_of(found.place.type or BOOL)
            self.cells[found.key] = Cell(reg, t, label, found, self.survey.updates(found.key))
            self.labels[reg] = label

    def _element(self, found: Access) -> int:
        name = self.registers[found.reg].name
        return self._register(name, elem_of(found.place.type or BOOL))

    # ------------------------------------------------------------ control

    def _go(self, arm: Arm, pieces: Pieces) -> None:
        for piece in pieces:
            match piece:
                case Loop():
                    raise Declined("it holds another loop")
                case Choice():
                    self._choice(arm, piece)
                case Straight(leader):
                    self._straight(arm, leader)
                    self._along(arm, self.structure.ways[leader][0])
                case Again(leader):
                    self._straight(arm, leader)
                    arm.ticks += 1
                    arm.passed.append((self.structure.ways[leader][0], 1))

    def _straight(self, arm: Arm, leader: int) -> None:
        """A leader's block, up to its jump."""
        for pc in range(leader, self.structure.ways[leader][0].last):
            self._arm = arm
            arm.ticks += 1
            if pc in range(self.counted.first, self.counted.stop):
                for stmt in (*self.code.stmts(pc), *self.code.notes(pc)):
                    self._do(pc, stmt)

    def _along(self, arm: Arm, way: Edge) -> None:
        """The one way on from a block."""
        arm.passed.append((way, 1))
        if way.how == JUMPS:
            self._expect(way.target - 1, arm, True)
        arm.ticks += way.how == JUMPS or way.last < way.target

    def _fork(self, cond: Expr) -> Fork:
        fork = Fork(self._value(cond), Arm(self._arm), Arm(self._arm))
        self._arm.items.append(fork)
        return fork

    def _choice(self, arm: Arm, piece: Choice) -> None:
        jumped, fallen = self.structure.ways[piece.leader]
        self._straight(arm, piece.leader)
        branch, self._arm = self.code.stmts(jumped.last)[0], arm
        assert isinstance(branch, Branch)
        arm.ticks += 1
        fork = self._fork(branch.cond)
        # Those who jump are not counted: they are all but the others.
        arm.passed.append((jumped, 1))
        fork.no.passed += [(jumped, -1), (fallen, 1)]
        self._expect(branch.partner, fork.yes, True, branch.cond)
        self._go(fork.yes, piece.jumped)
        self._go(fork.no, piece.fallen)

    def _expect(self, pc: int, arm: Arm, wanted: bool, same: Expr | None = None) -> None:
        """A come-from's condition must hold, or must not."""
        landing, self._arm = self.code.stmts(pc)[0], arm
        assert isinstance(landing, Land)
        if not (wanted and landing.cond in (same, Const(True, BOOL))):
            arm.items.append(Check(self._value(landing.cond), wanted))

    # ------------------------------------------------------------ statements

    def _do(self, pc: int, stmt: Stmt) -> None:
        match stmt:
            case Update(dst, op, value):
                item = self._update(pc, dst, op, self._value(value))
            case Exchange(a, b):
                self._scalars(a, b)
                item = Do(pc, Exchange(self._target(a), self._target(b)))
            case Map(dsts, values, _):
                self._scalars(*dsts)
                new = tuple(map(self._value, values))
                item = Do(pc, Map(tuple(map(self._target, dsts)), new, ()))
            case When(cond, body):
                outer, self._arm = self._arm, self._fork(cond).yes
                for inner in body:
                    self._do(pc, inner)
                self._arm = outer
                return
            case Land():
                self._expect(pc, self._arm, False)
                return
            case Alloc(_, value) | Free(_, value):
                assert value is not None
                item = Do(pc, replace(stmt, value=self._value(value)))
            case Fresh() | Drop():
                item = Do(pc, stmt)
            case _:
                raise Declined("it holds what is not arithmetic")
        self._arm.items.append(item)

    def _scalars(self, *places: Place) -> None:
        if any(rank_of(p.type or BOOL) for p in places):
            raise Declined("it changes whole arrays")

    def _update(self, pc: int, dst: Place, op: str, value: Expr) -> Item:
        self._scalars(dst)
        t = elem_of(dst.type or BOOL)
        key: Hashable = dst.reg
        if isinstance(self.registers[dst.reg].type, Array):
            found = access(dst, self.counted)
            key = found.key
            if found.reg in self.survey.summed or self.survey.is_summed(found):
                made = Sum(found, combiner({op}, t), value)
                again = any(other.found.reg == found.reg for other in self.sums)
                if again and not t.is_exact and made.is_scattered:
                    raise Declined(f"{self.survey.show(found)} is changed twice in an iteration")
                self.sums.append(made)
                return made
        cell = self.cells.get(key)
        if cell is not None and cell.is_running:
            part = Part(cell, value, op == "-" and cell.combiner == "np.add")
            cell.parts += 1
            return part
        return Do(pc, Update(self._target(dst), op, value))

    def _target(self, dst: Place) -> Place:
        """What is changed, as a register."""
        if not isinstance(self.registers[dst.reg].type, Array):
            return dst
        found = access(dst, self.counted)
        cell = self.cells.get(found.key)
        if cell is not None:
            return Place(cell.reg, (), cell.type)
        known = self.elements.get(found.key)
        if known is None:
            known = Element(self._element(found), found, self._arm)
            self.elements[found.key] = known
        return self._use(known)

    def _use(self, known: Element) -> Place:
        around = self._arm.outer
        known.home = next(arm for arm in known.home.outer if arm in around)
        known.uses += 1
        return Place(known.reg, (), self.registers[known.reg].type)  # type: ignore[arg-type]

    def _value(self, node: Expr) -> Expr:
        """An expression over registers, and elements as they are in memory."""
        if not isinstance(node, Place):
            if isinstance(node, Apply) and node.fn in LENGTHS:
                return node
            return rebuild(node, self._value)
        if node.reg not in self.counted.changed:
            return rebuild(node, self._value)
        if not isinstance(self.registers[node.reg].type, Array):
            cell = self.cells.get(node.reg)
            return node if cell is None or not cell.is_running else self._running(cell, node)
        found = access(node, self.counted)
        cell = self.cells.get(found.key)
        if cell is not None:
            if cell.is_running:
                return self._running(cell, node)
            return Place(cell.reg, (), cell.type)
        if found.key in self.survey.delayed:
            reg = self.delayed.get(found.key)
            if reg is None:
                reg = self.delayed[found.key] = self._element(found)
                self.labels[reg] = self.survey.show(found)
            return Place(reg, (), node.type)
        known = self.elements.get(found.key)
        # Until it is changed, memory holds it.
        return rebuild(node, self._value) if known is None else self._use(known)

    def _running(self, cell: Cell, node: Place) -> Expr:
        """A running value as it is here."""
        reg = cell.reads.get(cell.parts)
        if reg is None:
            name = self.registers[cell.reg].name
            reg = cell.reads[cell.parts] = self._register(name, cell.type)
            self.labels[reg] = cell.label
        return Place(reg, node.path if cell.access is None else (), node.type)


def _arms(arm: Arm) -> Iterator[Arm]:
    yield arm
    for item in arm.items:
        if isinstance(item, Fork):
            yield from _arms(item.yes)
            yield from _arms(item.no)
