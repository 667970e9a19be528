"""The traps of a session: from its breakpoints and watchpoints to positions of code.

Breakpoints are positions between instructions, the same in both directions: running back, a stop is
after the instruction that was undone, which is before it in time.  Watchpoints are instrumented
only where something may change or read their place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rvm.engines.evaluate import find
from rvm.expr import Apply, Const, Expr, Index, Place, Span, places, rebuild
from rvm.faults import RvmError
from rvm.image import Code
from rvm.image.traps import Traps
from rvm.isa import typed
from rvm.probes import Changed, Guard, Trap, changed_places, read_places
from rvm.probes.armed import Binding, Bindings
from rvm.types import BOOL, Scalar, Stack
from rvm.verify.alias import overlap
from rvm_tools.debug.lines import line_starts
from rvm_tools.debug.stops import Breakpoint, Watchpoint

LINES = "lines"
"""Requests for a frame, or everywhere, to stop wherever a line begins."""
ENTERS = "enters"
"""Traps before calls that an element of a watched place may be passed to: from there on its value
is in a parameter, whose frame is then armed."""


Look = tuple[Callable[[], Any], tuple[np.ndarray[Any, Any], Scalar] | None]
"""A function that reads a watched place's memory; and that memory, if it is one fixed element."""


class TrapRules:
    """Gives the traps of a code for one direction of travel, for `rvm.probes.Armory`."""

    def __init__(
        self,
        direction: int,
        breaks: Iterable[Breakpoint],
        watches: Iterable[Watchpoint],
        look: Callable[[Watchpoint], Look],
        lines: bool,
    ) -> None:
        self.direction = direction
        self.breaks = [b for b in breaks if b.enabled]
        self.watches = {w.number: w for w in watches if w.enabled and w.awake}
        self._look = look
        self.lines = lines

    def traps(self, code: Code, bindings: Bindings, extra: Hashable) -> Mapping[int, Traps]:
        """The traps of plain code, by position as it runs."""
        found: dict[int, list[Trap]] = {}
        forth = self.direction > 0
        timed = code if forth else code.image.code(code.name, not code.undo)
        last = len(code)
        wanted = extra if isinstance(extra, frozenset) else frozenset()
        for b in self.breaks:
            for p in b.target.positions(timed):
                trap = Trap(b, b.guards.get(code.name))
                found.setdefault(p if forth else last - p, []).append(trap)
        if self.lines or LINES in wanted:
            for p in line_starts(timed):
                found.setdefault(p if forth else last - p, []).append(Trap(LINES))
        for what in wanted:
            if isinstance(what, tuple):
                position, key = what
                found.setdefault(position, []).append(Trap(key))
        for binding in sorted(bindings, key=str):
            watch = self.watches.get(binding.watch)  # type: ignore[call-overload]
            if watch is not None:
                self._watch(code, watch, binding, found)
        return {p: tuple(traps) for p, traps in found.items()}

    def _watch(
        self, code: Code, watch: Watchpoint, binding: Binding, found: dict[int, list[Trap]]
    ) -> None:
        register = code.function.registers[binding.reg]
        whole = Place(binding.reg, (), None if isinstance(register.type, Stack) else register.type)
        place = watch.place if binding.owner else whole
        for pc in range(len(code)):
            if not (watch.reads or (binding.owner and binding.is_place)):
                passed = [p for p in _elements_passed(code, pc) if _meet(p, place, binding)]
                if passed:
                    test = _touches(passed, watch.place) if binding.owner else None
                    found.setdefault(pc, []).append(Trap((ENTERS, watch), test))
            if watch.reads:
                read = [p for p in read_places(code, pc) if _meet(p, place, binding)]
                if read:
                    # Before the instruction as time goes: after its undoing, when going back.
                    at = pc if self.direction > 0 else pc + 1
                    found.setdefault(at, []).append(
                        Trap(watch, self._reading(watch, read, binding))
                    )
            else:
                changed = [p for p in changed_places(code, pc) if _meet(p, place, binding)]
                if changed:
                    guard = self._change(watch, place, changed, binding)
                    found.setdefault(pc + 1, []).append(Trap(watch, guard))

    def _change(
        self, watch: Watchpoint, place: Place, changed: Sequence[Place], binding: Binding
    ) -> Guard:
        """The guard of a change for which the engine's loop must be left."""
        if watch.guard is not None and watch.in_code:
            if binding.owner:
                return _all(_touches(changed, watch.place), watch.guard)
            return _moved(watch.guard, binding.reg)
        if isinstance(place.type, Scalar) and all(not isinstance(s, Index) for s in place.path):
            if not (binding.owner or binding.is_place):
                # The value of a part, or of more, is not that of the place.
                return None
            return Changed(watch.cell, lambda regs: value_at(place, regs), place)
        look, element = self._look(watch)
        return Changed(watch.cell, lambda regs: look(), element=element)

    def _reading(self, watch: Watchpoint, read: list[Place], binding: Binding) -> Guard:
        """Whether elements with indices of their own are the watched one."""
        if watch.guard is not None and binding.owner:
            return _all(_touches(read, watch.place), watch.guard)
        return _touches(read, watch.place) if binding.owner else None


def _elements_passed(code: Code, pc: int) -> Iterator[Place]:
    """The elements and parts that a call is passed and may change."""
    instr = code.instrs[pc]
    if instr.op in ("call", "uncall"):
        for k in code.image.inout[instr.symbol]:
            arg = instr.args[k]
            if isinstance(arg, Place) and arg.path and isinstance(arg.type, Scalar):
                yield arg


def _meet(touched: Place, place: Place, binding: Binding) -> bool:
    if touched.reg != place.reg:
        return False
    return not binding.owner or overlap(touched, place) != "never"


def _touches(touched: Sequence[Place], watched: Place) -> Expr | None:
    """Whether one of these places is the watched one; None if that cannot be determined."""
    out: Expr | None = None
    for place in touched:
        test = _index_test(place, watched)
        if test is None:
            return None
        out = test if out is None else typed(Apply("or", (out, test)), BOOL)
    return out


def _all(first: Expr | None, then: Expr) -> Expr:
    """Both conditions; of the first there may be none."""
    return then if first is None else typed(Apply("and", (first, then)), BOOL)


def asked_in_code(guard: Expr, watched: Place, code: Code) -> bool:
    """Whether a condition has the same meaning wherever its watched place is changed: that is not
    passed to calls, or it is a scalar which the condition names alone."""
    if not watched.path and all(p.reg == watched.reg for p in places(guard)):
        return True
    return not any(
        isinstance(arg, Place) and arg.reg == watched.reg
        for instr in code.instrs
        if instr.op in ("call", "uncall")
        for arg in instr.args
    )


def _moved(guard: Expr, reg: int) -> Expr:
    """A condition on a watched scalar alone, over the parameter that it was passed to."""

    def there(node: Expr) -> Expr:
        if isinstance(node, Place):
            return Place(reg, node.path, node.type)
        return rebuild(node, there)

    return there(guard)


def _index_test(read: Place, watched: Place) -> Expr | None:
    """`i == 3 and j >= 4 and j < 6` for an element against a fixed one or a slice with steps of 1;
    None where that is not the case."""
    if len(read.path) != 1 or len(watched.path) != 1:
        return None
    a, b = read.path[0], watched.path[0]
    if not isinstance(a, Index) or not isinstance(b, Index) or len(a.items) != len(b.items):
        return None
    out: Expr | None = None
    for i, j in zip(a.items, b.items, strict=True):
        if not isinstance(i, Expr) or (isinstance(j, Span) and j.by is not None):
            return None
        ends = (("==", j),) if isinstance(j, Expr) else ((">=", j.lo), ("<", j.hi))
        for op, end in ends:
            if end is None:
                continue
            if not isinstance(end, Const):
                return None
            test = typed(Apply(op, (i, Const(end.value))), BOOL)
            out = test if out is None else typed(Apply("and", (out, test)), BOOL)
    return out


def value_at(place: Place, regs: Sequence[Any]) -> Any:
    """The raw value of a place now: a copy; None where it is not live or not there."""
    if regs[place.reg] is None:
        return None
    try:
        found = find(place, regs).read()
    except RvmError:
        return None
    if isinstance(found, np.ndarray):
        return found.copy()
    return list(found) if isinstance(found, list) else found


def reads_watched(watch: Watchpoint, code: Code, pc: int, regs: Sequence[Any], target: Any) -> bool:
    """Whether the instruction at `pc` does read the memory or register that is watched."""
    for place in read_places(code, pc):
        if regs[place.reg] is None:
            continue
        try:
            view = find(place, regs).bytes_view()
        except RvmError:
            continue
        if isinstance(target, np.ndarray) and isinstance(view, np.ndarray):
            if np.shares_memory(view, target):
                return True
        elif not isinstance(target, np.ndarray) and not isinstance(view, np.ndarray):
            return True
    return False
