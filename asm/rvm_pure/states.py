"""States of folds and loops, which one place holds, a schedule plays, or an array stores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

from rvm_asm.names import quoted
from rvm_asm.nodes import Declared, Lit, Node, Operator, Word
from rvm_asm.stats import Func, Iterate, Stat

from rvm.types import I64, Scalar
from rvm_pure.definition import Definition
from rvm_pure.elements import elem
from rvm_pure.expressions import Env, Hard, Value, bound
from rvm_pure.faults import StageFault
from rvm_pure.inplace import plan
from rvm_pure.keeping import ALL, Keep, bytes_of, bytes_text
from rvm_pure.printer import term as term_text
from rvm_pure.syntax import Syntax, at, instruction, nought
from rvm_pure.terms import (
    Fold,
    Index,
    Lam,
    Let,
    Loop,
    Num,
    Op,
    Prim,
    Term,
    Var,
    free,
    substitute,
    walk,
)
from rvm_pure.types import Arr, Type, names_of, parts

Then = Callable[[Term, Env], list[Stat]]


class States(Syntax):
    """Lowers folds and loops; how a value goes to a place is said by a class on top of it."""

    def __init__(self, d: Definition, keep: Keep = ALL) -> None:
        super().__init__(d)
        self.keep = keep
        self.notes: dict[str, tuple[str, str]] = {}
        """The outcome for each let and state by name: a description, its type and its bytes."""
        self.steps: list[Func] = []
        """The functions that schedules play."""

    @abstractmethod
    def add(self, place: Value, e: Term, env: Env, fresh: bool = False) -> list[Stat]:
        """Statements that add a term's value to a place; one that is `fresh` holds zeros."""

    @abstractmethod
    def first(self, part: Term, e: Term, env: Env, then: Then) -> list[Stat]:
        """Statements over a term, one part of which is computed before and uncomputed after."""

    def note(
        self, name: str, text: str, e: Term, count: str = "", more: Term | None = None
    ) -> None:
        """Say what became of a value, of which there are so many, or so many and one."""
        assert e.type is not None
        t = str(e.type)
        if more is not None:
            n = term_text(more)
            count = str(int(n) + 1) if n.isdigit() else f"({n} + 1)"
            t = f"{t}[{count.strip('()')}]" if isinstance(e.type, Scalar) else f"{count} of {t}"
        size = "" if count == "0" else f", {bytes_text(e.type, count)}"
        self.notes.setdefault(name, (text, f"{t}{size}"))

    def last_state(self, e: Fold, env: Env, result: Then) -> list[Stat]:
        """The last state of a fold, computed before its uses and uncomputed after.

        It is updated in place if it can be, else a schedule is played, or all states are kept.
        """
        i = self.names.new("i")
        var = Var(i, type=I64, start=e.start, end=e.end)
        try:
            element = elem(e.array, var, self.names)
            n = self.length(e.array)
            count = self.node(n, env)
        except Hard as hard:
            return self.first(
                hard.term, e, env, lambda r, inner: self.last_state(_as_fold(r), inner, result)
            )
        s = self.names.new("s")
        assert e.init.type is not None
        place = self.places(self.ref(s, e), e.init.type)
        last: Term = Var(s, type=e.init.type, start=e.start, end=e.end)
        made: list[Stat] = []
        update = self._update(place, e, element, {**env, i: self.ref(i, e)})
        if update is not None:
            self.make(s, e.init, env, made)
            self.note(s, "the state of a fold or loop, in place", e.init)
            made += self.add(place, e.init, env, True)
            made.append(self.repeat(i, nought(e), count, update, e))
        elif self.keep.has_budget:
            made = self._played(s, e, element, i, count, env)
        else:
            self.names.taken.discard(i)
            more = Op("+", (n, Num(1, type=I64)), type=I64)
            self.make(s, e.init, env, made, more)
            text = "the states of a fold or loop, stored and uncomputed"
            self.note(s, text, e.init, more=n)
            place = self.places(self.ref(s, e), Arr(e.init.type, None))
            made += self.states(place, replace(e, kind="scanl"), env)
            whole = replace(last, type=Arr(e.init.type, None))
            last = Index(whole, (n,), type=e.init.type, start=e.start, end=e.end)
        return [self.routine(made, result(last, {**env, s: place}), e)]

    def _update(self, place: Value, e: Fold, element: Term, env: Env) -> list[Stat] | None:
        """A step of a fold in place; None if its state goes on by what cannot be undone."""
        found = plan(e, element, self.names, self.keep.in_place)
        if found is None:
            return None
        parts, order, steps = found
        places = list(place) if isinstance(place, tuple) else [place]
        out: list[Stat] = []
        held = list(range(len(order)))
        for k, j in enumerate(order):
            now = held.index(j)
            if now != k:
                held[k], held[now] = held[now], held[k]
                out.append(instruction("swap", e, places[k], places[now]))
        inner = {**env, **{parts[j]: places[k] for k, j in enumerate(order)}}
        try:
            for k, s in steps:
                target = places[k]
                for item in s.at:
                    target = at(target, self.node(item, inner))
                operands = [] if s.by is None else [self.node(s.by, inner)]
                out.append(instruction(s.word, e, target, *operands))
        except Hard:
            return None
        return out

    def _played(self, s: str, e: Fold, element: Term, i: str, count: Node, env: Env) -> list[Stat]:
        """The last state of a fold in an ancilla, by a schedule that holds some of the states."""
        t = e.init.type
        assert t is not None
        pebbles = self._pebbles(e)
        made: list[Stat] = []
        first = self.names.new("first")
        self.make(first, e.init, env, made)
        self.make(s, e.init, env, made)
        start = self.ref(first, e)
        made += self.add(self.places(start, t), e.init, env, True)
        name = self.names.new(f"{self.d.name.text}.step")
        args = self._step(name, e, element, i, env)
        policy: list[tuple[Word, Node]] = [
            (Word("pebbles", e.start, e.end), Lit(pebbles, e.start, e.end))
        ]
        zero, one = (Lit(k, e.start, e.end) for k in (0, 1))
        end = Operator("-", [count, one], e.start, e.end)
        number, callee = Word(quoted(i), e.start, e.end), Word(quoted(name), e.start, e.end)
        made.append(
            Iterate(
                callee,
                [self.ref(s, e), start, self.ref(i, e), *args],
                number,
                zero,
                end,
                False,
                policy,
                e.start,
                e.end,
            )
        )
        text = f"the last state of a fold or loop, by a schedule with {pebbles} pebbles"
        self.note(s, text, e.init, str(pebbles + 2))
        return made

    def _pebbles(self, e: Fold) -> int:
        """The number of states allowed besides the first and the last."""
        t, memory = e.init.type, self.keep.memory
        assert t is not None
        if memory is None:
            return self.keep.pebbles or 0
        size = bytes_of(t)
        if set(size) != {()}:
            what = f"how many bytes a state of type {t} has is not known before the run"
            raise StageFault(e, what, "say how many states there may be: `pebbles`")
        if memory < 3 * size[()]:
            what = f"{memory:,} bytes are less than three states of {size[()]:,} bytes each"
            raise StageFault(e, what, "the first, the last and one between them are held")
        return memory // size[()] - 2

    def _step(self, name: str, e: Fold, element: Term, i: str, env: Env) -> list[Node]:
        """Make the function of a fold's step; what it takes besides states and number."""
        t = e.init.type
        assert t is not None
        y, x = self.names.new("next"), self.names.new("state")
        fn = substitute(e.fn, {}, self.names)
        body: Term = Let(fn.params[1], element, fn.body, type=t, start=e.start, end=e.end)
        body = Let(fn.params[0], Var(x, type=t), body, type=t, start=e.start, end=e.end)
        params = [Declared(p, self.type_of(t, ()), e.start, e.end) for p in (y, x)]
        params.append(Declared(quoted(i), self.type_of(I64, None), e.start, e.end))
        inner: dict[str, Value] = {i: self.ref(i, e), x: self.places(self.ref(x, e), t)}
        args: list[Node] = []

        def passed(v: Value, t: Type, wish: str) -> Value:
            """A parameter for a value, and one for each part of a tuple."""
            if isinstance(v, tuple):
                return tuple(passed(w, item, wish) for w, item in zip(v, parts(t), strict=True))
            own = self.names.new(wish)
            params.append(Declared(quoted(own), self.type_of(t, ()), e.start, e.end))
            args.append(v)
            return self.ref(own, e)

        # Lengths are numbers there, as types of loops' values may name them.
        named = {n for v in walk(body) if v.type is not None for n in names_of(v.type)}
        types = {v.name: v.type or I64 for v in walk(body) if isinstance(v, Var)}
        for v in {**free(body), **dict.fromkeys(sorted(named & self.fixed))}:
            if v not in inner:
                inner[v] = passed(env[v], types.get(v, I64), v)
        stats = self.add(self.places(self.ref(y, e), t), body, inner, True)
        word = Word(quoted(name), e.start, e.end)
        self.steps.append(Func(word, [], params, stats, e.start, e.end))
        return args

    def states(self, place: Value, e: Term, env: Env) -> list[Stat]:
        """The states of a fold, put into a fresh array with room for them."""
        assert isinstance(e, Fold)
        array = e.array
        i = self.names.new("i")
        var = Var(i, type=I64, start=e.start, end=e.end)
        down = e.kind == "scanr"
        n = self.length(array)
        one = Num(1, type=I64)
        where: Term = var
        if down:
            where = Op("-", (Op("-", (n, one), type=I64), var), type=I64)
        try:
            x = elem(array, where, self.names)
            self.node(n, env)
        except Hard as hard:
            return self.first(hard.term, e, env, lambda r, inner: self.states(place, r, inner))
        inner: dict[str, Value] = {**env, i: self.ref(i, e)}
        old = Op("+", (where, one), type=I64) if down else where
        new = where if down else Op("+", (where, one), type=I64)
        fn = substitute(e.fn, {}, self.names)
        before = at(place, self.node(old, inner))
        inner = bound(fn.params[0], before, inner)
        body = Let(fn.params[1], x, fn.body, type=fn.body.type, start=e.start, end=e.end)
        stats = self.add(at(place, self.node(new, inner)), body, inner, True)
        first = n if down else Num(0, type=I64)
        init = self.add(at(place, self.node(first, env)), e.init, env, True)
        return [*init, self.repeat(i, nought(e), self.node(n, env), stats, e)]

    def as_loop(self, e: Loop) -> Term:
        """A loop as a fold over the numbers of its steps, in a let if it counts down."""
        over = Prim("iota", (e.count,), type=Arr(I64, None), start=e.start, end=e.end)
        body, var = e.body, e.var
        if e.down:
            var = self.names.new(e.var)
            n = self.names.new("n")
            last = Op("-", (Var(n, type=I64), Num(1, type=I64)), type=I64)
            k = Op("-", (last, Var(var, type=I64)), type=I64)
            body = Let(e.var, k, e.body, type=e.body.type, start=e.start, end=e.end)
            over = replace(over, args=(Var(n, type=I64),))
        fn = Lam((e.pattern, var), body, start=e.start, end=e.end)
        fold: Term = Fold("foldl", fn, e.init, over, type=e.type, start=e.start, end=e.end)
        if e.down:
            fold = Let(n, e.count, fold, type=e.type, start=e.start, end=e.end)
        return fold


def _as_fold(e: Term) -> Fold:
    assert isinstance(e, Fold)
    return e
