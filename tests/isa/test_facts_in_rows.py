"""Facts about functions and types stand in their rows: no other source lists them by name."""

from __future__ import annotations

import ast
import contextlib
import math
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rvm.faults import MachineError
from rvm.isa import FUNCTIONS
from rvm.isa.implementation import array_value, value
from rvm.isa.rules import Arg, TypeFault
from rvm.numbers import system
from rvm.types import C128, F64, I64, SCALARS, TYPES, Scalar

ROOT = Path(__file__).parents[2]
TABLE = ("rvm/isa/", "rvm/numbers/", "rvm/leaf/", "rvm/types.py", "rvm/expr.py")
"""Where the rows are, and what they are made of."""
SPELLING = ("tests/attack/", "tools/rvm_tools/trace/energy.py")
"""What writes programs, and published figures for some types."""
LEFT = {"rvm/derive/taylor": 1}
"""Lists that are left, by file or folder: there may be fewer, and none elsewhere."""


KINDS = {"is_bool", "is_integer", "is_float", "is_complex", "is_fixed", "is_log"}
QUESTIONS = 176
"""How often sources ask which kind of numbers a type has, where a fact would say what they need."""


@cache
def said(path: Path) -> tuple[list[str], int]:
    """The literals of a source that are lists of names of functions or of types, and how often it
    asks which kind of numbers a type has.
    """
    out, asked = [], 0
    names = set(FUNCTIONS) - set(TYPES)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        asked += isinstance(node, ast.Attribute) and node.attr in KINDS
        parts: list[ast.expr | None] = []
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            parts = list(node.elts)
        elif isinstance(node, ast.Dict):
            parts = list(node.keys)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = [ast.Constant(word) for word in node.value.split()]
            parts = parts if len(parts) > 3 else []
        values = [p.value for p in parts if isinstance(p, ast.Constant)]
        found = {v for v in values if isinstance(v, str)}
        if len(values) != len(parts) or len(found) < 2:
            continue
        # Signs alone are notation: which sign denies another, say.
        spelled = any(v[:1].isalpha() for v in found)
        if (found <= names and spelled) or found <= set(TYPES):
            out.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:80]}")
    return out, asked


@pytest.mark.parametrize("folder", ["rvm", "asm", "tools"])
def test_no_source_lists_functions_or_types(folder: str) -> None:
    left = Counter(LEFT)
    for path in sorted((ROOT / folder).rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if where.startswith((*TABLE, *SPELLING)):
            continue
        for line in said(path)[0]:
            known = next((k for k in LEFT if where.startswith(k)), "")
            assert left[known] > 0, f"a list of names outside the table: {line}"
            left[known] -= 1


def test_few_questions_ask_which_kind_of_numbers_a_type_has() -> None:
    paths = (p for p in (ROOT / "rvm").rglob("*.py") if p.name != "types.py")
    asked = sum(said(path)[1] for path in paths)
    assert asked <= QUESTIONS, "ask for a class, or for what the number system offers"


A, B = (np.arange(12.0).reshape(4, 3) ** 2 % 7 - k for k in (1, 3))
INDICES = np.array([2, 0, 1])
LINEAR = {
    "gather": (A[0], B[0], INDICES),
    "scatter": (A[0], B[0], INDICES, 4),
    "scan_left": (A[0], B[0]),
    "scan_right": (A[0], B[0]),
    "sum_like": (A, B, A[0]),
    "spread_like": (A[0], B[0], A),
    "conj": (A + 1j * B, B - 2j * A),
    "real": (A + 1j * B, B - 2j * A),
    "imag": (A + 1j * B, B - 2j * A),
}
"""Two first arguments, and the others."""


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.linear])
def test_functions_that_are_called_linear_are(name: str) -> None:
    a, b, *rest = LINEAR.get(name, (A, B))
    given = (a, *rest)
    types = tuple(
        C128 if np.iscomplexobj(v) else F64 if np.asarray(v).dtype.kind == "f" else I64
        for v in given
    )
    f = array_value(name, types)
    assert np.array_equal(f(2 * a - b, *rest), 2 * f(a, *rest) - f(b, *rest))


WHOLE = (-(1 << 63), -(1 << 31), -129, -1, 0, 1, 2, 7, 300, (1 << 31) - 1, (1 << 63) - 1)
REAL = (-math.inf, -1e300, -1.5, -1.0, 0.0, 1.0, 7.0, 300.0, 1e300, math.inf, math.nan)


def extremes(t: Scalar) -> list[Any]:
    """Numbers of a type, at its ends and around 0."""
    out = []
    for x in REAL if t.is_float or t.is_complex or t.is_log else WHOLE:
        with contextlib.suppress(ValueError):
            out.append(system(t).literal(x))
    return out


def faulty(name: str, t: Scalar) -> bool:
    """Whether a function of numbers has no value for some extreme numbers, the first of a type."""
    row = FUNCTIONS[name]
    try:
        types = row.rule([Arg(t, 0), *(Arg(None, 0, 1) for _ in range(row.arity - 1))], None).elems
    except TypeFault:
        return False
    f = value(name, types)
    for args in product(*map(extremes, types)):
        try:
            f(*args)
        except MachineError:
            return True
    return False


OF_NUMBERS = [n for n, row in FUNCTIONS.items() if row.is_elementwise or n == "for_end"]


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_functions_without_some_values_are_called_partial(name: str) -> None:
    row = FUNCTIONS[name]
    found = {t for t in SCALARS.values() if faulty(name, t)}
    assert [t for t in found if not row.is_partial(t)] == []
    assert bool(found) == bool(row.partial)
