"""The form in which derivatives are computed, chosen by what the forms cost.

The forms of the source, which are stages made into functions of the parameters alone, are compared
by the accounts of their terms.  The program of the cheapest is compared with gradient mode of the
function's own program, by the work of the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rvm.faults import RvmError
from rvm.types import I64, Scalar
from rvm_pure import straight
from rvm_pure.adjoints import real
from rvm_pure.cost import Cost, work
from rvm_pure.definition import Definition
from rvm_pure.faults import StageFault
from rvm_pure.gradient import context, gradient, raw, variables
from rvm_pure.simplify import simplified, typed
from rvm_pure.terms import Let, Loop, Num, Prim, Term, Var, free, tup, walk
from rvm_pure.typing import lengths_of
from rvm_pure.unary import rebuilt, unary

MODE = "rasm"
"""Gradient mode of the reversible program."""
NOMINAL = 5
"""The length of every array and the count of every loop for which forms are compared."""
_TOO_LONG = "it is too long"
MOST_UNARY = 40
"""The largest term whose unary form is compared: that takes seconds for a hundred operations."""
MOST_STEPS = 300_000
"""The most steps of a run that is counted for a choice."""


def _numbers(d: Definition) -> None:
    """StageFault if a straight-line program would have an array for an input."""
    for s in context(d, None):
        if not isinstance(s.type, Scalar):
            raise StageFault(d.body, f"`{s.name}` is not a number")


def _direct(d: Definition) -> Term:
    return typed(raw(d), variables(d))


def _unary(d: Definition) -> Term:
    pair = rebuilt(replace(unary(d), is_reverse=True)).body
    return simplified(Let(("v'", "g'"), pair, Var("g'")), variables(d))


def _reverse(d: Definition) -> Term:
    _numbers(d)
    found = straight.reverse(d)
    (seed,) = found.params[len(d.params) :]
    assert isinstance(seed.type, Scalar)
    names = tuple(f"g{k}'" for k, _ in enumerate(context(d, None)))
    made = Let(("v'", *names), found.body, tup(map(Var, names)))
    return simplified(Let(seed.name, real(1.0, seed.type), made), variables(d))


def _forward(d: Definition) -> Term:
    _numbers(d)
    found = straight.forward(d)
    seeds = found.params[len(d.params) :]

    def by(name: str) -> Term:
        out: Term = Let(("v'", "g'"), found.body, Var("g'"))
        for q in seeds:
            assert isinstance(q.type, Scalar)
            out = Let(q.name, real(float(q.name == name), q.type), out)
        return out

    return simplified(tup(by(q.name) for q in seeds), variables(d))


FORMS: dict[str, Callable[[Definition], Term]] = {
    "gradient": lambda d: gradient(d).body,
    "direct": _direct,
    "unf-reverse": _unary,
    "reverse": _reverse,
    "forward": _forward,
}
"""The derivatives of a definition by all of its parameters, by the name of a stage."""


def derived(d: Definition, name: str) -> Definition:
    """The definition of the derivatives by a form; StageFault where a term cannot occur in it."""
    context(d, None)
    return replace(d, body=FORMS[name](d), block=False)


def nominal(d: Definition) -> dict[str, int]:
    """The lengths and counts for which forms are compared."""
    found = dict.fromkeys(lengths_of(d.params), NOMINAL)
    counts: set[str] = set()
    for e in walk(d.body):
        if isinstance(e, Loop):
            counts |= set(free(e.count))
        elif isinstance(e, Prim) and e.name in ("iota", "replicate"):
            counts |= set(free(e.args[0]))
    return found | {p.name: NOMINAL for p in d.params if p.type == I64 and p.name in counts}


@dataclass(frozen=True, slots=True)
class Form:
    """A form: its definition, its term's work and that of its run; or why there is none."""

    name: str
    definition: Definition | None = None
    work: Cost | None = None
    run: Cost | None = None
    without: str = ""


def forms(d: Definition) -> list[Form]:
    """The forms of the source, the cheapest first, those that cannot be chosen at the end.

    These are forms without an account, and `direct`, whose terms have products by adjoints that are
    zero: where a value that nothing uses is infinite, they are NaN.
    """
    found = []
    size = sum(not isinstance(e, (Var, Num)) for e in walk(d.body))
    for name in FORMS:
        if name == "unf-reverse" and size > MOST_UNARY:
            what = f"it is not compared for more than {MOST_UNARY} operations"
            found.append(Form(name, without=what))
            continue
        try:
            made = derived(d, name)
        except StageFault as fault:
            found.append(Form(name, without=fault.message))
            continue
        except RecursionError:
            found.append(Form(name, without=_TOO_LONG))
            continue
        try:
            found.append(Form(name, made, work(made.body, nominal(d))))
        except ValueError as error:
            found.append(Form(name, made, without=str(error)))
    return sorted(
        found,
        key=lambda f: (f.work is None, f.name == "direct", 0 if f.work is None else f.work.total),
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The form that was chosen, and those it was chosen from."""

    name: str
    forms: Sequence[Form]
    sizes: dict[str, int]
    why: str

    def __str__(self) -> str:
        at = ", ".join(f"{n} = {k}" for n, k in self.sizes.items())
        lines = [f"derivatives: {self.why}" + (f" (at {at})" if at else "")]
        for f in self.forms:
            figures = [
                f"{what} {c.total:,}"
                for what, c in (("work of the term", f.work), ("work of the run", f.run))
                if c is not None
            ]
            lines.append(f"    {f.name}: {', '.join(figures) or 'none, as ' + f.without}")
        return "\n    ".join(lines)


def choose(d: Definition, run: Callable[[Form], Cost], mode: Callable[[], Cost]) -> Choice:
    """The cheapest form, by the work of its run; gradient mode where there is no other account.

    A run costs no less than its term, so a term that costs more than gradient mode is not run.
    """
    found, own = forms(d), _ran(Form(MODE), mode)
    best, least = found[0], None if own.run is None else own.run.total
    if best.work is not None and (least is None or best.work.total < least):
        best = found[0] = _ran(best, lambda: run(best))
    here = "gradient mode of the program"
    if own.run is None:
        name, why = MODE, f"{here}, as what it costs is not known: {own.without}"
    elif best.run is None and best.work is not None and best.work.total >= own.run.total:
        name = MODE
        most = f"the term of `{best.name}` costs {best.work.total:,}"
        why = f"{here}, at a cost of {own.run.total:,}; {most}"
    elif best.run is None:
        name, why = MODE, f"{here}, as what others cost is not known: {best.without}"
    elif best.run.total < own.run.total:
        name = best.name
        why = f"`{name}`, at a cost of {best.run.total:,}; {here} costs {own.run.total:,}"
    else:
        name = MODE
        why = f"{here}, at a cost of {own.run.total:,}; `{best.name}` costs {best.run.total:,}"
    return Choice(name, [own, *found], nominal(d), why)


def _ran(form: Form, run: Callable[[], Cost]) -> Form:
    try:
        return replace(form, run=run())
    except RecursionError:
        return replace(form, without=_TOO_LONG)
    except (RvmError, ValueError) as error:
        return replace(form, without=str(getattr(error, "message", error)))
