"""The reference engine: a tree walk that all others must agree with.

One tick at a time: an instruction, the entry into a call, or the return from
one.  It knows statement kinds, not opcodes, and only one direction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, cast

import numpy as np

from rvm.engines.data import run_data
from rvm.engines.disagreement import Jumps
from rvm.engines.effects import perform
from rvm.engines.evaluate import evaluate, find
from rvm.engines.freed import misheld, not_returned
from rvm.engines.heap import drop_array, forget, make_array, pop, push, residue, room
from rvm.engines.log import keep, taken
from rvm.engines.memory import check_clashes, lengths, store
from rvm.engines.strict import strictly
from rvm.engines.trapping import due
from rvm.expr import Expr, Place
from rvm.faults import (
    AssertionFailed,
    InvertibilityError,
    LimitError,
    MachineError,
    RvmError,
    Where,
)
from rvm.host.signals import left_whole
from rvm.numbers import system
from rvm.numbers.base import NumberSystem, differing
from rvm.numbers.rounding import INFINITY, TURNED, allowance, drift_of, passed_drift
from rvm.program import Register
from rvm.state import FRAME_BYTES, NESTED, SCALAR_BYTES, Frame, State, words
from rvm.stmt import FORWARD, Alloc, Branch, Call, Drop, Effect, Free, Fresh, Land, Pop, Push, Stmt
from rvm.types import Array, Scalar, Stack, elem_of
from rvm.verify.text import show


class Reference:
    """The tree walk."""

    name = "reference"
    exact = True

    def advance(self, state: State, ticks: int) -> int:
        """Execute up to `ticks` ticks; fewer only at the end, or where a trap is due."""
        if state.armed:
            return _advance_armed(state, ticks)
        done = 0
        frames = state.frames
        with np.errstate(all="ignore"):
            while done < ticks:
                frame = frames[-1]
                if frame.pc == len(frame.code.instrs) and len(frames) == 1:
                    break
                step(state)
                done += 1
        return done


def _advance_armed(state: State, ticks: int) -> int:
    """`advance` among traps."""
    done = 0
    with np.errstate(all="ignore"):
        while done < ticks and not state.at_end and not due(state):
            step(state)
            done += 1
    return done


def step(state: State) -> None:
    """Execute one tick, ignoring traps; there must be one.

    After an error the state is unchanged, except for a MemoryError within several statements.
    """
    frame = state.frames[-1]
    pc, code = frame.pc, frame.code
    try:
        if pc == len(code.instrs):
            _leave(state)
            frame = state.frames[-1]
            _note(frame, frame.pc - 1)
        else:
            stmts, clashes = code.ready(pc)
            if clashes:
                check_clashes(clashes, frame)
            handler = _HANDLERS.get(type(stmts[0]))
            if handler is not None:
                handler(state, frame, stmts)
            elif state.residue is None or not (way := code.logging(pc, state.logging)):
                for stmt in stmts:
                    run_data(stmt, frame.regs)
                frame.pc = pc + 1
            else:
                strictly(state, code, pc, frame.regs, way > 0)
                frame.pc = pc + 1
            if not isinstance(stmts[0], Call):
                _note(frame, pc)
    except RvmError as error:
        if not left_whole(error):
            _locate(error, state)
        raise
    except MemoryError as error:
        if left_whole(error) or (pc < len(code.instrs) and len(code.stmts(pc)) > 1):
            # A callback's own; or the first of several statements may have been executed.
            raise
        limit = LimitError("R011", "the host has no memory for this instruction")
        _locate(limit, state)
        raise limit from None
    state.time += state.direction


def _logging(state: State, frame: Frame) -> int:
    """The use of the strict log by the present instruction: push (1), pop (-1), none (0)."""
    return 0 if state.residue is None else frame.code.logging(frame.pc, state.logging)


def _note(frame: Frame, pc: int) -> None:
    """Keep the sizes of ancillas that an instruction has changed."""
    for stmt in frame.code.notes(pc):
        if isinstance(stmt, Alloc):
            assert stmt.value is not None
            frame.regs[stmt.reg.reg] = evaluate(stmt.value, frame.regs)
        else:
            run_data(stmt, frame.regs)


def _locate(error: RvmError, state: State) -> None:
    """Add to an error where and when it happened, unless known."""
    depth = len(state.frames) - 1
    if state.top.pc == len(state.top.code) and depth:
        depth -= 1
    frame = state.frames[depth]
    if error.time is None:
        if error.where == Where():
            error.where = state.where(frame)
        spoken = words(frame.code, frame.pc)
        if spoken is not None and not isinstance(error, AssertionFailed):
            error.put(spoken)
        error.calls = state.calls(depth)
        error.time = state.time
        error.direction = -1 if frame.code.undo else 1


# ---------------------------------------------------------------- control


def _branch(state: State, frame: Frame, stmts: tuple[Stmt, ...]) -> None:
    """A taken branch is checked at its landing in the same tick."""
    branch = cast(Branch, stmts[0])
    if not evaluate(branch.cond, frame.regs):
        frame.pc += 1
        return
    landing = cast(Land, frame.code.stmts(branch.partner)[0])
    if not evaluate(landing.cond, frame.regs):
        raise Jumps(frame, branch.partner, taken=True).error()
    frame.pc = branch.partner + 1


def _land(state: State, frame: Frame, stmts: tuple[Stmt, ...]) -> None:
    if evaluate(cast(Land, stmts[0]).cond, frame.regs):
        raise Jumps(frame, frame.pc, taken=False).error()
    frame.pc += 1


# ---------------------------------------------------------------- memory


def _alloc(state: State, frame: Frame, stmts: tuple[Stmt, ...]) -> None:
    reg, v = cast(Alloc, stmts[0]).reg, cast(Alloc, stmts[0]).value
    register = frame.code.function.registers[reg.reg]
    if isinstance(register.type, Stack):
        frame.regs[reg.reg] = []
        frame.pc += 1
        return
    assert v is not None
    frame.regs[reg.reg] = _made(state, frame, register, evaluate(v, frame.regs))
    frame.pc += 1


def _made(state: State, frame: Frame, register: Register, value: Any) -> Any:
    """A value for a new register, an array of it, or the value it had when it was removed."""
    sys, made = system(elem_of(register.type)), value
    if isinstance(register.type, Array):
        made = make_array(state, sys, lengths(register.dims, frame.regs), value)
    if _logging(state, frame) >= 0:
        return made
    if not isinstance(register.type, Array):
        return taken(state, (sys, made))[0]
    try:
        made[...] = taken(state, (sys, made))[0]
    except InvertibilityError:
        state.account.live_bytes -= made.nbytes
        raise
    return made


def _free(state: State, frame: Frame, stmts: tuple[Stmt, ...]) -> None:
    free = cast(Free, stmts[0])
    reg, v = free.reg, free.value
    register = frame.code.function.registers[reg.reg]
    held = frame.regs[reg.reg]
    if isinstance(register.type, Stack):
        if held:
            name = f"the stack `{register.name}`"
            raise InvertibilityError(
                "R001",
                f"running back, {name} is not empty where it began"
                if frame.code.undo
                else f"{name} is freed while it is not empty",
                values={
                    "values": len(held),
                    "on top": system(register.type.elem).to_python(held[-1]),
                },
            )
    else:
        assert v is not None
        expected = evaluate(v, frame.regs)
        sys, logged = system(elem_of(register.type)), _logging(state, frame) > 0
        sizes = () if free.judged is None else [frame.regs[p.reg] for p in free.judged]
        how = {"logged": logged, "returns": free.returns}
        try:
            if isinstance(register.type, Array):
                shape = lengths(register.dims, frame.regs)
                drop_array(state, sys, held, shape, expected, register.name, *sizes, **how)
            else:
                residue(state, sys, held, expected, register.name, *sizes, **how)
        except InvertibilityError as error:
            raise misheld(frame, reg.reg, v, error) from None
    for place in (reg, *frame.code.sizes.get(reg.reg, ())):
        frame.regs[place.reg] = None
    frame.pc += 1


def _fresh(state: State, frame: Frame, stmts: tuple[Stmt, ...]) -> None:
    reg = cast(Fresh, stmts[0]).reg.reg
    register = frame.code.function.registers[reg]
    if isinstance(register.type, Stack):
        frame.regs[reg] = []
    else:
        zero = system(elem_of(register.type)).zero
        frame.regs[reg] = _made(state, frame, register, zero)
    frame.pc += 1


def _drop(state: State, frame: Frame, stmts: tuple[Stmt, ...]) -> None:
    reg = cast(Drop, stmts[0]).reg.reg
    register = frame.code.function.registers[reg]
    if isinstance(register.type, Stack):
        if frame.regs[reg]:
            name = f"the stack `{register.name}`"
            raise InvertibilityError(
                "R001",
                f"running back, {name} is not empty where it began"
                if frame.code.undo
                else f"{name} is dropped while it holds values",
                values={register.name: system(register.type.elem).told(frame.regs[reg][-4:])},
            )
    else:
        logged = _logging(state, frame) > 0
        forget(state, system(elem_of(register.type)), frame.regs[reg], logged=logged)
    for k in (reg, *(p.reg for p in frame.code.sizes.get(reg, ()))):
        frame.regs[k] = None
    frame.pc += 1


def _other(state: State, frame: Frame, stmts: tuple[Stmt, ...]) -> None:
    regs = frame.regs
    match stmts[0]:
        case Push(src, stack):
            sys = system(elem_of(cast(Scalar, src.type)))
            left, moved = sys.zero, find(src, regs).read()
            room(state, SCALAR_BYTES)
            if _logging(state, frame) < 0:
                left = taken(state, (sys, left))[0]
            push(state, regs[stack.reg], moved)
            store(src, regs, left)
        case Pop() as popped:
            _pop(state, popped, frame, _logging(state, frame) > 0)
        case Effect(_, _, args, when) as effect:
            # What an assertion shows is asked for where it does not hold.
            if when & FORWARD and not (effect.kind == "assert" and evaluate(args[0], regs)):
                registers = frame.code.function.registers
                perform(effect, [_shown(a, regs, registers) for a in args], state.options)
    frame.pc += 1


def _shown(node: Expr, regs: Any, registers: Sequence[Register]) -> Any:
    """The form in which an effect shows an operand: the raw value, or a stack's numbers."""
    held = evaluate(node, regs)
    if isinstance(node, Place) and not node.path:
        t = registers[node.reg].type
        if isinstance(t, Stack):
            return tuple(map(system(t.elem).to_python, held))
    return held


def _pop(state: State, popped: Pop, frame: Frame, logged: bool) -> None:
    dst, stack, regs = popped.dst, popped.stack, frame.regs
    held = find(dst, regs).read()
    sys = system(elem_of(cast(Scalar, dst.type)))
    drift = 0.0 if sys.same(held, sys.zero) else _off_zero(state, sys, popped, held, regs)
    back = frame.code.undo
    if not drift <= 1:
        error = InvertibilityError(
            "R006",
            "running back, a `push` takes its value back into a place that is not zero"
            if back
            else "a value is popped into a place that is not zero",
            values={"place": sys.told(held)},
            hint=("forwards it left zero there" if back else "its present value would be lost")
            + (
                ""
                if sys.exact
                else "; what only rounding has left, strict=True (--strict) takes back"
            ),
        )
        error.excess = drift if state.options.tolerance is None else 0.0
        raise error
    if not regs[stack.reg]:
        raise InvertibilityError(
            "R006", "running back, the stack of a `push` is empty" if back else "the stack is empty"
        )
    state.account.drift = max(state.account.drift, drift)
    if logged:
        # A zero with a sign passes for a zero, and so does what rounding left.
        keep(state, (sys, sys.zero, held))
    elif held != sys.zero:
        state.account.erased_bits += sys.type.bits
    store(dst, regs, pop(state, regs[stack.reg]))


def _off_zero(state: State, sys: NumberSystem, popped: Pop, held: Any, regs: Any) -> float:
    """The distance of a value from zero, relative to the allowed one: up to 1 it passes for it."""
    tolerance = state.options.tolerance
    if sys.exact or tolerance == 0:
        return INFINITY
    if held == sys.zero:
        return 0.0
    gap = float(abs(held - sys.zero))
    if not gap < INFINITY or not (popped.is_known or popped.held):
        return INFINITY
    size, updates = (0.0, TURNED) if popped.is_known else (regs[p.reg] for p in popped.held or ())
    if updates >= TURNED:
        return 0.0
    pardon = state.pardons.get((state.top.code, state.top.pc, "residue"), 1.0)
    return drift_of(gap, allowance(sys.type, size, updates, tolerance)) / pardon


# ---------------------------------------------------------------- calls


def _enter(state: State, frame: Frame, stmts: tuple[Stmt, ...]) -> None:
    call = cast(Call, stmts[0])
    callee = frame.code.callee(frame.pc)
    function = callee.function
    regs: list[Any] = [evaluate(a, frame.regs) for a in call.args]
    if _logging(state, frame) < 0:
        changed = frame.code.image.inout[call.callee]
        for k in reversed(_passed(call, changed)):
            sys = system(elem_of(cast(Scalar, call.args[k].type)))
            regs[k] = taken(state, (sys, regs[k]))[0]
    regs.extend([None] * (len(function.registers) - len(regs)))
    for k in range(len(call.args)):
        for axis, dim in enumerate(function.registers[k].dims):
            if dim is None:
                continue
            want, have = evaluate(dim, regs), regs[k].shape[axis]
            if want != have:
                raise MachineError(
                    "R008",
                    f"`{function.registers[k].name}` of `{function.name}` has the length "
                    f"{have} on axis {axis}, not {want}",
                    values={"length": have, "expected": want},
                )
    try:
        room(state, FRAME_BYTES)
        if state.options.max_memory is None and len(state.frames) >= NESTED:
            raise LimitError(
                "R011",
                "calls are nested deeper than is allowed without a limit on memory",
                values={"depth": NESTED},
                hint="allow it by max_memory= or --max-memory, in bytes",
            )
    except LimitError as error:
        if frame.code.image.recurs(call.callee):
            deep = f"the recursion of `{function.name}` is {len(state.frames):,} calls deep"
            error.notes += (deep,)
            error.hint = f"see that the recursion ends; if it does, {error.hint}"
        raise
    state.account.grow(FRAME_BYTES)
    state.frames.append(Frame(callee, regs))


def _passed(call: Call, changed: Collection[int]) -> list[int]:
    """The arguments that are inexact values, and that the callee may leave changed."""
    return [
        k
        for k, arg in enumerate(call.args)
        if k in changed and not isinstance(arg, Place)
        if not elem_of(cast("Scalar | Array", arg.type)).is_exact
    ]


def _passed_back(
    state: State, call: Call, changed: Collection[int]
) -> Iterator[tuple[NumberSystem, Any, Any]]:
    """For each value in `_passed`, the original, and the value that came back."""
    for k in _passed(call, changed):
        arg = call.args[k]
        sys = system(elem_of(cast("Scalar | Array", arg.type)))
        yield sys, evaluate(arg, state.frames[-2].regs), state.frames[-1].regs[k]


def _leave(state: State) -> None:
    """Return from the innermost function: scalars go back to the caller's places."""
    inner = state.top
    outer = state.frames[-2]
    call = cast(Call, outer.code.stmts(outer.pc)[0])
    changed = inner.code.image.inout[call.callee]
    lost, tolerance = 0, state.options.tolerance
    logged = _logging(state, outer) > 0
    restored = inner.code.image.restored(call.callee)
    for k in sorted(changed):
        arg, v = call.args[k], inner.regs[k]
        if isinstance(arg, Place):
            continue
        t = elem_of(cast("Scalar | Array", arg.type))
        expected = evaluate(arg, outer.regs)
        if not np.any(differing(v, expected, logged or tolerance == 0)):
            continue
        drift = passed_drift(t, v, expected, tolerance, k in restored)
        if not drift <= 1:
            callee = inner.code.function
            values = {"held": system(t).told(v), "expression": system(t).told(expected)}
            passed = show(arg, outer.code.function)
            raise not_returned(callee, callee.registers[k].name, passed, values)
        state.account.drift = max(state.account.drift, drift)
        lost += t.bits
    if logged:
        keep(state, *_passed_back(state, call, changed))
    else:
        state.account.erased_bits += lost
    for k in changed:
        arg = call.args[k]
        if isinstance(arg, Place) and isinstance(arg.type, Scalar):
            store(arg, outer.regs, inner.regs[k])
    state.frames.pop()
    state.account.live_bytes -= FRAME_BYTES
    outer.pc += 1


_HANDLERS: dict[type, Callable[[State, Frame, tuple[Stmt, ...]], None]] = {
    Alloc: _alloc,
    Branch: _branch,
    Call: _enter,
    Drop: _drop,
    Effect: _other,
    Free: _free,
    Fresh: _fresh,
    Land: _land,
    Pop: _other,
    Push: _other,
}
"""The handlers of instructions that are not sequences of data statements."""
