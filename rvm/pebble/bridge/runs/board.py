"""Playing a schedule on states: what is held of a node is its state, and actions change it.

What a move does to states is defined by `moves`, and for functions of programs by `functions`.
"""

from __future__ import annotations

from typing import Any

from rvm.pebble.bridge.runs.files import Files
from rvm.pebble.bridge.runs.moves import Moves
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


class Board(Player):
    """A game in progress on states."""

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
