"""The origin of a value: a walk back along swaps, moves and copies to where it was created.

Each leg goes back to the last instruction that changed the place, and finds in its statements what
it stored: another place's value (then the walk continues with that one), or a computed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from rvm.engines.evaluate import evaluate, find
from rvm.expr import Const, Expr, Index, Place, Span
from rvm.faults import RvmError
from rvm.image import Code
from rvm.numbers import system
from rvm.program import Function
from rvm.stmt import Alloc, Call, Exchange, Free, Map, Pop, Push, Stmt, Update, When
from rvm.types import I64, Scalar, Stack, elem_of
from rvm_tools.debug.expressions import fixed_place
from rvm_tools.debug.journeys import Journey
from rvm_tools.debug.session import Session
from rvm_tools.debug.stops import Watchpoint
from rvm_tools.debug.texts import place_text, raw_text
from rvm_tools.debug.watches import followed, watched_value


@dataclass(frozen=True, slots=True)
class _Link:
    """A station in a value's history: the time of the instruction, its action, and the place."""

    time: int
    function: str
    line: int
    place: str
    value: str
    how: str


@dataclass(frozen=True, slots=True)
class _At:
    """A place of a frame, at the machine's present time."""

    depth: int
    place: Place


def origin(session: Session, text: str, limit: int = 1000) -> list[_Link]:
    """The history of a place's value, latest first; the machine ends where the value was made."""
    frame = session.frame
    function = frame.code.function
    place = fixed_place(session.language.place(text, function, frame.regs), function, frame.regs)
    at: _At | None = _At(session.depth, place)
    links: list[_Link] = []
    session._remember()
    visited = session._visited
    while at is not None and len(links) < limit:
        link, at = _leg(session, at)
        links.append(link)
    # The walk is one journey: `back` returns to where it began.
    session._visited = visited.arrived(session.time)
    return links


def _leg(session: Session, at: _At) -> tuple[_Link, _At | None]:
    """Go back to the instruction that stored the value; the link, and the value's earlier place."""
    frames = session.frames
    function = frames[at.depth].code.function
    name = place_text(at.place, function)
    watch = Watchpoint(0, name, at.place, at.depth, function.name)
    shown = raw_text(_type(function, at.place), watched_value(session.machine.state, watch))
    arrival = session._travel.travel(Journey(-1, watch=watch))
    session._finish(arrival, -1)
    if arrival.reason == "gone":
        return _from_caller(session, at, function, name, shown)
    if arrival.reason == "start":
        slot = at.place.reg
        how = "an input" if slot < function.n_args and not at.depth else "there since the start"
        return _link(session, name, shown, how), None
    if arrival.reason != "watchpoint":
        why = arrival.error.message if arrival.error else arrival.reason
        return _link(session, name, shown, f"the walk ended: {why}"), None
    if "edit" in arrival.events[0].data:
        return _link(session, name, shown, f"edited at t={session.time + 1}"), None
    return _from_instruction(session, at, name, shown)


def _link(session: Session, place: str, value: str, how: str) -> _Link:
    stop = session.stop
    return _Link(stop.time, stop.function, stop.line, place, value, how)


def _from_caller(
    session: Session, at: _At, function: Function, name: str, shown: str
) -> tuple[_Link, _At | None]:
    """The frame was entered with this value, which is in the caller's argument."""
    frame = session.frames[-1]
    call = frame.code.stmts(frame.pc)[0]
    if not isinstance(call, Call) or at.place.reg >= len(call.args):
        return _link(session, name, shown, "made by the call"), None
    arg = call.args[at.place.reg]
    if not isinstance(arg, Place):
        return _link(session, name, shown, "the value of an expression, passed to the call"), None
    caller = frame.code.function
    fixed = fixed_place(arg, caller, frame.regs)
    inner = _joined(fixed, at.place)
    how = f"passed to `{function.name}` as `{place_text(fixed, caller)}`"
    link = _link(session, name, shown, how)
    return link, _At(len(session.frames) - 1, inner)


def _joined(outer: Place, inner: Place) -> Place:
    """A path inside an argument as one in the caller: `x[2:8]` and `[1]` are `x[3]`."""
    path = list(outer.path)
    for step in inner.path:
        last = path[-1] if path else None
        joined = _chained(last, step) if isinstance(last, Index) else None
        if joined is None:
            path.append(step)
        else:
            path[-1] = joined
    return Place(outer.reg, tuple(path), inner.type if inner.path else outer.type)


def _chained(first: Index, then: object) -> Index | None:
    """Two steps of constant indices as one."""
    if not isinstance(then, Index):
        return None
    items: list[Expr | Span] = []
    rest = list(then.items)
    for item in first.items:
        if not isinstance(item, Span) or not rest:
            items.append(item)
            continue
        low, by = (0 if e is None else cast(Const, e).value for e in (item.lo, item.by))
        inside = rest.pop(0)
        if isinstance(inside, Span):
            if inside.is_whole:
                items.append(item)
                continue
            if by or inside.by is not None:
                return None
            ends = [low if inside.lo is None else low + inside.lo.value]  # type: ignore[attr-defined]
            if inside.hi is None:
                items.append(Span(Const(ends[0], I64), item.hi))
            else:
                high = low + inside.hi.value  # type: ignore[attr-defined]
                items.append(Span(Const(ends[0], I64), Const(high, I64)))
        elif by < 0 and item.lo is None:
            return None
        else:
            items.append(Const(low + inside.value * (by or 1), I64))  # type: ignore[attr-defined]
    return Index((*items, *rest))


def _from_instruction(session: Session, at: _At, name: str, shown: str) -> tuple[_Link, _At | None]:
    """The source of the value that the next instruction puts into the place."""
    frames = session.frames
    top = frames[-1]
    code, pc = top.code, top.pc
    if pc >= len(code):
        # Undone was a return: the value came back from the callee's parameter.
        return _from_callee(session, at, name, shown)
    target = _memory(session, at)
    if target is None:
        at = _At(*followed(frames, at.depth, at.place))
    popped = code.stmts(pc)[0]
    if isinstance(popped, Pop) and _is_target(session, popped.dst, at, target):
        return _from_stack(session, popped.stack, name, shown)
    for stmt in code.stmts(pc):
        found = _source(session, code, stmt, at, target)
        if found is not None:
            how, source = found
            link = _link(session, name, shown, how)
            return link, None if source is None else _At(len(frames) - 1, source)
    op = code.instrs[pc].op
    return _link(session, name, shown, f"made here by `{op}`"), None


def _from_stack(session: Session, stack: Place, name: str, shown: str) -> tuple[_Link, _At | None]:
    """The value was popped: go back to the push that put it there."""
    frames = session.frames
    depth, held = len(frames) - 1, frames[-1].regs[stack.reg]
    called = frames[-1].code.function.registers[stack.reg].name
    level = len(held)
    link = _link(session, name, shown, f"popped from the stack `{called}`")
    watch = Watchpoint(0, called, stack, depth, frames[-1].code.name)
    while len(held) >= level:
        arrival = session._travel.travel(Journey(-1, watch=watch))
        session._finish(arrival, -1)
        if arrival.reason != "watchpoint":
            return link, None
    top = session.frames[-1]
    push = top.code.stmts(top.pc)[0] if top.pc < len(top.code) else None
    if not isinstance(push, Push):
        return link, None
    src = fixed_place(push.src, top.code.function, top.regs)
    return link, _At(len(session.frames) - 1, src)


def _from_callee(session: Session, at: _At, name: str, shown: str) -> tuple[_Link, _At | None]:
    frames = session.frames
    outer = frames[-2]
    call = outer.code.stmts(outer.pc)[0]
    assert isinstance(call, Call)
    for k, arg in enumerate(call.args):
        if len(frames) - 2 == at.depth and isinstance(arg, Place) and arg.reg == at.place.reg:
            fixed = fixed_place(arg, outer.code.function, outer.regs)
            if fixed == at.place:
                inner = frames[-1].code.function
                link = _link(session, name, shown, f"came back from `{inner.name}`")
                t = inner.registers[k].type
                return link, _At(len(frames) - 1, Place(k, (), t))  # type: ignore[arg-type]
    return _link(session, name, shown, "came back from a call"), None


def _memory(session: Session, at: _At) -> Any:
    """The watched place's memory, or None if it is a scalar register."""
    frame = session.frames[at.depth]
    if frame.regs[at.place.reg] is None:
        return None
    try:
        view = find(at.place, frame.regs).bytes_view()
    except (RvmError, TypeError):
        return None
    return view if hasattr(view, "__array_interface__") and hasattr(view, "strides") else None


def _is_target(session: Session, place: Place, at: _At, target: Any) -> bool:
    """Whether a place of the innermost frame is the very place that is followed."""
    top = session.frames[-1]
    if target is None:
        return (
            len(session.frames) - 1 == at.depth
            and place.reg == at.place.reg
            and place.path == at.place.path
        )
    if top.regs[place.reg] is None:
        return False
    try:
        view = find(place, top.regs).bytes_view()
    except (RvmError, TypeError):
        return False
    return (
        hasattr(view, "__array_interface__")
        and view.shape == target.shape
        and view.__array_interface__["data"][0] == target.__array_interface__["data"][0]
    )


def _part_of(session: Session, place: Place, at: _At, target: Any) -> Index | bool | None:
    """The relation of the followed place to a place:

    True if equal, an index if inside, else None.
    """
    if _is_target(session, place, at, target):
        return True
    if target is None or target.ndim:
        return None
    top = session.frames[-1]
    if top.regs[place.reg] is None:
        return None
    view = find(place, top.regs).bytes_view()
    if not hasattr(view, "strides") or not view.ndim or view.dtype != target.dtype:
        return None
    offset = target.__array_interface__["data"][0] - view.__array_interface__["data"][0]
    index: list[int] = []
    for stride, length in zip(view.strides, view.shape, strict=True):
        if stride <= 0:
            return None
        index.append(offset // stride)
        offset -= index[-1] * stride
        if not 0 <= index[-1] < length:
            return None
    if offset:
        return None
    return Index(tuple(Const(i, I64) for i in index))


def _source(
    session: Session, code: Code, stmt: Stmt, at: _At, target: Any
) -> tuple[str, Place | None] | None:
    """How a statement sets the followed place, and the place from which it takes the value."""
    top = session.frames[-1]
    function, regs = code.function, top.regs

    def taken(where: Index | bool | None, other: Expr, how: str) -> tuple[str, Place | None]:
        assert isinstance(other, Place)
        fixed = fixed_place(other, function, regs)
        if isinstance(where, Index):
            t = elem_of(function.registers[fixed.reg].type)
            fixed = _joined(fixed, Place(0, (where,), t))
        return f"{how} `{place_text(fixed, function)}`", fixed

    match stmt:
        case Exchange(a, b):
            for one, other in ((a, b), (b, a)):
                where = _part_of(session, one, at, target)
                if where is not None:
                    return taken(where, other, "swapped with")
        case Map(dsts, values, _):
            for dst, value in zip(dsts, values, strict=True):
                if _is_target(session, dst, at, target) and isinstance(value, Place):
                    return taken(True, value, "moved from")
        case When(cond, body):
            if evaluate(cond, regs):
                for inner in body:
                    found = _source(session, code, inner, at, target)
                    if found is not None:
                        return found
        case Update(dst, "+" | "^", Place() as value):
            where = _part_of(session, dst, at, target)
            if where is not None and _is_zero(session, dst, where, regs):
                return taken(where, value, "copied from")
        case Alloc(reg, Place() as value):
            if len(session.frames) - 1 == at.depth and reg.reg == at.place.reg:
                return taken(True, value, "a copy of") if not at.place.path else None
        case Free(reg, _):
            if reg.reg == at.place.reg:
                return "freed here", None
        case Push(src, stack) if _is_target(session, src, at, target):
            name = function.registers[stack.reg].name
            return f"left zero: its value was pushed to `{name}`", None
    return None


def _is_zero(session: Session, dst: Place, where: Index | bool, regs: Sequence[Any]) -> bool:
    """Whether the place that is added to holds zero, so that adding copies."""
    held = find(dst, regs).read()
    if isinstance(where, Index):
        held = held[tuple(i.value for i in where.items if not isinstance(i, Span))]  # type: ignore[attr-defined]
    t = dst.type
    return t is not None and bool(
        (held == system(elem_of(t)).zero).all()
        if hasattr(held, "all")
        else held == system(elem_of(t)).zero
    )


def _type(function: Function, place: Place) -> Scalar | Any:
    t = function.registers[place.reg].type
    return t if isinstance(t, Stack) and not place.path else place.type
