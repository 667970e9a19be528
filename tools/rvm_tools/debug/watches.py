"""The values of watched places, wherever they are stored at the moment.

Scalars are copied into a call and out again, so meanwhile they are in the callee's parameter, also
those that are elements of arrays; arrays are the same memory under several names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rvm.engines.evaluate import find
from rvm.engines.trapping import condition
from rvm.expr import Place
from rvm.faults import RvmError
from rvm.probes.armed import plain_code
from rvm.state import Frame, State
from rvm.types import Scalar, elem_of
from rvm.verify.alias import overlap
from rvm_tools.debug.passing import settle
from rvm_tools.debug.stops import StopEvent, Watchpoint
from rvm_tools.debug.texts import LONG, elements_changed, raw_text
from rvm_tools.debug.traps import Look, reads_watched, value_at


def watched_value(state: State, watch: Watchpoint) -> object:
    """A copy of a watched place's value; None if its frame or register is not live.

    What was passed to active calls has the value that they have given it.
    """
    if watch.depth >= len(state.frames):
        return None
    settle(state)
    return value_at(watch.place, state.frames[watch.depth].regs)


def ticks_asleep(watches: Sequence[Watchpoint], direction: int, time: int) -> int | None:
    """Ticks until the frame of a sleeping watchpoint is there again; None if that is never."""
    edges = [edge for w in watches if (edge := w.waking(direction)) is not None]
    return min((abs(e - time) for e in edges if (e - time) * direction >= 0), default=None)


def woken(watches: Sequence[Watchpoint], direction: int, state: State) -> list[Watchpoint]:
    """Wake the watchpoints whose frame the last tick has brought back."""
    edges = [(w, w.waking(direction)) for w in watches]
    found = [w for w, edge in edges if edge is not None and state.time == edge + direction]
    for w in found:
        w.awake = True
        w.cell[0] = watched_value(state, w)
    return found


def handed_on(
    frames: Sequence[Frame], depth: int, place: Place
) -> Iterator[tuple[int, Place, bool]]:
    """The scalar parameters to which active calls were passed a place, or what overlaps it.

    For each its depth, the parameter, and whether it is the place itself, not a part or more.
    """
    memory = memory_of(place, frames[depth].regs)
    bound = {place.reg: (not place.path, memory is not None)}
    for d in range(depth, len(frames) - 1):
        frame, inner = frames[d], {}
        for k, arg in enumerate(plain_code(frame.code).instrs[frame.pc].args):
            if not isinstance(arg, Place) or arg.reg not in bound:
                continue
            is_place, in_memory = bound[arg.reg]
            whole = is_place and not arg.path
            if in_memory:
                view = memory_of(arg, frame.regs)
                if view is None or not np.shares_memory(view, memory):
                    continue
                whole = arg.type == place.type
            elif d == depth and overlap(arg, place) == "never":
                continue
            is_scalar = isinstance(arg.type, Scalar)
            inner[k] = whole, in_memory and not is_scalar
            if is_scalar:
                yield d + 1, Place(k, (), arg.type), whole
        bound = inner


def followed(frames: Sequence[Frame], depth: int, place: Place) -> tuple[int, Place]:
    """The present location of a scalar: the parameter that it was passed to, until that returns."""
    found = [(d, param) for d, param, same in handed_on(frames, depth, place) if same]
    return found[-1] if found else (depth, place)


def memory_of(place: Place, regs: Sequence[Any]) -> np.ndarray[Any, Any] | None:
    """The memory of an array, or of an element or part of one; None for what is in a register."""
    if not isinstance(regs[place.reg], np.ndarray):
        return None
    try:
        view = find(place, regs).bytes_view()
    except (RvmError, TypeError):
        return None
    return view if isinstance(view, np.ndarray) else None


def looker(frames: Sequence[Frame], watch: Watchpoint) -> Look:
    """A function that reads a watched place's memory; that of an array parameter is fixed."""
    frame = frames[watch.depth]
    place = watch.place
    held = frame.regs[place.reg]
    if isinstance(held, np.ndarray) and place.reg < frame.code.function.n_args and place.path:
        try:
            view = find(place, frame.regs).bytes_view()
        except RvmError:
            return lambda: None, None
        if view.ndim:
            return view.copy, None
        assert isinstance(place.type, Scalar)
        return view.item, (view, place.type)
    return lambda: value_at(place, frame.regs), None


def is_read(state: State, watch: Watchpoint, way: int) -> bool:
    """Whether the next instruction reads a watched place; going back, the one just undone."""
    top = state.top
    code, pc = plain_code(top.code), top.pc
    if way < 0:
        code, pc = code.image.code(code.name, not code.undo), len(code) - pc
    try:
        target = find(watch.place, state.frames[watch.depth].regs).bytes_view()
    except (RvmError, TypeError, AttributeError):
        return False
    return pc < len(code) and reads_watched(watch, code, pc, top.regs, target)


def fits(state: State, watch: Watchpoint) -> bool:
    """Whether a watchpoint's condition holds in its frame; one without a value does."""
    if watch.guard is None:
        return True
    settle(state)
    try:
        return bool(condition(watch.guard, state.frames[watch.depth].regs))
    except Exception:
        return True


def changed(
    frames: Sequence[Frame], watch: Watchpoint, old: Any, new: Any, way: int, edit: bool = False
) -> StopEvent:
    """The report on a watched place that was changed, perhaps by an edit, or read; `way` is the
    direction."""
    function = frames[watch.depth].code.function
    t = watch.place.type or function.registers[watch.place.reg].type
    a, b = raw_text(t, old), raw_text(t, new)
    name = f"watchpoint {watch.number}: {watch.text}"
    if watch.reads:
        return StopEvent("watchpoint", f"{name} is read: {a}", watch.number)
    undone = ("  (edited)" if edit else "") if way > 0 else f"  ({'edit ' * edit}undone)"
    data = {"place": watch.text, "old": a, "new": b} | ({"edit": True} if edit else {})
    told = f"{a} -> {b}"
    if isinstance(old, np.ndarray) and old.size > LONG and np.shape(new) == old.shape:
        # Both texts are abbreviated, and may be the same: the elements that differ are told.
        made = (old, new) if way > 0 else (new, old)
        data["elements"] = elements_changed("", elem_of(t), *made).strip().replace("  ", " ")
        told = elements_changed("", elem_of(t), old, new).strip().replace("  ", " ")
    return StopEvent("watchpoint", f"{name}  {told}{undone}", watch.number, data)
