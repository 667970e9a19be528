"""The evidence of a gradient: the data from which it was computed, and runs that repeat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.image.nudged import nudged
from rvm.numbers.rounding import SPREAD, STEPS, magnitude
from rvm.program import Function, Program
from rvm.run.backup import copied
from rvm.run.raw import Run
from rvm.state import Options
from rvm.transform.duals import bar_slots
from rvm.transform.gradient import adjoint_names
from rvm.transform.programs import gradient_program
from rvm.types import elem_of

SEEDS = tuple(range(1, SPREAD + 1))
SMALL = 1 << 16
"""Of arrays up to so many bytes the bytes are kept, to see whether they have changed: copying them
takes less time than calls that add them up."""
WIDTH = 1528
"""The words in a row of larger arrays, of which sums are kept: about as many as are added fastest
by columns, and no power of 2, so rows of a matrix that change places are in other columns."""
Duals = Mapping[int, Any]
"""Adjoints by parameter register, as raw values."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A gradient and the data from which it was computed, as needed to estimate its error.

    `start` are the raw values of the parameters' registers, which must not change.
    """

    program: Program
    name: str
    undo: bool
    options: Options
    start: Sequence[Any]
    seeds: Duals
    """The adjoints of the results."""
    found: Duals
    """The adjoints of the inputs, all or some."""
    forwards: bool = False
    """They were found by tangents, without a run back."""
    owned: bool = False
    """The values are copies, which do not change."""
    marks: Sequence[bytes] = ()
    """Those of the arrays in `start` when the gradient was computed, or none if they are copies."""

    @property
    def goes_back(self) -> bool:
        """Whether the adjoints come from values that a run back has recomputed.

        In strict mode it takes them from the log.
        """
        return not (self.forwards or self.options.strict)

    def again(self, seed: int | None = None) -> Mapping[int, Any]:
        """The gradient once more, by parameter register; with a seed with perturbed rounding."""
        return again(self, seed)

    @property
    def function(self) -> Function:
        """The function that was differentiated."""
        return self.program.function(self.name)

    @property
    def begun(self) -> list[Any]:
        """Copies of the parameters' raw values, from which to run again."""
        return [copied(v) for v in self.start[: self.function.n_args]]


def marks(values: Sequence[Any]) -> list[bytes]:
    """What shows later whether arrays among values have changed, in any bit or in their order.

    Of each its bytes, or, if it is large, sums of its words.
    """
    # The bytes at once: gradients of short functions take ten times as long as that.
    return [
        v.tobytes() if v.nbytes <= SMALL else _sums(v) for v in values if isinstance(v, np.ndarray)
    ]


def _sums(v: NDArray[Any]) -> bytes:
    """The sums of an array's words by rows and by columns, and the bytes after the last full row.

    Two words that change places are in other rows or in other columns.
    """
    raw = np.ascontiguousarray(v).reshape(-1).view(np.uint8)
    whole = raw.size - raw.size % (8 * WIDTH)
    words = raw[:whole].view(np.uint64).reshape(-1, WIDTH)
    columns, rows = (words.sum(axis=axis, dtype=np.uint64).tobytes() for axis in (0, 1))
    return b"".join((columns, rows, raw[whole:].tobytes()))


def held_at_end(known: Evidence) -> dict[int, float]:
    """The largest magnitude of the numbers in each parameter's register after the run forwards."""
    options = replace(muted(known.options), strict=False)
    regs = Run(known.program, known.name, known.begun, options, undo=known.undo).regs
    return {k: raw_size(known.function, k, regs[k]) for k in range(known.function.n_args)}


def again(known: Evidence, seed: int | None = None) -> dict[int, Any]:
    """The gradient once more, by parameter register; with a seed with perturbed rounding."""
    back = there_and_back(known, seed)
    return {k: back.regs[slot] for k, slot in bar_slots(known.function).items()}


def there_and_back(known: Evidence, seed: int | None = None) -> Run:
    """The run back with the adjoints, once more."""
    program, options = known.program, muted(known.options)
    adjoint, derived = adjoint_names(program)[known.name], gradient_program(program, known.name)
    if seed is not None:
        program, _ = otherwise(program, options, seed)
        derived, options = otherwise(derived, options, seed)
    slots = bar_slots(known.function)
    there = Run(program, known.name, known.begun, options, undo=known.undo)
    regs = [*there.regs, *(copied(known.seeds[k]) for k in slots)]
    log = there.machine.state.residue if options.strict else None
    return Run(derived, adjoint, regs, options, undo=known.undo, log=log)


def otherwise(program: Program, options: Options, seed: int) -> tuple[Program, Options]:
    """A program that runs with perturbed rounding, and the options that it then needs."""
    return nudged(program, seed, STEPS), replace(options, tolerance=np.inf, bits="stated")


def same(a: Duals, b: Duals) -> bool:
    """Whether all of `b` is in `a`, to the bit, ignoring signs of zeros and kinds of NaN."""
    return all(np.array_equal(a[k], b[k], equal_nan=True) for k in b)


def raw_size(function: Function, k: int, raw: Any) -> float:
    """The largest magnitude of a parameter's raw numbers."""
    return magnitude(elem_of(function.registers[k].type), raw)


def muted(options: Options) -> Options:
    """Options for an unobserved repetition of a run."""
    return replace(options.unseen(), judged_later=True, max_steps=None, error=False)
