"""The minimal costs on a chain in the reversible game, for any length, in a compressed form.

A pebble may be placed on node i, or removed from it, when node i - 1 has one; node 0 always has
one.  With S pebbles, including the one on the result but not the input (Knill 1995, arXiv
math/9508218):

    F(n, S) = min over m of F(m, S) + F(n-m, S-1) + F(m, S-1)     end with a pebble on n only
    G(n, S) = min over m of F(m, S) + G(n-m, S-1)                 end with a pebble on n

F(., S) and G(., S) are convex in n, so their increments are sorted, and those for S are a merge of
sorted sequences: for F, of d_S[m] + d_(S-1)[m] with d_(S-1)[m].  They are stored as runs of equal
numbers, of which there are some hundreds for a million steps.  With many pebbles there are closed
forms:

    F(n, S) = 2n - 1  for n <= S,     4n - 2S - 1  for S <= n <= S + C(S-1, 2)
    G(n, S) = n       for n <= S,     2n - S       for S <= n <= S + C(S, 2)
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from typing import Final

INFEASIBLE: Final = 1 << 200
"""The cost of what cannot be done; costs add up, so anything as large is infeasible too."""


class Convex:
    """A convex function of n = 1, 2, ..., `last`, as runs of its increments.

    `values[k]` is the value at `ends[k]`; up to the next end it grows by `slopes[k + 1]` a step.
    A best split of `ends[k]` has `left[k]` to the left, the most if there are several.
    """

    __slots__ = ("ends", "left", "slopes", "values")

    def __init__(self) -> None:
        self.ends = [1]
        self.values = [1]
        self.slopes = [0]
        self.left = [1]

    @property
    def last(self) -> int:
        return self.ends[-1]

    def __call__(self, n: int) -> int:
        k = bisect_left(self.ends, n)
        if k == len(self.ends):
            return INFEASIBLE
        return self.values[k] - (self.ends[k] - n) * self.slopes[k]

    def grow(self, slope: int, count: int, left: int = 0) -> None:
        """Go on for `count` steps with this increment, `left` of them to the left of the split."""
        if self.slopes[-1] == slope and len(self.slopes) > 1:
            self.ends[-1] += count
            self.values[-1] += slope * count
            self.left[-1] += left
        else:
            self.ends.append(self.ends[-1] + count)
            self.values.append(self.values[-1] + slope * count)
            self.slopes.append(slope)
            self.left.append(self.left[-1] + left)

    def split(self, n: int) -> int:
        """A best split of 1 < n <= `last`: the roundest of them.

        Along a run all increments are equal, so it does not matter which come first.  Round numbers
        make the pieces of different splits equal, so that fewer have to be named.
        """
        k = bisect_left(self.ends, n)
        before, done = self.left[k - 1], n - self.ends[k - 1]
        left = self.left[k] - before
        right = self.ends[k] - self.ends[k - 1] - left
        return roundest(before + max(0, done - right), before + min(left, done))


def convolution(first: int, a: list[Convex], b: Convex, length: int, into: Convex) -> None:
    """Extend `into`, which ends at 1, by `first` and the merge of increments, up to `length`.

    The merged are those of the sum of the functions `a` and those of `b`, each from n = 2 on.
    `into` itself may be among `a`: what the merge looks back at is always complete already, as the
    increments are sorted and those of the sum are larger than the ones they come from.
    """
    if length < 2:
        return
    into.grow(first, 1)
    used_a, used_b = 1, 1
    runs_a, run_b = [1] * len(a), 1
    while into.last < length:
        slope_a = slope_b = INFEASIBLE
        count_a = count_b = 0
        if all(k < len(f.ends) for f, k in zip(a, runs_a, strict=True)):
            slope_a = sum(f.slopes[k] for f, k in zip(a, runs_a, strict=True))
            count_a = min(f.ends[k] for f, k in zip(a, runs_a, strict=True)) - used_a
        if run_b < len(b.ends):
            slope_b, count_b = b.slopes[run_b], b.ends[run_b] - used_b
        if not count_a and not count_b:
            return
        left = length - into.last
        if slope_a <= slope_b:
            count = min(count_a, left)
            used_a += count
            into.grow(slope_a, count, count)
            runs_a = [k + (f.ends[k] == used_a) for f, k in zip(a, runs_a, strict=True)]
        else:
            count = min(count_b, left)
            used_b += count
            into.grow(slope_b, count)
            run_b += b.ends[run_b] == used_b


class Line:
    """F and G for chains of up to `n` steps; levels of S are computed when they are needed."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._persist = [Convex(), Convex()]
        self._visit = [Convex(), Convex()]

    def persist(self, n: int, pebbles: int) -> int:
        """F: the fewest moves from no pebble to one on n.  Nothing to do for n = 0."""
        s = pebbles
        if n <= s:
            return max(0, 2 * n - 1)
        if s > 0 and n <= s + (s - 1) * (s - 2) // 2:
            return 4 * n - 2 * s - 1
        return self._level(self._persist, s)(n) if s > 0 else INFEASIBLE

    def visit(self, n: int, pebbles: int) -> int:
        """G: the fewest moves from no pebble to a position with one on n."""
        s = pebbles
        if n <= s:
            return n
        if n <= s + s * (s - 1) // 2:
            return 2 * n - s
        return self._level(self._visit, s)(n) if s > 0 else INFEASIBLE

    def _level(self, levels: list[Convex], s: int) -> Convex:
        while len(levels) <= s:
            k = len(levels)
            if levels is self._persist:
                own, below = Convex(), levels[k - 1]
                convolution(2, [own, below], below, self.n, own)
            else:
                own = Convex()
                convolution(1, [self._level(self._persist, k)], levels[k - 1], self.n, own)
            levels.append(own)
        return levels[s]

    # ------------------------------------------------------------ the best places to split

    def persist_split(self, n: int, pebbles: int) -> int:
        """An m that is the best for F(n, S), 1 <= m < n."""
        s = pebbles
        if n <= s:
            return 1
        if n <= s + (s - 1) * (s - 2) // 2:
            return min(s - 1, n - s + 1)  # what is left of m keeps to the closed form
        return self._level(self._persist, s).split(n)

    def visit_split(self, n: int, pebbles: int) -> int:
        """An m that is the best for G(n, S), 1 <= m < n."""
        s = pebbles
        if n <= s:
            return 1
        if n <= s + s * (s - 1) // 2:
            return min(s, n - s + 1)
        return self._level(self._visit, s).split(n)


def roundest(first: int, last: int) -> int:
    """The number of a range with the most binary zeros at its end."""
    shift = (first ^ last).bit_length()
    while True:
        candidate = last >> shift << shift
        if candidate >= first and candidate > 0:
            return candidate
        shift -= 1


def line(n: int) -> Line:
    """A table for chains of up to n steps, the same for all n between two powers of two."""
    return line_of_bits((n - 1).bit_length() if n > 1 else 0)


@lru_cache(maxsize=32)
def line_of_bits(bits: int) -> Line:
    """The table for chains of up to 2^bits steps, kept for the next plan."""
    return Line(1 << bits)


def fewest_to_persist(n: int) -> int:
    """The fewest pebbles that end with one on n only: ceil(log2 n) + 1."""
    return (n - 1).bit_length() + 1 if n else 0


def fewest_to_visit(n: int) -> int:
    """The fewest pebbles that ever reach n: ceil(log2(n + 1))."""
    return n.bit_length()
