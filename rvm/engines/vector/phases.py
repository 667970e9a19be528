"""What iterations find as the one before has left it, and what must be computed to know that.

A register that is *given* is made of what a slice of the body computes (M. Weiser, "Program
slicing", 1981), for all iterations at once; that may need others to be given before.
"""

from __future__ import annotations

from dataclasses import dataclass

from rvm.engines.vector.body import Arm, Body, Check, Do, Fork, Item, Part, Sum
from rvm.engines.vector.cells import Cell
from rvm.engines.vector.loops import Declined
from rvm.expr import Expr, Place, reads
from rvm.isa import implementation
from rvm.stmt import Drop, Exchange, Free, Map, Update, writes
from rvm.stmt import reads as read_by
from rvm.types import elem_of


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """A slice of the body, and what is made of it.

    If there is a `cell` its values are run through.  Else `given` is what the iteration before has
    left in the register `after`; with `running` just what is given was added to that: a sum.
    """

    arm: Arm
    cell: Cell | None = None
    given: int = -1
    after: int = -1
    running: bool = False


class Phases:
    """The phases of a body in order, `found`, and what is left for the `last` one.

    Declined if an iteration goes on from what the one before makes of the same.
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        self.found: list[Phase] = []
        self._under: list[int] = []
        self._done: set[int] = set()
        self._makers: dict[int, Cell | int] = {}
        """What each given register is made of: a running cell, or what is left in a register."""
        for cell in body.cells.values():
            if cell.is_running:
                self._makers.update(dict.fromkeys(cell.reads.values(), cell))
            else:
                self._makers[cell.reg] = cell.reg
        for found, changed in body.survey.delayed.values():
            if found.key in body.delayed:
                self._makers[body.delayed[found.key]] = body.elements[changed.key].reg
        need: set[int] = set()
        kept(body.root, need, None, {c for c in body.cells.values() if not c.parts})
        self._make_all(need)
        done = {phase.cell for phase in self.found if phase.cell is not None}
        self.last = kept(body.root, set(), None, done)

    def _make_all(self, regs: set[int]) -> None:
        for reg in sorted(regs & self._makers.keys()):
            if reg not in self._done:
                self._make(reg)

    def _make(self, reg: int) -> None:
        """Enter the phase that gives a register, behind those that it needs."""
        maker, labels = self._makers[reg], self.body.labels
        if reg in self._under:
            names = sorted({labels[r] for r in self._under})
            raise Declined(
                f"an iteration goes on from {' and '.join(names)} as the one before has left it"
            )
        given = list(maker.reads.values()) if isinstance(maker, Cell) else [reg]
        self._under += given
        need: set[int] = set() if isinstance(maker, Cell) else {maker}
        if isinstance(maker, Cell):
            phase = Phase(kept(self.body.root, need, maker), maker)
        elif self._is_sum(maker, reg):
            phase, need = Phase(Arm(), None, reg, maker, True), set()
        else:
            phase = Phase(kept(self.body.root, need), None, reg, maker)
        self._make_all(need)
        del self._under[-len(given) :]
        self._done.update(given)
        self.found.append(phase)

    def _is_sum(self, changed: int, given: int) -> bool:
        """Whether what is given is added to an element, and nothing else is done to that."""
        t = elem_of(self.body.registers[changed].type)
        added = Update(Place(changed, (), t), "+", Place(given, (), t))
        made = [
            item
            for arm in self.body.arms
            for item in arm.items
            if isinstance(item, Do) and changed in written(item)
        ]
        if [item.stmt for item in made] != [added] or made[0] not in self.body.root.items:
            return False
        return implementation("+", (t, t)).numpy == "({0} + {1})"


def regs_in(*nodes: Expr) -> set[int]:
    """The registers that expressions depend on."""
    return {place.reg for node in nodes for place in reads(node)}


def written(*items: Item) -> set[int]:
    """The registers that items change, make or end, those in their arms included."""
    out: set[int] = set()
    for item in items:
        if isinstance(item, Do):
            out |= {place.reg for place in writes(item.stmt)}
        elif isinstance(item, Fork):
            out |= written(*item.yes.items, *item.no.items)
    return out


def kept(arm: Arm, need: set[int], cell: Cell | None = None, done: set[Cell] | None = None) -> Arm:
    """Those items of an arm that make the registers in `need`, and what `cell` is combined with.

    If cells that are `done` are named, all items but their parts.  In the end `need` holds the
    registers that these items need at the arm's beginning.
    """
    items = []
    for item in reversed(arm.items):
        found = _item(item, need, cell, done)
        if found is not None:
            items.append(found)
    return Arm(arm.parent, items[::-1], arm.ticks, arm.passed, arm.origin or arm)


def _item(item: Item, need: set[int], cell: Cell | None, done: set[Cell] | None) -> Item | None:
    match item:
        case Fork(cond, yes, no):
            needs = set(need), set(need)
            arms = [kept(a, n, cell, done) for a, n in zip((yes, no), needs, strict=True)]
            if done is None and not any(a.items for a in arms):
                return None
            need |= needs[0] | needs[1] | regs_in(cond)
            return Fork(cond, *arms)
        case Part(of, value):
            if of is not cell and (done is None or of in done):
                return None
            need |= regs_in(value)
        case Do():
            return _statement(item, need, done is not None)
        case Check(cond):
            if done is None:
                return None
            need |= regs_in(cond)
        case Sum(found, _, value):
            if done is None:
                return None
            need |= regs_in(value, found.place)
    return item


def _statement(item: Do, need: set[int], whole: bool) -> Do | None:
    stmt, made = item.stmt, written(item)
    ends = isinstance(stmt, (Free, Drop))
    if not whole:
        if ends or made.isdisjoint(need):
            return None
        if isinstance(stmt, Exchange) and not made <= need:
            stmt = Map((stmt.a, stmt.b), (stmt.b, stmt.a), ())
        if isinstance(stmt, Map):
            pairs = [(d, v) for d, v in zip(stmt.dsts, stmt.values, strict=True) if d.reg in need]
            stmt = Map(tuple(d for d, _ in pairs), tuple(v for _, v in pairs), ())
    if ends or isinstance(stmt, Update):
        need |= made
    else:
        need -= made
    need |= {place.reg for place in read_by(stmt)}
    return Do(item.pc, stmt)
