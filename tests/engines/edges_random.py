"""Random short programs about the limits of every type: in values, bounds, steps, shifts, indices.

`Edges(seed)` has a text with one function `main`, and `inputs()` for it.  What they must not do
(divide by zero, leave a range) is left in: all engines must say the same about it.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

LIMITS = {
    "i32": (-(1 << 31), (1 << 31) - 1),
    "i64": (-(1 << 63), (1 << 63) - 1),
    "u8": (0, 255),
    "u32": (0, (1 << 32) - 1),
    "u64": (0, (1 << 64) - 1),
}
INTEGERS = tuple(LIMITS)
REALS = ("f64", "f32", "fixed", "fixed(0)", "fixed(62)", "log64")
TYPES = (*INTEGERS, *REALS, "c128", "bool")
DTYPES = {"f64": "f8", "f32": "f4", "c128": "c16", "log64": "f8", "bool": "?"}
DTYPES |= dict.fromkeys(("fixed", "fixed(0)", "fixed(62)"), "i8")
DTYPES |= {"i32": "i4", "i64": "i8", "u8": "u1", "u32": "u4", "u64": "u8"}
LETTERS = dict(
    zip(TYPES, ["m", "i", "u", "v", "w", "x", "g", "q", "o", "e", "k", "z", "b"], strict=True)
)
POWERS = (7, 8, 15, 16, 23, 24, 31, 32, 43, 52, 53, 61, 62, 63, 64)
FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, 3.0, float("inf"), float("-inf"), float("nan")),
    *(5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308),
    *(1.401298464324817e-45, 1.1754943508222875e-38, 3.4028234663852886e38, 1e-45, 1e-300, 1e300),
    *(1 + 2.0**-52, 1 - 2.0**-53, 1 + 2.0**-23, 1 - 2.0**-24, 2.0**-43, 2.0**-44, 2.0**-62),
    *(sign * (2.0**k + d) for k in POWERS for d in (-1.0, -0.5, 0.0, 0.5) for sign in (1, -1)),
)
ANY = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} // {b}", "{a} % {b}", "-{a}", "abs({a})")
ANY += ("sign({a})", "square({a})", "min({a}, {b})", "max({a}, {b})", "relu({a})")
ANY += ("select({a} < {b}, {a}, {b})", "select({a} == {b}, {b}, {a})", "{a}", "{a} ** {i}")
BITS = ("{a} & {b}", "{a} | {b}", "{a} ^ {b}", "~{a}", "{a} << {k}", "{a} >> {k}")
BITS += ("rotl({a}, {k})", "rotr({a}, {k})", "{a} << {s}", "{a} >> {s}", "{a} ** {s}")
BITS += ("{a} // {s}", "{a} % {s}", "{a} * {s}")
FUNCTIONS = ("exp({a})", "log({a})", "sin({a})", "tan({a})", "atan({a})", "asin({a})", "acosh({a})")
FUNCTIONS += ("tanh({a})", "cosh({a})", "cbrt({a})", "erf({a})", "expm1({a})", "log2({a})")
FUNCTIONS += ("atan2({a}, {b})", "hypot({a}, {b})", "versor({a}, {b})", "{a} ** {b}", "{a} ** 3")
FUNCTIONS += ("sigmoid({a})", "exp2({a})", "leg({a})")
PARTS = ("{a} / {b}", "{a} ** {b}", "{a} ** 3", "exp({a})", "log({a})", "sqrt({a})", "sin({a})")
PARTS += ("tan({a})", "asin({a})", "acos({a})", "atan({a})", "cosh({a})", "sech({a})", "leg({a})")
PARTS += ("log1p({a})", "expm1({a})", "log2({a})")
FORMS = {
    **dict.fromkeys(INTEGERS, (*ANY, *BITS)),
    **dict.fromkeys(REALS, (*ANY, "{a} / {b}", "floor({a})", "sqrt({a})", "{a} ** 2", "{a} ** -1")),
    "c128": ("{a} + {b}", "{a} - {b}", "{a} * {b}", "-{a}", "conj({a})", "{a}", "square({a})"),
    "bool": ("{a} ^ {b}", "{a} | {b}", "{a} & {b}", "not {a}", "{c}", "{c} and {d}", "{c} or {d}"),
    "log64": ("{a} * {b}", "{a} / {b}", "{a}", "max({a}, {b})", "sqrt({a})"),
}
LENGTH = 5


def near(rng: random.Random, t: str) -> int:
    """An integer of a type near one of its limits, or a small one."""
    low, high = LIMITS[t]
    kind = rng.randrange(8)
    if kind < 2:
        v = high - rng.randrange(4)
    elif kind == 2:
        v = low + rng.randrange(4)
    elif kind == 3:
        v = (1 << rng.choice(POWERS)) + rng.randrange(-3, 4)
        v = v if rng.random() < 0.5 else -v
    elif kind == 4:
        v = rng.randrange(60, 70)
    else:
        v = rng.randrange(-3, 7)
    return v if low <= v <= high else rng.randrange(4)


def raw(rng: random.Random, t: str) -> Any:
    """A value of a type as an array holds it."""
    if t in INTEGERS:
        return near(rng, t)
    if t.startswith("fixed"):
        return near(rng, "i64")
    if t == "bool":
        return rng.random() < 0.5
    if t == "c128":
        return complex(rng.choice(FLOATS), rng.choice(FLOATS))
    x = rng.choice(FLOATS)
    with np.errstate(all="ignore"):
        return float(np.float32(x)) if t == "f32" else x


def named(t: str) -> str:
    """The conversion to a type, as it is called."""
    return f"`{t}`" if "(" in t else t


def literal(t: str, v: Any) -> str:
    """A raw value as the assembly language writes it."""
    if t == "c128":
        return f"({v.real!r}, {v.imag!r})'c128"
    if t == "bool":
        return str(v).lower()
    return f"({v!r}'{t})" if isinstance(v, int) and v < 0 else f"{v!r}'{t}"


class Edges:
    """Writes one function."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.given: dict[str, Any] = {}
        self.fresh = 0
        self.locked: set[str] = set()
        self.locals: dict[str, list[str]] = {t: [] for t in TYPES}
        for t in TYPES:
            for k in range(2):
                self.given[f"{LETTERS[t]}{k}"] = (t, raw(self.rng, t))
            values = [raw(self.rng, t) for _ in range(LENGTH)]
            self.given[f"{LETTERS[t]}s"] = (t, values)
        self.bounds: dict[str, int] = {}
        for _ in range(self.rng.randrange(1, 4)):
            self.statement(1)
        params = [
            f"{n}: {t}{'[]' if isinstance(v, list) else ''}".replace("[]", f"[{n}n]")
            for n, (t, v) in self.given.items()
        ]
        params += [f"{n}: i64" for n in self.bounds]
        self.text = "\n".join([f"func main({', '.join(params)})", *self.lines, ""])

    def inputs(self, other: int = 0) -> dict[str, Any]:
        """Raw values of the parameters; all but the loops' bounds are others for each `other`."""
        out: dict[str, Any] = dict(self.bounds)
        rng = random.Random(other)
        for name, (t, v) in self.given.items():
            if isinstance(v, list):
                values = [x if not other or rng.random() < 0.5 else raw(rng, t) for x in v]
                out[name] = np.array(values, DTYPES[t])
            else:
                out[name] = v if not other or rng.random() < 0.5 else raw(rng, t)
        return out

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # ------------------------------------------------------------ values

    def atom(self, t: str, avoid: str = "") -> str:
        rng = self.rng
        pick = rng.random()
        if pick < 0.3:
            return literal(t, raw(rng, t))
        if pick < 0.45 and not avoid.startswith(f"{LETTERS[t]}s"):
            return f"{LETTERS[t]}s[{self.index()}]"
        names = [n for n, (u, v) in self.given.items() if u == t and not isinstance(v, list)]
        names = [n for n in [*names, *self.locals[t]] if n != avoid]
        return rng.choice(names)

    def index(self) -> str:
        rng = self.rng
        if rng.random() < 0.7:
            return str(rng.randrange(LENGTH))
        if rng.random() < 0.5:
            return self.integer(rng.choice(INTEGERS))
        return f"{self.integer('i64')} & 3"

    def integer(self, t: str) -> str:
        names = [n for n, (u, v) in self.given.items() if u == t and not isinstance(v, list)]
        names += self.locals[t]
        return self.rng.choice(names) if self.rng.random() < 0.6 else literal(t, near(self.rng, t))

    def expression(self, t: str, avoid: str = "", deep: int = 1) -> str:
        rng = self.rng
        if rng.random() < 0.2 and t != "bool":
            u = rng.choice([u for u in TYPES if u != t and (u != "c128" or t == "c128")])
            return f"{named(t)}({self.expression(u, avoid, deep - 1)})"

        def part() -> str:
            if deep > 0 and rng.random() < 0.3:
                return f"({self.expression(t, avoid, deep - 1)})"
            return self.atom(t, avoid)

        form = rng.choice(self.forms(t))
        return form.format(
            a=part(),
            b=part(),
            i=self.atom("i64", avoid),
            k=self.atom("i64", avoid),
            s=rng.choice([0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 65]),
            c=self.condition(avoid),
            d=self.condition(avoid),
        )

    def forms(self, t: str) -> tuple[str, ...]:
        """Arithmetic, or where there are any one time in four functions."""
        functions = PARTS if t == "c128" else FUNCTIONS if t in REALS and t != "log64" else ()
        return functions if functions and self.rng.random() < 0.25 else FORMS[t]

    def condition(self, avoid: str = "") -> str:
        t = self.rng.choice([t for t in TYPES if t not in ("c128", "bool")])
        op = self.rng.choice(["<", "<=", "==", "!=", ">", ">="])
        return f"({self.atom(t, avoid)} {op} {self.atom(t, avoid)})"

    def place(self, t: str) -> str:
        names = [n for n, (u, v) in self.given.items() if u == t and not isinstance(v, list)]
        names = [n for n in names if n not in self.locked]
        if names and self.rng.random() < 0.6:
            return self.rng.choice(names)
        return f"{LETTERS[t]}s[{self.index()}]"

    # ------------------------------------------------------------ statements

    def statement(self, depth: int) -> None:
        rng = self.rng
        kinds = [self.update, self.update, self.flip, self.whole, self.slices, self.rotate]
        if depth < 3:
            kinds += [self.loop, self.loop, self.branch, self.ancilla, self.counter, self.stack]
        rng.choice(kinds)(depth)

    def update(self, depth: int) -> None:
        t = self.rng.choice(TYPES)
        y = self.place(t)
        ops = {"bool": ["xor"], "log64": ["mul", "div"]}.get(t, ["add", "sub"])
        if t in INTEGERS:
            ops = [*ops, "xor"]
        elif t in ("f64", "f32", "c128"):
            ops = [*ops, "mul", "div"]
        self.line(depth, f"{self.rng.choice(ops)} {y}, {self.expression(t, y)}")

    def flip(self, depth: int) -> None:
        t = self.rng.choice([t for t in TYPES if t != "log64"])
        ops = {"bool": ["not"], "c128": ["neg", "conj"]}.get(t, ["neg", "inc", "dec"])
        if t in INTEGERS:
            ops = [*ops, "not"]
        if t in INTEGERS and self.rng.random() < 0.5:
            y = self.place(t)
            op = self.rng.choice(["rol", "ror"])
            self.line(depth, f"{op} {y}, {self.atom('i64', y)}")
        elif self.rng.random() < 0.3:
            self.line(depth, f"swap {self.place(t)}, {self.place(t)}")
        else:
            self.line(depth, f"{self.rng.choice(ops)} {self.place(t)}")

    def rotate(self, depth: int) -> None:
        t = self.rng.choice(["f64", "f32"])
        a, b = f"{LETTERS[t]}0", f"{LETTERS[t]}1"
        angle = self.rng.choice([literal(t, raw(self.rng, t)), f"{LETTERS[t]}s[1]"])
        if not {a, b} & self.locked:
            self.line(depth, self.rng.choice([f"rot {a}, {b}, {angle}", f"hadamard {a}, {b}"]))

    def whole(self, depth: int) -> None:
        """An instruction on a whole array."""
        t = self.rng.choice(TYPES)
        y = f"{LETTERS[t]}s"
        u = self.rng.choice([u for u in TYPES if u != t and u != "c128"])
        other = f"{named(t)}({LETTERS[u]}s)"
        form = self.rng.choice([*self.forms(t), other]).format(
            a=f"{y}[0:2]",
            b=f"{y}[1:3]" if self.rng.random() < 0.7 else self.atom(t, y),
            i=self.rng.choice([self.atom("i64", y), "is[0:2]"]),
            k="is[0:2]",
            s=self.rng.choice([0, 1, 8, 31, 32, 63, 64]),
            c=f"({y}[0:2] == {y}[1:3])",
            d=f"({y}[0:2] != {y}[1:3])",
        )
        op = {"bool": "xor", "log64": "mul"}.get(t, self.rng.choice(["add", "sub"]))
        dst = y if form == other else f"{y}[3:5]"
        self.line(depth, f"{op} {dst}, {form}")

    def slices(self, depth: int) -> None:
        t = self.rng.choice(INTEGERS)
        lo, hi = (self.edge_or(self.rng.randrange(LENGTH + 1)) for _ in "ab")
        self.line(depth, f"add {LETTERS[t]}s[{lo}:{hi}], {literal(t, raw(self.rng, t))}")

    def edge_or(self, v: int) -> str:
        return str(v) if self.rng.random() < 0.7 else self.integer("i64")

    def bound(self, v: int) -> str:
        """An i64 as a literal or as a parameter of its own."""
        if not -(1 << 63) <= v < 1 << 63:
            v = 0
        if self.rng.random() < 0.5:
            return f"({v})" if v < 0 else str(v)
        self.fresh += 1
        self.bounds[f"n{self.fresh}"] = v
        return f"n{self.fresh}"

    def loop(self, depth: int) -> None:
        """A counting loop of few rounds, wherever it begins, with any step."""
        rng = self.rng
        step = rng.choice([1, 1, 1, 2, 3, 7, near(rng, "i64"), 1 << rng.randrange(58, 63)])
        step = step if step > 0 else 1
        rounds = rng.randrange(-2, 7)
        down = rng.random() < 0.4
        low, high = LIMITS["i64"]
        ends = [rng.randrange(-3, 4), low + rng.randrange(4), high - rng.randrange(4)]
        last = rng.choice(ends)
        first = last - rounds * step if not down else last + rounds * step
        last += rng.choice([0, 0, 0, 1, -1]) * (step // 2)
        if not (low <= first <= high and low <= last <= high):
            first, last = (low, low + 3) if down == (rng.random() < 0.5) else (high - 3, high)
        self.fresh += 1
        i = f"j{self.fresh}"
        by = f" step {self.bound(step)}" if step > 1 or rng.random() < 0.2 else ""
        way = "downto" if down else "to"
        base = min(first, last)
        self.line(depth, f"for {i} = {self.bound(first)} {way} {self.bound(last)}{by}")
        self.locals["i64"].append(i)
        where = [
            i,
            f"{i} - {self.bound(base)}",
            f"({i} - {self.bound(base)}) // {self.bound(step)}",
        ]
        where += [f"{i} + {self.bound(near(rng, 'i64'))}", f"{i} * {self.bound(near(rng, 'i64'))}"]
        for _ in range(rng.randrange(1, 3)):
            t = rng.choice(TYPES)
            kind = rng.randrange(3)
            if kind == 0 or t == "bool":
                self.statement(depth + 1)
            elif kind == 1 or t == "log64":
                self.line(
                    depth + 1,
                    f"add i0, {rng.choice(where)}" if "i0" not in self.locked else "inc w0",
                )
            else:
                at, other = f"{LETTERS[t]}s[{rng.choice(where)}]", rng.choice(TYPES[:-1])
                values = [f"{named(t)}({LETTERS[u]}1)" for u in (other, t) if u != "c128" or t == u]
                self.line(depth + 1, f"add {at}, {rng.choice([*values, f'{named(t)}({i})'])}")
        self.locals["i64"].remove(i)
        self.line(depth, "end")

    def counter(self, depth: int) -> None:
        """A `while` that counts in any integer type, round its end too."""
        rng = self.rng
        t = rng.choice(INTEGERS)
        low, high = LIMITS[t]
        start = near(rng, t)
        step, rounds = rng.choice([1, 1, 2, 3, near(rng, t) or 1]), rng.randrange(6)
        end = (start + step * rounds - low) % (high - low + 1) + low
        self.fresh += 1
        i = f"j{self.fresh}"
        word = rng.choice(["add", "sub"])
        if word == "sub":
            end = (start - step * rounds - low) % (high - low + 1) + low
        first, last = literal(t, start), literal(t, end)
        if rng.random() < 0.3 and rounds:
            up = (word == "add") == (step > 0)
            test = f"{i} {'<' if up else '>'} {last}, {i} {'>' if up else '<'} {first}"
        else:
            test = f"{i} != {last}, {i} != {first}"
        self.line(depth, f"alloc {i}: {t} = {first}")
        self.line(depth, f"while {test}")
        self.locals[t].append(i)
        inner = rng.choice(["i64", "u64", "f64", "fixed(0)"])
        y = self.place(inner)
        self.line(depth + 1, f"add {y}, {named(inner)}({i})")
        self.locals[t].remove(i)
        self.line(depth + 1, f"{word} {i}, {literal(t, step)}")
        self.line(depth, "end")
        self.line(depth, f"free {i} = {last}")

    def branch(self, depth: int) -> None:
        t = self.rng.choice([t for t in TYPES if t not in ("c128", "bool")])
        a, b = f"{LETTERS[t]}0", f"{LETTERS[t]}1"
        before, self.locked = self.locked, self.locked | {a, b}
        self.line(depth, f"if {a} {self.rng.choice(['<', '<=', '==', '!='])} {b}")
        self.statement(depth + 1)
        if self.rng.random() < 0.5:
            self.line(depth, "else")
            self.statement(depth + 1)
        self.line(depth, "end")
        self.locked = before

    def ancilla(self, depth: int) -> None:
        rng = self.rng
        t = rng.choice(TYPES)
        self.fresh += 1
        x = f"j{self.fresh}"
        if rng.random() < 0.3:
            n = rng.choice(
                [str(rng.randrange(4)), self.integer("i64"), self.bound(rng.randrange(4))]
            )
            value = literal(t, raw(rng, t))
            self.line(depth, f"alloc {x}: {t}[{n}] = {value}")
            self.line(depth, f"add w1, u64(len({x}))" if "w1" not in self.locked else "inc vs[0]")
            other = literal(t, raw(rng, t)) if rng.random() < 0.1 else value
            self.line(depth, f"free {x} = {other}")
            return
        v, more = literal(t, raw(rng, t)), literal(t, raw(rng, t))
        op, undo = {"bool": ("xor", "xor"), "log64": ("mul", "div")}.get(t, ("add", "sub"))
        self.line(depth, f"alloc {x}: {t} = {v}")
        self.line(depth, f"{op} {x}, {more}")
        self.locals[t].append(x)
        self.statement(depth)
        self.locals[t].remove(x)
        self.line(depth, f"{undo} {x}, {more}")
        self.line(depth, f"free {x} = {v}")

    def stack(self, depth: int) -> None:
        t = self.rng.choice(TYPES)
        self.fresh += 1
        s, a = f"j{self.fresh}", self.place(t)
        b = self.rng.choice([a, self.place(t)])
        self.line(depth, f"alloc {s}: stack[{t}]")
        self.line(depth, f"push {a}, {s}")
        self.line(depth, f"pop {b}, {s}")
        self.line(depth, f"free {s}")
