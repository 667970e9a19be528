"""Lowering structured statements to branches and come-froms.

Each form is written once, forwards; `undo` inverts what a routine became.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from rvm.expr import OPPOSITES, Apply, Const, Expr, Place
from rvm.isa import FUNCTIONS, apply, invert_instr
from rvm.program import Instr
from rvm.types import BOOL, I64, Scalar
from rvm_asm.conditions import undone_by
from rvm_asm.counters import CountedLoop
from rvm_asm.generics import Types
from rvm_asm.holding import Held, Holding
from rvm_asm.maps import Shared, mapping
from rvm_asm.messages import did_you_mean
from rvm_asm.nodes import Node, Operator, Ref
from rvm_asm.program import Declarations
from rvm_asm.scope import ScopeBlock, Slot
from rvm_asm.stacked import Lowered
from rvm_asm.stats import (
    MAPS,
    AllocStat,
    EffectStat,
    Empty,
    Extern,
    For,
    From,
    Func,
    IfStat,
    Invoke,
    Iterate,
    Jump,
    OpStat,
    Replace,
    Routine,
    Stat,
    Undo,
    While,
    With,
)
from rvm_asm.values import Rejected

_FALSE, _TRUE = Const(False, BOOL), Const(True, BOOL)
MAX_LEVELS = 80
"""The largest nesting depth of blocks, including those of macros."""
_HOLDING = (OpStat, AllocStat, Invoke, Iterate, Extern)
"""Statements throughout which tops of stacks of arrays, and parts of long expressions, are held."""


class Blocks(Holding):
    """Lowers statements of all kinds."""

    def __init__(self, program: Declarations, func: Func, types: Types | None = None) -> None:
        super().__init__(program, func, types)
        self.shared: list[Shared] = []
        """Arguments shared by all elements over which functions are mapped."""

    def statements(self, body: list[Stat]) -> None:
        """Lower a block; a statement that is wrong is reported and left out."""
        self._level += 1
        if self._level > MAX_LEVELS and body:
            self._level -= 1
            self.complain(
                "A046", f"blocks and macros nest deeper than {MAX_LEVELS} levels", body[0]
            )
        for stat in body:
            if stat.labels:
                self._labels(stat)
            self._at = stat
            kind = type(stat)
            outer, self.held = self.held, {} if kind in _HOLDING else None
            try:
                if kind is OpStat:
                    self.op(stat)  # type: ignore[arg-type]
                elif kind is AllocStat:
                    self.alloc(stat)  # type: ignore[arg-type]
                elif kind is Invoke:
                    self._call(stat)  # type: ignore[arg-type]
                elif kind is Jump:
                    self.jump(stat)  # type: ignore[arg-type]
                else:
                    self._structured(stat)
                for held in reversed((self.held or {}).values()):
                    held.put_back(self, stat)
            except Rejected:
                self.broken = True
            self.held = outer
        self._level -= 1

    def _call(self, stat: Invoke) -> None:
        if stat.name not in MAPS:
            self.call(stat)
            return
        mapped = mapping(self, stat)
        if mapped.is_shown:
            self.became[id(stat)] = mapped.call.callee.text, mapped.call.args
        self.shared += mapped.shared
        self.call(mapped.call, mapped.said)

    def _labels(self, stat: Stat) -> None:
        for word in stat.labels:
            first = self.scope.labels.get(word.text)
            if first is not None:
                self.broken = True
                self.report.about(
                    word,
                    "A006",
                    f"the label `{word.text}` is defined twice",
                    also=((first[1].start, first[1].end, "first here"),),
                )
                continue
            self.scope.labels[word.text] = (len(self.code), word)

    def _structured(self, stat: Stat) -> None:
        match stat:
            case IfStat():
                self._if(stat)
            case While():
                self._while(stat)
            case For():
                self._for(stat)
            case From():
                self._from(stat)
            case Iterate():
                self.iterate(stat)
            case Routine():
                self._routine(stat)
            case Undo():
                self._undo(stat)
            case With():
                self._with(stat)
            case Replace():
                self.replace(stat)
            case Extern():
                self._extern(stat)
            case EffectStat():
                self.complain(
                    "A061",
                    f"`{stat.name}` is outside of an `extern` block",
                    stat,
                    f"write `extern forward`, `{stat.name} …`, `end`",
                )
            case Lowered():
                stat.lower()
            case _:
                assert isinstance(stat, Empty)

    # Pairs of jumps.

    def _jump(self, op: str, cond: tuple[Expr, Expr], stat: Stat) -> int:
        return self.put(Instr(op, cond[:1]), stat, cond[1:])

    def _carrier(self, *conds: Node) -> Place | None:
        """A register for the condition of a jump, if an end uses tops of stacks of arrays.

        An end computes it before it jumps, or after it has come, and elsewhere it is false.
        """
        return self._flag(0) if any(map(self.looks, conds)) else None

    def _flag(self, depth: int) -> Place:
        name = ".holds" + str(depth or "")
        return Place(self.registers.local(name, BOOL, self.scope.owner).reg, (), BOOL)

    def _jump_if(self, op: str, node: Node, carrier: Place | None, *, negated: bool = False) -> int:
        """A jump if a condition holds, or does not, at the place where it is evaluated."""
        at = self._stretch(node)
        if carrier is None:
            cond, template = self._cond(node, at)
            return self._jump(op, (_negated(cond) if negated else cond, template), at)
        if op == "br":
            self.put(Instr("alloc", (carrier, Const(negated, BOOL))), at)
            self._toggle(carrier, node, at)
            jump = self._jump(op, (carrier, carrier), at)
            self.put(Instr("free", (carrier, _FALSE)), at)
            return jump
        self.put(Instr("alloc", (carrier, _FALSE)), at)
        jump = self._jump(op, (carrier, carrier), at)
        self._toggle(carrier, node, at)
        self.put(Instr("free", (carrier, Const(negated, BOOL))), at)
        return jump

    def _always(self, op: str, at: Stat, carrier: Place | None) -> int:
        """A jump that is always taken."""
        if carrier is not None and op == "br":
            self.put(Instr("alloc", (carrier, _TRUE)), at)
        jump = self._jump(op, (_TRUE, _TRUE), at)
        if carrier is not None and op == "cf":
            self.put(Instr("free", (carrier, _TRUE)), at)
        return jump

    def _toggle(self, flag: Place, node: Node, at: Stat, depth: int = 1) -> None:
        """Negate a flag if a condition holds; only operands that decide it are evaluated."""
        if not (
            isinstance(node, Operator) and FUNCTIONS[node.name].lazy and self.looks(node.args[1])
        ):
            with self.holding(at):
                cond, template = self._cond(node, at)
                self.put(Instr("xor", (flag, cond)), at, (flag, template))
            return
        word, (left, right) = node.name, node.args
        first = self._flag(depth)
        self.put(Instr("alloc", (first, _FALSE)), at)
        self._toggle(first, left, at, depth + 1)
        if word == "or":
            self.put(Instr("xor", (flag, first)), at)
        skip = first if word == "or" else _negated(first)
        jump = self._jump("br", (skip, skip), at)
        self._toggle(flag, right, at, depth + 1)
        self._pair(jump, self._jump("cf", (skip, skip), at))
        self._toggle(first, left, at, depth + 1)
        self.put(Instr("free", (first, _FALSE)), at)

    def _stretch(self, node: Node) -> Empty:
        """The source range of a condition, with the brackets around its parts."""
        return Empty(*self.report.sources.bracketed(node.start, node.end))

    def _pair(self, a: int, b: int) -> None:
        self.code[a] = replace(self.code[a], aux=b)
        self.code[b] = replace(self.code[b], aux=a)

    def _cond(self, node: Node, stat: Stat) -> tuple[Expr, Expr]:
        """A condition; one that is wrong is reported and taken as true, to read on."""
        try:
            return self.condition(node, stat)
        except Rejected:
            self.broken = True
            return _TRUE, _TRUE

    # The forms.

    def _if(self, stat: IfStat) -> None:
        """The arms from the first to the last, then their joins from the last to the first."""
        joins: list[tuple[int, Node, Place | None]] = []
        named = False
        for arm in stat.arms:
            at = self._stretch(arm.cond)
            post = arm.post if arm.post is not None else arm.cond
            carrier = self._carrier(arm.cond, post)
            skip = self._jump_if("br", arm.cond, carrier, negated=True)
            self.statements(arm.body)
            named = named or arm.post is not None
            if not named and carrier is None:
                self._warn_of_changes(skip, arm.cond, skip, taken=True)
            if arm is stat.arms[-1] and stat.orelse is None:
                self._pair(skip, self._jump_if("cf", post, carrier, negated=True))
                break
            joined = self._carrier(post)
            joins.append((self._always("br", at, joined), post, joined))
            self._pair(skip, self._always("cf", at, carrier))
        if stat.orelse is not None:
            start = len(self.code) - 1
            self.statements(stat.orelse)
            if len(joins) == 1 and not named and carrier is None:
                self._warn_of_changes(skip, arm.cond, start, taken=False)
        for leave, post, joined in reversed(joins):
            self._pair(leave, self._jump_if("cf", post, joined))

    def _warn_of_changes(self, skip: int, cond: Node, start: int, *, taken: bool) -> None:
        """Warn where the block behind an instruction changes a condition that must stay.

        `skip` jumps if the condition does not hold.
        """
        test = self.code[skip].args[0]
        pc = undone_by(self.code, start + 1, len(self.code), test, not taken)
        if pc is None:
            return
        sources = self.report.sources
        start, stop = sources.stretch(self.spans[pc])
        at, end = sources.bracketed(cond.start, cond.end)
        change, text = sources.text(start, stop), sources.text(at, end)
        message, label = (
            (f"`{change}` can make `{text}` false, which must hold after the block too", "holds")
            if taken
            else (
                f"`{change}` can make `{text}` true, which must not hold after the block",
                "does not hold",
            )
        )
        self.report.error(
            "A077",
            message,
            start,
            stop,
            also=((at, end, f"{label} before the block"),),
            hint=f"give the condition that holds exactly after this arm: `if {text}, …`",
            severity="warning",
        )

    def _while(self, stat: While) -> None:
        carrier = self._carrier(stat.cond, stat.post)
        skip = self._jump_if("br", stat.cond, carrier, negated=True)
        top = self._jump_if("cf", stat.post, carrier)
        self.statements(stat.body)
        self._pair(self._jump_if("br", stat.cond, carrier), top)
        self._pair(skip, self._jump_if("cf", stat.post, carrier, negated=True))

    def _from(self, stat: From) -> None:
        ends = (stat.entry,) if stat.again else (stat.entry, stat.until)
        carrier = self._carrier(*ends)
        top = self._jump_if("cf", stat.entry, carrier, negated=True)
        self.statements(stat.body)
        if not stat.again:
            self._pair(self._jump_if("br", stat.until, carrier, negated=True), top)
            return
        left = self._carrier(stat.until)
        leave = self._jump_if("br", stat.until, left)
        self.statements(stat.again)
        at = self._stretch(stat.entry)
        self._pair(self._always("br", at, carrier), top)
        self._pair(leave, self._always("cf", at, left))

    def _for(self, stat: For) -> None:
        """Bounds are evaluated once; the frees at the end find out if they have changed."""
        name = stat.var.text
        self._free_variable(stat, name)
        found: list[tuple[Place, Node]] = []

        def bound(word: str, node: Node) -> Expr:
            if not self.looks(node):
                return self._integer(node)
            with self.holding(stat):
                found.append((self._local(stat, f"{name}.{word}", self._integer(node)), node))
            return found[-1][0]

        first = bound("first", stat.first)
        last = bound("last", stat.last)
        step = bound("by", stat.step) if stat.step is not None else Const(1, I64)
        lo = self._held(stat, f"{name}.lo", first)
        by = self._held(stat, f"{name}.step", step)
        stop = apply("for_end", lo, last, self._negative(by, stat) if stat.down else by)
        end = self._local(stat, f"{name}.end", stop)
        var = self._local(stat, name, lo)
        self.scope.names[name] = Slot(var.reg, I64)

        def jump(op: str, sign: str, a: Expr, b: Expr) -> int:
            return self._jump(op, (apply(sign, a, b),) * 2, stat)

        skip = jump("br", "==", lo, end)
        top = jump("cf", "!=", var, lo)
        self.loops[var.reg] = name
        self.statements(stat.body)
        self.loops.pop(var.reg, None)
        bounds = [b.reg for b in (var, lo, by, end) if isinstance(b, Place)]
        names = {reg: self.registers.list[reg].name for reg in bounds}
        self.counted.append(CountedLoop(top + 1, len(self.code), names))
        self.put(Instr("sub" if stat.down else "add", (var, by)), stat)
        self._pair(jump("br", "!=", var, end), top)
        self._pair(skip, jump("cf", "==", lo, end))
        self.put(Instr("free", (var, end)), stat)
        self.put(Instr("free", (end, stop)), stat)
        for held, value in ((by, step), (lo, first)):
            if held is not value:
                self.put(Instr("free", (held, value)), stat)
        for place, node in reversed(found):
            with self.holding(stat):
                self.put(Instr("free", (place, self._integer(node))), stat)

    def _free_variable(self, stat: For, name: str) -> None:
        known = self.scope.names.get(name)
        if known is None:
            return
        if isinstance(known, Slot) and known.reg in self.loops:
            self.report.about(
                stat.var,
                "A058",
                f"`{name}` counts a loop around this one",
                hint="give the inner loop another variable",
            )
            raise Rejected
        if not isinstance(known, Slot) or known.reg < self.n_args:
            self.report.about(
                stat.var,
                "A006",
                f"`{name}` is a parameter already",
                hint="the variable of a `for` is a new ancilla",
            )
            raise Rejected

    def _negative(self, step: Expr, stat: For) -> Expr:
        """Minus the step of a loop, which must be an i64."""
        if not isinstance(step, Const):
            return apply("turned", step, Const(True, BOOL))
        if step.value == -(1 << 63):
            message = f"the step {step.value} has no negative that is an i64"
            self.reject("A041", message, cast(Node, stat.step))
        return Const(-step.value, I64)

    def _integer(self, node: Node) -> Expr:
        """A bound of a `for`, typed."""
        return self.whole(node, "A040", "a loop counts in i64, not in")

    def _held(self, stat: For, name: str, value: Expr) -> Expr:
        """A bound: itself if it is a constant, else an ancilla that holds it."""
        return value if isinstance(value, Const) else self._local(stat, name, value)

    def _local(self, stat: For, name: str, value: Expr) -> Place:
        slot = self.registers.local(name, I64, self.scope.owner)
        place = Place(slot.reg, (), I64)
        self.made.append((place, Ref(name, (), stat.var.start, stat.var.end)))
        self.put(Instr("alloc", (place, value)), stat)
        return place

    # Routines and effects.

    def _routine(self, stat: Routine) -> None:
        name = stat.name
        known = self.scope.routines.get(name.text)
        if known is not None:
            self.report.about(
                name,
                "A006",
                f"the routine `{name.text}` is declared twice",
                also=((known.word.start, known.word.end, "first here"),),
            )
        block = ScopeBlock(name, len(self.code))
        self.scope.routines[name.text] = block
        pending = len(self.pending)
        self.statements(stat.body)
        what = "the routine" if name.text[:1] == " " else f"the routine `{name.text}`"
        self.pair_jumps(pending, block.start, what)
        block.stop = len(self.code)
        if stat.result is not None:
            self.statements(stat.result)
            self._undo(Undo(name, stat.start, stat.end))

    def _with(self, stat: With) -> None:
        """Registers made in order, and freed in the opposite order."""
        made: list[Held] = []
        for declared, value in stat.held:
            try:
                with self.holding(stat):
                    made.append(self.hold(declared, value, stat))
            except Rejected:
                self.broken = True
                self.excused.add(declared.name)
        self.statements(stat.body)
        for held in reversed(made):
            with self.holding(stat):
                self.release(held, stat)

    def _undo(self, stat: Undo) -> None:
        name = stat.name
        block = self.scope.routines.get(name.text)
        if block is None or block.stop < 0:
            if name.text not in self.excused:
                inside = block is not None
                self.report.about(
                    name,
                    "A057",
                    f"`undo {name.text}` is inside of that routine"
                    if inside
                    else f"there is no routine `{name.text}` above",
                    hint="" if inside else did_you_mean(name.text, self.scope.routines),
                )
            raise Rejected
        block.is_undone = True
        base = len(self.code)
        for k in range(block.stop - 1, block.start - 1, -1):
            undo = invert_instr(self.code[k])
            if undo.op in ("br", "cf"):
                undo = replace(undo, aux=base + block.stop - 1 - undo.aux)
            self.put(undo, stat, self.templates[k])

    def _extern(self, stat: Extern) -> None:
        for inner in stat.body:
            if isinstance(inner, EffectStat):
                try:
                    self.effect(inner, stat.when)
                except Rejected:
                    self.broken = True
            elif not isinstance(inner, Empty):
                self.report.about(
                    inner,
                    "A061",
                    "an `extern` block holds `print`, `assert` and `callback` only",
                    hint="it changes no place: compute its operands before it",
                )
                self.broken = True


def _negated(cond: Expr) -> Expr:
    """The opposite of a typed condition, without a `not` where a comparison has an opposite.

    Of floats only `==` and `!=` have one: a NaN is neither below nor above.
    """
    if isinstance(cond, Const):
        return Const(not cond.value, BOOL)
    if isinstance(cond, Apply):
        if cond.fn == "not":
            return cond.args[0]
        fn, t = OPPOSITES.get(cond.fn), cond.args[0].type
        is_total = isinstance(t, Scalar) and (t.is_integer or t.is_fixed or fn in ("==", "!="))
        if fn is not None and is_total:
            return apply(fn, *cond.args)
    return apply("not", cond)
