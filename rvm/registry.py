"""The engines, a row each: names, help, messages, and tests go over them.

An engine is one file, and one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rvm.faults import UsageError


@dataclass(frozen=True, slots=True)
class EngineRow:
    """What is known of an engine before it is imported; what is found elsewhere is `module:name`.

    `doc` says what it is in a few words, as help and hints show it.  `counting` is the engine's
    kin that counts what it executes, made from `Counts`; `lacks` a function that gives the error
    of what is missing here, or None.  `chooses`: it only picks among the others.  `compiles`: it
    begins slowly, and runs may go straight to what it compiled.  `traps`: it stops where a trap is
    due.  `unchecked`: it can leave out the run-time checks.  `loops`: it is the `python` engine
    except in loops.  `lanes`: it runs many inputs at once.
    """

    name: str
    home: str
    doc: str
    counting: str = ""
    lacks: str = ""
    chooses: bool = False
    compiles: bool = False
    traps: bool = False
    unchecked: bool = False
    loops: bool = False
    lanes: bool = False

    def missing(self) -> UsageError | None:
        """What keeps the engine from running here; None if nothing does."""
        found: UsageError | None = found_at(self.lacks)() if self.lacks else None
        return found


ROWS = (
    EngineRow(
        name="auto",
        home="rvm.engines.auto:Auto",
        doc="the fastest for the program",
        counting="rvm.engines.counted:counting_auto",
        chooses=True,
        compiles=True,
        unchecked=True,
    ),
    EngineRow(
        name="reference",
        home="rvm.engines.reference:Reference",
        doc="a tree walk",
        counting="rvm.engines.counted:CountingReference",
        traps=True,
    ),
    EngineRow(
        name="python",
        home="rvm.engines.python:Python",
        doc="generated source",
        counting="rvm.engines.counted:CountingPython",
        traps=True,
    ),
    EngineRow(
        name="vector",
        home="rvm.engines.vector.engine:Vector",
        doc="loops as NumPy operations",
        counting="rvm.engines.vector.counted:CountingVector",
        loops=True,
        lanes=True,
    ),
    EngineRow(
        name="native",
        home="rvm.engines.native.engine:Native",
        doc="machine code",
        counting="rvm.engines.native.counted:CountingNative",
        lacks="rvm.engines.native.host:why_not",
        compiles=True,
        lanes=True,
        traps=True,
        unchecked=True,
    ),
)
ENGINES: dict[str, EngineRow] = {row.name: row for row in ROWS}
"""The engines by name."""
LAW = "reference"
"""The engine that says what is right; the others agree with it."""


def executing(loops: bool = True) -> tuple[str, ...]:
    """The names of engines that execute by themselves; the others choose among these.

    Without `loops`, those that differ in code without loops.
    """
    rows = (row for row in ENGINES.values() if loops or not row.loops)
    return tuple(row.name for row in rows if not row.chooses)


def having(fact: str) -> tuple[str, ...]:
    """The names of engines of which a fact of their rows holds, `traps` say."""
    return tuple(n for n, row in ENGINES.items() if getattr(row, fact))


def found_at(home: str) -> Callable[..., Any]:
    """What a row names as `module:name`, imported now."""
    module, name = home.split(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
