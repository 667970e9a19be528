"""Arrays of constants in code: functions that make them of zeros, and integers packed in fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rvm.expr import Expr, Index, Place
from rvm.isa import apply, place
from rvm.pebble.bridge.emission.body import TABLE, Body, integer, plus
from rvm.program import Function, Span
from rvm.transform.duals import unique

WORD_BITS = 62
CHUNK = 128
"""The most integers that a function fills in: compiling takes longer than in proportion."""


def entry(table: Place, index: Expr) -> Place:
    """An integer of a table."""
    return place(table.reg, TABLE, (Index((index,)),))


class Packing:
    """Rows of integers from 0 on: each row has so many words, with fields of as many bits."""

    def __init__(self, rows: Sequence[Mapping[str, int]]) -> None:
        self.places: dict[str, tuple[int, int, int]] = {}
        """For each field the word that it is in, its first bit there, and a mask."""
        word = used = 0
        for name in rows[0]:
            bits = max(row[name] for row in rows).bit_length()
            if used + bits > WORD_BITS:
                word, used = word + 1, 0
            self.places[name] = word, used, (1 << bits) - 1
            used += bits
        self.words = word + 1
        """The words of a row."""
        self.values = [0] * (self.words * len(rows))
        for k, row in enumerate(rows):
            for name, (word, shift, _) in self.places.items():
                self.values[k * self.words + word] |= row[name] << shift

    def field(self, table: Place, row: Expr, name: str) -> Expr:
        """A field of a row."""
        word, shift, mask = self.places[name]
        first = row if self.words == 1 else apply("*", row, integer(self.words))
        value: Expr = entry(table, plus(first, word) if word else first)
        if shift:
            value = apply(">>", value, integer(shift))
        return apply("&", value, integer(mask))


def fill_functions(
    name: str, values: Sequence[int], span: Span | None, taken: set[str]
) -> list[Function]:
    """Functions that make an array of zeros the one with these integers, the outermost first."""
    found = []
    parts = [range(k, min(k + CHUNK, len(values))) for k in range(0, len(values), CHUNK)]
    whole = Body()
    table = whole.add_table()
    for k, part in enumerate(parts):
        w = whole if len(parts) == 1 else Body()
        if w is not whole:
            w.add_table()
            own = unique(f"{name}.{k}", taken)
            whole.put("call", table, symbol=own)
        for at in part:
            if values[at]:
                w.put("xor", entry(table, integer(at)), integer(values[at]))
        if w is not whole:
            found.append(w.function(own, span))
    return [whole.function(name, span), *found]
