"""Schedules as bytecode: functions that play a plan by calls and uncalls of a step function.

    program = rvm.load("diffusion.rasm")            # with func step(y: f64[n], x: f64[n], c: f64)
    plan = rvm.pebble.plan(1000, pebbles=12)
    fast = rvm.pebble.emit(plan, program, "step")
    fast.step_1000(y=np.zeros(100), x=start, c=0.4)

A schedule is a grammar whose names stand for stretches that are played again and again.  Each name
becomes one function, which calls those of the names in it, with an ancilla for each state that it
makes and takes away; rows of steps become loops over an array of states.  So the code is as small
as the grammar, however many moves the schedule has.
"""

from __future__ import annotations

from collections.abc import Collection

from rvm.faults import UsageError
from rvm.pebble.bridge.emission.bennett import bennett_functions
from rvm.pebble.bridge.emission.code import StepWriter, identifiers
from rvm.pebble.bridge.emission.knill import knill_functions
from rvm.pebble.bridge.emission.layout import Face, Layout, lay_out
from rvm.pebble.bridge.emission.score import Play, Score
from rvm.pebble.bridge.emission.slots import Seats, seat
from rvm.pebble.bridge.emission.step import Step, step_of
from rvm.pebble.bridge.emission.stretch import StretchWriter, Symbols
from rvm.pebble.grammar import Name
from rvm.pebble.plans import Plan
from rvm.program import Function, Program, Span
from rvm.transform.duals import bar_type, reachable, unique
from rvm.transform.gradient import adjoint_names, gradient
from rvm.verify import verify

MIRRORED = "_m"
"""What is added to the names of mirrored functions."""


def emit(
    plan: Plan,
    program: Program,
    step: str = "step",
    *,
    name: str | None = None,
    number: str | None = None,
    in_place: str | None = None,
) -> Program:
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
    functions = emitted(plan, program, step, name=name, number=number, in_place=in_place)
    made = Program((*program.functions, *functions), functions[0].name, program.sources)
    verify(made)
    return made


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
    name, form = name or f"{step}_{plan.n}", plan.schedule.form
    if form is None or plan.goal == "gradient":
        return Emission(plan, program, found, span, taken).functions(name)
    used = {*program, *taken}
    return recursion(found, plan.n, form, plan.goal, unique(name, used), span, used)


def recursion(
    step: Step,
    n: int | None,
    form: tuple[str, int],
    goal: str,
    name: str,
    span: Span | None,
    taken: Collection[str],
) -> list[Function]:
    """The functions of a schedule that is one recursion, see `Schedule`; `name` is the outermost.

    If n is None, the last parameter of that tells how many steps there are.
    """
    made = knill_functions if form[0] == "knill" else bennett_functions
    return made(step, n, form[1], goal, name, span, taken)


def _playable(plan: Plan, step: Step) -> None:
    """UsageError P021 if a plan cannot be a function of that step."""
    if plan.goal == "visit":
        raise UsageError(
            "P021",
            "a visit leaves pebbles behind, which a function has no place for",
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


class Emission:
    """The functions of one plan."""

    def __init__(
        self, plan: Plan, program: Program, step: Step, span: Span | None, taken: frozenset[str]
    ) -> None:
        self.plan, self.program, self.step, self.span = plan, program, step, span
        self.taken = {*program, *taken}
        self.adjoints: list[Function] = []
        self.score = Score(plan.schedule, plan.n)
        self.wide: set[Name] = set()
        self.layouts: dict[Name, Layout] = {}
        self.seats: dict[Name, Seats] = {}
        self._symbols: dict[tuple[Name, bool], str] = {}

    def functions(self, name: str) -> list[Function]:
        """All functions, the one that is called `name` first."""
        root = self.score.root
        for stretch in self.score.names:
            if stretch == root or self.score.called(stretch):
                layout = lay_out(self.score.parts(stretch, self.wide), self._face)
                self.layouts[stretch] = layout
                if layout.face is None:
                    self.wide.add(stretch)
                else:
                    spared = stretch == root and self._keeps_own(layout)
                    self.seats[stretch] = seat(layout, self._need, spared)
        name = unique(name, self.taken)
        self._symbols[root, False] = name
        self.taken.add(name)
        self._asked: list[tuple[Name, bool]] = [(root, False)]
        symbols = Symbols(self._symbol, self._face, self._need, *self._adjoint_names())
        made = []
        while self._asked:
            made.append(self._function(*self._asked.pop(), symbols))
        return [*made, *self.adjoints]

    def _keeps_own(self, layout: Layout) -> bool:
        """Whether the result can be made in y itself: no other function makes it."""
        return all(
            not (isinstance(part, Play) and any(p.outer for p in (*life.made, *life.taken)))
            for part, life in zip(layout.parts, layout.lives, strict=True)
        )

    def _need(self, name: Name) -> int:
        return self.seats[name].need

    def _face(self, name: Name) -> Face:
        face = self.layouts[name].face
        assert face is not None
        return face

    def _symbol(self, name: Name, mirrored: bool) -> str:
        """The function of a name, which will be made if it was not asked for before."""
        found = self._symbols.get((name, mirrored))
        if found is None:
            words = name if isinstance(name, tuple) else (name,)
            base = f"{self._symbols[self.score.root, False]}.{identifiers(words)}"
            found = unique(base + MIRRORED * mirrored, self.taken)
            self._symbols[name, mirrored] = found
            self.taken.add(found)
            self._asked.append((name, mirrored))
        return found

    def _adjoint_names(self) -> tuple[str, str]:
        """The names of the adjoints of the step, whose functions are made."""
        if self.plan.goal != "gradient":
            return "", ""
        found = []
        known: dict[str, Function] = {}
        names = adjoint_names(self.program)
        for f in (self.step.function, self.step.in_place):
            if f is None:
                found.append("")
                continue
            own = gradient(self.program, f.name)
            for other in reachable(self.program, f.name):
                known[names[other]] = own.function(names[other])
            found.append(names[f.name])
        self.adjoints = [f for f in known.values() if f.name not in self.program]
        return found[0], found[1]

    def _function(self, stretch: Name, mirrored: bool, symbols: Symbols) -> Function:
        layout, seats = self.layouts[stretch], self.seats[stretch]
        root = stretch == self.score.root
        face = layout.face
        assert face is not None
        w = StepWriter(
            self.step,
            with_y=root and self.plan.goal != "gradient",
            sweeps=face.sweeps,
            slots=seats.need,
            whole=root,
        )
        player = StretchWriter(self.step, layout, seats, symbols, w, mirrored)
        if root:
            self._whole(player, w)
        else:
            player.play()
        return w.function(self._symbol(stretch, mirrored), self.span)

    def _whole(self, player: StretchWriter, w: StepWriter) -> None:
        """The outermost function: it makes the pool, and has results where callers want them."""
        if w.sweeps:
            w.begin_sweep()
        if w.slots:
            w.each("alloc", w.pool)
        player.play()
        if self.plan.goal == "persist" and not player.seats.spared:
            assert w.y is not None
            w.each("swap", w.y, player.result())
        if w.slots:
            for leaf in reversed(w.places(w.pool)):
                w.put("free", leaf)
        if w.sweeps:
            w.end_sweep()
        if w.sweeps or self.plan.cost.erased:
            name = self._symbols[self.score.root, False]
            w.refuse_back(f"`{name}` erases what it needs no more: it cannot be run back")
