"""Random definitions, as texts, over arrays of one length `n`, on + - * sin and what else is asked.

Their values stay moderate: what is folded is bounded by sine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

NAMES = ("x", "y", "A", "B")
"""The parameters of every definition, two numbers and two arrays of one length."""


_HIDDEN = {**dict.fromkeys("wspuz", "x"), **dict.fromkeys("yqv", "y"), "W": "AB"}
"""The parameters that a name of a stem may hide."""


class Writer:
    """Writes terms of a type in a context of variables; all choices follow from the seed."""

    def __init__(
        self,
        seed: int,
        nesting: int = 2,
        more: bool = True,
        large: bool = False,
        hiding: bool = False,
    ) -> None:
        self.r = random.Random(seed)
        self.hiding = hiding
        """Whether names are bound again, also those of parameters."""
        self.large = large
        """Whether values may overflow, of exponentials, products and large constants."""
        self.nesting = nesting
        """How deeply maps and folds may stand inside of each other's functions."""
        self.more = more
        """Whether there are terms that the small language of the paper lacks."""
        self.count = 0

    def new(self, stem: str) -> str:
        """A name to bind, another for each stem of a pattern; it may hide one of its type."""
        self.count += 1
        if self.hiding and stem in _HIDDEN and self.r.random() < 0.6:
            return self.r.choice(_HIDDEN[stem])
        return f"{stem}{self.count}"

    def definition(self, size: int = 4) -> str:
        """`def f(x: f64, y: f64, A: f64[n], B: f64[n]) = …`, a number."""
        context = {"x": "s", "y": "s", "A": "a", "B": "a"}
        body = self.scalar(size, context, self.nesting)
        return f"def f(x: f64, y: f64, A: f64[n], B: f64[n]) = {body}\n"

    def of(self, context: dict[str, str], kind: str) -> list[str]:
        return [v for v, k in context.items() if k == kind]

    def scalar(self, size: int, context: dict[str, str], nesting: int) -> str:
        """A term of type f64."""
        known = self.of(context, "s")
        if size <= 0:
            numbers = ("0.5", "1", "-0.75", "1.25")
            if self.large and self.r.random() < 0.4:
                numbers = ("1e160", "-3e200", "400", "-700")
            return self.r.choice([*known, *known, *numbers])
        kinds = ["op1", "op2", "op2", "let"]
        if nesting:
            kinds += ["reduce", "reduce", "fold"]
        if self.more:
            kinds += ["if", "pair"] + ["loop", "last", "sum"] * bool(nesting)
        return getattr(self, f"_{self.r.choice(kinds)}")(size - 1, context, nesting)  # type: ignore[no-any-return]

    def array(self, size: int, context: dict[str, str], nesting: int) -> str:
        """A term of type f64[n]."""
        known = self.of(context, "a")
        if size <= 0 or not nesting:
            return self.r.choice(known)
        kinds = ["map", "map2", "map2"]
        if self.more:
            kinds += ["scanl", "scanr", "letarray", "updated", "replicated"]
        return getattr(self, f"_{self.r.choice(kinds)}")(size - 1, context, nesting)  # type: ignore[no-any-return]

    def two(self, size: int) -> tuple[int, int]:
        k = self.r.randint(0, size)
        return k, size - k

    def _op1(self, size: int, c: dict[str, str], nesting: int) -> str:
        fn = self.r.choice(["sin", "sin", "cos", "tanh"] if self.more else ["sin"])
        if self.large:
            fn = self.r.choice([fn, "exp"])
        return f"{fn}({self.scalar(size, c, nesting)})"

    def _op2(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        sign = self.r.choice("++-**")
        return f"({self.scalar(a, c, nesting)} {sign} {self.scalar(b, c, nesting)})"

    def _let(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        w = self.new("w")
        value = self.scalar(a, c, nesting)
        return f"(let {w} = {value} in {self.scalar(b, {**c, w: 's'}, nesting)})"

    def _letarray(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        w = self.new("W")
        value = self.array(a, c, nesting)
        return f"(let {w} = {value} in {self.array(b, {**c, w: 'a'}, nesting)})"

    def _if(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        at = self.r.choice(self.of(c, "s"))
        yes, no = self.scalar(a, c, nesting), self.scalar(b, c, nesting)
        return f"(if {at} < 0.1234567 then {yes} else {no})"

    def _pair(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        u, v = self.new("u"), self.new("v")
        pair = f"({self.scalar(a, c, nesting)}, {self.scalar(b, c, nesting)})"
        form = self.r.choice(["fst {p}", "snd {p}", "(let ({u}, {v}) = {p} in {u} * {v})"])
        return "(" + form.format(p=pair, u=u, v=v) + ")"

    def body(self, size: int, c: dict[str, str], names: Sequence[str], nesting: int) -> str:
        """A function's value, with parameters more likely than other variables."""
        inner = {**c, **dict.fromkeys(names, "s")}
        left = self.r.choice(list(names))
        rest = self.scalar(size, inner, nesting - 1)
        return f"{left} {self.r.choice('+-*')} {rest}"

    def _reduce(self, size: int, c: dict[str, str], nesting: int) -> str:
        array = self.array(size, c, nesting)
        sign = self.r.choice("++*")
        init = "0" if sign == "+" else "1"
        return f"(reduce {sign} {init} {self.bracket(array)})"

    def _sum(self, size: int, c: dict[str, str], nesting: int) -> str:
        return f"sum({self.array(size, c, nesting)})"

    def _fold(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        s, y = self.new("s"), self.new("y")
        body = f"sin({self.body(a, c, [s, y], nesting)})"
        if not self.more or self.large:
            body = f"{s} * {y} + sin({y})"
        word = self.r.choice(["reduce", "foldl"]) if self.more else "reduce"
        init = self.scalar(0, c, 0)
        array = self.bracket(self.array(b, c, nesting))
        return f"({word} ({s}, {y}. {body}) {self.bracket(init)} {array})"

    def _loop(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        p, q, i = self.new("p"), self.new("q"), self.new("i")
        inner = {**c, p: "s", q: "s"}
        first = f"sin({self.scalar(a, inner, nesting - 1)} + {q} * f64({i}))"
        second = f"{p} + cos({self.scalar(b, inner, nesting - 1)})"
        loop = f"loop ({p}, {q}) = ({self.scalar(0, c, 0)}, 0.5) for {i} < 3 do ({first}, {second})"
        return f"(fst ({loop}))"

    def _last(self, size: int, c: dict[str, str], nesting: int) -> str:
        return f"({self.scan('scanl', size, c, nesting)})[len(A)]"

    def scan(self, word: str, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        s, y = self.new("s"), self.new("y")
        body = f"sin({self.body(a, c, [s, y], nesting)})"
        init = self.bracket(self.scalar(0, c, 0))
        return f"{word} ({s}, {y}. {body}) {init} {self.bracket(self.array(b, c, nesting))}"

    def _scanl(self, size: int, c: dict[str, str], nesting: int) -> str:
        return f"shift1{self.r.choice('LR')} ({self.scan('scanl', size, c, nesting)})"

    def _scanr(self, size: int, c: dict[str, str], nesting: int) -> str:
        return f"shift1{self.r.choice('LR')} ({self.scan('scanr', size, c, nesting)})"

    def _updated(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        x, y = self.scalar(a, c, 0), self.array(b, c, nesting)
        i, j = self.new("i"), self.new("z")
        return f"(map2 ({i}, {j}. if {i} == 1 then {x} * {j} else {j}) (iota n) {self.bracket(y)})"

    def _replicated(self, size: int, c: dict[str, str], nesting: int) -> str:
        return f"(replicate n ({self.scalar(size, c, nesting)}))"

    def _map(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        z = self.new("z")
        body = self.body(a, c, [z], nesting)
        return f"(map ({z}. {body}) {self.bracket(self.array(b, c, nesting))})"

    def _map2(self, size: int, c: dict[str, str], nesting: int) -> str:
        a, b = self.two(size)
        k, m = self.two(b)
        y, z = self.new("y"), self.new("z")
        if not a:
            sign = self.r.choice("+*")
            one, two = self.array(k, c, nesting), self.array(m, c, nesting)
            return f"(map2 {sign} {self.bracket(one)} {self.bracket(two)})"
        body = self.body(a, c, [y, z], nesting)
        one, two = self.array(k, c, nesting), self.array(m, c, nesting)
        return f"(map2 ({y}, {z}. {body}) {self.bracket(one)} {self.bracket(two)})"

    def bracket(self, text: str) -> str:
        return text if text[0] == "(" or text.isidentifier() or text[0].isdigit() else f"({text})"


@dataclass(frozen=True)
class Case:
    """A random definition, and values for its parameters."""

    text: str
    given: dict[str, Any]
    n: int
    is_core: bool
    """Whether it is of + - * sin, maps and folds only."""
    is_large: bool
    """Whether its values may overflow."""


def case(seed: int) -> Case:
    """A term with two to six levels over arrays of 0, 1, 2 or 5 elements; every fifth is large."""
    rng = np.random.default_rng(seed)
    core, large, n = seed % 3 == 0, seed % 5 == 4, (0, 1, 2, 5)[seed // 5 % 4]
    scale = float(10 ** rng.choice([0, 2.3, 2.9, 100, 160, 300])) if large else 1.0
    writer = Writer(seed, more=not core, large=large, hiding=seed % 4 == 2)
    text = writer.definition(2 + seed % 7 % 5)
    x, y = (float(v) for v in rng.normal(size=2) * scale)
    given = {"x": x, "y": y, "A": rng.normal(size=n) * scale, "B": rng.normal(size=n) * scale}
    return Case(text, given, n, core and not large, large)
