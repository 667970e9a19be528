"""The log of strict mode: the information that rounding would lose, as a stack of gaps.

Each change of an inexact number pushes the gap between the result of undoing it and the old value
(see `rvm.numbers.gaps`); undoing the change pops it.  Nearly all gaps are 0 or 1, so they are
stored as codes of 2 bits: 0, 1, -1, or a mark that a second stack has more.  That stack uses 4 bits
for gaps up to 8, and otherwise a mark that all 64 bits are stored.  There is no index: changes are
undone in the opposite order, and the stack is empty at the end of the way back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.faults import InvertibilityError
from rvm.numbers.gaps import ALL, TOP, Gaps

WORD = 64
"""Bits; a stack is counted in whole words."""
ESCAPE, FAR, NEAR = 3, 15, 8
"""The code and the nibble that another stack has more; the largest gap with a nibble."""
CODES = {0: 0, 1: 1, -1: 2}
"""The codes of gaps that have no more than that."""
_NIBBLES = {d: d - 2 if d > 0 else 5 - d for d in range(-NEAR, NEAR + 1) if abs(d) > 1}
_LEAST = np.array([0, 1, -1, 0], np.int64)
_GAPS = np.zeros(FAR + 1, np.int64)
for _gap, _nibble in _NIBBLES.items():
    _GAPS[_nibble] = _gap
_NONE = np.empty(0, np.uint64)
_SHIFTS = {bits: np.arange(0, WORD, bits, dtype=np.uint64) for bits in (2, 4, WORD)}
Height = tuple[int, int, int]
"""The numbers of entries on the three stacks."""
Snapshot = tuple[tuple[int, bytes], ...]
"""Of each stack how many entries it has, and its words."""


def size_of(entries: Snapshot) -> int:
    """The bytes of a log with these entries."""
    return sum(len(data) for _, data in entries)


class Packed:
    """A stack of whole numbers of so many bits, packed into words from their low ends.

    Its words are memory that stays where it is until `reserve` is asked for more, so that machine
    code can work on it.
    """

    __slots__ = ("bits", "block", "count", "words")

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.count = 0
        self._hold(_NONE)

    def _hold(self, block: NDArray[np.uint64]) -> None:
        self.block = block
        self.words = block.data
        """The same, read and written as Python's numbers; what lies above the last entry has no
        meaning."""

    def __getstate__(self) -> Any:
        self.clear()
        return self.bits, self.count, self.block[: self.used].copy()

    def __setstate__(self, state: Any) -> None:
        self.bits, self.count, block = state
        self._hold(block)

    @property
    def used(self) -> int:
        """The words that hold entries."""
        return -(-self.count * self.bits // WORD)

    @property
    def room(self) -> int:
        """The number of entries for which there is room."""
        return len(self.block) * WORD // self.bits - self.count

    def clear(self) -> None:
        """Make the bits above the last entry of its word 0."""
        over = self.count * self.bits % WORD
        if over:
            self.words[self.used - 1] &= (1 << over) - 1

    def reserve(self, more: int) -> None:
        """Have room for so many more entries; for many times as many, if there is not."""
        need = -(-(self.count + more) * self.bits // WORD)
        if need > len(self.block):
            block = np.empty(max(need, 2 * len(self.block), 8), np.uint64)
            block[: self.used] = self.block[: self.used]
            self._hold(block)

    def push(self, entry: int) -> None:
        at, over = divmod(self.count * self.bits, WORD)
        if at == len(self.words):
            self.reserve(1)
        self.words[at] = self.words[at] & ((1 << over) - 1) | entry << over
        self.count += 1

    def pop(self) -> int:
        self.count -= 1
        at, over = divmod(self.count * self.bits, WORD)
        return self.words[at] >> over & ((1 << self.bits) - 1)

    def push_all(self, entries: NDArray[np.uint64]) -> None:
        n, each = len(entries), WORD // self.bits
        self.reserve(n)
        at, over = divmod(self.count, each)
        whole = np.zeros(-(-(over + n) // each) * each, np.uint64)
        whole[over : over + n] = entries
        packed = np.bitwise_or.reduce(whole.reshape(-1, each) << self._shifts, axis=1)
        if over:
            packed[0] |= np.uint64(self.words[at] & (1 << over * self.bits) - 1)
        self.block[at : at + len(packed)] = packed
        self.count += n

    def pop_all(self, n: int) -> NDArray[np.uint64]:
        """The last `n` entries, in the order in which they were pushed."""
        self.count -= n
        return self._entries(n)

    def _entries(self, n: int) -> NDArray[np.uint64]:
        """The `n` entries above the last one."""
        each = WORD // self.bits
        first, end = self.count // each, -(-(self.count + n) // each)
        found = self.block[first:end, None] >> self._shifts & np.uint64((1 << self.bits) - 1)
        over = self.count % each
        return found.reshape(-1)[over : over + n]

    @property
    def _shifts(self) -> NDArray[np.uint64]:
        return _SHIFTS[self.bits]


class Residue:
    """The stacks, and which way pushes.

    `way` is the direction in which ticks push; the other one pops.  With `marked`, functions that
    are marked (see `rvm.program.Function.undoing`) use the log where they undo another function,
    and nowhere else.
    """

    __slots__ = ("codes", "marked", "nibbles", "way", "wholes")

    def __init__(self, way: int = 1) -> None:
        self.way = way
        self.marked = False
        self.codes, self.nibbles, self.wholes = Packed(2), Packed(4), Packed(WORD)

    @property
    def stacks(self) -> tuple[Packed, Packed, Packed]:
        """The three of them, in this order wherever they are listed."""
        return self.codes, self.nibbles, self.wholes

    @property
    def bytes(self) -> int:
        """The size of all words that are used."""
        return WORD // 8 * sum(s.used for s in self.stacks)

    @property
    def bits(self) -> int:
        """The bits of all entries."""
        return sum(s.count * s.bits for s in self.stacks)

    def __len__(self) -> int:
        return self.codes.count

    @property
    def height(self) -> Height:
        """The height to which `fall` returns the stacks, if all were pushed or all popped."""
        return self.codes.count, self.nibbles.count, self.wholes.count

    def fall(self, height: Height) -> None:
        """Go back to an earlier height."""
        self.codes.count, self.nibbles.count, self.wholes.count = height

    def snapshot(self) -> Snapshot:
        """The entries, as data that do not change."""
        found = []
        for stack in self.stacks:
            stack.clear()
            found.append((stack.count, stack.words[: stack.used].tobytes() if stack.count else b""))
        return tuple(found)

    def hold(self, entries: Snapshot) -> Residue:
        """Have these entries, and no others."""
        for stack, (count, data) in zip(self.stacks, entries, strict=True):
            stack.count = 0
            if count:
                stack.reserve(count)
                stack.count = count
                stack.block[: stack.used] = np.frombuffer(data, np.uint64)
        return self

    def reserve(self, gaps: int) -> None:
        """Have room for so many more gaps, however large they are."""
        for stack in self.stacks:
            stack.reserve(gaps)

    # ------------------------------------------------------------ gaps

    def push(self, gap: int) -> None:
        """Put a gap on top."""
        code = CODES.get(gap)
        if code is not None:
            self.codes.push(code)
            return
        nibble = _NIBBLES.get(gap, FAR)
        if nibble == FAR:
            self.wholes.push(gap % ALL)
        self.nibbles.push(nibble)
        self.codes.push(ESCAPE)

    def pop(self) -> int:
        """Take the gap on top."""
        self._ask(1)
        code = self.codes.pop()
        if code != ESCAPE:
            return int(_LEAST[code])
        nibble = self.nibbles.pop()
        if nibble != FAR:
            return int(_GAPS[nibble])
        return (self.wholes.pop() + TOP) % ALL - TOP

    def push_all(self, gaps: Gaps) -> None:
        """Put gaps on top, in their order."""
        # As one without a sign, 1 more than the gap says in one comparison whether it is small.
        far = (gaps + 1).view(np.uint64) > 2
        codes = np.where(gaps < 0, 2, gaps)
        if far.any():
            codes[far] = ESCAPE
            self._push_more(gaps[far])
        self.codes.push_all(codes.view(np.uint64))

    def _push_more(self, gaps: Gaps) -> None:
        """Put what codes have no room for on the other stacks."""
        near = (gaps >= -NEAR) & (gaps <= NEAR)
        nibbles = np.where(gaps > 0, gaps - 2, 5 - gaps)
        if not near.all():
            self.wholes.push_all(gaps[~near].view(np.uint64))
        self.nibbles.push_all(np.where(near, nibbles, FAR).view(np.uint64))

    def pop_all(self, n: int) -> Gaps:
        """Take the last `n` gaps, in the order in which they were pushed."""
        self._ask(n)
        codes = self.codes.pop_all(n)
        far = codes == ESCAPE
        found = _LEAST[codes.astype(np.intp)]
        if far.any():
            nibbles = self.nibbles.pop_all(int(np.count_nonzero(far))).astype(np.intp)
            more = _GAPS[nibbles]
            whole = nibbles == FAR
            more[whole] = self.wholes.pop_all(int(np.count_nonzero(whole))).view(np.int64)
            found[far] = more
        return found

    def _ask(self, n: int) -> None:
        if self.codes.count < n:
            raise not_its_own("it holds no more entries")


def not_its_own(note: str) -> InvertibilityError:
    """A way back that is not the one that the log is of."""
    return InvertibilityError(
        "R019",
        "the strict log does not belong to this run back",
        notes=(note,),
        hint="values that have changed since the run cannot be undone with its log",
    )
