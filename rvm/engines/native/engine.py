"""The native engine: compiled code between gates, and the reference engine in between."""

from __future__ import annotations

import numpy as np

from rvm.emit.llvm.module import ModulePrinter
from rvm.engines.extent import foreseen
from rvm.engines.native.compiler import compiler
from rvm.engines.native.flight import run
from rvm.engines.native.host import library
from rvm.engines.native.roots import kind_for
from rvm.engines.reference import step
from rvm.engines.trapping import due
from rvm.image import Code
from rvm.ir import context
from rvm.ir.function import plan_of
from rvm.ir.kind import Kind
from rvm.state import State

MANY = 1000
"""The number of frames left in a row from which another engine may be better."""
FEW = 50
"""Ticks that generated Python executes in the time that entering machine code takes."""


class Native:
    """Machine code."""

    name = "native"
    exact = False

    def __init__(self) -> None:
        library()

    def first_chunk(self, state: State) -> int:
        """The first number of ticks: fewer where a tick may be a loop over a large array."""
        return foreseen(state)

    def advance(self, state: State, ticks: int) -> int:
        """Execute up to `ticks` ticks; may stop some short of them, at a gate.

        It also stops when it has left many frames in a row after few ticks each: see `Climber`.
        """
        n, frames, options = ticks, state.frames, state.options
        short = 0
        while n > 0 and short < MANY:
            frame, began, depth = frames[-1], n, len(frames)
            if state.armed and due(state):
                break
            flow = plan_of(frame.code, options.checks, state.logging).flow
            pc = frame.pc
            if pc in flow.gates and pc not in flow.apart:
                if flow.needs(0)[pc] > n:
                    break
                n, how = run(state, frame, kind_for(frame, options, state.logging), n)
                if how == context.SPENT or n == 0:
                    break
                frame = frames[-1]
            if len(frames) == 1 and frame.pc == len(frame.code):
                break
            if state.armed and due(state):
                break
            with np.errstate(all="ignore"):
                step(state)
            n -= 1
            short = short + 1 if len(frames) < depth and began - n < FEW else 0
        return ticks - n


def source_of(code: Code, kind: Kind) -> str:
    """The LLVM code of a root, to be read."""
    llvm = compiler()
    return ModulePrinter(code, kind).text(llvm.triple, llvm.layout)
