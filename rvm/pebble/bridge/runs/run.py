"""One run of an iteration: its plan, its board, and its actions in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from math import inf
from os import PathLike
from types import TracebackType
from typing import Any

from rvm.faults import Interrupted
from rvm.host.signals import Listening, deferred, followed, interrupted, is_ctrl_c
from rvm.library.handle import FunctionHandle
from rvm.pebble.bridge.runs.adjoints import Adjoints, FunctionAdjoints, PythonAdjoints
from rvm.pebble.bridge.runs.board import CHUNK, Board
from rvm.pebble.bridge.runs.budgets import Budget
from rvm.pebble.bridge.runs.files import Files
from rvm.pebble.bridge.runs.functions import FunctionSteps
from rvm.pebble.bridge.runs.moves import Buffers, Moves, NewStates, Step, Steps
from rvm.pebble.bridge.runs.progress import Counter, Watch, watched
from rvm.pebble.bridge.runs.states import Form
from rvm.pebble.chains.online import Online
from rvm.pebble.game import Rules
from rvm.pebble.plans import Plan
from rvm.pebble.tally import Tally
from rvm.pebble.terms import wrong

AS_BEFORE = "the input is as it was, and nothing is left on disk"
LONGEST = 1 << 62
"""The largest number of steps of a run of unknown length."""
CALLS = 1 << 20
"""The assumed number of calls in a run of unknown length."""


@dataclass(frozen=True, slots=True)
class How:
    """The execution of a chain's steps; see `rvm.pebble.iterate`."""

    step: Step | FunctionHandle
    adjoint: Step | None
    inverse: Step | None
    number: bool | str
    in_place: str | None
    writes: str
    folder: str | PathLike[str] | None
    progress: Watch


class Run:
    """A run from one input, as a context: however it ends, no files remain on disk."""

    def __init__(
        self,
        how: How,
        n: int | None,
        budget: Budget,
        until: Callable[[Any, int], bool] | None,
        x0: Any,
        constants: Mapping[str, Any],
        goal: str,
        adjoints: bool,
    ) -> None:
        self.goal = goal
        self.until = until
        self.most = n
        """The largest number of steps."""
        self.moves: Moves
        self.raw: Any = None
        """The state that `states` is at, as the moves have it."""
        self._adjoints: Adjoints | None = None
        if isinstance(how.step, FunctionHandle):
            self._function(how, how.step, x0, constants, adjoints)
        else:
            self._python(how, how.step, x0, constants, adjoints)
        self.files = Files(how.folder)
        self.plan: Plan | None = None
        self.online: Online | None = None
        extra = self._extra(goal)
        if until is None:
            assert n is not None
            forgetful = not isinstance(how.step, FunctionHandle)
            self.plan = budget.made(n, goal, self.moves.nbytes, extra, forgetful)
            rules = self.plan.rules
        else:
            pebbles = 1 if goal != "gradient" else budget.pebbles(self.moves.nbytes, extra)
            self.online = Online(pebbles)
            rules = Rules(LONGEST, goal, pebbles, erasures=inf)
        self.board = Board(rules, self.moves, self.files)
        self._watch = how.progress
        self._stack = ExitStack()

    def _python(
        self, how: How, step: Step, x0: Any, constants: Mapping[str, Any], adjoints: bool
    ) -> None:
        form = Form(x0)
        steps = Steps(step, how.inverse, bool(how.number), constants)
        if how.writes == "new":
            self.moves = NewStates(form, x0, steps)
        else:
            self.moves = Buffers(form, x0, steps, how.writes == "in place")
        if adjoints:
            if how.adjoint is None:
                raise wrong("a gradient needs the adjoint of the step", "adjoint=")
            self._adjoints = PythonAdjoints(form, how.adjoint, steps)

    def _function(
        self,
        how: How,
        handle: FunctionHandle,
        x0: Any,
        constants: Mapping[str, Any],
        adjoints: bool,
    ) -> None:
        calls = CALLS if self.most is None else 2 * self.most
        number = how.number if isinstance(how.number, str) else None
        moves = FunctionSteps(handle, number, how.in_place, x0, constants, calls)
        self.moves = moves
        if adjoints:
            self._adjoints = FunctionAdjoints(moves, calls)

    def _extra(self, goal: str) -> int:
        """The largest number of states in memory besides the pebbles."""
        moves = self.moves
        if goal != "gradient":
            return moves.scratch
        # Back, the last state is made while all pebbles may be in use.
        extra = max(moves.scratch, 1)
        if self._adjoints is None:
            return extra
        # Buffers stay; a new state that is done with is gone when adjoints are taken.
        return self._adjoints.extra + (0 if isinstance(moves, NewStates) else extra)

    @property
    def adjoints(self) -> Adjoints:
        """The propagation of adjoints, in a run for a gradient."""
        assert self._adjoints is not None
        return self._adjoints

    @property
    def n(self) -> int:
        """The number of steps; in a run of unknown length, those so far."""
        return self.plan.n if self.online is None and self.plan is not None else self._so_far

    @property
    def _so_far(self) -> int:
        return 0 if self.online is None else self.online.n

    # ------------------------------------------------------------ as a context

    def __enter__(self) -> Run:
        with Listening():
            self._begin()
        return self

    @deferred
    def _begin(self) -> None:
        self._stack.callback(self.files.close)
        total = None
        if self.plan is not None and self.plan.rules.weights.costs is None:
            total = int(self.plan.cost.moves)
            if self.goal == "gradient":
                total += 1
            if self._adjoints is not None:
                total += self.plan.cost.reversals
        what = "back" if self.goal == "gradient" else "forwards"
        counter = self._stack.enter_context(watched(self._watch, total, what))
        if counter is not None:
            self._count(counter)

    def _count(self, counter: Counter) -> None:
        moves = self.moves
        moves.forth, moves.back = map(counter.counted, (moves.forth, moves.back))
        if isinstance(self._adjoints, PythonAdjoints):
            self._adjoints.call = counter.counted(self._adjoints.call)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            # Twice, as a handler that is not relayed yet may raise before anything is done.
            try:
                with Listening():
                    self._end()
            finally:
                self._end()
        except BaseException as later:
            if error is None:
                raise
            followed(error, later)
        if is_ctrl_c(error):
            raise interrupted(AS_BEFORE) from None
        if isinstance(error, Interrupted):
            error.hint = AS_BEFORE

    @deferred
    def _end(self) -> None:
        self._stack.close()

    # ------------------------------------------------------------ there

    def reach(self) -> tuple[Any, Tally]:
        """Go to the last state; return it for the caller, and the counts."""
        board = self.board
        if self.plan is not None:
            for block in self.plan.blocks(CHUNK):
                board.play(zip(*block.tolist(), strict=True))
            counted = board.finish()
            if self.plan.goal == "erase":
                return board.copied, counted
        else:
            self._on_and_on()
            counted = board.tally()
        return self.moves.result(board.pebbles.pop(self.n)), counted

    def _on_and_on(self) -> None:
        """Run until the condition holds."""
        board, online, moves = self.board, self.online, self.moves
        assert online is not None and self.until is not None
        while self.most is None or online.n < self.most:
            board.play(online.step())
            if self.until(moves.seen(board.pebbles[online.n]), online.n):
                break
        board.adjoint = online.n

    # ------------------------------------------------------------ and back

    def seen(self) -> Any:
        """The state that `states` is at, to be looked at until it goes on."""
        return self.moves.seen(self.raw)

    def states(self) -> Iterator[int]:
        """Be at the states from the last to the input, with the state in `raw`.

        It is named nowhere else, so that its memory is free when it is given up.
        """
        board, moves = self.board, self.moves
        if self.plan is not None:
            blocks = self.plan.blocks(CHUNK)
        else:
            self._on_and_on()
            assert self.online is not None
            self.raw = board.pebbles[self.n]
            yield self.n
            self.raw = None
            blocks = self.online.sweep().blocks(CHUNK)
        actions = chain.from_iterable(zip(*block.tolist(), strict=True) for block in blocks)
        for j, x in board.sweep(actions):
            if j == self.n and self.plan is not None:
                self.raw = moves.advance(x, j - 1, j)
                yield j
                last, self.raw = self.raw, None
                moves.free(last)
                del last
            self.raw, x = x, None
            yield j - 1
            self.raw = None
        board.finish()
