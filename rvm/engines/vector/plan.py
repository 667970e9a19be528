"""The source of a vectorised loop: a function that does as many whole iterations as it can.

It is called where the ordinary loop begins, and takes pieces of at most `BLOCK` iterations, whose
temporaries stay in the processor's cache.  In a piece everything is computed and checked, then
stored.  On any trouble the piece is left undone, and the ordinary loop, which follows, finds it.
"""

from __future__ import annotations

from rvm.accounts.counts import DONE, JUMP, Mark, Marks
from rvm.engines.blocks import Loop, Shape
from rvm.engines.vector.access import Access
from rvm.engines.vector.body import Body
from rvm.engines.vector.graph import Node, Text
from rvm.engines.vector.loops import counted
from rvm.engines.vector.support import VECTOR_SUPPORT
from rvm.engines.vector.values import Context
from rvm.image import Code
from rvm.numbers import NAMES

BLOCK = 16_384
"""Iterations of a piece: an f64 value of all lanes takes 128 KiB."""
PAYS = 60
"""Ticks of ordinary code that take about as long as beginning a piece."""
LEAST = 16
"""The fewest iterations of a piece, however long they are."""

IN_PLACE = {"({0} + {1})": "np.add", "({0} - {1})": "np.subtract", "({0} * {1})": "np.multiply"}
"""Functions of an element and a value whose result can be put in the element's place."""

Store = tuple[Access, Context, tuple[str, tuple[Node, ...]], Node]
"""What is stored where: an element, the lanes, what stands in its brackets, and the value."""
Sum = tuple[str, Access, Context, tuple[str, tuple[Node, ...]], Node]
"""The same for an update, with its ufunc."""


ON: dict[int | None, str] = {1: "+= _k", -1: "-= _k"}
"""How the variable goes on by `_k` iterations of some strides."""


class LoopPlan:
    """A loop that is vectorised; Declined if it cannot be.

    With `marks` it counts what it executes.

    `lines` are those of a function `name(n, state, …)` which returns whether the loop goes on, the
    ticks left and the variables in `results`; `guard` tells if it is worth calling.
    """

    def __init__(self, code: Code, shape: Shape, loop: Loop, marks: Marks | None = None) -> None:
        self.marks = marks
        self.counted = c = counted(code, loop)
        names = {**NAMES, **VECTOR_SUPPORT}
        body = Body(code, shape, c, names)
        if c.stride is not None and c.stride < 0 and body.in_any_order:
            body = Body(code, shape, c, names, mirrored=True)
        self.body = body
        self.name = f"_loop_{loop.head}"
        self.cost = loop.back - loop.head
        self.least = LEAST + PAYS // self.cost
        self.constants = body.printer.constants
        body._use(c.start)
        body._use(c.end)
        body._use(c.step)
        self.variable = body.variable
        start, end, step = (body.fixed(x).template for x in (c.start, c.end, c.step))
        piece = self._piece()
        self.inputs = sorted(body.used | {c.var})
        """The registers that are passed."""
        self.results = [c.var, *(x.reg for x in body.cells.values() if x.access is None)]
        """The scalar registers that come back."""
        regs = list(body.printer.regs)
        regs[c.var] = self.variable
        sign = "" if c.sign > 0 else "-"
        self.lines = [
            f"def {self.name}({', '.join([*self.given, *(regs[r] for r in self.inputs)])}):",
            "    try:",
            *(f"        {line}" for line in body.top),
            f"        _by = {sign}{step}",
            "        while True:",
            f"            _k = {self._trips(start, end)}",
            f"            if _k > {self._most()}: _k = {self._most()}",
            f"            if {self.cost} * _k > n: _k = n // {self.cost}",
            f"            if _k < {self.least}: break",
            *(f"            {line}" for line in piece),
            "    except (ArithmeticError, ValueError, IndexError, MemoryError, RvmError, Trouble):",
            "        pass",
            f"    return {', '.join(['True', 'n', *(regs[r] for r in self.results)])}",
        ]

    @property
    def given(self) -> tuple[str, ...]:
        """What the function is passed in front of registers."""
        return ("n", "state") if self.marks is None else ("n", "state", "hits", "erased")

    @property
    def summary(self) -> str:
        """What the loop becomes, in words."""
        body, survey = self.body, self.body.survey
        kinds = []
        for cell in body.cells.values():
            name = cell.label
            if not cell.is_running:
                kinds.append(f"{name} handed on from iteration to iteration")
            elif cell.reads:
                kinds.append(f"scan of {name}")
            else:
                kinds.append(f"reduction into {name}")
        kinds += [f"scan by way of {survey.show(a)}" for a, _ in survey.delayed.values()]
        kinds += [f"sums into {survey.show(f)}" for _, f, _, _ in body.scatters]
        kinds += [f"sums into {survey.show(f)}" for _, f, _, _ in body.sums]
        if body.stored or not kinds:
            kinds.insert(0, "elementwise")
        if len(body.contexts) > 1:
            kinds.append("by masks")
        if survey.limit:
            kinds.append(f"{survey.limit} iterations at a time")
        kinds += [f"where {survey.show(a)} and {survey.show(b)} are apart" for a, b in survey.apart]
        kinds += [
            f"where no {survey.show(a)} is an {survey.show(b)}"
            for a in (*survey.reached.values(),)
            for b in survey.met.get(a.key, {}).values()
        ]
        kinds += [f"where {survey.show(a)} are different ones" for a in survey.distinct.values()]
        return ", ".join(dict.fromkeys(kinds))

    def _trips(self, start: str, end: str) -> str:
        """How many iterations are left; 0 or less if none is, or if that is not known."""
        c, i = self.counted, self.variable
        text = f"trips({i}, {c.going!r}, {end}, {c.landing!r}, {start}, _by)"
        if (c.going, c.landing) != ("!=", "!=") or c.stride not in (1, -1):
            return text
        if c.stride == 1:
            return f"{end} - {i} if {i} >= {start} else {text}"
        return f"{i} - {end} if {i} <= {start} else {text}"

    def _most(self) -> int:
        limit = self.body.survey.limit
        return min(limit, BLOCK) if limit else BLOCK

    # ------------------------------------------------------------ a piece

    def _piece(self) -> list[str]:
        """The lines that do `_k` iterations."""
        body, c = self.body, self.counted
        text = Text()
        lanes = body.root.count
        finals = [
            (cell, node) for cell in body.cells.values() if (node := cell.finish(lanes)) is not None
        ]
        stores = [
            (body.stored[key], where, node)
            for key in body.stored
            for where, node in body.pieces[key]
        ]
        apart = [line for pair in body.survey.apart for line in self._apart(*pair)]
        places = [(found, where, body.place(found, where), node) for found, where, node in stores]
        sums = [
            (f, found, where, body.place(found, where), node)
            for reg, order in body.survey.summed.items()
            for key in order
            for f, found, where, node in body.sums
            if found.reg == reg and found.key == key
        ]
        ticks = Node(
            " + ".join(f"{x.ticks} * {{{k}}}" for k, x in enumerate(body.contexts) if x.ticks),
            tuple(x.count for x in body.contexts),
            lanes=False,
        )
        marked = [x for x in body.contexts if x.marks and self.marks is not None]
        roots = [*body.checks, *body.erased, ticks, *(x.count for x in marked)]
        roots += [node for _, node in finals]
        for _, _, (_, args), node in places:
            roots += [*args, node]
        for _, _, (_, args), node in body.scatters:
            roots += [*args, node]
        for _, _, _, (_, args), node in sums:
            roots += [*args, node]
        text.count(roots)
        for cell in body.cells.values():
            if cell.parts and text.uses(cell.parts[0]) > 1:
                cell.keep_part()
        text.print()
        for check in body.checks:
            text.lines.append(text.value(check))
        erased = [text.value(e, name=self.marks is not None) for e in body.erased]
        if erased:
            text.lines.append(f"_erased = {' + '.join(erased)}")
        new = [(cell, text.value(node, name=True)) for cell, node in finals]
        counted_ticks = text.value(ticks)
        text.lines.append(f"_t = {counted_ticks}")
        after = self._commit(text, places, sums)
        after += [f"{cell.name} = {value}" for cell, value in new if cell.access is None]
        for cell, value in new:
            if cell.access is not None:
                keys = ", ".join(body.first(axis) for axis in cell.access.axes)
                after += [
                    f"{body.base(cell.access)}[{keys}] = {value}",
                    f"{cell.name} = {value}",
                ]
        if erased:
            after.append("state.account.erased_bits += _erased")
        ended = ""
        if self.marks is not None:
            raised = [(self._counter(x.marks), text.value(x.count)) for x in marked]
            after += [f"{counter} += {lanes}" for counter, lanes in raised]
            for pc, bits in zip(body.erasing, erased, strict=True):
                after.append(f"if {bits}: erased[{pc}] += {bits}")
            ended = f"{self._counter([(c.loop.back, JUMP, -1), (c.loop.back, DONE, 1)])} += 1; "
        first = f"_at = {self.variable}" + (" + _by" if c.early else "")
        if body.mirrored:
            first += " + _by * (_k - 1)"
        return [
            first,
            *body.starts,
            *apart,
            *body.reached,
            *body.bounds,
            *text.lines,
            *after,
            f"{self.variable} {ON.get(c.stride, '+= _by * _k')}",
            "n -= _t",
            f"if not {self.variable} {c.going} {self._end()}: {ended}"
            f"return {', '.join(['False', 'n', *self._returned()])}",
        ]

    def _counter(self, marks: list[Mark]) -> str:
        """A new counter."""
        assert self.marks is not None
        self.marks.counters.append(list(marks))
        return f"hits[{len(self.marks.counters) - 1}]"

    def _end(self) -> str:
        return self.body.fixed(self.counted.end).template

    def _returned(self) -> list[str]:
        body = self.body
        cells = [x.name for x in body.cells.values() if x.access is None]
        return [self.variable, *cells]

    def _apart(self, one: Access, other: Access) -> list[str]:
        """Lines that shorten a piece until two accesses reach no common element."""
        body = self.body
        axes = ", ".join(
            f"({body.first(p)}, {body.rate_text(p)}, {body.first(q)}, {body.rate_text(q)})"
            for p, q in zip(one.axes, other.axes, strict=True)
        )
        return [f"_k = room_for(_k, {axes})", f"if _k < {self.least}: break"]

    def _commit(self, text: Text, places: list[Store], sums: list[Sum]) -> list[str]:
        """Lines that store; what they store is computed before the first of them stores."""
        body = self.body
        single = len(places) + len(body.scatters) + len(sums) == 1
        written = {found.reg for found, *_ in places}
        written |= {scatter[1].reg for scatter in body.scatters} | set(body.survey.summed)
        out = []

        def ready(node: Node) -> str:
            if single:
                return text.value(node)
            known = text.value(node, name=True)
            if node.memory in written:
                text.lines.append(f"{known} = {known}.copy()")
            return known

        for found, where, (keys, args), node in places:
            target = (
                f"{body.base(found)}[{_filled(keys, [text.value(a, name=True) for a in args])}]"
            )
            f = self._in_place(text, found, where, node)
            if f:
                view = text.value(node.args[0], name=True)
                out.append(f"{f}({view}, {ready(node.args[1])}, out={view})")
            else:
                out.append(f"{target} = {ready(node)}")
        for f, found, (keys, args), node in body.scatters:
            at = ", ".join([text.value(a, name=True) for a in args])
            index = f"({_filled(keys, [text.value(a, name=True) for a in args])})"
            out.append(
                f"{f}.at({body.base(found)}, {index if len(found.axes) > 1 else at}, {ready(node)})"
            )
        for f, found, where, (keys, args), node in sums:
            target = (
                f"{body.base(found)}[{_filled(keys, [text.value(a, name=True) for a in args])}]"
            )
            value = ready(node)
            if body.is_view(found, where):
                view = f"_w{len(out)}"
                out += [f"{view} = {target}", f"{f}({view}, {value}, out={view})"]
            else:
                out.append(f"{target} = {f}({target}, {value})")
        return out

    def _in_place(self, text: Text, found: Access, where: object, node: Node) -> str:
        """The ufunc that puts a node in the place of the element that it updates, if one does."""
        f = IN_PLACE.get(node.template, "")
        if not f or where is not self.body.root or len(node.args) != 2:
            return ""
        old, value = node.args
        mine = self.body.is_view(found, self.body.root) and old is self.body.loaded.get(found.key)
        if not mine or text.uses(node) > 1 or text.uses(old) > 1:
            return ""
        if node.type is not None and node.type.is_bool:
            return ""
        return f if value.memory < 0 or value.memory != found.reg else ""


def _filled(keys: str, args: list[str]) -> str:
    for k, arg in enumerate(args):
        keys = keys.replace(f"{{{k}}}", arg)
    return keys
