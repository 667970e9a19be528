"""Names that the source of a vectorised loop uses in addition to those of generated Python.

All of them compute or check; none stores.  After `Trouble` (or any other exception) the ordinary
code runs the loop, and finds the failing iteration.
"""

from __future__ import annotations

from operator import ge, gt, le, lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.engines.lanes.support import LANE_NAMES, Context
from rvm.engines.support import Trouble, defined_in
from rvm.state import Account

Lanes = NDArray[Any]
HOLDS = {"<": lt, "<=": le, ">": gt, ">=": ge}


def trips(at: int, going: str, end: int, landing: str, start: int, step: int) -> int:
    """The number of iterations of a loop that begins with the variable at `at`; 0 if not known.

    It continues while the variable and `end` compare so, and they must compare with `start` so
    whenever it does.
    """
    if not step:
        return 0
    if going == "!=":
        m, rest = divmod(end - at, step)
        if rest or m <= 0:
            return 0
    else:
        if (step > 0) != (going[0] == "<"):
            return 0
        beyond = end if len(going) == 1 else end + (1 if step > 0 else -1)
        m = max(1, -((at - beyond) // step))
        if not -(1 << 63) <= at + m * step < 1 << 63:
            return 0
    if landing == "!=":
        # The come-from requires every value after the first to differ from the start.
        k, rest = divmod(start - at, step)
        return m if rest or not 0 < k < m else k - 1
    holds = HOLDS[landing]
    return m if m == 1 or (holds(at + step, start) and holds(at + (m - 1) * step, start)) else 0


def steps(at: int, by: int, k: int) -> Lanes:
    """The values of the loop's variable."""
    return np.arange(at, at + by * k, by, dtype=np.int64)


def distinct(index: Lanes) -> None:
    """Trouble if an index occurs twice.  All are in bounds."""
    if index.size:
        lanes = np.arange(index.size)
        last = np.empty(int(index.max()) + 1, np.intp)
        last[index] = lanes
        if np.any(last[index] != lanes):
            raise Trouble


def never(k: int, *axes: tuple[int, int, Any]) -> None:
    """Trouble if elements are among those that k iterations reach in even steps.

    An axis is the first index and the stride of these, and the indices of those.
    """
    meet: Any = True
    for first, stride, index in axes:
        gap = index - first
        if stride:
            lane = gap // stride
            meet = meet & (gap == lane * stride) & (lane >= 0) & (lane < k)
        else:
            meet = meet & (gap == 0)
    if np.any(meet):
        raise Trouble


def within(first: int, last: int, length: int) -> None:
    """Trouble unless both ends of a run of indices are in bounds."""
    if not (0 <= first < length and 0 <= last < length):
        raise Trouble


def run_of(first: int, stride: int, k: int) -> slice:
    """The slice of k indices from `first` in steps of `stride`."""
    end = first + stride * k
    return slice(first, end if end >= 0 else None, stride)


def room_for(k: int, *axes: tuple[int, int, int, int]) -> int:
    """Of how many iterations, up to k, two accesses reach no common element; 0 if not of any.

    An axis is (first index and stride of the one, those of the other).  It is enough that the
    ranges of indices on one axis are apart, or that they never meet in equal steps.
    """
    best = 0
    for f, s, g, t in axes:
        n = k
        if f == g:
            continue
        if s == t and s and (f - g) % s:
            return k
        a, b = f + s * (k - 1), g + t * (k - 1)
        if not (max(f, a) < min(g, b) or max(g, b) < min(f, a)):
            n = abs(f - g) // abs(s) if s == t and s else 0
        best = max(best, n)
    return best


def columns(parts: tuple[Any, ...], lanes: int, dtype: Any, first: Any) -> Lanes:
    """Values that iterations combine with another, in order:

    `first`, then one per part and lane.
    """
    width = len(parts)
    out: Lanes = np.empty(1 + lanes * width, dtype)
    out[0] = first
    for k, part in enumerate(parts):
        out[1 + k :: width] = part
    return out


def running(f: Any, first: Any, parts: tuple[Any, ...], lanes: int, dtype: Any) -> Lanes:
    """The running results of combining the values, from `first` on."""
    found: Lanes = f.accumulate(columns(parts, lanes, dtype, first), dtype=dtype)
    return found


def final(f: Any, first: Any, parts: tuple[Any, ...], lanes: int, dtype: Any) -> Any:
    """The last value of a combination, in the iterations' order."""
    return f.accumulate(columns(parts, lanes, dtype, first), dtype=dtype)[-1].item()


def final_of(f: Any, first: Any, terms: Lanes) -> Any:
    """`final` in the memory of the only part: an array that nothing else uses."""
    terms[0] = f(first, terms[0])
    return f.accumulate(terms, out=terms)[-1].item()


def total(f: Any, first: Any, parts: tuple[Any, ...], lanes: int, dtype: Any) -> Any:
    """The last value of combining where the order does not matter: numbers that wrap, or bits."""
    sign = np.add if f is np.subtract else f
    found = np.asarray(first, dtype)
    for part in parts:
        found = f(
            found, sign.reduce(np.broadcast_to(np.asarray(part, dtype), (lanes,)), dtype=dtype)
        )
    return found.item()


def shifted(first: Any, after: Any, lanes: int, dtype: Any) -> Lanes:
    """The values that iterations receive from the previous one."""
    out: Lanes = np.empty(lanes, dtype)
    out[0] = first
    out[1:] = after[:-1] if isinstance(after, np.ndarray) else after
    return out


class Erased(Context):
    """The bits that iterations erase, all together, and the largest residue."""

    def erase(self, bits: Any) -> None:
        """Count bits that were lost, for each lane."""
        self.erased = (self.erased or 0) + int(np.sum(bits))

    def note(self, drift: Any) -> None:
        """Record residues that were accepted, for each lane."""
        self.drift = max(self.drift or 0.0, float(np.max(drift, initial=0.0)))

    def taken(self) -> int:
        """The number of bits since the last call."""
        bits, self.erased = self.erased or 0, None
        return bits

    def file(self, account: Account) -> None:
        """Enter the largest residue in a machine's account."""
        account.drift = max(account.drift, self.drift or 0.0)


VECTOR_SUPPORT: dict[str, object] = {**LANE_NAMES, **defined_in(globals())}
