"""Playing a schedule on states: what is in memory and on disk, what was done, and what it cost.

A `Board` knows the rules of who is where, and counts.  What a move does to states is told by its
`Moves`: for Python functions in `steps`, for functions of programs in `functions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

from rvm.faults import ScheduleError
from rvm.pebble.actions import Action, Block, Kind
from rvm.pebble.bridge.runs.files import Files
from rvm.pebble.tally import Tally, Weights

CHUNK = 4096
"""Actions in a block: few, as their numbers become Python's."""
ADVANCE, UNADVANCE, SHIFT, UNSHIFT = (int(k) for k in list(Kind)[:4])
OVERWRITE, FREE, REVERSE, COPY = (int(k) for k in list(Kind)[4:8])
SAVE, LOAD = int(Kind.SAVE), int(Kind.LOAD)


class Moves(Protocol):
    """What moves do to states.  A state that is given up must not be used any more."""

    x0: Any
    """The input as the run holds it."""
    nbytes: int
    """The size of a state."""
    scratch: int
    """States in memory besides the pebbles, while steps are done."""

    def advance(self, x: Any, i: int, j: int) -> Any:
        """s_j from s_i, which stays."""

    def unadvance(self, x: Any, y: Any, j: int) -> None:
        """Uncompute s_j = y, from s_(j-1) = x; y is given up."""

    def overwrite(self, x: Any, i: int, j: int) -> Any:
        """s_j from s_i = x, which is given up."""

    def shift(self, x: Any, i: int, j: int) -> Any:
        """s_j in the place of s_i = x, by steps that can be undone in place."""

    def unshift(self, y: Any, i: int, j: int) -> Any:
        """s_i in the place of s_j = y, by undoing them."""

    def free(self, x: Any) -> None:
        """Erase x, which is given up."""

    def seen(self, x: Any) -> Any:
        """A state as others may look at it, for now."""

    def given(self, x: Any) -> Any:
        """A state as the caller has it, who may keep it while the run goes on."""

    def result(self, x: Any) -> Any:
        """A state as the caller has it, when the run is over."""

    def leaves(self, x: Any) -> Sequence[Any]:
        """What is written of x to disk."""

    def loaded(self, files: Files, node: int) -> Any:
        """The state of a node, from disk."""


class Board:
    """A game under way: states by node, and counts as a `Tally` has them."""

    def __init__(
        self, moves: Moves, n: int, files: Files, weights: Weights, in_place: frozenset[int]
    ) -> None:
        self.moves = moves
        self.files = files
        self.weights = weights
        self.in_place = in_place
        """The steps that can be undone in place."""
        self.held: dict[int, Any] = {0: moves.x0}
        self.adjoint = n
        """Adjoints have come down to this node."""
        self.copied: Any = None
        """The result, if it was copied out."""
        self.actions = self.reversals = self.copies = self.writes = self.reads = 0
        self.done: float = 0
        self.erased: float = 0
        self.peak = self.disk_peak = 0

    def tally(self) -> Tally:
        """What was counted."""
        return Tally(
            self.actions,
            self.done,
            self.erased,
            self.reversals,
            self.copies,
            self.writes,
            self.reads,
            len(self.held) - 1,
            self.peak,
            len(self.files),
            self.disk_peak,
        )

    def run(self, blocks: Iterable[Block]) -> None:
        """Play blocks that have no adjoints in them."""
        for j, _ in self.sweep(blocks):
            self._refuse(REVERSE, j - 1, j, "it has no place in a run forwards")

    def sweep(self, blocks: Iterable[Block]) -> Iterator[tuple[int, Any]]:
        """Play blocks; at each adjoint give its step j and s_(j-1)."""
        for block in blocks:
            yield from self.play(zip(*block.tolist(), strict=True))

    def play(self, actions: Iterable[Sequence[int]]) -> Iterator[tuple[int, Any]]:
        """Play actions; at each adjoint give its step j and s_(j-1)."""
        held, moves = self.held, self.moves
        advance, unadvance = moves.advance, moves.unadvance
        cost = None if self.weights.costs is None else self.weights.steps
        for kind, i, j in actions:
            self.actions += 1
            if kind == REVERSE:
                if j != self.adjoint or j != i + 1:
                    self._refuse(kind, i, j, f"the adjoint of step {self.adjoint} is the next")
                if i not in held:
                    self._refuse(kind, i, j, f"node {i} has no pebble")
                self.adjoint = i
                self.reversals += 1
                yield j, held[i]
            elif kind == ADVANCE:
                if i not in held or j in held:
                    self._refuse(kind, i, j, _wrong(i, j, held))
                held[j] = advance(held[i], i, j)
                self.done += j - i if cost is None else cost(i, j)
                self.erased += j - i - 1
                if len(held) > self.peak + 1:
                    self.peak = len(held) - 1
            elif kind == UNADVANCE:
                if i not in held or j not in held or j != i + 1:
                    self._refuse(kind, i, j, _wrong(i, None, held))
                unadvance(held[i], held.pop(j), j)
                self.done += 1 if cost is None else cost(i, j)
            elif kind == FREE:
                if i not in held or (not i and 0 not in self.files):
                    self._refuse(kind, i, j, _wrong(i, None, held))
                # No variable may name a state that is given up: it would keep its memory.
                if i or held[i] is not moves.x0:
                    moves.free(held.pop(i))
                else:
                    del held[i]
                self.erased += 1
            else:
                self._other(kind, i, j)

    def _other(self, kind: int, i: int, j: int) -> None:
        """The kinds of action that are rare."""
        held, moves = self.held, self.moves
        old, new = (j, i) if kind == UNSHIFT else (i, j)
        if kind in (OVERWRITE, SHIFT, UNSHIFT):
            if old not in held or new in held or not i < j:
                self._refuse(kind, i, j, _wrong(old, new, held))
            if not i and not (kind == OVERWRITE and 0 in self.files):
                self._refuse(kind, i, j, "the input is never changed")
            if kind != OVERWRITE and not self.in_place.issuperset(range(i + 1, j + 1)):
                self._refuse(kind, i, j, "a step of it cannot be undone in place")
            if kind == OVERWRITE:
                # The caller's own input is left as it is.
                own = i or held[i] is not moves.x0
                held[j] = (moves.overwrite if own else moves.advance)(held.pop(i), i, j)
                self.erased += j - i
            elif kind == SHIFT:
                held[j] = moves.shift(held.pop(i), i, j)
            else:
                held[i] = moves.unshift(held.pop(j), i, j)
            self.done += self.weights.steps(i, j)
            return
        if kind == LOAD:
            if i not in self.files or i in held:
                self._refuse(kind, i, j, _wrong(None, i, held))
            held[i] = moves.loaded(self.files, i)
            self.reads += 1
            self.peak = max(self.peak, len(held) - 1)
            return
        if i not in (held if kind in (SAVE, COPY) else self.files):
            self._refuse(kind, i, j, f"state {i} is not there")
        if kind == SAVE:
            self.files.save(i, moves.leaves(held[i]))
            self.writes += 1
            self.disk_peak = max(self.disk_peak, len(self.files))
        elif kind == COPY:
            self.copied = moves.given(held[i])
            self.copies += 1
        else:
            if not i and i not in held:
                self._refuse(kind, i, j, "the input is never lost")
            self.files.drop(i)

    def _refuse(self, kind: int, i: int, j: int, why: str) -> NoReturn:
        raise ScheduleError(
            "P003",
            f"action {self.actions}, {Action(kind, i, j)!r}, is against the rules: {why}",
            values={"action": self.actions, "held": len(self.held) - 1, "moves so far": self.done},
        )


def _wrong(need: int | None, fresh: int | None, held: dict[int, Any]) -> str:
    if need is not None and need not in held:
        return f"node {need} has no pebble"
    if fresh is not None and fresh in held:
        return f"node {fresh} has a pebble already"
    return "nodes are not in order, or the state is not on disk"
