"""A schedule as a table of integers, which one recursive function interprets (see `player`).

Each name of the schedule's grammar becomes rows, unless it is spliced into the names that use it.
It is called if it has a *face*: if the only states that it finds and leaves are the one on its
first node, the *base*, which it never changes, and one on another node, which it computes or
uncomputes.

The table also determines where states are.  A call has a slice of a pool of states, counted from an
*origin* in either direction.  Its own states have the first slots, and go in the opposite
direction; the state that it computes or uncomputes for its caller has the last one.  So a call for
a state that is the caller's own has a slice that ends there, counted in the other direction, and
every free slot is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from rvm.pebble.actions import LAST_INVERTIBLE, Action, Kind, effect
from rvm.pebble.grammar import Item, Name, Schedule

SHORT = 2
"""Names of at most this many actions are spliced."""
UNDOING = (Kind.UNADVANCE, Kind.UNSHIFT)


class Op(IntEnum):
    """The operation of a row; `source` and `target` are slots."""

    CALL = 0
    UNCALL = 1
    STEP = 2
    UNSTEP = 3
    TURN = 4
    """A step in place."""
    UNTURN = 5
    OVERWRITE = 6
    ERASE = 7
    REVERSE = 8
    """The adjoint of the step from the source, whose result is made in the target for that."""
    REVERSE_ERASE = 9
    """The same, and the source is erased."""
    ADJOINT = 10
    """The step is undone, and its adjoint taken."""
    ADJOINT_IN_PLACE = 11
    COPY = 12


class Row(NamedTuple):
    """A row of the table, done `times` times."""

    op: Op
    node: int
    """The node before the step; of a call the callee's base.  Both from the own base on."""
    source: int = 0
    """The slot that is read, or the callee's base: 0 for the own base, k + 1 for slot k."""
    target: int = 0
    """The slot that is changed; of a call its origin."""
    times: int = 1
    by: int = 1
    """The increment of the node each time, 1 or -1."""
    slide: int = 0
    """The increment of the slots each time."""
    callee: int = -1
    flip: bool = False
    """Whether the callee counts its slots in the other direction."""


@dataclass(eq=False, slots=True)
class Pebble:
    """A state from when it is made to when it is gone; `outer` if it is the caller's."""

    outer: bool = False
    slot: int = 0


class Face(NamedTuple):
    """The interface of a name to its caller."""

    base: int
    node: int | None
    """Where it makes or takes a state, from the base on."""
    made: bool


class Event(NamedTuple):
    """An item with the states that it reads, makes, changes or takes away."""

    item: Item
    source: Pebble | None
    made: Pebble | None = None
    changed: Pebble | None = None
    taken: Pebble | None = None


@dataclass(slots=True)
class Body:
    """The rows of a name that is called; targets below 0 are counted from the end of the slice."""

    face: Face
    rows: list[Row] = field(default_factory=list)
    need: int = 0
    """The number of slots of its slice."""
    position: int = -1
    """The position of its rows in the table."""


class Table:
    """The bodies of a schedule of n steps; that of the whole schedule is the first of `bodies`."""

    def __init__(self, schedule: Schedule, n: int) -> None:
        self.schedule = schedule
        self._root = list(schedule.expand(schedule.root))
        self._early = self._begin_early(n)
        self.result = -1
        """The slot in which the last state is at the end."""
        self._called: dict[Name, Body] = {}
        self._spliced: dict[Name, list[Item]] = {}
        for name in schedule.names:
            self._add(name)
        self.bodies: list[Body] = []
        number: dict[Name, int] = {}
        names = [schedule.root]
        while names:
            name = names.pop()
            if name not in number:
                number[name] = len(self.bodies)
                self.bodies.append(self._called[name])
                names += [i.what for i in self._spliced[name] if not isinstance(i.what, Action)]
        at = 0
        for name, k in number.items():
            body = self.bodies[k]
            body.position, at = at, at + len(body.rows)
            calls = (i.what for i in self._spliced[name] if not isinstance(i.what, Action))
            body.rows = [
                row._replace(callee=number[next(calls)]) if row.op <= Op.UNCALL else row
                for row in body.rows
            ]

    @property
    def slots(self) -> int:
        """The number of states in the pool."""
        return self.bodies[0].need

    def _begin_early(self, n: int) -> bool:
        """Whether adjoints are taken with the undoing of their steps, but for the last step's.

        A sweep that ends with the adjoint of the first step, after the names P and Q, takes each
        adjoint just before the state after the next step is undone: see `_early_actions`.
        """
        root = self._root
        if len(root) < 2 or root[-1] != Item(Action(Kind.REVERSE, 0, 1)):
            return False
        sweep = root[-2].what
        if isinstance(sweep, Action) or not isinstance(sweep, tuple) or sweep[0] != "Q":
            return False
        self._root = [*root[:-2], Item(Action(Kind.REVERSE, n - 1, n)), root[-2]]
        return True

    def _add(self, name: Name) -> None:
        root = name == self.schedule.root
        items = self._root if root else list(self.schedule.expand(name))
        if self._early and not root and all(isinstance(i.what, Action) for i in items):
            items = _early_actions(items)
        parts = [part for item in items for part in self._parts(item)]
        self._spliced[name] = parts
        short = len(parts) <= SHORT and all(isinstance(part.what, Action) for part in parts)
        if root or (len(parts) > 1 and not short):
            face, events = self._events(parts)
            if face is None:
                return
            made = [e.made for e in events if e.made is not None and e.made.outer]
            plain = root and all(isinstance(part.what, Action) for part in parts)
            for pebble in made if plain else ():
                # Nothing is called that would need the slots in between.
                pebble.outer = False
            self._called[name] = self._seated(face, events)
            self.result = made[-1].slot if plain and made else self._called[name].need - 1

    def _parts(self, item: Item) -> list[Item]:
        """An item, or its expansion where it is spliced."""
        what, shift, back = item
        if isinstance(what, Action):
            return [Item(Action(what.kind ^ back, what.start + shift, what.stop + shift))]
        if what in self._called:
            return [item]
        parts = self._spliced[what]
        return [_moved(part, shift, back) for part in (reversed(parts) if back else parts)]

    def _face(self, item: Item) -> Face:
        """That of a called name, its base where the item puts it."""
        face = self._called[item.what].face
        return face._replace(base=face.base + item.shift, made=face.made != item.back)

    def _events(self, parts: Sequence[Item]) -> tuple[Face | None, list[Event]]:
        """The states of a list, and its face if it has one."""
        board: dict[int, Pebble] = {}
        found: dict[int, Pebble] = {}
        events = []

        def at(node: int) -> Pebble:
            if node not in board:
                board[node] = found[node] = Pebble(outer=True)
            return board[node]

        def made(node: int) -> Pebble:
            board[node] = Pebble()
            return board[node]

        def taken(node: int) -> Pebble:
            at(node)
            return board.pop(node)

        for item in parts:
            if not isinstance(item.what, Action):
                face = self._face(item)
                source, end = at(face.base), face.base + (face.node or 0)
                if face.node is None:
                    events.append(Event(item, source))
                elif face.made:
                    events.append(Event(item, source, made=made(end)))
                else:
                    events.append(Event(item, source, taken=taken(end)))
                continue
            reads, gone, come, _ = effect(*item.what)
            if gone is not None and come is not None:
                board[come] = taken(gone)
                events.append(Event(item, None, changed=board[come]))
                continue
            read = None if reads is None else at(reads)
            new = None if come is None else made(come)
            events.append(Event(item, read, new, taken=None if gone is None else taken(gone)))
        base = min(found)
        others = {v for v in {**found, **board} if v != base}
        node = min(others, default=None)
        if len(others) > 1 or board.get(base) is not found[base]:
            return None, events
        found[base].slot, found[base].outer = -1, False
        if node is None:
            return Face(base, None, False), events
        if node in found and node in board:
            return None, events
        if node in board:
            board[node].outer = True
        return Face(base, node - base, node in board), events

    # ------------------------------------------------------------ slots

    def _seated(self, face: Face, events: Sequence[Event]) -> Body:
        """The rows of a name, whose states are given slots."""
        body = Body(face)
        used: dict[int, Pebble] = {}
        outer = face.node is not None and not face.made
        skip = False
        for k, event in enumerate(events):
            top = max(used, default=-1) + 1
            item, after = event.item, events[k + 1] if k + 1 < len(events) else None
            if isinstance(item.what, Action):
                if event.made is not None and not event.made.outer:
                    event.made.slot = next(s for s in range(top + 1) if s not in used)
                    used[event.made.slot] = event.made
                if not skip:
                    rows, skip = _rows(event, after, top, face.base)
                    body.rows += rows
                    if any(row.op in (Op.REVERSE, Op.REVERSE_ERASE) for row in rows):
                        body.need = max(body.need, top + 1 + outer)
                else:
                    skip = False
            else:
                self._call(body, event, used, top, outer)
            for pebble in (event.made, event.taken):
                if pebble is not None and pebble.outer:
                    outer = pebble is event.made
            if event.taken is not None and not event.taken.outer:
                del used[event.taken.slot]
            body.need = max(body.need, max(used, default=-1) + 1 + outer)
        body.rows = list(_runs(_within(body.rows, body.need)))
        return body

    def _call(
        self, body: Body, event: Event, used: dict[int, Pebble], top: int, outer: bool
    ) -> None:
        """A row that calls a name, with a slice of the slots that are free."""
        item = event.item
        need, face = self._called[item.what].need, self._face(item)
        pebble = event.made or event.taken
        assert event.source is not None
        op = Op.UNCALL if item.back else Op.CALL
        row = Row(op, face.base - body.face.base, _code(event.source))
        if pebble is not None and pebble.outer:
            body.need = max(body.need, top + need)
            body.rows.append(row._replace(target=-need))
            return
        first = top
        if event.made is not None:
            event.made.slot = first
            used[first] = event.made
        elif event.taken is not None:
            first = event.taken.slot
            assert first == top - 1, "states of a name go in opposite order"
        body.need = max(body.need, first + need + outer)
        flip = pebble is not None
        body.rows.append(row._replace(target=first + (need - 1) * flip, flip=flip))


def _moved(item: Item, shift: int, back: bool) -> Item:
    what, own, undone = item
    if isinstance(what, Action):
        assert not back or what.kind <= LAST_INVERTIBLE
        return Item(Action(what.kind ^ back, what.start + shift, what.stop + shift))
    return Item(what, own + shift, undone != back)


def _early_actions(items: Sequence[Item]) -> list[Item]:
    """Each `Reverse(k+1), undo of k` as `undo of k, Reverse(k)`: the adjoint as soon as it can be.

    What undoes a state reads the one before it, which the adjoint needs: so both are one.
    """
    out: list[Item] = []
    for item in items:
        a = item.what
        assert isinstance(a, Action) and not item.shift
        last = out[-1].what if out else None
        if a.kind in UNDOING and last == (Kind.REVERSE, a.stop, a.stop + 1):
            out[-1:] = [item, Item(Action(Kind.REVERSE, a.stop - 1, a.stop))]
        else:
            out.append(item)
    return out


def _code(pebble: Pebble) -> int:
    """A state as the source of a row; that of the caller is counted from the end."""
    return -1 if pebble.outer else pebble.slot + 1


def _rows(event: Event, after: Event | None, free: int, base: int) -> tuple[list[Row], bool]:
    """The rows of an action, and whether the next one is done by them, too."""
    action = event.item.what
    assert isinstance(action, Action)
    following = None if after is None else after.item.what
    kind, i, j = action
    node, steps = i - base, j - i
    source = 0 if event.source is None else _code(event.source)
    pebble = event.made or event.changed or event.taken
    target = 0 if pebble is None else -1 if pebble.outer else pebble.slot
    taking = steps == 1 and following == (Kind.REVERSE, i, j)
    match kind:
        case Kind.ADVANCE:
            rows = [Row(Op.STEP, node, source, target)]
            if steps > 1:
                rows.append(Row(Op.OVERWRITE, node + 1, 0, target, steps - 1))
            return rows, False
        case Kind.UNADVANCE:
            return [Row(Op.ADJOINT if taking else Op.UNSTEP, node, source, target)], taking
        case Kind.UNSHIFT if taking:
            return [Row(Op.ADJOINT_IN_PLACE, node, 0, target)], True
        case Kind.UNSHIFT:
            return [Row(Op.UNTURN, j - 1 - base, 0, target, steps, -1)], False
        case Kind.SHIFT | Kind.OVERWRITE:
            op = Op.TURN if kind == Kind.SHIFT else Op.OVERWRITE
            return [Row(op, node, 0, target, steps)], False
        case Kind.FREE:
            return [Row(Op.ERASE, node, 0, target)], False
        case Kind.REVERSE:
            return [Row(Op.REVERSE, node, source, free)], False
    return [Row(Op.COPY, node, source)], False


def _within(rows: Sequence[Row], need: int) -> Iterator[Row]:
    """The rows with slots from the end of the slice counted from its beginning; some made one."""
    pending: Row | None = None
    for row in rows:
        source = need if row.source < 0 else row.source
        target = need + row.target if row.target < 0 else row.target
        row = row._replace(source=source, target=target)
        if pending is not None:
            if row.op == Op.ERASE and row.target + 1 == pending.source:
                yield pending._replace(op=Op.REVERSE_ERASE)
                pending = None
                continue
            yield pending
            pending = None
        if row.op == Op.REVERSE:
            pending = row
        else:
            yield row
    if pending is not None:
        yield pending


SLIDING = (Op.STEP, Op.UNSTEP, Op.REVERSE_ERASE, Op.ADJOINT)


def _runs(rows: Iterator[Row]) -> Iterator[Row]:
    """Rows that continue from node to node and from slot to slot, merged into one."""
    last: Row | None = None
    for row in rows:
        if last is not None:
            by = row.node - last.node - (last.times - 1) * last.by
            slots = (last.source, last.target, row.source, row.target)
            fits = last.op == row.op and row.op in SLIDING and abs(by) == 1 and min(slots[::2]) > 0
            if fits and (last.times == 1 or by == last.by):
                for slide in (1, -1) if last.times == 1 else (last.slide,):
                    moved = last.times * slide
                    if (row.source, row.target) == (last.source + moved, last.target + moved):
                        last = last._replace(times=last.times + 1, by=by, slide=slide)
                        break
                else:
                    yield last
                    last = row
                continue
            yield last
        last = row
    if last is not None:
        yield last
