"""What is left of ancillas that were exchanged: verdicts do not depend on units.

In each program `t` and `u` are made of numbers in two units, change places, and are cleared in
another order than they were filled in, so that they are not back by construction.  A wrong program
takes a thousandth too much from the one or the other.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.engines import executing
from rvm.faults import InvertibilityError
from rvm.run.machine import Machine

FAR = {"f64": 300, "f32": 30, "c128": 300}

FILLED = """
    alloc t: T
    alloc u: T
    add t, x
    add t, a
    add u, y
    add u, b
"""
CLEARED = """
    sub t, x * FT
    sub u, y * FU
    sub t, a
    sub u, b
    free u
    free t
"""


def twice(exchange: str) -> str:
    """The exchange, a use of what is there then, and the exchange again."""
    return f"{FILLED}    {exchange}\n    add out, t\n    {exchange}\n{CLEARED}"


def arrays(text: str) -> str:
    return text.replace("t: T", "t: T[3]").replace("u: T", "u: T[3]").replace("out, t", "out, t[1]")


HANDED = (
    "    alloc t: T\n    add t, x\n    add t, a\n{}    sub t, x * FT\n    sub t, a\n    free t\n"
)
"""An ancilla that is handed on, and comes back."""

FORMS = {
    "two ancillas": twice("swap t, u"),
    "once": """
    alloc t: T
    alloc u: T
    add u, x
    add u, a
    add t, y
    add t, b
    swap t, u
"""
    + CLEARED,
    "on a condition": twice("cswap n > 0, t, u"),
    "in a branch": twice("if n > 0\n        swap t, u\n    end"),
    "in a loop": twice("for i = 1 to n\n        swap t, u\n    end"),
    "by a call": twice("call exchange(t, u)"),
    "by calls in a call": twice("call thrice(t, u)"),
    "by a call back": twice("uncall thrice(t, u)"),
    "arrays": arrays(twice("swap t, u")),
    "arrays, by a call": arrays(twice("call exchange_arrays(t, u)")),
    "arrays, in a loop": arrays(twice("for i = 1 to n\n        swap t, u\n    end")),
    "elements": """
    alloc t: T[3]
    add t[0], x
    add t[1], a
    add t[1], x
    for i = 1 to n
        swap t[0], t[1]
    end
    add out, t[2]
    swap t[1], t[i0]
    sub t[1], x * FT
    sub t[1], a
    sub t[0], x
    free t
""".replace("i0", "n - 3"),
    "elements, by a call": """
    alloc t: T[3]
    add t[0], x
    add t[0], a
    add t[1], a
    call turn(t)
    add out, t[0]
    call turn(t)
    call turn(t)
    sub t[0], x * FT
    sub t[0], a
    sub t[1], a
    free t
""",
    "an element": """
    alloc t: T[3]
    alloc u: T
    add t, x
    add t, a
    add u, y
    add u, b
    swap t[n - 2], u
    add out, u
    swap t[n - 2], u
    sub u, y * FU
    sub t, x
    sub t, a
    sub u, b
    free u
    free t
""",
    "with an output": HANDED.format(
        "    swap t, out\n    add t, y\n    sub t, y\n    swap t, out\n"
    ),
    "with an output, in a loop": HANDED.format(
        "    for i = 1 to n\n        swap t, out\n        swap out, t\n    end\n"
    ),
    "with an element of an output": HANDED.format("    swap t, v[1]\n    swap t, v[1]\n"),
    "an array with an output": HANDED.replace("t: T", "t: T[3]").format(
        "    swap t, v\n    swap t, v\n"
    ),
    "pushed": HANDED.format(
        "    push t, s\n    add t, y\n    add t, b\n    add out, t\n    sub t, y * FU\n"
        "    sub t, b\n    pop t, s\n"
    ),
    "cleared by a call": FILLED
    + "    call clear(u, y, b, r)\n"
    + CLEARED.replace("    sub u, y * FU\n", "").replace("    sub u, b\n", ""),
    "popped into what a call has cleared": HANDED.format(
        "    push t, s\n    add t, y\n    add t, b\n    add out, t\n    call clear(t, y, b, r)\n"
        "    pop t, s\n"
    ),
    "in another unit": HANDED.format("    mul t, r\n    add out, t\n    div t, r\n"),
    "in another unit, by a call": HANDED.format(
        "    call scale(t, r)\n    add out, t\n    call unscale(t, r)\n"
    ),
    "array in another unit, by a call": HANDED.replace("t: T", "t: T[3]").format(
        "    call scale_each(t, r)\n    add out, t[1]\n    call unscale_each(t, r)\n"
    ),
}
CALLED = """
func exchange(p: T, q: T)
    swap p, q

func thrice(p: T, q: T)
    call exchange(p, q)
    swap p, q
    uncall exchange(p, q)

func exchange_arrays(p: T[n], q: T[n])
    swap p, q

func turn(p: T[3])
    swap p[0], p[1]
    swap p[1], p[2]

func clear(p: T, y: T, b: T, by: T)
    mul p, by
    sub p, y * by
    sub p, b * by

func scale(p: T, by: T)
    mul p, by

func unscale(p: T, by: T)
    div p, by

func scale_each(p: T[n], by: T)
    for i = 0 to n - 1
        mul p[i], by
    end

func unscale_each(p: T[n], by: T)
    for i = 0 to n - 1
        div p[i], by
    end
"""
HEAD = "func f(x: T, y: T, a: T, b: T, r: T, out: T, v: T[3], s: stack[T], n: i64)\n"


def programs(form: str, t: str) -> dict[str, Any]:
    """The right program, and those that take too much from one of the ancillas."""
    body = FORMS[form]
    out = {}
    for wrong in ("", *sorted(set(re.findall("F[TU]", body)))):
        text = body.replace(wrong, "1.001") if wrong else body
        text = HEAD + re.sub(r" \* F[TU]", "", text) + CALLED
        out[wrong] = rvm.assemble(re.sub(r"\bT\b", t, text))
    return out


def given(unit: str, far: int, t: str) -> dict[str, Any]:
    """Arguments: those of the one unit, or the factor between two units, times 2 ** far."""
    scale = 2.0**far
    one, two, factor = (scale if unit == name else 1.0 for name in ("x", "y", "r"))
    number = np.float32 if t == "f32" else np.float64
    kind = {"f32": np.float32, "f64": np.float64, "c128": np.complex128}[t]
    values = {"x": 0.3 * one, "a": 0.77 * one, "y": 1.7 * two, "b": 0.9 * two, "r": 1.3 * factor}
    values["out"] = 0.6 * two
    made = {k: float(number(v)) for k, v in values.items()}
    return {**made, "v": (np.array([0.1, 0.2, 0.3]) * two).astype(kind), "s": [], "n": 3}


def direct(library: Any, engine: str, args: dict[str, Any]) -> None:
    library.f(engine=engine, **args)


def turning(library: Any, engine: str, args: dict[str, Any]) -> None:
    """Run to the end with ways back and forth in between, over the exchanges."""
    m = Machine(library, "f", engine=engine, **args)
    for time in TIMES:
        m.seek(time)
    m.run()


TIMES = (9, 4, 11, 3, 8, 6)


def verdict(how: Any, library: Any, engine: str, args: dict[str, Any]) -> str:
    try:
        how(library, engine, args)
    except InvertibilityError as error:
        return error.code
    return "passes"


@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("t", FAR)
@pytest.mark.parametrize("how", [direct, turning])
@pytest.mark.parametrize("form", FORMS)
@thin
def test_verdicts_on_what_was_exchanged_do_not_depend_on_units(
    form: str, how: Any, t: str, engine: str
) -> None:
    for wrong, library in programs(form, t).items():
        scales = [("x", 0), *product("xyr", (-FAR[t], FAR[t]))]
        found = {(u, k): verdict(how, library, engine, given(u, k, t)) for u, k in scales}
        expected = (
            "passes" if not wrong else "R006" if "pop" in FORMS[form] and wrong == "FU" else "R001"
        )
        assert set(found.values()) == {expected}, (wrong, found)
