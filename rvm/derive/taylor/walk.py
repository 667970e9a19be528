"""The run back that carries first and second derivatives along, one instruction at a time.

A machine that has run forwards goes back by its own inverse code. With each instruction that is
undone, the derivatives of the loss with respect to the values after it become those with respect to
the values before it. `Walk` is the engine of such a machine: it lets the reference engine execute
each tick, and updates the derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from rvm.derive.taylor.field import Field, locate
from rvm.derive.taylor.rules import Arriving
from rvm.engines.data import copied, run_data
from rvm.engines.evaluate import evaluate
from rvm.engines.reference import step
from rvm.expr import Place
from rvm.faults import DefinitionError, RvmError
from rvm.image import Code
from rvm.isa import apply
from rvm.isa.derivatives import adjoint_type
from rvm.state import Frame, State, where
from rvm.stmt import (
    Alloc,
    Call,
    Data,
    Drop,
    Exchange,
    Free,
    Fresh,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
    invert,
    values,
)
from rvm.types import Array, RegisterType, Scalar, Stack, ValueType, elem_of

SlotFrame = list[Any]
Tick = Callable[["Walk", State, Frame], None]
"""Executes one tick and takes the derivatives through it."""
Rule = Callable[[Field, Sequence[Any], Sequence[Any]], None]
"""Takes derivatives through a statement that is undone, given registers and their slots."""


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
        """For each active call, the slots that were made for arguments that are values."""

    def made(self, t: RegisterType, value: Any) -> Any:
        """New slots for the contents of a register of a type; None if it has no derivatives."""
        if value is None or not _carries(t):
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
        """At the start of a call, propagate from its temporaries to the values they came from."""
        outer = state.frames[-2]
        call = cast(Call, outer.code.stmts(outer.pc)[0])
        code, pc = outer.code, outer.pc
        registers = state.top.code.function.registers
        step(state)
        self.frames.pop()
        for k, slots in self.owned.pop():
            t = cast("Scalar | Array", registers[k].type)
            out, value, size = Place(k, (), t), call.args[k], len(code.function.registers)
            prepare = partial(Arriving, (out,), (value,), size)
            local = _prepared(code, pc, k, prepare)
            local(self.field, [slots], outer.regs, self.frames[-1])
            self.field.drop(slots, elem_of(t).is_complex)


# ---------------------------------------------------------------- ticks, prepared


def _prepared(code: Code, pc: int, k: int, prepare: Callable[[], Any]) -> Any:
    """The result of `prepare`, computed once; its errors name the instruction."""
    known = code.compiled.setdefault(Walk, {})
    assert isinstance(known, dict)
    if (pc, k) not in known:
        try:
            known[pc, k] = prepare()
        except RvmError as error:
            error.where = where(code, pc)
            raise
    return known[pc, k]


def _tick(code: Code, pc: int) -> Tick | None:
    """The handler of the instruction at `pc`; None if it does not affect derivatives."""
    found: Tick | None = _prepared(code, pc, -1, lambda: _prepare(code, code.stmts(pc)))
    return found


def _prepare(code: Code, stmts: tuple[Stmt, ...]) -> Tick | None:
    registers = code.function.registers
    match stmts[0]:
        case Call() as call:
            return lambda walk, state, frame: walk.enter(state, frame, call)
        case Alloc(reg) | Fresh(reg) | Free(reg) | Drop(reg) | Push(_, reg) | Pop(_, reg):
            return _lived(code, stmts[0]) if _carries(registers[reg.reg].type) else None
    if not isinstance(stmts[0], Data):
        return None
    parts = [(s, _undone(cast(Data, invert(s)), len(registers))) for s in stmts]
    if all(rule is None for _, rule in parts):
        return None
    return _data(parts)


def _lived(code: Code, stmt: Stmt) -> Tick:
    """A register is created or removed, or a value moves to or from a stack; executed as it is."""
    registers = code.function.registers
    match stmt:
        case Alloc(reg) | Fresh(reg):
            # Forwards it was dropped, with a known value.
            t = registers[reg.reg].type

            def tick(walk: Walk, state: State, frame: Frame) -> None:
                step(state)
                walk.frames[-1][reg.reg] = walk.made(t, frame.regs[reg.reg])

        case Free(reg) | Drop(reg):
            # Forwards it was made: the values that it was made from receive its derivatives.
            t, value = registers[reg.reg].type, next(values(stmt), None)
            out = Place(reg.reg, (), None if isinstance(t, Stack) else t)
            local = None if value is None else Arriving((out,), (value,), len(registers))

            def tick(walk: Walk, state: State, frame: Frame) -> None:
                step(state)
                slots = walk.frames[-1]
                own, slots[reg.reg] = slots[reg.reg], None
                if local is not None:
                    local(walk.field, [own], frame.regs, slots)
                if not isinstance(t, Stack):
                    walk.field.drop(own, elem_of(t).is_complex)

        case Push(place, stack) | Pop(place, stack):
            wide, popped = elem_of(cast(Scalar, place.type)).is_complex, isinstance(stmt, Pop)

            def tick(walk: Walk, state: State, frame: Frame) -> None:
                slots = walk.frames[-1]
                at = locate(place, frame.regs, slots)
                step(state)
                # The zero that a push leaves is new; the zero that a pop finds is forgotten.
                kept = slots[stack.reg].pop() if popped else walk.field.new(None, wide)
                walk.field.exchange(at, kept, wide)
                if popped:
                    walk.field.drop(kept, wide)
                else:
                    slots[stack.reg].append(kept)

        case _:
            raise AssertionError(stmt)
    return tick


def _data(parts: list[tuple[Stmt, Rule | None]]) -> Tick:
    """Data statements: once one is undone, the machine holds the values before it.

    Several statements are first undone on a copy, to find the values in between.
    """

    def tick(walk: Walk, state: State, frame: Frame) -> None:
        if len(parts) == 1:
            step(state)
        regs = frame.regs if len(parts) == 1 else [copied(v) for v in frame.regs]
        for stmt, rule in parts:
            if len(parts) > 1:
                run_data(stmt, regs)
            if rule is not None:
                rule(walk.field, regs, walk.frames[-1])
        if len(parts) > 1:
            step(state)

    return tick


# ---------------------------------------------------------------- rules of data statements


def _carries(t: RegisterType | None) -> bool:
    """Whether a register or place of this type holds numbers with derivatives."""
    return adjoint_type(elem_of(cast(RegisterType, t))) is not None


def _undone(stmt: Data, registers: int) -> Rule | None:
    """The effect on derivatives of undoing a data statement; None if there is none.

    A rule takes derivatives from after the statement to before it, in forward order; registers hold
    the values before it.  DefinitionError D012 where a condition guards several statements, whose
    intermediate values would not be known, or where an opcode computes numbers with derivatives
    from others without.
    """
    match stmt:
        case Update(dst, op, value) if _carries(dst.type):
            if op in "+-" or elem_of(cast(ValueType, dst.type)).is_log:
                return _placed(Arriving((dst,), (value,), registers, 1.0 if op in "+*" else -1.0))
            return _placed(Arriving((dst,), (apply(op, dst, value),), registers, replace=True))
        case Exchange(a, b) if _carries(a.type):
            wide = elem_of(cast(ValueType, a.type)).is_complex
            return lambda field, regs, slots: field.exchange(
                locate(a, regs, slots), locate(b, regs, slots), wide
            )
        case Map(dsts, computed):
            able = [_carries(d.type) for d in dsts]
            if all(able):
                return _placed(Arriving(dsts, computed, registers, replace=True))
            if any(able):
                raise _refused("an opcode computes numbers with derivatives among others without")
        case When(cond, body):
            inner = [u for s in body if (u := _undone(cast(Data, s), registers)) is not None]
            if len(body) > 1 and inner:
                raise _refused("an opcode has several statements within one condition")
            if inner:
                return lambda field, regs, slots: (
                    inner[0](field, regs, slots) if evaluate(cond, regs) else None
                )
    return None


def _placed(arriving: Arriving) -> Rule:
    """The rule for values whose places a statement names."""
    return lambda field, regs, slots: arriving(
        field, [locate(o, regs, slots) for o in arriving.outs], regs, slots
    )


def _refused(message: str) -> DefinitionError:
    return DefinitionError(
        "D012",
        f"{message}: Taylor propagation cannot undo it",
        hint='method="forward-over-reverse" takes second derivatives by other means',
    )
