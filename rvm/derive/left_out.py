"""The adjoints that a gradient leaves out: those of read-only parameters that are not requested.

No engine judges a gradient by them, whether it computes them or not.
"""

from __future__ import annotations

from collections.abc import Collection

from rvm.derive.target import Target
from rvm.host.once import once
from rvm.image import image_of
from rvm.program import Function, slots_of
from rvm.transform.duals import bar_slots


def left_out(target: Target, wrt: Collection[str] | None) -> frozenset[int]:
    """The registers of read-only parameters that are not in `wrt`; none if `wrt` is None.

    Those that the caller seeds are not left out.
    """
    if wrt is None or target.undo:
        return frozenset()
    if type(wrt) is not tuple or not all(type(n) is str for n in wrt):
        return _left_out(target, wrt)
    key = (left_out, target.name, wrt)
    return once(target.program.cache, key, frozenset, lambda: _left_out(target, wrt))


def _left_out(target: Target, wrt: Collection[str]) -> frozenset[int]:
    if not isinstance(wrt, Collection):
        return frozenset()
    names = (wrt,) if isinstance(wrt, str) else wrt
    program, name = target.program, target.name

    def look() -> tuple[dict[str, int | None], dict[str, int]]:
        found, inout = able(target.function), image_of(program).inout[name]
        return found, {n: k for n, k in found.items() if k is not None and k not in inout}

    found, only_read = once(program.cache, (left_out, name), tuple, look)
    if not all(isinstance(n, str) and n in found for n in names):
        return frozenset()
    return frozenset(k for n, k in only_read.items() if n not in names)


def able(function: Function) -> dict[str, int | None]:
    """The parameters that have adjoints, by name: their registers, None of records."""
    slots = bar_slots(function)
    found: dict[str, int | None] = {}
    for p in function.params:
        if isinstance(p.layout, int):
            if p.layout in slots:
                found[p.name] = p.layout
        elif not slots.keys().isdisjoint(slots_of(p.layout)):
            found[p.name] = None
    return found


def slots_named(function: Function, names: Collection[str]) -> frozenset[int]:
    """The registers of parameters by their names."""
    return frozenset(k for p in function.params if p.name in names for k in slots_of(p.layout))
