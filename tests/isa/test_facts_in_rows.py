"""Facts about functions and types stand in their rows: no other source lists them by name."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from rvm.isa import FUNCTIONS
from rvm.types import TYPES

ROOT = Path(__file__).parents[2]
TABLE = ("rvm/isa/", "rvm/numbers/", "rvm/leaf/", "rvm/types.py", "rvm/expr.py")
"""Where the rows are, and what they are made of."""
SPELLING = ("tools/rvm_tools/attack/", "tools/rvm_tools/trace/energy.py")
"""What writes programs, and published figures for some types."""
LEFT = {
    "rvm/derive/taylor": 1,
    "rvm/emit/lanes_values.py": 1,
    "rvm/ir": 3,
    "rvm/transform/factors.py": 1,
    "rvm/transform/graph.py": 1,
    "rvm/accounts/cost.py": 1,
    "asm/rvm_asm": 3,
    "tools/rvm_tools": 2,
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
