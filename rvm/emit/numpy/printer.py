"""From statements to NumPy calls over lanes; see `values` and `ancillas` for the rest.

The vector of a scalar belongs to its frame and is changed in place, or exchanged for another; an
array's memory may be seen through several views and is only written to.  All checks are made before
anything changes, so a statement that raises can be executed again without the failing lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from rvm.emit.numpy import places
from rvm.emit.numpy.ancillas import give_up, make, zero
from rvm.emit.numpy.known import Known, Value
from rvm.emit.numpy.ufuncs import UFUNCS
from rvm.emit.numpy.values import LaneValues
from rvm.emit.python.lines import bare
from rvm.emit.python.printer import Printer
from rvm.expr import Apply, Const, Expr, Place
from rvm.image import Clash
from rvm.ir.typed import Unprintable, element, scalar_of, type_of
from rvm.isa import implementation
from rvm.numbers import fill, system
from rvm.program import Function
from rvm.stmt import (
    FORWARD,
    Alloc,
    Drop,
    Effect,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    writes,
)
from rvm.types import Scalar, elem_of, rank_of


class LanePrinter(LaneValues):
    """Prints the statements of a segment."""

    def __init__(
        self,
        function: Function,
        names: dict[str, object],
        varying: Collection[int],
        special: Callable[[str], str | None],
    ) -> None:
        # Code for values that are the same in all lanes is that of single runs, but never raises.
        scalars = Printer(function, names, total=True)
        super().__init__(scalars, Known(function, varying), special)

    def statement(self, stmt: Stmt, clashes: Sequence[Clash] = ()) -> list[str]:
        """The lines that do a statement in all lanes; Unprintable if it is not for this printer."""
        lines = self.begin()
        self.apart(clashes)
        match stmt:
            case Update():
                self._update_lanes(stmt)
            case Exchange(a, b):
                self._exchange_lanes(a, b)
            case Map(dsts, values, _):
                self._map_lanes(dsts, values)
            case Alloc(reg) | Fresh(reg):
                make(self, reg, stmt.value if isinstance(stmt, Alloc) else None)
            case Free() | Drop():
                give_up(self, stmt)
            case Push(src, stack):
                lines.append(f"{self.regs[stack.reg]}.push({self.lanes(src).text})")
                self._put(src, Value(self.constant(zero(src))))
                self.known.changed(stack.reg)
            case Pop(dst, stack):
                held, name = self.lanes(dst), self.regs[stack.reg]
                t = self.bind(system(scalar_of(dst)))
                lines.append(f"cleared(_ctx, {t}, {held.text}, _W)")
                lines.append(f"{name}.ready(_W)")
                self._put(dst, self.named(f"{name}.pop()"))
                self.known.changed(stack.reg)
            case Land(cond, _):
                if cond != Const(False, cond.type):  # type: ignore[arg-type]
                    self.check(cond, False)
            case Effect("assert", _, args, when):
                if when & FORWARD:
                    self.check(args[0], True)
            case Effect():
                if stmt.when & FORWARD:
                    raise Unprintable
            case _:
                raise Unprintable
        return lines

    def uniform(self, stmts: Sequence[Stmt], clashes: Sequence[Clash]) -> list[str]:
        """The lines of an instruction on uniform registers alone: as in single runs."""
        lines = self.scalars.instruction(stmts, clashes)
        self.forget(stmts)
        return lines

    def forget(self, stmts: Sequence[Stmt]) -> None:
        """Record that statements have changed the places that they name."""
        for stmt in stmts:
            for place in writes(stmt):
                self.known.changed(place.reg)

    def taken(self) -> list[str]:
        """The lines printed since the last time."""
        found, self.lines[:] = list(self.lines), []
        return found

    def line(self, text: str) -> None:
        """Print a line."""
        self.lines.append(text)

    def check(self, cond: Expr, want: bool) -> None:
        """A line that raises, naming lanes, unless a condition has the wanted value."""
        if not self.known.differs(cond):
            text = bare(self.value(cond))
            if text != str(want):
                self.lines.append(f"if {'not ' * want}({text}): trouble()")
        else:
            super().check(cond, want)

    def mask(self, cond: Expr) -> str:
        """A condition that varies, as a separate vector of bools."""
        self.lines.append(f"_m = spread({self.lanes(cond).text}, _W)")
        return "_m"

    def apart(self, clashes: Sequence[Clash]) -> None:
        """Lines that raise where places that must be apart are not."""
        for a, b, same_ok in clashes:
            one, two = element(a), element(b)
            if one is not None and two is not None and len(one) == len(two):
                if same_ok:
                    continue
                same: Expr | None = None
                for i, j in zip(one, two, strict=True):
                    equal = Apply("==", (i, j), _BOOL)
                    same = equal if same is None else Apply("&", (same, equal), _BOOL)
                assert same is not None
                self.check(same, False)
            else:
                views = f"{self._cell(a)}, {self._cell(b)}"
                self.lines.append(f"distinct({views}, {same_ok})")

    def _cell(self, place: Place) -> str:
        """A view of a place for a test of overlap."""
        view = places.view_of(self, place)
        return view if rank_of(type_of(place)) or place.reg in self.varying else f"cell({view})"

    # ------------------------------------------------------------ storing

    def _target(self, dst: Place) -> tuple[str, str | None]:
        """The target for storing a place: a view that can be written to, or a view and a key."""
        if not dst.path:
            return self.regs[dst.reg], None
        base, key = places.found(self, dst)
        if key is None:
            name = self.named(base).text
            return name, None
        return base, key

    def _put(self, dst: Place, value: Value, number: int | None = None) -> None:
        """Store a value, which has been computed, in a place."""
        self.lines.append(self.stored(dst, value.text))
        self.known.changed(dst.reg, number)

    def stored(self, place: Place, text: str) -> str:
        """The line that stores a text's value in a place; other lines may precede it."""
        if place.reg not in self.varying:
            return self.scalars.stored(place, text)
        return self._stored_to(*self._target(place), text)

    def _stored_to(self, target: str, key: str | None, text: str) -> str:
        return f"{target}[...] = {text}" if key is None else f"put({target}, {key}, {text}, _W)"

    # ------------------------------------------------------------ data statements

    def _update_lanes(self, stmt: Update) -> None:
        dst, t = stmt.dst, elem_of(type_of(stmt.dst))
        code = implementation(stmt.op, (t, t))
        value = self.lanes(stmt.value)
        number = None
        if not dst.path and not rank_of(type_of(dst)):
            number = self.known.intern(
                (stmt.op, dst.type, self.known.number(dst), self.known.number(stmt.value))
            )
        self.factor(stmt.op, t, value)
        target, key = self._target(dst)
        ranked = rank_of(type_of(dst)) > 0
        ufunc = UFUNCS.get(code.numpy)
        if ufunc is not None and key is None:
            self.lines.append(f"{ufunc}({target}, {value.text}, {target})")
        else:
            old = target if key is None else self.named(f"pick({target}, {key}, _W)").text
            new = fill(code.numpy, old, value.text)
            if ranked:
                self.lines.append(f"fits({old}, {value.text})")
            self.lines.append(self._stored_to(target, key, bare(new)))
        self.known.changed(dst.reg, number)

    def _exchange_lanes(self, a: Place, b: Place) -> None:
        scalar = all(isinstance(self.function.registers[p.reg].type, Scalar) for p in (a, b))
        if scalar and not a.path and not b.path:
            if a.reg != b.reg:
                x, y = self.regs[a.reg], self.regs[b.reg]
                m, n = self.known.number(a), self.known.number(b)
                self.lines.append(f"{x}, {y} = {y}, {x}")
                self.known.changed(a.reg, n)
                self.known.changed(b.reg, m)
            return
        self._map_lanes((a, b), (b, a))

    def _map_lanes(self, dsts: tuple[Place, ...], values: tuple[Expr, ...]) -> None:
        numbers = [self.known.number(v) for v in values]
        held = [self.lanes(v) for v in values]
        targets = [self._target(d) for d in dsts]
        texts = []
        for d, v, (target, key) in zip(dsts, held, targets, strict=True):
            # Another store may change the register that a value is in.
            text = self.named(f"copy({v.text})").text if v.home >= 0 else v.text
            if rank_of(type_of(d)):
                place = target if key is None else f"pick({target}, {key}, _W)"
                self.lines.append(f"fits({place}, {text})")
            texts.append(text)
        for (target, key), text in zip(targets, texts, strict=True):
            self.lines.append(self._stored_to(target, key, text))
        for d, n in zip(dsts, numbers, strict=True):
            self.known.changed(d.reg, n if not d.path and isinstance(d.type, Scalar) else None)


_BOOL = Scalar("bool")
