"""The python engine: each function as generated Python source, registers as locals.

A function's source is a loop over blocks, so that a run can begin at any gate; a loop or
conditional without calls is printed as structured code.  Ticks are counted down in `n`, and a run
passes a gate only if `n` is enough to reach the next ones, so it may stop that much early.  Sources
are registered in `linecache`, so that tracebacks and debuggers show them.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from rvm.emit.python.calls import CallPrinter
from rvm.engines.reference import step
from rvm.engines.source import Source
from rvm.engines.support import REFUSALS, SUPPORT, Trouble
from rvm.engines.trapping import due
from rvm.host.once import once
from rvm.image import Code
from rvm.ir.typed import Unprintable
from rvm.numbers.support import NAMES
from rvm.state import FRAME_BYTES, NESTED, Frame, State
from rvm.stmt import Call

_serial = itertools.count()
S = TypeVar("S", bound=Source)

Runner = Callable[..., tuple[int, int, bool]]
"""(registers, gate, ticks, state) to (ticks left, position, whether the ticks are spent)."""


class Python:
    """Generated source for blocks, with the reference engine in between."""

    name = "python"
    exact = False
    source_type: type[Source] = Source

    def find(self, code: Code, strict: int) -> Compiled[Source]:
        """The compiled source of a code."""
        return compiled_of(code, strict, self.source_type)

    def advance(self, state: State, ticks: int) -> int:
        """Execute up to `ticks` ticks; may stop some short of them, at a gate."""
        n, frames, strict = ticks, state.frames, state.logging
        find = self.find
        with np.errstate(all="ignore"):
            while n > 0:
                frame = frames[-1]
                code, pc = frame.code, frame.pc
                compiled = find(code, strict)
                if pc in compiled.entries:
                    left, pc, spent = compiled.run(frame.regs, pc, n, state)
                    frame.pc = pc
                    state.time += (n - left) * state.direction
                    n = left
                    if spent or n == 0:
                        break
                if code.traps and due(state):
                    break
                if pc == len(code.instrs):
                    if len(frames) == 1:
                        break
                    self._return(state, strict)
                elif pc in compiled.calls:
                    self._call(state, frame, compiled.calls[pc])
                else:
                    step(state)
                n -= 1
        return ticks - n

    def _call(self, state: State, frame: Frame, site: CallSite) -> None:
        """Enter a call."""
        account, limit = state.account, state.options.max_memory
        live = account.live_bytes + FRAME_BYTES
        try:
            if len(state.frames) >= NESTED if limit is None else live > limit:
                raise Trouble
            inner = site.enter(frame.regs)
        except REFUSALS:
            step(state)
            return
        account.live_bytes = live
        if live > account.peak_bytes:
            account.peak_bytes = live
        state.frames.append(Frame(site.callee, inner))
        state.time += state.direction

    def _return(self, state: State, strict: int) -> None:
        """Return from a call."""
        frames = state.frames
        outer = frames[-2]
        site = self.find(outer.code, strict).calls.get(outer.pc)
        try:
            if site is None:
                raise Trouble
            site.leave(outer.regs, frames[-1].regs)
        except REFUSALS:
            step(state)
            return
        frames.pop()
        outer.pc += 1
        state.account.live_bytes -= FRAME_BYTES
        state.time += state.direction


class CallSite(NamedTuple):
    """A call in generated form."""

    callee: Code
    enter: Callable[[list[Any]], list[Any]]
    """The caller's registers to the callee's."""
    leave: Callable[[list[Any], list[Any]], None]
    """(the caller's registers, the callee's): scalars go back to where they came from."""


class Compiled(Generic[S]):
    """A code's generated source, compiled.  `entries` are the gates it can begin at."""

    def __init__(self, code: Code, strict: int, source_type: type[S]) -> None:
        self.source = source_type(code, strict)
        self.entries = self.source.entries
        kind = f", strict {strict}" if strict else ""
        self.filename = f"<rvm {'~' * code.undo}{code.name}{kind} #{next(_serial)}>"
        text = self.source.text()
        self.run: Runner = _not_compiled
        names = {**NAMES, **self.source.support, **self.source.printer.constants}
        names["LINES"] = self.source.lines_of
        try:
            execute(text, self.filename, names)
        except (SyntaxError, RecursionError, MemoryError):
            # Python's own limits, on nesting above all: this function is the reference engine's.
            self.entries = frozenset()
        else:
            self.run = names["run"]
        self.calls = _call_sites(code, sorted(self.source.flow.apart), strict)


def _call_sites(code: Code, apart: Sequence[int], strict: int) -> dict[int, CallSite]:
    """The calls among some instructions in generated form, but those for the reference engine."""
    texts: dict[int, str] = {}
    printer = None
    for pc in apart:
        call = code.stmts(pc)[0]
        if isinstance(call, Call):
            printer = printer or CallPrinter(code.function, (), viewed=False)
            callee, changed = code.callee(pc).function, code.image.inout[call.callee]
            clashes, notes = code.clashes(pc), code.notes(pc)
            with suppress(Unprintable):
                texts[pc] = printer.print(call, callee, changed, clashes, strict, notes, f"_{pc}")
    if printer is None or not texts:
        return {}
    names = {**NAMES, **SUPPORT, **printer.constants}
    execute("".join(texts.values()), f"<rvm calls in {code.name} #{next(_serial)}>", names)
    return {
        pc: CallSite(code.callee(pc), names[f"enter_{pc}"], names[f"leave_{pc}"]) for pc in texts
    }


def execute(text: str, filename: str, names: dict[str, Any]) -> None:
    """Execute generated source, and register it for tracebacks and debuggers."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), names)


def _not_compiled(regs: list[Any], block: int, n: int, *more: object) -> tuple[int, int, bool]:
    return n, block, False


def compiled_of(code: Code, strict: int, source_type: type[S]) -> Compiled[S]:
    """The compiled source of a code, made at first use."""
    key = source_type, strict
    return once(code.compiled, key, Compiled, lambda: Compiled(code, strict, source_type))


def source_of(code: Code, strict: int = 0) -> str:
    """The generated source, to be read."""
    return compiled_of(code, strict, Source).source.text()
