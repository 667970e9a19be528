"""Armed code: code with traps, including the code that its calls enter.

Traps may be active everywhere that a function runs, or in one frame only: frames are armed one by
one, and functions called from an armed frame are armed by the armory's rule.  A watched place is
followed through calls: the parameters bound to it are watched in their frames.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from rvm.expr import Place
from rvm.image import Code, Image
from rvm.image.traps import Traps
from rvm.state import State
from rvm.types import Scalar


class Binding(NamedTuple):
    """A register of a frame that holds a watched place, or a part of it, or contains it."""

    watch: Hashable
    reg: int
    owner: bool = False
    """Whether this is the frame whose place is watched: there its path is known."""
    is_place: bool = False
    """Whether the register holds just the watched place, if it is a scalar."""


Bindings = frozenset[Binding]
TrapsOf = Callable[[Code, Bindings, Hashable], Mapping[int, Traps]]
"""A function from plain code, the watched registers and further requests for a frame to traps."""


class ArmedCode(Code):
    """A plain code with traps."""

    def __init__(
        self, plain: Code, armory: Armory, bindings: Bindings, traps: Mapping[int, Traps]
    ) -> None:
        vars(self).update(vars(plain))
        self.compiled = {}
        self.traps = traps
        self.plain = plain
        self.bindings = bindings
        self.armory = armory

    def callee(self, pc: int) -> Code:
        """The code that the call at `pc` enters, armed if it, or a function it calls, has traps."""
        return self.armory.called(self, pc)


class Armory:
    """Armed codes, made at first use; `traps_of` gives the traps of a code."""

    def __init__(self, image: Image, traps_of: TrapsOf) -> None:
        self.image = image
        self._traps_of = traps_of
        self.heat = 0
        """The number of ticks run in armed code, which decides whether compiling it pays."""
        self._codes: dict[Hashable, Code] = {}
        self._quiet: dict[tuple[str, bool], bool] = {}

    def code(self, plain: Code, bindings: Bindings, extra: Hashable = None) -> Code:
        """The armed variant of a code; the code itself if nothing in it or below it has traps.

        `extra` is passed on to `traps_of`, for traps in this frame and not in those it calls.
        """
        key = (plain.name, plain.undo, bindings, extra)
        found = self._codes.get(key)
        if found is None:
            traps = self._traps_of(plain, bindings, extra)
            if not traps and self._is_quiet(plain) and not _passes(plain, bindings):
                found = plain
            else:
                found = ArmedCode(plain, self, bindings, traps)
            self._codes[key] = found
        return found

    def called(self, caller: ArmedCode, pc: int) -> Code:
        """The code that the call at `pc` of an armed code enters."""
        instr = caller.instrs[pc]
        callee = self.image.code(instr.symbol, instr.op == "uncall")
        return self.code(callee, self.passed(caller, pc))

    def passed(self, caller: ArmedCode, pc: int) -> Bindings:
        """The parameters of a callee that hold watched places of the caller.

        Arrays share one memory under all their names.  A scalar is copied in and out: a whole
        register is followed, and what is in a watched whole one.  Whether another element is
        watched depends on its index, so who arms the frames follows it, see `arm`.
        """
        bound: set[Binding] = set()
        if caller.bindings:
            for k, arg in enumerate(caller.instrs[pc].args):
                if not isinstance(arg, Place):
                    continue
                same = [b for b in caller.bindings if b.reg == arg.reg]
                if isinstance(arg.type, Scalar) and arg.path:
                    same = [b for b in same if b.owner and b.is_place]
                bound |= {Binding(b.watch, k, is_place=b.is_place and not arg.path) for b in same}
        return frozenset(bound)

    def _is_quiet(self, plain: Code) -> bool:
        """Whether no function that may be called from here has traps of its own."""
        key = (plain.name, plain.undo)
        if key not in self._quiet:
            self._quiet[key] = not any(
                self._traps_of(self.image.code(name, undo), frozenset(), None)
                for name in self.image.reachable(plain.name)
                for undo in (False, True)
            )
        return self._quiet[key]


def _passes(code: Code, bindings: Bindings) -> bool:
    """Whether a call in the code passes on a watched place."""
    bound = {b.reg for b in bindings}
    return bool(bound) and any(
        isinstance(arg, Place) and arg.reg in bound
        for instr in code.instrs
        if instr.op in ("call", "uncall")
        for arg in instr.args
    )


def arm(
    state: State, armory: Armory, roots: Mapping[int, Bindings], extras: Mapping[int, Hashable]
) -> None:
    """Replace every frame's code by its armed variant.

    `roots` are the registers of the watched places by depth (0 is the outermost), and those that
    elements of them were passed to; `extras` further requests for frames.
    """
    passed: Bindings = frozenset()
    frames = state.frames
    for depth, frame in enumerate(frames):
        plain = plain_code(frame.code)
        bindings = passed | roots.get(depth, frozenset())
        code = frame.code = armory.code(plain, bindings, extras.get(depth))
        passed = frozenset()
        if depth < len(frames) - 1 and isinstance(code, ArmedCode):
            passed = armory.passed(code, frame.pc)
    state.armed = any(isinstance(frame.code, ArmedCode) for frame in frames)


def disarm(state: State) -> None:
    """Restore every frame's plain code."""
    for frame in state.frames:
        frame.code = plain_code(frame.code)
    state.armed = False


def plain_code(code: Code) -> Code:
    """The code without traps."""
    return code.plain if isinstance(code, ArmedCode) else code
