"""Actions on a chain of states, one at a time and as blocks of NumPy integers.

A chain has the states s_0 (the input), s_1, ..., s_n; step i computes s_i from s_(i-1).  A *pebble*
on i means that s_i is held in memory.  An action names two nodes, `start` <= `stop`:

| action | needs | does | moves |
|---|---|---|---|
| Advance(i, j) | start | computes s_j into fresh memory; states between are not kept | j - i |
| Unadvance(i, j) | start, stop | uncomputes s_j: its memory is zero again; j = i + 1 | 1 |
| Shift(i, j) | start | s_i becomes s_j in place, by steps that can be undone in place | j - i |
| Unshift(i, j) | stop | s_j becomes s_i in place, by undoing them | j - i |
| Overwrite(i, j) | start | s_i becomes s_j in place; s_i and the states between are lost | j - i |
| Free(i) | the node | erases s_i | 0 |
| Reverse(i, j) | start | the adjoint of step j = i + 1, which needs s_i | 0 |
| Copy(i) | the node | copies the result out, to memory that no budget counts | 0 |
| Save(i), Load(i), Drop(i) | | s_i to disk, from disk, off the disk | 0 |

A *block* is an int64 array of shape (3, m): kinds, starts and stops of m actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Block = NDArray[np.int64]
"""Shape (3, m): kinds, starts, stops."""


class Kind(IntEnum):
    """The kind of an action. The first four are two pairs of inverses: `kind ^ 1`."""

    ADVANCE = 0
    UNADVANCE = 1
    SHIFT = 2
    UNSHIFT = 3
    OVERWRITE = 4
    FREE = 5
    REVERSE = 6
    COPY = 7
    SAVE = 8
    LOAD = 9
    DROP = 10


LAST_INVERTIBLE = Kind.UNSHIFT
_NAMES = [kind.name.capitalize() for kind in Kind]
_ONE_NODE = frozenset({Kind.FREE, Kind.COPY, Kind.SAVE, Kind.LOAD, Kind.DROP})


class Action(NamedTuple):
    """One action: its kind (a `Kind`, or its number) and two nodes.

    A tuple, as schedules have many millions of them.
    """

    kind: int
    start: int
    stop: int

    def __repr__(self) -> str:
        if self.kind in _ONE_NODE:
            return f"{_NAMES[self.kind]}({self.start})"
        return f"{_NAMES[self.kind]}({self.start}, {self.stop})"


class Effect(NamedTuple):
    """The effect of an action on pebbles: the node it reads, and those it removes and adds."""

    reads: int | None = None
    taken: int | None = None
    made: int | None = None
    lost: tuple[int, int] = (0, 0)
    """The first and the end of the states that are lost."""


def effect(kind: int, i: int, j: int) -> Effect:
    """The effect of an action on the pebbles."""
    match kind:
        case Kind.ADVANCE:
            return Effect(reads=i, made=j, lost=(i + 1, j))
        case Kind.UNADVANCE:
            return Effect(reads=i, taken=j)
        case Kind.SHIFT:
            return Effect(taken=i, made=j)
        case Kind.UNSHIFT:
            return Effect(taken=j, made=i)
        case Kind.OVERWRITE:
            return Effect(taken=i, made=j, lost=(i, j))
        case Kind.FREE:
            return Effect(taken=i, lost=(i, i + 1))
        case Kind.LOAD:
            return Effect(made=i)
        case Kind.DROP:
            return Effect()
    return Effect(reads=i)


def advance(start: int, stop: int) -> Action:
    """Compute s_stop from s_start, and keep both."""
    return Action(Kind.ADVANCE, start, stop)


def unadvance(start: int, stop: int) -> Action:
    """Uncompute s_stop, from s_start."""
    return Action(Kind.UNADVANCE, start, stop)


def overwrite(start: int, stop: int) -> Action:
    """Replace s_start, which is lost, by s_stop."""
    return Action(Kind.OVERWRITE, start, stop)


def reverse(stop: int) -> Action:
    """Take the adjoint back over step `stop`, which needs s_(stop-1)."""
    return Action(Kind.REVERSE, stop - 1, stop)


def at(kind: Kind, node: int) -> Action:
    """An action with one node: Free, Copy, Save, Load or Drop."""
    return Action(kind, node, node)


def composite(start: int, stop: int) -> tuple[Action, ...]:
    """Make s_stop from s_start: one step into new memory, the others in place without loss."""
    first = advance(start, start + 1)
    if stop == start + 1:
        return (first,)
    return first, Action(Kind.SHIFT, start + 1, stop)


def undone(actions: Iterable[Action]) -> Iterator[Action]:
    """The inverse of a list of actions, which are all of the invertible kinds."""
    return (Action(a.kind ^ 1, a.start, a.stop) for a in reversed(list(actions)))


def actions_of(block: Block) -> Iterator[Action]:
    """The actions of a block, one by one.

    A tuple is made for each by C code only: this is several times faster than calling `Action`.
    """
    return map(tuple.__new__, repeat(Action), zip(*block.tolist(), strict=True))


def block_of(actions: Iterable[Action]) -> Block:
    """A block from actions."""
    rows = np.array(list(actions), dtype=np.int64).reshape(-1, 3)
    return np.ascontiguousarray(rows.T)
