"""Pure functions as objects: their values, their programs, the texts of their stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from rvm_asm.messages import Reporter
from rvm_asm.program import Declarations
from rvm_asm.stats import Func
from rvm_asm.texts import build

from rvm.codes.words import count, described
from rvm.faults import UsageError
from rvm.library.handle import FunctionHandle, Library
from rvm.library.reversible import Adding
from rvm.numbers import system
from rvm.types import BOOL, F64, I64, Scalar
from rvm_pure import gradient as gradients
from rvm_pure.account import Account, Row, run_of, run_with_adjoints
from rvm_pure.assembler import read
from rvm_pure.choice import FORMS, MODE, MOST_STEPS, Choice, Form, choose, derived, forms, nominal
from rvm_pure.cost import Cost, kappa, nesting
from rvm_pure.deep import deep
from rvm_pure.definition import Definition
from rvm_pure.elements import lengths
from rvm_pure.explanation import explained
from rvm_pure.faults import StageFault
from rvm_pure.keeping import ALL, Keep
from rvm_pure.lowering import OUT, Lowering
from rvm_pure.simplify import typed
from rvm_pure.stages import STAGES, stage
from rvm_pure.terms import Let, Names, binders, free, tup
from rvm_pure.types import Arr, Type, dims, elem_type, flat, is_tuple, leaves, parts
from rvm_pure.typing import lengths_of
from rvm_pure.uses import put_in
from rvm_pure.zeros import zeros


def keep(**budget: Any) -> Keep:
    """A budget from keywords; UsageError U006 for an unknown keyword."""
    words = Keep.__dataclass_fields__
    for name in budget:
        if name not in words:
            what = f"no budget is called `{name}`"
            raise UsageError("U006", what, hint=f"there are {', '.join(words)}")
    return Keep(**budget)


def functions(text: str, name: str = "<text>") -> dict[str, PureFunction]:
    """The functions of a pure text by name; AssemblyError lists the errors in it."""
    declarations = Declarations()
    found = read(text, declarations, name)
    return {d.name.text: PureFunction(d, declarations) for d in found}


class PureFunction(Adding):
    """A function without state: called, it gives its value, as NumPy would.

    `program` holds it as a function of the machine, which adds the value to its first parameter
    and can be undone.
    """

    def __init__(
        self, definition: Definition, declarations: Declarations, keep: Keep = ALL, form: str = ""
    ) -> None:
        self.definition = definition
        self._declarations = declarations
        self._keep = keep
        self._form = form
        self._forms: dict[str, PureFunction] = {}

    def keeping(self, **budget: Any) -> PureFunction:
        """The same function whose loops keep less: by `pebbles`, `memory` in bytes, `in_place`.

        `in_place` makes updates of floats in place, too, which rounding keeps from being undone
        to the bit.  UsageError U006 if a budget is not a number, or there are two.
        """
        return PureFunction(self.definition, self._declarations, keep(**budget), self._form)

    def by(self, form: str) -> PureFunction:
        """The same function whose `grad` takes a form of its derivatives, a stage, by name.

        `rasm` is gradient mode of the reversible program.  UsageError U006 if there is no such
        form.
        """
        names = (MODE, *FORMS)
        if form not in names:
            raise UsageError(
                "U006", f"derivatives have no form `{form}`", hint=f"there are {', '.join(names)}"
            )
        return PureFunction(self.definition, self._declarations, self._keep, form)

    @property
    def name(self) -> str:
        return self.definition.name.text

    def __repr__(self) -> str:
        params = ", ".join(f"{p.name}: {p.type}" for p in self.definition.params)
        return f"<pure {self.name}({params}) -> {self.definition.body.type}>"

    @cached_property
    def program(self) -> Library:
        """The reversible program: its function is `f(out, x)`.

        AssemblyError where a budget cannot be kept.
        """
        return self._library(fresh=False)

    @property
    def reversible(self) -> FunctionHandle:
        """The function of `program`."""
        return self.program[self.name]

    @cached_property
    def _exchanged(self) -> Library:
        """The program whose function puts the value where zeros are."""
        return self._library(fresh=True)

    @deep
    def _library(self, fresh: bool) -> Library:
        declarations = self._fresh()
        for func in self._lowered(fresh)[1]:
            declarations.enter(func, set())
        return Library(build(declarations))

    @deep
    def stage(self, name: str, *, prefix: bool = False, wrt: str | Sequence[str] = ()) -> str:
        """The text of a stage, by `rvm_pure.stages.STAGES`; of derivatives by `wrt`, or by all.

        AssemblyError where a term cannot occur in it, UsageError U006 if there is no such stage.
        """
        self._known(wrt)
        if name not in STAGES:
            raise UsageError(
                "U006", f"there is no stage `{name}`", hint=f"there are {', '.join(STAGES)}"
            )
        with self._faults():
            return stage(self.definition, name, prefix=prefix, wrt=_names(wrt), keep=self._keep)

    @deep
    def gradient(self, wrt: str | Sequence[str] = ()) -> PureFunction:
        """The function of the derivatives by the named parameters, or by all that have any."""
        self._known(wrt)
        with self._faults():
            return self._of(gradients.gradient(self.definition, _names(wrt) or None))

    @deep
    def grad(self, *args: Any, **named: Any) -> Any:
        """The derivatives by all parameters that have any: of one it is that, of several a tuple.

        They are computed in the form of `choice`, or in that which `by` names.  AssemblyError if
        the value is not a real number, or has no such form.
        """
        return self._differentiated(args, named, valued=False)[1]

    @deep
    def value_and_grad(self, *args: Any, **named: Any) -> tuple[Any, Any]:
        """The value, and what `grad` gives; in gradient mode both are of one run."""
        return self._differentiated(args, named, valued=True)

    def _differentiated(
        self, args: Sequence[Any], named: Mapping[str, Any], valued: bool
    ) -> tuple[Any, Any]:
        d = self.definition
        with self._faults():
            wrt = gradients.context(d, None)
        if self._derived is not None:
            return self(*args, **named) if valued else None, self._derived(*args, **named)
        handle = self._exchanged[self.name]
        out, *names = handle.parameters
        values = dict(zip(names, self.given(args, named), strict=True))
        given = {out: 0.0, **values}
        value, found = (
            handle.value_and_grad(given, loss=out)
            if valued
            else (None, handle.grad(given, loss=out))
        )
        taken = iter(names)
        by = {p.name: [next(taken) for _ in flat(p.type)] for p in d.params}
        slopes = tuple(_joined(s.type, iter([found[n] for n in by[s.name]])) for s in wrt)
        return value, slopes[0] if len(slopes) == 1 else slopes

    @cached_property
    def _derived(self) -> PureFunction | None:
        """The function of the derivatives; None where gradient mode is taken."""
        name = self._form or self.choice.name
        if name == MODE:
            return None
        if name not in self._forms:
            with self._faults():
                self._forms[name] = self._of(derived(self.definition, name))
        return self._forms[name]

    @cached_property
    def choice(self) -> Choice:
        """The form of the derivatives that costs least, with the figures.

        AssemblyError if the value is not a real number.
        """
        d, sizes = self.definition, nominal(self.definition)
        with self._faults():
            gradients.context(d, None)

        def run(form: Form) -> Cost:
            assert form.definition is not None
            made = self._forms[form.name] = self._of(form.definition)
            return run_of(form.definition, made._counting, sizes).work

        return choose(d, run, lambda: run_with_adjoints(d, self._counting, sizes).work)

    @property
    def _counting(self) -> FunctionHandle:
        """The function for runs that are counted, too short to be worth machine code."""
        return self._exchanged[self.name].with_options(max_steps=MOST_STEPS, engine="python")

    def _of(self, d: Definition) -> PureFunction:
        return PureFunction(d, self._declarations, self._keep)

    def _lowered(self, fresh: bool = False) -> tuple[Lowering, list[Func]]:
        lowering = Lowering(self.definition, self._keep)
        with self._faults():
            return lowering, lowering.functions(fresh)

    def _fresh(self) -> Declarations:
        """Declarations of nothing yet, whose positions are those of the text."""
        out = Declarations()
        out.sources = self._declarations.sources.copy()
        out.report = out.constants.report = Reporter(out.sources)
        return out

    @deep
    def explain(self) -> str:
        """The form of the derivatives, and `lets`."""
        try:
            gradients.context(self.definition, None)
            lines = str(self.choice)
            if self._form:
                lines = f"derivatives: in the form `{self._form}`, as requested"
        except StageFault as fault:
            lines = f"derivatives: none, as {fault.message}"
        return "\n    ".join((f"{self.name}:", lines, *self.lets))

    @property
    def lets(self) -> tuple[str, ...]:
        """The implementation of each named value, with its figures and the reason.

        A value is put in, held by an ancilla, updated in place, stored, or a schedule keeps some
        states.
        """
        lowering, funcs = self._lowered()
        return tuple(explained(lowering, len(funcs[0].body), nominal(self.definition)))

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the lengths and whole numbers on which costs may depend."""
        whole = (p.name for p in self.definition.params if p.type == I64)
        return (*lengths_of(self.definition.params), *whole)

    @deep
    def cost(self, wrt: str | Sequence[str] = (), **lengths: int) -> Account:
        """The costs of the function and its gradient for these lengths and counts.

        UsageError U006 where a length is not among them and follows from none.
        """
        try:
            stages = {"source": self, "gradient": self.gradient(wrt)}
            source, gradient = (
                Row.of(name, f.definition, lengths, f._exchanged[f.name])
                for name, f in stages.items()
            )
            found = [] if wrt else forms(self.definition)
            others = [
                Row.of(form.name, form.definition, lengths)
                for form in found
                if form.definition is not None and form.name != "gradient"
            ]
            run = run_with_adjoints(self.definition, self._exchanged[self.name], lengths)
        except (ValueError, KeyError) as error:
            raise UsageError(
                "U006", f"what `{self.name}` costs is not known: {error}", hint="name all lengths"
            ) from None
        body = self.definition.body
        mode = Row(MODE, run)
        return Account(source, gradient, mode, others, nesting(body), kappa(body))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Terms that a stage cannot process are errors at their places."""
        try:
            yield
        except StageFault as fault:
            self._raise(fault)

    def _raise(self, fault: StageFault) -> NoReturn:
        report = self._fresh().report
        at = fault.term if fault.term.end else self.definition.name
        report.about(at, "A085", fault.message, hint=fault.hint)
        report.raise_if_failed()
        raise AssertionError(fault.message)

    def _known(self, wrt: str | Sequence[str]) -> None:
        names = [p.name for p in self.definition.params]
        for n in _names(wrt):
            if n not in names:
                raise UsageError(
                    "U006",
                    f"`{self.name}` has no parameter `{n}`",
                    hint=f"it has {', '.join(names)}",
                )

    @deep
    def __call__(self, *args: Any, **named: Any) -> Any:
        """The value for numbers and arrays; a tuple's is a tuple."""
        t = self.definition.body.type
        assert t is not None
        given = self.given(args, named)
        sizes = self.lengths(given)
        outs = [zeros(x, sizes) for x in flat(t)]
        if any(v is None for v in outs):
            known = np.ravel(self._lengths(*args, **named)).tolist()
            outs = [
                np.zeros([known.pop(0) for _ in dims(x)], system(elem).dtype) if dims(x) else zero
                for x, elem, zero in zip(flat(t), leaves(t), outs, strict=True)
            ]
        handle = self._exchanged[self.name]
        found = handle(**dict(zip(handle.parameters, (*outs, *given), strict=True)))
        return _joined(t, iter(found.values()))

    def __invert__(self) -> NoReturn:
        how = f"`~f.program.{self.name}` undoes the reversible function, which adds it to a place"
        raise UsageError("U006", f"`{self.name}` returns a value, and so is not undone", hint=how)

    @cached_property
    def _lengths(self) -> PureFunction:
        """The function of the lengths of the value's arrays."""
        d = self.definition
        assert d.body.type is not None
        e, names = d.body, Names({*binders(d.body), *free(d.body)})
        while isinstance(e, Let) and isinstance(e.pattern, str):
            e = put_in(e.body, e.pattern, e.value, names)
        body = typed(tup(lengths(e, d.body.type)), gradients.variables(d))
        return self._of(replace(d, body=body, block=False))

    def given(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The numbers and arrays of the arguments, in the order of the parameters."""
        names = [p.name for p in self.definition.params]
        if len(args) > len(names):
            what = f"`{self.name}` takes {count(len(names), 'argument')}, not {len(args)}"
            raise UsageError("U006", what)
        out = {**dict(zip(names, args, strict=False)), **named}
        takes = f"it takes {', '.join(names)}"
        for n in names:
            if n not in out:
                raise UsageError("U006", f"`{self.name}` needs a value for `{n}`", hint=takes)
        for n in out:
            if n not in names:
                raise UsageError("U006", f"`{self.name}` has no parameter `{n}`", hint=takes)
        return [v for p in self.definition.params for v in _apart(p.name, p.type, out[p.name])]

    def lengths(self, given: Sequence[Any]) -> dict[str, int]:
        """The values of the names of lengths, and of counts, by which arrays may be as long."""
        out: dict[str, int] = {}
        kinds = [(p.name, t) for p in self.definition.params for t in flat(p.type)]
        for (name, t), v in zip(kinds, given, strict=True):
            if t == I64:
                out.setdefault(name, int(v))
            for n, k in zip(dims(t), np.shape(v), strict=False):
                if n is not None and n.name and not n.more:
                    out.setdefault(n.name, k)
        return out


def _names(wrt: str | Sequence[str]) -> tuple[str, ...]:
    return (wrt,) if isinstance(wrt, str) else tuple(wrt)


def _apart(name: str, t: Type, v: Any) -> Iterator[Any]:
    """The numbers and arrays of a value; UsageError U006 if it is no tuple as its type is."""
    if is_tuple(t):
        items = parts(t)
        if not isinstance(v, (tuple, list)) or len(v) != len(items):
            raise UsageError("U006", f"`{name}` is a tuple of {len(items)}, not {described(v)}")
        for item, x in zip(items, v, strict=True):
            yield from _apart(name, item, x)
        return
    elem = elem_type(t)
    assert isinstance(elem, Scalar)
    if isinstance(t, Arr):
        found, want = np.asarray(v), np.dtype(system(elem).dtype)
        # What would lose something is told by the machine.
        v = found.astype(want) if np.can_cast(found.dtype, want, "same_kind") else found
    yield v


def _joined(t: Type, values: Iterator[Any]) -> Any:
    """A value of numbers and arrays in order; tuples of them as tuples.

    Numbers that are narrower than Python's are NumPy's.
    """
    if is_tuple(t):
        return tuple(_joined(item, values) for item in parts(t))
    v = next(values)
    if isinstance(t, Scalar) and t not in (F64, I64, BOOL) and (t.is_integer or t.is_float):
        return system(t).dtype.type(v)
    return v


__all__ = ["OUT", "PureFunction", "functions"]
