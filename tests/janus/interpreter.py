"""A plain interpreter of Janus, to compare with: it executes a text statement by statement.

It knows numbers of one width, both dialects, and no types but numbers, arrays and stacks; running
back is inverting statements one by one.
"""

from __future__ import annotations

import re
from typing import Any

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|([A-Za-z][\w']*|\d+|\"[^\"]*\"|<=>|\*\*|\*/|<<|>>|[-+^]=|[<>!]=|&&|\|\||\S)",
    re.S,
)
LEVELS = (
    ("&&", "||"), ("&", "|", "^"), ("<=", "<", ">=", ">", "=", "!="), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"), ("**", "*/"),
)  # fmt: skip
OPPOSITE = {"+=": "-=", "-=": "+=", "^=": "^="}


class Failed(Exception):
    """An assertion that does not hold, or a value that is not as it must be."""


class Janus:
    """A program; `run` gives its variables by name, numbers, lists (of lists), stacks top first."""

    def __init__(self, text: str, bits: int = 32) -> None:
        self.words = [t for t in TOKEN.findall(text) if t] + ["$"]
        self.i, self.bits, self.printed = 0, bits, list[str]()
        self.procedures: dict[str, tuple[list[tuple[str, int]], list[Any]]] = {}
        self.start: dict[str, Any] = {}
        self.first: list[Any] = []
        k = self.words.index("procedure")
        self.classic = self.words[k + 2] != "("
        while self.classic and self.word() != "procedure":
            name = self.take()
            self.start[name] = 0
            if self.word() == "[":
                self.take()
                self.start[name] = [0] * int(self.take())
                self.take()
        while self.word() != "$":
            self.procedure()

    # Reading.

    def word(self) -> str:
        return self.words[self.i]

    def take(self, *wanted: str) -> str:
        word = self.words[self.i]
        assert not wanted or word in wanted, (word, wanted)
        self.i += 1
        return word

    def accept(self, word: str) -> bool:
        found = self.word() == word
        self.i += found
        return found

    def procedure(self) -> None:
        self.take("procedure")
        name, params = self.take(), list[tuple[str, int]]()
        if not self.classic:
            self.take("(")
            while not self.accept(")"):
                self.take()
                param, rank = self.take(), 0
                while self.accept("["):
                    rank += 1
                    while not self.accept("]"):
                        self.take()
                params.append((param, rank))
                self.accept(",")
            if name == "main":
                self.globals()
        body = self.first if name == "main" else []
        while self.word() not in ("procedure", "$"):
            body.append(self.statement())
        self.procedures[name] = params, body

    def globals(self) -> None:
        while self.word() in ("int", "stack"):
            kind, name, sizes = self.take(), self.take(), list[int]()
            while self.accept("["):
                sizes.append(int(self.take()))
                self.take("]")
            self.start[name] = [] if kind == "stack" else self.zeros(sizes)
            if self.accept("="):
                self.first += self.filled(("var", name, []), self.initial())

    def zeros(self, sizes: list[int]) -> Any:
        return [self.zeros(sizes[1:]) for _ in range(sizes[0])] if sizes else 0

    def initial(self) -> Any:
        if not self.accept("{"):
            return self.expression()
        rows = [self.initial()]
        while self.accept(","):
            rows.append(self.initial())
        self.take("}")
        return rows

    def filled(self, place: Any, rows: Any) -> list[Any]:
        if not isinstance(rows, list):
            return [("+=", place, rows)]
        out: list[Any] = []
        for k, row in enumerate(rows):
            out += self.filled(("var", place[1], [*place[2], ("num", k)]), row)
        return out

    def block(self, *closers: str) -> list[Any]:
        out = []
        while self.word() not in closers:
            out.append(self.statement())
        return out

    def statement(self) -> Any:
        word = self.word()
        if word == "if":
            self.take()
            test = self.expression()
            self.take("then")
            yes = self.block("else", "fi")
            no = self.block("fi") if self.accept("else") else []
            self.take("fi")
            return ("if", test, yes, no, self.expression())
        if word == "from":
            self.take()
            test = self.expression()
            body = self.block("loop", "until") if self.accept("do") else []
            again = self.block("until") if self.accept("loop") else []
            self.take("until")
            return ("from", test, body, again, self.expression())
        if word in ("call", "uncall"):
            self.take()
            name, args = self.take(), list[Any]()
            if not self.classic:
                self.take("(")
                while not self.accept(")"):
                    args.append(self.expression())
                    self.accept(",")
            return (word, name, args)
        if word in ("push", "pop"):
            self.take()
            self.take("(")
            place = self.expression()
            self.take(",")
            stack = self.take()
            self.take(")")
            return (word, place, stack)
        if word == "local":
            self.take()
            begins = [self.declaration()]
            while self.accept(","):
                begins.append(self.declaration())
            body = self.block("delocal")
            self.take("delocal")
            ends = [self.declaration()]
            while self.accept(","):
                ends.append(self.declaration())
            for begin, end in reversed(list(zip(begins, ends, strict=True))):
                body = [("local", begin, body, end)]
            return body[0]
        if word == "iterate":
            self.take()
            self.take("int")
            name = self.take()
            self.take("=")
            first = self.expression()
            step = self.expression() if self.accept("by") else ("num", 1)
            self.take("to")
            last = self.expression()
            body = self.block("end")
            self.take("end")
            place, behind = ("var", name, []), ("+", last, step)
            loop = (
                "from",
                ("=", place, first),
                [],
                [*body, ("+=", place, step)],
                ("=", place, behind),
            )
            return ("local", (name, first), [loop], (name, behind))
        if word == "skip":
            self.take()
            return ("skip",)
        if word == "write":
            self.take()
            return ("write", self.place())
        if word in ("show", "print", "printf"):
            self.take()
            while self.take() != ")":
                pass
            return ("skip",)
        place = self.place()
        sign = self.take("+=", "-=", "^=", "<=>")
        return (sign, place, self.place() if sign == "<=>" else self.expression())

    def declaration(self) -> tuple[str, Any]:
        kind, name = self.take("int", "stack"), self.take()
        self.take("=")
        if kind == "stack":
            self.take("nil")
            return name, None
        return name, self.expression()

    def place(self) -> Any:
        name, index = self.take(), list[Any]()
        while self.accept("["):
            index.append(self.expression())
            self.take("]")
        return ("var", name, index)

    def expression(self, level: int = 0) -> Any:
        if level == len(LEVELS):
            return self.term()
        left = self.expression(level + 1)
        while self.word() in LEVELS[level]:
            left = (self.take(), left, self.expression(level + 1))
        return left

    def term(self) -> Any:
        word = self.word()
        if word in ("!", "~"):
            self.take()
            return (word, self.term())
        if self.accept("("):
            found = self.expression()
            self.take(")")
            return found
        if word == "-":
            self.take()
            return ("num", -int(self.take()))
        if word.isdigit():
            return ("num", int(self.take()))
        if word in ("empty", "top", "size"):
            self.take()
            self.take("(")
            name = self.take()
            self.take(")")
            return (word, name)
        return self.place()

    # Running.

    def run(self, name: str = "main", back: bool = False, **given: Any) -> dict[str, Any]:
        self.store = {**self.start, **given}
        body = self.procedures[name][1]
        self.execute(back_of(body) if back else body, self.store)
        return self.store

    def wrap(self, v: int) -> int:
        half = 1 << self.bits - 1
        return (v + half) % (2 * half) - half

    def value(self, e: Any, at: dict[str, Any]) -> Any:
        match e:
            case ("num", v):
                return self.wrap(v)
            case ("var", name, index):
                found = at[name]
                if type(found) is Cell:
                    found = found.get()
                for k in index:
                    found = found[self.inside(self.value(k, at), found)]
                return found
            case ("empty", name):
                return not at[name]
            case ("size", name):
                return len(at[name])
            case ("top", name):
                return at[name][0]
            case ("!", a):
                return not self.value(a, at)
            case ("~", a):
                return ~self.value(a, at)
            case ("&&", a, b):
                return bool(self.value(a, at) and self.value(b, at))
            case ("||", a, b):
                return bool(self.value(a, at) or self.value(b, at))
            case (sign, a, b):
                return self.applied(sign, self.value(a, at), self.value(b, at))

    def inside(self, k: int, found: list[Any]) -> int:
        if not 0 <= k < len(found):
            raise Failed(f"index {k}")
        return k

    def applied(self, sign: str, a: Any, b: Any) -> Any:
        if sign in ("/", "%") and not b:
            raise Failed("division by zero")
        found = {
            "+": lambda: a + b,
            "-": lambda: a - b,
            "*": lambda: a * b,
            "/": lambda: a // b,
            "%": lambda: a % b,
            "**": lambda: a**b,
            "*/": lambda: a * b >> 32,
            "&": lambda: a & b,
            "|": lambda: a | b,
            "^": lambda: a ^ b,
            "<<": lambda: a << b,
            ">>": lambda: a >> b,
            "<": lambda: a < b,
            "<=": lambda: a <= b,
            ">": lambda: a > b,
            ">=": lambda: a >= b,
            "=": lambda: a == b,
            "!=": lambda: a != b,
        }[sign]()
        return found if isinstance(found, bool) else self.wrap(found)

    def assign(self, place: Any, v: Any, at: dict[str, Any]) -> None:
        _, name, index = place
        if not index:
            if type(at[name]) is Cell:
                at[name].set(v)
            else:
                at[name] = v
            return
        found = at[name].get() if type(at[name]) is Cell else at[name]
        for k in index[:-1]:
            found = found[self.value(k, at)]
        found[self.inside(self.value(index[-1], at), found)] = v

    def execute(self, body: list[Any], at: dict[str, Any]) -> None:
        for s in body:
            self.one(s, at)

    def test(self, e: Any, at: dict[str, Any], wanted: bool) -> None:
        if bool(self.value(e, at)) != wanted:
            raise Failed(f"{e} should be {wanted}")

    def one(self, s: Any, at: dict[str, Any]) -> None:
        match s:
            case ("+=" | "-=" | "^=" as sign, place, e):
                v, old = self.value(e, at), self.value(place, at)
                self.assign(place, self.applied(sign[0], old, v), at)
            case ("<=>", a, b):
                x, y = self.value(a, at), self.value(b, at)
                self.assign(a, y, at)
                self.assign(b, x, at)
            case ("if", test, yes, no, post):
                taken = bool(self.value(test, at))
                self.execute(yes if taken else no, at)
                self.test(post, at, taken)
            case ("from", test, body, again, until):
                self.test(test, at, True)
                self.execute(body, at)
                while not self.value(until, at):
                    self.execute(again, at)
                    self.test(test, at, False)
                    self.execute(body, at)
            case ("push", place, stack):
                at[stack].insert(0, self.value(place, at))
                if place[0] == "var":
                    self.assign(place, 0, at)
            case ("pop", place, stack):
                if not at[stack] or (place[0] == "var" and self.value(place, at)):
                    raise Failed("pop")
                top = at[stack].pop(0)
                if place[0] == "var":
                    self.assign(place, top, at)
                elif top != self.value(place, at):
                    raise Failed("another value")
            case ("local", (name, e), body, (last, f)):
                assert name == last and name not in at
                at[name] = [] if e is None else self.value(e, at)
                self.execute(body, at)
                if at[name] != ([] if f is None else self.value(f, at)):
                    raise Failed(f"delocal {name}")
                del at[name]
            case ("call" | "uncall" as way, name, args):
                params, body = self.procedures[name]
                inner = at if self.classic else self.passed(params, args, at)
                self.execute(back_of(body) if way == "uncall" else body, inner)

    def passed(self, params: list[Any], args: list[Any], at: dict[str, Any]) -> dict[str, Any]:
        inner: dict[str, Any] = {}
        for (param, _), arg in zip(params, args, strict=True):
            held = self.value(arg, at)
            inner[param] = held if isinstance(held, list) else Cell(self, arg, at)
        return inner


class Cell:
    """A number that a procedure was passed by reference; of an expression, what it gives."""

    def __init__(self, janus: Janus, arg: Any, at: dict[str, Any]) -> None:
        self.janus, self.arg, self.at = janus, arg, at

    def get(self) -> Any:
        return self.janus.value(self.arg, self.at)

    def set(self, v: Any) -> None:
        self.janus.assign(self.arg, v, self.at)


def back_of(body: list[Any]) -> list[Any]:
    return [inverse(s) for s in reversed(body)]


def inverse(s: Any) -> Any:
    match s:
        case ("+=" | "-=" | "^=" as sign, place, e):
            return (OPPOSITE[sign], place, e)
        case ("if", test, yes, no, post):
            return ("if", post, back_of(yes), back_of(no), test)
        case ("from", test, body, again, until):
            return ("from", until, back_of(body), back_of(again), test)
        case ("push", place, stack):
            return ("pop", place, stack)
        case ("pop", place, stack):
            return ("push", place, stack)
        case ("local", begin, body, end):
            return ("local", end, back_of(body), begin)
        case ("call", name, args):
            return ("uncall", name, args)
        case ("uncall", name, args):
            return ("call", name, args)
    return s
