"""The growing code of one function that executes a part of a schedule.

Its parameters are those of the step: the states y and x, then the number and constants; without y
if it leaves no state.  A function that computes adjoints has additional parameters: the adjoint of
the state, which it propagates from the last node of the part to the first, and those of the
constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rvm.expr import Const, Expr, Index, Place, rebuild
from rvm.expr import Span as Slice
from rvm.isa import apply, place
from rvm.numbers import system
from rvm.pebble.bridge.emission.body import Body, integer
from rvm.pebble.bridge.emission.step import Step
from rvm.program import Dim, Layout, Param, Record, Register, slots_of
from rvm.transform.duals import BAR, bar_type, unique
from rvm.types import RegisterType, Scalar, elem_of, rank_of, with_rank


@dataclass(frozen=True, slots=True)
class State:
    """The registers of a state's leaves; with an index, that state of a row of them."""

    regs: tuple[int, ...]
    index: Expr | None = None

    def at(self, index: Expr) -> State:
        """A state of a row."""
        return State(self.regs, index)


POOL = "states of iterate"
"""The name of the pool, which errors show: that of no user's register."""


class StepWriter(Body):
    """The body of a function with the parameters of a step."""

    def __init__(
        self,
        step: Step,
        *,
        with_y: bool = True,
        sweeps: bool = False,
        slots: int = 0,
        whole: bool = False,
    ) -> None:
        super().__init__()
        self.step = step
        self.with_y, self.sweeps, self._outermost = with_y, sweeps, whole
        self._made: State | None = None
        self.slots = slots
        """The number of slots of the pool; the outermost function makes it."""
        self.pool = State(())
        self._sign()
        if self.slots and whole:
            self.pool = self.fresh_state(POOL, integer(self.slots))

    # ------------------------------------------------------------ parameters

    def _sign(self) -> None:
        step, f = self.step, self.step.function
        mine = [k for k in range(f.n_args) if self.with_y or k not in step.y]
        pooled = self.slots > 0 and not self._outermost
        lead = len(step.x) if pooled else 0
        self._new = {k: lead + j for j, k in enumerate(mine)}
        if not self.with_y:
            # A length that y names is that of x.
            self._new |= {a: self._new[b] for a, b in zip(step.y, step.x, strict=True)}
        if pooled:
            self.pool = self._lent()
        for k in mine:
            register = f.registers[k]
            dims = tuple(self._length(d, k, axis) for axis, d in enumerate(register.dims))
            self.registers.append(Register(register.name, register.type, dims))
        known = set()
        for d in f.dims:
            if d.reg < f.n_args and d.name not in known:
                self.dims.append(Dim(d.name, self._new[d.reg], d.axis))
                known.add(d.name)
        for p in f.params if self.with_y else f.params[1:]:
            self.params.append(Param(p.name, _over_layout(self._new, p.layout)))
        self.x = State(tuple(self._new[k] for k in step.x))
        self.y = State(tuple(self._new[k] for k in step.y)) if self.with_y else None
        self.number = None if step.number is None else self.whole(self._new[step.number])
        self.bars: dict[int, int] = {}
        """For each register of the step's state x and constants that of its adjoint."""
        if self.sweeps:
            self._sign_bars()

    def _lent(self) -> State:
        """A pool as the next parameter, with the fields of a state."""
        f, first = self.step.function, len(self.registers)
        own = {k: first + j for j, k in enumerate(self.step.x)}

        name = unique(POOL, {r.name for r in f.registers} | {p.name for p in f.params})
        for k in self.step.x:
            t = f.registers[k].type
            made = with_rank(elem_of(t), rank_of(t) + 1)
            self.registers.append(Register(self.leaf_name(name, k), made, (None,) * rank_of(made)))
        self.params.append(Param(name, _over_layout(own, f.params[1].layout)))
        return State(tuple(own.values()))

    def _sign_bars(self) -> None:
        """Parameters for adjoints; the outermost function has those of y as well as of x."""
        f = self.step.function
        for p in f.params[not self._outermost :]:
            slots = [k for k in slots_of(p.layout) if bar_type(f.registers[k].type) is not None]
            for k in slots:
                self.bars[k] = self._bar(f.registers[k].name + BAR, k)
            if slots:
                self.params.append(Param(p.name + BAR, _over_layout(self.bars, p.layout, BAR)))
        self.seed = State(tuple(self.bars.pop(k) for k in self.step.y if k in self.bars))
        """Of the outermost function: the adjoints of y."""
        self.sink = self.running()
        """Of the outermost function: the adjoints of x."""

    def _bar(self, name: str, k: int) -> int:
        """A new register for the adjoint of a register of the step."""
        t = bar_type(self.step.function.registers[k].type)
        assert t is not None
        self.registers.append(Register(name, t, self.lengths(k)))
        return len(self.registers) - 1

    def running(self) -> State:
        """The adjoint of the state, which runs from node to node."""
        return State(tuple(self.bars[k] for k in self.step.x if k in self.bars))

    def _length(self, dim: Expr | None, reg: int, axis: int) -> Expr | None:
        """A length of a parameter over the new registers; of x's own it may be any."""
        found = None if dim is None else self._over(dim)
        own = self._dim(self._new[reg], axis, self.step.function.registers[reg].type)
        return None if found == own else found

    def _over(self, node: Expr) -> Expr:
        if isinstance(node, Place):
            return Place(self._new[node.reg], node.path, node.type)
        return rebuild(node, self._over)

    def _dim(self, reg: int, axis: int, t: RegisterType | None = None) -> Expr:
        return apply("dim", place(reg, t or self.registers[reg].type), integer(axis))

    # ------------------------------------------------------------ registers

    def whole(self, reg: int) -> Place:
        """A register as a place."""
        t = self.registers[reg].type
        return place(reg, t) if isinstance(t, Scalar) or rank_of(t) else Place(reg, (), None)

    def places(self, state: State) -> list[Place]:
        """The leaves of a state."""
        if state.index is None:
            return [self.whole(k) for k in state.regs]
        path = (Index((state.index,)),)
        return [place(k, self.registers[k].type, path) for k in state.regs]

    def lengths(self, k: int) -> tuple[Expr, ...]:
        """Those of the leaf of x that is register `k` of the step."""
        t = self.step.function.registers[k].type
        return tuple(self._dim(self._new[k], axis) for axis in range(rank_of(t)))

    def leaf_name(self, base: str, k: int) -> str:
        """The name of a leaf of a new state: as that of x, which `base` stands for."""
        own = self.step.function.registers[k].name
        head = self.step.function.params[1].name
        return base + own[len(head) :] if own.startswith(head) else f"{base}.{own}"

    def fresh_state(self, base: str, count: Expr | None = None) -> State:
        """Registers for a state, or for a row of `count` states."""
        f, regs = self.step.function, []
        base = self.fresh_name(base)
        for k in self.step.x:
            t = f.registers[k].type
            lead = () if count is None else (count,)
            made = with_rank(elem_of(t), rank_of(t) + len(lead))
            regs.append(len(self.registers))
            self.registers.append(
                Register(self.leaf_name(base, k), made, (*lead, *self.lengths(k)))
            )
        return State(tuple(regs))

    def fresh_bar(self) -> State:
        """Registers for another adjoint of the state."""
        slots = [k for k in self.step.x if k in self.bars]
        return State(
            tuple(self._bar(self.leaf_name(self.fresh_name("s"), k) + BAR, k) for k in slots)
        )

    def begin_sweep(self) -> None:
        """In the outermost function: an adjoint that runs, from that of y."""
        own = self.fresh_bar()
        self.bars |= dict(zip((k for k in self.step.x if k in self.bars), own.regs, strict=True))
        self.each("fresh", own)
        self.each("add", own, self.seed)

    def end_sweep(self) -> None:
        """Add the adjoint of s_0 to that of x."""
        own = self.running()
        self.each("add", self.sink, own)
        self.each("drop", own)

    # ------------------------------------------------------------ instructions

    def each(self, op: str, *states: State) -> None:
        """The same instruction on all leaves of states."""
        for leaves in zip(*(self.places(s) for s in states), strict=True):
            self.put(op, *leaves)

    def step_into(self, op: str, y: State, x: State, number: Expr | None) -> None:
        """The step into a slot of the pool, or with "uncall" out of it.

        Inexact states are made in a place of their own, and exchanged with the slot.  So the slot's
        adjoint begins at zero each time: what an earlier state has left of it would be cancelled
        by arithmetic only, and what rounding leaves of that grows from use to use.
        """
        f = self.step.function
        if all(elem_of(f.registers[k].type).is_exact for k in self.step.x) or self.sweeps:
            self.put(op, *self.arguments(y, x, number, None), symbol=f.name)
            return
        if self._made is None:
            self._made = self.fresh_state("made")
        made = self._made
        self.each("alloc", made)
        if op == "uncall":
            self.each("swap", y, made)
        self.put(op, *self.arguments(made, x, number, None), symbol=f.name)
        if op == "call":
            self.each("swap", y, made)
        self.each("free", made)

    def numbered(self, *terms: Expr | int) -> Expr | None:
        """The number of a step: that of the function's first step, and these terms."""
        total: Expr | None = self.number
        if total is None:
            return None
        for term in terms:
            value = term.value if isinstance(term, Const) else term
            if isinstance(value, int):
                value *= self.step.by
                if value:
                    total = apply("-" if value < 0 else "+", total, integer(abs(value)))
            else:
                total = apply("+" if self.step.by > 0 else "-", total, value)
        return total

    def slots_between(self, low: Expr, high: Expr | None) -> list[Expr]:
        """A slice of the pool from one slot up to another, or to its end."""
        path = (Index((Slice(low, high),)),)
        return [place(k, self.registers[k].type, path) for k in self.pool.regs]

    def arguments(
        self, y: State | None, x: State, number: Expr | None, bars: Callable[[int], int] | None
    ) -> list[Expr]:
        """The arguments for the step, or for a function of a stretch, in the step's order."""
        step = self.step
        leaves: dict[int, Expr] = dict(zip(step.x, self.places(x), strict=True))
        if y is not None:
            leaves |= dict(zip(step.y, self.places(y), strict=True))
        if step.number is not None:
            assert number is not None
            leaves[step.number] = number
        out = []
        for k in range(step.function.n_args):
            if k in leaves:
                out.append(leaves[k])
            elif k not in step.y:
                out.append(self.whole(self._new[k]))
        if bars is not None:
            out += [self.whole(bars(k)) for k in self.bars]
        return out


def copied(writer: StepWriter, y: State | None, x: State) -> None:
    """Add a state to y, which is x if y is zero."""
    assert y is not None
    for to, of in zip(writer.places(y), writer.places(x), strict=True):
        t = elem_of(writer.registers[to.reg].type)
        writer.put(system(t).gathers, to, of)


def _over_layout(registers: Mapping[int, int], layout: Layout, suffix: str = "") -> Layout:
    """A layout over other registers, without the fields that have none; records get a suffix."""
    if isinstance(layout, int):
        return registers[layout]
    fields = tuple(
        (name, _over_layout(registers, inner, suffix))
        for name, inner in layout.fields
        if any(k in registers for k in slots_of(inner))
    )
    return Record(layout.name + suffix, fields)
