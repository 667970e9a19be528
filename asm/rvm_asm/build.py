"""From declarations to a verified program: lowered functions, and generic ones' instances."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

from rvm.isa import FUNCTIONS, wholes_as_reals
from rvm.isa.rules import CLASSES
from rvm.program import Function, Program, Span
from rvm.transform.keeping import keeping
from rvm.types import SCALARS
from rvm.verify import inout_slots, verify
from rvm.verify.conflicts import CALLS
from rvm_asm.bijections import passing
from rvm_asm.blocks import Blocks
from rvm_asm.check import (
    report_aliases,
    report_counting,
    report_decisions,
    report_endless,
    report_factors,
    report_findings,
    report_lengths,
    report_shared,
)
from rvm_asm.derivatives import Derivative, binding, changing, complete
from rvm_asm.generics import (
    FUNCTION,
    IDLE,
    Types,
    TypeValue,
    class_text,
    instance_text,
    tried,
    usual,
)
from rvm_asm.habits import type_hint
from rvm_asm.messages import did_you_mean
from rvm_asm.names import plain, quoted
from rvm_asm.nodes import Declared, TypeParam, TypeRef, Word
from rvm_asm.parser import parse_named
from rvm_asm.program import Declarations
from rvm_asm.stats import Func, RecordDef
from rvm_asm.values import Rejected

MAX_INSTANCES = 256
"""The largest number of instances of one function, since generic recursion may be endless."""
MAX_MADE = 1 << 15
"""The largest total number of instances, including those made for checking: texts may be
hostile."""
WHY_ENTRY = (
    "every program has an entry, whichever function is run: `main`, else the first that takes no "
    "function"
)
Wanted = tuple[Func, Types, Word]
"""A generic function, the values of its parameters, and the place of the request."""


class Build:
    """The functions of a program in the making."""

    def __init__(self, declarations: Declarations) -> None:
        self.declarations = declarations
        self.report = declarations.report
        self.emitters: dict[str, Blocks] = {}
        self._work: deque[str] = deque()
        self._made: dict[str, int] = {}
        self._total = 0
        declarations.specialise = self.specialise

        self._check_parameters()
        self._is_sound = not self.report.failed
        for name, func in declarations.functions.items():
            if func.linked is not None:
                self._link(name, func, func.linked)
            elif not func.is_generic:
                self._sign(name, Blocks(declarations, func))

    def program(self, wanted: Sequence[Wanted] = (), *, check: str = "called") -> Program:
        """The verified program; AssemblyError with everything that is wrong.

        Generic functions are in it for the types that its functions, the entry and `wanted` ask
        for.  If `check` is "all", they are looked at for each type that they may be of; if it is
        "once", those for which nothing asks are looked at for one.
        """
        for func, types, at in wanted:
            self._asked(func, types, at)
        entry = self._entry()
        self._lower()
        self._settle()
        kept, generated = set(self.emitters), len(self.declarations.generated)
        called = dict(self.declarations.derivatives)
        if check != "called" and self._is_sound and not self.declarations.as_python:
            self._try(once=check == "once")
            self._settle()
        return self._verified(kept, generated, called, entry)

    # ------------------------------------------------------------ functions

    def _sign(self, name: str, emitter: Blocks) -> bool:
        if not emitter.sign():
            return False
        declarations = self.declarations
        self.emitters[name] = emitter
        declarations.heads[name] = emitter.function(plain(name))
        declarations.made[name] = emitter.func, emitter.scope.types
        declarations.signatures[name] = tuple(
            (p.name, emitter.scope.names[p.name]) for p in emitter.func.params if not p.is_function
        )
        self._work.append(name)
        return True

    def _link(self, name: str, func: Func, linked: Function) -> None:
        """Enter a function that is lowered and verified."""
        declarations = self.declarations
        declarations.heads[name] = linked
        declarations.made[name] = func, {}
        declarations.signatures[name] = tuple(
            (p.name, binding(p.layout, linked)) for p in linked.params
        )
        declarations.generated.append(linked)

    def _lower(self) -> None:
        while self._work:
            emitter = self.emitters[self._work.popleft()]
            as_python = self.declarations.as_python
            typing = wholes_as_reals(emitter.converted) if as_python else nullcontext()
            with self.report.within(emitter.func, emitter.instance), typing:
                emitter.statements(emitter.func.body)
                emitter.pair_jumps(0, 0)

    def _settle(self) -> None:
        """Lower again functions with arguments that are changed through bijections.

        Which parameters a function changes is known when all functions are lowered.  Where a call
        may change `-x`, and so x, it is looked at as one that passes x.
        """
        offered = {n: e.offered for n, e in self.emitters.items() if e.offered}
        if not offered or self.report.failed:
            return
        functions = [e.function(plain(n)) for n, e in self.emitters.items()]
        whole = [
            replace(f, code=tuple(passing(f.code, e.offered))) if e.offered else f
            for f, e in zip(functions, self.emitters.values(), strict=True)
        ]
        heads = {f.name: f for f in (*whole, *self.declarations.generated)}
        for name, d in self.declarations.derivatives.items():
            heads[name] = changing(d, len(heads[d.of].params))
        changed = inout_slots(Program(tuple(heads.values()), ""))
        self.declarations.changed = changed
        for name, places in offered.items():
            if any(
                id(arg) in places and k in changed.get(instr.symbol, ())
                for instr in self.emitters[name].code
                for k, arg in enumerate(instr.args)
                if instr.op in CALLS
            ):
                self._sign(name, Blocks(self.declarations, *self.declarations.made[name]))
        self._lower()

    def specialise(self, func: Func, types: Types, at: Word) -> str:
        """The name of an instance of a generic function; Rejected if it can't be made."""
        inside = ", ".join(map(str, types.values()))
        name = quoted(f"{plain(func.name.text)}[{inside}]" if types else plain(func.name.text))
        declared = self.declarations.functions.get(name, func)
        if declared is func and name in self.emitters:
            return name
        count = self._made[func.name.text] = self._made.get(func.name.text, 0) + 1
        self._total += 1
        if count > MAX_INSTANCES or self._total > MAX_MADE:
            name = plain(func.name.text)
            many = f"`{name}` is made for more than {MAX_INSTANCES} types"
            all_of_them = f"the functions are made for more than {MAX_MADE:,} types in all"
            self.report.about(
                at,
                "A073",
                many if count > MAX_INSTANCES else all_of_them,
                hint="it calls itself, perhaps through other functions, with ever new types",
            )
            raise Rejected
        if declared is not func:
            first = declared.name
            self.report.about(
                first,
                "A006",
                f"{name} is declared, and is what `{plain(func.name.text)}` is called for "
                f"{instance_text(types)}",
            )
            raise Rejected
        emitter = Blocks(self.declarations, func, types)
        with self.report.within(func, emitter.instance):
            fine = self._sign(name, emitter)
        if not fine:
            raise Rejected
        return name

    def _asked(self, func: Func, types: Types, at: Word) -> str | None:
        try:
            return self.specialise(func, types, at)
        except Rejected:
            return None

    # ------------------------------------------------------------ generic functions

    def _check_parameters(self) -> None:
        """Check all type parameters: their names, and their classes."""
        declarations = self.declarations
        taken = {*SCALARS, *declarations.records, *declarations.pures, *declarations.functions}
        owners: list[Func | RecordDef] = [
            *declarations.generics.values(),
            *declarations.records.values(),
        ]
        for owner in owners:
            seen: set[str] = set()
            functions = [p.name for p in owner.functions] if isinstance(owner, Func) else []
            for p in owner.types:
                if p.name in seen or p.name in functions:
                    what = "is a type parameter already"
                elif p.name in taken or p.name in FUNCTIONS or p.name in ("stack", "func"):
                    what = "has another meaning"
                else:
                    what = ""
                if what:
                    self.report.about(p, "A006", f"`{plain(p.name)}` {what}")
                seen.add(p.name)
                self._check_classes(p)

    def _check_classes(self, p: TypeParam) -> None:
        known = (*CLASSES, *SCALARS)
        for c in p.classes:
            if c.text not in known:
                self.report.about(
                    c,
                    "A072",
                    f"there is no class of types `{c.text}`",
                    hint=type_hint(c.text)
                    or did_you_mean(c.text, known)
                    or "for example real, float, int, number, exact; or a type",
                )
        if not p.classes and p.shaped:
            self.report.about(p, "A072", f"`{class_text(p)}` names no class")

    def _try(self, *, once: bool) -> None:
        """Make generic functions to find errors in them.

        All, for the types that they may be of; or those that nothing has asked for, for one.
        """
        asked = {func.name.text for func, _ in self.declarations.made.values()} if once else set()
        for func in self.declarations.generics.values():
            for types in _combinations(func):
                if func.name.text in asked:
                    break
                if once:
                    asked.add(func.name.text)
                self._made.clear()
                try:
                    with self.report.within(func, instance_text(types)):
                        for p in func.functions:
                            types[p.name] = self._idle(func, p, types)
                except Rejected:
                    continue
                self._asked(func, types, func.name)
                self._lower()

    def _idle(self, owner: Func, p: Declared, types: Types) -> TypeValue:
        """A function that does nothing, in place of one that is passed."""
        assert p.type is not None
        words = [f"a{k}" for k in range(len(p.type.fields or ()))]
        params = [
            Declared(w, self._any_length(f), p.start, p.end)
            for w, f in zip(words, p.type.fields or (), strict=True)
        ]
        name = Word(f"{IDLE} {plain(p.name)} of {plain(owner.name.text)}`", p.start, p.end)
        func = Func(name, [], params, [], p.start, p.end)
        self.declarations.excused.setdefault(name.text, set())
        return TypeValue(FUNCTION, name=self.specialise(func, types, name))

    def _any_length(self, field: Declared) -> TypeRef:
        """The type of a parameter of a function that is passed, with any lengths."""
        t = field.type
        assert t is not None
        record = self.declarations.records.get(t.name)
        if t.dims is None or (record is not None and record.types and t.args is None):
            return t
        return TypeRef(t.name, t.frac, t.fields, [None] * len(t.dims), t.start, t.end, t.args)

    # ------------------------------------------------------------ the whole

    def _verified(
        self, kept: set[str], generated: int, called: dict[str, Derivative], entry: str
    ) -> Program:
        declarations, report, emitters = self.declarations, self.report, self.emitters
        whole = tuple(e.function(plain(name)) for name, e in emitters.items())
        lowered = Program((*whole, *declarations.generated), "")
        more = (*declarations.generated, *complete(lowered, declarations.derivatives, report))
        lowered = Program((*whole, *more), "")
        report_counting(lowered, emitters, report)
        report_shared(lowered, emitters, report)
        if not declarations.keeps_faults:
            report_factors(emitters, report)
        functions: list[Function] = []
        for emitter, made in zip(emitters.values(), whole, strict=True):
            if emitter.broken:
                # What is there of it is looked at by itself; the rest of the program is still
                # checked against this one's parameters.
                with report.within(emitter.func, emitter.instance):
                    report_aliases(made, emitter, report)
                made = replace(made, code=(), spans=(), registers=made.registers[: emitter.n_args])
            if declarations.positions is not None:
                made = replace(made, spans=_spans(made, declarations.positions[0]))
            functions.append(made)
        for constant in declarations.constants.definitions:
            declarations.constants.literal(constant)
        sources = declarations.sources.sources()
        if declarations.positions is not None:
            marks, sources = declarations.positions
            more = tuple([replace(f, spans=_spans(f, marks)) for f in more])
        program = Program(self._ordered(functions, more), entry, sources)
        if inout_slots in lowered.cache and not any(e.broken for e in emitters.values()):
            program.cache[inout_slots] = lowered.cache[inout_slots]
        plainly = [
            f for f in declarations.functions.values() if not f.is_generic and f.linked is None
        ]
        if functions and len(functions) >= len(plainly):
            by_name = {plain(n): e for n, e in emitters.items()}
            report_findings(program, by_name, report)
            if not (report.failed or declarations.keeps_faults):
                report_lengths(program, by_name, report)
                report_endless(program, by_name, report)
            if not report.failed:
                report_decisions(program, declarations.derivatives, report)
        report.raise_if_failed()
        report.give_warnings()
        if len(kept) < len(emitters):
            asked = [f for n, f in zip(emitters, functions, strict=True) if n in kept]
            asked += more[:generated]
            asked += complete(Program(tuple(asked), ""), called, report)
            program = Program(tuple(asked), entry, sources)
        program = self._keeping(program, called)
        program.cache[verify] = True  # it has just been verified
        return program

    def _ordered(
        self, functions: Sequence[Function], more: Sequence[Function]
    ) -> tuple[Function, ...]:
        """The functions in the order of a text that has them: those that its `map` makes are last.

        Those of a text are in this order already.
        """
        if not self.declarations.as_python:
            return (*functions, *more)
        mapped = {plain(n) for n, f in self.declarations.mapped.items() if f.linked is None}
        linked = [f for f in self.declarations.functions.values() if f.linked is not None]
        first = [f for f in functions if f.name not in mapped]
        made = [f for f in functions if f.name in mapped]
        return (*first, *more[: len(linked)], *made, *more[len(linked) :])

    def _keeping(self, program: Program, called: dict[str, Derivative]) -> Program:
        """The program with copies of restored values, from which derivatives are made."""
        found = keeping(program) if self.declarations.keeps else program
        if found is program or not called:
            return found
        own = {*self.emitters, *(f.name for f in self.declarations.generated)}
        names = {plain(n) for n in own}
        functions = tuple(f for f in found.functions if f.name in names)
        more = complete(Program(functions, ""), called, self.report)
        return Program((*functions, *more), found.entry, found.sources)

    def _entry(self) -> str:
        """The entry: the one named, else `main`, else the first function, of the first file.

        One that takes no function comes before others, and one that is not generic.
        """
        declarations = self.declarations
        for d in declarations.entries.values():
            word = d.name
            if word.text not in declarations.functions:
                self.report.about(
                    word,
                    "A045",
                    f"there is no function `{word.text}`",
                    hint=did_you_mean(word.text, declarations.functions),
                )
                return plain(word.text)
        names, entry = declarations.own, declarations.entry
        if entry is not None:
            word, written = entry.name, entry.types
            func = declarations.functions[word.text]
            if written is not None:
                try:
                    return plain(self.specialise(*self.named(func, written, word)))
                except Rejected:
                    return plain(word.text)
        elif not names:
            if not self.report.failed:
                self.report.error(
                    "A010", "the text has no function", 0, 1, hint="`func main(x: f64)`"
                )
            return "main"
        else:
            functions = [declarations.functions[n] for n in names]
            func = min(
                functions, key=lambda f: (f.name.text != "main", bool(f.functions), f.is_generic)
            )
        if not func.is_generic:
            return plain(func.name.text)
        return self._usual_entry(func)

    def _usual_entry(self, func: Func) -> str:
        """A generic entry, for the types that are usual."""
        declarations, name = self.declarations, plain(func.name.text)
        if func.functions:
            self.report.about(
                func,
                "A045",
                f"`{name}` takes a function, so it cannot be the entry",
                notes=[WHY_ENTRY],
                hint=f"name one that it is to take, as in `entry {name}[g]`, or add a function "
                "that calls it",
            )
            return name
        if declarations.as_python:
            declarations.usual_entry = name
            return name
        try:
            types = {p.name: usual(p) for p in func.types}
        except IndexError:
            return name
        made = self._asked(func, types, func.name)
        declarations.usual_entry = name
        return plain(made or name)

    def named(self, func: Func, written: list[TypeRef], at: Word) -> Wanted:
        """A function with types, and functions, as they are named in brackets."""
        return func, Blocks(self.declarations, func).named(func, written, at), at

    def wanted(self, function: str) -> Wanted:
        """A generic function as callers name it, `axpy[f32]`; AssemblyError if it can't be."""
        try:
            word, written = parse_named(function, self.report)
            func = next(
                f for n, f in self.declarations.generics.items() if plain(n) == plain(word.text)
            )
            return self.named(func, written or [], word)
        except Rejected:
            self.report.raise_if_failed()
            raise


def _combinations(func: Func) -> Iterator[dict[str, TypeValue]]:
    """Types for all parameters, such that each parameter has been of every one of its class."""
    columns = [list(tried(p)) for p in func.types]
    if not all(columns):
        return
    for k in range(max(map(len, columns), default=1)):
        yield {p.name: c[k % len(c)] for p, c in zip(func.types, columns, strict=True)}


def _spans(function: Function, marks: dict[int, Span]) -> tuple[Span, ...]:
    """The positions of instructions by the position comments; empty if there are none."""
    if not any(s.line in marks for s in function.spans):
        return ()
    return tuple(marks.get(s.line, Span()) for s in function.spans)
