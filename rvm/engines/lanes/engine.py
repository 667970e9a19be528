"""Running a block of lanes: groups that diverge at branches and meet again after them.

The group of a frame at the smallest position runs, and groups ahead of it wait; groups at the same
position are merged.  A call is made by the group that reaches it and ends when all of its lanes
have returned.

A lane that fails, or that cannot run with the others, is *set aside*: the caller runs it by itself.
So there are no messages here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rvm.engines.lanes.calls import CallSite
from rvm.engines.lanes.faults import Failing, Ragged
from rvm.engines.lanes.groups import Frame, Group, take
from rvm.engines.lanes.plan import LanePlan, Op
from rvm.engines.lanes.recovery import NO_LIMIT, alone, see_to, unexpected
from rvm.engines.lanes.segment import Segment
from rvm.engines.lanes.support import Context
from rvm.engines.support import REFUSALS
from rvm.host.once import once
from rvm.host.signals import listen
from rvm.state import NESTED, Options, State
from rvm.state import Frame as SingleFrame

LOOK = 256
"""The number of ticks that a segment's loop runs between two checks for signals."""


@dataclass(slots=True)
class Block:
    """The result of a block: registers, and for each lane ticks, erased bits and residue.

    Registers of lanes that were set aside are meaningless.
    """

    regs: list[Any]
    ticks: Any
    erased: Any
    drifts: Any
    aside: Any = field(repr=False)


def run_block(plan: LanePlan, regs: list[Any], width: int, options: Options) -> Block:
    """Run a function on registers of `width` lanes, which are changed in place."""
    ticks, erased = np.zeros(width, np.int64), np.zeros(width, np.int64)
    block = Block(regs, ticks, erased, np.zeros(width), np.zeros(width, bool))
    with np.errstate(all="ignore"):
        Run(plan, block, width, options).go()
    return block


class Run:
    """A block in execution: a stack of frames, the innermost with an active group."""

    def __init__(self, plan: LanePlan, block: Block, width: int, options: Options) -> None:
        self.block = block
        self.options = options
        self.limit = NO_LIMIT if options.max_steps is None else options.max_steps
        self.context = Context(options.tolerance)
        self.state = State(SingleFrame(plan.code, []), options)
        frame = Frame(plan, block.regs, np.arange(width), None)
        self.frame, self.depth = frame, 1
        self.group: Group | None = Group(frame, 0, None)

    def go(self) -> None:
        """Run until all lanes are at the end or set aside."""
        while True:
            listen()
            group = self.group
            if group is None or self.frame.waiting:
                group = self.group = self._next(group)
            if group is None or group.at == len(self.frame.plan.ops):
                if not self._return(group):
                    return
                continue
            op = group.frame.plan.ops[group.at]
            if op.kind == "call" or group.at in group.frame.apart:
                alone(self, group)
            else:
                self.advance(group, self.segment(group.frame.plan, group.at))

    # ------------------------------------------------------------ groups

    def _next(self, group: Group | None) -> Group | None:
        """The next active group: that at the least position, merged with those waiting there."""
        frame = self.frame
        if not frame.waiting:
            return group
        least = min(frame.waiting)
        if group is not None:
            if group.at < least:
                return group
            self._stop(group)
            if not group.width:
                return self._next(None) if frame.waiting else None
            frame.wait(group.at, _all(group))
            least = min(frame.waiting)
        return Group(frame, least, frame.waiting.pop(least))

    def _stop(self, group: Group) -> None:
        """Bring the lanes' own registers and counts up to date."""
        try:
            group.write_back()
        except Ragged:
            self.aside(group, np.ones(group.width, bool))
            return
        self.count(group)

    # ------------------------------------------------------------ straight code

    def segment(self, plan: LanePlan, start: int, stop: int | None = None) -> Segment:
        """The segment from a position on."""
        return once(plan.compiled, (start, stop), Segment, lambda: Segment(plan, start, stop))

    def advance(self, group: Group, segment: Segment) -> None:
        """Run a segment, and handle its outcome."""
        at, ticks, what = self._run(group, segment)
        group.at = at
        group.ticks += ticks
        if what is None:
            if self._room(group) <= 0:
                self._limit(group)
        elif isinstance(what, Exception):
            see_to(self, group, what)
        else:
            self._branch(group, what)

    def _run(self, group: Group, segment: Segment) -> tuple[int, int, Any]:
        group.load(segment.varying, segment.uniform)
        room = min(self._room(group), LOOK)
        found = segment.run(group.regs, group.width, room, self.context, self.state)
        group.note(segment.changed)
        self._erase(group)
        return found

    def _erase(self, group: Group) -> None:
        """File the bits that were erased, and residues, with the lanes."""
        context, account = self.context, self.state.account
        if context.drift is not None:
            self.drifted(group, context.drift)
            context.drift = None
        if account.drift:
            self.drifted(group, account.drift)
            account.drift = 0.0
        if context.erased is not None:
            self.block.erased[group.ids] += context.erased
            context.erased = None
        if account.erased_bits:
            self.block.erased[group.ids] += account.erased_bits
            account.erased_bits = 0

    def _room(self, group: Group) -> int:
        """The ticks left to the lane that has done the most."""
        if self.limit == NO_LIMIT:
            return NO_LIMIT
        return self.limit - int(self.block.ticks[group.ids].max()) - group.ticks

    def _limit(self, group: Group) -> None:
        """Set aside the lanes that have gone as far as they may."""
        self.count(group)
        over = self.block.ticks[group.ids] >= self.limit
        if over.any():
            self.aside(group, over)

    def count(self, group: Group) -> None:
        """Enter the ticks that a group has done for its lanes."""
        if group.ticks:
            self.block.ticks[group.ids] += group.ticks
            group.ticks = 0

    def drifted(self, group: Group, drift: Any) -> None:
        """File residues with the lanes."""
        drifts = self.block.drifts
        drifts[group.ids] = np.maximum(drifts[group.ids], drift)

    def aside(self, group: Group, mask: Any) -> None:
        """Set lanes of a group aside and continue with the others."""
        self.count(group)
        self.block.aside[group.ids[mask]] = True
        group.keep(~mask)
        if not group.width and self.group is group:
            self.group = None

    def _branch(self, group: Group, mask: Any) -> None:
        """Part at a branch: some take it, some do not."""
        plan, q = group.frame.plan, group.at
        op = plan.ops[q]
        self.count(group)
        self.block.ticks[group.ids] += op.ticks
        if op.kind == "skip":
            behind, other, taken = op.target, q + 1, ~mask
        else:
            behind, other, taken = plan.behind(op), q + 1, mask
            failed = unexpected(self, group, op, taken)
            if failed is not None:
                self.aside(group, failed)
                taken = taken[~failed]
                if not group.width:
                    return
        try:
            self._part(group, taken, behind, other)
        except Ragged:
            self.aside(group, np.ones(group.width, bool))

    def _part(self, group: Group, taken: Any, behind: int, other: int) -> None:
        """Continue with the lanes at the lesser position."""
        if taken.all() or not taken.any():
            group.at = behind if taken.all() else other
            return
        if behind < other:
            group.part(~taken, other)
            group.at = behind
        else:
            group.part(taken, behind)
            group.at = other

    # ------------------------------------------------------------ calls

    def site(self, plan: LanePlan, q: int) -> CallSite:
        """The call at a position."""
        return once(plan.compiled, ("call", q), CallSite, lambda: CallSite(plan, plan.ops[q]))

    def call(self, group: Group, op: Op) -> None:
        """Enter a call with all lanes of a group."""
        if self._room(group) <= 0:
            self._limit(group)
            return
        if self.depth >= NESTED:
            # Each lane alone reports it.
            self.aside(group, np.ones(group.width, bool))
            return
        site = self.site(group.frame.plan, group.at)
        group.load(site.varying, site.uniform)
        try:
            inner = site.enter(group.regs, group.width)
        except REFUSALS as error:
            see_to(self, group, error)
            return
        group.ticks += 1
        self.count(group)
        self.depth += 1
        self.frame = Frame(site.callee, inner, group.ids, group)
        self.group = Group(self.frame, 0, None)

    def _return(self, group: Group | None) -> bool:
        """Return from a frame whose lanes are all at its end; False from the outermost."""
        frame = self.frame
        if group is not None:
            self._stop(group)
        outer = frame.caller
        if outer is None:
            return False
        self.depth -= 1
        self.frame, self.group = outer.frame, outer
        site = self.site(outer.frame.plan, outer.at)
        outer.note(site.changed)
        inner = frame.regs
        gone = self.block.aside[frame.ids]
        if gone.any():
            stay = np.flatnonzero(~gone)
            inner = [
                take(v, stay) if k in site.own and v is not None else v for k, v in enumerate(inner)
            ]
            self._keep(outer, ~gone)
            if not outer.width:
                return True
        self._leave(outer, site, inner)
        return True

    def _keep(self, group: Group, mask: Any) -> None:
        group.keep(mask)
        if not group.width:
            self.group = None

    def _leave(self, group: Group, site: CallSite, inner: list[Any]) -> None:
        """Return scalars to the caller's places."""
        while True:
            group.load(site.varying, site.uniform)
            try:
                site.leave(group.regs, inner, group.width, self.context)
            except Failing as error:
                stay = np.flatnonzero(~error.lanes)
                inner = [
                    take(v, stay) if k in site.own and v is not None else v
                    for k, v in enumerate(inner)
                ]
                self.aside(group, np.asarray(error.lanes))
                if not group.width:
                    return
                continue
            except REFUSALS:
                self.aside(group, np.ones(group.width, bool))
                return
            break
        group.note(site.changed)
        self._erase(group)
        group.ticks += 1
        group.at += 1


def _all(group: Group) -> Any:
    return np.arange(group.width) if group.lanes is None else group.lanes
