"""Random programs that are sound by construction: what they change, nothing around it reads.

`program(rng)` gives an assembly text with a function `main` over integers, floats,
fixed-point numbers and arrays of them, with ifs, loops, ancillas, calls and uncalls.
"""

from __future__ import annotations

import random
from collections.abc import Callable

SCALARS = {"i64": "p", "u8": "u", "f64": "x", "fixed": "q", "i32": "m"}
"""The scalar types that variables have, and what their names begin with."""
LENGTH = 4
REAL_FORMS = (
    "{a}",
    "{a} + {b}",
    "{a} * 0.5",
    "{a} - {b}",
    "sin({a})",
    "min({a}, {b})",
    "abs({a})",
    "sqrt(abs({a}))",
    "select({a} < {b}, {b}, 0.25)",
    "tanh({a}) * cos({b})",
)
INTEGER_FORMS = (
    "{a}",
    "{a} + {b}",
    "{a} * {b}",
    "{a} - {b}",
    "{a} & {b}",
    "{a} | 3",
    "{a} % 7",
    "{a} // 3",
    "max({a}, {b})",
    "({a} ^ {b}) >> 1",
    "select({a} <= {b}, {a}, 2)",
)
ARRAY_FORMS = (
    "neg {a}",
    "add {a}, {v}",
    "swap {a}[0], {a}[3]",
    "add {a}[0:2], {a}[2:4]",
    "sub {a}[1], sum({a}[2:4])",
)
HEADER = [
    "func mix(p: i64, q: i64)",
    "    add p, q * 3",
    "    xor q, 5",
    "    if q > 2",
    "        add p, 7",
    "    end",
    "    sub q, 1",
    "",
    "func turn(a: f64, b: f64, t: f64)",
    "    rot a, b, t",
    "    add a, sin(b)",
    "",
    "func count(p: i64, n: i64)",
    "    if n > 0",
    "        alloc k: i64 = n - 1",
    "        add p, n * n",
    "        call count(p, k)",
    "        free k = n - 1",
    "    end",
    "",
]


class Writer:
    """Writes one random function body, keeping track of what must not be changed."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.names: dict[str, list[str]] = {
            t: [f"{letter}{k}" for k in range(3)] for t, letter in SCALARS.items()
        }
        self.arrays = {"i64": "ai", "f64": "af", "u8": "au"}
        self.locked: set[str] = set()
        self.fresh = 0
        self.budget = 40

    def text(self) -> str:
        params = [f"{n}: {t}" for t in SCALARS for n in self.names[t]]
        params += [f"{n}: {t}[{n}n]" for t, n in self.arrays.items()]
        self.body(1, 12)
        return "\n".join([*HEADER, f"func main({', '.join(params)})", *self.lines, ""])

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def body(self, depth: int, n: int) -> None:
        for _ in range(n):
            if self.budget <= 0:
                return
            self.budget -= 1
            self.statement(depth)

    def statement(self, depth: int) -> None:
        simple: list[Callable[[int], None]] = [
            self.update,
            self.update,
            self.update,
            self.swap,
            self.element,
            self.flip,
            self.array,
        ]
        nested: list[Callable[[int], None]] = [
            self.branch,
            self.loop,
            self.ancilla,
            self.call,
            self.repeat,
        ]
        pick = self.rng.choice(simple if depth > 3 or self.rng.random() < 0.6 else nested)
        pick(depth)

    # -------------------------------------------------------------- pieces

    def writable(self, t: str) -> str | None:
        free = [n for n in self.names[t] if n not in self.locked]
        return self.rng.choice(free) if free else None

    def atom(self, t: str, avoid: str) -> str:
        names = [n for n in self.names[t] if n != avoid]
        if names and self.rng.random() < 0.75:
            return self.rng.choice(names)
        if t in ("f64", "fixed"):
            return repr(round(self.rng.uniform(0.1, 2.0), 3))
        return str(self.rng.randrange(1, 90))

    def expression(self, t: str, avoid: str) -> str:
        a, b = self.atom(t, avoid), self.atom(t, avoid)
        if t in ("f64", "fixed"):
            form = self.rng.choice(REAL_FORMS)
        else:
            form = self.rng.choice(INTEGER_FORMS)
        return form.format(a=a, b=b)

    def update(self, depth: int) -> None:
        t = self.rng.choice(list(SCALARS))
        y = self.writable(t)
        if y is not None:
            op = self.rng.choice(["add", "sub"] if t in ("f64", "fixed") else ["add", "sub", "xor"])
            self.line(depth, f"{op} {y}, {self.expression(t, y)}")

    def swap(self, depth: int) -> None:
        t = self.rng.choice(list(SCALARS))
        free = [n for n in self.names[t] if n not in self.locked]
        if len(free) >= 2:
            a, b = self.rng.sample(free, 2)
            self.line(depth, f"swap {a}, {b}")

    def flip(self, depth: int) -> None:
        t = self.rng.choice(list(SCALARS))
        y = self.writable(t)
        if y is not None:
            op = "neg" if t in ("f64", "fixed") else self.rng.choice(["neg", "inc", "dec", "not"])
            self.line(depth, f"{op} {y}")

    def element(self, depth: int) -> None:
        t = self.rng.choice(list(self.arrays))
        if self.arrays[t] in self.locked:
            return
        k, a = self.rng.randrange(LENGTH), self.arrays[t]
        index = self.rng.choice([str(k), f"{self.rng.choice(self.names['i64'])} & 3"])
        self.line(depth, f"add {a}[{index}], {self.atom(t, '')}")

    def array(self, depth: int) -> None:
        t = self.rng.choice(list(self.arrays))
        a = self.arrays[t]
        if a in self.locked:
            return
        form = self.rng.choice(ARRAY_FORMS)
        self.line(depth, form.format(a=a, v=self.atom(t, "")))

    def condition(self) -> tuple[str, set[str]]:
        t = self.rng.choice(list(SCALARS))
        x, y = self.rng.sample(self.names[t], 2)
        return f"{x} {self.rng.choice(['<', '<=', '>', '!=', '=='])} {y}", {x, y}

    def locking(self, names: set[str], inside: Callable[[], None]) -> None:
        before = set(self.locked)
        self.locked |= names
        inside()
        self.locked = before

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
        self.line(depth, f"while {i} < {bound}, {i} > 0")
        self.names["i64"].append(i)
        self.locking({i}, lambda: self.body(depth + 1, 2))
        self.names["i64"].remove(i)
        self.line(depth + 1, f"inc {i}")
        self.line(depth, "end")
        # It began below the bound and counts by one, so it ends there.
        self.line(depth, f"free {i} = {bound}")

    def ancilla(self, depth: int) -> None:
        self.fresh += 1
        t = self.rng.choice(("i64", "f64", "fixed"))
        x = f"t{self.fresh}"
        source = self.rng.choice(list(self.names[t]))
        other = self.atom(t, "")
        self.line(depth, f"alloc {x}: {t} = {source}")
        self.line(depth, f"add {x}, {other}")
        self.names[t].append(x)
        self.locking({x, source, other}, lambda: self.body(depth + 1, 3))
        self.names[t].remove(x)
        self.line(depth, f"sub {x}, {other}")
        self.line(depth, f"free {x} = {source}")

    def call(self, depth: int) -> None:
        word = self.rng.choice(["call", "uncall"])
        ints = [n for n in self.names["i64"] if n not in self.locked]
        floats = [n for n in self.names["f64"] if n not in self.locked]
        pick = self.rng.randrange(3)
        if pick == 0 and len(ints) >= 2:
            self.line(depth, f"{word} mix({', '.join(self.rng.sample(ints, 2))})")
        elif pick == 1 and len(floats) >= 3:
            self.line(depth, f"{word} turn({', '.join(self.rng.sample(floats, 3))})")
        elif ints:
            p = self.rng.choice(ints)
            self.line(depth, f"{word} count({p}, {self.rng.randrange(6)})")


def program(seed: int) -> str:
    """The text of the random program number `seed`."""
    return Writer(random.Random(seed)).text()


def inputs(seed: int) -> dict[str, object]:
    """Inputs for the random program number `seed`."""
    import numpy as np

    rng = random.Random(seed + 1_000_003)
    writer = Writer(rng)
    out: dict[str, object] = {}
    for t in SCALARS:
        for name in writer.names[t]:
            if t in ("f64", "fixed"):
                out[name] = rng.uniform(-3.0, 3.0)
            else:
                out[name] = rng.randrange(0, 200) if t == "u8" else rng.randrange(-100, 100)
    values = [rng.randrange(0, 100) for _ in range(LENGTH)]
    out["ai"] = np.array(values, dtype=np.int64)
    out["af"] = np.array(values, dtype=np.float64) / 7
    out["au"] = np.array(values, dtype=np.uint8)
    return out
