"""Random loops over arrays, some of whose iterations need each other and some not.

`loop(seed)` gives a program with one function `main`; `inputs(seed)` arguments for it.  What a
loop must not do (change what it reads, leave an array's bounds) is left in: the assembler or the
run refuses it.
"""

from __future__ import annotations

import random

import numpy as np

N = 131
"""The length of all arrays."""
_ARRAYS = {
    "x": "f64",
    "y": "f64",
    "a": "i64",
    "b": "i64",
    "u": "u8",
    "g": "f32",
    "q": "fixed",
    "z": "c128",
    "w": "c128",
    "k": "log64",
    "o": "bool",
}
_SCALARS = {"s": "f64", "r": "f64", "t": "i64", "v": "u8", "h": "f32", "p": "fixed", "e": "c128"}
_INDICES = (*["i"] * 20, "i + 1", "i - 1", "i + 9", "n - 1 - i", "2 * i", "d", "3", "i + d")
_MEETING = {"f64": "y[i]", "i64": "b[i]"}
"""Where statements meet."""
_REAL = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} / {1}",
    "{0}",
    "-{0}",
    "min({0}, {1})",
    "max({0}, {1})",
    "abs({0})",
    "sqrt({0})",
    "exp({0})",
    "{0} ** 2",
    "{0} % {1}",
    "{0} // {1}",
    "atan2({0}, {1})",
    "relu({0})",
    "sign({0})",
    "floor({0})",
    "select({0} < {1}, {1}, {0})",
)
_FORMS = {
    "f64": (*_REAL, "f64(i)", "log({0})", "f64(a[{i}])"),
    "f32": _REAL,
    "fixed": tuple(f for f in _REAL if "log" not in f),
    "i64": (
        "{0} + {1}",
        "{0} * {1}",
        "{0} - {1}",
        "{0} // {1}",
        "{0} % 7",
        "{0} & {1}",
        "{0} << 3",
        "{0} >> 2",
        "i",
        "i64(x[{i}])",
        "rotl({0}, {1})",
        "select({0} == {1}, 1, {0})",
        "max({0}, {1})",
    ),
    "u8": ("{0} + {1}", "{0} * {1}", "{0} ^ {1}", "{0} // {1}", "~{0}", "{0} << 9", "u8({2})"),
    "c128": ("{0} * {1}", "{0} + {1}", "conj({0})", "{0} / {1}", "-{0}", "exp({0})"),
    "log64": ("{0} * {1}", "{0} / {1}", "{0} + {1}", "sqrt({0})"),
    "bool": ("{0} ^ {1}", "a[{i}] > 3", "not {0}", "{0} | {1}"),
}


class RandomLoop:
    """Writes one function with a loop."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.locals: dict[str, str] = {}
        self.fresh = 0
        rng = self.rng
        self.still = {x for x in _ARRAYS if rng.random() < 0.5}
        """Arrays that are mostly read."""
        self.narrow = rng.random() < 0.35
        """Whether the statements meet in few elements, most of them under conditions."""
        params = [f"{x}: {t}[n]" for x, t in _ARRAYS.items()]
        params += ["idx: i64[n]", "d: i64"] + [f"{x}: {t}" for x, t in _SCALARS.items()]
        low = rng.choice(["0", "0", "1", "2"])
        high = rng.choice(["n - 1", "n - 1", "n - 2", "n - 11", "n // 2 - 1"])
        step = rng.choice(["", "", "", " step 2", " step 3"])
        head = f"for i = {low} to {high}{step}"
        if rng.random() < 0.3:
            head = f"for i = {high} downto {low}{step}"
        self.line(1, head)
        for _ in range(rng.randrange(2, 7) if self.narrow else rng.randrange(1, 5)):
            self.statement(2)
        self.line(1, "end")
        self.text = "\n".join([f"func main({', '.join(params)})", *self.lines, ""])

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def index(self) -> str:
        if self.narrow and self.rng.random() < 0.8:
            return "i"
        if self.rng.random() < 0.04:
            return f"idx[{self.rng.choice(['i', 'n - 1 - i'])}]"
        return self.rng.choice(_INDICES)

    def place(self, t: str, changed: bool = False) -> str:
        rng = self.rng
        if self.narrow and t in _MEETING and rng.random() < (0.8 if changed else 0.3):
            return _MEETING[t]
        if rng.random() < (0.1 if changed else 0.2):
            names = [x for x, u in {**_SCALARS, **self.locals}.items() if u == t]
            if names:
                return rng.choice(names)
        if t == "f64" and rng.random() < 0.1:
            return f"{rng.choice('zw')}[{self.index()}].{rng.choice(['re', 'im'])}"
        names = [x for x, u in _ARRAYS.items() if u == t]
        fitting = [x for x in names if (x in self.still) != changed]
        return (
            f"{rng.choice(fitting if fitting and rng.random() < 0.85 else names)}[{self.index()}]"
        )

    def operand(self, t: str) -> str:
        if self.rng.random() < 0.15 and t not in ("bool", "log64"):
            return f"{self.rng.randrange(1, 5)}'{t}" if t != "f64" else "1.5"
        return self.place(t)

    def value(self, t: str) -> str:
        form = self.rng.choice(_FORMS[t])
        return form.format(self.operand(t), self.operand(t), self.place("i64"), i=self.index())

    def statement(self, depth: int) -> None:
        rng = self.rng
        kinds = [self.update] * 6 + [self.swap, self.rotate, self.flip]
        if depth < 4:
            kinds += [self.branch] * (9 if self.narrow else 1) + [self.ancilla, self.ancilla]
        rng.choice(kinds)(depth)

    def update(self, depth: int) -> None:
        few = ["f64", "i64"]
        t = self.rng.choice(few if self.narrow else few[:1] * 4 + few[1:] * 2 + list(_FORMS))
        op = self.rng.choice(["add", "add", "sub"])
        if t == "bool" or (t in ("i64", "u8") and self.rng.random() < 0.3):
            op = "xor"
        elif t == "log64" or (t in ("f64", "f32", "c128") and self.rng.random() < 0.15):
            op = self.rng.choice(["mul", "div"])
        self.line(depth, f"{op} {self.place(t, True)}, {self.value(t)}")

    def swap(self, depth: int) -> None:
        t = self.rng.choice(list(_FORMS))
        self.line(depth, f"swap {self.place(t, True)}, {self.place(t, True)}")

    def rotate(self, depth: int) -> None:
        a, b = self.place("f64", True), self.place("f64", True)
        self.line(depth, f"rot {a}, {b}, {self.operand('f64')}")

    def flip(self, depth: int) -> None:
        t = self.rng.choice(["f64", "i64"] if self.narrow else ["f64", "i64", "c128"])
        self.line(depth, f"neg {self.place(t, True)}")

    def branch(self, depth: int) -> None:
        a = f"a[{self.index()}]"
        cond = self.rng.choice(
            [
                f"{a} > 2",
                "i > 4",
                "i > 0 and x[i - 1] > 0.5",
                f"{a} % 3 == 0",
                "a[i] == 0 or 9 // a[i] > 1",
            ]
        )
        self.line(depth, f"if {cond}")
        self.statement(depth + 1)
        if self.rng.random() < 0.4:
            self.line(depth, "else")
            self.statement(depth + 1)
        self.line(depth, "end")

    def ancilla(self, depth: int) -> None:
        t = self.rng.choice(["f64", "f64", "i64", "fixed", "f32"])
        name, value, more = f"l{self.fresh}", self.value(t), self.value(t)
        self.fresh += 1
        self.line(depth, f"alloc {name}: {t} = {value}")
        self.line(depth, f"add {name}, {more}")
        self.locals[name] = t
        self.statement(depth)
        del self.locals[name]
        self.line(depth, f"sub {name}, {more}")
        self.line(depth, f"free {name} = {value}")


def inputs(seed: int) -> dict[str, object]:
    """Arguments: small numbers, with zeros among them, and indices that repeat or do not."""
    rng = np.random.default_rng(seed)
    out: dict[str, object] = {
        "x": rng.normal(size=N) * 2,
        "y": rng.normal(size=N) + 3,
        "a": rng.integers(-5, 50, N),
        "b": rng.integers(1, 9, N),
        "u": rng.integers(0, 255, N).astype(np.uint8),
        "g": (rng.normal(size=N) + 2).astype(np.float32),
        "q": rng.integers(1, 1 << 45, N),
        "z": rng.normal(size=N) + 1j * rng.normal(size=N),
        "w": rng.normal(size=N) + 1j,
        "k": rng.normal(size=N),
        "o": rng.integers(0, 2, N).astype(bool),
        "idx": rng.permutation(N) if seed % 2 else rng.integers(0, N, N),
        "d": int(rng.choice([0, 1, 2, 12, 30, -1])),
        "s": 0.5,
        "r": -0.0,
        "t": int(rng.integers(-5, 5)),
        "v": 7,
        "h": 0.25,
        "p": 1.5,
        "e": 1 - 2j,
    }
    return out
