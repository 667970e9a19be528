"""Making an input that shows a finding smaller: delta debugging over whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_Same = Callable[[bytes], bool]
"""Whether a smaller input still shows the finding; it may raise `OutOfTime`."""


_PAIRS = 40
"""The most parts of which all pairs are tried."""


class OutOfTime(Exception):
    """There is no time left for making it smaller."""


class Split(NamedTuple):
    """A way to take an input apart and to put together what is left of it.

    `parts` gives an empty list for an input that has no such parts; `whole` is given the input and
    the parts that stay.  It may raise anything if these make no input.
    """

    parts: Callable[[bytes], Sequence[Any]]
    whole: Callable[[bytes, Sequence[Any]], bytes]


LINES = Split(lambda data: data.splitlines(keepends=True), lambda data, parts: b"".join(parts))
BYTES = Split(
    lambda data: [data[k : k + 1] for k in range(len(data))],
    lambda data, parts: b"".join(parts),
)


def shrunk(data: bytes, splits: Sequence[Split], same: _Same) -> bytes:
    """The smallest input that was found before the time was over; `same(data)` holds."""
    best = [data]

    def holds(smaller: bytes) -> bool:
        if smaller == best[0] or not same(smaller):
            return False
        best[0] = smaller
        return True

    try:
        while True:
            before = best[0]
            for split in splits:
                _reduce(best[0], split, holds)
            if best[0] == before:
                return before
    except OutOfTime:
        return best[0]


def _reduce(data: bytes, split: Split, holds: _Same) -> None:
    """Leave out parts, in ever shorter runs, as long as what stays still shows the finding."""
    try:
        parts = list(split.parts(data))
    except Exception:  # what is damaged may not come apart
        return
    size = len(parts) // 2
    while size:
        at, left_out = 0, False
        while at < len(parts):
            rest = parts[:at] + parts[at + size :]
            if _whole_holds(data, split, rest, holds):
                parts, left_out = rest, True
            else:
                at += size
        if size == 1 and not left_out:
            break
        size = max(1, min(size // 2, len(parts) // 2)) if size > 1 else int(left_out)

    if len(parts) <= _PAIRS:
        _reduce_pairs(data, split, parts, holds)


def _reduce_pairs(data: bytes, split: Split, parts: list[Any], holds: _Same) -> None:
    """Leave out two parts that only go together, such as the ends of a block."""
    k = 0
    while k < len(parts):
        for other in range(k + 1, len(parts)):
            rest = [p for n, p in enumerate(parts) if n not in (k, other)]
            if _whole_holds(data, split, rest, holds):
                parts = rest
                break
        else:
            k += 1


def _whole_holds(data: bytes, split: Split, parts: list[Any], holds: _Same) -> bool:
    try:
        made = split.whole(data, parts)
    except Exception:  # parts that make no input
        return False
    return holds(made)
