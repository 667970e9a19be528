"""Engines that count what they execute: by steps, or by the counters of generated source.

Both fill the same `Counts`, and both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from rvm.accounts.counts import Counts, Key, Node, sized_of
from rvm.engines import counting
from rvm.engines.auto import Auto
from rvm.engines.evaluate import evaluate, find
from rvm.engines.python import Compiled, Python
from rvm.engines.reference import step
from rvm.engines.rows import Row
from rvm.engines.source import Source
from rvm.engines.strict import lost_at
from rvm.expr import Expr, Place
from rvm.faults import RvmError, UsageError
from rvm.ir.counters import counters_of
from rvm.state import State
from rvm.types import rank_of


class CountingReference:
    """The reference engine, looking at every tick."""

    name = "reference"
    exact = True

    def __init__(self, counts: Counts) -> None:
        self.counts = counts

    def advance(self, state: State, ticks: int) -> int:
        """Execute and count up to `ticks` ticks; fewer only at the end."""
        unarmed(state)
        self.counts.align(state.frames)
        done = 0
        with np.errstate(all="ignore"):
            while done < ticks and not state.at_end:
                count_tick(state, self.counts)
                done += 1
        return done


def count_tick(state: State, counts: Counts) -> None:
    """Execute one tick with the reference engine, and count it; on an error nothing is counted."""
    frames, account = state.frames, state.account
    frame, node, depth = frames[-1], counts.path[-1], len(frames)
    pc, erased = frame.pc, account.erased_bits
    if pc == len(frame.code):
        pc = frames[-2].pc
        step(state)
        counts.leave(pc, state.time)
        node = counts.path[-1]
    else:
        sized = sized_of(frame.code)
        of, after = sized.of[pc], sized.after(pc)
        key = None if not of or after else _key(of, frame.regs)
        code, logged = frame.code, state.residue is not None
        rounds = code.rounds(pc) and not (logged and code.logging(pc, state.logging))
        bits = lost_at(code, pc, frame.regs) if rounds else 0
        step(state)
        if bits:
            node.rounded[pc] += bits
        if of:
            node.sizes[pc][key or _key(of, frame.regs) or ()] += 1
        if len(frames) > depth:
            counts.enter(pc, state.time)
        elif frame.pc != pc + 1:
            node.jumps[pc] += 1
            landing = frame.code.instrs[pc].aux
            if sized.of[landing]:
                node.sizes[landing][_key(sized.of[landing], frame.regs) or ()] += 1
        else:
            node.done[pc] += 1
    if account.erased_bits != erased:
        node.erased[pc] += account.erased_bits - erased


def _key(of: Sequence[Expr], regs: Sequence[Any]) -> Key | None:
    """The sizes on which a cost depends; None if a step will report an error."""
    try:
        return tuple(
            tuple(find(e, regs).read().shape) if _is_array(e) else evaluate(e, regs) for e in of
        )
    except RvmError:
        return None


def unarmed(state: State) -> None:
    """UsageError U016 if a state is to stop at traps."""
    if state.armed:
        raise UsageError(
            "U016",
            "a run that is counted does not stop at traps",
            hint="count up to the time where the traps stopped another run",
        )


def _is_array(node: Expr) -> TypeGuard[Place]:
    return isinstance(node, Place) and node.type is not None and rank_of(node.type) > 0


class CountedSource(Source):
    """The generated source of one function in one direction, with counters.

    `row` are the counters, `pass_on` is that of a `Row`.
    """

    parameters = "regs, block, n, state, row, pass_on"
    counts = True


class CountingPython(Python):
    """Generated source with counters, the rest counted by steps."""

    exact = True
    source_type: type[Source] = CountedSource

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self._rows: dict[Node, Row] = {}

    def advance(self, state: State, ticks: int) -> int:
        """Execute and count `ticks` ticks; fewer only at the end."""
        unarmed(state)
        counts, frames, strict = self.counts, state.frames, state.logging
        path, n, find = counts.align(frames), ticks, self.find
        with np.errstate(all="ignore"):
            while n > 0:
                frame, node = frames[-1], path[-1]
                code, pc = frame.code, frame.pc
                compiled = find(code, strict)
                if pc in compiled.entries:
                    row = self._rows.get(node) or self._row(node, compiled)
                    row.entries[pc] += 1
                    words, pass_on = row.words, row.pass_on
                    left, pc, spent = compiled.run(frame.regs, pc, n, state, words, pass_on)
                    row.stops[pc, False] += 1
                    frame.pc = pc
                    state.time += (n - left) * state.direction
                    spent, n = spent and left < n, left
                    if spent:
                        continue
                    if n == 0:
                        break
                if pc == len(code.instrs):
                    if len(frames) == 1:
                        break
                    self._count_return(state, strict)
                elif pc in compiled.calls and not sized_of(code).of[pc]:
                    self._call(state, frame, compiled.calls[pc])
                    counts.enter(pc, state.time)
                else:
                    count_tick(state, counts)
                n -= 1
        return ticks - n

    def _row(self, node: Node, compiled: Compiled[Source]) -> Row:
        """The row of a node, which it settles."""
        counters = counters_of(node.code, compiled.source.flow)
        made = self._rows[node] = Row(node, counters, [0] * counters.size)
        node.pending.append(made)
        return made

    def _count_return(self, state: State, strict: int) -> None:
        pc, erased = state.frames[-2].pc, state.account.erased_bits
        self._return(state, strict)
        self.counts.leave(pc, state.time)
        if state.account.erased_bits != erased:
            self.counts.path[-1].erased[pc] += state.account.erased_bits - erased


def counting_auto(counts: Counts) -> Auto:
    """`auto` of engines that count."""
    return Auto(
        CountingPython(counts),
        lambda: counting("native", counts),
        lambda: counting("vector", counts),
    )
