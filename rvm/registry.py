"""The engines, one row each; names, help, messages and tests are derived from the rows.

An engine is one file, and one row here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rvm.faults import UsageError


@dataclass(frozen=True, slots=True)
class EngineRow:
    """Facts about an engine that are known before it is imported; references are `module:name`.

    `doc` describes it in a few words, for help and hints.  `counting` is the variant of the engine
    that counts what it executes, made from `Counts`; `lacks` is a function that returns the error
    for a missing requirement, or None.  `chooses`: it only chooses among the others.  `compiles`:
    it starts slowly, and runs may go straight to compiled code.  `traps`: it stops at traps.
    `unchecked`: it can omit the run-time checks.  `loops`: it is the `python` engine except in
    loops.  `lanes`: it runs many inputs at once.
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
        """The error that prevents the engine from running here; None if it can run."""
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
        traps=True,
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
"""The engine that defines correct results; the others agree with it."""


def executing(loops: bool = True) -> tuple[str, ...]:
    """The names of engines that execute programs; the others choose among these.

    Without `loops`, engines that differ from another only in loops are left out.
    """
    rows = (row for row in ENGINES.values() if loops or not row.loops)
    return tuple(row.name for row in rows if not row.chooses)


def having(fact: str) -> tuple[str, ...]:
    """The names of engines whose row has a fact, such as `traps`."""
    return tuple(n for n, row in ENGINES.items() if getattr(row, fact))


def found_at(home: str) -> Callable[..., Any]:
    """Import and return the object that a row names as `module:name`."""
    module, name = home.split(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
