"""What the texts of random programs are put together from, by type."""

from __future__ import annotations

import random
from typing import Any

from rvm.numbers import LogNumber

LETTERS = {
    "i64": "p",
    "u8": "u",
    "f64": "x",
    "fixed": "q",
    "i32": "m",
    "bool": "b",
    "u32": "v",
    "u64": "l",
    "f32": "h",
    "c128": "z",
    "log64": "g",
    "fixed(30)": "r",
}
"""The scalar types that variables have, and what their names begin with."""
_INTEGERS = ("i64", "i32", "u8", "u32", "u64")
_REALS = ("f64", "f32", "fixed", "fixed(30)")

_REAL = (
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
_MORE_REAL = (
    *_REAL,
    "{a} * {b}",
    "{a} / {b}",
    "{a} // {b}",
    "{a} % {b}",
    "{a} ** 3",
    "square({a})",
    "exp({a})",
    "log(abs({a}))",
    "atan2({a}, {b})",
    "hypot({a}, {b})",
    "floor({a})",
    "sign({a}) * {b}",
    "-relu({a})",
    "max({a}, -{b})",
)
_INTEGER = (
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
_MORE_INTEGER = (
    *_INTEGER,
    "{a} << 3",
    "{a} >> 65",
    "{a} << ({b} & 7)",
    "~{a}",
    "{a} // {b}",
    "{a} % {b}",
    "{a} ** 2",
    "abs({a})",
    "rotl({a}, 5)",
    "rotr({a}, -1)",
    "sign({a}) + {b}",
)
FORMS = {
    "i64": _MORE_INTEGER,
    "i32": _MORE_INTEGER,
    "u8": _MORE_INTEGER,
    "u32": _MORE_INTEGER,
    "u64": _MORE_INTEGER,
    "f64": _MORE_REAL,
    "f32": _MORE_REAL,
    "fixed": _MORE_REAL,
    "fixed(30)": _MORE_REAL,
    "bool": (
        "{a}",
        "{a} ^ {b}",
        "not {a}",
        "{a} and {b}",
        "{a} or not {b}",
        "{a} | {b}",
    ),
    "c128": (
        "{a}",
        "{a} + {b}",
        "{a} * {b}",
        "{a} / {b}",
        "conj({a})",
        "-{a}",
        "exp({a})",
        "sin({a}) * 0.25",
        "sqrt({a})",
        "complex(abs({a}), 0.5)",
        "{a} ** 2",
        "log({a})",
    ),
    "log64": (
        "{a}",
        "{a} * {b}",
        "{a} / {b}",
        "{a} + {b}",
        "sqrt({a})",
        "square({a})",
        "{a} ** 0.5",
    ),
}
"""Expressions of two operands, by type."""
CLASSIC_FORMS = {
    **dict.fromkeys(_INTEGERS, _INTEGER),
    **dict.fromkeys(_REALS, _REAL),
}
"""Those that seldom fail."""
_ORDER = ("<", "<=", ">", ">=", "!=", "==")
CONDITIONS = dict.fromkeys(LETTERS, _ORDER) | {"bool": ("!=", "=="), "c128": ("!=", "==")}

_FLIP_REAL = ("neg {y}", "neg {y}", "neg {y}", "neg {y}")
_FLIP_INTEGER = ("neg {y}", "inc {y}", "dec {y}", "not {y}", "rol {y}, {k}", "ror {y}, {k}")
_TURNS = ("rot {y}, {o}, {v}", "irot {y}, {o}, {v}", "hadamard {y}, {o}")
FLIPS = {
    **dict.fromkeys(_INTEGERS, _FLIP_INTEGER),
    **dict.fromkeys(_REALS, _FLIP_REAL),
    "f64": (*_FLIP_REAL, *_TURNS),
    "c128": ("neg {y}", "conj {y}", "neg {y}", "conj {y}", *_TURNS),
    "bool": ("not {y}",) * 4,
    "log64": ("neg {y}",) * 4,
}
"""Instructions that change numbers in place; the first four need one number only."""

_CLASSIC_ARRAYS = (
    "neg {a}",
    "add {a}, {v}",
    "swap {a}[0], {a}[3]",
    "add {a}[0:2], {a}[2:4]",
    "sub {a}[1], sum({a}[2:4])",
)
_ANY = ("swap {a}[0], {a}[3]", "swap {a}[0:2], {a}[2:4]", "swap {a}[{i}], {a}[{j}]")
_NUMBERS = (
    *_ANY,
    "neg {a}",
    "add {a}, {v}",
    "add {a}[0:2], {a}[2:4]",
    "sub {a}[1:3], {v}",
    "add {a}[{i}], {a}[{j}]",
    "add {a}[::2], {a}[:0:-2]",
    "add {a}[:{i}:-1], {v}",
    "add {a}[::2], {a}[{i}:{j}:2]",
    "swap {a}[0:2], {a}[:1:-1]",
    "add {a}[0:2], select({a}[2:4] == {v}, {a}[2:4], {v})",
    "sub {a}[{i}], {v}",
)
_SUMS = (
    "sub {a}[1], sum({a}[2:4])",
    "add {a}[0:2], scan_left({a}[2:4])",
    "add {a}[3], dot({a}[0:2], {a}[1:3])",
)
_FACTORS = ("mul {a}, {v}", "div {a}[0:2], {v}", "mul {a}[{i}], {a}[{j}]")
ARRAY_FORMS = {
    **dict.fromkeys(_INTEGERS, (*_NUMBERS, *_SUMS, "xor {a}, {v}", "not {a}[1:3]")),
    **dict.fromkeys(_REALS, (*_NUMBERS, *_SUMS)),
    "f64": (*_NUMBERS, *_FACTORS, "add {a}[0:2], abs({a}[2:4])", "add {a}[0:2], sqrt({a}[2:4])"),
    "f32": (*_NUMBERS, *_FACTORS, "add {a}[0:2], min({a}[2:4], {v})"),
    "c128": (*_NUMBERS, *_FACTORS, "conj {a}", "add {a}.re, 0.5", "sub {a}.im[0], {a}[1].re"),
    "log64": (*_ANY, "neg {a}", *_FACTORS),
    "bool": (*_ANY, "xor {a}, {v}", "not {a}", "xor {a}[0:2], {a}[2:4] and {v}"),
    "classic": _CLASSIC_ARRAYS,
}
"""Instructions on an array of four, by its type."""

HEADERS = {
    "mix": [
        "func mix(p: i64, q: i64)",
        "    add p, q * 3",
        "    xor q, 5",
        "    if q > 2",
        "        add p, 7",
        "    end",
        "    sub q, 1",
        "",
    ],
    "turn": [
        "func turn(a: f64, b: f64, t: f64)",
        "    rot a, b, t",
        "    add a, sin(b)",
        "",
    ],
    "count": [
        "func count(p: i64, n: i64)",
        "    if n > 0",
        "        alloc k: i64 = n - 1",
        "        add p, n * n",
        "        call count(p, k)",
        "        free k = n - 1",
        "    end",
        "",
    ],
    "down": [
        "func down(a: f64, b: f64, n: i64)",
        "    if n > 0",
        "        add a, b * b / f64(n + 3)",
        "        uncall down(b, a, n - 1)",
        "    end",
        "",
    ],
    "fill": [
        "func fill(y: i64[n], d: i64)",
        "    for i = n - 1 downto 0",
        "        add y[i], d * i",
        "        xor y[i], 1 << i",
        "    end",
        "",
    ],
}
"""Functions that programs call, and that may call themselves."""

EXTREME: dict[str, tuple[Any, ...]] = {
    **{t: (0, 1, (1 << int(t[1:])) - 1, 1 << (int(t[1:]) - 1)) for t in ("u8", "u32", "u64")},
    "i32": (0, -1, 2**31 - 1, -(2**31)),
    "i64": (0, -1, 2**63 - 1, -(2**63), 2**53 + 1),
    "f64": (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324, -1e-310, 2.0**63),
    "f32": (0.0, -0.0, float("inf"), float("nan"), 3.4028234663852886e38, 1.401298464324817e-45),
    "c128": (0j, complex(-0.0, 0.0), complex("inf"), complex("nan"), complex(1e308, 1e308)),
    "fixed": (0.0, 1048575.0, -1048576.0, 2.0**-10),
    "fixed(30)": (0.0, 2.0**33 - 1, -(2.0**33), 2.0**-10),
    "log64": (LogNumber(float("-inf")), LogNumber(0.0), LogNumber(float("inf")), LogNumber(800.0)),
}
"""Values at the edges of types."""


def updates(t: str, more: bool) -> tuple[str, ...]:
    """The instructions that accumulate on a type; the first two undo each other."""
    if t == "bool":
        return ("xor", "xor")
    if t == "log64":
        return ("mul", "div")
    if t in _INTEGERS:
        return ("add", "sub", "xor")
    return ("add", "sub", "mul", "div") if more and "fixed" not in t else ("add", "sub")


def constant(rng: random.Random, t: str) -> str:
    """A literal of a type."""
    if t == "bool":
        return rng.choice(["true", "false"])
    if t == "c128":
        return f"({rng.uniform(-2, 2):.3f}, {rng.uniform(-2, 2):.3f})'c128"
    if t in _INTEGERS:
        return str(rng.randrange(1, 90))
    if t == "log64":
        return f"{rng.uniform(-2, 2):.3f}'log64"
    return repr(round(rng.uniform(0.1, 2.0), 3))
