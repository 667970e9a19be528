"""Moves of chains whose steps are Python functions.

There are three ways in which a step may give its result:

| writes | a step is | memory besides pebbles |
|---|---|---|
| "new" | `step(x)`, which returns a new state | the state that a step is making |
| "out" | `step(x, out=y)`, which fills the arrays of y | the same |
| "in place" | `step(x)`, which turns x into the next state | none |

With `number` steps get their number after x, 0 for that from s_0; constants go by name.

A state that is held cannot be changed: its arrays are read-only, and writing to one is
UsageError P041.  A Python function cannot be run backwards.  To undo a move into fresh memory, the
step is done once more and its result compared with the state, which is then known to hold nothing
that is not in its predecessor: UsageError P043 if they differ.  That costs the move that was
planned, and shows that the step depends on nothing but its input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvm.faults import UsageError
from rvm.pebble.bridge.runs.files import Files
from rvm.pebble.bridge.runs.leaves import opened, owned, protected
from rvm.pebble.bridge.runs.states import Form

Step = Callable[..., Any]
Call = Callable[[Any, int], Any]
"""A step with its constants: from a state and the number of the step."""
WRITES = ("new", "out", "in place")
AFTER = "the state that a step gave"
READ_ONLY = "read-only"
"""What NumPy says when an array is written to that can't be changed."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A step as a Python function, and how it is called."""

    step: Step
    inverse: Step | None
    number: bool
    constants: Mapping[str, Any]

    def bound(self, function: Step) -> Call:
        """A function of a state and a number, whatever of this the step takes."""
        constants = self.constants
        if self.number:
            return (lambda x, k: function(x, k, **constants)) if constants else function
        if constants:
            return lambda x, k: function(x, **constants)
        return lambda x, k: function(x)


def told(error: Exception, what: str) -> None:
    """Say where an error comes from; P041 if it is from writing to a state that is held."""
    if isinstance(error, ValueError) and READ_ONLY in str(error):
        raise UsageError(
            "P041",
            f"{what} writes to a state that is held: its input, or an array it returned before",
            hint='let it return a new array; or say writes="out" or writes="in place"',
        ) from error
    error.add_note(f"in {what} of the chain")


class NewStates:
    """Moves by steps that return new states."""

    scratch = 1
    """States in memory besides the pebbles, while steps are done."""

    def __init__(self, form: Form, x0: Any, steps: Steps) -> None:
        self.form = form
        self.x0 = form.over(protected, x0)
        self.nbytes = form.nbytes
        self.hold = form.held()
        self.call = steps.bound(steps.step)
        self.back = steps.bound(steps.inverse or steps.step)

    def watch(self, counted: Callable[[Call], Call]) -> None:
        """Have steps counted."""
        self.call, self.back = counted(self.call), counted(self.back)

    def advance(self, x: Any, i: int, j: int) -> Any:
        """s_j from s_i, which stays."""
        call, hold, k = self.call, self.hold, i
        try:
            while k < j:
                x = hold(call(x, k), AFTER)
                k += 1
        except Exception as error:
            told(error, f"step {k + 1}")
            raise
        return x

    overwrite = advance

    def unadvance(self, x: Any, y: Any, j: int) -> None:
        """Do step j again, and compare."""
        if not self.form.same(self.advance(x, j - 1, j), y):
            raise differs(j)

    def shift(self, x: Any, i: int, j: int) -> Any:
        """s_j in the place of s_i: nothing is lost, as there is an inverse."""
        return self.advance(x, i, j)

    def unshift(self, y: Any, i: int, j: int) -> Any:
        """s_i in the place of s_j, by the inverse step."""
        for k in range(j, i, -1):
            y = self.hold(self.back(y, k - 1), AFTER)
        return y

    def free(self, x: Any) -> None:
        """Nothing: memory is given back with the last use of a state."""

    def seen(self, x: Any) -> Any:
        """A state as others may look at it, for now."""
        return x

    def given(self, x: Any) -> Any:
        """The state itself, which cannot be changed."""
        return x

    def result(self, x: Any) -> Any:
        """A state that no one else holds."""
        return self.form.over(opened, x)

    def leaves(self, x: Any) -> Sequence[Any]:
        """What is written to disk."""
        return self.form.apart(x, "a state")

    def loaded(self, files: Files, node: int) -> Any:
        """A state from disk."""
        state = self.form.together(files.load(node))
        return self.form.over(owned, state)


def differs(k: int) -> UsageError:
    """P043: a step that was done twice, with two results."""
    return UsageError(
        "P043",
        f"step {k} was done twice on the same state and gave two results",
        hint="a step depends on its state, its number and its constants only; "
        "or say price=0, and states are erased instead of uncomputed",
    )
