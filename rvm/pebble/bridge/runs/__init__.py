"""`iterate`: a step done n times within a budget: the last state, the gradient, the way back.

    run = rvm.pebble.iterate(step, 100_000, memory="2 GB", adjoint=step_adjoint)
    run(x0)                                         # s_n
    run.gradient(x0, loss)                          # value, gradient, plan, what was counted
    for i, state in run.back(x0): ...               # s_n, ..., s_0

A step is a Python function on NumPy states (see `moves`), or a function of a program (see
`functions`).  A plan determines which states are held and which recomputed, and the moves made are
counted: plan and counts come with each result, and agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from rvm.library.handle import FunctionHandle
from rvm.pebble.bridge.runs.adjoints import Loss, Running
from rvm.pebble.bridge.runs.budgets import Budget, free_of_charge, refuse_reversible
from rvm.pebble.bridge.runs.moves import WRITES, Step
from rvm.pebble.bridge.runs.progress import Watch
from rvm.pebble.bridge.runs.results import Gradient, Reached, Walk
from rvm.pebble.bridge.runs.run import How, Run
from rvm.pebble.plans import Plan
from rvm.pebble.terms import wrong

Until = Callable[[Any, int], bool]
"""From s_i and i to whether the run ends there."""


def iterate(
    step: Step | FunctionHandle,
    n: int | None = None,
    budget: int | str | Plan | None = None,
    *,
    until: Until | None = None,
    adjoint: Step | None = None,
    inverse: Step | None = None,
    number: bool | str = False,
    in_place: str | None = None,
    writes: str = "new",
    folder: str | PathLike[str] | None = None,
    progress: Watch = None,
    **terms: Any,
) -> Iteration:
    """A step to be repeated n times within a budget.

    `step`      a Python function from a state to the next one, see `bridge.runs.moves`, or a
                function of a program, see `bridge.runs.functions`
    `n`         the number of steps; with `until` the most there may be
    `budget`    a number of pebbles, bytes as "2 GB", or a plan; or in `terms` one of `pebbles`,
                `memory`, `max_moves`, `max_energy`, and whatever else `rvm.pebble.plan` takes
    `until`     (s_i, i) -> whether the run ends there
    `adjoint`   (x, ybar) -> xbar, called as the step is; with constants it gives
                (xbar, {name: adjoint}).  A function of a program has its own.
    `inverse`   the step undone, for `reversible_steps`
    `in_place`  for these the name of the program's function that does the step in place
    `number`    whether step and adjoint get the number of the step after the states, 0 for that
                from s_0; of a function of a program, the name of the parameter that gets it
    `writes`    "new", "out" or "in place": how a Python step gives its result
    `folder`    where states go that a plan saves to disk; else where temporary files are
    `progress`  True or False, or a function of steps done and in all; None: a bar on a terminal

    Without a price of erasing, Python functions erase states for nothing, as they cannot be run
    backwards; functions of programs erase none, and are run backwards.
    """
    if n is None and isinstance(budget, Plan):
        n = budget.n
    if n is None and until is None:
        raise wrong("a run has a number of steps, or a condition when it ends", "n= or until=")
    if not callable(step):
        raise wrong(f"a step is a function, not {type(step).__name__}")
    if n is not None and n < 1:
        raise wrong(f"a chain has a step at least, not {n}", n=n)
    if writes not in WRITES:
        raise wrong(f"a step writes {', '.join(map(repr, WRITES))}", given=writes)
    found = Budget(budget, terms)
    ready = budget.rules.in_place if isinstance(budget, Plan) else ()
    in_steps = bool(found.terms.get("reversible_steps") or ready)
    if isinstance(step, FunctionHandle):
        if adjoint or inverse or number is True or writes != "new":
            raise wrong(
                "`adjoint`, `inverse`, `writes` and `number=True` are for Python functions",
                "a function of a program has its inverse and its adjoint; number= is a name",
            )
        if until is not None and not free_of_charge(found.terms):
            raise refuse_reversible(step.name)
        if in_steps and in_place is None:
            raise wrong("steps in place need the function that does them", "in_place=")
    else:
        if in_place is not None or isinstance(number, str):
            raise wrong(
                "`in_place` and the name of a parameter are for functions of programs",
                "number=True gives a Python function the number after its state",
            )
        if in_steps and inverse is None:
            raise wrong("steps that are undone in place need an inverse", "inverse=")
    how = How(step, adjoint, inverse, number, in_place, writes, folder, progress)
    return Iteration(how, n, found, until)


class Iteration:
    """A chain of equal steps with a budget: runs from any input.  Made by `iterate`.

    All runs take `constants`, a mapping by name that every step gets.  The input is never changed.
    """

    def __init__(self, how: How, n: int | None, budget: Budget, until: Until | None) -> None:
        self.how = how
        self.n = n
        self.budget = budget
        self.until = until

    def __repr__(self) -> str:
        name = getattr(self.how.step, "name", None) or getattr(self.how.step, "__name__", "a step")
        length = "until it ends" if self.n is None else f"{self.n:,} times"
        return f"<`{name}` {length}, {self.budget}>"

    def _run(
        self, x0: Any, constants: Mapping[str, Any] | None, goal: str, adjoints: bool = False
    ) -> Run:
        return Run(self.how, self.n, self.budget, self.until, x0, constants or {}, goal, adjoints)

    # ------------------------------------------------------------ what it does

    def __call__(self, x0: Any, *, constants: Mapping[str, Any] | None = None) -> Any:
        """The last state of the run from x0."""
        return self.reach(x0, constants=constants).state

    def reach(self, x0: Any, *, constants: Mapping[str, Any] | None = None) -> Reached:
        """The last state of the run from x0, with what it cost."""
        with self._run(x0, constants, "persist") as run:
            state, played = run.reach()
            return Reached(state, run.n, run.plan, played)

    def back(self, x0: Any, *, constants: Mapping[str, Any] | None = None) -> Walk:
        """The states from the last to the input: pairs of i and s_i.

        A state that was given out stays as it is.
        """
        return Walk(self._run(x0, constants, "gradient"))

    def gradient(
        self,
        x0: Any,
        loss: Loss | FunctionHandle | None = None,
        *,
        seed: Any = None,
        running: Running | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> Gradient:
        """A loss of the run from x0, and its gradient.

        `loss`     s_n -> (value, adjoint of s_n), or a function of a program, `loss(l, s)`
        `seed`     in its place, the adjoint of s_n
        `running`  (s_i, i) -> (value, adjoint of s_i) for i = n, ..., 0, or None where there is
                   nothing to add
        """
        if loss is not None and seed is not None:
            raise wrong(
                "the adjoint of the last state comes from a loss, or is given", "one of both"
            )
        if loss is None and seed is None and running is None:
            raise wrong("a gradient needs a loss", "loss=, running=, or seed=")
        ending = _loss_of(loss) if isinstance(loss, FunctionHandle) else loss
        with self._run(x0, constants, "gradient", adjoints=True) as run:
            adjoints, value, bar = run.adjoints, 0.0, None
            for k in run.states():
                if k == run.n and ending is not None:
                    value, seed = ending(run.seen())
                if k == run.n and seed is not None:
                    bar = adjoints.joined(None, seed, "the loss")
                elif bar is not None:
                    bar = adjoints.pull(run.raw, bar, k + 1)
                found = None if running is None else running(run.seen(), k)
                if found is not None:
                    value += found[0]
                    bar = adjoints.joined(bar, found[1], "the running loss")
                found = seed = None
            bar = adjoints.joined(None, None, "") if bar is None else bar
            return Gradient(
                None if loss is None and running is None else float(value),
                adjoints.given(bar),
                adjoints.constants(),
                run.n,
                run.plan,
                run.board.tally(),
            )


def _loss_of(handle: FunctionHandle) -> Loss:
    """A function of a program, `loss(l, s)`, as a loss."""
    if len(handle.parameters) != 2:
        raise wrong(
            f"`{handle.name}` is not a loss: it takes {', '.join(handle.parameters)}",
            "func loss(l: f64, s: T)",
        )
    out, state = handle.parameters

    def loss(x: Any) -> tuple[float, Any]:
        value, found = handle.value_and_grad({out: 0.0, state: x}, loss=out)
        return value, found[state]

    return loss
