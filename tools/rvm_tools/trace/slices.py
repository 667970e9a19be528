"""Calls over time: a slice for each, those that are too short to be seen left out of long runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rvm.accounts.counts import CallWatcher
from rvm.image import Code

_MOST = 50_000
"""Slices that are kept."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """A call: the function in its direction, from when to when."""

    code: Code
    begin: int
    end: int

    @property
    def name(self) -> str:
        return "~" * self.code.undo + self.code.name

    @property
    def ticks(self) -> int:
        return self.end - self.begin


class Slices(CallWatcher):
    """The calls of a run.

    When they become more than `most`, those shorter than `least` ticks are left out, and `least`
    doubles until they are at most half as many.  A call is longer than those that it makes, so a
    slice that is kept has all that contain it.
    """

    def __init__(self, under_way: Sequence[Code], time: int, most: int = _MOST) -> None:
        self.kept: list[_Slice] = []
        self.least = 0
        self.calls = len(under_way)
        """All calls, including those active at the beginning; complete at the end."""
        self.most = most
        self._open = [(code, time) for code in under_way]

    def enter(self, code: Code, time: int) -> None:
        # A call begins with the tick that enters it.
        self._open.append((code, time - 1))

    def leave(self, time: int) -> None:
        code, begin = self._open.pop()
        self._keep(code, begin, time)

    def called(self, code: Code, entered: int, left: int) -> None:
        self._keep(code, entered - 1, left)

    def _keep(self, code: Code, begin: int, end: int) -> None:
        if end - begin >= self.least:
            self.kept.append(_Slice(code, begin, end))
            if len(self.kept) > self.most:
                self._thin()

    def close(self, time: int, entered: int) -> None:
        """End the active calls; `entered` are the calls made since the beginning."""
        while self._open:
            self.leave(time)
        self.calls += entered
        # Of calls that begin and end together the outer one was left last.
        self.kept.reverse()
        self.kept.sort(key=lambda s: (s.begin, -s.end))

    def _thin(self) -> None:
        while len(self.kept) > self.most // 2:
            self.least = max(1, self.least * 2)
            self.kept = [s for s in self.kept if s.ticks >= self.least]

    @property
    def left_out(self) -> int:
        return self.calls - len(self.kept)
