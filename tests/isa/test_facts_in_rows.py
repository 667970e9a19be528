"""Facts about functions and types stand in their rows: no other source lists them by name."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rvm.isa import FUNCTIONS
from rvm.isa.implementation import array_value
from rvm.types import C128, F64, I64, TYPES

ROOT = Path(__file__).parents[2]
TABLE = ("rvm/isa/", "rvm/numbers/", "rvm/leaf/", "rvm/types.py", "rvm/expr.py")
"""Where the rows are, and what they are made of."""
SPELLING = ("tests/attack/", "tools/rvm_tools/trace/energy.py")
"""What writes programs, and published figures for some types."""
LEFT = {
    "rvm/derive/taylor": 1,
    "rvm/emit/numpy/ufuncs.py": 1,
    "rvm/ir": 3,
    "rvm/transform/graph.py": 1,
    "rvm/accounts/cost.py": 1,
    "asm/rvm_asm": 3,
    "tools/rvm_bench": 1,
    "tools/rvm_tools": 1,
}
"""Lists that are left, by file or folder: there may be fewer, and none elsewhere."""


def listed(path: Path) -> list[str]:
    """The literals of a source that are lists of names of functions or of types."""
    out = []
    names = set(FUNCTIONS) - set(TYPES)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
    return out


@pytest.mark.parametrize("folder", ["rvm", "asm", "tools"])
def test_no_source_lists_functions_or_types(folder: str) -> None:
    left = Counter(LEFT)
    for path in sorted((ROOT / folder).rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if where.startswith((*TABLE, *SPELLING)):
            continue
        for line in listed(path):
            known = next((k for k in LEFT if where.startswith(k)), "")
            assert left[known] > 0, f"a list of names outside the table: {line}"
            left[known] -= 1


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
