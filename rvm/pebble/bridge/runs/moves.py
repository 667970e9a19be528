"""Moves of chains: their effect on states, for three kinds of steps in Python.

| writes | a step is | memory besides pebbles |
|---|---|---|
| "new" | `step(x)`, which returns a new state | the state being computed |
| "out" | `step(x, out=y)`, which fills the arrays of y | the same |
| "in place" | `step(x)`, which turns x into the next state | none |

With `number` steps receive their number after x, 0 for the step from s_0; constants are passed by
name.

A state that is held cannot be changed: its arrays are read-only, and writing to one is UsageError
P041.  A Python function cannot be run backwards.  To undo a move into fresh memory, the step is
done once more and its result compared with the state, which can then be dropped, since it follows
from its predecessor: UsageError P043 if they differ.  This takes the planned move, and shows that
the step depends only on its input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvm.faults import UsageError
from rvm.pebble.bridge.runs.files import Files
from rvm.pebble.bridge.runs.leaves import opened, owned, protected
from rvm.pebble.bridge.runs.states import Form

Step = Callable[..., Any]
WRITES = ("new", "out", "in place")
AFTER = "the state that a step gave"
READ_ONLY = "read-only"
"""NumPy's message for writing to an array that can't be changed."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A step as a Python function, and how it is called."""

    step: Step
    inverse: Step | None
    number: bool
    constants: Mapping[str, Any]

    def bound(self, function: Step) -> Callable[[Any, int], Any]:
        """A function of a state and a number, for a step that takes either or both."""
        constants = self.constants
        if self.number:
            return (lambda x, k: function(x, k, **constants)) if constants else function
        if constants:
            return lambda x, k: function(x, **constants)
        return lambda x, k: function(x)


def told(error: Exception, what: str) -> None:
    """Add the place to an error; P041 if it is from writing to a state that is held."""
    if isinstance(error, ValueError) and READ_ONLY in str(error):
        raise UsageError(
            "P041",
            f"{what} writes to a state that is held: its input, or an array it returned before",
            hint='let it return a new array; or say writes="out" or writes="in place"',
        ) from error
    error.add_note(f"in {what} of the chain")


class Moves(ABC):
    """The effect of moves on states. A freed state must not be used any more."""

    x0: Any
    """The input as the run holds it."""
    nbytes: int
    """The size of a state."""
    scratch = 1
    """States in memory besides the pebbles, while steps are done."""
    forth: Callable[..., Any]
    back: Callable[..., Any]
    """The step, and the step undone: how they are called is a matter of the class."""

    @abstractmethod
    def made(self, x: Any, k: int) -> Any:
        """s_k from s_(k-1) = x, which stays."""

    @abstractmethod
    def unmade(self, y: Any, k: int) -> Any:
        """s_(k-1) from s_k = y, which is given up, by a step that can be undone in place."""

    def advance(self, x: Any, i: int, j: int) -> Any:
        """s_j from s_i, which stays."""
        return self.overwrite(self.made(x, i + 1), i + 1, j)

    @abstractmethod
    def unadvance(self, x: Any, y: Any, j: int) -> None:
        """Uncompute s_j = y, from s_(j-1) = x; y is given up."""

    def overwrite(self, x: Any, i: int, j: int) -> Any:
        """s_j from s_i = x, which is given up."""
        for k in range(i + 1, j + 1):
            y = self.made(x, k)
            self.free(x)
            x = y
        return x

    def shift(self, x: Any, i: int, j: int) -> Any:
        """s_j in the place of s_i = x, by steps that can be undone in place."""
        return self.overwrite(x, i, j)

    def unshift(self, y: Any, i: int, j: int) -> Any:
        """s_i in the place of s_j = y, by undoing them."""
        for k in range(j, i, -1):
            y = self.unmade(y, k)
        return y

    @abstractmethod
    def free(self, x: Any) -> None:
        """Erase x, which is given up."""

    def seen(self, x: Any) -> Any:
        """A state to look at until the next move."""
        return x

    @abstractmethod
    def given(self, x: Any) -> Any:
        """A state in the caller's form, which may be kept while the run continues."""

    @abstractmethod
    def result(self, x: Any) -> Any:
        """A state in the caller's form, when the run is over."""

    @abstractmethod
    def leaves(self, x: Any) -> Sequence[Any]:
        """The leaves of x that are written to disk."""

    @abstractmethod
    def loaded(self, files: Files, node: int) -> Any:
        """The state of a node, from disk."""


class PythonMoves(Moves):
    """Moves by Python functions, on states of a form."""

    def __init__(self, form: Form, x0: Any) -> None:
        self.form = form
        self.x0 = form.over(protected, x0)
        self.nbytes = form.nbytes

    def unadvance(self, x: Any, y: Any, j: int) -> None:
        """Do step j again, and compare."""
        again = self.made(x, j)
        if not self.form.same(again, y):
            raise UsageError(
                "P043",
                f"step {j} was done twice on the same state and gave different results",
                hint="a step depends on its state, its number and its constants only; "
                "or say price=0, and states are erased instead of uncomputed",
            )
        self.free(again)
        self.free(y)

    def leaves(self, x: Any) -> Sequence[Any]:
        return self.form.apart(x, "a state")


class NewStates(PythonMoves):
    """Moves by steps that return new states."""

    def __init__(self, form: Form, x0: Any, steps: Steps) -> None:
        super().__init__(form, x0)
        self.hold = form.held()
        self.forth = steps.bound(steps.step)
        self.back = steps.bound(steps.inverse or steps.step)

    def overwrite(self, x: Any, i: int, j: int) -> Any:
        forth, hold, k = self.forth, self.hold, i
        try:
            while k < j:
                x = hold(forth(x, k), AFTER)
                k += 1
        except Exception as error:
            told(error, f"step {k + 1}")
            raise
        return x

    advance = overwrite

    def made(self, x: Any, k: int) -> Any:
        return self.overwrite(x, k - 1, k)

    def unmade(self, y: Any, k: int) -> Any:
        return self.hold(self.back(y, k - 1), AFTER)

    def free(self, x: Any) -> None:
        """Nothing: memory is given back with the last use of a state."""

    def given(self, x: Any) -> Any:
        return x

    def result(self, x: Any) -> Any:
        return self.form.over(opened, x)

    def loaded(self, files: Files, node: int) -> Any:
        return self.form.over(owned, self.form.together(files.load(node)))


class Buffers(PythonMoves):
    """Moves by steps that fill `out`, or change their input, in buffers used again and again.

    A state that is held has read-only arrays; those of a buffer that is being filled are not.
    """

    def __init__(self, form: Form, x0: Any, steps: Steps, in_place: bool) -> None:
        if not form.only_arrays:
            raise UsageError(
                "P042",
                "steps can write only to arrays, and the input has numbers or bytes in it",
                hint="an array of shape () holds one number",
            )
        super().__init__(form, x0)
        self.in_place = in_place
        self.scratch = 0 if in_place else 1
        self.spare: list[Any] = []
        self.forth = self._writing(steps.step, steps)
        self.back = self._writing(steps.inverse or steps.step, steps)

    def _writing(self, step: Step, steps: Steps) -> Callable[[Any, Any, int], Any]:
        """A step from a state to a buffer, which are the same if it is done in place."""
        constants = steps.constants
        if self.in_place:
            call = steps.bound(step)
            return lambda x, y, k: call(y, k)
        if steps.number:
            return lambda x, y, k: step(x, k, out=y, **constants)
        return lambda x, y, k: step(x, out=y, **constants)

    # ------------------------------------------------------------ buffers

    def _buffer(self) -> Any:
        return self._open(self.spare.pop()) if self.spare else self.form.buffer()

    def free(self, x: Any) -> None:
        """Free a buffer; its contents will be overwritten."""
        self.spare.append(x)

    def _open(self, x: Any, flag: bool = True) -> Any:
        for array in (x,) if self.form.is_array else self.form.arrays(x):
            array.setflags(write=flag)
        return x

    # ------------------------------------------------------------ moves

    def made(self, x: Any, k: int) -> Any:
        y = self._buffer()
        if self.in_place:
            self.form.fill(y, x)
        return self._done(self.forth, x, y, (k,))

    def unmade(self, y: Any, k: int) -> Any:
        if self.in_place:
            return self._done(self.back, y, self._open(y), (k,))
        x = self._done(self.back, y, self._buffer(), (k,))
        self.free(y)
        return x

    def overwrite(self, x: Any, i: int, j: int) -> Any:
        if self.in_place:
            return self._done(self.forth, x, self._open(x), range(i + 1, j + 1))
        return super().overwrite(x, i, j)

    def _done(self, how: Callable[..., Any], x: Any, y: Any, steps: Iterable[int]) -> Any:
        """The buffer y when steps have been done to it, which is held from then on."""
        for k in steps:
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
        return self._open(y, False)

    # ------------------------------------------------------------ for others

    def given(self, x: Any) -> Any:
        """A copy, as the buffer will be used again."""
        return self._open(self.form.copy(x), False)

    def result(self, x: Any) -> Any:
        return self._open(x)

    def loaded(self, files: Files, node: int) -> Any:
        buffer = self._buffer()
        files.load(node, self.form.apart(buffer, "a state"))
        return self._open(buffer, False)
