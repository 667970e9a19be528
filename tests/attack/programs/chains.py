"""Random chains of products in ancillas, and their inverses: right ones, and ones with a mistake.

`program(seed)` gives an assembly text with a function `main` over numbers of one type.  Ancillas
are multiplied, divided, added to, exchanged and rotated, in loops, branches and calls.  Then all of
that is undone by equal numbers from other parameters, so nothing is back by construction.  A wrong
program makes one mistake, of a thousandth at least.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rvm import LogNumber

TYPES = ("f64", "f32", "c128", "i64", "i32", "fixed", "fixed(20)", "log64")
LENGTH = 4
_HEAD = "func main(x: T, y: T, z: T, w: T[4], x2: T, y2: T, z2: T, w2: T[4], k: i64, n: i64, {})\n"
_Pair = tuple[list[str], list[str]]
"""The lines of some statements, and those that undo them."""


def program(seed: int, t: str | None = None, wrong: bool | None = None) -> str:
    """A program of a type, right or wrong; which ones are else found by the seed."""
    rng = random.Random(seed)
    kind, mistaken = rng.choice(TYPES), rng.random() < 0.5
    return _Chain(rng, t or kind).text(mistaken if wrong is None else wrong)


def inputs(seed: int, t: str | None = None, variant: int = 0) -> dict[str, Any]:
    """Inputs of the program of a seed; arrays hold raw values, as all runs take them."""
    rng = np.random.default_rng([seed, variant])
    t = t or random.Random(seed).choice(TYPES)
    many: Any = rng.uniform(0.4, 1.7, 3 + LENGTH)
    if t[0] == "i":
        many = rng.integers(2, 100, 3 + LENGTH).astype(f"i{int(t[1:]) // 8}")
    elif t == "f32":
        many = many.astype(np.float32)
    elif t.startswith("fixed"):
        many = np.round(many * 1024) / 1024
    scalars = dict(zip("xyz", many.tolist(), strict=False))
    w, out = many[3:], many[0].item() * 0
    if t == "log64":
        scalars, out = {k: LogNumber(v) for k, v in scalars.items()}, LogNumber(1.0)
        w = np.log(w)
    elif t == "c128":
        w = w.astype(np.complex128)
    elif t.startswith("fixed"):
        w = (w * 2 ** (20 if t == "fixed(20)" else 43)).astype(np.int64)
    again = {f"{k}2": v for k, v in scalars.items()} | {"w2": w.copy()}
    return {**scalars, "w": w, **again, "k": 2, "n": 3, "out": out, "outs": np.zeros_like(w)}


class _Chain:
    """A program in the making."""

    def __init__(self, rng: random.Random, t: str) -> None:
        self.rng, self.t = rng, t
        self.is_int, self.is_log, self.is_fixed = t[0] == "i", t == "log64", t.startswith("fixed")
        self.multiply = ("mul", "unmul" if self.is_int else "div")
        self.gain = ("mul", "div") if self.is_log else ("add", "sub")
        self.helpers: list[str] = []

    def text(self, wrong: bool) -> str:
        there, back = self.block(0, self.rng.randint(3, 7))
        # One that is surely there to be mistaken.
        e = self.term()
        there.append(f"    {self.gain[0]} t, {e}")
        back.insert(0, f"    {self.gain[1]} t, {e}")
        back = [re.sub(r"\b([xyzw])\b", r"\g<1>2", line) for line in back]
        if wrong:
            places = [i for i, line in enumerate(back) if _CHANGE.match(line)]
            at = self.rng.choice(places)
            back[at] = self.mistaken(back[at])
        out = self.gain[0]
        lines = ["alloc t: T = y", "alloc u: T = z", "alloc a: T[4] = x"]
        lines += [line[4:] for line in there] + [f"{out} out, t", f"{out} out, u", f"{out} outs, a"]
        lines += [line[4:] for line in back] + ["free a = x2", "free u = z2", "free t = y2"]
        main = _HEAD.format("out: T, outs: T[4]") + "".join(f"    {line}\n" for line in lines)
        return re.sub(r"\bT\b", self.t, "\n".join([main, *self.helpers]))

    def mistaken(self, line: str) -> str:
        """A line with another operand."""
        found = _CHANGE.match(line)
        assert found
        other = f"({found[2]}) * y2" if self.is_log else f"({found[2]}) * 1.001"
        if self.is_int:
            other = f"({found[2]}) + 2"
        elif self.is_fixed:
            other = f"({found[2]}) + 0.01"
        return f"{found[1]}{other}"

    def factor(self) -> str:
        simple = ["x", "y", "z", "w[1]", "w[k]", "x * y"]
        if self.is_int:
            return f"2 * ({self.rng.choice(simple)}) + 1"
        more = ["x / y"] if self.is_log else ["0.3", "1.7", "-z", "x / y"]
        return self.rng.choice(simple + more)

    def term(self) -> str:
        simple = ["x", "y * z", "x * y * w[0]", "w[3]", "x * x"]
        if self.is_log:
            return self.rng.choice(simple)
        return self.rng.choice([*simple, "y + x", "3 * z" if self.is_int else "0.3 * z"])

    def block(self, depth: int, n: int) -> _Pair:
        """So many statements, indented, and those that undo them in the opposite order."""
        pairs = [self.statement(depth) for _ in range(n)]
        there = [f"    {line}" for pair in pairs for line in pair[0]]
        return there, [f"    {line}" for pair in reversed(pairs) for line in pair[1]]

    def statement(self, depth: int) -> _Pair:
        kinds: list[Callable[[], _Pair]] = [self.exchange, self.added, self.elements]
        if not self.is_fixed:
            kinds += [self.multiplied, self.multiplied, self.multiplied]
        if not self.is_log:
            kinds += [self.mixed]
        if depth < 2:
            kinds += [self.called, partial(self.nested, depth)]
        return self.rng.choice(kinds)()

    def place(self) -> str:
        return self.rng.choice(["t", "u", "t", "u", "a", "a[k]", "a[n]"])

    def changed(self, ops: tuple[str, str], value: str) -> _Pair:
        place, (op, inverse) = self.place(), self.rng.sample(ops, 2)
        return [f"{op} {place}, {value}"], [f"{inverse} {place}, {value}"]

    def exchange(self) -> _Pair:
        line = self.rng.choice(
            ["swap t, u", "swap a[0], a[3]", "swap u, a[k]", "cswap k > 0, t, u"]
        )
        return [line], [line]

    def added(self) -> _Pair:
        return self.changed(self.gain, self.term())

    def multiplied(self) -> _Pair:
        return self.changed(self.multiply, self.factor())

    def elements(self) -> _Pair:
        ops = self.gain if self.is_fixed else self.multiply
        value = "2 * w + 1" if self.is_int else self.rng.choice(["w", "y", "w * x"])
        op, inverse = self.rng.sample(ops, 2)
        return [f"{op} a, {value}"], [f"{inverse} a, {value}"]

    def mixed(self) -> _Pair:
        if self.t == "c128":
            return ["conj t"], ["conj t"]
        if self.is_int or self.rng.random() < 0.3:
            return ["neg u"], ["neg u"]
        return ["rot t, u, 0.7"], ["irot t, u, 0.7"]

    def called(self) -> _Pair:
        name, (op, inverse) = f"h{len(self.helpers)}", self.gain if self.is_fixed else self.multiply
        value = "2 * q + 1" if self.is_int else "q"
        self.helpers += [
            f"func {name}(p: T, q: T)\n    {op} p, {value}\n",
            f"func {name}_back(p: T, q: T)\n    {inverse} p, {value}\n",
        ]
        place = self.rng.choice(["t", "u", "a[1]"])
        return [f"call {name}({place}, x)"], [f"call {name}_back({place}, x)"]

    def nested(self, depth: int) -> _Pair:
        there, back = self.block(depth + 1, self.rng.randint(1, 2))
        head = self.rng.choice([f"for i{depth} = 1 to n", "if k > 0"])
        return [head, *there, "end"], [head, *back, "end"]


_CHANGE = re.compile(r"( *(?:add|sub|mul|div|unmul) [^,]+, )(.*)")
