"""Moves of chains whose steps write to memory that they are given: buffers used again and again.

A state that is held has read-only arrays; those of a buffer that is being filled are not.  See
`rvm.pebble.bridge.runs.steps` for the ways in which steps give their results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rvm.faults import UsageError
from rvm.pebble.bridge.runs.files import Files
from rvm.pebble.bridge.runs.leaves import protected
from rvm.pebble.bridge.runs.states import Form
from rvm.pebble.bridge.runs.steps import Step, Steps, differs, told

Write = Callable[[Any, Any, int], Any]
"""A step from a state to a buffer, which are the same if it is done in place, and its number."""


class Buffers:
    """Moves by steps that fill `out`, or change their input."""

    def __init__(self, form: Form, x0: Any, steps: Steps, in_place: bool) -> None:
        if not form.only_arrays:
            raise UsageError(
                "P042",
                "steps can write only to arrays, and the input has numbers or bytes in it",
                hint="an array of shape () holds one number",
            )
        self.form = form
        self.x0 = form.over(protected, x0)
        self.nbytes = form.nbytes
        self.in_place = in_place
        self.scratch = 0 if in_place else 1
        self.spare: list[Any] = []
        self.forth = self._writing(steps.step, steps)
        self.back = self._writing(steps.inverse or steps.step, steps)

    def _writing(self, step: Step, steps: Steps) -> Write:
        constants = steps.constants
        if self.in_place:
            call = steps.bound(step)
            return lambda x, y, k: call(y, k)
        if steps.number:
            return lambda x, y, k: step(x, k, out=y, **constants)
        return lambda x, y, k: step(x, out=y, **constants)

    def watch(self, counted: Callable[[Write], Write]) -> None:
        """Have steps counted."""
        self.forth, self.back = counted(self.forth), counted(self.back)

    # ------------------------------------------------------------ buffers

    def buffer(self) -> Any:
        """A buffer to write to."""
        return self._open(self.spare.pop()) if self.spare else self.form.buffer()

    def free(self, x: Any) -> None:
        """Give a buffer back; what is in it will be written over."""
        self.spare.append(x)

    def _open(self, x: Any, flag: bool = True) -> Any:
        if self.form.is_array:
            x.setflags(write=flag)
        else:
            for array in self.form.arrays(x):
                array.setflags(write=flag)
        return x

    def _held(self, x: Any) -> Any:
        return self._open(x, False)

    # ------------------------------------------------------------ moves

    def advance(self, x: Any, i: int, j: int) -> Any:
        """s_j from s_i, which stays."""
        y = self.buffer()
        if self.in_place:
            self.form.fill(y, x)
            return self.overwrite(y, i, j)
        self._do(self.forth, x, y, i + 1)
        return self.overwrite(self._held(y), i + 1, j)

    def overwrite(self, x: Any, i: int, j: int) -> Any:
        """s_j where s_i was, or in another buffer."""
        return self._on(self.forth, x, range(i + 1, j + 1))

    shift = overwrite

    def unshift(self, y: Any, i: int, j: int) -> Any:
        """s_i where s_j was, by the inverse step, which writes as the step does."""
        return self._on(self.back, y, range(j, i, -1))

    def unadvance(self, x: Any, y: Any, j: int) -> None:
        """Do step j again, and compare."""
        again = self.advance(x, j - 1, j)
        if not self.form.same(again, y):
            raise differs(j)
        self.free(again)
        self.free(y)

    def _on(self, how: Write, x: Any, steps: Iterable[int]) -> Any:
        if self.in_place:
            self._open(x)
            for k in steps:
                self._do(how, x, x, k)
            return self._held(x)
        for k in steps:
            y = self.buffer()
            self._do(how, x, y, k)
            self.free(x)
            x = self._held(y)
        return x

    def _do(self, how: Write, x: Any, y: Any, k: int) -> None:
        try:
            out = how(x, y, k - 1)
        except Exception as error:
            told(error, f"step {k}")
            raise
        if out is not None and out is not y:
            what = "changes its input" if self.in_place else "fills `out`"
            raise UsageError(
                "P040",
                f"step {k} returned a {type(out).__name__}; one that {what} returns nothing",
                hint='a step that returns a new state is for writes="new"',
            )

    # ------------------------------------------------------------ for others

    def seen(self, x: Any) -> Any:
        """A state as others may look at it, for now."""
        return x

    def given(self, x: Any) -> Any:
        """A copy, as the buffer will be used again."""
        return self._held(self.form.copy(x))

    def result(self, x: Any) -> Any:
        """The buffer itself, which the run does not need any more."""
        return self._open(x)

    def leaves(self, x: Any) -> Sequence[Any]:
        """What is written to disk."""
        return self.form.apart(x, "a state")

    def loaded(self, files: Files, node: int) -> Any:
        """A state from disk, in a buffer."""
        buffer = self.buffer()
        files.load(node, self.form.apart(buffer, "a state"))
        return self._held(buffer)
