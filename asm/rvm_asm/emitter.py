"""The growing code of one function: instructions, jumps that are paired, places that are turned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from rvm.expr import Const, Expr, Place
from rvm.isa import TypeFault, check_operands
from rvm.program import Function, Instr, Span
from rvm.types import BOOL, Scalar
from rvm.verify.alias import overlap
from rvm_asm.bijections import Bijection, Step
from rvm_asm.counters import CountedLoop
from rvm_asm.generics import Types, instance_text
from rvm_asm.jumps import PendingJump, pair
from rvm_asm.nodes import Declared, Node
from rvm_asm.program import Declarations, Signing
from rvm_asm.stats import Func, Jump, Stat
from rvm_asm.values import Rejected, ValueReader

MAX_CODE = 1 << 19
"""The most instructions of a function: macros and `undo` multiply."""


class CodeEmitter(ValueReader, ABC):
    """The growing code of one function."""

    def __init__(self, program: Declarations, func: Func, types: Types | None = None) -> None:
        super().__init__(program, program.excused[func.name.text], types)
        self.func = func
        self.instance = instance_text(types or {})
        self.code: list[Instr] = []
        self.spans: list[Span] = []
        self.templates: list[tuple[Expr, ...]] = []
        """The operands of each instruction as they were before typing: they lead to the syntax."""
        self.pending: list[PendingJump] = []
        self.broken = False
        self.loops: dict[int, str] = {}
        """Registers of the variables of the loops around this point."""
        self.counted: list[CountedLoop] = []
        """The loops of the code so far."""
        self.became: dict[int, Any] = {}
        """Derived meanings of syntax nodes that follow from types alone, by the nodes' identity.

        A declaration has the type that nothing wrote, a call the function for its types, and a
        whole number the real type that it was converted to.
        """
        self._source = program.sources
        self._level = 0
        self.offered: dict[int, Place] = {}
        """Arguments of calls that are bijections of places, by the identity of the expression."""
        self.tops: set[int] = set()
        """The ancillas that tops of stacks of arrays are held in."""
        self._at: Stat = Stat(func.start, func.end)
        self._spanned: tuple[Stat | None, Span] = None, Span()
        """The statement whose instructions were appended last, and where it stands."""

    def sign(self) -> bool:
        """Enter the parameters; False if they are wrong."""
        signing = Signing(self.program, self.registers, self.func)
        fine = signing.build()
        self.scope.names = signing.names
        self.params = tuple(signing.params)
        self.n_args = len(self.registers.list)
        return fine

    def function(self, name: str) -> Function:
        """The code so far, as a function."""
        return Function(
            name,
            self.params,
            tuple(self.registers.list),
            tuple(self.code),
            tuple(self.spans),
            tuple(self.registers.dims),
        )

    def converted(self, template: Expr, t: Scalar) -> None:
        """Keep that a whole number was converted to a real type."""
        at = self.origin(template)
        if at is not None:
            self.became[id(at)] = t

    # Instructions.

    def put(self, instr: Instr, stat: Stat, templates: tuple[Expr, ...] = ()) -> int:
        """Append an instruction; its index."""
        at = len(self.code)
        if at >= MAX_CODE:
            self.complain("A046", f"the function has more than {MAX_CODE} instructions", stat)
        self.code.append(instr)
        if stat is not self._spanned[0]:
            self._spanned = stat, self._source.span(stat.start, stat.end)
        self.spans.append(self._spanned[1])
        self.templates.append(templates)
        return at

    def complain(self, code: str, message: str, stat: Stat | Declared, hint: str = "") -> NoReturn:
        """Report a statement, and give it up."""
        self.report.about(stat, code, message, hint=hint)
        raise Rejected

    # Destinations that are bijections of places.

    def may_change(self, place: Place) -> bool:
        """Whether a place may be turned into a bijection of it: no stack, no loop's variable, no
        part of a long expression.
        """
        is_part = self.registers.list[place.reg].is_own and place.reg not in self.tops
        return place.type is not None and place.reg not in self.loops and not is_part

    def keep_apart(self, view: Bijection, at: Node, others: Iterable[tuple[Expr, Node]]) -> None:
        """Refuse a bijection of a place that is changed elsewhere, or by a changed value."""
        for other, node in others:
            if not isinstance(other, Place):
                continue
            one, two = (self.report.sources.text(n.start, n.end) for n in (at, node))
            if overlap(view.place, other) == "always":
                self.reject("A016", f"`{one}` and `{two}` are one place, and both are changed", at)
            if view.reads(other):
                self.reject("A013", f"what `{one}` is follows from `{two}`, which is changed", at)

    def through(
        self, views: Sequence[Bijection], instr: Instr, stat: Stat, templates: tuple[Expr, ...]
    ) -> None:
        """Append an instruction, on places that are turned before and turned back after it."""
        with self.turned(views, stat):
            self.put(instr, stat, templates)

    @contextmanager
    def turned(self, views: Sequence[Bijection], stat: Stat) -> Iterator[None]:
        """Apply bijections to places while instructions are appended, and undo them afterwards."""
        steps = [(view.place, step) for view in views for step in view.steps]
        for place, step in steps:
            self._turn(place, step, stat)
        yield
        for place, step in reversed(steps):
            self._turn(place, step.undone, stat)

    def _turn(self, place: Place, step: Step, stat: Stat) -> None:
        templates = (place, *step.values)
        try:
            done = check_operands(step.op, templates, self.registers.list)
        except TypeFault as fault:
            self._type_fault(fault, stat, [])
        self.put(Instr(step.op, done), stat, templates)

    def _type_fault(self, fault: TypeFault, stat: Stat, args: list[Node]) -> NoReturn:
        at: Node | Stat | None = self.origin(fault.node) if fault.node is not None else None
        if at is None and 0 <= fault.operand < len(args):
            at = args[fault.operand]
        if at is None:
            at = stat
        self.report.about(at, fault.code, fault.message, hint=fault.hint)
        raise Rejected

    # Jumps.

    def condition(self, node: Node, stat: Stat) -> tuple[Expr, Expr]:
        """A condition typed, and its template."""
        template = self.operand(node)
        try:
            return check_operands("br", (template,), self.registers.list)[0], template
        except TypeFault as fault:
            self._type_fault(fault, stat, [node])

    def jump(self, stat: Jump) -> None:
        """A `br` or `cf` that is written; its partner is found at the end of its scope."""
        try:
            cond, template = self.condition(stat.cond, stat)
        except Rejected:
            # The pair stays whole, so that one slip is not reported at both ends.
            self.broken = True
            cond = template = Const(True, BOOL)
        at = self.put(Instr(stat.name, (cond,)), stat, (template,))
        self.pending.append(PendingJump(at, stat.name, stat.partner, stat, self.scope))

    def pair_jumps(self, start: int, first: int, closed: str = "") -> None:
        """Pair the pending jumps from number `start` on, which are at code index >= `first`."""
        mine = self.pending[start:]
        del self.pending[start:]
        if not mine:
            return
        if not pair(mine, self.code, first, self.report, closed, self.excused):
            self.broken = True
        for p in mine:
            if p.partner_at >= 0:
                self.code[p.at] = replace(self.code[p.at], aux=p.partner_at)

    @abstractmethod
    def statements(self, body: list[Stat]) -> None:
        """Lower a block; defined with the structured statements."""
