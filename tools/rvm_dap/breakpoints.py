"""The stops that a client has set, as data: its requests, and the session's probes for them.

A client sends the whole list of a file (or of functions, instructions, places) at once. Entries
that are in both the old and the new list are kept, with their hits; others are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from rvm_tools.debug.session import Session
from rvm_tools.debug.stops import Breakpoint, Watchpoint

from rvm.faults import RvmError, UsageError

Probe = Breakpoint | Watchpoint
_HITS = re.compile(r"\s*(?P<how>==?|>=|<=|>|<|%)?\s*(?P<count>[0-9]{1,15})\s*")
_KINDS = {
    "function": "function breakpoint",
    "instruction": "instruction breakpoint",
    "data": "data breakpoint",
}
"""The protocol's reasons to stop, by the group that a probe belongs to."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One entry of a client's list: where, and when to stop there."""

    where: str
    condition: str = ""
    hits: str = ""
    message: str | None = None
    reads: bool = False
    depth: int = -1
    """The frame that a watched place is of."""
    function: str = ""


class Registry:
    """Stops by group: a source, or the functions, instructions or places."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._groups: dict[Hashable, list[tuple[Wish, Probe]]] = {}
        self._known: set[int] = set()
        """The numbers of the stops that the client knows."""

    def replace(self, group: Hashable, wishes: Sequence[Wish]) -> list[Probe | RvmError]:
        """Replace a group's stops by those requested; an error for each that cannot be set."""
        old = [(w, p) for w, p in self._groups.get(group, []) if p in self._session.probes]
        kept: list[tuple[Wish, Probe] | None] = []
        for wish in wishes:
            found = next((pair for pair in old if pair[0] == wish), None)
            if found is not None:
                old.remove(found)
            kept.append(found)
        for _, probe in old:
            self._session.delete(probe.number)
            self._known.discard(probe.number)
        out: list[Probe | RvmError] = []
        made: list[tuple[Wish, Probe]] = []
        for wish, pair in zip(wishes, kept, strict=True):
            try:
                probe = pair[1] if pair is not None else self._set(wish)
            except RvmError as error:
                out.append(error)
                continue
            made.append((wish, probe))
            out.append(probe)
        self._groups[group] = made
        self._known |= {probe.number for _, probe in made}
        return out

    def news(self) -> tuple[list[int], list[Probe]]:
        """The stops removed and added since the client was last notified."""
        now = {p.number: p for p in self._session.probes}
        gone = sorted(self._known - set(now))
        come = [p for number, p in now.items() if number not in self._known]
        self._known = set(now)
        return gone, come

    def _set(self, wish: Wish) -> Probe:
        session = self._session
        wanted = _hits_wanted(wish.hits)
        probe: Probe
        if wish.depth >= 0:
            probe = _watched(session, wish)
        else:
            probe = session.break_at(wish.where, wish.condition, message=wish.message)
        probe.wanted = wanted
        return probe

    def enter(self, group: Hashable, wish: Wish, probe: Probe) -> None:
        """Add a stop that the client did not set to a group, which the client may replace."""
        self._groups.setdefault(group, []).append((wish, probe))

    def reason(self, number: int) -> str:
        """The protocol's reason for a stop at a probe."""
        for group, pairs in self._groups.items():
            if any(p.number == number for _, p in pairs):
                return _KINDS.get(str(group), "breakpoint")
        return "breakpoint"


def _watched(session: Session, wish: Wish) -> Watchpoint:
    """Watch a place of the frame that the client was showing."""
    frames = session.frames
    if wish.depth >= len(frames) or frames[wish.depth].code.name != wish.function:
        raise UsageError(
            "U032", f"the call of `{wish.function}` that `{wish.where}` is of is not under way"
        )
    before = session.selected
    session.select(wish.depth)
    try:
        return session.watch(wish.where, wish.condition, reads=wish.reads)
    finally:
        session.selected = before


def _hits_wanted(text: str) -> Callable[[int], bool] | None:
    """The hits to stop at: `5` and `>= 5` from the fifth on, `== 5`, `% 5` every fifth, …"""
    if not text.strip():
        return None
    found = _HITS.fullmatch(text)
    if found is None or (found["how"] == "%" and not int(found["count"])):
        raise UsageError(
            "U036", f"`{text}` is not a number of hits", hint="write 5, == 5, >= 5, < 5 or % 5"
        )
    n = int(found["count"])
    tests: dict[str, Callable[[int], bool]] = {
        "==": lambda hits: hits == n,
        "=": lambda hits: hits == n,
        ">": lambda hits: hits > n,
        "<": lambda hits: hits < n,
        "<=": lambda hits: hits <= n,
        "%": lambda hits: hits % n == 0,
        ">=": lambda hits: hits >= n,
    }
    return tests[found["how"] or ">="]
