"""Schedules as bytecode: functions that execute a plan by calls and uncalls of a step function.

    program = rvm.load("diffusion.rasm")            # with func step(y: f64[n], x: f64[n], c: f64)
    plan = rvm.pebble.plan(1000, pebbles=12)
    fast = rvm.pebble.emit(plan, program, "step")
    fast.step_1000(y=np.zeros(100), x=start, c=0.4)

A schedule of equal steps that erases nothing is one recursive function with its splits as constants
(`recursion`).  The grammar of any other is a table of integers, which one recursive function
interprets (`table`, `player`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from rvm.faults import UsageError
from rvm.pebble.bridge.emission.player import PlayWriter, Symbols, packed, whole
from rvm.pebble.bridge.emission.recursion import recursion
from rvm.pebble.bridge.emission.step import Step, step_of
from rvm.pebble.bridge.emission.table import Table
from rvm.pebble.bridge.emission.tables import fill_functions
from rvm.pebble.plans import Plan
from rvm.program import AnyProgram, Function, Program, Span, program_of
from rvm.transform.duals import bar_type, reachable, unique
from rvm.transform.gradient import adjoint_names, gradient
from rvm.verify import verify

if TYPE_CHECKING:
    from rvm.library.handle import Library


def emit(
    plan: Plan,
    program: AnyProgram,
    step: str = "step",
    *,
    name: str | None = None,
    number: str | None = None,
    in_place: str | None = None,
) -> Library:
    """The program with functions that play a plan, the first of them its entry.

    That one is called `name`, by default `step_n`.  Of goal `persist` it has the step's
    parameters, and turns a zero y into s_n; of goal `erase` it adds s_n to whatever y holds.  Of
    goal `gradient` it has those of the step without y, and an adjoint for each that has one: those
    of y are dL/ds_n, and dL/ds_0 and those of the constants are added to the others.

    `number` names a parameter of type i64 that gets the number of the step, from 0 on; of the new
    function it is that of its first step.  `in_place` names a function that does the step in
    place, for plans with `reversible_steps`.

    InputError P020 if the functions do not fit; UsageError P021 for a plan that leaves pebbles
    behind (`visit`), or uses a disk.
    """
    from rvm.library.handle import Library

    program = program_of(program)
    functions = emitted(plan, program, step, name=name, number=number, in_place=in_place)
    made = Program((*program.functions, *functions), functions[0].name, program.sources)
    verify(made)
    return Library(made)


def emitted(
    plan: Plan,
    program: Program,
    step: str,
    *,
    name: str | None = None,
    number: str | None = None,
    in_place: str | None = None,
    span: Span | None = None,
    taken: frozenset[str] = frozenset(),
) -> list[Function]:
    """The functions that `emit` adds, that of the whole schedule first.

    All their instructions stand at `span`; names in `taken` are not used.
    """
    found = step_of(program, step, number, in_place)
    _playable(plan, found)
    used, form = {*program, *taken}, plan.schedule.form
    name = unique(name or f"{step}_{plan.n}", used)
    if form is None or plan.goal == "gradient":
        return _tabled(plan, program, found, name, span, used)
    return recursion(found, plan.n, form, plan.goal, name, span, used)


def _tabled(
    plan: Plan, program: Program, step: Step, name: str, span: Span | None, taken: Collection[str]
) -> list[Function]:
    """The functions of a schedule that is a table, that called `name` first."""
    table = Table(plan.schedule, plan.n)
    used = {*taken, name}
    play, fill = (unique(f"{name}.{part}", used) for part in ("play", "fill"))
    adjoints, found = [""] * 2, dict[str, Function]()
    if plan.goal == "gradient":
        names = adjoint_names(program)
        for k, f in enumerate((step.function, step.in_place)):
            if f is not None:
                adjoints[k] = names[f.name]
                own = gradient(program, f.name)
                found |= {names[g]: own.function(names[g]) for g in reachable(program, f.name)}
    symbols = Symbols(play, fill, *adjoints)
    packing, back = packed(table), ""
    if plan.goal == "gradient" or plan.cost.erased:
        back = f"`{name}` erases what it needs no more: it cannot be run back"
    return [
        whole(step, table, packing, symbols, plan.goal, back).function(name, span),
        PlayWriter(step, symbols, table, packing, plan.goal == "erase").function(play, span),
        *fill_functions(fill, packing.values, span, used),
        *(f for f in found.values() if f.name not in program),
    ]


def _playable(plan: Plan, step: Step) -> None:
    """UsageError P021 if a plan cannot be a function of that step."""
    if plan.goal == "visit":
        raise UsageError(
            "P021",
            "a visit leaves pebbles behind, which a function cannot return",
            hint='goal="persist" keeps the result alone, goal="erase" copies it out',
        )
    if plan.rules.disk:
        raise UsageError(
            "P021",
            f"a plan by `{plan.strategy}` puts states on disk, which bytecode cannot do",
            hint="plan without a disk",
        )
    registers = step.function.registers
    if plan.goal == "gradient" and all(bar_type(registers[k].type) is None for k in step.x):
        raise UsageError(
            "P021",
            f"the state of `{step.function.name}` has no adjoint, so there is no gradient",
            hint="adjoints are those of real and complex numbers",
        )
