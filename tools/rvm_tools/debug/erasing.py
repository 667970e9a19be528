"""Bits erased between the start and a time, as a session comes to know them: they rewind with it.

The machine's own counter only grows, in whichever direction it goes.  Here is what a run from the
start has erased when it comes to a time.  Where the session has come back to a time at which it
was not seen before, that is known to lie between the numbers of the times around.
"""

from __future__ import annotations

from bisect import bisect_right

MAX_KNOWN = 2048
"""Times whose number is remembered."""


class Erased:
    """What is known of a run; `grown` are the machine's own counts of bits."""

    def __init__(self) -> None:
        self._times, self._bits = [0], [0]
        """Ascending both: times at which the number is known."""
        self._time = self._base = self._grown = 0
        """The present leg's beginning: the time, the bits up to it, the machine's count there."""
        self._exact = True
        """Whether the bits up to there are known, and not only a lower bound."""

    def at(self, time: int, grown: int) -> tuple[int, bool]:
        """The bits up to where the machine now stands; whether they may not be more."""
        k = bisect_right(self._times, time)
        known = self._bits[k - 1]
        between = k < len(self._bits) and self._bits[k] == known
        if self._times[k - 1] == time or between:
            return known, True
        if time >= self._time:
            bits = self._base + grown - self._grown
            return max(known, bits), self._exact
        return known, False

    def arrive(self, time: int, grown: int) -> None:
        """The machine has come to a time, and goes another way from there."""
        bits, exact = self.at(time, grown)
        k = bisect_right(self._times, time)
        if exact and self._times[k - 1] != time:
            self._times.insert(k, time)
            self._bits.insert(k, bits)
            if len(self._times) > MAX_KNOWN:
                del self._times[1::2], self._bits[1::2]
        self._time, self._base, self._grown, self._exact = time, bits, grown, exact

    def forget(self) -> None:
        """From here it is another run: nothing is known of its other times."""
        del self._times[1:], self._bits[1:]
