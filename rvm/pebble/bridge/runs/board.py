"""Playing a schedule on states: what is held of a node is its state, and actions change it.

What a move does to states is defined by `Moves`: for Python functions in `steps`, for functions of
programs in `functions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rvm.pebble.bridge.runs.files import Files
from rvm.pebble.game import (
    ADVANCE,
    COPY,
    DROP,
    FREE,
    LOAD,
    OVERWRITE,
    SAVE,
    SHIFT,
    UNADVANCE,
    UNSHIFT,
    Player,
    Rules,
)

CHUNK = 4096
"""Actions in a block: few, as their numbers become Python's."""


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


class Board(Player):
    """A game under way on states."""

    def __init__(self, rules: Rules, moves: Moves, files: Files) -> None:
        super().__init__(rules)
        self.states, self.files = moves, files
        self.pebbles[0] = moves.x0
        self.copied: Any = None
        """The result, if it was copied out."""

    def change(self, kind: int, i: int, j: int) -> None:
        """Change the states that an action is about."""
        held, moves = self.pebbles, self.states
        # No variable may name a state that is given up: it would keep its memory.
        if kind == ADVANCE:
            held[j] = moves.advance(held[i], i, j)
        elif kind == UNADVANCE:
            moves.unadvance(held[i], held.pop(j), j)
        elif kind == FREE:
            if i or held[i] is not moves.x0:
                moves.free(held.pop(i))
            else:
                del held[i]
        elif kind == OVERWRITE:
            # The caller's own input is left as it is.
            own = i or held[i] is not moves.x0
            held[j] = (moves.overwrite if own else moves.advance)(held.pop(i), i, j)
        elif kind == SHIFT:
            held[j] = moves.shift(held.pop(i), i, j)
        elif kind == UNSHIFT:
            held[i] = moves.unshift(held.pop(j), i, j)
        elif kind == LOAD:
            held[i] = moves.loaded(self.files, i)
        elif kind == SAVE:
            self.files.save(i, moves.leaves(held[i]))
        elif kind == DROP:
            self.files.drop(i)
        elif kind == COPY:
            self.copied = moves.given(held[i])
