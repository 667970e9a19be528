"""Type inference for terms: numbers by the rules of the machine's table, arrays by their lengths.

Calls of other definitions are inlined, so the result is one term over the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Protocol

from rvm_asm.cursor import Bad
from rvm_asm.messages import Reporter, did_you_mean

from rvm.expr import LENGTHS
from rvm.isa import FUNCTIONS
from rvm.isa.rules import COMPARE, Arg, TypeFault, default_type
from rvm.isa.typing import literal
from rvm.types import BOOL, C128, F64, I64, SCALARS, Scalar, elem_of, rank_of
from rvm_pure.definition import Definition, Param
from rvm_pure.lengths import result_type, size_of
from rvm_pure.partial import closed, reduced
from rvm_pure.terms import (
    App,
    Call,
    Each,
    Fold,
    If,
    Index,
    Lam,
    Let,
    Loop,
    Names,
    Num,
    Op,
    Pattern,
    Prim,
    Proj,
    Term,
    Tup,
    Update,
    Var,
    binders,
    names_in,
    substitute,
    walk,
)
from rvm_pure.types import (
    Arr,
    Product,
    Type,
    array_of,
    dims,
    elem_type,
    leaves,
    machine_type,
    outside,
    together,
)

Env = Mapping[str, Type]
Also = Sequence[tuple[int, int, str]]


_STATE = "each state has the type of the first"


class Placed(Protocol):
    """An object with a place in a text."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


def lengths_of(params: Sequence[Param]) -> dict[str, tuple[Param, int]]:
    """The lengths that the types of parameters name: of which parameter, and of which axis."""
    out: dict[str, tuple[Param, int]] = {}
    for p in params:
        for axis, n in enumerate(dims(p.type)):
            if n is not None and n.name and not n.more:
                out.setdefault(n.name, (p, axis))
    return out


class Typer:
    """Types the definitions of a text; errors are reported, and `Bad` is raised."""

    def __init__(self, found: Sequence[Definition], report: Reporter) -> None:
        self.report = report
        self.found = {d.name.text: d for d in found}
        self._done: dict[str, Definition] = {}
        self._open: list[str] = []

    def definition(self, name: str) -> Definition:
        """A definition with its types."""
        if name in self._done:
            return self._done[name]
        d = self.found[name]
        if name in self._open:
            through = " and ".join(f"`{n}`" for n in self._open[self._open.index(name) + 1 :])
            what = f"`{name}` is defined by itself" + f", through {through}" * bool(through)
            self.wrong("A051", what, d.name, hint="what is repeated is a `loop` or a fold")
        self._open.append(name)
        env: dict[str, Type] = {}
        for p in d.params:
            if p.name in env:
                self.wrong("A006", f"two parameters are called `{p.name}`", p)
            env[p.name] = p.type
        for n in lengths_of(d.params):
            if n in env:
                p = next(p for p in d.params if p.name == n)
                what = f"the length `{n}` has the name of a parameter"
                self.wrong("A063", what, p, hint="call it otherwise")
            env[n] = I64
        self._lengths_known(d)
        body = d.body
        if d.continuation:
            for n in d.continuation[1:]:
                if n not in env:
                    self.wrong("A005", f"nothing here is called `{n}`", d.name)
            body = closed(body, env, d.continuation)
        elif any(isinstance(x, App) for x in walk(body)):
            body = reduced(body, env)
        body = self.term(body, env)
        self._open.pop()
        out = self._done[name] = replace(d, body=body, continuation=())
        return out

    def give_up(self) -> None:
        """Continue after a definition with an error."""
        self._open.clear()

    def _lengths_known(self, d: Definition) -> None:
        known = lengths_of(d.params)
        for p in d.params:
            for n in dims(p.type):
                if n is not None and n.name and n.name not in known:
                    what = f"no length `{n.name}` is bound by a parameter"
                    hint = f"the type of a parameter binds it: `{p.name}: f64[{n.name}]`"
                    self.wrong("A063", what, p, hint=hint)

    def wrong(
        self, code: str, message: str, at: Placed, *, hint: str = "", also: Also = ()
    ) -> NoReturn:
        """Report an error in a source range, and stop."""
        self.report.about(at, code, message, hint=hint, also=also)
        raise Bad

    # Terms.

    def term(self, e: Term, env: Env, want: Type | None = None) -> Term:
        """A term with its types; `want` decides literals that nothing else does."""
        match e:
            case Num(value, elem):
                own = SCALARS[elem] if elem else _single(want) or _default(value)
                return self._literal(e, own)
            case Var(name):
                if name not in env:
                    hint = did_you_mean(name, env)
                    self.wrong("A005", f"nothing here is called `{name}`", e, hint=hint)
                return replace(e, type=env[name])
            case Let(p, value, body):
                value = self.term(value, env)
                inner = {**env, **self.bind(p, value.type, e)}
                body = self.term(body, inner, want)
                known = outside(_type(body), set(names_in(p)), size_of(value))
                return replace(e, value=value, body=body, type=known)
            case Tup(items):
                wants = want.items if isinstance(want, Product) else ()
                if len(wants) != len(items):
                    wants = (None,) * len(items)  # type: ignore[assignment]
                done = tuple(self.term(x, env, w) for x, w in zip(items, wants, strict=True))
                return replace(e, items=done, type=Product(tuple(_type(x) for x in done)))
            case Proj(k, of):
                of = self.term(of, env)
                t = _type(of)
                if not isinstance(t, Product) or not 0 <= k < len(t.items):
                    count = len(t.items) if isinstance(t, Product) else 0
                    hint = f"its parts have the numbers 1 to {count}" if count else ""
                    self.wrong("A044", f"a value of type {t} has no part {k + 1}", e, hint=hint)
                return replace(e, of=of, type=t.items[k])
            case If(c, a, b):
                return self._if(e, self.term(c, env, BOOL), a, b, env, want)
            case Op("*", (a, Tup(items))):
                # A number times each part of a tuple, as in reverse programs of lines.
                made = tuple(Op("*", (a, x), start=e.start, end=e.end) for x in items)
                return self.term(Tup(made, start=e.start, end=e.end), env, want)
            case Op(_, args):
                return self._op(e, args, env, want)
            case Call(name, args):
                return self._call(e, name, args, env)
            case Lam() | App():
                self.wrong("A040", "a function is not a value here", e, hint="apply it")
        return self._array(e, env, want)

    def _array(self, e: Term, env: Env, want: Type | None) -> Term:
        match e:
            case Each(fn, arrays):
                return self._each(e, fn, arrays, env, want)
            case Fold(kind, fn, init, array):
                return self._fold(e, kind, fn, init, array, env, want)
            case Prim(name, args):
                return self._prim(e, name, args, env, want)
            case Index(of, items):
                of, items, t = self._element(of, items, env)
                if len(items) == 1 and isinstance(_type(items[0]), Arr):
                    return self.term(Op("gather", (of, *items), start=e.start, end=e.end), env)
                return replace(e, of=of, items=items, type=t)
            case Update(of, items, value):
                of, items, t = self._element(of, items, env)
                value = self.term(value, env, t)
                self.fits(t, value)
                return replace(e, of=of, items=items, value=value, type=of.type)
            case Loop(p, init, var, count, body):
                count = self.term(count, env, I64)
                self.fits(I64, count)
                init = self.term(init, env, want)
                inner = {**env, **self.bind(p, init.type, e), var: I64}
                body = self.term(body, inner, init.type)
                t = self.fits(_type(init), body, _STATE)
                return replace(e, init=init, count=count, body=body, type=t)
        raise TypeError(f"a {type(e).__name__} has no type")

    def _literal(self, e: Num, t: Scalar) -> Term:
        try:
            literal(e.value, t)
        except TypeFault as fault:
            self.wrong(fault.code, fault.message, e)
        return replace(e, type=t)

    def bind(self, p: Pattern, t: Type | None, at: Term) -> dict[str, Type]:
        """The types of the names in a pattern."""
        assert t is not None
        if isinstance(p, str):
            return {} if p == "_" else {p: t}
        if not isinstance(t, Product) or len(t.items) != len(p):
            names = ", ".join(names_in(p))
            count = len(t.items) if isinstance(t, Product) else 0
            what = (
                f"the {len(p)} names ({names}) stand for parts, and a value of type {t} has {count}"
            )
            self.wrong("A044", what, at, hint="`_` is a part that is not needed")
        out: dict[str, Type] = {}
        for q, item in zip(p, t.items, strict=True):
            out |= self.bind(q, item, at)
        return out

    def fits(self, t: Type, e: Term, hint: str = "") -> Type:
        """The type of both; an error at the term if there is none."""
        found = joined(t, _type(e))
        if found is None:
            same = str(elem_type(t)) == str(elem_type(_type(e)))
            what = f"this has the type {_type(e)}, not {t}"
            self.wrong("A042" if same else "A040", what, e, hint=hint)
        return found

    def _if(self, e: If, c: Term, a: Term, b: Term, env: Env, want: Type | None) -> Term:
        self.fits(BOOL, c, COMPARE)
        if is_literal(a) and not is_literal(b):
            no = self.term(b, env, want)
            yes = self.term(a, env, no.type)
        else:
            yes = self.term(a, env, want)
            no = self.term(b, env, yes.type)
        return replace(e, cond=c, yes=yes, no=no, type=self.fits(_type(yes), no))

    # Functions of the table.

    def _op(self, e: Op, args: Sequence[Term], env: Env, want: Type | None) -> Term:
        row = FUNCTIONS.get(e.fn)
        if row is None:
            self.wrong("A004", f"there is no function `{e.fn}`", e)
        if len(args) != row.arity:
            many = f"{row.arity} argument{'s' * (row.arity != 1)}"
            self.wrong("A044", f"`{row.symbol or e.fn}` takes {many}, not {len(args)}", e)
        done = {k: self.term(a, env) for k, a in enumerate(args) if not is_literal(a)}
        first = next((elem_type(_type(a)) for a in done.values()), None)
        hint = first if isinstance(first, Scalar) else _single(want)
        for k, a in enumerate(args):
            if k not in done and not isinstance(a, Num):
                done[k] = self.term(a, env, hint)
        infos = [
            self._info(e, done[k]) if k in done else _literal_info(a) for k, a in enumerate(args)
        ]
        try:
            typing = row.rule(infos, _single(want) or (None if done else _widest(args)))
        except TypeFault as fault:
            message = fault.message
            if message.startswith(("does not", "takes")):
                message = f"`{row.symbol or row.name}` {message}"
            power = "a power is written `**`" if e.fn == "^" else ""
            self.wrong(fault.code, message, e, hint=fault.hint or power)
        made = tuple(
            done[k] if k in done else self._literal(a, t)  # type: ignore[arg-type]
            for k, (a, t) in enumerate(zip(args, typing.elems, strict=True))
        )
        t, clash = result_type(e.fn, made, typing.result)
        if clash:
            self.wrong("A042", f"`{row.symbol or e.fn}` takes arrays {clash}", e)
        return replace(e, args=made, type=t)

    def _info(self, e: Op, a: Term) -> Arg:
        t = machine_type(_type(a))
        if t is None:
            if e.fn in LENGTHS and isinstance(a.type, Arr):
                return Arg(F64, len(dims(a.type)))
            what = f"`{e.fn}` takes numbers and arrays of them, not {_a(a.type)}"
            hint = "its parts are taken by `let (a, b) = p in …`, `fst p`, `snd p`, `proj 3 p`"
            self.wrong("A040", what, a, hint=hint)
        return Arg(elem_of(t), rank_of(t))

    def _call(self, e: Call, name: str, args: tuple[Term, ...], env: Env) -> Term:
        d = self.definition(name)
        if len(args) != len(d.params):
            many = f"{len(d.params)} argument{'s' * (len(d.params) != 1)}"
            self.wrong("A044", f"`{name}` takes {many}, not {len(args)}", e)
        lengths: dict[str, Term] = {}
        values: list[tuple[str, Term]] = []
        names = Names({*env, *binders(e), *binders(d.body)})
        for p, a in zip(d.params, args, strict=True):
            value = self.term(a, env, p.type)
            known = tuple(None for _ in dims(p.type))
            self.fits(array_of(elem_type(p.type), known), value)
            new = names.new(p.name)
            values.append((new, value))
            for axis, n in enumerate(dims(p.type)):
                if n is not None and n.name and not n.more:
                    lengths.setdefault(n.name, Op("dim", (Var(new), Num(axis))))
        to = {p.name: Var(new) for p, (new, _) in zip(d.params, values, strict=True)}
        body: Term = substitute(d.body, {**to, **lengths}, names)
        for new, value in reversed(values):
            body = Let(new, value, body, start=e.start, end=e.end)
        return self.term(body, env)

    # Functions of arrays.

    def arrays(self, found: Sequence[Term], env: Env, what: str) -> tuple[list[Term], Arr]:
        """Arrays of one length, and the type of the first with what is known of that."""
        done: list[Term] = []
        length = None
        for x in found:
            a = self.term(x, env)
            if not isinstance(a.type, Arr):
                self.wrong("A042", f"`{what}` takes arrays, and this is {_a(a.type)}", a)
            fine, n = together(length, a.type.length)
            if not fine:
                first = done[0]
                self.wrong(
                    "A042",
                    f"`{what}` takes arrays of one length, not of {length} and {a.type.length}",
                    a,
                    also=((first.start, first.end, f"of length {length}"),),
                )
            length = n
            done.append(a)
        assert isinstance(done[0].type, Arr)
        return done, Arr(done[0].type.elem, length)

    def _function(
        self, fn: Lam, given: Sequence[Type], env: Env, want: Type | None, what: str
    ) -> Lam:
        if len(fn.params) != len(given):
            many = f"{len(given)} parameter{'s' * (len(given) != 1)}"
            self.wrong("A044", f"the function of `{what}` has {many}, not {len(fn.params)}", fn)
        inner = dict(env)
        for p, t in zip(fn.params, given, strict=True):
            inner |= self.bind(p, t, fn)
        body = self.term(fn.body, inner, want)
        return replace(fn, body=body, type=body.type)

    def _each(self, e: Each, fn: Lam, found: Sequence[Term], env: Env, want: Type | None) -> Term:
        what = "map" if len(found) == 1 else f"map{len(found)}"
        arrays, t = self.arrays(found, env, what)
        elems = [a.type.elem for a in arrays if isinstance(a.type, Arr)]
        inner = want.elem if isinstance(want, Arr) else None
        fn = self._function(fn, elems, env, inner, what)
        assert fn.type is not None
        return replace(e, fn=fn, arrays=tuple(arrays), type=Arr(fn.type, t.length))

    def _fold(
        self, e: Fold, kind: str, fn: Lam, init: Term, x: Term, env: Env, want: Type | None
    ) -> Term:
        (array,), t = self.arrays([x], env, kind)
        if kind.startswith("scan"):
            want = want.elem if isinstance(want, Arr) else None
        if want is None and is_literal(init):
            want = self._first_state(fn, init, t.elem, env)
        init = self.term(init, env, want)
        state = _type(init)
        fn = self._function(fn, (state, t.elem), env, state, kind)
        state = self.fits(state, fn.body, _STATE)
        out: Type = state
        if kind.startswith("scan"):
            out = Arr(state, None if t.length is None else t.length.plus(1))
        return replace(e, fn=fn, init=init, array=array, type=out)

    def _first_state(self, fn: Lam, init: Term, elem: Type, env: Env) -> Type | None:
        """The type of a literal that a fold begins with: that of the elements, if that will do."""
        found = next(leaves(elem), None)
        if found is None or not found.is_integer:
            return found
        # The states of a fold over whole numbers may be real ones.
        probe = Typer((), Reporter(self.report.sources))
        probe.found, probe._done = self.found, self._done
        try:
            state = _type(probe.term(init, env, found))
            body = probe._function(fn, (state, elem), env, state, "").body
        except Bad:
            return F64
        return found if joined(state, _type(body)) is not None else F64

    def _prim(self, e: Prim, name: str, found: Sequence[Term], env: Env, want: Type | None) -> Term:
        if name in ("shift1L", "shift1R"):
            (a,), t = self.arrays(found, env, name)
            n = t.length
            return replace(e, args=(a,), type=Arr(t.elem, None if n is None else n.plus(-1)))
        if name == "dup":
            a = self.term(found[0], env, want)
            return replace(e, args=(a,), type=Product((_type(a), _type(a))))
        count = self.term(found[0], env, I64)
        self.fits(I64, count)
        if name == "iota":
            return replace(e, args=(count,), type=Arr(I64, size_of(count)))
        a = self.term(found[1], env, want.elem if isinstance(want, Arr) else None)
        return replace(e, args=(count, a), type=Arr(_type(a), size_of(count)))

    def _element(
        self, of: Term, found: Sequence[Term], env: Env
    ) -> tuple[Term, tuple[Term, ...], Type]:
        of = self.term(of, env)
        items = tuple(self.term(i, env, I64) for i in found)
        t = _type(of)
        for i in items:
            if not isinstance(t, Arr):
                rank = len(dims(_type(of)))
                many = f"{len(items)} ind{'ices' if len(items) > 1 else 'ex'}"
                what = f"{many} of {_a(of.type)}, which has {rank} dimension{'s' * (rank != 1)}"
                hint = "parts of a tuple are taken by `fst p`, `snd p`, `proj 3 p`"
                tuple_ = isinstance(of.type, Product)
                self.wrong("A042", what, of, hint=hint if tuple_ else "only arrays have elements")
            if elem_type(_type(i)) != I64:
                self.wrong("A040", f"an index is an i64, not {_a(i.type)}", i)
            t = t.elem
        return of, items, t


def is_literal(e: Term) -> bool:
    """Whether a term takes the type of its neighbours: a literal, and functions of such."""
    if isinstance(e, Num):
        return not e.elem
    return isinstance(e, Op) and bool(e.args) and all(map(is_literal, e.args))


def _literal_info(e: Term) -> Arg:
    return Arg(None, 0, e.value if isinstance(e, Num) else 0)


def _default(value: Any) -> Scalar:
    """The type of a literal that nothing decides: whole numbers are real ones, too."""
    found = default_type(value)
    return F64 if found == I64 else found


def _widest(args: Sequence[Term]) -> Scalar | None:
    found = {_default(a.value) for a in args if isinstance(a, Num)}
    return C128 if C128 in found else F64 if F64 in found else None


def _single(t: Type | None) -> Scalar | None:
    """The type of numbers that a wanted value is made of, if it is one."""
    found = set() if t is None else set(leaves(t))
    return next(iter(found)) if len(found) == 1 else None


def _type(e: Term) -> Type:
    assert e.type is not None
    return e.type


def _a(t: Type | None) -> str:
    return f"a value of type {t}"


def joined(a: Type, b: Type) -> Type | None:
    """The common type of two types that differ at most in known lengths."""
    match a, b:
        case Arr(x, m), Arr(y, n):
            elem = joined(x, y)
            fine, length = together(m, n)
            return Arr(elem, length) if elem is not None and fine else None
        case Product(xs), Product(ys) if len(xs) == len(ys):
            items = [joined(x, y) for x, y in zip(xs, ys, strict=True)]
            if any(i is None for i in items):
                return None
            return Product(tuple(i for i in items if i is not None))
    return a if a == b else None
