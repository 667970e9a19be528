"""An iteration as values: every change of a register or an element creates a new one.

The body is traversed once, as a run would do.  Each value assigned to a scalar or an element gets a
new register (R. Cytron et al., "Efficiently computing static single assignment form", 1991), which
later reads use.  Branches become *arms*, which are executed for some of the lanes (iterations);
after them values are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from rvm.engines.vector.access import access
from rvm.engines.vector.body import Arm, Check, End, Item, Let, Merge
from rvm.engines.vector.loops import Counted, Declined
from rvm.engines.vector.slots import Slot
from rvm.expr import LENGTHS, Apply, Const, Expr, Place, rebuild
from rvm.image import Code
from rvm.ir.flow import JUMPS, Edge
from rvm.ir.structure import Again, Choice, Loop, Pieces, Straight, Structure
from rvm.ir.typed import type_of
from rvm.numbers import system
from rvm.program import Register
from rvm.stmt import (
    Alloc,
    Branch,
    Drop,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
)
from rvm.types import BOOL, Array, Scalar, Stack, elem_of, rank_of
from rvm.verify.text import show

MOST = 200
"""Elements that are compared with each other."""


class Trace:
    """The items of a loop's body in order, the registers made, and slots by their keys.

    At the end `env` holds the value that the last change has left in each.
    """

    def __init__(self, code: Code, structure: Structure, loop: Loop, counted: Counted) -> None:
        self.code = code
        self.structure = structure
        self.counted = counted
        self.registers = list(code.function.registers)
        self.items: list[Item] = []
        self.slots: dict[Hashable, Slot] = {}
        self.made: dict[int, Let | Merge] = {}
        """The definitions of registers that are not slots' entries."""
        self.behind: dict[int, tuple[Slot, int]] = {}
        """Registers that hold a slot's value, after this many of its updates."""
        self.asked: set[int] = set()
        """Registers that are read."""
        self.env: dict[Hashable, int | None] = {}
        self.root = self._arm = Arm()
        self.arms = [self.root]
        """All arms, the outer ones first."""
        self._go(loop.body)

    # ------------------------------------------------------------ registers and slots

    def _register(self, t: Scalar) -> int:
        n = len(self.registers)
        self.registers.append(Register(f".{n}", t))
        return n

    def place(self, reg: int) -> Place:
        """A register that holds a value, as a place."""
        return Place(reg, (), elem_of(self.registers[reg].type))

    def _item(self, item: Item) -> None:
        self.items.append(item)
        for arm in item.arm.outer if item.arm is not None else ():
            arm.is_used = True

    def _let(self, key: Hashable, value: Expr, op: str = "", by: Expr | None = None) -> None:
        """Assign a register or an element a value."""
        reg = self.env[key] = self._register(elem_of(type_of(value)))
        slot = self.slots.get(key)
        if slot is not None:
            slot.ops.add(op)
            slot.parts += bool(op)
            self.behind[reg] = slot, slot.parts
        made = self.made[reg] = Let(self._arm, reg, value, op, by, slot)
        self._item(made)

    def _slot(self, place: Place) -> Hashable:
        """The key of a scalar or an element; it has a slot if it is found as it was."""
        register, found = self.registers[place.reg], None
        key: Hashable = place.reg
        label = f"`{register.name}`"
        if isinstance(register.type, Array):
            if not place.path or rank_of(place.type or BOOL):
                raise Declined(f"it changes {label} and uses more of it than an element")
            inner = rebuild(place, self._value)
            assert isinstance(inner, Place)
            found = access(inner, self.counted)
            key = found.key
        if key not in self.env and key not in self.slots:
            t = elem_of(place.type or register.type)
            if found is not None:
                label = self.show(place)
                found = replace(found, label=label)
            made = self.slots[key] = Slot(key, self._register(t), t, label, found)
            self.behind[made.entry] = made, 0
            if sum(s.found is not None for s in self.slots.values()) > MOST:
                raise Declined(f"it reaches more than {MOST} elements of what it changes")
        return key

    def show(self, place: Place) -> str:
        """A place as the assembly language writes it."""
        return f"`{show(place, self.code.function)}`"

    def _now(self, key: Hashable) -> Place:
        """The present value of a scalar or an element."""
        reg = self.env.get(key)
        return self.place(self.slots[key].entry if reg is None else reg)

    # ------------------------------------------------------------ control

    def _go(self, pieces: Pieces) -> None:
        for piece in pieces:
            match piece:
                case Loop():
                    raise Declined("it holds another loop")
                case Choice():
                    self._choice(piece)
                case Straight(leader):
                    self._straight(leader)
                    self._along(self.structure.ways[leader][0])
                case Again(leader):
                    self._straight(leader)
                    self._arm.ticks += 1
                    self._arm.passed.append((self.structure.ways[leader][0], 1))

    def _straight(self, leader: int) -> None:
        """The basic block of a leader, up to its jump."""
        for pc in range(leader, self.structure.ways[leader][0].last):
            self._arm.ticks += 1
            if pc in range(self.counted.first, self.counted.stop):
                for stmt in (*self.code.stmts(pc), *self.code.notes(pc)):
                    self._do(pc, stmt)

    def _along(self, way: Edge) -> None:
        """The single successor of a block."""
        self._arm.passed.append((way, 1))
        if way.how == JUMPS:
            self._expect(way.target - 1, True)
        self._arm.ticks += way.how == JUMPS or way.last < way.target

    def _choice(self, piece: Choice) -> None:
        jumped, fallen = self.structure.ways[piece.leader]
        self._straight(piece.leader)
        branch = self.code.stmts(jumped.last)[0]
        assert isinstance(branch, Branch)
        self._arm.ticks += 1
        # The lanes that jump are not counted: their number follows from that of the others.
        self._arm.passed.append((jumped, 1))

        def yes() -> None:
            self._expect(branch.partner, True, branch.cond)
            self._go(piece.jumped)

        def no() -> None:
            self._arm.passed += [(jumped, -1), (fallen, 1)]
            self._go(piece.fallen)

        self._fork(branch.cond, no, yes)

    def _fork(self, cond: Expr, no: Callable[[], None], yes: Callable[[], None]) -> None:
        """Follow both branches, each from the same state, and merge their results."""
        outer, before = self._arm, self.env
        cond, want, ends = self._value(cond), True, []
        while isinstance(cond, Apply) and cond.fn == "not":
            cond, want = cond.args[0], not want
        for side, go in ((not want, no), (want, yes)):
            arm = self._arm = Arm(outer, (cond,), side)
            self.env = dict(before)
            self.arms.append(arm)
            self._item(arm)
            go()
            ends.append((arm, self.env))
        self._arm, self.env = outer, dict(before)
        for key in dict.fromkeys(key for _, env in ends for key in env):
            sides = [(a, env[key]) for a, env in ends if env.get(key) != before.get(key)]
            if any(reg is None for _, reg in sides):
                self.env[key] = None
            elif sides:
                self._merge(key, tuple((a, self.place(reg)) for a, reg in sides if reg is not None))

    def _merge(self, key: Hashable, sides: tuple[tuple[Arm, Place], ...]) -> None:
        slot = self.slots.get(key)
        is_there = slot is not None or self.env.get(key) is not None
        old = self._now(key) if is_there else None
        reg = self.env[key] = self._register(elem_of(type_of(sides[0][1])))
        if slot is not None:
            self.behind[reg] = slot, slot.parts
        self.made[reg] = Merge(self._arm, reg, old, sides)

    def _expect(self, pc: int, wanted: bool, same: Expr | None = None) -> None:
        """Check that a come-from's condition has the required value."""
        landing = self.code.stmts(pc)[0]
        assert isinstance(landing, Land)
        if not (wanted and landing.cond in (same, Const(True, BOOL))):
            self._item(Check(self._arm, (self._value(landing.cond),), wanted))

    # ------------------------------------------------------------ statements

    def _do(self, pc: int, stmt: Stmt) -> None:
        match stmt:
            case Update(dst, op, value):
                by, key = self._value(value), self._target(dst)
                old, t = self._now(key), elem_of(dst.type or BOOL)
                self._let(key, Apply(op, (old, by), t), op, by)
            case Exchange(a, b):
                self._assign((a, b), (b, a))
            case Map(dsts, values, _):
                self._assign(dsts, values)
            case When(cond, body):

                def inner() -> None:
                    for each in body:
                        self._do(pc, each)

                self._fork(cond, lambda: None, inner)
            case Land():
                self._expect(pc, False)
            case Alloc(Place(reg)) | Fresh(Place(reg)) | Free(Place(reg)) | Drop(Place(reg)):
                register = self.registers[reg]
                if isinstance(register.type, (Array, Stack)):
                    raise Declined(
                        f"`{register.name}` is an array or a stack of each iteration's own"
                    )
                if isinstance(stmt, (Free, Drop)):
                    self._end(pc, stmt)
                else:
                    t = elem_of(register.type)
                    given = stmt.value if isinstance(stmt, Alloc) else Const(system(t).zero, t)
                    assert given is not None
                    self._let(reg, self._value(given))
            case Push(_, stack) | Pop(_, stack):
                raise Declined(f"iterations share the stack `{self.registers[stack.reg].name}`")
            case _:
                raise Declined("it holds what is not arithmetic")

    def _assign(self, dsts: tuple[Place, ...], values: tuple[Expr, ...]) -> None:
        new = [self._value(v) for v in values]
        keys = [self._target(d) for d in dsts]
        for key, value in zip(keys, new, strict=True):
            self._let(key, value)

    def _target(self, dst: Place) -> Hashable:
        """The key of the changed register or element."""
        if dst.path and not isinstance(self.registers[dst.reg].type, Array):
            raise Declined(f"{self.show(dst)} is a part of a number")
        return self._slot(dst)

    def _end(self, pc: int, stmt: Free | Drop) -> None:
        value = stmt.value if isinstance(stmt, Free) else None
        judged = (stmt.judged or ()) if isinstance(stmt, Free) else ()
        returns = isinstance(stmt, Free) and stmt.returns
        given = None if value is None else self._value(value)
        held = self._now(self._slot(stmt.reg))
        sizes = tuple(self._value(s) for s in judged)
        self._item(End(self._arm, pc, held, given, sizes, returns))
        for place in (stmt.reg, *(stmt.held or ())):
            if place.reg in self.slots:
                self.slots[place.reg].ops.add("")
            self.env[place.reg] = None

    # ------------------------------------------------------------ expressions

    def _value(self, node: Expr) -> Expr:
        """An expression that is evaluated here, over registers that are made once."""
        if isinstance(node, Apply) and node.fn in LENGTHS:
            return node
        if (
            not isinstance(node, Place)
            or node.reg == self.counted.var
            or node.reg in self.counted.fixed
        ):
            return rebuild(node, self._value)
        key = self._slot(node)
        slot = self.slots.get(key)
        if slot is not None:
            slot.is_read = True
        path = () if isinstance(self.registers[node.reg].type, Array) else node.path
        found = self._now(key)
        self.asked.add(found.reg)
        return Place(found.reg, path, node.type)
