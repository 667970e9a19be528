"""Random programs that are smooth where they are run, sound by construction.

`program(seed)` gives an assembly text with a function `main` over floats, fixed-point and complex
numbers, logarithms, arrays, a record and a stack: updates, factors, maps in place, branches and
loops on integers and on floats that are far apart, ancillas, routines, calls, uncalls, recursion.
What a block changes, nothing around it reads.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from attack.programs.body import BodyWriter
from rvm import LogNumber

_LENGTH = 3
_FORMS = (
    "{a}",
    "{a} + {b}",
    "{a} * {b}",
    "{a} * {a} * 0.5",
    "sin({a})",
    "tanh({a}) * cos({b})",
    "exp(-({a} * {a})) + {b}",
    "{a} / (2.0 + {b} * {b})",
    "sqrt(1.5 + {a} * {a})",
    "atan({a} * {b})",
    "log(2.0 + {a} * {a})",
    "-{a} * sin({b}) * 0.25",
)
_FLOAT_FORMS = (
    *_FORMS,
    "atan2({a}, 2.0 + {b} * {b})",
    "hypot({a}, 1.5)",
    "(1.5 + sin({a})) ** {b}",
)
_COMPLEX_FORMS: tuple[str, ...] = (
    "{a}",
    "{a} + {b}",
    "{a} * {b} * 0.5",
    "sin({a} * 0.25)",
    "conj({a})",
    "{a} * x0",
)
_COMPLEX_FORMS += (
    "exp({a} * 0.25)",
    "complex(abs({a}) + 1.0, x1)",
    "{a} / (4.0 + {b} * conj({b}))",
)
_LOG_FORMS = (
    "{a}",
    "{a} + {b}",
    "{a} * {b}",
    "{a} ** 0.5",
    "{a} / (1.0 + {b})",
    "log64(1.5 + x0 * x0)",
)
_ARRAY_FORMS = (
    "neg {a}",
    "add {a}, {v}",
    "mul {a}, 1.25 + 0.5 * sin({b})",
    "add {a}, {b} * {v} + 0.1",
    "swap {a}[0], {a}[2]",
    "swap {a}, {b}",
    "add {a}[0:1], {a}[1:2] * {v}",
    "sub {a}[1], sum({b} * {b}) * 0.1",
    "add {a}, scan_left({b}) * 0.5",
    "add {a}, gather({b}, idx)",
    "sub {a}, scatter({b}, idx, len({a})) * 0.5",
    "rot {a}[0], {a}[1], {v}",
    "rot {a}, {b}, {v}",
    "hadamard {a}[idx[0]], {a}[idx[1]]",
    "add {a}, M @ {b}",
    "add M, outer({a}, {b}) * 0.1",
    "mul M[:, 1], 1.5 + tanh({v})",
    "swap M[0, :], {a}",
    "call blend({a}, {b}, {v})",
    "uncall blend({a}, {b}, {v})",
    "call blend(M[0, :], M[2, :], {v} * {v})",
    "call blend(M[::-1, 0], {a}[::-1], {v})",
    "sub {a}[::-1], M[1, :] * 0.5",
    "mul M[::2, ::-1], 1.25 + 0.5 * sin({b}[::-1])",
)
_HEADER = [
    "record Body",
    "    pos: f64[3]",
    "    m: f64",
    "end",
    "",
    "func turn(a: f64, b: f64, t: f64)",
    "    rot a, b, t",
    "    add a, sin(b)",
    "    mul b, 1.5 + 0.5 * cos(a)",
    "",
    "func down(a: f64, b: f64, n: i64)",
    "    if n > 0",
    "        add a, b * b / f64(n + 3)",
    "        uncall down(b, a, n - 1)",
    "    end",
    "",
    "func blend(p: f64[k], q: f64[k], t: f64)",
    "    add p, q * t",
    "    mul q, 1.25 + t * t",
    "",
    "func weigh(b: Body, e: f64)",
    "    add e, b.m * b.pos[1]",
    "    add b.pos, 0.25 * e",
    "    mul b.m, 1.5 + 0.5 * sin(e)",
    "",
]


class _SmoothWriter(BodyWriter):
    """Writes one random function body, keeping track of what must not be changed."""

    def __init__(self, rng: random.Random, size: int) -> None:
        names = {
            "f64": ["x0", "x1", "x2", "x3"],
            "fixed": ["q0", "q1"],
            "c128": ["z0", "z1"],
            "log64": ["g0", "g1"],
        }
        super().__init__(rng, names, 3 * size - 2)
        self.size = size
        self.indices = ["i0", "i1"]
        self.locked = {"x0", "x1"}

    def text(self) -> str:
        # x0 and x1 are read in many places, and therefore not changed within blocks.
        params = [f"{n}: {t}" for t, names in self.names.items() for n in names]
        params += ["i0: i64", "i1: i64", "w: f64", "u: f64[3]", "v: f64[3]", "M: f64[3, 3]"]
        params += ["idx: i64[3]", "p: Body", "s: stack[f64]"]
        self.body(1, self.size)
        self.line(1, "rot x0, x1, x2 * x3")
        return "\n".join([*_HEADER, f"func main({', '.join(params)})", *self.lines, ""])

    def body(self, depth: int, n: int) -> None:
        before = len(self.lines)
        super().body(depth, n)
        if len(self.lines) == before:
            self.line(depth, "add w, 0.25 * x0")

    def statement(self, depth: int) -> None:
        simple: list[Callable[[int], None]] = [
            self.update,
            self.update,
            self.factor,
            self.place,
            self.array,
            self.array,
            self.parts,
        ]
        nested: list[Callable[[int], None]] = [
            self.branch,
            self.loop,
            self.ancilla,
            self.routine,
            self.call,
            self.stacked,
        ]
        pick = self.rng.choice(simple if depth > 3 or self.rng.random() < 0.6 else nested)
        pick(depth)

    # -------------------------------------------------------------- pieces

    def two(self, t: str, y: str) -> dict[str, str]:
        names = [n for n in self.names[t] if n != y]
        return {k: self.rng.choice(names) for k in "ab"}

    def value(self, t: str, y: str) -> str:
        forms = {"f64": _FLOAT_FORMS, "c128": _COMPLEX_FORMS, "log64": _LOG_FORMS}.get(t, _FORMS)
        return self.rng.choice(forms).format(**self.two(t, y))

    def update(self, depth: int) -> None:
        t = self.rng.choice(["f64", "f64", "fixed", "c128"])
        if self.free(t):
            y = self.rng.choice(self.free(t))
            self.line(depth, f"{self.rng.choice(['add', 'sub'])} {y}, {self.value(t, y)}")

    def factor(self, depth: int) -> None:
        t = self.rng.choice(["f64", "c128", "log64"])
        if not self.free(t):
            return
        y, op = self.rng.choice(self.free(t)), self.rng.choice(["mul", "div"])
        if t == "log64":
            self.line(depth, f"{op} {y}, {self.value(t, y)}")
        else:
            a = self.two(t, y)["a"]
            by = f"1.5 + 0.5 * tanh({a})" if t == "f64" else f"1.5 + 0.1 * {a} * conj({a})"
            self.line(depth, f"{op} {y}, {by}")

    def place(self, depth: int) -> None:
        t = self.rng.choice(list(self.names))
        if len(self.free(t)) < 2:
            return
        a, b = self.rng.sample(self.free(t), 2)
        ops = ["swap {a}, {b}", "neg {a}", "cswap i0 > i1, {a}, {b}"]
        if t in ("f64", "c128"):
            ops += ["hadamard {a}, {b}", "rot {a}, {b}, x0", "irot {a}, {b}, x0 * x1"]
        if t == "c128":
            ops.append("conj {a}")
        self.line(depth, self.rng.choice(ops).format(a=a, b=b))

    def array(self, depth: int) -> None:
        if "arrays" in self.locked:
            return
        a, b = self.rng.sample(["u", "v"], 2)
        form = self.rng.choice(_ARRAY_FORMS).format(a=a, b=b, v=self.rng.choice(["x0", "x1"]))
        self.line(depth, form)

    def parts(self, depth: int) -> None:
        forms = ["call weigh(p, {x})", "uncall weigh(p, {x})", "add p.pos[idx[0]], {x} * p.m"]
        forms += ["swap p.m, {x}", "add z0.re, {x} * z1.im", "add {x}, abs(z1) + p.m * x0"]
        forms += ["add {x}, f64(q0) * 0.5", "sub q1, fixed({x} * 0.5)", "add {x}, log(g0)"]
        if self.free("f64") and not {"z0", "q1"} & self.locked:
            self.line(depth, self.rng.choice(forms).format(x=self.rng.choice(self.free("f64"))))

    def branch(self, depth: int) -> None:
        i = self.rng.choice(self.indices)
        conditions = [f"{i} > 1", f"{i} % 2 == 0", "x0 > x1", f"x0 * f64({i}) < x1"]
        self.line(depth, f"if {self.rng.choice(conditions)}")
        self.body(depth + 1, 3)
        if self.rng.random() < 0.5:
            self.line(depth, "else")
            self.body(depth + 1, 2)
        self.line(depth, "end")

    def loop(self, depth: int) -> None:
        self.fresh += 1
        i = f"k{self.fresh}"
        a, b, s = self.rng.randrange(3), self.rng.randrange(4), self.rng.choice([1, 2, 3])
        way = f"{b} downto {a}" if self.rng.random() < 0.3 else f"{a} to {b}"
        self.line(depth, f"for {i} = {way} step {s}")
        self.indices.append(i)
        self.body(depth + 1, 3)
        self.indices.remove(i)
        self.line(depth, "end")

    def ancilla(self, depth: int) -> None:
        self.fresh += 1
        t = self.rng.choice(["f64", "fixed", "c128"])
        x = f"t{self.fresh}"
        source, other = self.rng.choice(self.names[t]), self.rng.choice(self.names[t])
        begin = self.rng.choice(["{x}", "{x} * {x}", "sin({x} * 0.5)"]).format(x=source)
        self.line(depth, f"alloc {x}: {t} = {begin}")
        self.line(depth, f"add {x}, {other}")
        self.names[t].append(x)
        self.locking({x, source, other}, lambda: self.body(depth + 1, 3))
        self.names[t].remove(x)
        self.line(depth, f"sub {x}, {other}")
        self.line(depth, f"free {x} = {begin}")

    def routine(self, depth: int) -> None:
        self.fresh += 1
        r, x = f"r{self.fresh}", f"t{self.fresh}"
        if not self.free("f64"):
            return
        y = self.rng.choice(self.free("f64"))
        self.line(depth, f"routine {r}")
        self.line(depth + 1, f"alloc {x}: f64 = {self.value('f64', y)}")
        self.line(depth + 1, f"mul {x}, 1.5 + x0 * x0")
        self.line(depth, "end")
        self.line(depth, f"add {y}, {x} * x1")
        self.line(depth, f"undo {r}")

    def call(self, depth: int) -> None:
        word, names = self.rng.choice(["call", "uncall"]), self.free("f64")
        if len(names) >= 2:
            a, b = self.rng.sample(names, 2)
            by = self.rng.choice(["x0", "x0 * x1", "x1 + 0.5"])
            n = self.rng.choice(["3", *self.indices])
            forms = (f"turn({a}, {b}, {by})", f"down({a}, {b}, {n})")
            self.line(depth, f"{word} {self.rng.choice(forms)}")

    def stacked(self, depth: int) -> None:
        self.stacked_of("f64", depth)


def program(seed: int, size: int = 9) -> str:
    """The text of the random program number `seed`, of `size` statements, and those inside."""
    return _SmoothWriter(random.Random(seed), size).text()


def inputs(seed: int) -> dict[str, Any]:
    """Inputs for the random program number `seed`."""
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> Any:
        x = rng.uniform(-1.0, 1.0, shape)
        return x if shape else float(x)

    return {
        **{f"x{k}": some() for k in range(4)},
        **{f"q{k}": round(some() * 1024) / 1024 for k in range(2)},
        **{f"z{k}": complex(some(), some()) for k in range(2)},
        **{f"g{k}": LogNumber(some()) for k in range(2)},
        "i0": int(rng.integers(0, 5)),
        "i1": int(rng.integers(0, 5)),
        "w": some(),
        "u": some(3),
        "v": some(3),
        "M": some(3, 3),
        "idx": np.array([[0, 1, 0], [2, 0, 2], [1, 2, 2]][int(rng.integers(0, 3))]),
        "p": {"pos": some(3), "m": some()},
        "s": [some(), some()],
    }
