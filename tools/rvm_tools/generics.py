"""The types of a generic function's parameters, inferred from written values."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from rvm_asm.inference import Given, given, literal

from rvm.isa.functions.conversions import conversion_target
from rvm_tools.cells import Table
from rvm_tools.files import Stored, read_value
from rvm_tools.literals import File, MadeArray, Typed


def hints(values: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """The kinds of values as `rvm_tools.literals` reads them; files are looked for in `base`."""
    return {name: _hint(value, name, base) for name, value in values.items()}


def _hint(value: Any, name: str, base: Path) -> Any:
    if isinstance(value, File):
        value = read_value(value, base, name)
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        value = {f: [v.get(f) for v in value] for f in value[0]}
    if isinstance(value, Mapping):
        return {f: _hint(v, f"{name}.{f}", base) for f, v in value.items()}
    if isinstance(value, Typed):
        target = conversion_target(value.type)
        return Given(() if target is None else (target,))
    if isinstance(value, MadeArray):
        return literal(0, len(value.sizes))
    if isinstance(value, (bytes, Stored)):
        return given(value if isinstance(value, bytes) else value.array)
    if isinstance(value, Table):
        # The number that fewest types hold says which type all of them may have.
        number = max(value.literals(), key=_breadth, default=0.0)
        return _number(number, 1 if min(value.shape) <= 1 else 2)
    return _number(value)


def _breadth(value: Any) -> int:
    kinds: tuple[Any, ...] = (int, (Decimal, float), complex, (bool, Typed))
    return max(k for k, kind in enumerate(kinds) if isinstance(value, kind))


def _number(value: Any, depth: int = 0) -> Given:
    if isinstance(value, list):
        return _number(value[0] if value else 0, depth + 1)
    if isinstance(value, Typed):
        target = conversion_target(value.type)
        return Given(() if target is None else (target,), depth)
    return literal(float(value) if isinstance(value, Decimal) else value, depth)
