"""The handling of operations that lanes cannot execute together.

Lanes known to fail are set aside.  If they are not known, the operation is tried on copies of parts
of the lanes.  If a value must be uniform and differs between lanes, the operation is executed for
one value after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rvm.engines.lanes.faults import Failing, Ragged, Varied
from rvm.engines.lanes.groups import Group, take
from rvm.engines.lanes.plan import Op
from rvm.engines.lanes.segment import Segment
from rvm.engines.lanes.stacks import LaneStack
from rvm.engines.reference import step
from rvm.engines.support import REFUSALS
from rvm.faults import RvmError
from rvm.host.once import once
from rvm.state import Frame as SingleFrame
from rvm.state import State

if TYPE_CHECKING:
    from rvm.engines.lanes.engine import Run

NO_LIMIT = 1 << 62


def see_to(run: Run, group: Group, error: Exception) -> None:
    """Handle an operation that raised: by failing lanes, by values, or by trying."""
    if isinstance(error, Failing):
        run.aside(group, np.broadcast_to(error.lanes, (group.width,)))
    elif isinstance(error, Varied):
        _apart(run, group, error.values)
    elif group.frame.plan.ops[group.at].kind == "same":
        _by_reference(run, group)
    else:
        _search(run, group)


def _by_reference(run: Run, group: Group) -> None:
    """An operation on uniform registers, by the reference engine."""
    plan = group.frame.plan
    op = plan.ops[group.at]
    regs = list(group.frame.regs)
    for k in plan.varying:
        # The operation may use the lengths of an array that varies.
        regs[k] = regs[k][..., 0] if isinstance(regs[k], np.ndarray) else None
    state = State(SingleFrame(plan.code, regs, op.pc), run.options)
    try:
        step(state)
    except RvmError:
        run.aside(group, np.ones(group.width, bool))
        return
    for k, v in enumerate(regs):
        if k not in plan.varying:
            group.regs[k] = group.frame.regs[k] = v
    run.block.erased[group.ids] += state.account.erased_bits
    run.drifted(group, state.account.drift)
    group.ticks += op.ticks
    group.at += 1


def _apart(run: Run, group: Group, values: Any) -> None:
    """Execute the operation in the lanes with the first lane's value; the others follow later.

    Values shared by all lanes may not be changed by each of these groups.
    """
    values = np.asarray(values)
    own = values == values.flat[0]
    if own.all():
        _search(run, group)
        return
    run.count(group)
    if not _changed(run, group) <= group.frame.plan.varying:
        run.aside(group, ~own)
        return
    group.frame.apart.add(group.at)
    try:
        group.part(~own, group.at)
    except Ragged:
        run.aside(group, np.ones(group.width, bool))
        return
    alone(run, group)


def _changed(run: Run, group: Group) -> frozenset[int]:
    """The registers that the operation at a group's position changes."""
    plan, q = group.frame.plan, group.at
    if plan.ops[q].kind == "call":
        return frozenset(run.site(plan, q).changed)
    return run.segment(plan, q, q + 1).changed


def alone(run: Run, group: Group) -> None:
    """Execute one operation before merging with others after it."""
    plan, q = group.frame.plan, group.at
    if plan.ops[q].kind == "call":
        run.call(group, plan.ops[q])
    else:
        run.advance(group, run.segment(plan, q, q + 1))


def _search(run: Run, group: Group) -> None:
    """Find the lanes that an operation fails in, by trying it on parts of them."""
    plan, q = group.frame.plan, group.at
    if group.width == 1:
        run.aside(group, np.ones(1, bool))
        return
    if plan.ops[q].kind == "call":
        site = run.site(plan, q)
        group.load(site.varying, site.uniform)
        bad = failing(
            lambda sel: site.enter(chosen(group.regs, site.varying, sel), len(sel)), group.width
        )
    else:
        segment = run.segment(plan, q, q + 1)
        bad = failing(lambda sel: tried(run, group, segment, sel), group.width)
    # If no part fails by itself, only the whole does, for lack of memory say.
    mask = np.ones(group.width, bool)
    if bad is not None:
        mask[:] = False
        mask[bad] = True
    run.aside(group, mask)


def tried(run: Run, group: Group, segment: Segment, some: Any) -> None:
    """Run a segment on copies of some lanes; its exceptions are passed on."""
    regs = chosen(group.regs, segment.varying, some)
    context, account = run.context, run.state.account
    kept = context.erased, account.erased_bits, context.drift, account.drift
    _, _, what = segment.run(regs, len(some), NO_LIMIT, run.context, run.state)
    context.erased, account.erased_bits, context.drift, account.drift = kept
    if isinstance(what, Exception):
        raise what


def unexpected(run: Run, group: Group, op: Op, taken: Any) -> Any:
    """The lanes that take a branch against the condition of its come-from; None if none do."""
    plan, q = group.frame.plan, group.at
    if plan.expected(op) is None:
        return None
    check = once(plan.compiled, ("landing", q), Segment, lambda: Segment(plan, q, landing=True))
    group.load(check.varying, check.uniform)
    at = np.flatnonzero(taken)
    bad = failing(lambda some: tried(run, group, check, at[some]), len(at))
    if bad is None:
        return None
    failed = np.zeros(group.width, bool)
    failed[at[bad]] = True
    return failed


def chosen(regs: list[Any], varying: tuple[int, ...], some: Any) -> list[Any]:
    """A frame's registers for some lanes; those in `varying` are copied."""
    out = list(regs)
    for k in varying:
        v = regs[k]
        if v is not None:
            out[k] = v.copy(some) if isinstance(v, LaneStack) else take(v, some)
    return out


def failing(attempt: Callable[[Any], object], width: int) -> Any:
    """The lanes for which an attempt raises, found by halving; None if there are none."""
    bad: list[int] = []

    def search(lanes: Any) -> None:
        try:
            attempt(lanes)
        except Failing as error:
            bad.extend(lanes[np.broadcast_to(error.lanes, (len(lanes),))])
            rest = lanes[~np.broadcast_to(error.lanes, (len(lanes),))]
            if len(rest):
                search(rest)
        except REFUSALS:
            if len(lanes) == 1:
                bad.append(int(lanes[0]))
                return
            half = len(lanes) // 2
            search(lanes[:half])
            search(lanes[half:])

    search(np.arange(width))
    return np.array(sorted(set(bad)), int) if bad else None
