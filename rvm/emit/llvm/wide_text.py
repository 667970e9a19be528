"""Instructions of LLVM's assembly language for vectors: made from those for single numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

from rvm.emit.values import Unprintable

WIDTH = 8
"""Lanes in a vector."""
NAMES = re.compile(r"%[\w.]+")
"""Names of operands in an instruction's text."""
ARITHMETIC = frozenset(
    [
        *("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor"),
        *("shl", "lshr", "ashr", "fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "freeze"),
    ]
)
CONVERSIONS = frozenset(
    [
        *("sext", "zext", "trunc", "sitofp", "uitofp", "fptosi", "fptoui", "fpext", "fptrunc"),
        *("bitcast", "ptrtoint"),
    ]
)
FLAGS = frozenset(["nsw", "nuw", "exact", "disjoint", "nneg"])
FIXED_LAST = ("@llvm.abs.", "@llvm.ctlz.", "@llvm.cttz.")
"""Intrinsic functions whose last argument is a constant for all lanes."""
CALL = re.compile(r"call (\{[^}]*\}|\w+) (@llvm\.[\w.]+)\((.*)\)")
SUFFIX = re.compile(r"\.([fi]\d+)")

Splat = Callable[[str, str], str]
"""Takes a type and an operand; the operand as a vector."""


def vector(t: str) -> str:
    """The type of a vector of a type's values; of a structure the structure of vectors."""
    if t.startswith("{"):
        return "{" + ", ".join(map(vector, t[1:-1].split(", "))) + "}"
    return f"<{WIDTH} x {t}>"


def widened(text: str, splat: Splat) -> str:
    """An instruction on vectors for one on numbers; Unprintable if there is none."""
    name, _, rest = text.partition(" ")
    if name in ARITHMETIC:
        return f"{name} {_alike(rest, splat)}"
    if name in ("icmp", "fcmp"):
        how, _, rest = rest.partition(" ")
        return f"{name} {how} {_alike(rest, splat)}"
    if name in CONVERSIONS:
        operand, _, to = rest.partition(" to ")
        return f"{name} {_alike(operand, splat)} to {vector(to)}"
    if name == "select":
        return f"select {', '.join(_each(rest, splat))}"
    if name == "extractvalue":
        found = re.fullmatch(r"(\{[^}]*\}) (\S+), (\d+)", rest)
        if found is not None:
            return f"extractvalue {vector(found[1])} {found[2]}, {found[3]}"
    if name == "call":
        return _call(text, splat)
    raise Unprintable


def _alike(rest: str, splat: Splat) -> str:
    """Flags, a type, and operands that all have it."""
    words = []
    first, _, after = rest.partition(" ")
    while first in FLAGS:
        words.append(first)
        first, _, after = after.partition(" ")
    operands = ", ".join(splat(first, operand) for operand in after.split(", "))
    return " ".join([*words, vector(first), operands])


def _each(rest: str, splat: Splat) -> list[str]:
    """Operands that have each its type."""
    out = []
    for part in rest.split(", "):
        t, _, operand = part.partition(" ")
        out.append(f"{vector(t)} {splat(t, operand)}")
    return out


def _call(text: str, splat: Splat) -> str:
    found = CALL.fullmatch(text)
    if found is None:
        raise Unprintable
    result, name, rest = found.groups()
    last: list[str] = []
    if name.startswith(FIXED_LAST):
        rest, _, constant = rest.rpartition(", ")
        last = [constant]
    arguments = ", ".join([*_each(rest, splat), *last])
    name = SUFFIX.sub(rf".v{WIDTH}\1", name)
    return f"call {vector(result)} {name}({arguments})"
