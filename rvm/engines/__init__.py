"""Engines: ways of executing the one bytecode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rvm.codes.words import instead
from rvm.faults import UsageError
from rvm.registry import ENGINES, LAW, executing, found_at, having

if TYPE_CHECKING:
    from rvm.accounts.counts import Counts
    from rvm.engines.protocol import Engine


def engine(name: str) -> Engine:
    """The engine called `name`; UsageError U002 if there is none."""
    if name not in ENGINES:
        hint = instead(name, ENGINES, f"engines: {', '.join(ENGINES)}")
        raise UsageError("U002", f"there is no engine `{name}`", hint=hint)
    made: Engine = found_at(ENGINES[name].home)()
    return made


def counting(name: str, counts: Counts) -> Engine:
    """The engine called `name` that counts what it executes; UsageError U016 if it cannot."""
    if name not in ENGINES or not ENGINES[name].counting:
        raise UsageError(
            "U016",
            f"the engine `{name}` does not count what it executes",
            hint="engines that do: " + ", ".join(having("counting")),
        )
    made: Engine = found_at(ENGINES[name].counting)(counts)
    return made


__all__ = ["ENGINES", "LAW", "counting", "engine", "executing", "having"]
