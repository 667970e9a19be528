"""Places where a function removes values restored by construction, seen in its or another's code.

A tangent changes values as the original function does, and an adjoint undoes these changes.  So a
match in the original means that the value is restored in the derived function, though the code in
between does more there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from rvm.program import Function, Program
from rvm.transform.gradient import adjoint_origins
from rvm.transform.invert import invert_function
from rvm.transform.programs import doing, in_values
from rvm.transform.retraced import Step, retraced
from rvm.verify.matching import Matched, matched


class Ends(NamedTuple):
    """Positions where code in one direction frees, or pops into, restored registers."""

    known: frozenset[int]
    returning: frozenset[int]
    """Those from which adjoints were computed in between."""


Changed = Callable[[Function], Mapping[str, Collection[int]]]
"""For a function, the parameters that functions it calls may change without restoring."""
NOTHING = Ends(frozenset(), frozenset())


def ends_of(program: Program, name: str, undo: bool, changed: Changed) -> Ends:
    """The positions where a function, or its inverse, removes registers, with known facts."""
    f = program.function(name)
    code = invert_function(f) if undo else f
    found = None if undo else program.cache.get((matched, name))
    if not isinstance(found, Matched):
        found = matched(code, changed(f), doing(program))
    known, returning = set(found.all), set(found.by_adjoint)
    derived = in_values(program).get(name)
    if derived is not None:
        of, ends = (
            program.function(derived.of),
            ends_of(program, derived.of, undo ^ derived.undoes, changed),
        )
        origins = derived.made.origins
        if derived.undoes:
            origins = adjoint_origins(of, derived.made)
        backwards = undo ^ derived.undoes
        for pc, at in _frees(f, origins, undo):
            came = len(of.code) - 1 - at if backwards else at
            if came in ends.known:
                known.add(pc)
            if came in ends.returning or (
                derived.undoes and not undo and of.code[at].op == "alloc"
            ):
                returning.add(pc)
    asked = {pc for pc, i in enumerate(code.code) if i.op == "free"} - (known - returning)
    exact = retraced(code, {pc for pc in asked if not Step(code, code.code[pc]).is_exact})
    known |= exact
    returning -= exact
    return Ends(frozenset(known), frozenset(returning))


def _frees(f: Function, origins: tuple[int, ...], undo: bool) -> Iterator[tuple[int, int]]:
    """The frees of code in one direction, and the instructions from which they come."""
    last = len(f.code) - 1
    for pc, (instr, at) in enumerate(zip(f.code, origins, strict=True)):
        if instr.op == ("alloc" if undo else "free"):
            yield last - pc if undo else pc, at
