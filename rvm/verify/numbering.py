"""Value numbers: values with the same number are equal, whatever the inputs are.

Each register has the number of its value, and an item, which is an instruction or a whole loop or
`if`, maps the numbers before it to those after it (J. Cocke and J. T. Schwartz, 1970).  This
mapping is recorded in both directions: if the inverse of the item finds the numbers that the item
left, it restores the numbers before it.

The adjoint of a function undoes it, and also changes adjoints: calling it counts as an uncall of
the function for the values passed.  Likewise a tangent counts as a call of the function.  Adjoints
do more in one direction than in the other: branches on a register that distinguishes the directions
are followed where its value is known.

The lengths of an array have a number too, under `lengths_of` its register.  Elements and lengths
are apart, so that code that uses only a length does not depend on the elements; an array that is
removed and made again can have other lengths, and then all that used them counts as changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import cast

from rvm.expr import Apply, Const, Expr, Place, places
from rvm.expr import reads as read_by
from rvm.isa import ENDS, MAKES, invert_instr, lower
from rvm.numbers import system
from rvm.program import Function, Instr, Register
from rvm.stmt import Exchange, Stmt, reads, writes
from rvm.types import BOOL, Array, Stack, elem_of, rank_of
from rvm.verify.flow import Liveness
from rvm.verify.pieces import Counted, closed, counted, segments, touches_own, with_register

Numbers = tuple[tuple[int, int], ...]
"""Registers and the numbers of the values that they hold."""
Key = tuple[int, Numbers]
"""The number of an item's content, and the numbers of the values that it reads."""


InValues = Callable[[str], "tuple[Function, bool] | None"]
"""The effect of an adjoint or tangent on values, by name: a function, and whether it is undone;
None for other names."""


UPDATE, MOVE, MADE, GONE, ASKED = "update", "move", "made", "gone", "asked"


@dataclass(frozen=True, slots=True)
class Event:
    """The effect of an item on the numbers of registers, from one position to another.

    Its kind is `UPDATE` where it computes the value that it changes, `MOVE` where it exchanges two
    registers, `MADE` where a register is created; where one is removed, `GONE` if its contents are
    known, and `ASKED` if they are compared.
    """

    kind: str
    start: int
    end: int
    reads: frozenset[int]
    changed: Mapping[int, tuple[int, int]]
    """For each register its numbers before and after; none if the event makes or frees it.

    The variable of a counting loop is left out: what it ends with depends on the bounds alone.
    """


FIRST, LAST, VARIABLE = -2, -3, -4
"""They stand for registers: the bounds of a loop, and its variable."""


def lengths_of(reg: int) -> int:
    """What stands for the lengths of the array in a register."""
    return VARIABLE - 1 - reg


@dataclass(frozen=True, slots=True)
class Repeated:
    """A `for` loop as its effect on the registers `used`, and the inverse.

    Each is the effect of one iteration, their order, and the numbers of the bounds.
    """

    variable: int
    used: Collection[int]
    does: int
    ends: Numbers
    undoes: int
    back: Numbers

    def key(self, found: Numbers) -> Key:
        """The key of the loop if it begins with these numbers."""
        return self.does, self.ends + self._used(found)

    def undo_key(self, left: Numbers) -> Key:
        """The key of the loop that undoes it, if that begins with these numbers."""
        return self.undoes, self.back + self._used(left)

    def own(self, numbers: Numbers) -> Numbers:
        """The numbers of all registers except the variable."""
        return tuple((r, n) for r, n in numbers if r != self.variable)

    def _used(self, numbers: Numbers) -> Numbers:
        return tuple((r, n) for r, n in numbers if r in self.used)


class Items:
    """The instructions and items of a function, each analysed once."""

    def __init__(self, registers: Sequence[Register], inout: Mapping[str, Collection[int]]) -> None:
        self.registers = registers
        self.arrays = frozenset(k for k, r in enumerate(registers) if isinstance(r.type, Array))
        """The registers that hold arrays."""
        self.inout = inout
        self._forms: dict[object, int] = {}
        self._ways: dict[int, tuple[Instr, int, int]] = {}
        self._touched: dict[int, tuple[Instr, frozenset[int], frozenset[int]]] = {}
        self._stmts: dict[int, tuple[Instr, tuple[Stmt, ...]]] = {}
        self._renamed: dict[tuple[int, int], Instr] = {}

    def form(self, what: object) -> int:
        """The number of an item's content: keys hold it, so that the content is hashed once."""
        return self._forms.setdefault(what, len(self._forms))

    def item(self, code: Sequence[Instr], start: int) -> tuple[int, int]:
        """The number of an item that begins at a position, and that of its inverse."""
        last = start + len(code) - 1
        does, undoes = [], []
        for instr in code:
            way, back = self._both(instr)
            jump = instr.aux if instr.op in ("br", "cf") else None
            does.append((way, None if jump is None else jump - start))
            undoes.append((back, None if jump is None else last - jump))
        return self.form(tuple(does)), self.form(tuple(undoes[::-1]))

    def _both(self, instr: Instr) -> tuple[int, int]:
        """The number of an instruction, wherever it jumps to, and that of its inverse."""
        found = self._ways.get(id(instr))
        if found is None:
            way, back = (
                self.form((i.op, i.args, i.symbol, 0 if i.op in ("br", "cf") else i.aux))
                for i in (instr, invert_instr(instr))
            )
            found = self._ways[id(instr)] = instr, way, back
        return found[1:]

    def repeated(self, loop: Counted) -> tuple[int, int]:
        """The number of a loop's body and that of its inverse, whatever its variable is called."""
        return self.item([self._anonymous(i, loop.variable) for i in loop.body], loop.at)

    def _anonymous(self, instr: Instr, variable: int) -> Instr:
        """An instruction in which `VARIABLE` stands for the variable of a loop."""
        read, changed = self.touched(instr)
        if variable not in read and variable not in changed:
            return instr
        key = id(instr), variable
        found = self._renamed.get(key)
        if found is None:
            found = self._renamed[key] = with_register(instr, variable, VARIABLE)
        return found

    def stmts(self, instr: Instr) -> tuple[Stmt, ...]:
        """The statements of an instruction."""
        found = self._stmts.get(id(instr))
        if found is None:
            found = self._stmts[id(instr)] = instr, lower(instr)
        return found[1]

    def touched(self, instr: Instr) -> tuple[frozenset[int], frozenset[int]]:
        """The registers that an instruction reads, and those that it changes."""
        found = self._touched.get(id(instr))
        if found is None:
            stmts = self.stmts(instr)
            read = {p.reg for s in stmts for p in reads(s)}
            changed = {p.reg for s in stmts for p in writes(s, self.inout)}
            read |= self._measured(instr.args, read | changed)
            if instr.op in (*MAKES, *ENDS):
                reg = cast(Place, instr.args[0]).reg
                read |= self.used(*self.dims(reg))
                changed |= {lengths_of(reg)} if reg in self.arrays else set()
            found = self._touched[id(instr)] = instr, frozenset(read), frozenset(changed)
        return found[1:]

    def used(self, *values: Expr) -> set[int]:
        """What values depend on: registers, and the lengths of arrays."""
        read = {p.reg for v in values for p in read_by(v)}
        return read | self._measured(values, read)

    def _measured(self, values: Iterable[Expr], read: Collection[int]) -> set[int]:
        """The lengths of those arrays in values that are not read themselves."""
        unread = self.arrays.difference(read)
        if not unread:
            return set()
        used = (p.reg for v in values if not isinstance(v, Const) for p in places(v))
        return {lengths_of(reg) for reg in used if reg in unread}

    def dims(self, reg: int) -> tuple[Expr, ...]:
        """The lengths that a register is made with."""
        return tuple(d for d in self.registers[reg].dims if d is not None)

    def all_touched(self, code: Iterable[Instr]) -> tuple[set[int], set[int]]:
        """The registers that code reads, and those that it changes."""
        read: set[int] = set()
        changed: set[int] = set()
        for instr in code:
            more, also = self.touched(instr)
            read |= more
            changed |= also
        return read, changed


class Region:
    """Code from one position to another, entered at its beginning with unknown values."""

    def __init__(
        self,
        function: Function,
        items: Items,
        in_values: InValues,
        lives: Liveness,
        truth: Mapping[int, bool],
        start: int,
        end: int,
    ) -> None:
        self.function = function
        self.items = items
        self.in_values = in_values
        self.truth = dict(truth)
        """Known facts about registers that hold truth values."""
        self.found: list[int] = []
        self.begun: dict[int, int] = {}
        """The numbers of the initial values of registers; 0 for those made or removed here."""
        self.held: dict[int, int] = {}
        self.table: dict[Key, Numbers] = {}
        self.about: defaultdict[int, set[Key]] = defaultdict(set)
        """For each number, the entries in which it occurs."""
        self.count = 0
        self.lives = lives
        self.start, self.end = start, end
        self.events: list[Event] = []
        """The events on the path that every run takes, in order."""
        self.inner: list[Region] = []
        self.by_adjoint: list[int] = []
        """Those frees in `found` whose values an adjoint has restored."""
        self._brought: set[int] = set()
        """The registers whose values an adjoint has brought back."""
        self._item_at = start, end
        self._apart_from = 0
        """The number of enclosing branches that only one direction takes."""
        self._same: dict[int, int] = {}
        """Numbers that have been replaced by others."""
        self._walk(start, end)

    def _walk(self, start: int, end: int) -> None:
        at = start
        while at < end:
            behind = closed(self.function.code, at)
            self._item_at = at, behind
            if behind == at + 1:
                self._instruction(at, self.function.code[at])
            else:
                self._composite(at, behind)
            at = behind

    # ------------------------------------------------------------ numbers

    def number(self, reg: int) -> int:
        """The number of a register's value."""
        found = self.held.get(reg)
        if found is None:
            found = self.held[reg] = self._new()
            self.begun.setdefault(reg, found)
        return found

    def restores(self, reg: int) -> bool:
        """Whether a register that was live at first holds its first value."""
        return self.same(self.number(reg)) == self.same(self.begun[reg])

    def same(self, number: int) -> int:
        """The number that now represents a value."""
        while number in self._same:
            number = self._same[number]
        return number

    def _new(self) -> int:
        self.count += 1
        return self.count

    def _value(self, value: Expr) -> int:
        """The number of an expression's value."""
        if isinstance(value, Place) and not value.path:
            return self.number(value.reg)
        return self._computed(("value", value), self.items.used(value))

    def _computed(self, what: object, used: Collection[int]) -> int:
        """The number of what is computed from the contents of registers."""
        key = self.items.form(what), self._numbers(used)
        found = self.table.get(key)
        if found is None:
            found = ((-1, self._new()),)
            self._enter(key, found)
        return found[0][1]

    def _filled(self, reg: int, value: Expr) -> int:
        """The number of a register that holds a value, an array in every element."""
        if value.type is None or rank_of(value.type) or reg not in self.items.arrays:
            return self._value(value)
        return self._computed(("filled", value), {*self.items.used(value), lengths_of(reg)})

    def _enter(self, key: Key, result: Numbers) -> None:
        self.table[key] = result
        for _, n in (*key[1], *result):
            self.about[n].add(key)

    def _alike(self, a: int, b: int) -> None:
        """Two numbers represent one value: the second is replaced by the first."""
        if a == b:
            return
        self._same[a] = b

        def renamed(numbers: Numbers) -> Numbers:
            return tuple((r, b if n == a else n) for r, n in numbers)

        for reg, n in self.held.items():
            if n == a:
                self.held[reg] = b
        for key in self.about.pop(a, ()):
            result = self.table.pop(key, None)
            if result is not None:
                self._enter((key[0], renamed(key[1])), renamed(result))

    # ------------------------------------------------------------ items

    def _instruction(self, pc: int, instr: Instr) -> None:
        first = instr.args[0] if instr.args else None
        if instr.op in (*MAKES, *ENDS):
            self._life(pc, instr, cast(Place, first))
            return
        if instr.op == "pop" and not cast(Place, first).path:
            place = cast(Place, first)
            if self.number(place.reg) == self._zero(place.reg):
                self.found.append(pc)
        match self.items.stmts(instr):
            case (Exchange(Place(a, ()), Place(b, ())),):
                one, two = self.number(a), self.number(b)
                self.held[a], self.held[b] = two, one
                self._known(instr, (a, b))
                brought = {b: a, a: b}
                self._brought = {brought.get(r, r) for r in self._brought}
                if a != b:
                    self._happened(MOVE, (a, b), {a: (one, two), b: (two, one)})
                return
        read, changed = self.items.touched(instr)
        self._known(instr, changed)
        self._applied(instr, changed | read, changed)
        if instr.op == "push" and not cast(Place, first).path:
            reg = cast(Place, first).reg
            self._alike(self.number(reg), self._zero(reg))

    def _known(self, instr: Instr, changed: Collection[int]) -> None:
        """Record known facts about truth values."""
        place = instr.args[0] if instr.args else None
        turned = instr.op == "not" and isinstance(place, Place) and not place.path
        for reg in changed:
            held = self.truth.pop(reg, None)
            if turned and held is not None:
                self.truth[reg] = not held

    def _plain(self, call: Instr) -> Instr | None:
        """For a call of an adjoint or a tangent that of the function, as far as values go."""
        found = self.in_values(call.symbol) if call.op in ("call", "uncall") else None
        if found is None:
            return None
        f, undoes = found
        op = call.op if not undoes else "uncall" if call.op == "call" else "call"
        return Instr(op, call.args[: f.n_args], symbol=f.name)

    def _applied(self, instr: Instr, used: Set[int], changed: Set[int]) -> None:
        """Go over an instruction on data, or a call."""
        plain = self._plain(instr)
        if plain is not None:
            self._derived_call(instr, plain, used, changed)
        elif changed:
            self._item((instr,), used, changed)
        else:
            self._happened(UPDATE, used, {})

    def _derived_call(self, call: Instr, plain: Instr, used: Set[int], changed: Set[int]) -> None:
        """A call of a derivative: it changes values as the function, or its inverse, does.

        Duals depend on values and duals.
        """
        read, values = self.items.touched(plain)
        duals = changed - values
        if duals & read:
            self._item((call,), used, changed)
            return
        found, adjoint = self._numbers(used), plain.op != call.op
        self._applied(plain, values | read, values)
        if adjoint:
            self._brought |= values
        if duals:
            self._enter_item((call,), found, duals)

    def _life(self, pc: int, instr: Instr, place: Place) -> None:
        reg = place.reg
        t = self.function.registers[reg].type
        self.begun.setdefault(reg, 0)
        if isinstance(t, Stack):
            self.held.pop(reg, None)
            return
        known = instr.args[1] if len(instr.args) > 1 else None
        self.truth.pop(reg, None)
        if reg in self.items.arrays:
            self.begun.setdefault(lengths_of(reg), 0)
            if instr.op in MAKES:
                dims = self.items.dims(reg)
                self.held[lengths_of(reg)] = self._computed(("dims", dims), self.items.used(*dims))
        if instr.op == "fresh":
            if t == BOOL:
                self.truth[reg] = False
            self.held[reg] = self._zero(reg)
        elif instr.op == "alloc":
            assert known is not None
            self.held[reg] = self._filled(reg, known)
        elif instr.op == "free":
            assert known is not None
            is_it, must_be = self.number(reg), self._filled(reg, known)
            if is_it == must_be:
                self.found.append(pc)
            elif elem_of(t).is_exact:
                # The free compares them, so both are one value after it.
                self._alike(is_it, must_be)
        kind = MADE
        if instr.op in ENDS:
            self.held.pop(reg, None)
            self.held.pop(lengths_of(reg), None)
            is_known = instr.op == "drop" or self.found[-1:] == [pc]
            kind = GONE if is_known else ASKED
            if is_known and reg in self._brought:
                self.by_adjoint.append(pc)
        self._happened(kind, self.items.touched(instr)[0], {reg: (0, 0)})
        self._brought.discard(reg)

    def _zero(self, reg: int) -> int:
        t = elem_of(self.function.registers[reg].type)
        return self._filled(reg, Const(system(t).zero, t))

    def _composite(self, start: int, end: int) -> None:
        """A loop or an `if`: first its contents by themselves, then the whole as one item."""
        code = self.function.code[start:end]
        taken = self._taken(code) if code[0].aux == end - 1 else None
        if taken is not None:
            if taken:
                self._apart_from += 1
                self._walk(start + 1, end - 1)
                self._apart_from -= 1
            else:
                self._apart(start, end)
            return
        read, changed = self.items.all_touched(code)
        for reg in changed:
            self.truth.pop(reg, None)
        before, behind = self._live(start), self._live(end)
        live = before & behind
        inner = self._apart(start, end)
        back = {reg for reg in changed & live if all(part.restores(reg) for part in inner)}
        self._enter_item(
            code,
            self._numbers((changed | read) & before),
            changed & live - back,
            start,
            self._repeated(start, end),
        )
        for reg in changed - live:
            self.held.pop(reg, None)

    def _live(self, at: int) -> Set[int]:
        """The registers that are live at a position, and the lengths of arrays among them."""
        live = self.lives.live(at)
        return live | {lengths_of(reg) for reg in live if reg in self.items.arrays}

    def _repeated(self, start: int, end: int) -> Repeated | None:
        """A `for` loop by the numbers that it counts; loops with the same effect are equal to it.

        A body that does not read the variable counts by its number of iterations alone. One that
        changes only those elements of arrays whose index is the variable has no order; any other is
        undone from the last number to the first.
        """
        loop = counted(self.function.code, start, end)
        if loop is None or abs(loop.step) != 1:
            return None
        read, changed = self.items.all_touched(loop.body)
        used = changed | read
        bounds = self.items.used(loop.first, loop.last)
        if loop.behind in used or changed & {loop.variable, *bounds}:
            return None
        if self.number(loop.behind) != self._value(loop.end):
            return None
        first, last = self._value(loop.first), self._value(loop.last)
        way, turned = loop.step, -loop.step
        ends, back = ((FIRST, first), (LAST, last)), ((FIRST, last), (LAST, first))
        if loop.variable not in used or touches_own(loop.body, loop.variable, changed):
            # The order does not matter: upwards, whichever way the loop counts.
            ends = back = ends if way > 0 else back
            way = turned = 0
        own = used - {loop.variable}
        body, inverse = self.items.repeated(loop)
        does, undoes = self.items.form((way, body)), self.items.form((turned, inverse))
        return Repeated(loop.variable, own, does, ends, undoes, back)

    def _apart(self, start: int, end: int) -> list[Region]:
        """The contents of a loop or an `if`, separately: every path through it passes these."""
        parts = self.function, self.items, self.in_values, self.lives, self.truth
        inner = [Region(*parts, *ends) for ends in segments(self.function.code, start, end)]
        for part in inner:
            self.inner.append(part)
            self.found += part.found
            self.by_adjoint += part.by_adjoint
        return inner

    def _taken(self, code: Sequence[Instr]) -> bool | None:
        """Whether the code between a branch and its come-from is executed; None if unknown."""
        first, last = code[0], code[-1]
        if (first.op, last.op) != ("br", "cf") or first.args != last.args:
            return None
        match first.args[0]:
            case Place(reg, ()):
                held = self.truth.get(reg)
                return None if held is None else not held
            case Apply("not", (Place(reg, ()),)):
                return self.truth.get(reg)
        return None

    def _item(self, code: Sequence[Instr], used: Collection[int], changed: Collection[int]) -> None:
        """Go over an item, and enter it in both directions."""
        self._enter_item(code, self._numbers(used), changed)

    def _happened(
        self, kind: str, reads: Iterable[int], changed: Mapping[int, tuple[int, int]]
    ) -> None:
        if self._apart_from:
            # The other direction skips this: it undoes nothing, and nothing undoes it.
            kind, changed = UPDATE, dict.fromkeys(changed, (-1, -2))
        self.events.append(Event(kind, *self._item_at, frozenset(reads), changed))

    def _numbers(self, regs: Iterable[int]) -> Numbers:
        return tuple((r, self.number(r)) for r in sorted(regs))

    def _enter_item(
        self,
        code: Sequence[Instr],
        found: Numbers,
        changed: Collection[int],
        start: int = 0,
        loop: Repeated | None = None,
    ) -> None:
        does, undoes = self.items.item(code, start)
        order = sorted(changed)
        before = tuple((r, self.number(r)) for r in order)
        key = does, found
        after = self.table.get(key)
        if after is None or tuple(r for r, _ in after) != tuple(order):
            known = {} if loop is None else dict(self.table.get(loop.key(found), ()))
            if loop is not None and known.keys() != set(changed) - {loop.variable}:
                known = {}
            after = tuple((r, known.get(r) or self._new()) for r in order)
            self._enter(key, after)
        self.held.update(after)
        ways = zip(before, after, strict=True)
        counts = None if loop is None else loop.variable
        moved = {r: (b, a) for (r, b), (_, a) in ways if r >= 0 and r != counts}
        self._happened(UPDATE, (r for r, _ in found), moved)
        self._brought -= set(order)
        left = tuple((r, self.number(r)) for r, _ in found)
        self._enter((undoes, left), before)
        if loop is not None:
            self._enter(loop.key(found), loop.own(after))
            self._enter(loop.undo_key(left), loop.own(before))
