"""The body of a loop, gone through once for all its iterations.

Everything is computed before anything is stored: a register or an element that an iteration
changes is, from there on, a node.  Branches select lanes; what they change is put together again
where it is read.  Which elements are the same, and in which iteration, is found beforehand.
"""

from __future__ import annotations

from collections.abc import Hashable

from rvm.accounts.counts import DONE, JUMP
from rvm.engines.blocks import If, Loop, Shape
from rvm.engines.vector.access import Access, access
from rvm.engines.vector.cells import Cell, combiner, neutral
from rvm.engines.vector.elements import Elements
from rvm.engines.vector.graph import Node
from rvm.engines.vector.loops import Counted, Declined
from rvm.engines.vector.survey import Survey
from rvm.engines.vector.values import Context
from rvm.expr import Const, Expr, Place
from rvm.image import Code
from rvm.numbers import system
from rvm.stmt import Alloc, Branch, Drop, Exchange, Free, Fresh, Land, Map, Stmt, Update, When
from rvm.types import BOOL, Array, Scalar, elem_of, rank_of

Pieces = list[tuple[Context, Node]]
"""A value that contexts have changed in their lanes, in the order in which they did."""


class Body(Elements):
    """The nodes of one loop: checks, values to be stored, cells, and the ticks of iterations."""

    def __init__(
        self,
        code: Code,
        shape: Shape,
        counted: Counted,
        names: dict[str, object],
        *,
        mirrored: bool = False,
    ) -> None:
        super().__init__(code.function, counted, names)
        self.prepare(mirrored)
        self.code = code
        self.shape = shape
        self.survey = Survey(code, counted)
        self.checks: list[Node] = []
        """What raises unless all is well."""
        self.erased: list[Node] = []
        """Numbers of bits."""
        self.erasing: list[int] = []
        """The instructions that erase them."""
        self._pc = counted.first
        self.contexts = [self.root]
        self.cells: dict[Hashable, Cell] = {}
        self.stored: dict[Hashable, Access] = {}
        """The elements that are changed, by their keys, in order."""
        self.scatters: list[tuple[str, Access, tuple[str, tuple[Node, ...]], Node]] = []
        """Updates of scattered elements: the ufunc, and what it adds where."""
        self.sums: list[tuple[str, Access, Context, Node]] = []
        """Updates of summed arrays: the ufunc, and what it adds where."""
        self.pieces: dict[Hashable, Pieces] = {}
        self._versions: dict[int, int] = {}
        self._changes = 0
        self._apart: set[Hashable] = set()
        """Pairs of elements for which there is a check."""
        self._before: dict[Hashable, Node] = {}
        """What an iteration finds in elements that the one before has changed."""
        self._make_cells()
        self._go(counted.first, counted.stop, self.root)
        # The update of the loop's variable, and the branch back.
        step = counted.first - 1 if counted.early else counted.stop
        self.root.ticks += 2
        self.root.marks += [(step, DONE, 1), (counted.loop.back, JUMP, 1)]
        for cell in self.cells.values():
            if not cell.is_running:
                cell.after = self._current(self._cell_key(cell), self.root, cell.type, None)

        for key, node in self._before.items():
            self._delay(node, *self.survey.delayed[key])

    @property
    def in_any_order(self) -> bool:
        """Whether no iteration finds what another has left, and nothing else tells their order."""
        handed_on = self.survey.delayed or self.scatters or self.survey.apart
        return not handed_on and all(cell.is_reduced for cell in self.cells.values())

    def _delay(self, node: Node, found: Access, changed: Access) -> None:
        """Say what an iteration finds where the one before has changed an element.

        If that is added to the very element that is changed there, it is a running sum.
        """
        t = self.type_of(found)
        dtype = f"dtype_{t.name}"
        first = self.one(found)
        after = self._current(changed.key, self.root, t, changed)
        old = self.loaded.get(changed.key)
        if old is not None and after.template == "({0} + {1})" and after.args == (old, node):
            text = f"running(np.add, {{0}}, ({{1}}, ), _k, {dtype})"
            every = Node(text, (first, old), t)
            after.template, after.args, after.fresh = "{0}[1:]", (every,), False
            node.template, node.args = "{0}[:-1]", (every,)
            return
        node.template, node.args = (
            f"shifted({{0}}, {{1}}, {{2}}, {dtype})",
            (
                first,
                after,
                self.root.count,
            ),
        )

    def _make_cells(self) -> None:
        for reg in self.survey.carried:
            t = self._type(reg)
            name = self.printer.regs[reg]
            self.used.add(reg)
            label = f"`{self.function.registers[reg].name}`"
            self._cell(Cell(reg, t, name, label, None, self.survey.updates(reg)), reg)
        for found in self.survey.cells:
            t = self.type_of(found)
            name = f"_c{len(self.cells)}"
            self.used.add(found.reg)
            for axis in found.axes:
                self._use(axis.index)
            lines, text = self.printer.scalar(found.place)
            self.top += [*lines, f"{name} = {text}"]
            ops = self.survey.updates(found.key)
            self._cell(Cell(found.reg, t, name, self.survey.show(found), found, ops), found.key)

    def _cell(self, cell: Cell, key: Hashable) -> None:
        self.cells[key] = cell
        cell.mirrored = self.mirrored
        if not cell.is_running:
            cell.before = Node("", (), cell.type, label=cell.label)
            self.pieces[key] = [(self.root, cell.before)]

    def _cell_key(self, cell: Cell) -> Hashable:
        return cell.reg if cell.access is None else cell.access.key

    # ------------------------------------------------------------ reading and writing

    def version(self, reg: int) -> int:
        return self._versions.get(reg, 0)

    def read(self, place: Place, context: Context) -> Node:
        cell = self.cells.get(place.reg)
        if cell is not None and cell.is_running:
            return self._running(cell, context)
        return self._current(place.reg, context, self._type(place.reg), None)

    def element(self, found: Access, context: Context) -> Node:
        if found.reg not in self.counted.changed:
            return self.load(found, context)
        key = found.key
        cell = self.cells.get(key)
        if cell is not None and cell.is_running:
            return self._running(cell, context)
        if key in self.survey.delayed:
            node = self._before.get(key)
            if node is None:
                node = Node("", (), self.type_of(found), label=self.survey.show(found))
                self._before[key] = node
            return self.pack(node, self.root, context)
        return self._current(key, context, self.type_of(found), found)

    def place(self, found: Access, context: Context) -> tuple[str, tuple[Node, ...]]:
        keys, args = super().place(found, context)
        for other in self.survey.met.get(found.key, {}).values():
            pair = self.moment(found, context), other.key
            if pair not in self._apart:
                self._apart.add(pair)
                axes = ", ".join(
                    f"({self.first(axis)}, {self.rate_text(axis)}, {key})"
                    for axis, key in zip(other.axes, keys.split(", "), strict=True)
                )
                self.checks.append(Node(f"never(_k, {axes})", args, lanes=False))
        return keys, args

    def _running(self, cell: Cell, context: Context) -> Node:
        """A running value as it is here."""
        node = next((n for k, n in cell.reads if k == len(cell.parts)), None)
        if node is None:
            node = Node("", (), cell.type, label=cell.label)
            cell.reads.append((len(cell.parts), node))
        return self.pack(node, self.root, context)

    def _current(self, key: Hashable, context: Context, t: Scalar, found: Access | None) -> Node:
        """What a register or an element holds, put together of what contexts have left."""
        pieces = self.pieces.get(key, [])
        own = [k for k, (where, _) in enumerate(pieces) if context.path_from(where) is not None]
        pieces = pieces[own[-1] if own else 0 :]
        met = [m for where, _ in pieces if (m := context.meets(where)) is not None]
        if met:
            # What another choice has left in some of these lanes is put together outside of both.
            outer = min(met, key=lambda m: len(m.around()))
            return self.pack(self._current(key, outer, t, found), outer, context)
        node: Node | None = None
        inner: Pieces = []
        for where, value in pieces:
            if context.path_from(where) is not None:
                node, inner = self.pack(value, where, context), []
            elif where.path_from(context) is not None:
                inner.append((where, value))
        if node is None and found is not None:
            node = self.load(found, context)
        if inner:
            node = self.merge(context, node, inner, t)
        if node is None:
            raise Declined("it reads a register that it has not made")
        return node

    def write(self, place: Place, node: Node, context: Context) -> None:
        """Change a register or an element in the lanes of a context."""
        key: Hashable = place.reg
        if isinstance(self.function.registers[place.reg].type, Array):
            found = access(place, self.counted)
            key = found.key
            if key not in self.cells:
                self.stored.setdefault(key, found)
            if key in self.survey.distinct:
                _, args = self.place(found, context)
                self.checks.append(Node("distinct({0})", args, lanes=False))
        self._put(key, node, context)
        self._touch(place.reg)

    def _put(self, key: Hashable, node: Node, context: Context) -> None:
        pieces = self.pieces.get(key, [])
        kept = [p for p in pieces if p[0].path_from(context) is None]
        self.pieces[key] = [*kept, (context, node)]

    def _touch(self, reg: int) -> None:
        self._changes += 1
        self._versions[reg] = self._changes

    # ------------------------------------------------------------ control

    def _go(self, lo: int, hi: int, context: Context) -> None:
        """Instructions lo … hi-1, structured pieces among them."""
        pc = lo
        while pc < hi:
            piece = self.shape.structure.get(pc)
            if isinstance(piece, Loop):
                raise Declined("it holds another loop")
            if piece is not None:
                self._branching(piece, context)
                pc = self.shape.end(piece)
                continue
            context.ticks += 1
            context.marks.append((pc, DONE, 1))
            self._pc = pc
            for stmt in self.code.stmts(pc):
                self._do(stmt, context)
            pc += 1

    def _choose(self, context: Context, cond: Node) -> tuple[Context, Context]:
        """The lanes in which a condition holds, and the others."""
        if not cond.lanes:
            cond = Node("np.full({1}, {0})", (cond, context.count), BOOL)
        chosen = Node("np.flatnonzero({0})", (cond,))
        if cond.template == "np.logical_not({0})":
            others = Node("np.flatnonzero({0})", cond.args)
        else:
            others = Node("np.flatnonzero(np.logical_not({0}))", (cond,))
        taken, left = Context(context, chosen), Context(context, others)
        taken.rival, left.rival = left, taken
        self.contexts += [taken, left]
        return taken, left

    def _branching(self, piece: If, context: Context) -> None:
        branch = self.code.stmts(piece.test)[0]
        assert isinstance(branch, Branch)
        context.ticks += 1
        taken, others = self._choose(context, self.value(branch.cond, context))
        # Those who jump are not counted: they are all but the others.
        context.marks.append((piece.test, JUMP, 1))
        others.marks += [(piece.test, JUMP, -1), (piece.test, DONE, 1)]
        self._expect(branch.partner, taken, True, branch.cond)
        if piece.other < 0:
            self._go(piece.test + 1, piece.join, others)
            self._expect(piece.join, others, False)
            others.ticks += 1
            others.marks.append((piece.join, DONE, 1))
            return
        self._go(piece.other + 1, piece.join, taken)
        self._expect(piece.join, taken, False)
        taken.ticks += 1
        taken.marks.append((piece.join, DONE, 1))
        self._go(piece.test + 1, piece.other - 1, others)
        others.ticks += 1
        others.marks.append((piece.other - 1, JUMP, 1))
        self._expect(piece.join, others, True)

    def _expect(self, pc: int, context: Context, wanted: bool, same: Expr | None = None) -> None:
        """A come-from's condition must hold, or must not."""
        landing = self.code.stmts(pc)[0]
        assert isinstance(landing, Land)
        if wanted and landing.cond in (same, Const(True, BOOL)):
            return
        node = self.value(landing.cond, context)
        if not node.lanes:
            node = Node("np.full({1}, {0})", (node, context.count), BOOL)
        self.checks.append(Node(f"agree({{0}}, {wanted})", (node,)))

    # ------------------------------------------------------------ statements

    def _do(self, stmt: Stmt, context: Context) -> None:
        match stmt:
            case Update(dst, op, value):
                self._update(dst, op, value, context)
            case Exchange(a, b):
                self._scalars(a, b)
                x, y = self.value(a, context), self.value(b, context)
                self.write(a, y, context)
                self.write(b, x, context)
            case Map(dsts, values, _):
                self._scalars(*dsts)
                nodes = [self.value(v, context) for v in values]
                for d, node in zip(dsts, nodes, strict=True):
                    self.write(d, node, context)
            case When(cond, body):
                inner, _ = self._choose(context, self.value(cond, context))
                for s in body:
                    self._do(s, inner)
            case Alloc(reg, v):
                assert v is not None
                self.write(reg, self.value(v, context), context)
            case Fresh(reg):
                t = self._type(reg.reg)
                zero = self.printer.constant(system(t).zero)
                self.write(reg, Node(zero, (), t, lanes=False), context)
            case Free(reg, v):
                assert v is not None
                t = self._type(reg.reg)
                held, expected = self.read(reg, context), self.value(v, context)
                if held is not expected:
                    text = f"lost(state, {self.printer.bind(system(t))}, {{0}}, {{1}}, {{2}})"
                    self.erased.append(Node(text, (held, expected, context.count), lanes=False))
                    self.erasing.append(self._pc)
                self._end(reg.reg, context)
            case Drop(reg):
                t = self._type(reg.reg)
                text = f"dropped({{0}}, {t.bits}, {{1}})"
                self.erased.append(
                    Node(text, (self.read(reg, context), context.count), lanes=False)
                )
                self.erasing.append(self._pc)
                self._end(reg.reg, context)
            case _:
                raise Declined("it holds what is not arithmetic")

    def _end(self, reg: int, context: Context) -> None:
        """A register ends in the lanes of a context."""
        pieces = self.pieces.get(reg, [])
        self.pieces[reg] = [p for p in pieces if p[0].path_from(context) is None]
        self._touch(reg)

    def _scalars(self, *places: Place) -> None:
        if any(rank_of(p.type or BOOL) for p in places):
            raise Declined("it changes whole arrays")

    def _update(self, dst: Place, op: str, value: Expr, context: Context) -> None:
        self._scalars(dst)
        t = elem_of(dst.type or BOOL)
        node = self.value(value, context)
        factors = system(t).factors
        if op in "*/" and factors != "any":
            node = Node(f"factor({{0}}, {factors!r})", (node,), t, node.lanes)
        key: Hashable = dst.reg
        found = None
        if isinstance(self.function.registers[dst.reg].type, Array):
            found = access(dst, self.counted)
            key = found.key
        cell = self.cells.get(key)
        if cell is not None and cell.is_running:
            self._combine(cell, op, node, context)
        elif found is not None and found.reg in self.survey.summed:
            self.sums.append((combiner({op}, t), found, context, node))
        elif found is not None and self.survey.is_summed(found):
            f = combiner({op}, t)
            if not t.is_exact and any(other.reg == found.reg for _, other, _, _ in self.scatters):
                raise Declined(f"{self.survey.show(found)} is changed twice in an iteration")
            # NumPy's `at` would take a Python number for an i64 or f64, and add in what both fit.
            node = Node(f"np.asarray({{0}}, dtype_{t.name})", (node,), t, node.lanes)
            self.scatters.append((f, found, self.place(found, context), node))
        else:
            old = self.value(dst, context)
            self.write(dst, self.apply(op, [old, node], (t, t), t, context), context)

    def _combine(self, cell: Cell, op: str, node: Node, context: Context) -> None:
        """Combine a running value with another in some lanes, with what is neutral in others."""
        f = combiner(cell.ops, cell.type)
        if op == "-" and f == "np.add":
            text = f"np.negative(np.asarray({{0}}, dtype_{cell.type.name}))"
            node = Node(text, (node,), cell.type, node.lanes, fresh=node.lanes)
        if context is not self.root:
            nothing = Node(neutral(f, cell.type), (), cell.type, lanes=False)
            node = self.merge(self.root, nothing, [(context, node)], cell.type)
            node.fresh = True
        cell.parts.append(node)
        self._touch(cell.reg)
