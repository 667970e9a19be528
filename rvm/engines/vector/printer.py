"""The text of a loop's body over lanes: phases, arms, and elements as they are reached.

Nothing is changed in place: a register is the number of the value that it holds.  What is to be
stored in the end is told in `stores`, `sums` and `finals`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from rvm.emit.lanes import LanePrinter
from rvm.emit.lanes_numbers import Value
from rvm.emit.lanes_values import COMPLEX, UFUNC, UFUNCS
from rvm.engines.vector.access import Access, access
from rvm.engines.vector.body import Arm, Body, Check, Do, Element, Fork, Part, Sum
from rvm.engines.vector.cells import Cell, neutral
from rvm.engines.vector.indices import Indices
from rvm.engines.vector.loops import Declined
from rvm.engines.vector.phases import Phase, Phases, regs_in, written
from rvm.expr import Apply, Const, Expr, Place, places
from rvm.expr import Part as PlacePart
from rvm.ir.node import Var
from rvm.ir.typed import type_of
from rvm.isa import FUNCTIONS, implementation
from rvm.isa.implementation import is_alike
from rvm.numbers import Code, system
from rvm.stmt import Alloc, Drop, Exchange, Free, Fresh, Map, Stmt, Update
from rvm.types import Array, Scalar, elem_of, rank_of


class LoopPrinter(LanePrinter):
    """Prints the phases of a body as lines of Python, to be done by `_k` lanes.

    What no iteration changes is computed as in ordinary code: what raises there leaves the loop
    to that.
    """

    viewed = False
    total = False

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
        super().__init__(function, names, self._changing, lambda fn: None, uses)
        self.constants = constants
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
        self._elements = {e.reg: e for e in body.elements.values()}
        self._fixed: dict[int, str] = {}
        self._cells: dict[Cell, str] = {}
        self._parts: dict[Cell, list[str]] = {}
        self._alone: set[Cell] = set()
        """Cells whose last part is an array that nothing else uses."""
        self._given: dict[int, int] = {}
        self._flat: dict[int, str] = {}
        """Registers that hold one value for all lanes."""
        self._kept: list[Value] = []
        self._placed: dict[object, str] = {}
        self._arm, self._width = body.root, "_k"
        self._inner = self._sel = ""
        """The lanes of an arm: as numbers of the lanes around, and of all lanes."""
        self._frames: list[dict[str, Any]] = []
        """What the arms around have of their own."""
        self.begin()
        for phase in phases.found:
            self._items(phase.arm)
            self._give(phase)
            self._begin_phase()
        self._items(phases.last)
        self.widths[body.root] = "_k"
        self._finish()
        self._spend(*self._kept)
        self.lines = self._lines

    # ------------------------------------------------------------ what no iteration changes

    def fixed(self, node: Expr) -> str:
        """An expression that no iteration changes, computed once."""
        if isinstance(node, Const):
            return self.constant(node.value)
        number = self.number(node)
        found = self._fixed.get(number)
        if found is None:
            for reg, text in self._flat.items():
                kind = elem_of(self.function.registers[reg].type).name
                self.builder.scalars[reg] = (Var(kind, text),)
            self.used |= {p.reg for p in places(node) if not self._is_lane(p.reg)}
            outside = dict(vars(self.text))
            self.text.begin()
            found = self.value(node)
            self.top += self._lines
            vars(self.text).update({**outside, "temps": self.text.temps})
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

    def _apply(self, node: Apply, fresh: str = "") -> Value:
        if any(rank_of(type_of(a)) for a in node.args):
            raise Declined("it computes with whole arrays")
        return super()._apply(node, fresh)

    def _into(self, ufunc: str, texts: list[str], t: Scalar, ranked: bool, fresh: str) -> Value:
        # Buffers are as long as pieces are.
        return super()._into(ufunc, texts, t, ranked or bool(self._sel), fresh)

    def _length(self, node: Apply) -> Value:
        raise Declined("it computes with whole arrays")

    def _is_lane(self, reg: int) -> bool:
        """Whether a register is a scalar that iterations change."""
        is_array = isinstance(self.function.registers[reg].type, Array)
        return reg in self._changing and not is_array

    def _register_number(self, reg: int) -> int:
        if reg in self._elements and reg not in self._register:
            return self.number(self._elements[reg].found.place)
        return super()._register_number(reg)

    def lanes(self, node: Expr) -> Value:
        """A value in the lanes of the arm; what is known outside is taken from there."""
        number = self.number(node)
        if number in self._have or not self._frames or not self._is_outside(node, number):
            return super().lanes(node)
        chosen = self._inner
        with self._outside():
            held = self.lanes(node)
        made = self._named(f"{held.text}[{chosen}]")
        self._spend(held)
        self._remember(number, made)
        return made

    def _is_outside(self, node: Expr, number: int) -> bool:
        if any(number in frame["_have"] for frame in self._frames):
            return True
        if not isinstance(node, Place) or node.path or not self.differs(node):
            return False
        element = self._elements.get(node.reg)
        inside = element is not None and self._arm in element.home.outer
        return node.reg != self.body.counted.var and not inside

    def _held(self, place: Place) -> Value:
        if rank_of(type_of(place)):
            raise Declined("it computes with whole arrays")
        reg = place.reg
        if isinstance(self.function.registers[reg].type, Array):
            return self._load(access(place, self.body.counted))
        if place.path:
            held = self.lanes(Place(reg, (), self.function.registers[reg].type))  # type: ignore[arg-type]
            self._kept.append(held)
            part = cast(PlacePart, place.path[0]).name
            return self._named(f"{held.text}.{'real' if part == 're' else 'imag'}")
        if reg in self._elements:
            return self._load(self._elements[reg].found)
        if reg != self.body.counted.var:
            raise Declined("it reads a register that it has not made")
        stride = self.indices.stride or "_by"
        first = f"_at + {stride} * {self._sel}"
        return self._named(first if self._sel else f"steps(_at, {stride}, _k)")

    def _load(self, found: Access) -> Value:
        """Elements as they are in memory."""
        view = "" if self._sel or self._guard else self.indices.view(found)
        if view:
            value = self._named(view)
            self.views.add(value.text)
            return value
        base, keys = self.indices.base(found), self._keys_of(found)
        if found.kind == "cell":
            return self._named(f"vector({base}[{keys}], {base}.dtype, _W)")
        if self._guard:
            return self._named(f"pick_guarded({base}, ({keys},), {self._guard}, True, _W)")
        one = len(found.axes) == 1
        return self._named(f"{base}.take({keys})" if one else f"{base}[{keys}]")

    def _keys_of(self, found: Access) -> str:
        """The indices of elements; they are checked unless there is a guard."""
        by = tuple(self.number(a.index) for a in found.axes if a.rest is None)
        moment = found.key, self._sel, self._guard, by
        if moment in self._placed:
            return self._placed[moment]
        at, keys = self.indices, []
        for k, axis in enumerate(found.axes):
            if axis.rest is not None and not axis.rate:
                keys.append(at.fix(found, k))
                continue
            if axis.rest is None:
                text = self._keep(axis.index)
            elif self._sel:
                rate = at.rate(axis)
                grown = self._sel if rate == "1" else f"{rate} * {self._sel}"
                text = f"{at.first(axis)} + {grown}"
            else:
                text = f"steps({at.first(axis)}, {at.rate(axis)}, _k)"
            if not self._guard:
                text = f"inside({text}, {at.length(found, k)})"
            keys.append(self._named(text).text)
        for other in self.body.survey.met.get(found.key, {}).values():
            axes = ", ".join(
                f"({at.first(axis)}, {at.rate(axis)}, {key})"
                for axis, key in zip(other.axes, keys, strict=True)
            )
            self._lines.append(f"never(_k, {axes})")
        self._placed[moment] = ", ".join(keys)
        return self._placed[moment]

    def _keep(self, node: Expr) -> str:
        """A value that is used until the end."""
        held = self.lanes(node)
        self._kept.append(held)
        return held.text

    # ------------------------------------------------------------ registers

    def _set(self, reg: int, number: int, flat: str = "") -> None:
        """Let a register have a value; it is `flat` if it is one for all lanes."""
        self._register[reg] = number
        self._known, self._differing = {}, {}
        self._flat = {k: v for k, v in self._flat.items() if k != reg} | (
            {reg: flat} if flat else {}
        )
        self.varying = self._changing - self._flat.keys()

    def _assign(self, *pairs: tuple[int, Expr]) -> None:
        """Let registers have values, all of them computed before."""
        made = []
        for _, node in pairs:
            flat = "" if self.differs(node) else self.fixed(node)
            if not flat:
                self._spend(self.lanes(node))
            made.append((self.number(node), flat))
        for (reg, _), (number, flat) in zip(pairs, made, strict=True):
            self._set(reg, number, flat)

    def _end(self, reg: int) -> None:
        self._register.pop(reg, None)
        self._known = {}

    def _whole(self, reg: int) -> Place:
        return Place(reg, (), self.function.registers[reg].type)  # type: ignore[arg-type]

    def _text(self, reg: int) -> str:
        """What a register holds, perhaps one value for all lanes."""
        return self._keep(self._whole(reg)) if reg in self.varying else self._flat[reg]

    def _vector(self, reg: int) -> str:
        """What a register holds, as an array of all lanes."""
        text, dtype = self._text(reg), self._dtype(reg)
        return text if reg in self.varying else f"vector({text}, {dtype}, _W)"

    def _dtype(self, reg: int) -> str:
        return f"dtype_{elem_of(self.function.registers[reg].type).name}"

    # ------------------------------------------------------------ statements

    def check(self, cond: Expr, want: bool) -> None:
        """A line that raises unless a condition is what it must be, in the lanes of the arm."""
        if self.differs(cond):
            super().check(cond, want)
        else:
            test = "must" if want else "must_not"
            self._lines.append(f"{test}({self.fixed(cond)}, _W)")

    def _items(self, arm: Arm) -> None:
        for item in arm.items:
            match item:
                case Do(pc, stmt):
                    self._do(pc, stmt)
                case Check(cond, want):
                    self.check(cond, want)
                case Part():
                    self._part(item)
                case Sum(found, _, value):
                    where = "" if self._sel or item.is_scattered else self.indices.view(found)
                    self.sums.append((item, where or self._keys_of(found), self._keep(value)))
                case Fork():
                    self._fork(item)
            self.end()

    def _do(self, pc: int, stmt: Stmt) -> None:
        match stmt:
            case Update(dst, op, value):
                self._change(stmt, dst, op, value)
            case Exchange(a, b):
                self._assign((a.reg, b), (b.reg, a))
            case Map(dsts, values):
                self._assign(*((d.reg, v) for d, v in zip(dsts, values, strict=True)))
            case Alloc(reg, value) if value is not None:
                self._assign((reg.reg, value))
            case Fresh(reg):
                t = elem_of(type_of(reg))
                self._assign((reg.reg, Const(system(t).zero, t)))
            case Free(reg, value):
                assert value is not None
                if self.number(value) != self.number(reg):
                    sys = self.bind(system(elem_of(type_of(reg))))
                    expected = self.lanes(value)
                    sizes = [self._vector(p.reg) for p in stmt.judged or ()]
                    given = ", ".join([self._vector(reg.reg), expected.text, "_W", *sizes])
                    self._lines.append(f"residues(_ctx, {sys}, {given})")
                    self._spend(expected)
                    self._erased(pc)
                for place in (reg, *(stmt.held or ())):
                    self._end(place.reg)
            case Drop(reg):
                bits = elem_of(type_of(reg)).bits
                self._lines.append(f"erased(_ctx, {bits}, {self._vector(reg.reg)}, _W)")
                self._erased(pc)
                for place in (reg, *(stmt.held or ())):
                    self._end(place.reg)

    def _erased(self, pc: int) -> None:
        """Note that an instruction may have erased bits."""
        name = f"_e{len(self.erasing)}" if self.counting else "_e"
        if self.counting:
            self._lines.append(f"{name} = _ctx.taken()")
        self.erasing.append((pc, name))

    def _change(self, stmt: Update, dst: Place, op: str, value: Expr) -> None:
        t, element = elem_of(type_of(dst)), self._elements.get(dst.reg)
        held = self.lanes(value)
        self._factor(op, t, held)
        if element is not None and (ufunc := self._in_place(element, stmt)):
            self._kept.append(held)
            self.stores.append((self.indices.view(element.found), held.text, ufunc))
            self._elements.pop(dst.reg)
            return
        self._assign((dst.reg, Apply(op, (dst, value), t)))
        self._spend(held)

    def _in_place(self, element: Element, stmt: Update) -> str:
        """The ufunc that changes an element where it lies, if that is all that is done to it."""
        t = elem_of(type_of(stmt.dst))
        ufunc = UFUNCS.get(implementation(stmt.op, (t, t)).numpy)
        found, delayed = element.found, self.body.survey.delayed.values()
        if (
            ufunc is None
            or element.uses > 1
            or self._sel
            or t.is_bool
            or (t.is_complex and stmt.op in COMPLEX)
            or found.reg in regs_in(stmt.value)
            or any(changed.key == found.key for _, changed in delayed)
        ):
            return ""
        return ufunc if self.indices.view(found) else ""

    def _part(self, part: Part) -> None:
        """Note what a running value is combined with."""
        cell, value, dtype = part.cell, part.value, self._dtype(part.cell.reg)
        differs = self.differs(value)
        if cell.is_reduced and cell.parts == 1 and differs and self._is_new(value):
            held = self._apply(cast(Apply, value), f"_p{len(self._parts)}")
            self._alone.add(cell)
        else:
            held = self.lanes(value)
        if cell.ops <= {"*", "/"}:
            self._factor("*", cell.type, held)
        self._kept.append(held)
        text = held.text
        if part.negated:
            text = self._named(f"{UFUNC}negative(asarray({text}, {dtype}))").text
        if self._sel:
            nothing = neutral(cell.combiner, cell.type)
            full = self._named(f"vector({nothing}, {dtype}, _k)").text
            self._lines.append(f"{full}[{self._sel}] = {text}")
            text, differs = full, True
            self._alone.add(cell)
        turned = "[::-1]" if self.mirrored and differs else ""
        self._parts.setdefault(cell, []).append(text + turned)

    def _is_new(self, node: Expr) -> bool:
        """Whether a value is that of a function, and not known yet."""
        known = self.number(node) in self._have
        return isinstance(node, Apply) and not FUNCTIONS[node.fn].lazy and not known

    # ------------------------------------------------------------ arms

    def _fork(self, fork: Fork) -> None:
        cond, yes, no = fork.cond, fork.yes, fork.no
        while isinstance(cond, Apply) and cond.fn == "not":
            cond, yes, no = cond.args[0], no, yes
        held = self.lanes(cond)
        mask = self._named(f"spread({held.text}, _W)").text
        sides = []
        for arm, text in ((yes, mask), (no, f"{UFUNC}logical_not({mask})")):
            if arm.items:
                sides.append((arm, self._named(f"np.flatnonzero({text})").text))
            elif arm.ticks or arm.marks:
                self.widths[arm.origin or arm] = self._named(f"np.count_nonzero({text})").text
        self._spend(held)
        ended = {reg for arm, chosen in sides for reg in self._do_arm(arm, chosen)}
        for reg in ended:
            self._end(reg)

    def _do_arm(self, arm: Arm, chosen: str) -> list[int]:
        """Do an arm in the lanes `chosen`, and merge what it leaves; the registers that end."""
        frame = {name: vars(self)[name] for name in FRAME}
        width = f"_w{len(self._lines)}"
        self._lines.append(f"{width} = _W = len({chosen})")
        self._frames = [*self._frames, frame]
        self._have, self._at_home, self._register = {}, {}, dict(self._register)
        self._inner = chosen
        self._sel = self._named(f"{self._sel}[{chosen}]").text if self._sel else chosen
        self._arm, self._width = arm.origin or arm, width
        self.widths[self._arm] = width
        self._items(arm)
        left, ended = {}, []
        for reg in sorted(written(*arm.items)):
            element = self._elements.get(reg)
            if element is not None and self._arm in element.home.outer:
                if element.home is self._arm:
                    self._store_element(element.found, self._text(reg))
            elif reg in self._register:
                left[reg] = self._text(reg)
            else:
                ended.append(reg)
        vars(self).update(frame)
        self._lines.append(f"_W = {self._width}")
        for reg, text in left.items():
            known = reg in self._register or reg in self._elements
            old = self._text(reg) if known else "0"
            merged = self._named(f"vector({old}, {self._dtype(reg)}, _W)")
            self._lines.append(f"{merged.text}[{chosen}] = {text}")
            number = self._intern(("merged", merged.text))
            self._remember(number, merged)
            self._set(reg, number)
        return ended

    @contextmanager
    def _outside(self) -> Iterator[None]:
        """Within it, lines are for the lanes of the arm around."""
        inner = {name: vars(self)[name] for name in FRAME}
        vars(self).update(self._frames[-1])
        self._lines.append(f"_W = {self._width}")
        begun = len(self._lines)
        yield
        vars(self).update(inner)
        if len(self._lines) == begun:
            self._lines.pop()
        else:
            self._lines.append(f"_W = {self._width}")

    def _store_element(self, found: Access, text: str) -> None:
        """Note what is stored in an element by the lanes of an arm."""
        place = "" if self._sel else self.indices.view(found)
        if not place:
            keys = self._keys_of(found)
            place = f"{self.indices.base(found)}[{keys}]"
            if found.key in self.body.survey.distinct:
                self._lines.append(f"distinct({keys})")
        self.stores.append((place, text, ""))

    # ------------------------------------------------------------ phases and cells

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

    def _begin_phase(self) -> None:
        self._register, self._flat, self.varying = dict(self._given), {}, self._changing
        self._known, self._differing = {}, {}

    def _hand(self, reg: int, text: str) -> None:
        """Give a register what iterations find."""
        self._given[reg] = self._intern(("given", reg))
        self._remember(self._given[reg], self._named(text))

    def _give(self, phase: Phase) -> None:
        """Give registers what a phase has made."""
        cell = phase.cell
        if cell is not None:
            first, parts = self.cell_name(cell), self._parts[cell]
            every = self._run_through(cell.combiner, first, parts, cell.reg)
            for k, reg in cell.reads.items():
                self._hand(reg, f"{every}[{k or ''}:{'' if k else -1}:{len(parts)}]")
            self.finals[cell] = self._named(f"{every}[-1].item()").text
            return
        handed = next((c for c in self.body.cells.values() if c.reg == phase.given), None)
        if handed is not None:
            first = self.cell_name(handed)
        else:
            keys = {reg: key for key, reg in self.body.delayed.items()}
            found, _ = self.body.survey.delayed[keys[phase.given]]
            first = f"{self.indices.at(found)}.item()"
        after = self._text(phase.after)
        if phase.running:
            every = self._run_through("np.add", first, [after], phase.after)
            self._hand(phase.given, f"{every}[:-1]")
            self._begin_phase()
            one, two = self._whole(phase.after), self._whole(phase.given)
            number = self.number(Apply("+", (one, two), one.type))
            self._remember(number, self._named(f"{every}[1:]"))
            return
        self._hand(phase.given, f"shifted({first}, {after}, _k, {self._dtype(phase.given)})")
        if handed is not None:
            self.finals[handed] = self._last(phase.after)

    def _run_through(self, f: str, first: str, parts: list[str], reg: int) -> str:
        text = f"running({f}, {first}, ({', '.join(parts)}, ), _k, {self._dtype(reg)})"
        return self._named(text).text

    def _last(self, reg: int) -> str:
        """What a register holds in the last iteration."""
        text = self._text(reg)
        return self._named(f"{text}[-1].item()").text if reg in self.varying else text

    def _finish(self) -> None:
        """The last values of cells, and what is stored."""
        for cell in self.body.cells.values():
            if cell in self.finals:
                continue
            if not cell.is_running:
                self.finals[cell] = self._last(cell.reg)
                continue
            first, parts, f = self.cell_name(cell), self._parts[cell], cell.combiner
            how = "total" if cell.type.is_exact else "final"
            text = f"{how}({f}, {first}, ({', '.join(parts)}, ), _k, {self._dtype(cell.reg)})"
            if how == "final" and len(parts) == 1 and cell in self._alone:
                text = f"final_of({f}, {first}, {parts[0]})"
            self.finals[cell] = self._named(text).text
        for element in self._elements.values():
            if element.home is self.body.root:
                self._store_element(element.found, self._text(element.reg))
        if self.erasing and not self.counting:
            self._lines.append("_e = _ctx.taken()")


FRAME = (
    "_have",
    "_at_home",
    "_register",
    "_known",
    "_differing",
    "varying",
    "_flat",
    "_guard",
    "_inner",
    "_sel",
    "_arm",
    "_width",
    "_frames",
)
"""What an arm has of its own."""
