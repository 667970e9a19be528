"""Instructions on an array and a text: one for each of the text's bytes."""

from __future__ import annotations

from rvm.expr import Const, Index, Place, Span
from rvm.isa.shapes import Lengths
from rvm.types import Array
from rvm_asm.nodes import Lit, Ref, Sub
from rvm_asm.stats import OpStat
from rvm_asm.values import ValueReader


def spelt(reader: ValueReader, stat: OpStat, text: bytes) -> list[OpStat]:
    """The instructions for `add x, "text"` and similar statements, element by element.

    Rejected unless x is an array of integers that is known to have as many elements.
    """
    target, literal = stat.args
    place = reader.operand(target)
    t = place.type if isinstance(place, Place) else None
    if not isinstance(target, Ref) or not isinstance(t, Array) or t.rank != 1:
        reader.reject(
            "A042", "a text goes to an array of one dimension, an element for each byte", target
        )
    if not t.elem.is_integer:
        reader.reject("A040", f"a text is bytes, and the array is of {t.elem}", literal)
    assert isinstance(place, Place)
    have = length_of(reader, place)
    if have != len(text):
        size = f"the text has {len(text)} byte{'s' * (len(text) != 1)}"
        shown = reader.report.sources.text(target.start, target.end)
        if have is None:
            part = f"name the part: `{target.name}[0:{len(text)}]`"
            reader.reject("A042", f"{size}; how many `{shown}` has is not known here", target, part)
        reader.reject("A042", f"{size}, and `{shown}` has {have} elements", literal)
    out = []
    for k, byte in enumerate(text):
        step = Sub([Lit(k, target.start, target.end)], target.start, target.end)
        element = Ref(target.name, (*target.steps, step), target.start, target.end)
        value = Lit(byte, literal.start, literal.end)
        out.append(OpStat(stat.name, [element, value], stat.start, stat.stop, stat.end))
    return out


def length_of(reader: ValueReader, place: Place) -> int | None:
    """The length of a vector, if it is known before a run."""
    last = place.path[-1] if place.path else None
    span = last.items[-1] if isinstance(last, Index) else None
    if isinstance(span, Span) and not span.is_whole:
        lo = Const(0) if span.lo is None else span.lo
        if isinstance(lo, Const) and isinstance(span.hi, Const) and span.by is None:
            return int(span.hi.value - lo.value)
        return None
    (found,) = Lengths(reader.registers.list).of_place(place)
    return found.value if isinstance(found, Const) else None
