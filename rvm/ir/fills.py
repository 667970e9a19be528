"""Array parameters that a code fills: what first touches each adds to all of it.

Where they are known to hold zeros, nothing need be there before: neither read nor written.
"""

from __future__ import annotations

from collections.abc import Mapping

from rvm.expr import Place
from rvm.host.once import once
from rvm.image import Code
from rvm.ir.loop_facts import touched
from rvm.stmt import Branch, Call, Land, Update
from rvm.types import Array


def fills(code: Code) -> Mapping[int, int]:
    """The parameters that a run from the beginning fills, and where."""
    found: dict[int, int] = once(code.compiled, fills, dict, lambda: _fills(code))
    return found


def _fills(code: Code) -> dict[int, int]:
    registers, n = code.function.registers, code.function.n_args
    found: dict[int, int] = {}
    seen: set[int] = set()
    for pc in range(len(code)):
        stmts = code.stmts(pc)
        if any(isinstance(s, (Branch, Land, Call)) for s in stmts):
            break
        match stmts:
            case (Update(Place(reg, ()), "+" | "-"),) if reg < n and reg not in seen:
                if isinstance(registers[reg].type, Array):
                    found[reg] = pc
        seen |= {p.reg for p in touched(stmts)}
    return found
