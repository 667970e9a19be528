"""What became of a definition: the form of its derivatives, and each of its lets, with figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from rvm_pure.cost import work
from rvm_pure.lowering import Lowering
from rvm_pure.terms import Fold, Let, Loop, free, walk

WHY = {
    "put in where it is used": "an instruction computes equal parts once",
    "each element is put in": "an element is used once, or takes no work",
    "an ancilla": "its uses are in several instructions, or in a loop",
    "stored": "one expression cannot state it",
    "the state of": "each step is undone by a step",
    "the last state": "the budget allows no more",
    "the states of": "no update that can be undone was found, and there is no budget",
}
"""The reasons for what becomes of a value, by how its description begins."""


def explained(lowering: Lowering, count: int, sizes: Mapping[str, int]) -> Iterator[str]:
    """A line for each value that has a name, or a count of statements where none has.

    Its work is at these lengths, by the account that has a bound.
    """
    if not lowering.notes:
        yield f"no names, {count} statement{'s' * (count != 1)}"
    lets = {e.pattern: e for e in walk(lowering.body) if isinstance(e, Let)}
    for name, (text, t) in lowering.notes.items():
        why = next((w for start, w in WHY.items() if text.startswith(start)), "")
        uses = ""
        if name in lets:
            k = free(lets[name].body).get(name, 0)
            uses = f", used {k} time{'s' * (k != 1)}"
            with suppress(ValueError):
                uses += f", work {work(lets[name].value, sizes).total:,}"
            if isinstance(lets[name].value, Fold | Loop):
                why = "it is the last state"
            elif k == 1 and text.startswith("put in"):
                why = "it is used once"
            elif name in lowering.lifted:
                why = "it is the same in every round of a loop, and computed before it"
        yield f"{name}: {text} ({t}{uses}): {why}"
