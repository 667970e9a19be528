"""The past exactly as it was: states that are kept, from which a run is repeated.

If no bit is lost, running the inverse code leads to the original states.  Otherwise it leads near
them at best; in strict mode it does not restore what is known of the sizes of values.  Then a state
of the past is computed by running forwards from a keyframe before it.  To go back from there, the
ticks before it are run in strict mode, whose log corrects the inverse code.  Edits are part of a
session's past: repeated runs include them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any, NamedTuple

from rvm.image import Image
from rvm.probes.armed import plain_code
from rvm.state import Account, State, byte_size

BUDGET = 256 << 20
"""Bytes of keyframes, by default."""
FIRST = 100_000
"""The initial number of ticks between keyframes; it grows when there are too many of them."""
FINE = 1_000
"""Ticks that are run again in strict mode at a time."""
FINEST = 50
"""Ticks between the keyframes of those."""
_MOST = 2_048
"""Keyframes, however small they are."""
_A_FRAME = 500
"""The approximate number of bytes of a frame besides its registers."""


class Keyframe:
    """A copy of a state that faces forwards."""

    __slots__ = ("_held", "size", "time")
    size: int

    def __init__(self, state: State) -> None:
        self.time = state.time
        self._held = _copied(state.__getstate__())
        registers = [v for *_, regs in self._held["frames"] for v in regs]
        blocks = sum(b.nbytes for b in self._held["blocks"])
        lists = {id(v): byte_size(v) for v in registers if isinstance(v, list)}
        log = 0 if state.residue is None else state.residue.bytes
        frames = _A_FRAME * len(state.frames) + 50 * len(registers)
        self.size = blocks + sum(lists.values()) + log + frames

    def state(self) -> State:
        """A separate copy of the state."""
        made = State.__new__(State)
        made.__setstate__(_copied(self._held))
        return made


def _copied(held: dict[str, Any]) -> dict[str, Any]:
    """A state's plain data in separate memory; a shared list stays shared."""
    lists: dict[int, list[Any]] = {}

    def own(value: Any) -> Any:
        return lists.setdefault(id(value), list(value)) if isinstance(value, list) else value

    frames = [(plain_code(code), pc, [own(v) for v in regs]) for code, pc, regs in held["frames"]]
    account: Account = copy(held["account"])
    residue = deepcopy(held["residue"])
    blocks = [b.copy() for b in held["blocks"]]
    return held | {
        "frames": frames,
        "account": account,
        "residue": residue,
        "blocks": blocks,
        "pardons": dict(held["pardons"]),
    }


class Edit(NamedTuple):
    """A change of the state at a time, and the commands that made it; None for manual changes."""

    before: Keyframe
    after: Keyframe
    commands: tuple[str, ...] | None

    @property
    def time(self) -> int:
        return self.after.time


def loses_nothing(image: Image, name: str) -> bool:
    """Whether the inverse code leads to the very states that were."""
    codes = (image.code(f, False) for f in image.reachable(name))
    return not any(code.loses(pc) for code in codes for pc in range(len(code)))


class Keyframes:
    """Keyframes of a session by time, within a budget of bytes, and its edits.

    `begin` makes the state at time 0; `exact` says that no bits are lost, so that only keyframes of
    edits are needed.
    """

    def __init__(self, begin: Callable[[], State], exact: bool, budget: int = BUDGET) -> None:
        self.exact = exact
        self.edits: list[Edit] = []
        self._begin = begin
        self._budget = budget
        self._keys: list[Keyframe] = []
        self._fine: list[Keyframe] = []
        """Keyframes at short distances in the stretch examined last."""
        self._distance = FIRST

    @property
    def size(self) -> int:
        """The bytes that are kept, about."""
        edits: int = sum(e.before.size + e.after.size for e in self.edits)
        return edits + sum(k.size for k in (*self._keys, *self._fine))

    # ------------------------------------------------------------ looked up

    def before(self, time: int, strictly: bool = True) -> tuple[int, Callable[[], State]]:
        """The latest known state before a time (or at it): its time, and a function to make it."""
        found: tuple[int, Callable[[], State]] = (0, self._begin)
        cut = bisect_left if strictly else bisect_right
        for keys in (self._keys, self._fine, [e.after for e in self.edits]):
            k = cut(keys, time, key=lambda key: key.time)
            # Of two at one time the edit's, which stands last, is what the session went on with.
            if k and keys[k - 1].time >= found[0]:
                found = keys[k - 1].time, keys[k - 1].state
        return found

    def edit_at(self, time: int) -> Edit | None:
        """The edit at a time."""
        return next((e for e in self.edits if e.time == time), None)

    def ahead(self, time: int) -> int | None:
        """Ticks forwards to where a keyframe is due, or an edit is; None if nothing is."""
        found = [e.time for e in self.edits if e.time > time][:1]
        if not self.exact:
            found.append((max(time, self._latest) // self._distance + 1) * self._distance)
        return min(found) - time if found else None

    @property
    def _latest(self) -> int:
        return self._keys[-1].time if self._keys else 0

    # ------------------------------------------------------------ kept

    def pass_by(self, state: State) -> None:
        """Keep a state that faces forwards, if one is due at its time."""
        if self.exact or state.time <= self._latest or state.time % self._distance:
            return
        self._keys.append(Keyframe(state))
        while len(self._keys) > 1 and (len(self._keys) > _MOST or self.size > self._budget):
            self._fine.clear()
            self._distance *= 2
            self._keys = [k for k in self._keys if k.time % self._distance == 0]

    def refine(self, state: State) -> None:
        """Keep a state between a keyframe and a later time, for the following steps."""
        if self.exact:
            return
        key = Keyframe(state)
        room = self._budget // 4
        if key.size * 2 > room:
            return
        while self._fine and len(self._fine) * key.size > room:
            self._fine.pop(0)
        at = bisect_left(self._fine, key.time, key=lambda k: k.time)
        if at == len(self._fine) or self._fine[at].time != key.time:
            self._fine.insert(at, key)

    def only(self, begin: int, end: int) -> None:
        """Discard refined keyframes outside a stretch of time."""
        self._fine = [k for k in self._fine if begin <= k.time <= end]

    def edited(self, before: Keyframe, state: State, commands: tuple[str, ...] | None) -> None:
        """The state was changed: keyframes of later times belong to another run."""
        earlier = self.edit_at(state.time)
        if earlier is not None:
            before = earlier.before
            both = earlier.commands is not None and commands is not None
            commands = (*earlier.commands, *commands) if both else None  # type: ignore[misc]
        time = state.time
        self.edits = [e for e in self.edits if e.time < time]
        self._keys = [k for k in self._keys if k.time < time]
        self._fine = [k for k in self._fine if k.time < time]
        self.edits.append(Edit(before, Keyframe(state), commands))
