"""Permutations of places as exchanges of two at a time."""

from __future__ import annotations

from collections.abc import Sequence

from rvm_asm.names import quoted
from rvm_asm.nodes import Declared, Node, Ref, TypeParam, TypeRef, Word
from rvm_asm.stats import Func, OpStat


def exchanges(sources: Sequence[int], places: Sequence[Node], start: int, end: int) -> list[OpStat]:
    """Statements after which each place has the former value of its source."""
    stands = list(range(len(places)))
    """For each place, where its former value is now."""
    out: list[OpStat] = []
    for k, wanted in enumerate(sources):
        source = stands[wanted]
        if source != k:
            out.append(OpStat("swap", [places[k], places[source]], start, end, end))
            stands[stands.index(k)], stands[wanted] = source, k
    return out


def permutation(name: str, sources: Sequence[int], start: int, end: int) -> Func:
    """A function that permutes its arguments, those of each cycle of one type."""
    cycles = list(sources)
    """For each place the first of its cycle."""
    for k in range(len(sources)):
        cycle, at = [k], sources[k]
        while at != k:
            cycle.append(at)
            at = sources[at]
        cycles[k] = min(cycle)
    types = [
        TypeParam(Word(quoted(f"type {k}"), start, end), [], False, end)
        for k in sorted(set(cycles))
    ]
    params = [
        Declared(
            quoted(f"place {k}"),
            TypeRef(quoted(f"type {of}"), None, None, None, start, end),
            start,
            end,
        )
        for k, of in enumerate(cycles)
    ]
    places = [Ref(quoted(f"place {k}"), (), start, end) for k in range(len(sources))]
    body = exchanges(sources, places, start, end)
    return Func(Word(name, start, end), types, params, [*body], start, end)
