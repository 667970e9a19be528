"""Pieces of code that control enters at their beginning and leaves at their end, and inverses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rvm.isa import invert_instr
from rvm.program import Instr


def closed(code: Sequence[Instr], at: int) -> int:
    """The end of the shortest piece of code from a position on that no jump leaves or enters."""
    end, pc = at + 1, at
    while pc < end:
        if code[pc].op in ("br", "cf"):
            end = max(end, code[pc].aux + 1)
        pc += 1
    return end


def segments(code: Sequence[Instr], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The pieces between a closed piece's own jumps; those of pieces within belong to these."""
    last = code[start].aux
    own = {start, last}
    low = start + 1
    at = start + 1
    while at < end:
        if at in own:
            yield low, at
            low = at = at + 1
            continue
        behind = closed(code, at)
        if code[at].op in ("br", "cf") and (behind > end or any(at < o < behind for o in own)):
            # A jump that crosses one of these is one of them.
            own |= {at, code[at].aux}
            continue
        at = behind
    if low < end:
        yield low, end


def inverse(code: Sequence[Instr]) -> tuple[Instr, ...]:
    """The instructions that undo a piece of code, its jumps counted from its beginning."""
    last = len(code) - 1
    out = []
    for instr in reversed(code):
        undo = invert_instr(instr)
        out.append(replace(undo, aux=last - undo.aux) if undo.op in ("br", "cf") else undo)
    return tuple(out)
