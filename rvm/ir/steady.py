"""Arrays that do not change while a root runs, so that their elements need be loaded only once.

A parameter of a root is such an array if neither the function nor its callees change it; a
parameter of an inner function is one if every call passes one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rvm.expr import Place
from rvm.host.once import once
from rvm.image import Code, Image
from rvm.types import Array

Steady = Mapping[str, frozenset[int]]
"""For each function that a run may come to its array parameters that stay as they are."""


def steady(code: Code) -> Steady:
    """The arrays that nothing changes while `code` runs as a root."""
    return once(code.compiled, steady, dict, lambda: _steady(code))


def _steady(code: Code) -> dict[str, frozenset[int]]:
    image = code.image
    names = image.reachable(code.name)
    found = {name: frozenset(_unchanged(image, name)) for name in names}
    todo = list(names)
    while todo:
        caller = todo.pop()
        for callee, given in _given(image, caller):
            held = {k for k in found[callee] if given[k] in found[caller]}
            if held != found[callee]:
                found[callee] = frozenset(held)
                todo.append(callee)
    return found


def _unchanged(image: Image, name: str) -> Iterator[int]:
    """The array parameters that a function never changes."""
    f = image.program.function(name)
    for k, register in enumerate(f.registers[: f.n_args]):
        if isinstance(register.type, Array) and k not in image.inout[name]:
            yield k


def _given(image: Image, caller: str) -> Iterator[tuple[str, list[int]]]:
    """The calls of a function: whom, and the registers that are given (-1 for other values)."""
    for instr in image.program.function(caller).code:
        if instr.op in ("call", "uncall"):
            yield instr.symbol, [a.reg if isinstance(a, Place) else -1 for a in instr.args]
