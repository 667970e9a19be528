"""Random programs that are sound by construction: what they change, nothing around it reads.

`program(seed)` gives an assembly text with a function `main` over numbers of several types, arrays
of them, and, if `types` says so, stacks and a record; with ifs, loops, ancillas, routines, computed
indices, calls, uncalls and recursion.  `inputs(seed)` gives arguments for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attack.programs.body import BodyWriter
from attack.programs.forms import (
    ARRAY_FORMS,
    CLASSIC_FORMS,
    CONDITIONS,
    EXTREME,
    FLIPS,
    FORMS,
    HEADERS,
    LETTERS,
    constant,
    updates,
)
from rvm.numbers import LogNumber, system
from rvm.types import SCALARS

_CLASSIC = ("i64", "u8", "f64", "fixed", "i32")
"""The types of the programs that tests compare in lanes, within what rounding may do."""
_LENGTH = 4


def _some_types(rng: random.Random) -> tuple[str, ...]:
    """A few types for a program: i64 and f64, and others."""
    others = [t for t in LETTERS if t not in ("i64", "f64")]
    return ("i64", "f64", *rng.sample(others, rng.choice((1, 2, 2, 3))))


class _SoundWriter(BodyWriter):
    """Writes one random function body, keeping track of what must not be changed."""

    def __init__(self, rng: random.Random, types: Sequence[str] = _CLASSIC) -> None:
        self.types = tuple(types)
        self.classic = self.types == _CLASSIC
        names = {t: [f"{LETTERS[t]}{k}" for k in range(3)] for t in self.types}
        super().__init__(rng, names, 40 if self.classic else 16)
        if self.classic:
            self.arrays = {"i64": "ai", "f64": "af", "u8": "au"}
        else:
            self.arrays = {t: "a" + LETTERS[t] for t in ("i64", *self.types[1:][:3])}
        self.fields: dict[str, str] = {}
        self.stack = ""
        if not self.classic:
            self.fields = dict(zip("ab", rng.sample(self.types, 2), strict=True))
            self.stack = rng.choice(self.types)
        self.used: set[str] = set()

    def text(self) -> str:
        params = [f"{n}: {t}" for t in self.types for n in self.names[t]]
        params += [f"{n}: {t}[{n}n]" for t, n in self.arrays.items()]
        if self.fields:
            params.append("w: Pair")
            for name, t in self.fields.items():
                self.names[t].append(f"w.{name}")
        if self.stack:
            params.append(f"s: stack[{self.stack}]")
        self.body(1, 12 if self.classic else self.rng.randint(2, 6))
        head = [line for name in HEADERS if name in self.used for line in HEADERS[name]]
        if self.fields:
            fields = [f"    {name}: {t}" for name, t in self.fields.items()]
            head = ["record Pair", *fields, "end", "", *head]
        return "\n".join([*head, f"func main({', '.join(params)})", *self.lines, ""])

    def statement(self, depth: int) -> None:
        simple: list[Callable[[int], None]] = [self.update] * 3
        simple += [self.swap, self.element, self.flip, self.array]
        nested: list[Callable[[int], None]] = [self.branch, self.loop, self.ancilla, self.call]
        nested.append(self.repeat)
        if not self.classic:
            simple += [self.update, self.parts]
            nested += [self.routine, self.stacked, self.lengths]
        pick = self.rng.choice(simple if depth > 3 or self.rng.random() < 0.6 else nested)
        pick(depth)

    # -------------------------------------------------------------- pieces

    def atom(self, t: str, avoid: str) -> str:
        names = [n for n in self.names[t] if n != avoid]
        if names and self.rng.random() < 0.75:
            return self.rng.choice(names)
        return constant(self.rng, t)

    def expression(self, t: str, avoid: str) -> str:
        a, b = self.atom(t, avoid), self.atom(t, avoid)
        forms = CLASSIC_FORMS[t] if self.classic else FORMS[t]
        return self.rng.choice(forms).format(a=a, b=b)

    def update(self, depth: int) -> None:
        t = self.rng.choice(self.types)
        free = self.free(t)
        if free:
            y = self.rng.choice(free)
            op = self.rng.choice(updates(t, not self.classic))
            self.line(depth, f"{op} {y}, {self.expression(t, y)}")

    def swap(self, depth: int) -> None:
        t = self.rng.choice(self.types)
        free = self.free(t)
        if len(free) >= 2:
            a, b = self.rng.sample(free, 2)
            if not self.classic and self.rng.random() < 0.3:
                i, j = self.rng.sample(self.names["i64"][:3], 2)
                if {i, j}.isdisjoint((a, b)):
                    self.line(depth, f"cswap {i} > {j}, {a}, {b}")
                    return
            self.line(depth, f"swap {a}, {b}")

    def flip(self, depth: int) -> None:
        t = self.rng.choice(self.types)
        free = self.free(t)
        if not free:
            return
        y = self.rng.choice(free)
        form = self.rng.choice(FLIPS[t] if not self.classic else FLIPS[t][:4])
        others = [n for n in self.names[t] if n != y and n not in self.locked]
        if "{o}" in form and not others:
            return
        o = self.rng.choice(others) if others else ""
        value = self.atom("f64", y) if t != "f64" else constant(self.rng, t)
        if value == o:
            return
        self.line(depth, form.format(y=y, o=o, v=value, k=self.rng.randrange(-3, 70)))

    def index(self, length: int = _LENGTH) -> str:
        """An index in range: a number, or one that the run computes."""
        i = self.rng.choice(self.names["i64"])
        return self.rng.choice([str(self.rng.randrange(length)), f"{i} & {length - 1}"])

    def element(self, depth: int) -> None:
        t = self.rng.choice(list(self.arrays))
        a = self.arrays[t]
        if a in self.locked:
            return
        op = self.rng.choice(updates(t, False)[:1] if self.classic else updates(t, True))
        self.line(depth, f"{op} {a}[{self.index()}], {self.atom(t, '')}")

    def array(self, depth: int) -> None:
        t = self.rng.choice(list(self.arrays))
        a = self.arrays[t]
        if a in self.locked:
            return
        forms = ARRAY_FORMS["classic"] if self.classic else ARRAY_FORMS[t]
        form = self.rng.choice(forms)
        i, j = self.index(), self.index()
        if i != j:
            self.line(depth, form.format(a=a, v=self.atom(t, ""), i=i, j=j))

    def parts(self, depth: int) -> None:
        """Numbers of one type made of another's, and the parts of a complex one."""
        t, u = self.rng.sample(self.types, 2)
        y = self.rng.choice(self.free(t) or [""])
        if t == "f64" and "c128" in self.types and self.rng.random() < 0.5:
            z = self.rng.choice(self.free("c128") or [""])
            if z and y:
                part = self.rng.choice(["re", "im"])
                a, b = self.rng.sample([f"{z}.{part}", y], 2)
                self.line(depth, f"add {a}, {b}")
        elif y and "c128" not in (t, u) and t != "fixed(30)":
            plus = updates(t, False)[0]
            self.line(depth, f"{plus} {y}, {t}({self.atom(u, y)})")

    def condition(self) -> tuple[str, set[str]]:
        t = self.rng.choice([t for t in self.types if len(self.names[t]) > 1])
        x, y = self.rng.sample(self.names[t], 2)
        return f"{x} {self.rng.choice(CONDITIONS[t])} {y}", {x, y}

    def branch(self, depth: int) -> None:
        cond, read = self.condition()
        self.line(depth, f"if {cond}")

        def inside() -> None:
            self.body(depth + 1, 3)
            if self.rng.random() < 0.5:
                self.line(depth, "else")
                self.body(depth + 1, 2)

        self.locking(read, inside)
        self.line(depth, "end")

    def loop(self, depth: int) -> None:
        self.fresh += 1
        i = f"k{self.fresh}"
        a, b, s = self.rng.randrange(3), self.rng.randrange(5), self.rng.choice([1, 1, 2])
        down = self.rng.random() < 0.3
        head = f"for {i} = {b} downto {a}" if down else f"for {i} = {a} to {b} step {s}"
        self.line(depth, head)
        self.names["i64"].append(i)
        self.locking({i}, lambda: self.body(depth + 1, 3))
        self.names["i64"].remove(i)
        self.line(depth, "end")

    def repeat(self, depth: int) -> None:
        self.fresh += 1
        i = f"k{self.fresh}"
        self.line(depth, f"alloc {i}: i64")
        bound = self.rng.randrange(1, 5)
        until = not self.classic and self.rng.random() < 0.4
        self.line(depth, f"from {i} == 0" if until else f"while {i} < {bound}, {i} > 0")
        self.names["i64"].append(i)
        self.locking({i}, lambda: self.body(depth + 1, 2))
        self.names["i64"].remove(i)
        self.line(depth + 1, f"inc {i}")
        self.line(depth, f"until {i} == {bound}" if until else "end")
        # It began below the bound and counts by one, so it ends there.
        self.line(depth, f"free {i} = {bound}")

    def ancilla(self, depth: int) -> None:
        self.fresh += 1
        t = self.rng.choice(("i64", "f64", "fixed") if self.classic else self.types)
        x = f"t{self.fresh}"
        source = self.rng.choice(self.names[t])
        other = self.atom(t, "")
        plus, minus = updates(t, False)[:2]
        self.line(depth, f"alloc {x}: {t} = {source}")
        self.line(depth, f"{plus} {x}, {other}")
        self.names[t].append(x)
        self.locking({x, source, other}, lambda: self.body(depth + 1, 3))
        self.names[t].remove(x)
        self.line(depth, f"{minus} {x}, {other}")
        self.line(depth, f"free {x} = {source}")

    def routine(self, depth: int) -> None:
        """A block that is done, used and undone."""
        t = self.rng.choice(self.types)
        if not self.free(t):
            return
        self.fresh += 1
        y, x, r = self.rng.choice(self.free(t)), f"t{self.fresh}", f"r{self.fresh}"
        plus = updates(t, False)[0]
        self.line(depth, f"routine {r}")
        self.line(depth + 1, f"alloc {x}: {t} = {self.expression(t, y)}")
        self.line(depth + 1, f"{plus} {x}, {self.expression(t, y)}")
        self.line(depth, "end")
        self.line(depth, f"{plus} {y}, {x}")
        self.line(depth, f"undo {r}")

    def lengths(self, depth: int) -> None:
        """An array whose length, and a slice whose bounds, are computed."""
        self.fresh += 1
        x, n, t = f"t{self.fresh}", self.rng.choice(self.names["i64"]), self.rng.choice(self.types)
        self.line(depth, f"alloc {x}: {t}[({n} & 3)]")
        self.locking({n}, lambda: self._sliced(n, depth))
        self.line(depth, f"free {x}: {t}[({n} & 3)]")

    def _sliced(self, n: str, depth: int) -> None:
        if "ai" in self.arrays.values() and "ai" not in self.locked:
            self.line(depth, f"add ai[0:{n} & 3], {self.atom('i64', '')}")
        self.body(depth + 1, 2)

    def _short(self) -> str:
        return f"({self.rng.choice(self.names['i64'])} & 3)"

    def stacked(self, depth: int) -> None:
        self.stacked_of(self.stack, depth)

    def call(self, depth: int) -> None:
        word = self.rng.choice(["call", "uncall"])
        ints, floats = self.free("i64"), self.free("f64")
        name = self.rng.choice(["mix", "turn", "count"] + ["down", "fill"] * (not self.classic))
        if name == "mix" and len(ints) >= 2:
            self.line(depth, f"{word} mix({', '.join(self.rng.sample(ints, 2))})")
        elif name == "turn" and len(floats) >= 3:
            self.line(depth, f"{word} turn({', '.join(self.rng.sample(floats, 3))})")
        elif name == "down" and len(floats) >= 2:
            a, b = self.rng.sample(floats, 2)
            n = self.rng.choice(["3", "5", f"({self.rng.choice(self.names['i64'])} & 3)"])
            self.line(depth, f"{word} down({a}, {b}, {n})")
        elif name == "fill" and "ai" in self.arrays.values() and "ai" not in self.locked:
            lo = self.rng.randrange(3)
            high = f"{lo + 2}" if self.rng.random() < 0.6 else f"{self._short()}"
            lo = lo if high.isdigit() else 0
            self.line(depth, f"{word} fill(ai[{lo}:{high}], {self.rng.choice(['2', '-5'])})")
        elif ints:
            name = "count"
            self.line(depth, f"{word} count({self.rng.choice(ints)}, {self.rng.randrange(6)})")
        else:
            return
        self.used.add(name)


def program(seed: int, types: Sequence[str] | None = _CLASSIC) -> str:
    """The text of the random program number `seed`; with `types=None` over types of its own."""
    rng = random.Random(seed)
    return _SoundWriter(rng, _some_types(rng) if types is None else types).text()


def inputs(seed: int, types: Sequence[str] | None = _CLASSIC, variant: int = 0) -> dict[str, Any]:
    """Inputs for the random program number `seed`; several, for one over types of its own."""
    if types is not None:
        return _classic(seed)
    rng = random.Random(seed)
    types = _some_types(rng)
    writer = _SoundWriter(rng, types)
    rng = random.Random(seed + 1_000_003 * (1 + variant))
    wild = rng.random() < 0.25
    out: dict[str, Any] = {n: _number(rng, t, wild) for t in types for n in writer.names[t]}
    for t, name in writer.arrays.items():
        numbers = [_number(rng, t, wild) for _ in range(_LENGTH)]
        out[name] = _array(t, numbers)
    out["w"] = {name: _number(rng, t, wild) for name, t in writer.fields.items()}
    out["s"] = [_number(rng, writer.stack, wild) for _ in range(rng.randrange(3))]
    return out


def _number(rng: random.Random, t: str, wild: bool) -> Any:
    """A value of a type: a small one, or, where they are wild, one at the type's edges."""
    if t in EXTREME and wild and rng.random() < 0.3:
        return rng.choice(EXTREME[t])
    match t:
        case "bool":
            return rng.random() < 0.5
        case "c128":
            return complex(rng.uniform(-2, 2), rng.uniform(-2, 2))
        case "log64":
            return LogNumber(rng.uniform(-2, 2))
        case "f32":
            return float(np.float32(rng.uniform(-3.0, 3.0)))
        case "f64":
            return rng.uniform(-3.0, 3.0)
        case _ if t.startswith("fixed"):
            return rng.randrange(-3000, 3000) / 1024
        case _:
            return rng.randrange(0, 200) if t.startswith("u") else rng.randrange(-100, 100)


def _array(t: str, numbers: list[Any]) -> Any:
    if t.startswith("fixed"):
        frac = 30 if t == "fixed(30)" else 43
        return np.array([int(v * 1024) << (frac - 10) for v in numbers], np.int64)
    if t == "log64":
        return np.array([v.log for v in numbers])
    return np.array(numbers, system(SCALARS[t]).dtype)


def _classic(seed: int) -> dict[str, Any]:
    rng = random.Random(seed + 1_000_003)
    names = _SoundWriter(rng).names
    out: dict[str, Any] = {}
    for t in _CLASSIC:
        for name in names[t]:
            if t in ("f64", "fixed"):
                out[name] = rng.uniform(-3.0, 3.0)
            else:
                out[name] = rng.randrange(0, 200) if t == "u8" else rng.randrange(-100, 100)
    values = [rng.randrange(0, 100) for _ in range(_LENGTH)]
    out["ai"] = np.array(values, dtype=np.int64)
    out["af"] = np.array(values, dtype=np.float64) / 7
    out["au"] = np.array(values, dtype=np.uint8)
    return out
