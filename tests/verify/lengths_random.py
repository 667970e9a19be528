"""Random programs that make an array again with other lengths, and what is true of their runs.

An array is made, a number is computed from it, the array may be removed and made again, and then
the number is uncomputed with the same words.  Each statement has a text and is performed on plain
Python numbers, so that whether a `free` finds its value is known without any engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

State = dict[str, Any]
Value = Callable[[State], int]


class Refused(Exception):
    """The code of an error: R001 for a freed register that does not hold its value, R012 for one of
    other lengths, R008 for an exchange of arrays of different lengths."""


@dataclass(frozen=True)
class Term:
    """A value: its text, and how it is computed; `T` in texts is the type of the numbers."""

    text: str
    of: Value


def number(c: int) -> Term:
    return Term(str(c), lambda s: c)


def register(name: str) -> Term:
    return Term(name, lambda s: s[name])


def length(array: str) -> Term:
    return Term(f"len({array})", lambda s: len(s[array]))


def plus(a: Term, b: Term) -> Term:
    return Term(f"({a.text} + {b.text})", lambda s: a.of(s) + b.of(s))


def converted(a: Term) -> Term:
    return Term(f"T({a.text})", a.of)


class Stmt:
    """A statement; `undo` is what undoes it."""

    undo: Stmt

    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self, s: State) -> None:
        raise NotImplementedError


class Add(Stmt):
    def __init__(self, to: str, value: Term, sign: int = 1, undo: Stmt | None = None) -> None:
        self.to, self.value, self.sign = to, value, sign
        self.undo = undo or Add(to, value, -sign, self)

    def lines(self) -> list[str]:
        return [f"{'add' if self.sign > 0 else 'sub'} {self.to}, {self.value.text}"]

    def run(self, s: State) -> None:
        old, more = s[self.to], self.sign * self.value.of(s)
        s[self.to] = [v + more for v in old] if isinstance(old, list) else old + more


class Make(Stmt):
    def __init__(self, name: str, dim: Term | None, value: Term, undo: Stmt | None = None) -> None:
        self.name, self.dim, self.value = name, dim, value
        self.undo = undo or Gone(name, dim, value, self)

    def made(self, s: State) -> Any:
        v = self.value.of(s)
        return v if self.dim is None else [v] * self.dim.of(s)

    def lines(self) -> list[str]:
        t = "T" if self.dim is None else f"T[{self.dim.text}]"
        return [f"alloc {self.name}: {t} = {self.value.text}"]

    def run(self, s: State) -> None:
        s[self.name] = self.made(s)


class Gone(Make):
    def lines(self) -> list[str]:
        return [f"free {self.name} = {self.value.text}"]

    def run(self, s: State) -> None:
        held, made = s.pop(self.name), self.made(s)
        if isinstance(held, list) and len(held) != len(made):
            raise Refused("R012")
        if held != made:
            raise Refused("R001")


class Swap(Stmt):
    def __init__(self, a: str, b: str) -> None:
        self.a, self.b, self.undo = a, b, self

    def lines(self) -> list[str]:
        return [f"swap {self.a}, {self.b}"]

    def run(self, s: State) -> None:
        a, b = s[self.a], s[self.b]
        if isinstance(a, list) and len(a) != len(b):
            raise Refused("R008")
        s[self.a], s[self.b] = b, a


class Loop(Stmt):
    """A body for i from 0 to below a length, or back; around another loop, for j."""

    def __init__(
        self, over: Term, body: Sequence[Stmt], up: bool = True, undo: Stmt | None = None
    ) -> None:
        self.over, self.body, self.up = over, body, up
        self.variable = "j" if over is TWO else "i"
        self.undo = undo or Loop(over, undone(body), not up, self)

    def lines(self) -> list[str]:
        a, b, to = "0", f"{self.over.text} - 1", "to"
        if not self.up:
            a, b, to = b, a, "downto"
        return [f"for {self.variable} = {a} {to} {b}", *written(self.body, "    "), "end"]

    def run(self, s: State) -> None:
        count = range(self.over.of(s))
        for i in count if self.up else reversed(count):
            s[self.variable] = i
            performed(self.body, s)


class If(Stmt):
    """One of two blocks, which change nothing on which the condition depends."""

    def __init__(
        self,
        value: Term,
        above: int,
        yes: Sequence[Stmt],
        no: Sequence[Stmt],
        undo: Stmt | None = None,
    ) -> None:
        self.value, self.above, self.yes, self.no = value, above, yes, no
        self.undo = undo or If(value, above, undone(yes), undone(no), self)

    def lines(self) -> list[str]:
        head = f"if {self.value.text} > {self.above}"
        return [head, *written(self.yes, "    "), "else", *written(self.no, "    "), "end"]

    def run(self, s: State) -> None:
        performed(self.yes if self.value.of(s) > self.above else self.no, s)


class Call(Stmt):
    """A call of a function of one number and an array or a whole number."""

    def __init__(
        self, name: str, to: str, of: str, body: Sequence[Stmt], undo: Stmt | None = None
    ) -> None:
        self.name, self.to, self.of, self.body = name, to, of, body
        self.op = "call" if undo is None else "uncall"
        self.undo = undo or Call(name, to, of, undone(body), self)

    def lines(self) -> list[str]:
        return [f"{self.op} {self.name}({self.to}, {self.of})"]

    def run(self, s: State) -> None:
        inner = {"q": s[self.to], "b": s[self.of], "k": s[self.of]}
        performed(self.body, inner)
        s[self.to] = inner["q"]


def undone(code: Sequence[Stmt]) -> list[Stmt]:
    return [stmt.undo for stmt in reversed(code)]


def written(code: Sequence[Stmt], indent: str) -> list[str]:
    return [indent + line for stmt in code for line in stmt.lines()]


def performed(code: Sequence[Stmt], s: State) -> None:
    for stmt in code:
        stmt.run(s)


ZERO, ONE, TWO = map(number, (0, 1, 2))


class Program:
    """A random program: `text` for a type of numbers, and `expected`."""

    def __init__(self, seed: int) -> None:
        r = self.rng = random.Random(seed)
        self.by_array = [self._use("q", "b") for _ in range(r.randrange(1, 3))]
        made = Make("b", plus(register("k"), number(r.randrange(2))), ONE)
        self.by_length = [made, self._use("q", "b"), made.undo]
        self.main = self._main()

    def text(self, t: str) -> str:
        """Its text for numbers of a type."""
        lines = [
            "func g(q: T, b: T[d])",
            *written(self.by_array, "    "),
            "func h(q: T, k: i64)",
            *written(self.by_length, "    "),
            "func f(y: T, z: T, a: T[d], n: i64, m: i64)",
            *written(self.main, "    "),
        ]
        return "\n".join(lines).replace("T", t) + "\n"

    def expected(self, inputs: State) -> State | str:
        """The results, or the code of the error that ends the run."""
        s = {k: list(v) if isinstance(v, list) else v for k, v in inputs.items()}
        try:
            performed(self.main, s)
        except Refused as refused:
            return str(refused)
        return {k: s[k] for k in inputs}

    def _use(self, to: str, array: str) -> Stmt:
        """A statement that adds what depends on an array, or on its length alone."""
        r, n, i = self.rng, length(array), register("i")
        element = Term(f"{array}[i]", lambda s: s[array][s["i"]])
        total = Term(f"sum({array})", lambda s: sum(s[array]))
        one, two = Add(to, ONE), Add(to, TWO)
        return r.choice(
            [
                Add(to, converted(n), r.choice((1, -1))),
                Add(to, total),
                Loop(n, [r.choice((one, two))], r.random() < 0.7),
                Loop(n, [Add(to, plus(element, ONE))]),
                If(n, r.randrange(1, 4), [one], [two]),
                Loop(n, [If(i, r.randrange(2), [one], [two])]),
            ]
        )

    def _uses(self, to: str) -> list[Stmt]:
        """The same, directly or through calls or a second array."""
        kind = self.rng.randrange(6)
        if kind == 0:
            return [Call("g", to, "u", self.by_array)]
        if kind == 1:
            return [Call("h", to, "n", self.by_length)]
        if kind == 2:
            made = Make("v", length("u"), self.rng.choice((ZERO, ONE)))
            return [made, self._use(to, "v"), made.undo]
        return [self._use(to, "u")]

    def _main(self) -> list[Stmt]:
        r, n, m = self.rng, register("n"), register("m")
        dim = r.choice([n, plus(n, ONE), m, plus(n, m), length("a")])
        more, other = Add("n", ONE), Add("m", ONE)
        changes: list[Stmt] = r.choice(
            [
                [],
                [more],
                [other],
                [more, other.undo],
                [Swap("n", "m")],
                [more, more.undo],
                [Add("n", length("a"))],
            ]
        )
        made = Make("u", dim, r.choice((ZERO, ONE, TWO, converted(n))))
        filled: list[Stmt] = [Add("u", ONE)] if r.random() < 0.4 else []
        t = Make("t", None, r.choice((ZERO, TWO, converted(length("u")))))
        compute = [t, *(s for _ in range(r.randrange(3)) for s in self._uses("t"))]
        between = [Add("y", register("t"))] if r.random() < 0.7 else self._uses("y")
        again = [*undone(filled), made.undo, *changes, made, *filled]
        body = r.choice([[*again, *between], [*between, *again], [*changes, *between]])
        first: list[Stmt] = [made]
        if r.random() < 0.25:
            first = [Make("v2", dim, ZERO), made]
            body = [Swap("u", "v2"), *body, Swap("u", "v2")]
        whole = [*first, *filled, *compute, *body, *undone([*first, *filled, *compute])]
        if r.random() < 0.15:
            whole = [Loop(TWO, whole)]
        return [*whole, *undone(changes)] if r.random() < 0.3 else whole
