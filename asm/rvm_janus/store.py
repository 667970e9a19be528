"""The final store of a Janus program: the values of its variables, as interpreters print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rvm.numbers import system
from rvm.program import Function
from rvm.types import Array, Stack


def lines(function: Function, regs: Sequence[Any]) -> list[str]:
    """`x = 5`, `a[3] = {1, 2, 3}`, `s = <3, 2]` with the top first: a line a variable, by name."""
    out = []
    for param in sorted(function.params, key=lambda p: p.name):
        assert isinstance(param.layout, int)
        t, raw = function.registers[param.layout].type, regs[param.layout]
        if isinstance(t, Array):
            size = "".join(f"[{n}]" for n in raw.shape)
            out.append(f"{param.name}{size} = {_braces(raw.tolist())}")
        elif isinstance(t, Stack):
            held = ", ".join(map(str, reversed(raw)))
            out.append(f"{param.name} = " + (f"<{held}]" if raw else "nil"))
        else:
            value = system(t).to_python(raw)
            out.append(f"{param.name} = {str(value).lower() if t.is_bool else value}")
    return out


def _braces(held: Any) -> str:
    return "{" + ", ".join(map(_braces, held)) + "}" if isinstance(held, list) else str(held)
