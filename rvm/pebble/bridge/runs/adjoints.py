"""Propagating adjoints back over a chain, of Python functions and of functions of programs.

The adjoint of step k takes s_(k-1) and the adjoint of s_k, and returns the adjoint of s_(k-1); the
adjoints of constants are summed over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from rvm.derive.estimate import check_returned
from rvm.derive.evidence import Evidence, again
from rvm.derive.gate import later
from rvm.derive.named import add_seeds, bar_layout, zero_dual
from rvm.faults import InvertibilityError, UsageError
from rvm.pebble.bridge.runs.functions import FunctionSteps, Raw, prepared, shadow
from rvm.pebble.bridge.runs.moves import Step, Steps, told
from rvm.pebble.bridge.runs.states import Form, added
from rvm.program import slots_of
from rvm.run.binding import outside
from rvm.transform.duals import bar_slots
from rvm.transform.gradient import adjoint_names
from rvm.transform.programs import gradient_program


class Adjoints(Protocol):
    """The propagation of adjoints of states back over steps."""

    extra: int
    """States in memory when an adjoint is taken, besides those that moves need."""

    def joined(self, bar: Any, more: Any, whose: str) -> Any:
        """An adjoint plus that of a loss; None is zero, and the sum of both None is None."""

    def pull(self, x: Any, bar: Any, k: int) -> Any:
        """The adjoint of s_(k-1) = x from that of s_k."""

    def given(self, bar: Any) -> Any:
        """The adjoint of the input in the caller's form."""

    def constants(self) -> Mapping[str, Any]:
        """The adjoints of the constants, by name."""


class PythonAdjoints:
    """`adjoint(x, ybar)` gives xbar, or with constants xbar and a mapping of their adjoints."""

    extra = 2

    def __init__(self, form: Form, adjoint: Step, steps: Steps) -> None:
        self.form = form
        constants = steps.constants
        self.call: Callable[[Any, Any, int], Any] = (
            (lambda x, bar, k: adjoint(x, bar, k, **constants))
            if steps.number
            else (lambda x, bar, k: adjoint(x, bar, **constants))
        )
        self.named = steps.constants
        self.sums: dict[str, Any] = {}

    def joined(self, bar: Any, more: Any, whose: str) -> Any:
        """An adjoint plus that of a loss."""
        if bar is None and more is None:
            return self.form.no_adjoint()
        return added(bar, self.form.adjoint(more, f"the adjoint that {whose} gives"))

    def pull(self, x: Any, bar: Any, k: int) -> Any:
        """The adjoint one step back."""
        try:
            out = self.call(x, bar, k - 1)
        except Exception as error:
            told(error, f"the adjoint of step {k}")
            raise
        if self.named:
            out = self._summed(out, k)
        return self.form.adjoint(out, f"the adjoint of the state before step {k}")

    def _summed(self, out: Any, k: int) -> Any:
        """Add up the adjoints of constants; return that of the state."""
        if not (isinstance(out, tuple) and len(out) == 2 and isinstance(out[1], Mapping)):
            raise UsageError(
                "P040",
                f"the adjoint of step {k} gave a {type(out).__name__}; with constants it gives "
                "a pair: the adjoint of the state, and those of constants by name",
                hint='return xbar, {"c": cbar}; constants without an adjoint may be left out',
            )
        bar, found = out
        for name, value in found.items():
            if name not in self.named:
                raise UsageError(
                    "P040",
                    f"the adjoint of step {k} has one for `{name}`, which is not a constant",
                    hint=f"constants: {', '.join(self.named)}",
                )
            held = self.sums.get(name)
            if isinstance(held, np.ndarray) and isinstance(value, np.ndarray):
                held += value
            else:
                # The first is copied: it is added to from now on, and may be the function's own.
                first = value.copy() if isinstance(value, np.ndarray) else value
                self.sums[name] = first if held is None else added(held, value)
        return bar

    def given(self, bar: Any) -> Any:
        """The adjoint itself."""
        return bar

    def constants(self) -> Mapping[str, Any]:
        """The sums."""
        return self.sums


class FunctionAdjoints:
    """Adjoints by the step function's own, which the gradient transformation makes.

    A step is done, and the adjoint function runs it back with the adjoints.
    """

    extra = 2

    def __init__(self, moves: FunctionSteps, calls: float) -> None:
        handle = moves.handle
        program = gradient_program(handle.program, handle.name)
        name = adjoint_names(handle.program)[handle.name]
        self.moves = moves
        self.function = moves.function
        self.adjoint = program.function(name)
        self.drifts: list[float] = []
        """The largest residue of each run back, in parts of the allowed one."""
        options = later(handle.options)
        self.run = prepared(program, name, False, options, calls, self.drifts)
        self.slots = bar_slots(self.function)
        own = moves.step
        carrying = [k for k in own.y if k in self.slots]
        if not carrying:
            raise UsageError(
                "P020",
                f"the states of `{self.function.name}` are numbers that have no adjoints",
                hint="adjoints are of f32, f64, fixed, log64 and c128",
            )
        inputs = dict(zip(own.y, own.x, strict=True))
        self.pairs = [(k, inputs[k]) for k in carrying]
        """Registers of y and x that carry adjoints."""
        regs = moves.filled(moves.blank, moves.x0, 0)
        self.fixed: dict[int, Any] = {
            k: zero_dual(self.function, k, regs[k])
            for p in moves.constants
            for k in slots_of(p.layout)
            if k in self.slots
        }
        """The adjoints of constants, by register."""
        self.blank = {x: shadow(zero_dual(self.function, x, regs[x])) for _, x in self.pairs}
        self.spare: Raw | None = None

    def _zeros(self) -> Raw:
        """Adjoints of zero, in order of the pairs."""
        if self.spare is not None:
            out, self.spare = self.spare, None
            for at, (_, x) in enumerate(self.pairs):
                if isinstance(out[at], np.ndarray):
                    out[at].fill(0)
                else:
                    out[at] = self.blank[x]
            return out
        return [v.copy() if isinstance(v, np.ndarray) else v for v in self.blank.values()]

    def joined(self, bar: Raw | None, more: Any, whose: str) -> Raw:
        """An adjoint plus that of a loss; InputError I003, I004 if that is invalid."""
        bar = self._zeros() if bar is None else bar
        held = {y: value for (y, _), value in zip(self.pairs, bar, strict=True)}
        if more is not None:
            add_seeds(self.function, held, {self.moves.after.name: more})
        return list(held.values())

    def pull(self, x: Raw, bar: Raw, k: int) -> Raw:
        """The adjoint one step back."""
        moves = self.moves
        y = moves.made(x, k)
        regs = moves.filled(y, x, k)
        for slot in moves.passing:
            if isinstance(regs[slot], np.ndarray):
                regs[slot] = regs[slot].copy()
        regs += [None] * len(self.slots)
        fresh = self._zeros()
        for (ys, xs), ybar, xbar in zip(self.pairs, bar, fresh, strict=True):
            regs[self.slots[ys]], regs[self.slots[xs]] = ybar, xbar
        for slot, value in self.fixed.items():
            regs[self.slots[slot]] = value
        try:
            regs = self.run(regs)
        except Exception as error:
            told(error, f"the adjoint of step {k}")
            raise
        for slot in self.fixed:
            self.fixed[slot] = regs[self.slots[slot]]
        self._check(x, regs, k)
        moves.free([regs[slot] for slot in moves.step.y])
        self.spare = bar
        return [regs[self.slots[xs]] for _, xs in self.pairs]

    def _check(self, x: Raw, regs: list[Any], k: int) -> None:
        """InvertibilityError R017 unless step k, undone, left its values where they began.

        Where it did not its gradient is judged with random adjoints, as the step's own are gone.
        Those of one would be blind in a step that keeps the sum of its state.
        """
        moves, handle = self.moves, self.moves.handle
        start = moves.filled(moves.blank, x, k)

        def evidence() -> Evidence:
            function = self.function
            seeds = {s: zero_dual(function, s, start[s]) for s in bar_slots(function)}
            rng = np.random.default_rng(k)
            for s, _ in self.pairs:
                seeds[s] = seeds[s] + rng.uniform(0.5, 1.5, np.shape(seeds[s]))
            known = Evidence(handle.program, handle.name, False, handle.options, start, seeds, {})
            return replace(known, found=again(known))

        try:
            known = start, regs, handle.options, evidence
            drift = self.drifts.pop()
            check_returned(handle.program, handle.name, *known, drift=drift)
        except InvertibilityError as error:
            told(error, f"the adjoint of step {k}")
            raise

    def given(self, bar: Raw) -> Any:
        """The adjoint of the input as Python values."""
        return self._outside(
            self.moves.before.layout,
            {x: value for (_, x), value in zip(self.pairs, bar, strict=True)},
        )

    def constants(self) -> Mapping[str, Any]:
        """The adjoints of the constants, by name."""
        found = {p.name: self._outside(p.layout, self.fixed) for p in self.moves.constants}
        return {name: value for name, value in found.items() if value is not None}

    def _outside(self, layout: Any, bars: Mapping[int, Any]) -> Any:
        own = bar_layout(layout, self.slots)
        if own is None:
            return None
        regs: list[Any] = [None] * len(self.adjoint.registers)
        for slot, value in bars.items():
            regs[self.slots[slot]] = value
        return outside(self.adjoint, own, regs)


Loss = Callable[[Any], tuple[float, Any]]
"""From a state to a loss, and the adjoint of the state."""
Running = Callable[[Any, int], "tuple[float, Any] | None"]
"""From s_i and i to that state's contribution to the loss and its adjoint; None for none."""
