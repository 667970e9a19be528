"""Lowering instructions on data: operands checked and typed, records and arrays moved by their
parts, macros expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rvm.codes.words import with_article
from rvm.expr import Apply, Expr, Place, reads
from rvm.isa import ENDS, MAKES, OPCODES, TypeFault, check_operands
from rvm.isa.rows import OpRow
from rvm.program import Instr
from rvm.types import Stack, ValueType, elem_of, with_rank
from rvm_asm.bijections import Bijection, bijection, obstacle, offers
from rvm_asm.emitter import CodeEmitter
from rvm_asm.generics import Types
from rvm_asm.habits import WORDS, declaration
from rvm_asm.messages import did_you_mean
from rvm_asm.nodes import FieldStep, Node, Ref
from rvm_asm.parts import HeldPart, hold_part
from rvm_asm.program import Declarations
from rvm_asm.scope import Alias, NameGroup, Scope, Slot, leaves_of
from rvm_asm.stacked import HeldTop, held_in, hold, move
from rvm_asm.stats import Func, OpStat, Stat
from rvm_asm.text_bytes import spelt
from rvm_asm.values import Rejected

MAX_EXPANSIONS = 1 << 16
"""The most uses of macros in a function, those inside macros included."""
_WORDS = (
    "if", "while", "from", "for", "routine", "undo", "extern", "local", "iterate",
    "with", "replace", "map", "unmap",
    "func", "const", "record", "macro", "pure", "include", "entry", "keep",
)  # fmt: skip


_MOVES = ("push", "pop")
_WHOLE = ("swap", "exch", *_MOVES)
"""Instructions that take records."""


class Operations(CodeEmitter):
    """Lowers instructions on data and uses of macros."""

    def __init__(self, program: Declarations, func: Func, types: Types | None = None) -> None:
        super().__init__(program, func, types)
        self._expansions = 0
        self.held: dict[object, HeldTop | HeldPart] | None = None
        """Values held while the statement uses them: tops of stacks of arrays, by stack, and parts
        of long expressions, by syntax node; None where this is impossible."""
        self.looked: bool | None = None
        """Whether a trial lowering met a top; None if there is none."""
        self._sound: set[tuple[object, ...]] = set()
        """Opcodes with the types of places that they take."""

    def op(self, stat: OpStat) -> None:
        """A data instruction, `push`, `pop` or the use of a macro."""
        name = stat.name
        row = OPCODES.get(name)
        if row is None or name in ("print", "assert", "callback"):
            if name in self.program.macros:
                self.expand(stat)
                return
            self._unknown(stat)
        args = stat.args
        if name in _MOVES:
            self._whole_records(stat)
        if name in _WHOLE and (self._records(stat) or self._arrays(stat)):
            return
        text = self.text_of(args[-1]) if len(args) == 2 else None
        if text is not None:
            for one in spelt(self, stat, text):
                self.op(one)
            return
        templates = tuple([self.operand(a) for a in args])
        views: list[Bijection] = []
        if Apply in map(type, templates):
            templates, views = self._unwrapped(row, templates, args)
        # What places of such types may do has been asked before, most of the time.
        shape = (name, *[t.type if type(t) is Place else None for t in templates])
        if shape in self._sound and None not in shape:
            done = templates
        else:
            self._no_stacks(templates, args, name)
            try:
                done = check_operands(name, templates, self.registers.list)
            except TypeFault as fault:
                self._type_fault(fault, stat, args)
            # Where something was converted, it is to be converted again.
            if all(a is b for a, b in zip(done, templates, strict=True)) or None in shape:
                self._sound.add(shape)
        self.through(views, Instr(name, done), stat, templates)

    def _unwrapped(
        self, row: OpRow, templates: tuple[Expr, ...], args: list[Node]
    ) -> tuple[tuple[Expr, ...], list[Bijection]]:
        """The operands with places for the changed ones, and their bijections."""
        done, views = list(templates), dict[int, Bijection]()
        changed = [k for k, o in enumerate(row.operands) if o.mode == "mut" and k < len(done)]
        for k in changed:
            if isinstance(done[k], Apply):
                found = bijection(done[k], self.may_change)
                if found is None:
                    self._no_bijection(row, k, done[k], args[k])
                done[k], views[k] = found.place, found
        for k, found in views.items():
            others = ((done[j], args[j]) for j in changed if j != k)
            self.keep_apart(found, args[k], others)
        return tuple(done), list(views.values())

    def _no_bijection(self, row: OpRow, k: int, value: Expr, at: Node) -> NoReturn:
        """Refuse to change an operand that is neither a place nor a bijection of one."""
        part, why = obstacle(value, self.may_change)
        node = self.origin(part) or at
        what = f"`{row.name}` changes its operand {k + 1}"
        hint = "put the value into an ancilla first"
        for t in [elem_of(p.type) for p in reads(value) if p.type and self.may_change(p)][:1]:
            hint += f"; bijections of {with_article(t)} x are {offers(t)}"
        self.report.about(
            at,
            "A040",
            f"{what}, which must be a place or a bijection of one",
            notes=(f"`{self.report.sources.text(node.start, node.end)}` is none: {why}",),
            hint=hint,
        )
        raise Rejected

    def _no_stacks(self, templates: tuple[Expr, ...], args: list[Node], name: str) -> None:
        """Refuse a stack where a value or a place of one is wanted."""
        for k, (template, arg) in enumerate(zip(templates, args, strict=True)):
            stack = isinstance(template, Place) and template.type is None
            if stack and not (name in ("push", "pop") and k == 1):
                self.reject(
                    "A040",
                    "a stack is not a value",
                    arg,
                    "`push x, s` moves x to it, `pop x, s` takes the top",
                )

    def _unknown(self, stat: OpStat) -> NoReturn:
        name = stat.name
        known = [*OPCODES, *self.program.macros, *_WORDS]
        hint = did_you_mean(name, known)
        message = f"there is no instruction `{name}`"
        if name in WORDS:
            what, hint = WORDS[name]
            message += f": {what}"
        elif (
            len(stat.args) == 1
            and isinstance(stat.args[0], Ref)
            and (found := declaration(name, stat.args[0].name))
        ):
            message, hint = found.message, found.hint
        elif name in self.program.functions:
            hint = f"`{name}` is a function: `call {name}(…)`"
        self.report.error("A003", message, stat.start, stat.stop, hint=hint)
        raise Rejected

    def _whole_records(self, stat: OpStat) -> None:
        """Refuse to move one field's value: all fields of a stack of records hold as many."""
        to = stat.args[1] if len(stat.args) == 2 else None
        if not isinstance(to, Ref):
            return
        found: object = self.scope.names.get(to.name)
        for step in to.steps:
            if not isinstance(found, NameGroup) or not isinstance(step, FieldStep):
                return
            if found.stacked and step.name in found.fields:
                whole = self.report.sources.text(to.start, step.start).rstrip(".")
                self.reject(
                    "A040",
                    f"`{whole}` is a {found}: its fields come and go together",
                    to,
                    f"`{stat.name} r, {whole}` moves a record r",
                )
            found = found.fields.get(step.name)

    def _records(self, stat: OpStat) -> bool:
        """Exchange or move records leaf by leaf, if they are records."""
        if len(stat.args) != 2:
            return False
        a, b = (self.leaves(n) for n in stat.args)
        if a is None or b is None:
            return False
        assert isinstance(stat.args[1], Ref)
        slots = list(leaves_of(self.resolve(stat.args[1])[0]))
        have = [
            y.type if y.type is not None else _popped(slot)
            for y, slot in zip(b, slots, strict=True)
        ]
        if stat.name in _MOVES and any(y.type is not None for y in b):
            self.complain("A040", "the second operand is a record, not a stack of them", stat)
        if [x.type for x in a] != have:
            self.complain("A040", "the records are not of one type", stat)
        for x, y, slot in zip(a, b, slots, strict=True):
            if y.type is None and slot.shape:
                move(self, stat.name, x, stat.args[0], slot, stat)
                continue
            try:
                done = check_operands(stat.name, (x, y), self.registers.list)
            except TypeFault as fault:
                self._type_fault(fault, stat, stat.args)
            self.put(Instr(stat.name, done), stat, (x, y))
        return True

    def _arrays(self, stat: OpStat) -> bool:
        """Move an array element by element, if the stack is one of arrays."""
        if stat.name not in _MOVES or len(stat.args) != 2 or not isinstance(stat.args[1], Ref):
            return False
        slot, path = self.resolve(stat.args[1])
        if path or not isinstance(slot, Slot) or not slot.shape:
            return False
        at = stat.args[0]
        given = self.operand(at)
        view = bijection(given, self.may_change)
        if view is None:
            move(self, stat.name, given, at, slot, stat)
            return True
        with self.turned([view], stat):
            move(self, stat.name, view.place, at, slot, stat)
        return True

    # What is on top of stacks of arrays.

    def held_top(self, stack: Slot, node: Ref) -> Slot:
        if self.looked is not None:
            self.looked = True
            return held_in(self, stack)
        if self.held is None:
            super().held_top(stack, node)
        assert self.held is not None
        if stack.reg not in self.held:
            self.held[stack.reg] = hold(self, stack, node, self._at)
        ancilla = self.held[stack.reg].ancilla
        self.tops.add(ancilla.reg)
        return ancilla

    # Parts of long expressions.

    def held_part(self, value: Expr, node: Node) -> Expr:
        if self.looked is not None:
            return value
        if self.held is None or self.is_lazy:
            self.too_deep(node)
        if node not in self.held:
            try:
                self.held[node] = hold_part(self, f".part{len(self.held)}", value, node, self._at)
            except TypeFault as fault:
                self.fault(fault, node)
        held = self.held[node].ancilla
        return Place(held.reg, (), held.value_type)

    @contextmanager
    def holding(self, stat: Stat) -> Iterator[None]:
        """While something may be held, which is put back afterwards."""
        outer, self.held = self.held, {}
        before, self._at = self._at, stat
        try:
            yield
            for held in reversed(self.held.values()):
                held.put_back(self, stat)
        finally:
            self.held, self._at = outer, before

    def looks(self, node: Node) -> bool:
        """Whether an expression uses the top of a stack of arrays."""
        if not self.registers.shaped:
            return False
        outer, self.looked = self.looked, False
        try:
            self.operand(node)
        except Rejected:
            return False  # told again where the expression is lowered
        finally:
            found, self.looked = self.looked, outer
        return found

    # Macros.

    def expand(self, stat: OpStat) -> None:
        """The use of a macro: its body, in a separate scope."""
        macro = self.program.macros[stat.name]
        if len(stat.args) != len(macro.formals):
            words = ", ".join(f.text for f in macro.formals) or "none"
            self.complain(
                "A050",
                f"the macro `{stat.name}` takes {len(macro.formals)} operands, "
                f"not {len(stat.args)}",
                stat,
                f"its parameters are {words}",
            )
        context = self.report.context
        if any(name == stat.name for name, _, _ in context):
            self.complain("A051", f"the macro `{stat.name}` uses itself", stat)
        self._expansions += 1
        if self._expansions > MAX_EXPANSIONS:
            self.complain("A046", f"the function uses more than {MAX_EXPANSIONS} macros", stat)
        inner = Scope(f"{self.scope.owner}/{stat.name}", macro.types, len(context) + 1)
        for formal, arg in zip(macro.formals, stat.args, strict=True):
            inner.names[formal.text] = Alias(arg, self.scope)
        outer, self.scope = self.scope, inner
        start, first = len(self.pending), len(self.code)
        context.append((stat.name, stat.start, stat.end))
        try:
            self.statements(macro.body)
            self.pair_jumps(start, first, f"the macro `{stat.name}`")
            self._retire(inner, first)
        finally:
            context.pop()
            self.scope = outer

    def _retire(self, scope: Scope, first: int) -> None:
        """Keep the next expansion from the registers that this one has left live."""
        own = {leaf.reg for b in scope.names.values() for leaf in leaves_of(b)}
        if not own:
            return
        balance = dict.fromkeys(own, 0)
        for instr in self.code[first:]:
            place = instr.args[0] if instr.args else None
            if isinstance(place, Place) and place.reg in own:
                balance[place.reg] += (instr.op in MAKES) - (instr.op in ENDS)
        for reg, live in balance.items():
            if live:
                self.registers.retire(reg)


def _popped(stack: Slot) -> ValueType | None:
    """The type of a stack's elements; None if this is not a stack."""
    t = stack.type
    return with_rank(t.elem, len(stack.shape)) if isinstance(t, Stack) else None
