"""Random reversible functions in Python, each with a second text that plain Python runs.

The second text says in ordinary Python what each line means: places passed by reference are given
back, blocks that are undone leave nothing, arrays are exchanged by copies.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

REALS, WHOLES, ARRAYS = ("x", "y", "z"), ("k", "m"), ("v", "w")
LENGTH = 4


class Writer:
    """Writes both texts of one function, line by line."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.plain: list[str] = []
        self.depth = 1
        self.frozen: set[str] = set()
        """Names whose values may not change here."""
        self.more: list[str] = []
        """Ancillas of real numbers that are live."""
        self.counters: list[str] = []
        self.short: list[str] = []
        """Names for expressions."""
        self.made = 0

    def line(self, text: str, plain: str | None = None) -> None:
        pad = "    " * self.depth
        self.lines.append(pad + text)
        self.plain += [pad + p for p in (text if plain is None else plain).split("\n")]

    @contextmanager
    def inside(self, *frozen: str) -> Iterator[None]:
        before, short = set(self.frozen), list(self.short)
        self.frozen |= set(frozen)
        self.depth += 1
        yield
        self.depth -= 1
        self.frozen, self.short = before, short

    def name(self, stem: str) -> str:
        self.made += 1
        return f"{stem}{self.made}"

    # Expressions.

    def real(self, without: str, depth: int = 2) -> str:
        """A real expression that does not read a name."""
        pick = self.rng.random()
        names = [n for n in (*REALS, *self.more, *self.short) if n != without]
        if depth == 0 or pick < 0.25:
            return self.rng.choice([*names, "0.5", "2", "RATE"])
        if pick < 0.4:
            arrays = [a for a in ARRAYS if a != without]
            return f"{self.rng.choice(arrays)}[{self.index()}]" if arrays else "1.5"
        if pick < 0.5:
            return f"{self.rng.choice(['np.sin', 'math.tanh', 'abs'])}({self.real(without, 0)})"
        if pick < 0.6:
            cond = self.condition(without)
            return f"({self.real(without, 0)} if {cond} else {self.real(without, 0)})"
        if pick < 0.7:
            return f"({self.whole(without, 1)} / {self.rng.choice([2, 4])})"
        sign = self.rng.choice(["+", "-", "*", "*"])
        a = self.real(without, depth - 1)
        b = self.whole(without, 0) if self.rng.random() < 0.3 else self.real(without, depth - 1)
        return f"({a} {sign} {b})"

    def whole(self, without: str, depth: int = 1) -> str:
        names = [n for n in (*WHOLES, *self.counters) if n != without]
        if depth == 0 or self.rng.random() < 0.4:
            return self.rng.choice([*names, "3", "len(v)", "SHAPE[1]"])
        sign = self.rng.choice(["+", "-", "//", "%"])
        b = self.rng.choice(["3", "5"]) if sign in "//%" else self.whole(without, depth - 1)
        return f"({self.whole(without, depth - 1)} {sign} {b})"

    def condition(self, without: str) -> str:
        low = self.rng.choice(["0", "-1.5"])
        return self.rng.choice(
            [
                f"{self.whole(without, 0)} % 2 == 1",
                f"{low} < {self.whole(without, 0)} <= 3",
                f"({self.whole(without, 0)} > 1 or {self.whole(without, 0)} < 0)",
            ]
        )

    def index(self) -> str:
        return self.rng.choice(["0", "1", "-1", "-2", "len(v) - 2", *self.counters])

    # Statements.

    def statements(self, n: int) -> None:
        for _ in range(n):
            kinds = [self.update, self.update, self.element, self.exchange, self.negate]
            kinds += [self.held, self.declared, self.block, self.call, self.named, self.slice]
            kinds += [self.branch, self.loop] if self.depth < 4 else []
            self.rng.choice(kinds)()

    def free(self, names: tuple[str, ...]) -> str | None:
        usable = [n for n in names if n not in self.frozen]
        return self.rng.choice(usable) if usable else None

    def update(self) -> None:
        if self.rng.random() < 0.7:
            target = self.free((*REALS, *self.more[-1:]))
            if target and target not in self.more:
                sign = self.rng.choice(["+=", "-="])
                self.line(f"{target} {sign} {self.real(target)}")
        elif target := self.free(WHOLES):
            sign = self.rng.choice(["+=", "-=", "^="])
            self.line(f"{target} {sign} {self.whole(target)}")

    def element(self) -> None:
        if target := self.free(ARRAYS):
            self.line(f"{target}[{self.index()}] += {self.real(target)}")

    def slice(self) -> None:
        if target := self.free(ARRAYS):
            part = self.rng.choice(["", "1:", ":-1", "1:3", "::2", "::-1"])
            other = "w" if target == "v" else "v"
            value = self.rng.choice([self.real(target, 1), f"{other}[{part}] * 2"])
            self.line(f"{target}[{part or ':'}] += {value.replace('[]', '[:]')}")

    def exchange(self) -> None:
        a, b = self.rng.sample(REALS, 2)
        if self.rng.random() < 0.3 and not {"v", "w"} & self.frozen:
            self.line("v, w = w, v", "v[:], w[:] = w.copy(), v.copy()")
        elif not {a, b} & self.frozen:
            self.line(f"{a}, {b} = {b}, {a}")

    def negate(self) -> None:
        if target := self.free(REALS):
            self.line(f"{target} = -{target}")

    def held(self) -> None:
        t = self.name("t")
        value = self.real("")
        self.line(f"with rvm.ancilla({value}) as {t}:", f"if True:\n    {t} = {value}")
        # What the value reads stays as it is, so that the ancilla has it again at the end.
        with self.inside(*self.names_in(value)):
            self.more.append(t)
            self.statements(self.rng.randint(1, 2))
            self.line("pass")
            self.more.pop()

    def names_in(self, value: str) -> set[str]:
        """Which of the places an expression reads, for all that its letters tell."""
        return {n for n in (*REALS, *WHOLES, *ARRAYS) if n in value}

    def declared(self) -> None:
        t, value = self.name("t"), self.real("")
        target = self.free(REALS)
        if target and target not in self.names_in(value):
            self.line(f"{t}: f64 = {value}", f"{t} = {value}")
            self.line(f"{target} += {t} * 2")
            self.line(f"del {t}")

    def block(self) -> None:
        r, t, value = self.name("r"), self.name("t"), self.real("")
        target = self.free(REALS)
        if target and target not in self.names_in(value):
            self.line(f"with rvm.compute() as {r}:", "if True:")
            self.line(f"    {t}: f64 = {value}", f"    {t} = {value}")
            self.line(f"    {t} += RATE")
            self.line(f"{target} += {t}")
            self.line(f"{r}.undo()", "pass")

    def call(self) -> None:
        a, b = self.rng.sample(REALS, 2)
        if a not in self.frozen and b not in self.frozen:
            undo = self.rng.random() < 0.3
            f, plain = ("(~helper)", "helper_back") if undo else ("helper", "helper")
            by = self.rng.choice(["", ", by=3.0", f", {self.real(a, 0)}"])
            if by and b in by:
                by = ", by=0.25"
            self.line(f"{f}({a}, {b}{by})", f"{a}, {b} = plain_{plain}({a}, {b}{by})")

    def named(self) -> None:
        n = self.name("n")
        self.line(f"{n} = {self.rng.choice(['len(v) / 4', 'RATE * 2', 'len(w) * RATE', '7 // 2'])}")
        self.short.append(n)

    def branch(self) -> None:
        cond = self.condition("")
        self.line(f"if {cond}:")
        with self.inside(*self.names_in(cond)):
            self.statements(self.rng.randint(1, 2))
            self.line("pass")
        if self.rng.random() < 0.5:
            self.line("else:")
            with self.inside(*self.names_in(cond)):
                self.statements(1)
                self.line("pass")

    def loop(self) -> None:
        i = self.name("i")
        ends = self.rng.choice(["len(v)", "1, 4", "3, -1, -1", "0, 4, 2", "2, 2"])
        self.line(f"for {i} in range({ends}):")
        with self.inside():
            self.counters.append(i)
            self.statements(self.rng.randint(1, 2))
            self.line("pass")
            self.counters.pop()


def written(seed: int) -> tuple[str, str]:
    """A reversible function `f`, and `plain_f`, which gives its places back."""
    writer = Writer(seed)
    writer.statements(writer.rng.randint(3, 7))
    typed = seed % 2
    real, whole = (": f64", ": i64") if typed else ("", "")
    array = ': Array[f64, "n"]' if typed else ""
    params = [
        *(r + real for r in REALS),
        *(k + whole for k in WHOLES),
        *(a + array for a in ARRAYS),
    ]
    head = f"@rvm.reversible\ndef f({', '.join(params)}):\n    pass\n"
    names = ", ".join((*REALS, *WHOLES, *ARRAYS))
    plain = f"def plain_f({names}):\n" + "\n".join([*writer.plain, f"    return {names}"])
    return head + "\n".join(writer.lines) + "\n", plain + "\n"
