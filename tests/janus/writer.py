"""Random Janus programs that run to their end."""

from __future__ import annotations

import random

SIGNS = ("+", "-", "*", "&", "|", "^", "<<", ">>", "/", "%")
COMPARISONS = ("<", "<=", ">", ">=", "=", "!=")


class Writer:
    """The lines of a program as it grows; procedures take `x0 … x3`, `a[4]` and a stack."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.locals = 0

    def program(self) -> str:
        procedures = ["alpha", "beta"]
        out = []
        for k, name in enumerate(procedures):
            out += [f"procedure {name}(int x0, int x1, int x2, int x3, int a[], stack s)"]
            out += self.block(1, procedures[:k], {f"x{k}" for k in range(4)})
        out += ["procedure main()"]
        out += [f"    int x{k} = {self.rng.randint(-9, 99)}" for k in range(4)]
        out += ["    int a[4] = {3, 1, 4}", "    stack s"]
        out += self.block(1, procedures, {f"x{k}" for k in range(4)})
        return "\n".join(out) + "\n"

    def block(self, depth: int, callees: list[str], free: set[str]) -> list[str]:
        """Statements that change only variables that are free, the array and the stack."""
        pad = "    " * depth
        out: list[str] = []
        for _ in range(self.rng.randint(1, 4)):
            out += [pad + line for line in self.statement(depth, callees, free)]
        return out

    def value(self, without: set[str], deep: int = 2) -> str:
        """An expression; literals alone, which wrap only at the end, stay small in it."""
        rng = self.rng
        names = sorted({f"x{k}" for k in range(4)} - without)
        if not deep or rng.random() < 0.3 or not names:
            if names and rng.random() < 0.6:
                return rng.choice(names)
            if "a" not in without and rng.random() < 0.3:
                return f"a[{rng.randrange(4)}]"
            return str(rng.randint(0, 40))
        a, b = rng.choice(names), self.value(without, deep - 1)
        if rng.random() < 0.5:
            a = f"({a} - {self.value(without, deep - 1)})"
        sign = rng.choice(SIGNS)
        if sign in ("/", "%"):
            b = str(rng.randint(1, 9))
        if sign in ("<<", ">>"):
            b = str(rng.randint(0, 33))
        return f"({a} {sign} {b})"

    def condition(self, without: set[str]) -> str:
        one = f"{self.value(without, 1)} {self.rng.choice(COMPARISONS)} {self.value(without, 1)}"
        roll = self.rng.random()
        if roll < 0.2:
            return f"!({one})"
        if roll < 0.4:
            return f"{one} {self.rng.choice(('&&', '||'))} {self.condition(without)}"
        return one

    def statement(self, depth: int, callees: list[str], free: set[str]) -> list[str]:
        rng = self.rng
        kind = rng.choice(
            ["update"] * 4 + ["element", "swap", "if", "loop", "local", "call", "stack", "iterate"]
        )
        names = sorted(free)
        if depth > 3 and kind in ("if", "loop", "local", "iterate"):
            kind = "update"
        if kind == "element" or not names:
            k = rng.randrange(4)
            return [f"a[{k}] {rng.choice(('+=', '-=', '^='))} {self.value({'a'})}"]
        if kind == "swap" and len(names) > 1:
            return [" <=> ".join(rng.sample(names, 2))]
        if kind == "if":
            held = self.held(free)
            test = self.condition(free - held | {"a"})
            out = [f"if {test} then", *self.inside(depth, callees, free - held)]
            if rng.random() < 0.6:
                out += ["else", *self.inside(depth, callees, free - held)]
            return [*out, f"fi {test}"]
        if kind in ("loop", "iterate", "local"):
            self.locals += 1
            name, n = f"k{self.locals}", rng.randint(1, 4)
            body = self.inside(depth, callees, free)
            if kind == "iterate":
                return [f"iterate int {name} = 1 to {n}", *body, "end"]
            if kind == "local":
                held = self.held(free)
                value = self.value(free - held | {"a"})
                body = self.inside(depth, callees, free - held)
                return [f"local int {name} = {value}", *body, f"delocal int {name} = {value}"]
            return [
                f"local int {name} = 0",
                f"from {name} = 0 do",
                *body,
                f"    {name} += 1",
                f"loop skip until {name} = {n}",
                f"delocal int {name} = {n}",
            ]
        if kind == "call" and callees and free == {f"x{k}" for k in range(4)}:
            way = rng.choice(("call", "uncall"))
            return [f"{way} {rng.choice(callees)}(x0, x1, x2, x3, a, s)"]
        if kind == "stack":
            x = rng.choice(names)
            read = f"{x} {{}}= size(s) + top(s)"
            return [f"push({x}, s)", read.format("+"), read.format("-"), f"pop({x}, s)"]
        x = rng.choice(names)
        return [f"{x} {rng.choice(('+=', '-=', '^='))} {self.value({x})}"]

    def held(self, free: set[str]) -> set[str]:
        """Some variables that are not changed inside, so that a condition on them stays."""
        names = sorted(free)
        return set(self.rng.sample(names, self.rng.randint(1, len(names)))) if names else set()

    def inside(self, depth: int, callees: list[str], free: set[str]) -> list[str]:
        pad = 4 * depth
        return ["    " + line[pad:] for line in self.block(depth + 1, callees, free)]
