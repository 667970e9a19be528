"""The walk back that takes first and second derivatives along, an instruction at a time.

A machine that has run forwards goes back by its own inverse code.  With each instruction that is
undone, the derivatives of the loss by what the machine holds after it become those by what it
held before.  `Walk` is what such a machine runs on: it lets the reference engine execute
each tick, and looks on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from rvm.derive.taylor.arriving import Arriving, arriving
from rvm.derive.taylor.field import Field
from rvm.derive.taylor.slots import carries_slots, locate
from rvm.derive.taylor.undone import Undone, undone
from rvm.engines.data import copied, run_data
from rvm.engines.reference import step
from rvm.expr import Expr, Place
from rvm.faults import RvmError
from rvm.image import Code
from rvm.state import Frame, State, where
from rvm.stmt import Alloc, Call, Data, Drop, Free, Fresh, Pop, Push, Stmt, invert
from rvm.types import Array, RegisterType, Scalar, Stack, elem_of

SlotFrame = list[Any]
Tick = Callable[["Walk", State, Frame], None]
"""Executes one tick and takes the derivatives through it."""


class Walk:
    """The state's numbers as slots of a field, kept in step with the machine that goes back."""

    name = "taylor"
    exact = True

    def __init__(self, state: State, field: Field) -> None:
        self.field = field
        frame = state.frames[0]
        registers = frame.code.function.registers
        self.frames: list[SlotFrame] = [
            [self.made(r.type, v) for r, v in zip(registers, frame.regs, strict=True)]
        ]
        """For each frame of the machine the slots of its registers."""
        self.owned: list[list[tuple[int, Any]]] = []
        """For each call under way the slots that were made for arguments that are values."""

    def made(self, t: RegisterType, value: Any) -> Any:
        """New slots for what a register of a type holds; None where it carries no derivatives."""
        if value is None or not carries_slots(t):
            return None
        wide = elem_of(t).is_complex
        if isinstance(t, Stack):
            return [self.field.new(None, wide) for _ in value]
        return self.field.new(value.shape if isinstance(t, Array) else None, wide)

    def advance(self, state: State, ticks: int) -> int:
        """Execute up to `ticks` ticks; fewer only at the start of the program."""
        done = 0
        with np.errstate(all="ignore"):
            while done < ticks and not state.at_end:
                frame = state.frames[-1]
                if frame.pc == len(frame.code.instrs):
                    self._leave(state)
                else:
                    tick = _tick(frame.code, frame.pc)
                    if tick is None:
                        step(state)
                    else:
                        tick(self, state, frame)
                done += 1
        return done

    # ------------------------------------------------------------ calls

    def enter(self, state: State, frame: Frame, call: Call) -> None:
        """Places keep their slots; a value is a temporary, whose end value is known."""
        outer = self.frames[-1]
        slots = [
            locate(a, frame.regs, outer)
            if isinstance(a, Place) and outer[a.reg] is not None
            else None
            for a in call.args
        ]
        step(state)
        inner = state.frames[-1]
        registers = inner.code.function.registers
        own: list[tuple[int, Any]] = []
        for k, a in enumerate(call.args):
            if not isinstance(a, Place):
                slots[k] = self.made(registers[k].type, inner.regs[k])
                if slots[k] is not None:
                    own.append((k, slots[k]))
        self.frames.append([*slots, *[None] * (len(registers) - len(slots))])
        self.owned.append(own)

    def _leave(self, state: State) -> None:
        """At a call's start its temporaries were made: what they were computed from gains."""
        outer = state.frames[-2]
        call = cast(Call, outer.code.stmts(outer.pc)[0])
        code, pc = outer.code, outer.pc
        registers = state.top.code.function.registers
        step(state)
        self.frames.pop()
        for k, slots in self.owned.pop():
            t = cast("Scalar | Array", registers[k].type)
            out = Place(k, (), t)
            local = _prepared(code, pc, k, out, call.args[k])
            local.onto(self.field, [slots], outer.regs, self.frames[-1])
            self.field.drop(slots, elem_of(t).is_complex)


# ---------------------------------------------------------------- ticks, prepared


def _cache(code: Code) -> dict[Any, Any]:
    program = code.image.program
    found = program.cache.get(Walk)
    if not isinstance(found, dict):
        found = program.cache[Walk] = {}
    return found


def _prepared(code: Code, pc: int, k: int, out: Place, value: Expr) -> Arriving:
    """What the k-th argument of a call gains from."""
    known = _cache(code)
    key = (code.name, code.undo, pc, k)
    if key not in known:
        known[key] = _located(code, pc, lambda: arriving((out,), (value,), _size(code)))
    return cast(Arriving, known[key])


def _tick(code: Code, pc: int) -> Tick | None:
    """How the instruction at `pc` is executed; None if it concerns no derivatives."""
    known = _cache(code)
    key = (code.name, code.undo, pc)
    if key not in known:
        known[key] = _located(code, pc, lambda: _prepare(code, code.stmts(pc)))
    return cast("Tick | None", known[key])


def _located(code: Code, pc: int, prepare: Callable[[], Any]) -> Any:
    """What `prepare` gives; its errors say which instruction they are about."""
    try:
        return prepare()
    except RvmError as error:
        error.where = where(code, pc)
        raise


def _size(code: Code) -> int:
    return len(code.function.registers)


def _prepare(code: Code, stmts: tuple[Stmt, ...]) -> Tick | None:
    match stmts[0]:
        case Call() as call:
            return lambda walk, state, frame: walk.enter(state, frame, call)
        case Alloc(reg, _) | Fresh(reg):
            return _made(code, reg) if _carries(code, reg) else None
        case Free(reg, value):
            return _gone(code, reg, value) if _carries(code, reg) else None
        case Drop(reg):
            return _gone(code, reg, None) if _carries(code, reg) else None
        case Pop(place, stack):
            return _unpushed(place, stack) if _carries(code, stack) else None
        case Push(place, stack):
            return _unpopped(place, stack) if _carries(code, stack) else None
    if not isinstance(stmts[0], Data):
        return None
    parts = [(s, undone(cast(Data, invert(s)), _size(code))) for s in stmts]
    if all(u is None for _, u in parts):
        return None
    if len(parts) == 1:
        return _single(cast(Undone, parts[0][1]))
    return _several(parts)


def _carries(code: Code, reg: Place) -> bool:
    return carries_slots(code.function.registers[reg.reg].type)


def _made(code: Code, reg: Place) -> Tick:
    """Going back a register comes into being: forwards it was dropped, with a known value."""
    t = code.function.registers[reg.reg].type

    def tick(walk: Walk, state: State, frame: Frame) -> None:
        step(state)
        walk.frames[-1][reg.reg] = walk.made(t, frame.regs[reg.reg])

    return tick


def _gone(code: Code, reg: Place, value: Any) -> Tick:
    """Going back a register ends: forwards it was made, and what it was made from gains."""
    t = code.function.registers[reg.reg].type
    local = None
    if value is not None and not isinstance(t, Stack):
        local = arriving((Place(reg.reg, (), t),), (value,), _size(code))

    def tick(walk: Walk, state: State, frame: Frame) -> None:
        step(state)
        slots = walk.frames[-1]
        own = slots[reg.reg]
        slots[reg.reg] = None
        if local is not None:
            local.onto(walk.field, [own], frame.regs, slots)
        if not isinstance(t, Stack):
            walk.field.drop(own, elem_of(t).is_complex)

    return tick


def _unpushed(place: Place, stack: Place) -> Tick:
    """A value comes back from the stack; the zero that it left there is forgotten."""
    wide = elem_of(cast(Scalar, place.type)).is_complex

    def tick(walk: Walk, state: State, frame: Frame) -> None:
        slots = walk.frames[-1]
        at = locate(place, frame.regs, slots)
        step(state)
        kept = slots[stack.reg].pop()
        walk.field.exchange(at, kept, wide)
        walk.field.drop(kept, wide)

    return tick


def _unpopped(place: Place, stack: Place) -> Tick:
    """A value goes back to the stack, and leaves the zero that it was popped into."""
    wide = elem_of(cast(Scalar, place.type)).is_complex

    def tick(walk: Walk, state: State, frame: Frame) -> None:
        slots = walk.frames[-1]
        at = locate(place, frame.regs, slots)
        step(state)
        kept = walk.field.new(None, wide)
        walk.field.exchange(at, kept, wide)
        slots[stack.reg].append(kept)

    return tick


def _single(one: Undone) -> Tick:
    """One statement: once it is undone, the machine holds what was before it."""

    def tick(walk: Walk, state: State, frame: Frame) -> None:
        step(state)
        one.apply(walk.field, frame.regs, walk.frames[-1])

    return tick


def _several(parts: list[tuple[Stmt, Undone | None]]) -> Tick:
    """Several statements are undone on a copy, to see what the machine held in between."""

    def tick(walk: Walk, state: State, frame: Frame) -> None:
        regs = [copied(v) for v in frame.regs]
        for stmt, one in parts:
            run_data(stmt, regs)
            if one is not None:
                one.apply(walk.field, regs, walk.frames[-1])
        step(state)

    return tick
