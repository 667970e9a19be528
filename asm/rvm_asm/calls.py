"""Lowering calls, and effects outside of the machine."""

from __future__ import annotations

from collections.abc import Sequence

from rvm.codes.words import count, with_article
from rvm.expr import Apply, Expr, Place, is_count
from rvm.isa import TypeFault, check_operands, typed
from rvm.isa.derivatives import adjoint_type
from rvm.program import Function, Instr, slots_of
from rvm.transform.derived import MARKS, Mark, head
from rvm.transform.duals import bar_slots
from rvm.types import RegisterType, Scalar, Stack, elem_of, rank_of
from rvm_asm.bijections import Bijection, passed
from rvm_asm.derivatives import (
    LEFT_OUT,
    Derivative,
    LeftOut,
    Said,
    binding,
    carrying,
    is_left_out,
    listed,
    said_of,
)
from rvm_asm.generics import FUNCTION
from rvm_asm.habits import DERIVATIVES
from rvm_asm.messages import did_you_mean
from rvm_asm.names import plain, quoted
from rvm_asm.nodes import Node, Ref, Word
from rvm_asm.scope import Binding, NameGroup, Slot, leaves_of
from rvm_asm.specialisation import Specialising
from rvm_asm.stacked import text_of
from rvm_asm.stats import EffectStat, Invoke, Iterate
from rvm_asm.values import Rejected


class Calls(Specialising):
    """Lowers `call`, `uncall` and the contents of `extern` blocks."""

    def call(self, stat: Invoke, said: Sequence[Said] = ()) -> None:
        """`call` and `uncall`: records become leaves, literals take the parameters' types.

        `said` is what a derivative's parameters are, if the function that is called maps one.
        """
        name, args = self.callee(stat)
        self.became[id(stat)] = name, args
        signature = self.program.signatures[name]
        own = 0
        if stat.marks:
            made = self.derivative(name, args, stat)
            head, said = made.head, made.said
            own = len(args)
            bars = [b for b in stat.bars if not is_left_out(b)]
            name, args = quoted(head.name), [*args, *bars]
            signature = tuple((p.name, binding(p.layout, head)) for p in head.params)
            stat = Invoke(stat.name, stat.callee, args, stat.start, stat.end, bars=bars)
        stat = Invoke(
            stat.name, Word(plain(name), 0, 0), args, stat.start, stat.end, bars=stat.bars
        )
        flat = self._flat_call(stat, signature, said)
        changed = self.program.changed.get(plain(name), frozenset())
        views: dict[int, tuple[Bijection, Node]] = {}
        nodes: list[Node] = []
        templates: list[Expr] = []
        done: list[Expr] = []
        held: list[Instr] = []
        for k, (arg, (leaves, slots)) in enumerate(zip(stat.args, flat, strict=True)):
            if not stat.bars:
                self._check_stacks(arg, slots)
            if leaves is not None:
                templates += leaves
                done += leaves
                nodes += [arg] * len(leaves)
                continue
            nodes.append(arg)
            template = self.operand(arg)
            templates.append(template)
            slot = slots[0]
            if is_count(template):
                template = typed(Apply("i64", (template,)))
            if isinstance(template, Place):
                done.append(template)
                continue
            view = None if self.program.keeps_values else passed(template, self.may_change)
            if view is not None and len(done) in changed:
                views[len(done)] = view, arg
                templates[-1] = view.place
                done.append(view.place)
                continue
            try:
                done.append(typed(template, elem_of(slot.type)))
            except TypeFault as fault:
                self.fault(fault, arg)
            if view is not None:
                self.offered[id(done[-1])] = view.place
            elif k < own and isinstance(slot.type, Scalar) and adjoint_type(slot.type) is not None:
                held.append(
                    self._in_ancilla(f"{plain(name)}.{signature[k][0]}", slot.type, done[-1], stat)
                )
                done[-1] = held[-1].args[0]
        if said:
            self._check_fit(said, signature, stat, done)
        for at, (view, arg) in views.items():
            others = ((done[k], nodes[k]) for k in changed if k != at)
            self.keep_apart(view, arg, others)
        instr = Instr(stat.name, tuple(done), -1, plain(name))
        self.through([view for view, _ in views.values()], instr, stat, tuple(templates))
        for free in reversed(held):
            self.put(free, stat)

    def _check_stacks(self, arg: Node, slots: list[Slot]) -> None:
        """Refuse a stack of other arrays than a parameter holds."""
        if not isinstance(arg, Ref) or not any(isinstance(s.type, Stack) for s in slots):
            return
        for have, want in zip(leaves_of(self.resolve(arg)[0]), slots, strict=False):
            both = isinstance(have.type, Stack) and isinstance(want.type, Stack)
            if both and have.shape != want.shape:
                what = f"a {text_of(want)} is required here, but this is a {text_of(have)}"
                self.reject("A040", what, arg)

    def _in_ancilla(self, name: str, t: Scalar, value: Expr, stat: Invoke) -> Instr:
        """An ancilla for a value passed to a derivative; returns the instruction that frees it.

        What is passed as a value and changes, even if it is put back, would have to be compared.
        """
        place = Place(self.registers.local(name, t, self.scope.owner).reg, (), t)
        self.put(Instr("alloc", (place, value)), stat)
        return Instr("free", (place, value))

    def derivative(self, name: str, args: list[Node], stat: Invoke) -> Derivative:
        """The derivative that the marks of a call denote, as callers see it."""
        base = self.program.heads[name]
        said = [Said(plain(p.name), binding(p.layout, base)) for p in base.params]
        for k, mark in enumerate(stat.marks):
            f, kind = base, MARKS[mark]
            base = head(f, mark)
            if len(base.params) == len(f.params):
                self.complain(
                    "A080",
                    f"`{f.name}` has no {kind.word}: none of its parameters is a real or "
                    "complex number",
                    stat,
                )
            left: list[LeftOut] = []
            if k == len(stat.marks) - 1:
                self._check_derivative(base, f, kind, args, stat)
                left = self._left_out(f, mark, stat, said)
            without = frozenset[int]().union(*(one.slots for one in left))
            base = head(f, mark, without) if without else base
            if quoted(base.name) in self.program.functions:
                self.complain(
                    "A006", f"`{base.name}` is declared, and is the {kind.word} of `{f.name}`", stat
                )
            said = said_of(f, mark, said, without)
            made = Derivative(f, mark, base, stat.callee, without, tuple(said), tuple(left))
            self.program.derivatives.setdefault(base.name, made)
        return made

    def _check_fit(
        self,
        said: Sequence[Said],
        signature: Sequence[tuple[str, Binding]],
        stat: Invoke,
        given: Sequence[Expr],
    ) -> None:
        """Refuse arguments that a derivative does not take;

        `given` are the leaves of all arguments.
        """
        leaves = iter(given)
        for what, (_, bound), arg in zip(said, signature, stat.args, strict=True):
            group = bound if isinstance(bound, NameGroup) else None
            paths = group.paths() if group else [""]
            for path, want in zip(paths, leaves_of(bound), strict=True):
                leaf = next(leaves)
                t: RegisterType | None = leaf.type
                if t is None and isinstance(leaf, Place):
                    t = self.registers.list[leaf.reg].type
                if t is None or t == want.type:
                    continue
                more = rank_of(t) - rank_of(want.type)
                if more and group is not None:
                    than = f"{'more' if more > 0 else 'fewer'} than {what.text()}"
                    self.reject("A042", f"this has {count(abs(more), 'dimension')} {than}", arg)
                wrong = f"{with_article(want.type)}, and this is {with_article(t)}"
                hint = what.wanted(group) if group is not None and what.dual else ""
                if not (isinstance(leaf, Place) or isinstance(want.type, Stack) or more):
                    hint = f"convert it: `{elem_of(want.type)}(…)`"
                code = "A042" if more else "A040"
                self.reject(code, f"{what.text(path)} is {wrong}", arg, hint)

    def _check_derivative(
        self, made: Function, f: Function, kind: Mark, args: list[Node], stat: Invoke
    ) -> None:
        """Refuse a call of a derivative with too many arguments or bars, or too few."""
        own = made.params[: len(f.params)]
        if len(args) != len(own):
            self.complain(
                "A044",
                f"`{made.name}` takes the {len(own)} argument{'s' * (len(own) != 1)} of "
                f"`{f.name}`, not {len(args)}",
                stat,
                f"its parameters are {listed(made, own) or 'none'}",
            )
        found = carrying(f)
        if len(stat.bars) != len(found):
            duals = kind.duals if len(found) != 1 else kind.duals[:-1]
            what = f"{len(found)} real parameters" if len(found) != 1 else "one real parameter"
            self.complain(
                "A080",
                f"`{made.name}` takes {len(found)} {duals} behind the `;`, not {len(stat.bars)}",
                stat,
                f"`{f.name}` has {what}, in order {listed(f, found)}; `{LEFT_OUT}` leaves one out",
            )

    def _left_out(
        self, f: Function, mark: str, stat: Invoke, said: Sequence[Said]
    ) -> list[LeftOut]:
        """The bars, or dots, that are left out."""
        slots = bar_slots(f)
        known = {p.name: s for p, s in zip(f.params, said, strict=True)}
        found = carrying(f)
        out = [
            LeftOut(
                known[p.name].with_dual(mark).text(),
                frozenset(slots.keys() & set(slots_of(p.layout))),
                bar,
            )
            for p, bar in zip(found, stat.bars, strict=True)
            if is_left_out(bar)
        ]
        if len(out) == len(found):
            self.complain(
                "A080", f"all {MARKS[mark].duals} are left out: nothing is asked for", stat
            )
        return out

    def callee(self, stat: Invoke | Iterate) -> tuple[str, list[Node]]:
        """The function that is called, made for its types if it is generic, and its arguments."""
        word = stat.callee
        name = word.text
        bound = self.scope.types.get(name)
        if bound is not None and bound.kind == FUNCTION:
            name = bound.name
        func = self.program.generics.get(name)
        if func is not None:
            # Of a derivative of a derivative some arguments are bars of the first.
            more = isinstance(stat, Invoke) and len(stat.marks) > 1
            n = len(func.params) if more else len(stat.args)
            name, args = self._specialised(func, stat, stat.args[:n])
            return name, [*args, *stat.args[n:]]
        if stat.types is not None and name in self.program.functions:
            self.complain("A071", f"`{plain(name)}` has no type parameters", stat)
        if name not in self.program.signatures:
            if name in self.program.functions or name in self.excused:
                raise Rejected
            hint = did_you_mean(name, self.program.functions)
            if name in self.program.macros:
                hint = f"`{name}` is a macro: write `{name} …` without `call`"
            if name in DERIVATIVES:
                hint = f"a derivative is called with a mark: `call {DERIVATIVES[name]}`"
            self.report.about(word, "A045", f"there is no function `{name}`", hint=hint)
            raise Rejected
        return name, stat.args

    def _flat_call(
        self, stat: Invoke, signature: tuple[tuple[str, Binding], ...], said: Sequence[Said]
    ) -> list[tuple[list[Expr] | None, list[Slot]]]:
        """For each argument its leaves, if it is a record, and the parameter's registers."""
        name = stat.callee.text
        params = [b for _, b in signature]
        leaves = [self.leaves(a) for a in stat.args]
        if len(params) != len(stat.args):
            # The leaves of a record may be given one by one, as disassembled code does.
            params = [s for b in params for s in (b.leaves() if isinstance(b, NameGroup) else (b,))]
        if len(params) != len(stat.args):
            self.wrong_count(name, [p for p, _ in signature], len(stat.args), stat)
        out: list[tuple[list[Expr] | None, list[Slot]]] = []
        for k, (b, found, arg) in enumerate(zip(params, leaves, stat.args, strict=True)):
            if said and said[k].dual:
                found = self._with_bars(said[k], arg, found, b)
            slots = list(b.leaves()) if isinstance(b, NameGroup) else [b]
            if (found is not None) != isinstance(b, NameGroup) or (
                found is not None and len(found) != len(slots)
            ):
                what = f"a record `{b}`" if isinstance(b, NameGroup) else "no record"
                self.reject("A040", f"`{name}` takes {what} here", arg)
            out.append((found, slots))  # type: ignore[arg-type]
        return out

    def _with_bars(
        self, what: Said, arg: Node, found: list[Expr] | None, bars: Binding
    ) -> list[Expr] | None:
        """The leaves of a record that have bars, as a record of the argument's type."""
        if not isinstance(bars, NameGroup):
            if found is not None:
                self.reject("A040", f"{what.text()} is not a record", arg)
            return None
        by_path: dict[str, Expr] = {}
        if found is not None:
            assert isinstance(arg, Ref)
            group, _ = self.resolve(arg)
            assert isinstance(group, NameGroup)
            by_path = dict(zip(group.paths(), found, strict=True))
        else:
            self.operand(arg)
        wanted = list(bars.paths())
        missing = [p for p in wanted if p not in by_path]
        if missing:
            has = f"and this has no `{missing[0]}`" if by_path else "and this is none"
            self.reject("A040", f"{what.text()} is a record, {has}", arg, what.wanted(bars))
        return [by_path[p] for p in wanted]

    def effect(self, stat: EffectStat, when: int) -> None:
        """An instruction of an `extern` block."""
        if stat.name == "assert" and not stat.args:
            self.complain("A044", "`assert` takes a condition", stat)
        templates = tuple([self.operand(a) for a in stat.args])
        if stat.name == "assert":
            self._no_stacks(templates, stat.args, stat.name)
        try:
            done = check_operands(stat.name, templates, self.registers.list)
        except TypeFault as fault:
            self._type_fault(fault, stat, stat.args)
        self.put(Instr(stat.name, done, when, stat.text), stat, templates)
